//! The rules that come with Tierce: what each of them decides, in a plan.

mod common;
use common::*;
use serde_json::{json, Map, Value};
use tierce_manager::{Ask, Asker, Change, InForce, Limits, Mode, Signal, State, What, Wish, NAMELESS};
use tierce_plan::Child;

fn later(manager: &mut InTest, ms: u64) {
    manager.turn(NOW + ms * MS).unwrap();
    checked(manager);
}

#[test]
fn the_most_important_run_and_nobody_is_revoked_in_vain() {
    let mut manager = manager(ONE, &[rule("most-important-first", json!({ "grace_ms": 0 }))]);
    granted(&mut manager, 1000, 11, &[("3ms/10ms", 5)]);
    granted(&mut manager, 1000, 12, &[("2ms/10ms", 1)]);
    granted(&mut manager, 1000, 13, &[("4ms/10ms", 2)]);
    // 90 % are given, 5 % are the default node's. Even all that is less important would not be enough: nobody goes.
    let (why, nearest) = refused(&mut manager, 1000, 14, &[("9ms/10ms", 4)]);
    assert_eq!(why.rule, "most_important_first", "{why}");
    let (budget, period) = nearest.unwrap().budget_and_period_ns().unwrap();
    assert!((490_000..=500_000).contains(&budget) && period == 10_000_000, "{budget}");
    assert!(told(&mut manager).is_empty());
    // The least important leaves too little, the next one alone enough.
    granted(&mut manager, 1000, 15, &[("4ms/10ms", 4)]);
    assert_eq!(holders(&manager), [1, 2, 4]);
    assert_eq!(told(&mut manager), [(3, What::Revoked)]);
    // Another owner's are not compared.
    let (why, _) = refused(&mut manager, 1001, 16, &[("4ms/10ms", 9)]);
    assert!(why.message.contains("less important leaves too little"), "{why}");
}

