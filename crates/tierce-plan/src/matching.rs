//! Which live threads belong to a task: `match = …`.

use crate::faults::Fault;
use crate::glob::Glob;
use crate::model::Matcher;
use crate::tree::{Collector, Fields, Kind, Value};

/// One table, or a list of which any suffices.
pub fn read(owner: &str, value: &Value, collector: &mut Collector) -> Vec<Matcher> {
    let items = collector.one_or_more(value);
    if items.is_empty() {
        let fault =
            Fault::new("list_must_not_be_empty", value.spot, format!("`match` of {owner} is an empty list"));
        collector.add(fault);
    }
    items.iter().filter_map(|item| matcher(owner, item, collector)).collect()
}

fn matcher(owner: &str, value: &Value, collector: &mut Collector) -> Option<Matcher> {
    let what = format!("`match` of {owner}");
    let table = collector.table(&what, value)?;
    if table.entries.is_empty() {
        let fault = Fault::new("match_must_say_what", value.spot, format!("{what} would fit every thread"));
        collector.add(fault.hint("unmatched threads go to the node with `default = true`"));
    }
    let mut fields = Fields::new(what, table);
    let matcher = Matcher {
        comm: glob("comm", 15, &mut fields, collector),
        pcomm: glob("pcomm", 15, &mut fields, collector),
        exe: glob("exe", usize::MAX, &mut fields, collector),
        cgroup: glob("cgroup", usize::MAX, &mut fields, collector),
        unit: glob("unit", usize::MAX, &mut fields, collector),
        uid: id("uid", &mut fields, collector),
        gid: id("gid", &mut fields, collector),
        pid: id("pid", &mut fields, collector),
        tid: id("tid", &mut fields, collector),
        ppid: id("ppid", &mut fields, collector),
        nice: nice(&mut fields, collector),
        is_kthread: fields.bool("is_kthread", collector),
        is_group_leader: fields.bool("is_group_leader", collector),
    };
    fields.finish(collector);
    Some(matcher)
}

/// A pattern; one without wildcards that is longer than the kernel keeps can never fit.
fn glob(name: &str, longest: usize, fields: &mut Fields, collector: &mut Collector) -> Option<Glob> {
    let value = fields.take(name)?;
    let text = collector.text(&fields.what(name), value)?;
    if text.len() > longest && !text.contains(['*', '[', '\\']) {
        let fault = Fault::new("comm_is_at_most_15_bytes", value.spot, "the kernel cuts thread names off");
        collector
            .add(fault.value(text.len()).bound(longest).hint(format!("write `{}*`", cut(text, longest))));
    }
    match Glob::new(text) {
        Ok(glob) => Some(glob),
        Err(error) => {
            collector.add(Fault::new("pattern_must_be_a_glob", value.spot, error).value(text));
            None
        }
    }
}

fn cut(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

fn id(name: &str, fields: &mut Fields, collector: &mut Collector) -> Option<u32> {
    fields.whole(name, 0, i64::from(u32::MAX), collector).map(|id| id as u32)
}

/// `nice = 5` or `nice = { min = -20, max = -1 }`.
fn nice(fields: &mut Fields, collector: &mut Collector) -> Option<std::ops::RangeInclusive<i32>> {
    let value = fields.take("nice")?;
    let Kind::Table(table) = &value.kind else {
        let nice = collector.whole("`nice`", value, -20, 19)? as i32;
        return Some(nice..=nice);
    };
    let mut fields = Fields::new("`nice`", table);
    let min = fields.whole("min", -20, 19, collector).unwrap_or(-20) as i32;
    let max = fields.whole("max", -20, 19, collector).unwrap_or(19) as i32;
    fields.finish(collector);
    if min > max {
        let fault = Fault::new("min_must_not_exceed_max", value.spot, "`nice` is an empty range");
        collector.add(fault.value(min).bound(max));
        return None;
    }
    Some(min..=max)
}
