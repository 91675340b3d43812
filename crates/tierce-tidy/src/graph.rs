//! Strongly connected components of what modules use of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What one module uses of another: names, by both modules' paths.
pub type Uses = BTreeMap<(String, String), Vec<String>>;

/// Modules that import each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circle {
    /// Their paths, in the order of the alphabet.
    pub modules: Vec<String>,
    /// Who uses what of whom, among them.
    pub uses: Uses,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{} modules import each other: {}", self.modules.len(), self.modules.join(", "))?;
        self.uses
            .iter()
            .try_for_each(|((from, to), names)| writeln!(f, "    {from} uses of {to}: {}", names.join(", ")))
    }
}

/// The same between the folders and files at the top of the crate: a folder uses what anything in it uses.
pub fn at_the_top(uses: &Uses) -> Uses {
    let top = |module: &str| module.split("::").next().unwrap_or(module).to_string();
    let mut found = Uses::new();
    for ((from, to), names) in uses {
        let (from, to) = (top(from), top(to));
        if from != to {
            found.entry((from, to)).or_default().extend(names.iter().cloned());
        }
    }
    found
}

/// Components of two modules or more.
pub fn circles(uses: &Uses) -> Vec<Circle> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in uses.keys() {
        next.entry(from).or_default().insert(to);
        next.entry(to).or_default();
    }
    // Modules are few: who reaches whom is computed for each.
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|from| (*from, reached(&next, from))).collect();
    let mut found: Vec<Circle> = Vec::new();
    for (module, others) in &reach {
        if found.iter().any(|circle| circle.modules.iter().any(|other| other == module)) {
            continue;
        }
        let mutual = |other: &&&str| reach[**other].contains(module);
        let modules: Vec<String> = others.iter().filter(mutual).map(ToString::to_string).collect();
        if modules.len() > 1 {
            let inside = |(from, to): &(String, String)| modules.contains(from) && modules.contains(to);
            let uses = uses.iter().filter(|(pair, _)| inside(pair));
            let uses = uses.map(|(pair, names)| (pair.clone(), names.clone())).collect();
            found.push(Circle { modules, uses });
        }
    }
    found
}

fn reached<'a>(next: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        open.extend(next[module].iter().copied().filter(|to| seen.insert(*to)));
    }
    seen
}
