//! Deadlines of jobs that somebody asks for: in the plan, in the books, and who is told when they are missed.

mod common;
use common::*;
use serde_json::{json, Value};
use tierce_manager::{
    Ask, Asker, Books, Change, InForce, InMemory, Limits, Manager, Mode, State, Target, What, Wish, Wrong,
};
use tierce_plan::{Child, Plan};
use tierce_trace::{Missed, Violated, Violation};

const USER: u32 = 1000;

fn mode(text: &str, deadline: Option<&str>) -> Mode {
    let mode = Mode::parse(text, 0).unwrap();
    deadline.map_or(mode.clone(), |deadline| mode.with_deadline(deadline).unwrap())
}

/// For a thread of a user.
fn thread(manager: &mut InTest, tid: u32, modes: Vec<Mode>) -> Wish {
    Wish { modes, ..wish(manager, USER, tid, &[]) }
}

fn matching(modes: Vec<Mode>) -> Wish {
    let comm = json!({ "comm": "player" }).as_object().unwrap().clone();
    Wish { matches: vec![comm], modes, ..Wish::default() }
}

fn changed(manager: &mut InTest, id: u64, modes: Vec<Mode>) -> Result<State, Wrong> {
    let answer = manager.ask(&Asker::user(USER), Ask::Change(Change { id, modes }), NOW);
    checked(manager);
    answer.map(|answer| answer.state)
}

/// Of the jobs of a task or set of the plan in force.
fn deadline_ns(plan: &Plan, name: &str) -> Option<u64> {
    let task = plan.tasks.iter().position(|task| task.name == name).map(Child::Task);
    let set = plan.sets.iter().position(|set| set.name == name).map(Child::Set);
    plan.job_deadline_ns(task.or(set).unwrap_or_else(|| panic!("{name}")))
}

fn in_force(manager: &mut InTest, name: &str) -> Option<u64> {
    let (plan, written) = (manager.in_force().plan().unwrap(), manager.in_force().written().clone());
    let is = deadline_ns(&plan, name);
    assert_eq!(is, deadline_ns(&written, name), "the text says what the model does");
    is
}

#[test]
fn a_mode_is_read_as_it_is_written() {
    for text in [
        r#"{"budget":"2ms","period":"10ms","deadline":"8ms","value":5}"#,
        r#"{"guarantee":"PS 1/4","deadline":"1ns","value":0}"#,
    ] {
        let mode: Mode = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&mode).unwrap(), text);
    }
    let within = mode("2ms/10ms", Some("7.5ms"));
    assert_eq!(
        (within.to_string(), within.deadline_ns),
        ("2ms in 10ms, jobs within 7.5ms".into(), Some(7_500_000))
    );
    assert_eq!(within.part(500).unwrap().to_string(), "1ms in 10ms, jobs within 7.5ms");
    assert_eq!(mode("PS 1/4", Some("1s")).part(500).unwrap().deadline_ns, Some(1000 * MS));
    assert!(mode("2ms/10ms", Some("1ns")).is_no_more_than(&mode("2ms/10ms", None)), "it takes nothing");
}

