//! A report as tables.

use super::{
    Constraints, Contended, Contention, IdleWhileWaiting, LongestGap, Moves, Report, Spread, Supply,
};
use crate::promise::Unkept;
use crate::units::{percent, time};
use crate::waits::Lock;
use comfy_table::{presets, CellAlignment, Table};
use std::fmt;

impl Report {
    /// Tables for people, ending with a newline.
    pub fn tables(&self) -> String {
        let seed = self.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        let plan = if self.plan.is_empty() { "(no plan)" } else { &self.plan };
        let mut text = format!("{plan}: {} {}{seed}\n\n", time(self.elapsed_ns), self.source);
        text += &format!("{}\n\n", ruled(&self.task_table()));
        if self.tasks.iter().any(|task| task.constraints.is_some()) {
            text += &format!("{}\n\n", ruled(&self.constraint_table()));
        }
        if !self.lock_waits.is_empty() {
            text += &format!("{}\n\n", ruled(&self.lock_wait_table()));
        }
        if !self.critical_modes.is_empty() {
            text += &format!("{}\n\n", ruled(&self.critical_mode_table()));
        }
        if !self.chains.is_empty() {
            text += &format!("{}\n\n", ruled(&self.chain_table()));
        }
        text += &format!("{}\n\n", ruled(&self.node_table()));
        if let Some(table) = self.unkept_table() {
            text += &format!("{}\n\n", ruled(&table));
        }
        if self.moves.is_some_and(|moves| moves.total() > 0) {
            text += &format!("{}\n\n", ruled(&self.moves_table()));
        }
        text += &format!("{}\n", ruled(&self.cpu_table()));
        if let Some(found) = &self.idle_while_waiting {
            text += &format!("\n{found}\n");
        }
        if let Some(contention) = &self.contention {
            text +=
                &format!("\n{}\n\n{}\n", ruled(&contention.lock_table()), ruled(&contention.kick_table()));
        }
        if self.lost > 0 {
            text +=
                &format!("\n{} records were lost: every number above misses what they said.\n", self.lost);
        }
        text
    }

    fn task_table(&self) -> Table {
        let mut table = table(&[
            "task",
            "cpu",
            "share",
            "completed",
            "missed",
            "resp. min",
            "resp. avg",
            "resp. p99",
            "resp. max",
            "tardiness max",
            "switches",
            "migrations",
        ]);
        for task in &self.tasks {
            let spread =
                |value: fn(&Spread) -> u64| task.response_ns.as_ref().map_or("-".into(), |s| time(value(s)));
            let name = named(&task.name, task.id == 0 || task.gone);
            table.add_row([
                name,
                time(task.cpu_ns),
                percent(task.cpu_ns, self.elapsed_ns),
                if task.released + task.jobs == 0 { "-".into() } else { task.jobs.to_string() },
                if task.released + task.jobs == 0 { "-".into() } else { task.misses.to_string() },
                spread(|s| s.min),
                spread(|s| s.avg),
                spread(|s| s.p99),
                spread(|s| s.max),
                if task.misses == 0 { "-".into() } else { time(task.tardiness_ns.max) },
                task.switches.to_string(),
                task.migrations.to_string(),
            ]);
        }
        right_align(table)
    }

    fn chain_table(&self) -> Table {
        let mut table = table(&["chain", "of", "min", "avg", "p99", "max"]);
        for chain in &self.chains {
            let times =
                [("response", &chain.response_ns), ("reaction", &chain.reaction_ns), ("age", &chain.age_ns)];
            for (of, spread) in times {
                let cells = spread.map_or([(); 4].map(|()| "-".to_string()), |spread| {
                    [spread.min, spread.avg, spread.p99, spread.max].map(time)
                });
                let until = if chain.ended { ", until the plan changed" } else { "" };
                table.add_row([format!("{}{until}", chain.name), of.to_string()].into_iter().chain(cells));
            }
        }
        let mut table = right_align(table);
        left(&mut table, 1);
        table
    }

    fn constraint_table(&self) -> Table {
        let mut table = table(&["time constraints", "asked", "accepted", "met"]);
        for task in &self.tasks {
            if let Some(Constraints { asked, accepted, met }) = task.constraints {
                let name = named(&task.name, task.id == 0 || task.gone);
                table.add_row([name, asked.to_string(), accepted.to_string(), met.to_string()]);
            }
        }
        right_align(table)
    }

