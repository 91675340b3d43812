//! Requests without rules: they are passed through to admission control.

mod common;
use common::*;
use serde_json::json;
use tierce_manager::{Ask, Asker, Books, Change, List, Mode, News, Principal, State, What, Which, Wish};

#[test]
fn what_fits_is_granted_and_what_does_not_is_refused_with_what_would_be() {
    let mut manager = manager(ONE, &[]);
    let id = granted(&mut manager, 1000, 11, &[("2ms/10ms", 0)]);
    let books = manager.books();
    assert_eq!(
        (books.requests[&id].name(), books.owner_of("grant-1")),
        ("grant-1".into(), Principal::User(1000))
    );
    // 20 % are given, 5 % are the default node's, so 75 % are left.
    let (why, nearest) = refused(&mut manager, 1000, 12, &[("9ms/10ms", 0)]);
    assert_eq!(why.rule, "budgets_must_fit_the_cpu", "{why}");
    let (budget, period) = nearest.unwrap().budget_and_period_ns().unwrap();
    assert!((7_490_000..=7_500_000).contains(&budget) && period == 10_000_000, "{budget}");
    assert_eq!(holders(&manager), [1]);
    granted(&mut manager, 1000, 12, &[("7.49ms/10ms", 0)]);
}

#[test]
fn of_several_modes_the_most_valuable_that_fits_is_chosen() {
    let mut manager = manager(ONE, &[]);
    granted(&mut manager, 1000, 11, &[("5ms/10ms", 0)]);
    let id = granted(&mut manager, 1000, 12, &[("2ms/10ms", 1), ("6ms/10ms", 3), ("4ms/10ms", 2)]);
    assert_eq!(manager.books().requests[&id].mode().unwrap().to_string(), "4ms in 10ms");
}

#[test]
fn a_guarantee_of_another_kind_is_given_by_what_it_follows_from() {
    for goal in ["RESCS 5ms 33ms", "PSBE 1/4 15ms", "PS 1/4", "RESBH 1ms 10ms"] {
        let mut manager = manager(ONE, &[]);
        let id = granted(&mut manager, 1000, 11, &[(goal, 0)]);
        assert_eq!(manager.books().requests[&id].held.as_ref().unwrap().under, "rt", "{goal}");
    }
}

/// One CPU: slower processors above, all others below.
const SLOWER: &str = r#"
[machine]
cpus = 1
[node.top]
policy = "fixed-priority"
cpu = 0
[node.slow]
policy = "uniform"
period = "10ms"
under.top = { priority = 1 }
[node.rest]
policy = "fair"
default = true
each = { weight = "nice" }
under.slow = { share = 0.05 }
under.top = { priority = 0 }
"#;

#[test]
fn a_slower_processor_is_given_by_its_share() {
    let mut manager = manager(SLOWER, &[]);
    let share = |manager: &InTest, id: u64| manager.books().requests[&id].held.as_ref().unwrap().keys.clone();
    let scheduler = |manager: &mut InTest, goal: &str| {
        let own = wish(manager, 1000, 11, &[(goal, 0)]);
        let wish = Wish { thread: None, policy: Some("edf".into()), ..own };
        ask(manager, 1000, wish).unwrap()
    };
    let granted_one = scheduler(&mut manager, "RESU 1/4");
    let id = granted_one.about.unwrap().id;
    assert_eq!(share(&manager, id), [("share".to_string(), "0.25".to_string())]);
    // A thread announces no deadlines: it has a reservation from period to period of the node.
    for (tid, goal, least) in [(12, "RESBS 2ms 10ms", "0.200001"), (13, "PS 1/10", "0.100001")] {
        let id = granted(&mut manager, 1000, tid, &[(goal, 0)]);
        assert_eq!(share(&manager, id), [("share".to_string(), least.to_string())], "{goal}");
    }
    // 60 % are given.
    assert_eq!(scheduler(&mut manager, "RESU 1/2").state, State::Refused);
    let (why, _) = refused(&mut manager, 1000, 14, &[("RESBH 1ms 10ms", 0)]);
    assert!(why.message.contains("slow: "), "budgets are not hard there: {why}");
}

