//! What the kernel side tells of threads and CPUs.

/// NEWS_THREAD of bpf/control.h: a thread is new, or may match something else.
pub const NEWS_THREAD: u32 = 1;
/// NEWS_EXEC: a thread has another program.
pub const NEWS_EXEC: u32 = 2;
/// NEWS_NAME: a thread has another name.
pub const NEWS_NAME: u32 = 3;
/// NEWS_CPU: a CPU came or went.
pub const NEWS_CPU: u32 = 4;
/// NEWS_BACK: a thread may have its place again.
pub const NEWS_BACK: u32 = 5;
/// NEWS_LOST: a thread may not run where its place is.
pub const NEWS_LOST: u32 = 6;
/// NEWS_PROCESS: a process is in another cgroup.
pub const NEWS_PROCESS: u32 = 7;

/// A `struct tierce_news` of bpf/control.h.
#[derive(Clone, Copy, Debug)]
pub struct News {
    pub kind: u32,
    /// A thread, process or CPU.
    pub id: u32,
    /// Of a thread: its process, whether it is a kernel thread, its name up to the first zero.
    pub pid: u32,
    pub is_kthread: bool,
    pub comm: [u8; 16],
    pub policy: u32,
    /// The thread that has started it, if it is new.
    pub from: u32,
    /// Who answers for it.
    pub user: u32,
    /// Its leaf, which counts what has changed since; 0: nobody does.
    pub leaf: u32,
}

impl News {
    pub fn from_bytes(bytes: &[u8]) -> Option<News> {
        let word = |at| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let comm = bytes.get(16..32)?.try_into().ok()?;
        let (kind, id, pid, is_kthread) = (word(0)?, word(4)?, word(8)?, word(12)? != 0);
        let (policy, from, user, leaf) = (word(32)?, word(36)?, word(40)?, word(44)?);
        Some(News { kind, id, pid, is_kthread, comm, policy, from, user, leaf })
    }
}
