//! What belongs to whom: schedulers that their owners divide, and books that outlive the manager and the plan.

mod common;
use common::*;
use serde_json::json;
use tierce_manager::{
    words::words, Answer, Ask, Asker, Books, Divide, InForce, InMemory, Limits, Manager, Mode, Principal,
    Shown, State, ThreadInfo, What, Which, Wish, Wrong,
};
use tierce_plan::{Below, Edit, Keys};

const OWNER: u32 = 1000;

/// A scheduler of a user, with 20 % of the CPU.
fn scheduler(manager: &mut InTest, policy: &str) -> u64 {
    let modes = vec![Mode::parse("20ms/100ms", 0).unwrap()];
    let wish = Wish { policy: Some(policy.into()), modes, ..Wish::default() };
    let answer = ask(manager, OWNER, wish).unwrap();
    assert_eq!(answer.state, State::Granted, "{}", json!(answer));
    answer.about.unwrap().id
}

fn keys(list: &[(&str, &str)]) -> Keys {
    list.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn create(name: &str, under: &str, list: &[(&str, &str)]) -> Edit {
    let (name, under) = (name.to_string(), under.to_string());
    Edit::Create { name, policy: Some("fair".into()), under, keys: keys(list), who: Vec::new(), cpus: None }
}

fn divided(manager: &mut InTest, uid: u32, id: u64, edits: Vec<Edit>) -> Result<Answer, Wrong> {
    let divide = Ask::Divide(Divide { id, edits, dry_run: false });
    let answer = manager.ask(&Asker::user(uid), divide, NOW);
    checked(manager);
    answer
}

fn nodes(manager: &mut InTest) -> Vec<String> {
    let plan = manager.in_force().plan().unwrap();
    plan.nodes.iter().map(|node| node.base.clone()).filter(|name| name.starts_with("grant-")).collect()
}

#[test]
fn an_owner_divides_his_scheduler_and_never_exceeds_it() {
    let mut manager = manager(ONE, &[rule("limit-per-user", json!({ "percent": 25, "requests": 1 }))]);
    let id = scheduler(&mut manager, "reservation");
    let half = [("budget", "50ms"), ("period", "500ms")];
    let done =
        divided(&mut manager, OWNER, id, vec![create("a", "", &half), create("b", "a", &[("weight", "7")])]);
    let done = done.unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
    assert_eq!(nodes(&mut manager), ["grant-1", "grant-1-a", "grant-1-b"]);
    // No rule is asked, which would say that one request is enough.
    let wish = Wish { under: Some("grant-1".into()), ..wish(&mut manager, OWNER, 11, &[("25ms/500ms", 0)]) };
    assert_eq!(ask(&mut manager, OWNER, wish.clone()).unwrap().state, State::Granted);
    // 15 % of 20 % are given.
    let more = [("budget", "30ms"), ("period", "500ms")];
    let refused = divided(&mut manager, OWNER, id, vec![create("c", "", &more)]).unwrap();
    assert_eq!(refused.state, State::Refused);
    assert!(refused.reason.unwrap().rule.starts_with("budgets_"), "{:?}", nodes(&mut manager));
    // It ends, and all below it.
    manager.ask(&Asker::SYSTEM, Ask::Cancel(Which { id }), NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [0; 0]);
    assert_eq!(told(&mut manager), [(2, What::Ended), (1, What::Ended)]);
}

/// As in docs/manager.md, one after the other.
#[test]
fn what_the_page_divides_can_be_divided_so() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "reservation");
    let wish =
        Wish { under: Some("grant-1".into()), ..wish(&mut manager, OWNER, 1234, &[("10ms/500ms", 0)]) };
    assert_eq!(ask(&mut manager, OWNER, wish).unwrap().state, State::Granted);
    manager.threads().0.insert(1235, ThreadInfo { uid: Some(OWNER), began: 1 });
    let times = |budget| keys(&[("budget", budget), ("period", "500ms")]);
    let who = |key: &str, text: &str| vec![keys(&[(key, text)])];
    let part = |name: &str, policy: Option<&str>, keys, who| Edit::Create {
        name: name.into(),
        policy: policy.map(str::to_string),
        under: String::new(),
        keys,
        who,
        cpus: None,
    };
    let less =
        Edit::Set { name: "video".into(), under: None, keys: keys(&[("budget", "40ms")]), who: Vec::new() };
    for edit in [
        part("video", Some("fair"), times("50ms"), who("comm", "mpv")),
        part("player", None, times("15ms"), who("tid", "1235")),
        less,
        Edit::Destroy { name: "player".into(), below: Below::All },
        part("more", Some("fair"), times("20ms"), Vec::new()),
    ] {
        let answer = divided(&mut manager, OWNER, id, vec![edit]).unwrap();
        assert_eq!(answer.state, State::Done, "{}", json!(answer));
    }
}