#[test]
fn who_is_refused_a_share_is_told_which_would_be_granted() {
    let thousandth = |nearest: Option<Mode>, most: u64| {
        let ppm = nearest.unwrap().ppm();
        assert!((most - 1000..=most).contains(&ppm), "{ppm}");
    };
    // By a budget, of which 5 % are the default node's.
    let mut by_budget = manager(ONE, &[]);
    granted(&mut by_budget, 1000, 11, &[("2ms/10ms", 0)]);
    let (why, nearest) = refused(&mut by_budget, 1000, 12, &[("PS 9/10", 7)]);
    assert_eq!(why.rule, "budgets_must_fit_the_cpu", "{why}");
    assert_eq!(nearest.as_ref().map(|mode| mode.value), Some(7));
    thousandth(nearest.clone(), 750_000);
    let (_, bounded) = refused(&mut by_budget, 1000, 12, &[("PSBE 9/10 20ms", 0)]);
    let bounded = bounded.unwrap();
    assert!(bounded.guarantee.to_string().ends_with(" 20ms"), "the same error: {bounded}");
    let id = granted(&mut by_budget, 1000, 12, &[(&bounded.to_string(), 0)]);
    by_budget.ask(&Asker::user(1000), Ask::Cancel(Which { id }), NOW).unwrap();
    granted(&mut by_budget, 1000, 12, &[(&nearest.unwrap().to_string(), 7)]);
    // By a weight: of a node that has half of the CPU.
    let half = "[node.group]\npolicy = \"fair\"\nunder.rt = { budget = \"10ms\", period = \"20ms\" }\n";
    let mut by_weight = manager(&[ONE, half].concat(), &[]);
    let own = wish(&mut by_weight, 1000, 11, &[("PS 3/4", 0)]);
    let answer = ask(&mut by_weight, 1000, Wish { under: Some("group".into()), ..own }).unwrap();
    assert_eq!(answer.state, State::Refused);
    thousandth(answer.nearest, 500_000);
    // By a share of a slower processor, of which 5 % are the default node's.
    let mut by_share = manager(SLOWER, &[]);
    let own = wish(&mut by_share, 1000, 11, &[("RESU 99/100", 0)]);
    let scheduler = Wish { thread: None, policy: Some("edf".into()), ..own };
    let answer = ask(&mut by_share, 1000, scheduler.clone()).unwrap();
    assert_eq!(answer.state, State::Refused);
    let nearest = answer.nearest.unwrap();
    thousandth(Some(nearest.clone()), 950_000);
    let answer = ask(&mut by_share, 1000, Wish { modes: vec![nearest], ..scheduler }).unwrap();
    assert_eq!(answer.state, State::Granted, "{}", json!(answer));
}

#[test]
fn nothing_is_nearest_that_is_too_short_to_be_asked_for() {
    let full = "[node.full]\npolicy = \"fair\"\nunder.rt = { budget = \"18.95ms\", period = \"20ms\" }\n";
    let mut manager = manager(&[ONE, full].concat(), &[]);
    // 25 us of each 10 ms are left.
    assert_eq!(refused(&mut manager, 1000, 11, &[("1ms/10ms", 0)]).1, None);
    let (_, nearest) = refused(&mut manager, 1000, 11, &[("10ms/100ms", 0)]);
    granted(&mut manager, 1000, 11, &[(&nearest.unwrap().to_string().replace(" in ", "/"), 0)]);
}

/// One CPU whose children take turns of 2 ms.
const TURNS: &str = r#"
[machine]
cpus = 1
[node.turns]
policy = "round-robin"
quantum = "2ms"
cpu = 0
[node.rest]
policy = "fair"
default = true
under.turns = {}
"#;

