//! Every policy has its page, and page, list and source say the same: parameters as in the policy's record, rules as in the
//! head of its file, and a test for each rule.

mod common;

use common::repository;
use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use tierce_policy::{policies, Param, ParamKind, PolicyRecord};

const SECTIONS: [&str; 10] = [
    "Use",
    "Method",
    "Parameters",
    "Rules",
    "What it promises",
    "What it gives up",
    "Limits",
    "Tests",
    "Known issues",
    "References",
];

fn page(policy: &PolicyRecord) -> String {
    let path = format!("docs/policies/{}.md", policy.name);
    read_to_string(repository(&path))
        .unwrap_or_else(|error| panic!("policy {} needs a page {path}: {error}", policy.name))
}

/// The head comment of the policy's file, without the stars.
fn head(policy: &PolicyRecord) -> String {
    let path = format!("policy/{}.c", policy.name.replace('-', "_"));
    let text = read_to_string(repository(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (_, rest) = text.split_once("\n/*\n").unwrap_or_else(|| panic!("{path} has no head"));
    let (head, _) = rest.split_once("*/").unwrap();
    head.lines().map(|line| line.trim_start().trim_start_matches('*').to_string() + "\n").collect()
}

/// Numbered rules, each as its words; a rule ends where a line begins that is not further in.
fn rules(text: &str, indent: &str) -> Vec<String> {
    let mut rules: Vec<String> = vec![];
    let mut inside = false;
    for line in text.lines() {
        let number = format!("{indent}{}. ", rules.len() + 1);
        if let Some(rule) = line.strip_prefix(&number) {
            rules.push(rule.into());
            inside = true;
        } else if inside && line.starts_with(&format!("{indent}  ")) {
            *rules.last_mut().unwrap() += line;
        } else {
            inside = false;
        }
    }
    // the page may set signs where the source has ASCII
    let words = |rule: &String| {
        let plain = rule
            .replace('≤', "<=")
            .replace('−', "-")
            .replace('·', "*")
            .replace("deadline length", "deadline_length");
        plain.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    rules.iter().map(words).collect()
}

fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let begin = page.find(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no section `{title}`"));
    let text = &page[begin + title.len() + 5..];
    &text[..text.find("\n## ").unwrap_or(text.len())]
}

fn time(ns: u64) -> String {
    match ns {
        0 => "0ns".into(),
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1_000 == 0 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

fn row(of: &str, param: &Param, siblings: &[Param]) -> String {
    let value = |value: u64| param.show(value, time);
    let preset = match (param.kind, param.preset) {
        (ParamKind::DurationOf(other), _) => format!("`{}`", siblings[other].name),
        (_, Some(preset)) => value(preset),
        (_, None) => "must be given".into(),
    };
    let unit = match param.kind {
        ParamKind::Count => "number",
        ParamKind::Ratio => "ratio",
        ParamKind::Choice => "word",
        _ => "time",
    };
    let (name, range, meaning) = (param.name, param.range(time), param.meaning);
    format!("| {of} | `{name}` | {unit} | {range} | {preset} | {meaning} |\n")
}

fn table(policy: &PolicyRecord) -> String {
    let of = |of, params: &[Param]| params.iter().map(|param| row(of, param, params)).collect::<String>();
    "| of | parameter | unit | range | preset | meaning |\n|---|---|---|---|---|---|\n".to_string()
        + &of("node", &policy.node_params)
        + &of("child", &policy.edge_params)
}

/// Every function in tests/*.rs that is a test.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in read_dir(repository("crates/tierce-policy/tests")).unwrap() {
        let path = file.unwrap().path();
        let Some(text) = path.extension().is_some_and(|e| e == "rs").then(|| read_to_string(&path).unwrap())
        else {
            continue;
        };
        let after = text.split("#[test]\nfn ").skip(1);
        names.extend(after.map(|rest| rest[..rest.find('(').unwrap()].to_string()));
    }
    names
}

#[test]
fn every_policy_has_a_page_with_all_sections() {
    for policy in policies() {
        let page = page(policy);
        assert!(page.starts_with(&format!("# {}\n", policy.name)), "{}: title", policy.name);
        let titles: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(titles, SECTIONS, "{}", policy.name);
        for target in ["simulator", "Linux, sched_ext", "Cortex-M"] {
            assert!(page.contains(&format!("\n| {target} | ")), "{}: status of {target}", policy.name);
        }
        assert!(section(&page, "Use").contains("```toml\n"), "{}: a plan", policy.name);
        let list = read_to_string(repository("docs/policies.md")).unwrap();
        assert!(
            list.contains(&format!("(policies/{}.md)", policy.name)),
            "{} in docs/policies.md",
            policy.name
        );
    }
}

#[test]
fn every_page_is_that_of_a_policy() {
    for file in read_dir(repository("docs/policies")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(policies().iter().any(|policy| policy.name == name), "{}: no such policy", path.display());
    }
}

#[test]
fn parameter_tables_are_those_of_the_list() {
    for policy in policies() {
        let page = page(policy);
        let text = section(&page, "Parameters");
        let (_, rest) = text.split_once("<!-- parameters: ").expect("the mark above the table");
        let (_, rest) = rest.split_once("-->\n").unwrap();
        let (found, _) = rest.split_once("<!-- end -->").expect("the mark below the table");
        let expected = table(policy);
        assert_eq!(found, expected, "docs/policies/{}.md should have this table:\n{expected}", policy.name);
    }
}

#[test]
fn rules_are_those_of_the_source() {
    for policy in policies() {
        let source = rules(&head(policy), "   ");
        assert!(!source.is_empty(), "{}: no rules in its head", policy.name);
        assert_eq!(rules(section(&page(policy), "Rules"), ""), source, "{}", policy.name);
    }
}

#[test]
fn every_rule_has_its_test_and_every_test_named_exists() {
    let tests = tests();
    for policy in policies() {
        let (page, prefix) = (page(policy), policy.name.replace('-', "_"));
        let text = section(&page, "Tests");
        for number in 1..=rules(&head(policy), "   ").len() {
            let wanted = format!("{prefix}_rule_{number}_");
            let of: Vec<_> = tests.iter().filter(|name| name.starts_with(&wanted)).collect();
            assert!(!of.is_empty(), "{}: no test {wanted}…", policy.name);
            assert!(text.contains(&format!("| rule {number} | `{}` |", of[0])), "{}: {}", policy.name, of[0]);
        }
        for name in text.split('`').skip(1).step_by(2) {
            assert!(tests.contains(name), "{}: there is no test {name}", policy.name);
        }
        let beyond = format!("{prefix}_rule_{}_", rules(&head(policy), "   ").len() + 1);
        assert!(!tests.iter().any(|name| name.starts_with(&beyond)), "{beyond}… tests no rule");
    }
}
