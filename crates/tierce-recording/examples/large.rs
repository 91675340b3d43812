//! Writes a large trace.dat: `large FILE [SECONDS]`. 4 CPUs, 160 periodic threads with periods of 1 to 25 ms and works that vary, and 8
//! that never sleep, as the simulator schedules them: about 5 million switches and wake-ups in 60 s.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::{Kind, Trace};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("usage: large FILE [SECONDS]");
    let seconds: u64 = arguments.next().map_or(60, |text| text.parse().expect("seconds"));
    let mut text =
        String::from("[machine]\ncpus = 4\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n");
    for at in 0..160u64 {
        let (cpu, period_us) = (at % 4, 1_000 + (at / 4) * 617);
        let (least_us, most_us) = (period_us / 110, period_us / 55);
        let _ = write!(
            text,
            "[task.thread-{at}]\nunder.top = {{ cpu = {cpu}, priority = {} }}\n\
             load = {{ period = \"{period_us}us\", work = {{ min = \"{least_us}us\", max = \"{most_us}us\" }}, phase = \"{}us\" }}\n",
            200 - at / 4,
            at * 37
        );
    }
    for at in 0..8 {
        let _ = write!(
            text,
            "[task.hog-{at}]\nunder.top = {{ cpu = {}, priority = 1 }}\nload = \"busy\"\n",
            at % 4
        );
    }
    let plan = Plan::parse(&text, "large").unwrap_or_else(|faults| panic!("{faults}"));
    let mut simulation =
        Simulation::new(&plan, Options { trace: true, seed: 1, ..Options::default() }).unwrap();
    let mut trace = Trace { header: simulation.header(), events: Vec::new() };
    for step in 1..=seconds * 10 {
        simulation.run_until(step * 100_000_000).unwrap();
        let kept = [Kind::Decision, Kind::Request, Kind::Release].map(Some);
        trace
            .events
            .extend(simulation.take_events().into_iter().filter(|event| kept.contains(&event.kind())));
    }
    let mut out = BufWriter::new(File::create(&path).expect("a file that can be written"));
    let records = tierce_recording::write_trace_dat(&trace, &mut out).unwrap();
    println!("{path}: {records} records, {seconds} s");
}