#[test]
fn what_follows_from_turns_is_given_as_long_as_there_are_few() {
    for (policy, few) in [("round-robin", "RESCS 2ms 6ms"), ("time-sharing", "RESCS 2ms 110ms")] {
        let more = if policy == "round-robin" { "" } else { "starvation = \"50ms\"\n" };
        let text = TURNS.replace("round-robin\"\n", &format!("{policy}\"\n{more}"));
        let mut manager = manager(&text, &[]);
        // Nobody has more than that with two or three children.
        refused(&mut manager, 1000, 11, &[("RESCS 2ms 3ms", 0)]);
        let id = granted(&mut manager, 1000, 11, &[(few, 0)]);
        assert!(manager.books().requests[&id].held.as_ref().unwrap().keys.is_empty());
        if policy == "round-robin" {
            granted(&mut manager, 1001, 12, &[("RESCS 2ms 6ms", 0), ("PS 1/4", 0)]);
            // One more would make the turns longer than what the first was promised.
            let (why, _) = refused(&mut manager, 1002, 13, &[("PS 1/10", 0)]);
            assert_eq!(why.rule, "guarantee_must_hold", "{why}");
            assert!(why.message.contains("grant-1"), "{why}");
        }
    }
}

/// One CPU in slots of 10 ms, of which the default node has the first 3.
const SLOTS: &str = r#"
[machine]
cpus = 1
[node.slotted]
policy = "slots"
slot = "10ms"
cpu = 0
[node.rest]
policy = "fair"
default = true
under.slotted = { offset = "0ms", length = "3ms", fill = 1 }
"#;

#[test]
fn a_reserve_of_a_slot_is_given_where_it_is_free() {
    let mut manager = manager(SLOTS, &[]);
    let keys = |manager: &InTest, id: u64| {
        let keys = &manager.books().requests[&id].held.as_ref().unwrap().keys;
        (keys[0].1.clone(), keys[1].1.clone())
    };
    let first = granted(&mut manager, 1000, 11, &[("RESNH 2ms 10ms", 0)]);
    assert_eq!(keys(&manager, first), ("3ms".into(), "2ms".into()));
    let second = granted(&mut manager, 1000, 12, &[("RESCS 3ms 10ms", 0)]);
    assert_eq!(keys(&manager, second), ("5ms".into(), "3ms".into()));
    // 2 ms are free at the end.
    let (why, nearest) = refused(&mut manager, 1000, 13, &[("3ms/10ms", 0)]);
    assert!(why.message.contains("no 3ms of its slot are free at one place"), "{why}");
    let (budget, _) = nearest.unwrap().budget_and_period_ns().unwrap();
    assert!((1_997_000..=2_000_000).contains(&budget), "{budget}");
    // Less at the same place, though there is no other one.
    let asker = Asker::user(1000);
    let modes = vec![Mode::parse("RESCS 2.5ms 10ms", 0).unwrap()];
    manager.ask(&asker, Ask::Change(Change { id: second, modes }), NOW).unwrap();
    checked(&mut manager);
    assert_eq!(keys(&manager, second), ("5ms".into(), "2.5ms".into()));
    // The gap that the first leaves, and what is longer than each gap.
    manager.ask(&asker, Ask::Cancel(Which { id: first }), NOW).unwrap();
    refused(&mut manager, 1000, 13, &[("PS 3/10", 0)]);
    let third = granted(&mut manager, 1000, 13, &[("PS 1/5", 0)]);
    assert_eq!(keys(&manager, third), ("3ms".into(), "2ms".into()));
    // A slot is no other period.
    let (why, _) = refused(&mut manager, 1000, 14, &[("RESNH 1ms 5ms", 0)]);
    assert_eq!(why.rule, "scheduler_must_provide_it", "{why}");
}