#[test]
fn one_divides_so_much_and_no_more() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "fair");
    let with = |name: &str, who: Vec<Keys>| match create(name, "", &[]) {
        Edit::Create { name, under, keys, cpus, .. } => {
            Edit::Create { name, policy: None, under, keys, who, cpus }
        }
        other => other,
    };
    let comm = |name: String| keys(&[("comm", &name)]);
    let refused =
        |manager: &mut InTest, edit: Edit| divided(manager, OWNER, id, vec![edit]).unwrap_err().rule;
    let many = (0..9).map(|at| comm(format!("x{at}"))).collect();
    assert_eq!(refused(&mut manager, with("a", many)), "too_many_matches");
    assert_eq!(refused(&mut manager, with("a", vec![comm("x".repeat(257))])), "pattern_must_be_short");
    let many = (0..9).map(|at| (format!("comm{at}"), "x".into())).collect();
    assert_eq!(refused(&mut manager, with("a", vec![many])), "match_must_be_given");
    let short = [("budget", "10us"), ("period", "10ms")];
    assert_eq!(refused(&mut manager, create("a", "", &short)), "budget_must_be_long_enough");
    let checksum = keys(&[("exe", "/opt/audio"), ("checksum", "sha256:00")]);
    assert_eq!(refused(&mut manager, with("a", vec![checksum])), "checksum_is_for_the_system");
    let done = divided(&mut manager, OWNER, id, vec![with("a", vec![comm("x".into())])]).unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
    // All schedulers of a person together, one operation each for the smaller numbers here.
    let limits = Limits { divisions_each: 3, ..Limits::default() };
    manager.set_rules(rules(&[]), limits);
    let other = scheduler(&mut manager, "fair");
    let done = divided(&mut manager, OWNER, other, vec![create("b", "", &[]), create("c", "", &[])]).unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
    let wrong = divided(&mut manager, OWNER, id, vec![create("d", "", &[])]).unwrap_err();
    assert!(wrong.rule == "too_many_divisions_of_one" && wrong.message.contains("bound 3"), "{wrong}");
    let wrong = divided(&mut manager, OWNER, other, vec![create("d", "", &[])]).unwrap_err();
    assert_eq!(wrong.rule, "too_many_divisions_of_one");
}

/// Whatever it is called: nobody makes the machine switch all the time.
#[test]
fn turns_are_no_shorter_than_budgets() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "fair");
    let keys =
        ["quantum", "burst", "least_burst", "largest_burst", "length", "work", "work_hi", "warp_limit"];
    let short = keys.map(|key| (key, "49us", "budget_must_be_long_enough", "bound 50us"));
    let often = ["slot", "round"].map(|key| (key, "499us", "period_must_be_long_enough", "bound 500us"));
    for (key, time, rule, bound) in short.into_iter().chain(often) {
        for edit in [
            create("a", "", &[(key, time)]),
            Edit::Set { name: "a".into(), under: None, keys: self::keys(&[(key, time)]), who: Vec::new() },
        ] {
            let wrong = divided(&mut manager, OWNER, id, vec![edit]).unwrap_err();
            assert_eq!((&wrong.rule[..], wrong.message), (rule, format!("{key}: {time}, {bound}")));
        }
    }
    // What nothing means is for the policy to say.
    let times = [("quantum", "50us"), ("warp_limit", "0ns")];
    let done = divided(&mut manager, OWNER, id, vec![create("a", "", &times)]).unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
    let done = divided(&mut manager, 0, id, vec![create("b", "", &[("quantum", "10us")])]).unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
}

