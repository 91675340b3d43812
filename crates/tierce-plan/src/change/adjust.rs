//! New numbers of one edge, without reading the whole text again.
//!
//! Most operations on a plan in force are of this kind: another budget, another weight. What comes out is what
//! [`Plan::edited`] would make of the text, to the byte and with every place in it; or nothing, and the text is read as a
//! whole. So whatever is unusual, and all that is refused, is left to that: there are no messages here.

use super::edit::{Edit, Keys};
use super::editor::own_key;
use super::toml::value;
use crate::model::for_each::text_name;
use crate::model::{Child, Edge, Plan};
use crate::policies::{self, PolicyRecord};
use crate::resolve::params::{self, Owner};
use crate::resolve::structure;
use crate::text::source::{Source, Spot};
use crate::text::tree::{self, Collector, Fields, Kind, Table};
use std::sync::Arc;

/// Keys of an edge that are no parameters.
const PLACE: [&str; 3] = ["rank", "when", "cpu"];

impl Plan {
    /// The plan with these parameters of an edge, if that is all that changes.
    pub(crate) fn adjusted(&self, edit: &Edit) -> Option<Plan> {
        let (edge, policy, keys) = self.only_numbers(edit)?;
        let spot = edge.spot;
        let words = self.rewritten(spot, keys)?;
        let mut collector = Collector::default();
        let table = table(&words)?;
        let mut fields = Fields::new("", &table);
        for key in PLACE {
            fields.key(key);
        }
        let owner = Owner { policy, params: &policy.edge_params, spot };
        let params = params::read(&self.defaults, &mut collector, &owner, &mut fields, None)?;
        let given = params::given(&policy.edge_params, &table);
        fields.finish(&mut collector);
        if !collector.faults.is_empty() {
            return None;
        }
        let mut plan = self.clone();
        let under = plan.sets.iter_mut().flat_map(|set| &mut set.under);
        for edge in plan.edges.iter_mut().chain(under).filter(|edge| edge.spot == spot) {
            (edge.params, edge.given) = (params, given);
        }
        policies::promised::fill(&mut plan);
        plan.replace(spot, &words)?;
        structure::faults(&plan, &[]).is_empty().then_some(plan)
    }