#[test]
fn what_no_thread_ends_ends_with_its_owner() {
    let mut manager = manager(ONE, &[]);
    let matches = vec![serde_json::from_value(json!({ "comm": "make*" })).unwrap()];
    let modes = || vec![Mode::parse("2ms/10ms", 0).unwrap()];
    let all = Wish { matches, modes: modes(), ..Wish::default() };
    assert_eq!(ask(&mut manager, 1000, all.clone()).unwrap().state, State::Granted);
    let scheduler = Wish { policy: Some("reservation".into()), modes: modes(), ..Wish::default() };
    let answer = ask(&mut manager, 1000, scheduler).unwrap();
    let inner = wish(&mut manager, 1000, 11, &[("1ms/1s", 0)]);
    let answer_inner =
        ask(&mut manager, 1000, Wish { under: answer.about.map(|it| format!("grant-{}", it.id)), ..inner });
    assert_eq!(answer_inner.unwrap().state, State::Granted);
    assert_eq!(ask(&mut manager, 1001, all).unwrap().state, State::Granted);
    let waits = Wish { wait: true, ..wish(&mut manager, 1002, 12, &[("5ms/10ms", 0)]) };
    assert_eq!(ask(&mut manager, 1002, waits).unwrap().state, State::Pending);
    manager.threads().1.insert(Principal::User(1000));
    manager.take_notices();
    manager.turn(NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [4, 5], "who waited has it now");
    let notices = manager.take_notices();
    let ended =
        |id| notices.iter().find(|it| it.id == Some(id) && it.what == What::Ended).unwrap().text.clone();
    assert_eq!([1, 2].map(ended), ["nothing of user:1000 is left", "nothing of user:1000 is left"]);
    assert_eq!(ended(3), "what it was part of has ended: nothing of user:1000 is left");
}

#[test]
fn nothing_is_promised_below_schedulers_that_bound_nobody() {
    for policy in ["edf", "fixed-priority"] {
        let plan = [
            ONE,
            "[node.bare]\npolicy = \"",
            policy,
            "\"\nunder.rt = { budget = \"5ms\", period = \"10ms\" }\n",
        ]
        .concat();
        let mut manager = manager(&plan, &[]);
        let own = wish(&mut manager, 1000, 11, &[("1ms/10ms", 0)]);
        let answer = ask(&mut manager, 1000, Wish { under: Some("bare".into()), ..own }).unwrap();
        let why = answer.reason.unwrap();
        assert_eq!(answer.state, State::Refused);
        assert!(why.message.contains("bounds no task"), "{why}");
    }
}

#[test]
fn what_is_cancelled_makes_room_for_those_who_wait() {
    let mut manager = manager(ONE, &[]);
    let first = granted(&mut manager, 1000, 11, &[("8ms/10ms", 0)]);
    for (tid, value) in [(12, 1), (13, 2), (14, 3)] {
        let wish = Wish { wait: true, ..wish(&mut manager, 1001, tid, &[("4ms/10ms", value)]) };
        assert_eq!(ask(&mut manager, 1001, wish).unwrap().state, State::Pending);
    }
    assert!(manager.take_notices().is_empty());
    let asker = Asker::user(1000);
    manager.ask(&asker, Ask::Cancel(Which { id: first }), NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [3, 4], "the most valuable first");
    assert_eq!(told(&mut manager), [(4, What::Granted), (3, What::Granted)]);
}

#[test]
fn a_thread_that_ends_ends_its_request_and_its_number_is_nobody_elses() {
    let mut manager = manager(ONE, &[]);
    let id = granted(&mut manager, 1000, 11, &[("8ms/10ms", 0)]);
    let other = Wish { wait: true, ..wish(&mut manager, 1001, 12, &[("4ms/10ms", 0)]) };
    ask(&mut manager, 1001, other).unwrap();
    manager.threads().0.get_mut(&11).unwrap().began += 1;
    manager.turn(NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [2]);
    assert_eq!(told(&mut manager), [(id, What::Ended), (2, What::Granted)]);
}

#[test]
fn a_smaller_wish_is_always_allowed_and_a_larger_one_if_it_fits() {
    let mut manager = manager(ONE, &[]);
    let asker = Asker::user(1000);
    let id = granted(&mut manager, 1000, 11, &[("8ms/10ms", 0)]);
    let change = |manager: &mut InTest, text: &str| {
        let modes = vec![Mode::parse(text, 0).unwrap()];
        let answer = manager.ask(&asker, Ask::Change(Change { id, modes }), NOW).unwrap();
        checked(manager);
        answer.state
    };
    assert_eq!(change(&mut manager, "2ms/10ms"), State::Granted);
    granted(&mut manager, 1000, 12, &[("5ms/10ms", 0)]);
    assert_eq!(change(&mut manager, "6ms/10ms"), State::Refused);
    assert_eq!(manager.books().requests[&id].mode().unwrap().to_string(), "2ms in 10ms");
    assert_eq!(change(&mut manager, "8ms/20ms"), State::Granted);
}