#[test]
fn nobody_reaches_beyond_his_own() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "fair");
    granted(&mut manager, 1001, 21, &[("1ms/10ms", 0)]);
    let before = manager.in_force().written().sources.0[0].text.clone();
    let who = vec![keys(&[("uid", "1001")])];
    let all = Below::All;
    for (edit, rule) in [
        (create("a", "rt", &[]), "name_must_exist"), // grant-1-rt
        (create("a b", "", &[]), "name_must_be_plain"),
        (create("", "", &[]), "name_must_be_plain"),
        (create("a", "", &[("soft", "rest")]), "key_must_be_a_parameter"),
        (create("a", "", &[("cpu", "0")]), "key_must_be_a_parameter"),
        (create("a", "", &[("rank", "9")]), "key_must_be_a_parameter"),
        (Edit::Destroy { name: "rest".into(), below: all }, "name_must_exist"),
        (Edit::Destroy { name: "".into(), below: all }, "name_must_be_plain"),
        (Edit::Default { name: "a".into(), keys: Keys::new() }, "default_node_is_the_systems"),
        (
            Edit::Set { name: "2".into(), under: None, keys: Keys::new(), who: Vec::new() },
            "name_must_be_plain",
        ),
        (
            Edit::Create {
                name: "a".into(),
                policy: None,
                under: "".into(),
                keys: Keys::new(),
                who,
                cpus: None,
            },
            "thread_must_be_the_askers",
        ),
    ] {
        let answer = divided(&mut manager, OWNER, id, vec![edit.clone()]);
        let found = answer.map(|answer| answer.reason.map(|reason| reason.rule));
        let found = found.unwrap_or_else(|wrong| Some(wrong.rule));
        let shape = ["edge_must_be_known", "parent_must_exist", "name_must_exist", "node_must_exist"];
        let is_missing = rule == "name_must_exist" && found.as_deref().is_some_and(|it| shape.contains(&it));
        assert!(found.as_deref() == Some(rule) || is_missing, "{edit:?}: {found:?}");
    }
    assert_eq!(manager.in_force().written().sources.0[0].text, before);
    let other = divided(&mut manager, 1001, id, vec![create("a", "", &[])]).unwrap_err();
    assert_eq!(other.rule, "request_must_exist");
    let other = divided(&mut manager, 1001, 2, vec![create("a", "", &[])]).unwrap_err();
    assert_eq!(other.rule, "request_must_have_a_scheduler");
    let wish = Wish { under: Some("grant-1".into()), ..wish(&mut manager, 1001, 22, &[("NULL", 0)]) };
    let answer = ask(&mut manager, 1001, wish).unwrap();
    assert!(answer.reason.unwrap().message.contains("neither to the system nor to user:1001"));
}

/// What a user sees of his requests: of each its number, and its parts with what is above each.
fn seen(manager: &mut InTest, asker: &Asker) -> Vec<(u64, Vec<(String, String)>)> {
    let answer = manager.ask(asker, Ask::List(Default::default()), NOW).unwrap();
    let parts = |it: &Shown| it.divided.iter().map(|part| (part.name.clone(), part.under.clone())).collect();
    answer.requests.iter().map(|it| (it.id, parts(it))).collect()
}