#[test]
fn what_is_no_deadline_is_refused_by_name() {
    for (deadline, why) in [
        (json!("0ms"), "time_must_not_be_zero: deadline \"0ms\": no job can end at once, bound 1ns to 1152921504.606846976s"),
        (json!("2000000000s"), "time_must_fit: deadline \"2000000000s\": a time this long cannot be represented, bound 1ns to "),
        (json!("8"), "time_needs_a_unit: deadline \"8\": "),
        (json!("8h"), "unit_must_exist: deadline \"8h\": "),
        (json!("soon"), "time_must_be_a_number: deadline \"soon\": "),
        (json!("-8ms"), "time_must_be_a_number: deadline \"-8ms\": "),
        (json!("0.5ns"), "time_not_finer_than_1ns: deadline \"0.5ns\": "),
        (json!(8), "invalid type"),
    ] {
        let mode = json!({ "budget": "2ms", "period": "10ms", "deadline": deadline });
        let error = serde_json::from_str::<Mode>(&mode.to_string()).unwrap_err().to_string();
        assert!(error.contains(why), "{mode}: {error}");
    }
    let error = serde_json::from_str::<Mode>(r#"{"deadline":"8ms"}"#).unwrap_err().to_string();
    assert!(error.contains("mode_must_be_clear"), "{error}");
}

#[test]
fn a_deadline_goes_into_the_plan_changes_and_goes() {
    let mut manager = manager(ONE, &[]);
    let wish = thread(&mut manager, 11, vec![mode("2ms/10ms", Some("8ms"))]);
    let answer = ask(&mut manager, USER, wish).unwrap();
    assert_eq!(answer.about.unwrap().granted.unwrap().mode.deadline_ns, Some(8 * MS));
    assert_eq!(in_force(&mut manager, "grant-1"), Some(8 * MS));
    let text = manager.in_force().written().sources.0[0].text.clone();
    assert!(text.contains("job_deadline = \"8ms\""), "{text}");
    for (text, deadline, is) in [
        ("2ms/10ms", Some("7ms"), Some(7 * MS)), // nothing else
        ("2ms/10ms", Some("7ms"), Some(7 * MS)), // nothing at all
        ("1ms/10ms", Some("9ms"), Some(9 * MS)),
        ("3ms/10ms", None, None),
        ("3ms/10ms", None, None),
        ("PS 1/4", Some("1s"), Some(1000 * MS)),
    ] {
        assert_eq!(changed(&mut manager, 1, vec![mode(text, deadline)]), Ok(State::Granted), "{text}");
        assert_eq!(in_force(&mut manager, "grant-1"), is, "{text}");
    }
    // A change that is refused leaves what it had.
    assert_eq!(changed(&mut manager, 1, vec![mode("12ms/12ms", Some("2ms"))]), Ok(State::Refused));
    assert_eq!(in_force(&mut manager, "grant-1"), Some(1000 * MS));
}

/// Each thread that matches has jobs with that deadline.
#[test]
fn threads_that_match_have_it_each() {
    let mut manager = manager(ONE, &[]);
    ask(&mut manager, USER, matching(vec![mode("2ms/10ms", Some("8ms"))])).unwrap();
    assert_eq!(in_force(&mut manager, "grant-1-threads"), Some(8 * MS));
    for (deadline, is) in [(Some("7ms"), Some(7 * MS)), (None, None), (Some("6ms"), Some(6 * MS))] {
        assert_eq!(changed(&mut manager, 1, vec![mode("2ms/10ms", deadline)]), Ok(State::Granted));
        assert_eq!(in_force(&mut manager, "grant-1-threads"), is);
    }
}

/// Each mode has its own.
#[test]
fn who_is_reduced_has_the_deadline_of_the_other_mode() {
    let mut manager =
        manager(ONE, &[rule("most-important-first", json!({ "everybody": true, "grace_ms": 0 }))]);
    let modes = vec![
        Mode { value: 2, ..mode("8ms/10ms", Some("9ms")) },
        Mode { value: 1, ..mode("2ms/20ms", Some("19ms")) },
    ];
    let wish = thread(&mut manager, 11, modes);
    ask(&mut manager, USER, wish).unwrap();
    assert_eq!(in_force(&mut manager, "grant-1"), Some(9 * MS));
    granted(&mut manager, 1001, 12, &[("8ms/10ms", 9)]);
    assert_eq!(told(&mut manager), [(1, What::Changed)]);
    assert_eq!(in_force(&mut manager, "grant-1"), Some(19 * MS));
}

#[test]
fn what_has_no_jobs_has_no_deadline() {
    let mut manager = manager(ONE, &[]);
    let modes = vec![mode("20ms/100ms", Some("8ms"))];
    let scheduler = Wish { policy: Some("fair".into()), modes, ..Wish::default() };
    let wrong = ask(&mut manager, USER, scheduler.clone()).unwrap_err();
    assert_eq!(wrong.rule, "deadline_needs_threads", "{wrong}");
    assert!(wrong.message.contains("jobs within 8ms"), "{wrong}");
    let scheduler = Wish { modes: vec![mode("20ms/100ms", None)], ..scheduler };
    assert_eq!(ask(&mut manager, USER, scheduler).unwrap().state, State::Granted);
    let wrong = changed(&mut manager, 1, vec![mode("20ms/100ms", Some("8ms"))]).unwrap_err();
    assert_eq!(wrong.rule, "deadline_needs_threads", "{wrong}");
}

/// Below `uniform` a deadline of jobs would be one of its order, and the share would mean something else.
#[test]
fn no_deadline_below_who_orders_by_deadlines() {
    let text = ONE.replace("policy = \"reservation\"", "policy = \"uniform\"");
    let text = text.replace("budget = \"1ms\", period = \"20ms\"", "share = 0.1");
    let mut manager = manager(&text, &[]);
    let wish = thread(&mut manager, 11, vec![mode("1ms/20ms", Some("8ms"))]);
    let answer = ask(&mut manager, USER, wish.clone()).unwrap();
    let reason = answer.reason.unwrap();
    assert_eq!(
        (answer.state, &reason.rule[..]),
        (State::Refused, "job_deadline_must_only_be_watched"),
        "{reason}"
    );
    assert!(reason.message.contains("8ms") && answer.nearest.is_none(), "{reason}");
    let wish = Wish { modes: vec![mode("1ms/20ms", None)], ..wish };
    assert_eq!(ask(&mut manager, USER, wish).unwrap().state, State::Granted);
}

/// After a restart of the manager or of the plan, who had it has it again. Books from before there were deadlines are read.
#[test]
fn books_keep_it() {
    let mut first = manager(ONE, &[]);
    let wish = thread(&mut first, 11, vec![mode("2ms/10ms", Some("8ms"))]);
    ask(&mut first, USER, wish).unwrap();
    ask(&mut first, USER, matching(vec![mode("1ms/10ms", Some("9ms"))])).unwrap();
    let written = first.books().written();
    let books = Books::read(&written, "test").unwrap();
    assert_eq!(&books, first.books());
    let threads = std::mem::take(first.threads());
    let mut again = Manager::new(InMemory::new(plan(ONE)), threads, books, rules(&[]), Limits::default());
    again.turn(NOW).unwrap();
    checked(&mut again);
    assert_eq!(holders(&again), [1, 2]);
    assert_eq!(in_force(&mut again, "grant-1"), Some(8 * MS));
    assert_eq!(in_force(&mut again, "grant-2-threads"), Some(9 * MS));
    // Somebody else has taken it out of the plan: it comes back.
    let keys = vec![("job_deadline".to_string(), "none".to_string())];
    let edit = tierce_plan::Edit::Set { name: "grant-1".into(), under: None, keys, who: Vec::new() };
    again.in_force().apply(&[edit], None).unwrap();
    assert_eq!(in_force(&mut again, "grant-1"), None);
    let books = again.books().clone();
    let (plan, threads) = (again.in_force().written().as_ref().clone(), std::mem::take(again.threads()));
    let mut again = Manager::new(InMemory::new(plan), threads, books, rules(&[]), Limits::default());
    again.turn(NOW).unwrap();
    checked(&mut again);
    assert_eq!(in_force(&mut again, "grant-1"), Some(8 * MS));
    // As books were written before.
    let old = r#"{"version":1,"boot":"test","next_id":8,"next_notice":1,"users":[],"parts":{},"requests":{"7":{"id":7,
        "owner":"user:1000","label":null,"about":{},"target":{"thread":{"tid":11,"began":11}},"policy":null,
        "modes":[{"budget":"2ms","period":"10ms","value":0}],"under":null,"waits":false,
        "held":{"mode":0,"under":"rt","cpu":null,"soft":null,"keys":[["budget","2ms"],["period","10ms"]]},
        "reason":null,"ending":null,"divided":[]}},"notices":[]}"#;
    let old = Books::read(old, "test").unwrap();
    let (request, held) = old.granted().next().unwrap();
    assert_eq!((request.mode().unwrap().deadline_ns, held.deadline_ns), (None, None));
    assert!(matches!(request.target, Target::Thread { tid: 11, .. }));
    assert!(!old.written().contains("deadline"), "who does not ask is written as before");
}

