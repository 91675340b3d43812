//! Threads watched, not scheduled: when each wakes and sleeps, and how long it runs in between (bpf/calibrate.bpf.c).

use crate::object::{call, Link, Object, Ring};
use anyhow::{bail, Context, Result};
use std::cell::RefCell;
use std::ffi::c_int;
use std::ptr::read_volatile;
use std::rc::Rc;
use std::time::Duration;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calibrate.bpf.o.zst"));

const PROGRAMS: [&str; 5] =
    ["calibrate_switch", "calibrate_wakeup", "calibrate_wakeup_new", "calibrate_begin", "calibrate_exec"];

/// Where the kernel begins and ends what is no thread's own time. A kernel may lack some of them.
const INTERRUPTS: [(&str, &str); 6] = [
    ("calibrate_irq_begins", "local_timer_entry"),
    ("calibrate_irq_ends", "local_timer_exit"),
    ("calibrate_irq_begins", "irq_handler_entry"),
    ("calibrate_irq_ends", "irq_handler_exit"),
    ("calibrate_softirq_begins", "softirq_entry"),
    ("calibrate_softirq_ends", "softirq_exit"),
];

/// What became of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It sleeps, after a burst.
    Slept,
    /// It was started by a watched one.
    Begun,
    /// Its process has another program.
    Executed,
    /// It has ended, after a burst.
    Ended,
}

/// `struct record`: something that became of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// When its burst began; 0: before it was watched.
    pub woke_ns: u64,
    /// When this was.
    pub now_ns: u64,
    /// CPU time of its burst, without interrupts.
    pub ran_ns: u64,
    /// What interrupts took from it.
    pub interrupted_ns: u64,
    /// Which thread.
    pub tid: u32,
    /// Of which process.
    pub process: u32,
    kind: u32,
    pad: u32,
    name: [u8; 16],
}

impl Record {
    /// What happened.
    pub fn happened(&self) -> Happened {
        match self.kind {
            0 => Happened::Slept,
            1 => Happened::Begun,
            2 => Happened::Executed,
            _ => Happened::Ended,
        }
    }

    /// The thread's name by then.
    pub fn name(&self) -> String {
        let length = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..length]).into_owned()
    }

    fn read(bytes: &[u8]) -> Option<Record> {
        // SAFETY: plain data, of which there are enough bytes.
        (bytes.len() >= size_of::<Record>())
            .then(|| unsafe { bytes.as_ptr().cast::<Record>().read_unaligned() })
    }
}

/// `struct watch`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    tid: u32,
    inherits: u32,
    error: i32,
    known: u32,
}

/// The loaded object. Fields are dropped in order: links first.
pub struct Watcher {
    _links: Vec<Link>,
    ring: Ring,
    records: Rc<RefCell<Vec<Record>>>,
    object: Object,
    watch: c_int,
    /// Interrupts are counted apart.
    pub tells_interrupts: bool,
}

/// How long records are read at a time.
const AT_ONCE: Duration = Duration::from_millis(200);

impl Watcher {
    /// Load it; nobody is watched yet.
    pub fn load() -> Result<Watcher> {
        let image = zstd::decode_all(PACKED).context("the embedded BPF object")?;
        let mut object = Object::open_image(image, c"tierce_calibrate")?;
        object.load(false, &mut |_| ())?;
        let watch = object.program("calibrate_watch")?;
        let records = Rc::new(RefCell::new(Vec::new()));
        let into = records.clone();
        let ring = object
            .ring("records", Box::new(move |_, bytes| into.borrow_mut().extend(Record::read(bytes))))?;
        let mut links = PROGRAMS.iter().map(|name| object.attach(name)).collect::<Result<Vec<_>>>()?;
        let interrupts = INTERRUPTS.map(|(name, tracepoint)| object.attach_raw(name, tracepoint));
        let tells_interrupts = interrupts.iter().all(Option::is_some);
        links.extend(interrupts.into_iter().flatten());
        Ok(Watcher { _links: links, ring, records, object, watch, tells_interrupts })
    }

    /// Watch a thread, and with `inherits` whatever it starts from now on. Whether it is new; `None`: it is gone.
    pub fn watch(&self, tid: u32, inherits: bool) -> Result<Option<bool>> {
        let mut watch = Watch { tid, inherits: inherits.into(), ..Watch::default() };
        call(self.watch, &mut watch)?;
        match watch.error {
            0 => Ok(Some(watch.known == 0)),
            libc::ESRCH => Ok(None),
            error => bail!("watching thread {tid}: {}", std::io::Error::from_raw_os_error(error)),
        }
    }

    /// What has happened since this was last called.
    pub fn records(&mut self) -> Result<Vec<Record>> {
        while !self.ring.drain(AT_ONCE)? {}
        Ok(self.records.take())
    }

    /// Records that found no room so far.
    pub fn lost(&self) -> Result<u64> {
        let (at, _) = self.object.variable_address("lost")?;
        // SAFETY: a u64 in the section's memory, which the kernel side changes.
        Ok(unsafe { read_volatile(at.cast::<u64>()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_as_the_kernel_writes_it() {
        assert_eq!((size_of::<Record>(), size_of::<Watch>()), (64, 16));
        let mut bytes = [0u8; 64];
        bytes[8..16].copy_from_slice(&7u64.to_ne_bytes());
        bytes[40..44].copy_from_slice(&3u32.to_ne_bytes());
        bytes[48..53].copy_from_slice(b"audio");
        let record = Record::read(&bytes).unwrap();
        assert_eq!((record.now_ns, record.happened(), record.name()), (7, Happened::Ended, "audio".into()));
        assert!(Record::read(&bytes[..63]).is_none());
    }
}