#[test]
fn an_owner_sees_the_parts_of_his_scheduler_and_nobody_else_does() {
    let mut manager = manager(FOUR, &[]);
    let id = scheduler(&mut manager, "reservation");
    assert_eq!(seen(&mut manager, &Asker::user(OWNER)), [(id, Vec::new())], "it is not divided yet");
    let half = [("budget", "50ms"), ("period", "500ms")];
    let threads = Edit::Create {
        name: "b".into(),
        policy: Some("fair".into()),
        under: "a".into(),
        keys: keys(&[("weight", "7")]),
        who: vec![keys(&[("comm", "render*")])],
        cpus: None,
    };
    let thread = Edit::Create {
        name: "one".into(),
        policy: None,
        under: "".into(),
        keys: keys(&[("budget", "10ms"), ("period", "500ms")]),
        who: vec![keys(&[("tid", "77")])],
        cpus: None,
    };
    let edits = vec![create("a", "", &half), threads, thread];
    // A thread that is named by its number has to be there, and his own.
    let of = |uid: u32| ThreadInfo { uid: Some(uid), began: 1 };
    assert_eq!(divided(&mut manager, OWNER, id, edits.clone()).unwrap_err().rule, "thread_must_be_there");
    manager.threads().0.insert(77, of(1001));
    assert_eq!(
        divided(&mut manager, OWNER, id, edits.clone()).unwrap_err().rule,
        "thread_must_be_the_askers"
    );
    manager.threads().0.insert(77, of(OWNER));
    let done = divided(&mut manager, OWNER, id, edits).unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
    let parts = [("a", ""), ("b", "a"), ("one", ""), ("b-threads", "b")]
        .map(|(name, under)| (name.to_string(), under.to_string()))
        .to_vec();
    assert_eq!(seen(&mut manager, &Asker::user(OWNER)), [(id, parts.clone())]);
    assert_eq!(seen(&mut manager, &Asker::SYSTEM), [(id, parts)]);
    // Not even that there is one; nor another scheduler's parts.
    assert_eq!(seen(&mut manager, &Asker::user(1001)), []);
    let modes = vec![Mode::parse("10ms/100ms", 0).unwrap()];
    let wish = Wish { policy: Some("fair".into()), modes, ..Wish::default() };
    let other = ask(&mut manager, 1001, wish).unwrap().about.unwrap().id;
    divided(&mut manager, 1001, other, vec![create("a", "", &[])]).unwrap();
    assert_eq!(seen(&mut manager, &Asker::user(1001)), [(other, vec![("a".into(), "".into())])]);
    // The answer has them, too, with parameters that are not the presets, and says it in words.
    let shown = done.about.unwrap();
    let about = |name: &str| shown.divided.iter().find(|part| part.name == name).unwrap();
    assert_eq!(json!(about("a").params), json!({ "budget": "50ms", "period": "500ms" }));
    assert_eq!(json!(about("b").params), json!({ "weight": "7" }));
    assert_eq!((about("a").policy.as_deref(), about("one").policy.as_deref()), (Some("fair"), None));
    assert_eq!(about("b").cpus.len(), 1, "it is on one of the four: {:?}", about("b").cpus);
    let cpu = about("b").cpus[0];
    let words = words(&Answer { about: Some(shown), ..Answer::new(State::Done) });
    let lines: Vec<&str> = words.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            format!("  a: fair, budget 50ms, period 500ms, CPU {cpu}"),
            format!("    b: fair, weight 7, CPU {cpu}"),
            format!("      b-threads: CPU {cpu}"),
            format!("  one: budget 10ms, period 500ms, CPU {cpu}"),
        ]
    );
}

#[test]
fn what_an_answer_says_of_parts_ends() {
    let part = |name: &str, under: &str| json!({ "name": name, "under": under });
    let mut about =
        json!({ "id": 1, "state": "granted", "owner": "user:1", "modes": [], "divided": [part("a", "")] });
    about["divided"] = json!([part("", ""), part("a", "b"), part("b", "a")]); // each is below itself
    let about = serde_json::from_value(about).unwrap();
    assert!(words(&Answer { about: Some(about), ..Answer::new(State::Done) }).lines().count() < 9);
}

#[test]
fn a_parent_is_below_the_scheduler_or_it_is_the_scheduler() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "fair");
    let set = |under: &str| {
        let (name, keys) = ("a".to_string(), keys(&[("weight", "7")]));
        vec![Edit::Set { name, under: Some(under.into()), keys, who: Vec::new() }]
    };
    let to_b = |from: &str| {
        let (name, under, keys) = ("a".to_string(), "b".to_string(), Keys::new());
        vec![Edit::Move { name, tasks: false, from: Some(from.into()), under, keys }]
    };
    for (edits, state) in [
        (vec![create("a", "", &[]), create("b", "", &[])], State::Done),
        (set("b"), State::Refused), // `a` is not below it
        (set("rest"), State::Refused),
        (set(""), State::Done),
        (to_b("top"), State::Refused),
        (to_b("b"), State::Refused),
        (to_b(""), State::Done),
        (set("b"), State::Done),
    ] {
        let answer = divided(&mut manager, OWNER, id, edits.clone()).unwrap();
        assert_eq!(answer.state, state, "{edits:?}: {}", json!(answer));
    }
}

#[test]
fn a_part_with_a_request_of_its_own_says_what_to_do() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "reservation");
    let half = [("budget", "50ms"), ("period", "500ms")];
    let edits = vec![create("a", "", &half), create("b", "a", &[("weight", "7")])];
    assert_eq!(divided(&mut manager, OWNER, id, edits).unwrap().state, State::Done);
    let modes = vec![Mode::parse("PS 1/100", 0).unwrap()];
    let under = Some("grant-1-b".into());
    let inner = Wish { policy: Some("fair".into()), modes, under, ..Wish::default() };
    let inner = ask(&mut manager, OWNER, inner).unwrap();
    assert_eq!(inner.state, State::Granted, "{}", json!(inner));
    for below in [Below::Nothing, Below::Threads, Below::All] {
        for name in ["a", "b"] {
            let gone = vec![Edit::Destroy { name: name.into(), below }];
            let why = divided(&mut manager, OWNER, id, gone).unwrap().reason.unwrap();
            assert_eq!(why.rule, "part_must_hold_no_request", "{why}");
            let expected = format!("request 2 is below `{name}`: `tierce request --cancel 2` ends it");
            assert!(why.message.starts_with(&expected), "{why}");
        }
    }
    manager.ask(&Asker::user(OWNER), Ask::Cancel(Which { id: 2 }), NOW).unwrap();
    let gone = vec![Edit::Destroy { name: "a".into(), below: Below::All }];
    assert_eq!(divided(&mut manager, OWNER, id, gone).unwrap().state, State::Done);
    assert_eq!(nodes(&mut manager), ["grant-1"]);
}