    /// The edge in the text that gets new numbers, the policy whose they are, and these; `None`: the edit is another.
    fn only_numbers<'e>(&self, edit: &'e Edit) -> Option<(&Edge, &'static PolicyRecord, &'e Keys)> {
        let Edit::Set { name, under, keys, who } = edit else { return None };
        // New numbers may be a reason to place anew.
        let placed = |edge: &Edge| edge.placed;
        if self.edges.iter().any(placed) || self.sets.iter().flat_map(|set| &set.under).any(placed) {
            return None;
        }
        let alike = |edge: &&Edge| !edge.spread && edge.priority_of_thread.is_none();
        let edge = self.written_edge(name, under.as_deref()).filter(|edge| who.is_empty() && alike(edge))?;
        let policy = policies::by_number(self.nodes[edge.parent].policy)?;
        let is_node = under.is_none() && matches!(edge.child, Child::Node(_));
        let own = self.nodes.iter().find(|node| is_node && node.name == *name);
        let own = own.and_then(|node| policies::by_number(node.policy));
        let is_of_edge = |key: &str| {
            policies::position(&policy.edge_params, key).is_some() && !(is_node && own_key(own, key))
        };
        let all = !keys.is_empty() && keys.iter().all(|(key, _)| is_of_edge(key));
        all.then_some((edge, policy, keys))
    }

    /// The text of an edge with other values.
    fn rewritten(&self, spot: Spot, keys: &Keys) -> Option<String> {
        let source = self.sources.0.get(spot.source as usize)?;
        let end = spot.start as usize + spot.len as usize;
        let in_a_list = !source.text.get(..spot.start as usize)?.trim_end().ends_with('=');
        let mut list = written(source.text.get(spot.start as usize..end)?).filter(|_| !in_a_list)?;
        for (key, text) in keys {
            let new = plain(text)?;
            match list.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = new,
                None => list.push((key.clone(), new)),
            }
        }
        let words: Vec<_> = list.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        Some(format!("{{ {} }}", words.join(", ")))
    }

    /// Other words at a place of the text; all places after it move along.
    fn replace(&mut self, spot: Spot, words: &str) -> Option<()> {
        let source = &self.sources.0[spot.source as usize];
        let end = spot.start as usize + spot.len as usize;
        let text = [&source.text[..spot.start as usize], words, &source.text[end..]].concat();
        self.sources.0[spot.source as usize] = Arc::new(Source::new(source.name.clone(), text));
        let longer = i64::try_from(words.len()).ok()? - i64::from(spot.len);
        let moved = |at: u32| u32::try_from(i64::from(at) + longer).unwrap_or(at);
        self.each_spot(&mut |at| {
            if at.source != spot.source {
            } else if at.start > spot.start {
                at.start = moved(at.start);
            } else if u64::from(at.start) + u64::from(at.len) >= end as u64 {
                at.len = moved(at.len);
            }
        });
        Some(())
    }

    /// The edge above a part that has one, or one from this parent: one in the text, which may stand for several to replicas.
    fn written_edge(&self, name: &str, under: Option<&str>) -> Option<&Edge> {
        if text_name(name) != name {
            return None; // a copy: the text has one node for all of them
        }
        let node = || self.nodes.iter().position(|node| node.name == name && node.replica.is_none());
        let task = || self.tasks.iter().position(|task| task.name == name && task.set.is_none());
        let set = || self.sets.iter().position(|set| set.name == name && set.members.is_empty());
        let child = node().map(Child::Node).or_else(|| task().map(Child::Task));
        let child = child.or_else(|| set().map(Child::Set))?;
        let all: &[Edge] = if let Child::Set(set) = child { &self.sets[set].under } else { &self.edges };
        let mut edges = all.iter().filter(|edge| {
            edge.child == child && under.is_none_or(|under| self.nodes[edge.parent].base == under)
        });
        let first = edges.next()?;
        edges.all(|edge| edge.spot == first.spot).then_some(first)
    }

    /// All places in the texts that it knows.
    fn each_spot(&mut self, with: &mut dyn FnMut(&mut Spot)) {
        let Plan { machine, nodes, tasks, sets, chains, edges, entries, for_each, each, .. } = self;
        for_each.iter_mut().for_each(|of| with(&mut of.spot));
        machine.interrupts.iter_mut().for_each(|interrupt| with(&mut interrupt.spot));
        for (spot, needs) in nodes
            .iter_mut()
            .map(|node| (&mut node.spot, &mut node.needs))
            .chain(tasks.iter_mut().map(|task| (&mut task.spot, &mut task.needs)))
        {
            with(spot);
            needs.iter_mut().for_each(|need| with(&mut need.spot));
        }
        for set in sets {
            with(&mut set.spot);
            set.needs.iter_mut().for_each(|need| with(&mut need.spot));
            set.under.iter_mut().for_each(|edge| with(&mut edge.spot));
        }
        for chain in chains {
            with(&mut chain.spot);
            chain.needs.iter_mut().for_each(|need| with(&mut need.spot));
        }
        edges.iter_mut().for_each(|edge| with(&mut edge.spot));
        entries.iter_mut().for_each(|entry| with(&mut entry.spot));
        each.iter_mut().for_each(|each| with(&mut each.spot));
    }
}

/// The table that `{ … }` is.
fn table(text: &str) -> Option<Table> {
    let mut table = tree::parse(&format!("edge = {text}"), 0).ok()?;
    match (table.entries.pop()?.1.kind, table.entries.is_empty()) {
        (Kind::Table(table), true) => Some(table),
        _ => None,
    }
}

/// Keys and values of `{ key = value, … }` as they are written.
fn written(text: &str) -> Option<Vec<(String, String)>> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?.trim_end();
    let only_blanks = inner.trim_start().is_empty() && text != "{}";
    if only_blanks || inner.ends_with(',') || inner.contains(['\n', '#']) {
        return None;
    }
    let begins = "edge = ".len();
    let of = |spot: Spot| {
        let start = (spot.start as usize).checked_sub(begins)?;
        text.get(start..start + spot.len as usize)
    };
    let pair = |(key, value): &(tree::Key, tree::Value)| {
        let single = matches!(value.kind, Kind::Text(_) | Kind::Whole(_) | Kind::Bool(_));
        let bare = of(key.spot)? == key.text;
        (single && bare).then_some((key.text.clone(), of(value.spot)?.to_string()))
    };
    table(text)?.entries.iter().map(pair).collect()
}