    fn lock_wait_table(&self) -> Table {
        let mut table = table(&[
            "waits for a lock",
            "of",
            "lock",
            "how often",
            "longest",
            "in it ran the holder",
            "and others",
        ]);
        for waited in &self.lock_waits {
            let others = waited.others_ran.iter().map(|(task, ns)| format!("{task} {}", time(*ns)));
            let others = others.collect::<Vec<_>>().join(", ");
            let kind =
                if waited.kind == Lock::Plan { String::new() } else { format!("{} ", waited.kind.name()) };
            table.add_row([
                format!("{}{}", waited.task, if waited.waits { " (waits now)" } else { "" }),
                waited.holder.clone().unwrap_or_else(|| "outside the plan".into()),
                format!("{kind}{}", waited.lock),
                waited.count.to_string(),
                time(waited.longest_ns),
                time(waited.holder_ran_ns),
                if others.is_empty() { "-".into() } else { others },
            ]);
        }
        let mut table = right_align(table);
        [1, 2, 6].into_iter().for_each(|column| left(&mut table, column));
        table
    }

    fn critical_mode_table(&self) -> Table {
        let mut table = table(&["critical mode of", "how often", "in all", "longest", "begun by"]);
        for modes in &self.critical_modes {
            let begun_by = modes.begun_by.iter().map(|(child, times)| format!("{child} {times}"));
            table.add_row([
                format!("{}{}", modes.node, if modes.now { " (now)" } else { "" }),
                modes.count.to_string(),
                time(modes.total_ns),
                time(modes.longest_ns),
                begun_by.collect::<Vec<_>>().join(", "),
            ]);
        }
        let mut table = right_align(table);
        left(&mut table, 4);
        table
    }

    /// Promises that were not kept, if there are any.
    fn unkept_table(&self) -> Option<Table> {
        let mut table = table(&[
            "promises not kept",
            "under",
            "windows",
            "not kept",
            "promised",
            "received",
            "least",
            "why",
        ]);
        let tasks = self.tasks.iter().flat_map(|task| task.under.iter().map(|edge| (&task.name, edge)));
        let nodes = self.nodes.iter().flat_map(|node| node.under.iter().map(|edge| (&node.name, edge)));
        for (name, edge) in nodes.chain(tasks) {
            let Some(promise) = edge.promise.filter(|promise| promise.not_kept > 0) else { continue };
            table.add_row([
                name.clone(),
                edge.parent.clone(),
                promise.windows.to_string(),
                promise.not_kept.to_string(),
                time(promise.promised_ns),
                time(promise.received_ns),
                promise.least_ns.map_or("-".into(), time),
                promise.why.map_or("-", Unkept::name).to_string(),
            ]);
        }
        let mut table = right_align(table);
        left(&mut table, 1);
        left(&mut table, 7);
        (table.row_count() > 0).then_some(table)
    }

    fn moves_table(&self) -> Table {
        let mut table = table(&["migrations of", "all", "wake-up", "pull", "balance", "affinity"]);
        let rows = self
            .tasks
            .iter()
            .filter_map(|task| Some((named(&task.name, task.id == 0 || task.gone), task.moves?)));
        let all = self.moves.map(|moves| ("all tasks".to_string(), moves));
        for (name, moves) in rows.chain(all) {
            let Moves { wake_up, pull, balance, affinity } = moves;
            let counts = [moves.total(), wake_up, pull, balance, affinity].map(|count| count.to_string());
            table.add_row([name].into_iter().chain(counts));
        }
        right_align(table)
    }