/// One CPU: users have equal parts of what is not reserved.
const USERS: &str = r#"
[machine]
cpus = 1
[node.top]
policy = "fixed-priority"
cpu = 0
[node.rt]
policy = "reservation"
under.top = { priority = 2 }
[node.rest]
policy = "fair"
default = true
under.rt = { budget = "1ms", period = "20ms" }
under.top = { priority = 0 }
[node.users]
policy = "fair"
under.top = { priority = 1 }
[node.user]
policy = "fair"
for_each = "uid"
most = 4
under.users = { weight = 100 }
[tasks.session]
match = { uid = { min = 1000, max = 59999 } }
under.user = { weight = 100 }
"#;

#[test]
fn who_asks_for_nothing_has_no_more_than_his_users_part() {
    let mut manager = manager(USERS, &[]);
    let nothing = |manager: &mut InTest, uid: u32, tid: u32| Wish {
        under: Some("users".into()),
        ..wish(manager, uid, tid, &[("NULL", 0)])
    };
    let wish = nothing(&mut manager, 1000, 7);
    let answer = ask(&mut manager, 1000, wish).unwrap();
    assert_eq!(answer.state, State::Refused, "{}", json!(answer));
    assert!(answer.reason.unwrap().message.contains("copies"));
    let wish = nothing(&mut manager, 0, 8);
    assert_eq!(ask(&mut manager, 0, wish).unwrap().state, State::Granted, "root may");
    let id = granted(&mut manager, 1000, 7, &[("NULL", 0)]);
    assert_eq!(
        manager.books().requests[&id].held.as_ref().unwrap().under,
        "rest",
        "no copy, which is somebody's"
    );
}

#[test]
fn a_name_of_a_node_is_a_name() {
    let mut manager = manager(ONE, &[]);
    for under in ["\u{1b}[2J", "", "r t", &"x".repeat(64)] {
        let wish = wish(&mut manager, 1000, 11, &[("1ms/10ms", 0)]);
        let wrong = ask(&mut manager, 1000, Wish { under: Some(under.into()), ..wish }).unwrap_err();
        assert!(wrong.rule == "name_must_be_plain" && wrong.message.len() < 400, "{wrong}");
        assert!(!wrong.message.contains(char::is_control), "{wrong}");
    }
}

#[test]
fn what_is_too_short_is_for_the_system_alone() {
    let mut manager = manager(ONE, &[]);
    for (mode, rule) in [
        ("49us/10ms", "budget_must_be_long_enough"),
        ("499us/499us", "period_must_be_long_enough"),
        ("1us/10us", "period_must_be_long_enough"),
        ("RESCS 100us 400us", "period_must_be_long_enough"),
        ("PSBE 1/4 499us", "period_must_be_long_enough"),
    ] {
        let wish = wish(&mut manager, 1000, 11, &[(mode, 1), ("1ms/10ms", 0)]);
        let wrong = ask(&mut manager, 1000, wish).unwrap_err();
        assert_eq!(wrong.rule, rule, "{mode}");
        assert!(wrong.message.contains("bound"), "{wrong}");
    }
    let id = granted(&mut manager, 1000, 11, &[("50us/500us", 0)]);
    let modes = vec![Mode::parse("40us/500us", 0).unwrap()];
    let change = manager.ask(&Asker::user(1000), Ask::Change(Change { id, modes }), NOW);
    assert_eq!(change.unwrap_err().rule, "budget_must_be_long_enough");
    // What is computed is no shorter either.
    for (tid, goal) in [(12, "PS 1/100000"), (13, "PSBE 1/1000 2ms")] {
        let id = granted(&mut manager, 1000, tid, &[(goal, 0)]);
        let keys = manager.books().requests[&id].held.as_ref().unwrap().keys.clone();
        let time = |at: usize| tierce_plan::parse_time(&keys[at].1).unwrap();
        assert!(time(0) >= 50_000 && time(1) >= 500_000, "{goal}: {keys:?}");
    }
    granted(&mut manager, 0, 14, &[("10us/200us", 0)]);
}