fn missed(part: &str, misses: u64) -> Violation {
    let what = Violated::Deadline { misses, why: Missed::Overrun { of: part.into() } };
    Violation { part: part.into(), what }
}

/// The owner is told, and a rule hears of the request, its owner, its deadline, and how many.
#[test]
fn the_owner_and_rules_hear_of_jobs_that_are_late() {
    let text = r#"fn deadline_missed(it) {
        let mode = it.request.modes[it.request.mode];
        #{ say: `${it.request.id} ${it.request.owner} ${mode.deadline_us} ${it.data.misses} ${it.data.part}` }
    }"#;
    let mut manager = manager(ONE, &[("all".to_string(), text.to_string(), Value::Null)]);
    let wish = thread(&mut manager, 11, vec![mode("2ms/10ms", Some("8ms"))]);
    ask(&mut manager, USER, wish).unwrap();
    ask(&mut manager, USER, matching(vec![mode("1ms/10ms", Some("1s"))])).unwrap();
    manager.take_notices();
    for (part, said) in [
        ("grant-1", "all: 1 user:1000 8000 3 grant-1"),
        ("grant-2-threads", "all: 2 user:1000 1000000 3 grant-2-threads"),
    ] {
        manager.violated(&missed(part, 3));
        while manager.is_behind() {
            manager.go_on(NOW);
        }
        let notices = manager.take_notices();
        let [owner, rule] = &notices[..] else { panic!("{notices:?}") };
        assert_eq!((owner.to.to_string(), owner.what), ("user:1000".into(), What::DeadlineMissed));
        assert!(owner.text.contains("3 jobs missed the deadline"), "{}", owner.text);
        assert_eq!((rule.what, &rule.text[..]), (What::Said, said));
    }
}