#[test]
fn a_group_owns_what_its_members_divide() {
    let mut manager = manager(ONE, &[]);
    let modes = vec![Mode::parse("20ms/100ms", 0).unwrap()];
    let owner = Some(Principal::Group(27));
    let wish = Wish { policy: Some("fair".into()), modes, owner, ..Wish::default() };
    let root = Asker::SYSTEM;
    manager.ask(&root, Ask::Request(Box::new(wish.clone())), NOW).unwrap();
    let divide = || Ask::Divide(Divide { id: 1, edits: vec![create("a", "", &[])], dry_run: false });
    assert_eq!(manager.ask(&Asker::user(1000), divide(), NOW).unwrap_err().rule, "request_must_exist");
    let member = Asker { groups: vec![27], ..Asker::user(1000) };
    assert_eq!(manager.ask(&member, divide(), NOW).unwrap().state, State::Done);
    checked(&mut manager);
    let stranger = manager.ask(&Asker::user(1001), Ask::Request(Box::new(wish)), NOW).unwrap_err();
    assert_eq!(stranger.rule, "asker_must_act_for_the_owner");
}

/// The manager is killed: its books are what was written last.
fn restarted(manager: &mut InTest) -> InTest {
    let books = Books::read(&manager.books().written(), "test").unwrap();
    let plan = manager.in_force().written().as_ref().clone();
    let threads = std::mem::take(manager.threads());
    Manager::new(InMemory::new(plan), threads, books, rules(&[]), Limits::default())
}

#[test]
fn who_had_a_guarantee_has_it_after_a_restart() {
    let mut first = manager(ONE, &[]);
    granted(&mut first, OWNER, 11, &[("2ms/10ms", 0)]);
    granted(&mut first, OWNER, 12, &[("1ms/10ms", 0)]);
    let wish = Wish { wait: true, ..wish(&mut first, OWNER, 13, &[("9ms/10ms", 0)]) };
    ask(&mut first, OWNER, wish).unwrap();
    // While nobody looks, a thread ends, and a part that nobody was told of is left over.
    let mut second = restarted(&mut first);
    second.threads().0.remove(&12);
    let stray = Edit::Create {
        name: "grant-9".into(),
        policy: None,
        under: "rt".into(),
        keys: keys(&[("budget", "1ms"), ("period", "10ms")]),
        who: vec![keys(&[("tid", "99")])],
        cpus: None,
    };
    second.in_force().apply(&[stray], None).unwrap();
    second.turn(NOW).unwrap();
    checked(&mut second);
    assert_eq!(holders(&second), [1]);
    assert_eq!(told(&mut second), [(2, What::Ended)]);
    assert_eq!(second.books().requests[&3].held, None);
    assert_eq!(granted(&mut second, OWNER, 14, &[("1ms/10ms", 0)]), 4, "no number is used twice");
}

/// A loader that refuses, as long as it does.
struct Refuses(InMemory, bool);

impl InForce for Refuses {
    fn plan(&mut self) -> Result<std::rc::Rc<tierce_plan::Plan>, Wrong> {
        self.0.plan()
    }

    fn apply(&mut self, edits: &[Edit], after: Option<&std::rc::Rc<tierce_plan::Plan>>) -> Result<(), Wrong> {
        match self.1 {
            true => Err(Wrong::new("not_now", "")),
            false => self.0.apply(edits, after),
        }
    }
}

