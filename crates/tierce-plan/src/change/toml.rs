//! Pieces of TOML, written as people write them.

use toml_edit::{Array, InlineTable, Item, Table, TableLike, Value};

/// Keys of a table of the plan and their values: `budget`, `2ms`.
pub type Keys = Vec<(String, String)>;

/// A value as plans have it: whole numbers and `true` without quotes.
pub fn value(text: &str) -> Item {
    Item::Value(match (text.parse::<i64>(), text.parse::<bool>()) {
        (Ok(number), _) => number.into(),
        (_, Ok(yes)) => yes.into(),
        _ => text.into(),
    })
}

/// New value, old surroundings.
pub fn put(table: &mut dyn TableLike, key: &str, new: Item) {
    match (table.get_mut(key), new) {
        (Some(Item::Value(old)), Item::Value(mut new)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (_, new) => _ = table.insert(key, new),
    }
}

pub fn inline(keys: &Keys) -> InlineTable {
    let mut table = InlineTable::new();
    keys.iter().for_each(|(key, text)| put(&mut table, key, value(text)));
    table
}

/// A table on one line, whatever it was.
pub fn copied(table: &dyn TableLike) -> InlineTable {
    let values = table.iter().filter_map(|(key, item)| Some((key, item.as_value()?.clone())));
    let mut table: InlineTable = values.collect();
    table.fmt();
    table
}

/// `under.PARENT = { … }`, or a list of edges.
pub fn dotted(parent: &str, edge: impl Into<Value>) -> Table {
    let mut under = Table::new();
    under.set_dotted(true);
    under.insert(parent, Item::Value(edge.into()));
    under
}

pub fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Keys of a match that are text, whatever they look like.
const TEXTS: [&str; 7] = ["comm", "pcomm", "exe", "checksum", "cgroup", "unit", "system_unit"];

/// Any of these. A cgroup without wildcards stands for all that is below it, too.
pub fn matchers(who: &[Keys]) -> Item {
    let mut list = Array::new();
    for keys in who {
        let cgroup = keys.iter().find(|(key, _)| key == "cgroup").map(|(_, path)| cgroup(path));
        for pattern in cgroup.map_or(vec![None], |patterns| patterns.into_iter().map(Some).collect()) {
            let mut table = InlineTable::new();
            for (key, text) in keys {
                let text = pattern.as_ref().filter(|_| key == "cgroup").unwrap_or(text);
                let new = if TEXTS.contains(&&key[..]) { text.as_str().into() } else { value(text) };
                put(&mut table, key, new);
            }
            list.push(table);
        }
    }
    Item::Value(match (list.len(), list.get(0)) {
        (1, Some(one)) => one.clone().decorated(" ", ""),
        _ => list.into(),
    })
}

fn cgroup(path: &str) -> Vec<String> {
    let path = path.strip_prefix("/sys/fs/cgroup").unwrap_or(path).trim_matches('/');
    match path {
        "" => vec!["**".into()],
        _ if path.contains(['*', '?', '[', '\\']) => vec![path.into()],
        _ => vec![path.into(), format!("{path}/**")],
    }
}
