//! For tests: a program with two threads of one name (tests/vm/twins.c), and its profile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tierce_calibrate::{
    mapped_files, of_machine, of_program, Calibration, Importance, Margin, Profile, Reservation, Routine,
    Thread, Verdict,
};
use tierce_scx::routines::Routines;

const MS: u64 = 1_000_000;

/// What a profile says of a thread. Tests read its name, its routine and what it is to get.
pub fn entry(name: &str, routine: Option<Routine>, reservation: Reservation) -> Thread {
    Thread {
        name: name.into(),
        routine,
        process: name.into(),
        count: 1,
        verdict: Verdict::Busy,
        arrival: None,
        wakeups: 9,
        load: 1,
        waited: 0,
        explained: 0,
        chance_percent: None,
        periods: Vec::new(),
        burst: None,
        reservation: Some(reservation),
    }
}

/// A process that ends with its test.
pub struct Twins {
    child: Child,
    pub program: PathBuf,
    /// Number and start routine of each.
    pub light: (u32, String),
    pub heavy: (u32, String),
}

impl Twins {
    /// Compiled at this path, and started.
    pub fn start(program: &Path) -> Twins {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vm/twins.c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-pthread", "-o"]).arg(program).arg(source);
        assert!(gcc.status().unwrap().success());
        let child = Command::new(program).spawn().unwrap();
        let (pid, begun) = (child.id(), Instant::now());
        let mut twins =
            Twins { child, program: program.into(), light: (0, String::new()), heavy: (0, String::new()) };
        while twins.light.0 == 0 || twins.heavy.0 == 0 {
            assert!(begun.elapsed() < Duration::from_secs(20), "they are not known");
            for tid in super::programs::numbers(format!("/proc/{pid}/task")) {
                let Some(routine) = Routines::default().of(0, pid, &[tid], |_| true).remove(0) else {
                    continue;
                };
                let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap();
                let own = (tid, routine.to_string());
                match (comm.trim(), routine.function().as_deref()) {
                    ("worker", Some("light")) => twins.light = own,
                    ("worker", Some("heavy")) => twins.heavy = own,
                    _ => {}
                }
            }
        }
        twins
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// 2 ms for the light one, 5 ms for the heavy one, as far as they are told apart.
    pub fn profile(&self) -> Profile {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid())).unwrap();
        let mapped: BTreeSet<PathBuf> = mapped_files(&maps).collect();
        let worker = |routine: Option<&String>, budget_ms: u64| {
            let routine = routine.map(|place| Routine { place: place.clone(), function: None });
            entry("worker", routine, Reservation { budget_ns: budget_ms * MS, period_ns: 20 * MS })
        };
        Profile {
            program: of_program(&self.program, &mapped).unwrap(),
            machine: of_machine(Path::new("/")),
            calibration: Calibration {
                watched_ns: 1000 * MS,
                lost: 0,
                importance: Importance::Low,
                margin: Margin(5),
            },
            threads: vec![worker(Some(&self.light.1), 2), worker(Some(&self.heavy.1), 5)],
        }
    }
}

impl Drop for Twins {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