#[test]
fn what_could_not_be_compared_is_compared_at_the_next_turn() {
    let stray = format!(
        "{ONE}\n[node.grant-7]\npolicy = \"fair\"\nunder.rt = {{ budget = \"1ms\", period = \"20ms\" }}\n"
    );
    let (rules, limits) = (rules(&[]), Limits::default());
    let in_force = Refuses(InMemory::new(plan(&stray)), true);
    let mut manager = Manager::new(in_force, Pretended::default(), Books::new("test"), rules, limits);
    for _ in 0..2 {
        assert_eq!(manager.turn(NOW).unwrap_err().rule, "not_now");
    }
    manager.in_force().1 = false;
    manager.turn(NOW).unwrap();
    assert_eq!(manager.check().unwrap(), Vec::<String>::new());
}

#[test]
fn who_had_a_guarantee_has_it_in_another_plan_or_is_told() {
    let mut manager = manager(ONE, &[]);
    let id = scheduler(&mut manager, "reservation");
    let half = [("budget", "50ms"), ("period", "500ms")];
    let done = divided(&mut manager, OWNER, id, vec![create("a", "", &half)]).unwrap();
    assert_eq!(done.state, State::Done, "{}", json!(done));
    let inner = Wish { under: Some("grant-1".into()), ..wish(&mut manager, OWNER, 11, &[("25ms/500ms", 0)]) };
    ask(&mut manager, OWNER, inner).unwrap();
    granted(&mut manager, 1001, 21, &[("2ms/10ms", 5)]);
    granted(&mut manager, 1001, 22, &[("3ms/10ms", 9)]);
    let waits = Wish { wait: true, ..wish(&mut manager, 1001, 23, &[("1ms/10ms", 3)]) };
    let answer = ask(&mut manager, 1001, waits).unwrap();
    assert_eq!(answer.state, State::Granted, "{}", json!(answer));
    // The same plan again: everything comes back.
    manager.in_force().replace(plan(ONE));
    manager.turn(NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [1, 2, 3, 4, 5]);
    assert!(told(&mut manager).is_empty());
    assert_eq!(nodes(&mut manager), ["grant-1", "grant-1-a"]);
    // One with less room: the most valuable stay.
    let full = format!(
        "{ONE}\n[task.large]\nunder.rt = {{ budget = \"6ms\", period = \"10ms\" }}\nmatch = {{ comm = \"large\" }}\n"
    );
    manager.in_force().replace(plan(&full));
    manager.turn(NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [4]);
    let mut told = told(&mut manager);
    told.sort();
    assert_eq!(told, [(1, What::Revoked), (2, What::Revoked), (3, What::Revoked), (5, What::Revoked)]);
    assert_eq!(manager.books().requests.keys().copied().collect::<Vec<_>>(), [4, 5], "5 waits");
    // Another one that has no such node.
    manager.in_force().replace(plan("[node.top]\npolicy = \"fair\"\ncpu = 0\n"));
    manager.turn(NOW).unwrap();
    assert_eq!(holders(&manager), [0; 0]);
    manager.in_force().replace(plan(ONE));
    manager.turn(NOW).unwrap();
    manager.ask(&Asker::user(1001), Ask::List(Default::default()), NOW).unwrap();
    checked(&mut manager);
}

#[test]
fn a_part_that_others_have_changed_is_as_it_was_promised_again() {
    let mut manager = manager(ONE, &[]);
    let id = granted(&mut manager, OWNER, 11, &[("2ms/10ms", 0)]);
    let less =
        Edit::Set { name: "grant-1".into(), under: None, keys: keys(&[("budget", "1ms")]), who: Vec::new() };
    manager.in_force().apply(&[less], None).unwrap();
    assert!(!manager.check().unwrap().is_empty(), "the checker sees it");
    manager.turn(NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [id]);
}

#[test]
fn what_waited_longer_than_the_scheduler_that_it_is_below_ends_with_it() {
    let mut manager = manager(ONE, &[]);
    granted(&mut manager, 1001, 21, &[("7ms/10ms", 0)]);
    let waits = Wish { wait: true, ..wish(&mut manager, OWNER, 11, &[("25ms/500ms", 0), ("9ms/10ms", 1)]) };
    let waits = Wish { under: Some("grant-3".into()), ..waits };
    assert_eq!(ask(&mut manager, OWNER, waits).unwrap().state, State::Pending);
    let id = scheduler(&mut manager, "reservation");
    assert_eq!(id, 3);
    manager.ask(&Asker::user(1001), Ask::Cancel(Which { id: 1 }), NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [2, 3]);
    manager.ask(&Asker::user(OWNER), Ask::Cancel(Which { id }), NOW).unwrap();
    checked(&mut manager);
    assert_eq!(holders(&manager), [0; 0]);
}
