//! Random plans of which a format can say everything come back from it as they were.

#[path = "../../../tests/draw.rs"]
mod draw;
mod essence;

use draw::Draw;
use essence::essence;
use std::fmt::Write as _;
use tierce_admission::PlanExt;
use tierce_formats::{export, import, Format, Unit};
use tierce_plan::Plan;

/// A plan that is drawn.
struct Drawing<'d> {
    draw: &'d mut Draw,
    format: Format,
    /// Of each CPU.
    by_deadline: Vec<bool>,
    /// SimSo alone: one scheduler of all CPUs.
    global: bool,
    text: String,
    chains: String,
    /// Of the next task: every priority once.
    priority: usize,
    /// By CPU: tasks may be without preemption.
    whole: Vec<bool>,
}

impl<'d> Drawing<'d> {
    fn new(format: Format, draw: &'d mut Draw) -> Self {
        let cpus = 1 + draw.below(3);
        let global = format == Format::Simso && draw.below(2) == 0;
        let deadlines = |_| match format {
            Format::Simso => !global,
            Format::Pycpa => false,
            Format::Mast | Format::MastXml => draw.below(2) == 0,
        };
        let by_deadline: Vec<bool> = (0..cpus).map(deadlines).collect();
        let whole = |by_deadline: &bool| format != Format::Simso && !by_deadline && draw.below(3) == 0;
        let whole = by_deadline.iter().map(whole).collect();
        let text = format!("[machine]\ncpus = {cpus}\n");
        Self { draw, format, by_deadline, global, text, chains: String::new(), priority: 0, whole }
    }

    fn is_mast(&self) -> bool {
        matches!(self.format, Format::Mast | Format::MastXml)
    }

    fn coin(&mut self) -> bool {
        self.draw.below(2) == 0
    }

    fn plan(mut self) -> String {
        if self.format == Format::Simso {
            self.scheduler();
        } else {
            for cpu in 0..self.by_deadline.len() {
                let policy = if self.by_deadline[cpu] { "edf" } else { "fixed-priority" };
                let _ = write!(self.text, "[node.n{cpu}]\npolicy = \"{policy}\"\ncpu = {cpu}\n");
            }
        }
        if self.is_mast() {
            self.locks();
        }
        for flow in 0..1 + self.draw.below(4) {
            self.flow(flow);
        }
        self.text + &self.chains
    }

    /// SimSo's one.
    fn scheduler(&mut self) {
        let policy = if self.global { "fixed-priority" } else { "edf" };
        let place = match (self.by_deadline.len(), self.global) {
            (1, _) => "cpu = 0",
            (_, true) => "cpus = \"all\"",
            (_, false) => "per_cpu = true",
        };
        let _ = write!(self.text, "[node.sched]\npolicy = \"{policy}\"\n{place}\n");
    }

    /// Two for each CPU, of one protocol.
    fn locks(&mut self) {
        for cpu in 0..self.by_deadline.len() {
            let ceiling = if self.by_deadline[cpu] { "srp" } else { "immediate-ceiling" };
            let protocol = if self.coin() { ceiling } else { "inheritance" };
            for name in ["a", "b"] {
                let _ = write!(self.text, "[lock.{name}{cpu}]\nprotocol = \"{protocol}\"\n");
            }
        }
    }

    /// A task with releases of its own, and others that follow it.
    fn flow(&mut self, flow: usize) {
        let tasks = 1 + self.draw.below(4);
        let mut parents = vec![0];
        let mut delays = vec![None];
        self.task(flow, 0);
        for task in 1..tasks {
            self.task(flow, task);
            // A task of SimSo releases one other.
            parents.push(if self.format == Format::Simso { task - 1 } else { self.draw.below(task) });
            let delay = self.is_mast() && self.coin();
            delays.push(delay.then(|| format!("t{flow}_{task} = \"{}us\"", 1 + self.draw.below(999))));
        }
        for end in (1..tasks).filter(|end| !parents[1..].contains(end)) {
            let mut way = vec![end];
            while way[0] > 0 {
                way.insert(0, parents[way[0]]);
            }
            let names: Vec<_> = way.iter().map(|task| format!("\"t{flow}_{task}\"")).collect();
            let delays: Vec<_> = way.iter().filter_map(|task| delays[*task].clone()).collect();
            let (names, delays) = (names.join(", "), delays.join(", "));
            let _ = write!(self.chains, "[chain.c{flow}_{end}]\ntasks = [{names}]\ndelay = {{ {delays} }}\n");
            if self.format != Format::Simso && self.coin() {
                let within = 1 + self.draw.below(500);
                let _ = writeln!(self.chains, "needs = \"within {within}ms\"");
            }
        }
    }