/// A value as the plan's text would have it, if that is plain.
fn plain(text: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+ ".contains(&byte);
    text.bytes().all(is_plain).then(|| value(text).to_string())
}

#[cfg(test)]
mod tests {
    use crate::change::draw::Draw;
    use crate::change::edit::{Below, Edit, Keys};
    use crate::model::any_cpu::{Placed, Standing, Unit};
    use crate::model::Options;
    use crate::model::{Child, Plan};
    use crate::policies::{self, ParamKind, PolicyRecord};
    use crate::text::faults::Fault;
    use crate::text::source::Source;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Each on its lowest CPU, whether it fits there or not.
    fn lowest(_: Plan, units: &[Unit], _: &Standing) -> Result<Placed, Vec<Fault>> {
        Ok(units.iter().map(|unit| (unit.name.clone(), unit.cpus[0])).collect())
    }

    /// Plans of the repository, and forms of an edge that these have not.
    fn plans() -> Vec<Plan> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let files = |folder: &str| -> Vec<PathBuf> {
            let files = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> =
                files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
            files.sort();
            files
        };
        let files = ["examples", "tests/plans", "tests/vm"].map(files).concat();
        let mut plans: Vec<Plan> =
            files.iter().filter_map(|file| Plan::read(file, Options { cpus: 2 }, lowest).ok()).collect();
        assert!(plans.len() > 30, "{}", plans.len());
        let forms = r#"
            defaults.reservation = { deadline = "9ms", period = "10ms" }
            defaults.fair = { weight = 7 }
            [node.top]
            policy = "fixed-priority"
            per_cpu = true
            [node]
            rt = { policy = "reservation", under.top = { cpu = 0, priority=2 }, needs = "PS 1/2" }  # comment
            free = { policy = "fair", default = true, under.top = {  } }
            [node.player]
            policy = "constraint"
            budget = "1ms"
            period = "20ms"
            [node.player.under]
            rt = { "budget" = "1ms", period = "20ms" }
            [task]
            a.under = { rt = {period="10ms",budget =  '1ms'}, free = { weight = 3, rank = 0 } }
            a.match = { comm = "a" }
            b.under.rt = { budget = """1ms""" }
            b.match = [{ comm = "b" }, { tid = 7 }]
            c.under.rt = { budget = "1ms", soft = "free" }
            d.under.rt.budget = "1ms"
            e.under.free = [{ weight = 0x10 }]
            f.under.free = {}
            [tasks.g]
            under.free = { weight = 5 }
            match = { comm = "g*" }
            [tasks.h]
            under.free = { weight = 5 }
            load = "busy"
            needs = ["PS 1/100", "PS 1/200"]
        "#;
        plans.push(Plan::of_text(forms, "forms.toml", Options { cpus: 2 }, lowest).unwrap());
        plans.iter().map(settled).collect()
    }

    /// As its text is once it was written: keys of a dotted table that stand apart are put together then.
    fn settled(plan: &Plan) -> Plan {
        let mut sources = plan.sources.clone();
        for source in sources.0.iter_mut().filter(|source| !source.name.ends_with(".csv")) {
            let document = source.text.parse::<toml_edit::DocumentMut>();
            let text = document.map_or(source.text.clone(), |document| document.to_string());
            *source = Arc::new(Source::new(source.name.clone(), text));
        }
        Plan::of_sources(&sources, Options { cpus: plan.machine.cpus }, &Standing::default(), lowest).unwrap()
    }

    /// Most are parameters of an edge, with values that may be.
    fn keys(policy: &PolicyRecord, draw: &mut Draw) -> Keys {
        let mut keys = Keys::new();
        for _ in 0..1 + draw.below(4) / 2 {
            let strange = ["rank", "cpu", "when", "soft", "quantum", "nonsense", "two words"];
            let (key, is_time) = match (draw.below(16), policy.edge_params.len()) {
                (0, _) | (_, 0) => (strange[draw.below(strange.len())], false),
                (_, count) => {
                    let param = &policy.edge_params[draw.below(count)];
                    (param.name, matches!(param.kind, ParamKind::Time | ParamKind::DurationOf(_)))
                }
            };
            let key = key.to_string();
            let strange = ["", "nice", "true", "0x10", "\"", "é", "1e3", "10", "spent", "own", "5ms", "0.25"];
            let text = match (draw.below(12), is_time) {
                (0, _) => strange[draw.below(strange.len())].to_string(),
                (1, true) => format!("{}.5 ms", draw.below(9)),
                (1, false) => format!("+{}", draw.below(20)),
                (_, true) => format!("{}ms", 1 + draw.below(20)),
                (_, false) => draw.below(200).to_string(),
            };
            keys.push((key, text));
        }
        keys
    }

    /// Most are new numbers of an edge; of these, most can be. The others are what else operations do to the text.
    fn edit(plan: &Plan, draw: &mut Draw) -> Edit {
        let name = |child| match child {
            Child::Node(node) => plan.nodes[node].base.clone(),
            Child::Task(task) => {
                let set = plan.tasks[task].set;
                set.map_or(plan.tasks[task].name.clone(), |set| plan.sets[set].name.clone())
            }
            Child::Set(set) => plan.sets[set].name.clone(),
        };
        let edges: Vec<_> = plan.edges.iter().chain(plan.sets.iter().flat_map(|set| &set.under)).collect();
        if edges.is_empty() {
            return Edit::Destroy { name: "nobody".into(), below: Below::Nothing };
        }
        let edge = edges[draw.below(edges.len())];
        let parent = &plan.nodes[edge.parent];
        let policy = policies::by_number(parent.policy).unwrap();
        let under = (draw.below(3) > 0).then(|| parent.base.clone());
        let keys = keys(policy, draw);
        match draw.below(12) {
            0 => Edit::Create {
                name: format!("new-{}", draw.below(3)),
                policy: None,
                under: parent.base.clone(),
                keys,
                who: vec![vec![("tid".into(), draw.below(99).to_string())]],
                cpus: None,
            },
            1 => Edit::Destroy { name: name(edge.child), below: Below::Nothing },
            2 => Edit::Move {
                name: name(edge.child),
                tasks: false,
                from: None,
                under: parent.base.clone(),
                keys,
            },
            3 => Edit::Set {
                name: name(edge.child),
                under,
                keys,
                who: vec![vec![("comm".into(), "x".into())]],
            },
            _ => Edit::Set { name: name(edge.child), under, keys, who: Vec::new() },
        }
    }

    /// Whatever this does is what the whole text gives, in every number and every place; and it does most of what it is for.
    #[test]
    fn new_numbers_are_those_of_the_whole_text() {
        let mut draw = Draw::new(12);
        let (mut short, mut whole, mut refused) = (0, 0, 0);
        for mut plan in plans() {
            for _ in 0..60 {
                let edit = edit(&plan, &mut draw);
                let (adjusted, anew) =
                    (plan.adjusted(&edit), plan.written_anew(&edit, &Standing::of(&plan), lowest));
                let shown = |plan: &Plan| format!("{plan:?}");
                match (adjusted, anew) {
                    (Some(adjusted), Ok(anew)) => {
                        assert_eq!(adjusted.sources.0, anew.sources.0, "{edit:?}");
                        assert!(shown(&adjusted) == shown(&anew), "{edit:?}\n{adjusted:?}\n{anew:?}");
                        short += 1;
                        plan = adjusted;
                    }
                    (Some(_), Err(faults)) => {
                        panic!("{edit:?} is refused: {faults}\n{}", plan.sources.0[0].text)
                    }
                    (None, Ok(anew)) => {
                        whole += 1;
                        plan = anew;
                    }
                    (None, Err(_)) => refused += 1,
                }
            }
        }
        println!("{short} by their edge, {whole} by the whole text, {refused} refused");
        assert!(short > 500 && whole > 200 && refused > 500);
    }
}
