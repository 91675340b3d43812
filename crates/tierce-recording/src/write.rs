//! A trace of Tierce as `trace.dat` of version 6, which trace-cmd and KernelShark open: switches and wake-ups.

use crate::metadata::MAGIC;
use crate::sched::Comm;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use tierce_trace::{Kind, Trace};

const PAGE: usize = 4096;
/// Time, bytes used.
const PAGE_HEAD: usize = 16;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

const SWITCH: u16 = 1;
const WAKEUP: u16 = 2;

const SWITCH_FIELDS: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d\", REC->prev_comm, \
    REC->prev_pid, REC->prev_prio, REC->prev_state ? __print_flags(REC->prev_state, \"|\", { 0x00000001, \"S\" }, { 0x00000020, \"Z\" }) : \"R\", \
    REC->next_comm, REC->next_pid, REC->next_prio\n";

const WAKEUP_FIELDS: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu\n";

fn description(name: &str, id: u16, fields: &str) -> String {
    format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}")
}

/// Write the switches and wake-ups of a trace; how many records there are.
pub fn write(trace: &Trace, out: &mut impl Write) -> io::Result<u64> {
    let cpus = trace.header.cpus.max(1) as usize;
    let mut pages: Vec<Pages> = (0..cpus).map(|_| Pages::default()).collect();
    let mut names: HashMap<u32, Comm> = HashMap::new();
    for task in &trace.header.tasks {
        names.insert(task.id, Comm::new(task.name.as_bytes()));
    }
    // Nodes share their ids with tasks, and tell of requests, too.
    let nodes: HashSet<u32> = trace.header.nodes.iter().map(|node| node.id).collect();
    let is_task = |id: u32| id != 0 && !nodes.contains(&id);
    let mut awake: HashSet<u32> = HashSet::new();
    let mut running = vec![0u32; cpus];
    let mut records = 0;
    for event in &trace.events {
        let cpu = usize::from(event.cpu).min(cpus - 1);
        let comm = |task: u32| names.get(&task).copied().unwrap_or_default();
        let record = match event.kind() {
            Some(Kind::Name) => {
                names.insert(event.a, Comm::new(event.text().as_bytes()));
                continue;
            }
            Some(Kind::Request) if is_task(event.a) && awake.insert(event.a) => {
                wakeup(event.a, comm(event.a), cpu as u32, running[cpu])
            }
            Some(Kind::Release) if is_task(event.a) => {
                awake.remove(&event.a);
                continue;
            }
            Some(Kind::Decision) if running[cpu] != event.a => {
                let from = std::mem::replace(&mut running[cpu], event.a);
                let idle = Comm::new(format!("swapper/{cpu}").as_bytes());
                let name = |task: u32| if task == 0 { idle } else { comm(task) };
                let sleeps = from != 0 && !awake.contains(&from);
                switch((from, name(from)), sleeps, (event.a, name(event.a)))
            }
            _ => continue,
        };
        pages[cpu].push(event.now_ns, &record);
        records += 1;
    }
    file(out, &names, pages)?;
    Ok(records)
}

/// Threads of a trace have no number of the kernel's: their ids stand for it.
fn head(kind: u16, pid: u32) -> Vec<u8> {
    let mut record = kind.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(pid.to_le_bytes());
    record
}

const NORMAL: i32 = 120;

fn wakeup(pid: u32, comm: Comm, cpu: u32, current: u32) -> Vec<u8> {
    let mut record = head(WAKEUP, current);
    record.extend(comm.0);
    record.extend(pid.to_le_bytes());
    record.extend(NORMAL.to_le_bytes());
    record.extend(cpu.to_le_bytes());
    record
}

fn switch(from: (u32, Comm), sleeps: bool, to: (u32, Comm)) -> Vec<u8> {
    let mut record = head(SWITCH, from.0);
    record.extend(from.1 .0);
    record.extend(from.0.to_le_bytes());
    record.extend(NORMAL.to_le_bytes());
    record.extend(u64::from(sleeps).to_le_bytes());
    record.extend(to.1 .0);
    record.extend(to.0.to_le_bytes());
    record.extend(NORMAL.to_le_bytes());
    record
}

/// The pages of one CPU.
#[derive(Default)]
struct Pages {
    done: Vec<u8>,
    page: Vec<u8>,
    last_ns: u64,
}

impl Pages {
    fn push(&mut self, now_ns: u64, record: &[u8]) {
        // An entry, and perhaps one before it for a time that does not fit.
        if self.page.is_empty() || self.page.len() + 8 + 4 + record.len() > PAGE {
            self.close();
            self.page.extend(now_ns.to_le_bytes());
            self.page.extend([0; 8]);
            self.last_ns = now_ns;
        }
        let mut delta = now_ns.saturating_sub(self.last_ns);
        if delta >> 27 != 0 {
            let extend = 30 | (delta as u32 & ((1 << 27) - 1)) << 5;
            self.page.extend(extend.to_le_bytes());
            self.page.extend(((delta >> 27) as u32).to_le_bytes());
            delta = 0;
        }
        let words = record.len().div_ceil(4);
        self.page.extend((words as u32 | (delta as u32) << 5).to_le_bytes());
        self.page.extend(record);
        self.page.resize(self.page.len().next_multiple_of(4), 0);
        self.last_ns = now_ns.max(self.last_ns);
    }

    fn close(&mut self) {
        if self.page.is_empty() {
            return;
        }
        let used = (self.page.len() - PAGE_HEAD) as u64;
        self.page[8..16].copy_from_slice(&used.to_le_bytes());
        self.page.resize(PAGE, 0);
        self.done.append(&mut self.page);
    }
}

fn sized(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

/// All of the file.
fn file(out: &mut impl Write, names: &HashMap<u32, Comm>, mut pages: Vec<Pages>) -> io::Result<()> {
    pages.iter_mut().for_each(Pages::close);
    let mut head = MAGIC.to_vec();
    head.extend(b"6\0\0\x08");
    head.extend((PAGE as u32).to_le_bytes());
    head.extend(b"header_page\0");
    sized(&mut head, HEADER_PAGE);
    head.extend(b"header_event\0");
    sized(&mut head, HEADER_EVENT);
    head.extend(0u32.to_le_bytes()); // ftrace's own events
    head.extend(1u32.to_le_bytes());
    head.extend(b"sched\0");
    head.extend(2u32.to_le_bytes());
    sized(&mut head, &description("sched_switch", SWITCH, SWITCH_FIELDS));
    sized(&mut head, &description("sched_wakeup", WAKEUP, WAKEUP_FIELDS));
    head.extend(0u32.to_le_bytes()); // kallsyms
    head.extend(0u32.to_le_bytes()); // formats of trace_printk
    let mut ids: Vec<_> = names.iter().collect();
    ids.sort_by_key(|(id, _)| **id);
    let lines: String = ids.iter().map(|(id, comm)| format!("{id} {}\n", comm.text())).collect();
    sized(&mut head, &lines);
    head.extend((pages.len() as u32).to_le_bytes());
    head.extend(b"options  \0\0\0flyrecord\0");
    let table = head.len();
    let mut at = (table + pages.len() * 16).next_multiple_of(PAGE);
    for one in &pages {
        head.extend((at as u64).to_le_bytes());
        head.extend((one.done.len() as u64).to_le_bytes());
        at += one.done.len();
    }
    head.resize(head.len().next_multiple_of(PAGE), 0);
    out.write_all(&head)?;
    for one in &pages {
        out.write_all(&one.done)?;
    }
    out.flush()
}