    fn task(&mut self, flow: usize, task: usize) {
        let cpu = self.draw.below(self.by_deadline.len());
        let period = 10 + self.draw.below(90);
        let deadline = 1 + self.draw.below(2 * period);
        let simso = self.format == Format::Simso;
        let node = if simso { "sched".into() } else { format!("n{cpu}") };
        let edge = match self.by_deadline[cpu] {
            false => format!("priority = {}", self.priority),
            true if !simso => format!("deadline = \"{deadline}ms\""),
            true if self.by_deadline.len() > 1 => format!("cpu = {cpu}"),
            true => String::new(),
        };
        self.priority += 1;
        let whole = self.whole[cpu];
        let holds = self.is_mast() && !whole && task == 0 && self.coin();
        let mut load = self.work(holds);
        if task == 0 {
            load += &self.release(period, deadline);
        }
        if holds {
            load += &self.sections(cpu);
        }
        if whole && (self.format == Format::Pycpa || self.coin()) {
            load += ", preemption = \"none\"";
        }
        let _ =
            write!(self.text, "[task.t{flow}_{task}]\nunder.{node} = {{ {edge} }}\nload = {{ {load} }}\n");
    }

    fn work(&mut self, constant: bool) -> String {
        let most = 2 + self.draw.below(9);
        if constant || self.format == Format::Simso || self.coin() {
            return format!("work = \"{most}ms\"");
        }
        let least = 1 + self.draw.below(most - 1);
        format!("work = {{ min = \"{least}ms\", max = \"{most}ms\" }}")
    }

    fn release(&mut self, period: usize, deadline: usize) -> String {
        let sporadic = self.draw.below(3) == 0;
        let (jitter, soft, extra) = (self.draw.below(period), self.coin(), 1 + self.draw.below(5));
        match self.format {
            Format::Pycpa => format!(", period = \"{period}ms\", jitter = \"{jitter}ms\", soft = true"),
            Format::Simso if sporadic => {
                format!(", separation = \"{period}ms\", extra = \"{extra}ms\", phase = \"3ms\", deadline = \"{deadline}ms\"")
            }
            Format::Simso => format!(", period = \"{period}ms\", deadline = \"{deadline}ms\", phase = \"1.5ms\""),
            _ if sporadic => format!(", separation = \"{period}ms\", deadline = \"{deadline}ms\""),
            _ => format!(
                ", period = \"{period}ms\", deadline = \"{deadline}ms\", jitter = \"{jitter}ms\", soft = {soft}"
            ),
        }
    }

    /// One, in which there may be another.
    fn sections(&mut self, cpu: usize) -> String {
        let inner = format!(", sections = [{{ lock = \"b{cpu}\", at = \"250us\", length = \"750us\" }}]");
        let inner = if self.coin() { inner } else { String::new() };
        let at = self.draw.below(1000);
        format!(", sections = [{{ lock = \"a{cpu}\", at = \"{at}us\", length = \"1ms\"{inner} }}]")
    }
}

#[test]
fn random_plans_come_back() {
    let mut draw = Draw::new(42);
    let plan = |text: &str| Plan::parse(text, "plan").unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    for round in 0..1_000 {
        for format in [Format::Mast, Format::MastXml, Format::Simso, Format::Pycpa] {
            let text = Drawing::new(format, &mut draw).plan();
            let first = plan(&text);
            let file = export(&first, format, Unit::Ms).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
            assert!(file.left_out.is_empty(), "round {round}: {:?}\n{text}", file.left_out);
            let back = import("file", &file.text, format, Unit::Ms);
            let back = back.unwrap_or_else(|faults| panic!("{faults}\n{}", file.text));
            let second = plan(&back.text);
            assert_eq!(
                essence(&first),
                essence(&second),
                "round {round}:\n{text}\n{}\n{}",
                file.text,
                back.text
            );
        }
    }
}