#[test]
fn who_may_ask_for_what() {
    let mut manager = manager(ONE, &[]);
    let theirs = wish(&mut manager, 1001, 11, &[("1ms/10ms", 0)]);
    let own = wish(&mut manager, 1000, 12, &[("1ms/10ms", 0)]);
    let rule = |manager: &mut InTest, wish: Wish| ask(manager, 1000, wish).unwrap_err().rule;
    assert_eq!(rule(&mut manager, theirs), "thread_must_be_the_askers");
    for (wish, expected) in [
        (Wish { thread: Some(99), ..own.clone() }, "thread_must_be_there"),
        (Wish { thread: None, ..own.clone() }, "target_must_be_clear"),
        (Wish { policy: Some("fair".into()), ..own.clone() }, "target_must_be_clear"),
        (Wish { policy: Some("fare".into()), thread: None, ..own.clone() }, "policy_must_exist"),
        (Wish { owner: Some(Principal::System), ..own.clone() }, "asker_must_act_for_the_owner"),
        (Wish { owner: Some(Principal::User(1001)), ..own.clone() }, "asker_must_act_for_the_owner"),
        (Wish { modes: Vec::new(), ..own.clone() }, "modes_must_be_given"),
        (Wish { modes: vec![own.modes[0].clone(); 9], ..own.clone() }, "modes_must_be_given"),
        (Wish { label: Some("x".repeat(65)), ..own.clone() }, "label_must_be_a_word"),
        (Wish { label: Some("a\nb".into()), ..own.clone() }, "label_must_be_a_word"),
        (
            Wish {
                thread: None,
                matches: vec![serde_json::from_value(json!({ "uid": 1001 })).unwrap()],
                ..own.clone()
            },
            "thread_must_be_the_askers",
        ),
        (Wish { thread: None, matches: vec![serde_json::Map::new()], ..own.clone() }, "match_must_be_given"),
        (
            Wish {
                thread: None,
                matches: vec![
                    serde_json::from_value(json!({ "exe": "/opt/a", "checksum": "sha256:00" })).unwrap()
                ],
                ..own.clone()
            },
            "checksum_is_for_the_system",
        ),
    ] {
        assert_eq!(rule(&mut manager, wish), expected);
    }
    let id = ask(&mut manager, 1000, own.clone()).unwrap().about.unwrap().id;
    assert_eq!(rule(&mut manager, own), "thread_must_have_no_request");
    // Others neither see it nor end it; root does.
    let other = Asker::user(1001);
    let seen = |manager: &mut InTest, asker: &Asker| {
        manager.ask(asker, Ask::List(List {}), NOW).unwrap().requests.len()
    };
    assert_eq!((seen(&mut manager, &other), seen(&mut manager, &Asker::user(1000))), (0, 1));
    let gone = manager.ask(&other, Ask::Cancel(Which { id }), NOW).unwrap_err();
    assert_eq!(gone.rule, "request_must_exist");
    manager.ask(&Asker::SYSTEM, Ask::Cancel(Which { id }), NOW).unwrap();
    let news = manager.ask(&Asker::user(1000), Ask::News(News { after: 0 }), NOW).unwrap().news;
    assert_eq!((news.len(), news[0].what), (1, What::Ended));
    assert!(manager.ask(&other, Ask::News(News { after: 0 }), NOW).unwrap().news.is_empty());
}