/// A rule as docs/manager.md has it, below that heading.
fn on_the_page(heading: &str) -> (String, String, Value) {
    let page = include_str!("../../../docs/manager.md");
    let (_, below) = page.split_once(&format!("\n### {heading}")).unwrap_or_else(|| panic!("no {heading}"));
    let (_, text) = below.split_once("```rhai\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    (heading.to_string(), text.to_string(), Value::Null)
}

/// Figure 8.1: who is less important goes until the new one fits. Its text: but nobody in vain.
#[test]
fn figure_8_1_runs_as_the_page_has_it() {
    let mut manager = manager(ONE, &[on_the_page("Figure 8.1")]);
    for (tid, value) in [(11, 3), (12, 1), (13, 2)] {
        granted(&mut manager, 1000, tid, &[("3ms/10ms", value)]);
    }
    // Two have to go, the least important ones.
    let pending = asked(&mut manager, 1000, 14, &[("6ms/10ms", 9)], State::Pending);
    assert_eq!(told(&mut manager), [(2, What::WillEnd), (3, What::WillEnd)]);
    later(&mut manager, 499);
    assert_eq!(holders(&manager), [1, 2, 3]);
    later(&mut manager, 500);
    assert_eq!(holders(&manager), [1, pending.about.unwrap().id]);
    manager.take_notices();
    // It would not fit even without all that is less important, and none goes.
    let (why, _) = refused(&mut manager, 1000, 15, &[("5ms/10ms", 4)]);
    assert!(why.message.contains("too little"), "{why}");
    assert!(told(&mut manager).is_empty());
}

/// Figure 8.2: each user may have 1/n of all, and n changes.
#[test]
fn figure_8_2_runs_as_the_page_has_it() {
    let mut manager = manager(ONE, &[on_the_page("Figure 8.2")]);
    granted(&mut manager, 1000, 11, &[("5ms/10ms", 2)]);
    granted(&mut manager, 1000, 12, &[("3ms/10ms", 1)]);
    // The second user has half, and so has the first one now: the less valuable goes.
    manager.user_enters(1001, NOW);
    assert_eq!(told(&mut manager), [(2, What::WillEnd)]);
    later(&mut manager, 500);
    assert_eq!(holders(&manager), [1]);
    let (why, _) = refused(&mut manager, 1001, 21, &[("6ms/10ms", 0)]);
    assert!(why.message.contains("50.00 %"), "{why}");
    let waits = Wish { wait: true, ..wish(&mut manager, 1000, 12, &[("3ms/10ms", 1)]) };
    let id = ask(&mut manager, 1000, waits).unwrap().about.unwrap().id;
    granted(&mut manager, 1001, 21, &[("1ms/10ms", 0)]);
    assert!(!holders(&manager).contains(&id), "that is more than half");
    // He leaves: there is one share again, and who waits has it.
    manager.threads().0.remove(&21);
    manager.user_leaves(1001, NOW);
    later(&mut manager, 600);
    assert_eq!(holders(&manager), [1, id]);
}

#[test]
fn the_largest_total_value_counts_and_not_the_largest_value() {
    let mut manager = manager(ONE, &[rule("largest-total-value", json!({ "grace_ms": 0 }))]);
    granted(&mut manager, 1000, 11, &[("4ms/10ms", 3)]);
    granted(&mut manager, 1000, 12, &[("4ms/10ms", 4)]);
    // 5 is more than each of them, and less than both.
    let (why, _) = refused(&mut manager, 1000, 13, &[("9ms/10ms", 5)]);
    assert_eq!(why.rule, "largest_total_value");
    granted(&mut manager, 1000, 13, &[("5ms/10ms", 5)]);
    assert_eq!(told(&mut manager), [(1, What::Revoked)], "the cheapest set that is enough");
    granted(&mut manager, 1000, 14, &[("9ms/10ms", 10)]);
    assert_eq!(told(&mut manager), [(2, What::Revoked), (3, What::Revoked)]);
}

#[test]
fn who_is_refused_by_rules_is_told_what_they_would_let_through() {
    let limit = rule("limit-per-user", json!({ "percent": 40, "requests": 2 }));
    let first = rule("most-important-first", json!({ "grace_ms": 0 }));
    let mut manager = common::manager(ONE, &[limit, first]);
    granted(&mut manager, 1000, 11, &[("2ms/10ms", 5)]);
    let (why, nearest) = refused(&mut manager, 1000, 12, &[("6ms/10ms", 5), ("5ms/20ms", 1)]);
    assert_eq!(why.rule, "limit_per_user", "{why}");
    let nearest = nearest.unwrap();
    let (budget, period) = nearest.budget_and_period_ns().unwrap();
    // Of the mode that needs least: 4 of 20 ms are the 20 % that are left of his 40.
    assert!((3_980_000..=4_000_000).contains(&budget) && period == 20_000_000, "{nearest}");
    granted(&mut manager, 1000, 12, &[(&format!("{budget}ns/20ms"), 1)]);
    // A third one he does not get, however small.
    let (_, nearest) = refused(&mut manager, 1000, 13, &[("1ms/10ms", 5)]);
    assert_eq!(nearest, None);
    // A rule that chooses where it may be: what fits there.
    let small = r#"fn new_request(it) {
        if it.request.ppm > 300000 { return #{ refuse: "too much" }; }
        #{ under: "small" }
    }"#;
    let plan = format!("{ONE}\n[node.small]\npolicy = \"reservation\"\nunder.rt = {{ budget = \"10ms\", period = \"100ms\" }}\n");
    let mut manager = common::manager(&plan, &[("small".into(), small.into(), Value::Null)]);
    let (_, nearest) = refused(&mut manager, 1000, 11, &[("400ms/1s", 9)]);
    let (budget, period) = nearest.unwrap().budget_and_period_ns().unwrap();
    granted(&mut manager, 1000, 11, &[(&format!("{budget}ns/{period}ns"), 9)]);
    // A rule that says itself what it would let through, and one that fails.
    let says =
        ("says", r#"fn new_request(it) { #{ refuse: "no", nearest: #{ budget: "7us", period: "1s" } } }"#);
    let fails = ("fails", r#"fn new_request(it) { throw "no" }"#);
    for (own, expected) in [(says, Some("7us in 1s")), (fails, None)] {
        let mut manager = common::manager(ONE, &[(own.0.to_string(), own.1.to_string(), Value::Null)]);
        let (_, nearest) = refused(&mut manager, 1000, 11, &[("1ms/10ms", 5)]);
        assert_eq!(nearest.map(|mode| mode.to_string()).as_deref(), expected);
    }
}

#[test]
fn other_rules_begin_without_a_restart() {
    let mut manager = manager(ONE, &[rule("limit-per-user", json!({ "percent": 10 }))]);
    let waits = Wish { wait: true, ..wish(&mut manager, 1000, 11, &[("2ms/10ms", 0)]) };
    assert_eq!(ask(&mut manager, 1000, waits).unwrap().state, State::Pending);
    let says = r#"fn started(it) { #{ say: "here" } }"#.to_string();
    manager.set_rules(
        rules(&[("says".into(), says, Value::Null)]),
        Limits { requests_each: 1, ..Limits::default() },
    );
    manager.take_notices();
    manager.turn(NOW).unwrap();
    let said: Vec<String> = manager.take_notices().into_iter().map(|notice| notice.text).collect();
    assert!(said.contains(&"says: here".into()), "{said:?}");
    assert_eq!(holders(&manager), [1], "who waited is tried again");
    let wish = wish(&mut manager, 1000, 12, &[("1ms/10ms", 0)]);
    assert_eq!(ask(&mut manager, 1000, wish).unwrap_err().rule, "too_many_requests_of_one");
}

#[test]
fn users_of_one_range_are_one_user_for_rules() {
    let rules = [
        rule("equal-shares", json!({ "percent": 90, "grace_ms": 0 })),
        rule("limit-per-user", json!({ "percent": 40, "requests": 2 })),
    ];
    let mut manager = manager(ONE, &rules);
    granted(&mut manager, 100_000, 11, &[("1ms/10ms", 0)]);
    granted(&mut manager, 100_001, 12, &[("1ms/10ms", 0)]);
    for (uid, tid) in [(1000, 13), (100_002, 14)] {
        let (why, _) = refused(&mut manager, uid, tid, &[("1ms/10ms", 0)]);
        assert_eq!(why.rule, "limit_per_user", "{why}");
    }
    // One of nobody's gets what fits, and makes no share smaller.
    granted(&mut manager, 200_000, 15, &[("1ms/10ms", 0)]);
    manager.user_enters(NAMELESS, NOW);
    assert_eq!(manager.books().users, [1000].into());
    granted(&mut manager, 1001, 16, &[("4ms/10ms", 0)]);
    assert_eq!(manager.books().users, [1000, 1001].into());
}

#[test]
fn users_have_equal_shares_that_become_smaller_when_one_comes() {
    let mut manager = manager(ONE, &[rule("equal-shares", json!({ "percent": 90, "grace_ms": 100 }))]);
    granted(&mut manager, 1000, 11, &[("4ms/10ms", 2), ("1ms/10ms", 1)]);
    granted(&mut manager, 1000, 12, &[("4ms/10ms", 3)]);
    let (why, _) = refused(&mut manager, 1000, 13, &[("2ms/10ms", 9)]);
    assert!(why.message.contains("90.00 % for each of 1 users"), "{why}");
    // Another user: 45 % each. The first has 80 % and is told; his less valuable request has a lesser mode, and it is not enough.
    asked(&mut manager, 1001, 21, &[("4ms/10ms", 0)], State::Refused);
    assert_eq!(
        told(&mut manager),
        [(1, What::WillEnd), (2, What::WillEnd)].into_iter().take(1).collect::<Vec<_>>()
    );
    later(&mut manager, 99);
    assert_eq!(manager.books().requests[&1].mode().unwrap().to_string(), "4ms in 10ms");
    later(&mut manager, 100);
    assert_eq!(told(&mut manager), [(1, What::Revoked)]);
    granted(&mut manager, 1001, 21, &[("4ms/10ms", 0)]);
    // He leaves, and the first may have more again.
    manager
        .ask(
            &Asker::SYSTEM,
            Ask::Signal(Signal { event: "nobody_heeds_this".into(), data: Value::Null }),
            NOW,
        )
        .unwrap();
    manager.threads().0.remove(&21);
    manager.turn(NOW + 200 * MS).unwrap();
    manager.user_leaves(1001, NOW + 200 * MS);
    granted(&mut manager, 1000, 13, &[("4ms/10ms", 0)]);
}

#[test]
fn who_is_over_his_share_gets_less_before_he_gets_nothing() {
    let mut manager = manager(ONE, &[rule("equal-shares", json!({ "percent": 90, "grace_ms": 0 }))]);
    granted(&mut manager, 1000, 11, &[("5ms/10ms", 2), ("1ms/10ms", 1)]);
    granted(&mut manager, 1000, 12, &[("3ms/10ms", 3)]);
    manager.user_enters(1001, NOW);
    checked(&mut manager);
    assert_eq!(told(&mut manager), [(1, What::Changed)]);
    let notice = manager.books().notices.back().unwrap();
    assert_eq!(notice.mode.as_ref(), manager.books().requests[&1].mode(), "it says what it has now");
    assert_eq!(manager.books().requests[&1].mode().unwrap().to_string(), "1ms in 10ms");
}

#[test]
fn a_user_has_a_limit() {
    let parameters = json!({ "percent": 30, "requests": 2, "users": { "1001": 60 } });
    let mut manager = manager(ONE, &[rule("limit-per-user", parameters)]);
    asked(&mut manager, 1000, 11, &[("4ms/10ms", 0)], State::Refused);
    let id = granted(&mut manager, 1000, 11, &[("4ms/10ms", 9), ("2ms/10ms", 1)]);
    assert_eq!(
        manager.books().requests[&id].mode().unwrap().to_string(),
        "2ms in 10ms",
        "what the limit allows"
    );
    granted(&mut manager, 1000, 12, &[("1ms/10ms", 0)]);
    let (why, _) = refused(&mut manager, 1000, 13, &[("50us/10ms", 0)]);
    assert!(why.message.contains("at most 2 guarantees"), "{why}");
    granted(&mut manager, 1001, 21, &[("5ms/10ms", 0)]);
    asked(&mut manager, 1001, 22, &[("2ms/10ms", 0)], State::Refused);
}

#[test]
fn short_periods_are_dear() {
    let parameters = json!({ "percent": 14, "cost_us": 50, "shortest_us": 200 });
    let mut manager = manager(ONE, &[rule("short-periods", parameters)]);
    let (why, _) = refused(&mut manager, 1000, 11, &[("100us/1ms", 0)]);
    assert_eq!(why.rule, "short_periods");
    asked(&mut manager, 1000, 11, &[("50us/500us", 0)], State::Refused);
    let id = granted(&mut manager, 1000, 11, &[("100us/1ms", 2), ("1ms/10ms", 1)]);
    assert_eq!(manager.books().requests[&id].mode().unwrap().to_string(), "1ms in 10ms");
}

/// What somebody changes is less only if it is that in every respect.
#[test]
fn a_change_to_what_costs_more_is_a_request() {
    let dear = rule("short-periods", json!({ "percent": 14, "cost_us": 50 }));
    let limit = rule("limit-per-user", json!({ "percent": 10 }));
    let modest = "fn new_request(it) { if it.request.value > 5 { return #{ refuse: \"too valuable\" }; } }";
    let modest = ("modest".to_string(), modest.to_string(), Value::Null);
    let mut manager = manager(ONE, &[dear, limit, modest]);
    let id = granted(&mut manager, 1000, 11, &[("1ms/10ms", 5)]);
    let change = |manager: &mut InTest, text: &str, value| {
        let modes = vec![Mode::parse(text, value).unwrap()];
        let answer = manager.ask(&Asker::user(1000), Ask::Change(Change { id, modes }), NOW).unwrap();
        checked(manager);
        answer.reason.map(|wrong| wrong.rule.to_string())
    };
    assert_eq!(change(&mut manager, "100us/1ms", 5).as_deref(), Some("short_periods"));
    assert_eq!(change(&mut manager, "1ms/10ms", 1_000_000).as_deref(), Some("modest"));
    assert_eq!(change(&mut manager, "2ms/20ms", 5), None);
    assert_eq!(change(&mut manager, "1ms/10ms", 5), None, "the rules allow it");
    assert_eq!(change(&mut manager, "1200us/10ms", 5).as_deref(), Some("limit_per_user"));
    // Less is less, even where the rules allow nothing any more.
    let none = ("none".to_string(), "fn new_request(it) { #{ refuse: \"no\" } }".to_string(), Value::Null);
    manager.set_rules(rules(&[none]), Limits::default());
    assert_eq!(change(&mut manager, "1ms/5ms", 5).as_deref(), Some("none"));
    assert_eq!(change(&mut manager, "1ms/20ms", 4), None);
    assert_eq!(change(&mut manager, "1ms/20ms", 5).as_deref(), Some("none"));
}

#[test]
fn probabilistic_reservations_share_an_overrun_partition() {
    let mut manager = manager(ONE, &[rule("probabilistic", json!({ "budget": "3ms" }))]);
    let about: Map<String, Value> = serde_json::from_value(json!({ "probabilistic": true })).unwrap();
    for tid in [11, 12] {
        let wish = Wish { about: about.clone(), ..wish(&mut manager, 1000, tid, &[("2ms/20ms", 0)]) };
        assert_eq!(ask(&mut manager, 1000, wish).unwrap().state, State::Granted);
    }
    granted(&mut manager, 1000, 13, &[("2ms/20ms", 0)]);
    let plan = manager.in_force().plan().unwrap();
    let beyond: Vec<_> = plan
        .edges
        .iter()
        .filter(|edge| edge.when_spent || plan.nodes[edge.parent].base == "overrun")
        .collect();
    assert_eq!(beyond.len(), 2, "{beyond:?}");
    for tid in [11, 12] {
        manager.threads().0.remove(&tid);
        later(&mut manager, 0);
    }
    let plan = manager.in_force().plan().unwrap();
    assert!(plan.nodes.iter().all(|node| node.base != "overrun"), "the last one takes it along");
}

#[test]
fn a_user_who_is_there_has_a_scheduler() {
    let mut manager = manager(ONE, &[rule("session-scheduler", json!({ "weight": 300 }))]);
    let nodes = |manager: &mut InTest| {
        checked(manager);
        let plan = manager.in_force().plan().unwrap();
        plan.nodes
            .iter()
            .map(|node| node.base.clone())
            .filter(|name| name.starts_with("session"))
            .collect::<Vec<_>>()
    };
    manager.turn(NOW).unwrap();
    manager.user_enters(1000, NOW);
    manager.user_enters(1000, NOW);
    manager.user_enters(1001, NOW);
    assert_eq!(nodes(&mut manager), ["session-1000", "session-1001"]);
    manager.user_leaves(1000, NOW);
    assert_eq!(nodes(&mut manager), ["session-1001"]);
    // Another plan comes into force: what rules have made is made again.
    manager.in_force().replace(plan(ONE));
    manager.turn(NOW).unwrap();
    assert_eq!(nodes(&mut manager), ["session-1001"]);
}

/// Where requests are, by the CPU of each.
fn cpus(manager: &InTest) -> Vec<Option<u32>> {
    manager.books().granted().map(|(_, held)| held.cpu).collect()
}

#[test]
fn cpus_are_filled_one_after_the_other_or_evenly() {
    let modes: [&[(&str, i64)]; 5] =
        [&[("3ms/10ms", 0)], &[("3ms/10ms", 0)], &[("3ms/10ms", 0)], &[("3ms/10ms", 0)], &[("8ms/10ms", 0)]];
    for (strategy, expected) in
        [("best", [0, 0, 0, 1, 2]), ("first", [0, 0, 0, 1, 2]), ("worst", [0, 1, 2, 3, 9])]
    {
        let mut manager = manager(FOUR, &[rule("bin-packing", json!({ "strategy": strategy }))]);
        for (tid, modes) in (11..).zip(modes) {
            let state = if expected[tid as usize - 11] == 9 { State::Refused } else { State::Granted };
            asked(&mut manager, 1000, tid, modes, state);
        }
        let expected: Vec<_> = expected.into_iter().filter(|cpu| *cpu != 9).map(Some).collect();
        assert_eq!(cpus(&manager), expected, "{strategy}");
    }
    // Without the rule admission's own placement chooses.
    let mut manager = manager(FOUR, &[]);
    (11..15).for_each(|tid| _ = granted(&mut manager, 1000, tid, &[("6ms/10ms", 0)]));
    asked(&mut manager, 1000, 15, &[("6ms/10ms", 0)], State::Refused);
}

#[test]
fn like_periods_share_a_cpu() {
    let mut manager = manager(FOUR, &[rule("like-periods", json!({}))]);
    for (tid, modes) in (11..).zip(["1ms/5ms", "10ms/100ms", "1ms/6ms", "10ms/90ms", "2ms/12ms", "1ms/5ms"]) {
        granted(&mut manager, 1000, tid, &[(modes, 0)]);
    }
    assert_eq!(cpus(&manager), [0, 1, 0, 1, 0, 0].map(Some));
}

#[test]
fn who_is_not_trusted_is_in_a_cage() {
    let mut manager = manager(ONE, &[rule("cage", json!({ "users": [1001], "programs": ["miner*"] }))]);
    manager.turn(NOW).unwrap();
    checked(&mut manager);
    let plan = manager.in_force().plan().unwrap();
    let cage = plan.nodes.iter().position(|node| node.base == "cage").unwrap();
    assert!(plan.sets.iter().any(|set| set.under[0].parent == cage));
    assert!(plan.edges.iter().any(|edge| edge.child == Child::Node(cage)));
    let (why, _) = refused(&mut manager, 1001, 11, &[("1ms/20ms", 0)]);
    assert_eq!(why.rule, "cage");
    granted(&mut manager, 1000, 12, &[("1ms/20ms", 0)]);
}

#[test]
fn who_is_to_go_is_told_and_may_answer_with_a_smaller_wish() {
    let mut manager = manager(ONE, &[rule("most-important-first", json!({ "grace_ms": 500 }))]);
    let id = granted(&mut manager, 1000, 11, &[("8ms/10ms", 1)]);
    let pending = asked(&mut manager, 1000, 12, &[("5ms/10ms", 2)], State::Pending);
    assert_eq!(pending.reason.unwrap().rule, "others_are_told");
    let notice = manager.take_notices().remove(0);
    assert_eq!((notice.id, notice.what, notice.within_ms), (Some(1), What::WillEnd, Some(500)));
    assert!(notice.text.contains("something more important needs the CPU"), "{}", notice.text);
    // Not enough: it stays as it was to be.
    let change = |manager: &mut InTest, text: &str| {
        let modes = vec![Mode::parse(text, 1).unwrap()];
        manager.ask(&Asker::user(1000), Ask::Change(Change { id, modes }), NOW).unwrap();
        checked(manager);
    };
    change(&mut manager, "6ms/10ms");
    assert_eq!(holders(&manager), [1]);
    change(&mut manager, "4ms/10ms");
    assert_eq!(told(&mut manager), [(2, What::Granted), (1, What::Stays)]);
    later(&mut manager, 500);
    assert_eq!(holders(&manager), [1, 2]);
    // One that has lesser modes itself is not asked: it keeps the best of them.
    granted(&mut manager, 1001, 13, &[("200us/10ms", 1)]);
    assert!(manager.take_notices().is_empty());
}

#[test]
fn who_has_lesser_modes_keeps_one_of_them() {
    let mut manager = manager(ONE, &[rule("most-important-first", json!({ "grace_ms": 0 }))]);
    granted(&mut manager, 1000, 11, &[("8ms/10ms", 3), ("5ms/10ms", 2), ("1ms/10ms", 1)]);
    granted(&mut manager, 1000, 12, &[("5ms/10ms", 9)]);
    assert_eq!(told(&mut manager), [(1, What::Changed)]);
    assert_eq!(manager.books().requests[&1].mode().unwrap().to_string(), "1ms in 10ms");
}

#[test]
fn when_nothing_comes_of_it_those_who_were_told_stay() {
    let mut manager = manager(ONE, &[rule("most-important-first", json!({ "grace_ms": 500 }))]);
    granted(&mut manager, 1000, 11, &[("8ms/10ms", 1)]);
    asked(&mut manager, 1000, 12, &[("5ms/10ms", 2)], State::Pending);
    manager.take_notices();
    manager.threads().0.remove(&12);
    later(&mut manager, 100);
    assert_eq!(told(&mut manager), [(2, What::Ended), (1, What::Stays)]);
    later(&mut manager, 500);
    assert_eq!(holders(&manager), [1]);
}

#[test]
fn when_all_who_were_told_leave_by_themselves_there_is_no_need_to_wait() {
    let mut manager = manager(ONE, &[rule("most-important-first", json!({ "grace_ms": 500 }))]);
    granted(&mut manager, 1000, 11, &[("8ms/10ms", 1)]);
    asked(&mut manager, 1000, 12, &[("5ms/10ms", 2)], State::Pending);
    manager.take_notices();
    manager.threads().0.remove(&11);
    later(&mut manager, 1);
    assert_eq!(told(&mut manager), [(1, What::Ended), (2, What::Granted)]);
    assert_eq!(holders(&manager), [2]);
}

#[test]
fn what_a_rule_asks_changes_nothing_of_what_is_granted() {
    let decisions =
        ["()", "#{ cpus: [2] }", "#{ modes: [1] }", "#{ most_ppm: 150000 }", "#{ under: \"rest\" }"];
    let questions = [
        "",
        "fits(it.request);",
        "fits(it.request, [], 3);",
        "fits(it.request, [1]);",
        "fits(it.request, [7]);",
    ];
    for decision in decisions {
        let given = questions.map(|asked| {
            let text = format!("fn new_request(it) {{ {asked} {decision} }}");
            let mut manager = manager(FOUR, &[("own".into(), text, json!({}))]);
            let modes = [("2ms/10ms", 2), ("1ms/10ms", 1)];
            for tid in [11, 12, 13] {
                let wish = wish(&mut manager, 1000, tid, &modes);
                let answer = ask(&mut manager, 1000, wish);
                assert!(answer.is_ok(), "{answer:?}");
                checked(&mut manager);
            }
            let held = manager.books().all().map(|request| (request.id, request.held.clone()));
            held.collect::<Vec<_>>()
        });
        assert!(given.iter().all(|other| *other == given[0]), "{decision}: {given:?}");
    }
}
