//! Names of earlier versions and of other systems become those of now, and nothing else changes.

use std::path::{Path, PathBuf};
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan, Upgraded};

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("upgrade-{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

fn upgraded(name: &str, text: &str) -> Upgraded {
    Plan::upgrade(file(name, text), Options::default())
}

/// Line and column, old name, new name.
fn renamings(upgraded: &Upgraded) -> Vec<String> {
    let shown =
        |r: &tierce_plan::Renaming| format!("{}:{} {} {}", r.place.line, r.place.column, r.old, r.new);
    upgraded.renamings.iter().map(shown).collect()
}

/// The rules that are still broken.
fn rules(upgraded: &Upgraded) -> Vec<&'static str> {
    upgraded.faults.iter().flat_map(|faults| &faults.faults).map(|fault| fault.rule).collect()
}

const OLD: &str = "# my audio \u{266a}, runtime = 2ms
[node.top]
policy = \"fixed-priority\"\r
cpu = 0

[ node . rt ] # the server
policy   =   'CBS'
under.top = { priority = 3 }

[task.audio]
under . rt = { runtime=\"2ms\",  \"sched_period\"  = \"10ms\" } # runtime of the server
load = { period = \"10ms\", wcet = \"1ms\" }
match = { command = \"audio\" }
";

#[test]
fn only_names_change() {
    let upgraded = upgraded("names", OLD);
    assert_eq!(rules(&upgraded), Vec::<&str>::new());
    assert_eq!(
        renamings(&upgraded),
        [
            "7:14 'CBS' \"reservation\"",
            "11:16 runtime budget",
            "11:32 \"sched_period\" period",
            "12:27 wcet work",
            "13:11 command comm",
        ]
    );
    let new = OLD.replace("'CBS'", "\"reservation\"").replace("{ runtime=", "{ budget=");
    let new = new.replace("\"sched_period\"", "period").replace("wcet", "work").replace("command", "comm");
    assert_eq!(upgraded.sources.0[0].text, new);
    let again = self::upgraded("again", &new);
    assert!(again.renamings.is_empty() && again.faults.is_none());
}

#[test]
fn values_that_mean_something_else_keep_their_keys() {
    // The nice value is no weight, a policy with a parameter of its own is not only a name.
    let upgraded = upgraded(
        "values",
        "[node.top]\npolicy = \"lottery\"\ncpu = 0\n[task.a]\nunder.top = { nice = 5 }\nload = \"busy\"\n",
    );
    assert!(renamings(&upgraded).is_empty());
    assert_eq!(rules(&upgraded), ["policy_must_exist"]);
    let mended = self::upgraded(
        "nice",
        "[node.top]\npolicy = \"cfs\"\ncpu = 0\n[task.a]\nunder.top = { nice = 5 }\nload = \"busy\"\n",
    );
    assert_eq!(renamings(&mended), ["2:10 \"cfs\" \"fair\""]);
    assert_eq!(rules(&mended), ["key_must_exist"]);
}

#[test]
fn no_key_is_there_twice() {
    let plan = |load: &str| {
        format!("[node.top]\npolicy = \"edf\"\ncpu = 0\n[task.a]\nunder.top = {{}}\nload = {{ period = \"10ms\", {load} }}\n")
    };
    let given = upgraded("given", &plan("work = \"1ms\", wcet = \"2ms\""));
    assert_eq!((renamings(&given), rules(&given)), (vec![], vec!["key_must_exist"]));
    let two = upgraded("two", &plan("exec = \"1ms\", wcet = \"2ms\""));
    assert_eq!((renamings(&two), rules(&two)), (vec!["6:27 exec work".to_string()], vec!["key_must_exist"]));
}

#[test]
fn what_a_plan_includes_is_upgraded_with_it() {
    file("part", "[node.top]\npolicy = \"sfq\"\ncpu = 0\n");
    let upgraded = upgraded(
        "whole",
        "include = \"upgrade-part.toml\"\n[task.a]\nunder.top = { shares = 5 }\nload = \"busy\"\n",
    );
    assert_eq!(rules(&upgraded), Vec::<&str>::new());
    assert_eq!(renamings(&upgraded), ["3:15 shares weight", "2:10 \"sfq\" \"fair\""]);
    assert!(upgraded.renamings[1].place.file.ends_with("upgrade-part.toml"));
}

#[test]
fn what_cannot_be_read_stays() {
    let none = Plan::upgrade("no-such-plan.toml", Options::default());
    assert_eq!((renamings(&none), rules(&none)), (vec![], vec!["file_must_be_readable"]));
    let no_toml = upgraded("syntax", "[node.top\n");
    assert_eq!((renamings(&no_toml), rules(&no_toml)), (vec![], vec!["toml_syntax"]));
    assert_eq!(no_toml.sources.0[0].text, "[node.top\n");
}

/// Every example as it would be with the words of others, and back.
#[test]
fn examples_come_back_from_other_words() {
    let words = [
        ("budget", "dl_runtime"),
        ("work", "runtime"),
        ("period", "sched_period"),
        ("deadline", "dl_deadline"),
        ("priority", "sched_priority"),
        ("weight", "cpu_shares"),
        ("quantum", "timeslice"),
        ("phase", "offset"),
        ("comm", "cmd"),
        ("pcomm", "process"),
    ];
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("upgrade-examples");
    std::fs::create_dir_all(&folder).unwrap();
    let mut changed = 0;
    let files: Vec<_> = std::fs::read_dir(&examples).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in files.iter().filter(|path| path.is_file()) {
        std::fs::copy(path, folder.join(path.file_name().unwrap())).unwrap(); // plans name some
    }
    for path in files {
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let old: String = text.split_inclusive('\n').map(|line| in_other_words(line, &words)).collect();
        let here = folder.join(format!("{name}.toml"));
        std::fs::write(&here, &old).unwrap();
        let upgraded = Plan::upgrade(&here, Options { cpus: 8 });
        std::fs::write(&here, &text).unwrap();
        assert_eq!(rules(&upgraded), Vec::<&str>::new(), "{name}");
        assert_eq!(upgraded.sources.0[0].text, text, "{name}");
        changed += upgraded.renamings.len();
    }
    assert!(changed > 500, "{changed}");
}

/// A line with other keys, its comment apart.
fn in_other_words(line: &str, words: &[(&str, &str)]) -> String {
    let (code, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
    let mut new = String::new();
    let mut rest = code;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let end = rest[at..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
            .map_or(rest.len(), |n| at + n);
        let word = &rest[at..end];
        let is_key = rest[end..].trim_start().starts_with('=');
        let other = words.iter().find(|(now, _)| is_key && *now == word).map_or(word, |(_, other)| other);
        new += &rest[..at];
        new += other;
        rest = &rest[end..];
    }
    new + rest + comment
}