#[test]
fn threads_that_match_share_and_are_the_askers() {
    let mut manager = manager(ONE, &[]);
    let matches = vec![serde_json::from_value(json!({ "comm": "make*" })).unwrap()];
    let modes = vec![Mode::parse("2ms/10ms", 0).unwrap()];
    let wish = Wish { matches, modes, ..Wish::default() };
    let answer = ask(&mut manager, 1000, wish).unwrap();
    assert_eq!(answer.state, State::Granted, "{}", json!(answer));
    let plan = tierce_manager::InForce::plan(manager.in_force()).unwrap();
    let matcher = &plan.entries[0].any[0];
    assert_eq!((matcher.comm.as_ref().unwrap().as_str(), matcher.uid.clone()), ("make*", Some(1000..=1000)));
}

#[test]
fn one_principal_has_so_many_requests_and_no_more() {
    let mut manager = manager(ONE, &[]);
    for tid in 0..32 {
        let wish = Wish { wait: true, ..wish(&mut manager, 1000, 100 + tid, &[("9ms/10ms", 0)]) };
        ask(&mut manager, 1000, wish).unwrap();
    }
    let more = wish(&mut manager, 1000, 200, &[("50us/10ms", 0)]);
    assert_eq!(ask(&mut manager, 1000, more).unwrap_err().rule, "too_many_requests_of_one");
    granted(&mut manager, 1001, 201, &[("50us/10ms", 0)]);
}

#[test]
fn a_person_has_so_many_requests_under_whatever_names() {
    let mut manager = manager(ONE, &[]);
    for n in 0..30 {
        let wish = wish(&mut manager, 100_000 + n, 100 + n, &[("50us/10ms", 0)]);
        ask(&mut manager, 100_000 + n, wish).unwrap();
    }
    // In the name of groups, which are others: as many as are left, whoever of that person asks.
    let of_group = |manager: &mut InTest, uid: u32, gid: u32| {
        let owner = Some(Principal::Group(gid));
        let asker = Asker { groups: vec![gid], ..Asker::user(uid) };
        let wish = Wish { owner, ..wish(manager, uid, 200 + gid, &[("50us/10ms", 0)]) };
        let answer = manager.ask(&asker, Ask::Request(Box::new(wish)), NOW);
        checked(manager);
        answer.map(|answer| answer.about.unwrap().id)
    };
    let first = of_group(&mut manager, 1000, 1).unwrap();
    of_group(&mut manager, 100_001, 2).unwrap();
    for (uid, gid) in [(1000, 3), (100_002, 4)] {
        let wrong = of_group(&mut manager, uid, gid).unwrap_err();
        assert_eq!(wrong.rule, "too_many_requests_of_one");
        assert!(wrong.message.contains("counts for user 1000: 32 requests, bound 32"), "{wrong}");
    }
    of_group(&mut manager, 1001, 5).unwrap();
    // The books remember for whom it counts.
    let books = Books::read(&manager.books().written(), "test").unwrap();
    assert_eq!((books.requests[&first].by, &books), (Some(1000), manager.books()));
    let old = manager.books().written().replace("\"by\":1000,", "");
    assert_eq!(Books::read(&old, "test").unwrap().requests[&first].by, None, "older ones do not say");
    // All without a name are one.
    for n in 0..32 {
        let wish = wish(&mut manager, 200_000 + n, 400 + n, &[("50us/10ms", 0)]);
        ask(&mut manager, 200_000 + n, wish).unwrap();
    }
    let more = wish(&mut manager, 300_000, 500, &[("50us/10ms", 0)]);
    let wrong = ask(&mut manager, 300_000, more).unwrap_err();
    assert!(wrong.message.contains("all users without a name"), "{wrong}");
}

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let mut manager = manager(ONE, &[]);
    let before = manager.books().written();
    let wish = Wish { dry_run: true, ..wish(&mut manager, 1000, 11, &[("2ms/10ms", 0)]) };
    let answer = ask(&mut manager, 1000, wish).unwrap();
    assert_eq!((answer.state, answer.dry_run), (State::Granted, true));
    assert_eq!(answer.about.unwrap().granted.unwrap().under, "rt");
    assert_eq!(manager.books().written(), before);
}