    /// One row per edge above a node, and above a task where a budget is kept.
    fn node_table(&self) -> Table {
        let mut table = table(&[
            "node",
            "policy",
            "under",
            "cpu",
            "share",
            "supply/period: min",
            "supply avg",
            "supply max",
            "periods",
            "throttled",
        ]);
        let nodes = self.nodes.iter().flat_map(|node| {
            let name = "  ".repeat(node.level as usize) + &named(&node.name, node.gone);
            node.under.iter().map(move |edge| (name.clone(), node.policy.as_str(), edge))
        });
        let tasks = self.tasks.iter().flat_map(|task| {
            let budgets =
                task.under.iter().filter(|edge| edge.budget_ns.is_some() || edge.replenishments > 0);
            budgets.map(|edge| (task.name.clone(), "task", edge))
        });
        for (name, policy, edge) in nodes.chain(tasks) {
            let supply =
                |value: fn(&Supply) -> u64| edge.supply_ns.as_ref().map_or("-".into(), |s| time(value(s)));
            table.add_row([
                name,
                policy.into(),
                edge.parent.clone(),
                time(edge.cpu_ns),
                percent(edge.cpu_ns, self.elapsed_ns),
                supply(|s| s.min),
                supply(|s| s.avg),
                supply(|s| s.max),
                edge.supply_ns.as_ref().map_or("-".into(), |s| s.periods.to_string()),
                edge.throttles.to_string(),
            ]);
        }
        let mut table = right_align(table);
        for column in [1, 2] {
            left(&mut table, column);
        }
        table
    }

    fn cpu_table(&self) -> Table {
        let mut header = vec!["cpu", "used", "idle", "interference", "switches"];
        header.extend(self.idle_while_waiting.iter().map(|_| "idle while waiting"));
        let mut table = table(&header);
        for cpu in &self.cpus {
            let mut row = vec![
                cpu.cpu.to_string(),
                percent(cpu.used_ns, self.elapsed_ns),
                percent(cpu.idle_ns, self.elapsed_ns),
                percent(cpu.stolen_ns, self.elapsed_ns),
                cpu.switches.to_string(),
            ];
            row.extend(cpu.idle_while_waiting_ns.map(time));
            table.add_row(row);
        }
        right_align(table)
    }
}

impl Contention {
    fn lock_table(&self) -> Table {
        let mut table = table(&["lock", "acquired", "from another CPU", "contended", "mean wait", "held"]);
        for lock in self.locks.iter().filter(|lock| lock.taken > 0) {
            let shared = || lock.group.map_or("shared".to_string(), |group| format!("shared{group}"));
            let name = lock.cpu.map_or_else(shared, |cpu| format!("cpu{cpu}"));
            let taken = lock.taken.to_string();
            let Some(Contended { taken_over, waited, wait_ns, held_ns }) = lock.contended else {
                table.add_row([&name, &taken, "-", "-", "-", "-"]);
                continue;
            };
            table.add_row([
                name,
                taken,
                percent(taken_over, lock.taken),
                percent(waited, lock.taken),
                wait_ns.checked_div(waited).map_or("-".to_string(), time),
                held_ns.map_or("-".to_string(), time),
            ]);
        }
        right_align(table)
    }

    fn kick_table(&self) -> Table {
        let mut table = table(&["cpu", "decisions after kicks", "without effect"]);
        for kick in &self.kicks {
            table.add_row([
                kick.cpu.to_string(),
                kick.decisions.to_string(),
                percent(kick.vain, kick.decisions),
            ]);
        }
        right_align(table)
    }
}

impl fmt::Display for IdleWhileWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(LongestGap { length_ns, at_ns, cpu, waited }) = &self.longest else {
            return f
                .write_str("work-conserving: no CPU idled while a task that may run there waited elsewhere");
        };
        let (total, longest, at) = (time(self.total_ns), time(*length_ns), time(*at_ns));
        let intervals = if self.intervals == 1 { "interval" } else { "intervals" };
        write!(f, "idle while waiting: CPUs idled for {total} in all while a task that may run there waited elsewhere, in ")?;
        write!(
            f,
            "{} {intervals}; the longest, {longest}, on cpu{cpu} at {at}, while one waited in {waited}",
            self.intervals
        )
    }
}

fn named(name: &str, gone: bool) -> String {
    format!("{name}{}", if gone { " (gone)" } else { "" })
}

/// The table with a line below its header.
fn ruled(table: &Table) -> String {
    let text = table.to_string();
    let (header, rows) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{header}\n{}\n{rows}", "─".repeat(header.chars().count()))
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

/// Numbers to the right, names (the first column) to the left.
fn right_align(mut table: Table) -> Table {
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    left(&mut table, 0);
    table
}

fn left(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_cell_alignment(CellAlignment::Left);
    }
}
