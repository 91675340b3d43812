//! The C side as it is: mirrored structs (their layout is checked when a graph is made) and functions.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Parameters of an edge that its policy keeps, at most.
pub const PARAMS: usize = 4;
/// Parameters of an edge, at most: these, and what is promised to it.
pub const EDGE_PARAMS: usize = 6;
/// Parameters of a node, at most.
pub const NODE_PARAMS: usize = 8;
/// Edges of a path, at most: the CPU's root edge and one below each of 8 nodes.
pub const PATH: usize = 9;
/// CPUs of a native build, at most.
pub const CPUS: usize = 512;

/// `struct tierce_edge`; see policy/tierce.h for each field.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Edge {
    pub flags: u32,
    pub state: u32,
    pub parent: u32,
    pub child: u32,
    pub kind: u32,
    pub next_parent: u32,
    pub cpu: u32,
    pub on_cpu: u32,
    pub bit: u32,
    pub rank: i32,
    pub told: u32,
    pub restore: u32,
    pub throttles: u32,
    pub replenishments: u32,
    pub grants: u32,
    pub variant: u32,
    pub param: [u64; PARAMS],
    pub link: [Link; 2],
    pub supply_ns: u64,
    pub forgiven_ns: u64,
    pub promise: Promise,
    pub policy: [u64; 6],
}

impl Edge {
    /// All its parameters.
    pub fn params(&self) -> [u64; EDGE_PARAMS] {
        let mut params = [0; EDGE_PARAMS];
        params[..PARAMS].copy_from_slice(&self.param);
        if self.flags & EDGE_PROMISED != 0 {
            params[PARAMS..].copy_from_slice(&[self.promise.owed_ns as u64, self.promise.window_ns.into()]);
        }
        params
    }
}

/// `struct tierce_promise`; see policy/tierce.h for each field.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Promise {
    pub end_ns: u64,
    pub owed_ns: i64,
    pub base_ns: u64,
    pub stolen_ns: u64,
    pub promised_ns: u64,
    pub received_ns: u64,
    pub missing_ns: u64,
    pub least_ns: u64,
    pub windows: u32,
    pub broken: u32,
    pub why: u32,
    pub window_ns: u32,
}

/// `struct tierce_link`: membership in a heap.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Link {
    pub key: u64,
    pub left: u32,
    pub right: u32,
    pub up: u32,
    pub rank: u32,
}

/// Flag of [`Edge::flags`]: the budget is used up until it is replenished.
pub const EDGE_SPENT: u32 = 1;
/// Flag for `graph_edge_new`: enabled only while every unconditional parent edge of the child is spent.
pub const EDGE_WHEN_SPENT: u32 = 16;
/// Flag for `graph_edge_new`: the child moves between the replicas of a spread node.
pub const EDGE_SPREAD: u32 = 4096;
/// Flag of [`Edge::flags`]: its parameters say what is promised to it in which time.
pub const EDGE_PROMISED: u32 = 8192;

/// `struct tierce_node`; see policy/tierce.h for each field.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Node {
    pub kind: u32,
    pub domain: u32,
    pub first_parent: u32,
    pub children: u32,
    pub order: u32,
    pub servable: u32,
    pub running: u32,
    pub level: u32,
    pub row: u32,
    pub concurrency: u32,
    pub holds: u32,
    pub claim_edge: u32,
    pub claim_victim: u32,
    pub claim_kept: u32,
    pub conditional: u32,
    pub cpus: u64,
    pub allowed: u64,
    pub param: [u64; PARAMS],
    pub sum: u64,
    pub clock: u64,
    pub tail: u64,
    pub deadline_ns: u64,
    pub ran_ns: u64,
    pub switches: u32,
    pub migrations: u32,
    pub last_cpu: u32,
    pub on_cpu: u32,
    pub ranked: u32,
    pub family: u32,
    pub more: [u64; NODE_PARAMS - PARAMS],
    pub rounds: Rounds,
    pub near: u64,
    pub share: Share,
}

impl Node {
    /// All its parameters.
    pub fn params(&self) -> [u64; NODE_PARAMS] {
        let mut params = [0; NODE_PARAMS];
        params[..PARAMS].copy_from_slice(&self.param);
        params[PARAMS..].copy_from_slice(&self.more);
        params
    }
}

/// What i-plus-pi and multiburst keep in a node; see policy/tierce.h for each field.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Rounds {
    pub used_ns: i64,
    pub target_ns: i64,
    pub correction_ns: i64,
    pub error_ns: i64,
    pub set_ns: u64,
    pub weight: u32,
    pub active: u32,
    pub shares: u32,
    pub members: u32,
    pub full: u32,
    pub scale: u32,
    pub here: u32,
    pub next: u32,
    pub changed: u32,
    pub fresh: u32,
}

/// `share` of `struct tierce_node`.
#[repr(C)]
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub weight: u64,
    pub fraction: u64,
    pub met_ns: u64,
    pub later: u32,
    pub ahead: u32,
}

/// `struct tierce_cpu`; see policy/tierce.h for each field.
#[repr(C)]
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Cpu {
    pub root_edge: u32,
    pub online: u32,
    pub path: [u32; PATH],
    pub path_length: u32,
    pub next: [u32; PATH],
    pub next_length: u32,
    pub task: u32,
    pub leave: [u32; PATH],
    pub leaves: u32,
    pub kick_pending: u32,
    pub asked: u32,
    pub outside: u32,
    pub shares: u32,
    pub crossings: u32,
    pub claims: u32,
    pub group: u32,
    pub serves: u32,
    pub drained: u64,
    pub charged_ns: u64,
    pub until_ns: u64,
    pub armed_ns: u64,
    pub used_ns: u64,
    pub idle_ns: u64,
    pub stolen_ns: u64,
    pub taken_ns: u64,
    pub told_ns: u64,
    pub paid_ns: u64,
    pub decisions: u64,
    pub events: u64,
    pub idle: u32,
    pub offered: u32,
    pub ran: u32,
    pub told_now: u32,
    pub balance_ns: u64,
    pub pulls: u64,
    pub pushes: u64,
    pub back_ns: u64,
    pub crossing: [u32; 64],
}

#[repr(C)]
pub(crate) struct Native {
    pub state: *mut u8,
    pub failed: *const c_char,
    pub kicked: u64,
    pub trace: Option<extern "C" fn(*mut c_void, u32, u32, u32, u32, u64, u64)>,
    pub sink: *mut c_void,
    pub traced: u64,
    pub replaying: u64,
    pub drain: u64,
    pub record: Option<extern "C" fn(*mut c_void, *const Entry)>,
    pub record_sink: *mut c_void,
    pub kicks: [u64; CPUS / 64],
}

/// One recorded entry or control operation; `enum tierce_op` in policy/tierce.h says what the fields hold.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Entry {
    pub now_ns: u64,
    pub value: u64,
    pub result: u64,
    pub drained: u64,
    pub op: u32,
    pub a: u32,
    pub b: u32,
    pub pad: u32,
}

#[repr(C)]
pub(crate) struct RawParam {
    pub name: *const c_char,
    pub meaning: *const c_char,
    pub least: u64,
    pub most: u64,
    pub preset: u64,
    pub kind: u32,
    pub of_node: u32,
}

#[repr(C)]
pub(crate) struct RawRecord {
    pub name: *const c_char,
    pub number: u32,
    pub flags: u32,
    pub params: u32,
    pub added: u32,
    pub param: [RawParam; NODE_PARAMS + EDGE_PARAMS],
}

/// The functions of the engine: those that are linked, or those of a library with more policies.
macro_rules! engine {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        struct Engine {
            $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        mod linked {
            use super::*;
            extern "C" {
                $(pub fn $name($($argument: $type),*) $(-> $result)?;)*
            }
        }

        static LINKED: Engine = Engine { $($name: linked::$name,)* };

        impl Engine {
            /// # Safety
            /// `find` finds functions of the engine that this crate was built with.
            unsafe fn found(find: impl Fn(&CStr) -> *mut c_void) -> Option<Engine> {
                $(
                    let name = CString::new(stringify!($name)).expect("a name has no NUL");
                    let $name = find(&name);
                )*
                let all = [$($name),*];
                if all.iter().any(|function| function.is_null()) {
                    return None;
                }
                // SAFETY: of these types, as the caller says.
                Some(unsafe {
                    Engine {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($type),*) $(-> $result)?,
                        >($name),)*
                    }
                })
            }
        }

        $(
            #[inline]
            pub(crate) unsafe fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: as the caller says.
                unsafe { (engine().$name)($($argument),*) }
            }
        )*
    };
}

engine! {
    fn tierce_hooks() -> *mut Native;
    fn tierce_policy_record(index: u32, record: *mut RawRecord) -> c_int;
    fn tierce_error_text(error: u32, want_name: u32) -> *const c_char;
    fn tierce_op_name(op: u32) -> *const c_char;
    fn tierce_invariant_text(invariant: u32, want_name: u32) -> *const c_char;
    fn tierce_layout(what: u32) -> u64;
    fn tierce_met(family: u32, clock: u64);
    fn graph_init(cpus: u32, now: u64) -> c_int;
    fn graph_request(task: u32, why: u32, now: u64) -> c_int;
    fn graph_release(task: u32, why: u32, now: u64) -> c_int;
    fn graph_announce(task: u32, deadline_ns: u64, now: u64) -> c_int;
    fn graph_tell(task: u32, kind: u32, now: u64) -> c_int;
    fn graph_yield(task: u32, now: u64) -> c_int;
    fn graph_decide(cpu: u32, left: u32, now: u64, stolen_ns: u64) -> u32;
    fn graph_event(cpu: u32, now: u64, stolen_ns: u64) -> c_int;
    fn graph_returned(cpu: u32, now: u64) -> c_int;
    fn graph_outside(cpu: u32, begins: u32, now: u64) -> c_int;
    fn graph_stage(index: u32, value: u64) -> c_int;
    fn graph_node_new(kind: u32, concurrency: u32, allowed: u64) -> u32;
    fn graph_edge_new(parent: u32, child: u32, rank: i32, flags: u32) -> u32;
    fn graph_replica(node: u32, first: u32) -> c_int;
    fn graph_leave(task: u32, to: u32, now: u64) -> c_int;
    fn graph_enter(task: u32, cpu: u32, why: u32, now: u64) -> c_int;
    fn graph_near(cpu: u32, word: u32, core: u64, cache: u64, memory: u64) -> c_int;
    fn graph_home(task: u32, cpu: u32, now: u64) -> c_int;
    fn tierce_place(task: u32) -> u32;
    fn graph_offer(task: u32) -> c_int;
    fn graph_pull(cpu: u32, now: u64) -> u32;
    fn graph_balance(cpu: u32, now: u64) -> u32;
    fn graph_attach(edge: u32, now: u64) -> c_int;
    fn graph_set(edge: u32, now: u64) -> c_int;
    fn graph_detach(edge: u32, now: u64) -> c_int;
    fn graph_node_set(node: u32, now: u64) -> c_int;
    fn graph_node_free(node: u32) -> c_int;
    fn graph_root(cpu: u32, node: u32, now: u64) -> c_int;
    fn graph_allow(task: u32, cpus: u64, now: u64) -> c_int;
    fn graph_online(cpu: u32, online: u32, now: u64) -> c_int;
    fn graph_check(rest: u32) -> u32;
}

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new((&raw const LINKED).cast_mut());

#[inline]
fn engine() -> &'static Engine {
    // SAFETY: it is `LINKED`, or what `use_library` has leaked.
    unsafe { &*ENGINE.load(Ordering::Acquire) }
}

/// From now on the engine is that of this library, which is of the same sources but for its policies. Nothing has used the one
/// that is linked: what it made would be of other policies.
pub(crate) fn use_library(path: &Path) -> Result<(), String> {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|nul| nul.to_string())?;
    // SAFETY: the library has no constructors; it is never unloaded.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: dlerror returns a string after a failure.
        return Err(unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned());
    }
    // SAFETY: the caller vouches for the sources.
    let engine = unsafe { Engine::found(|name| libc::dlsym(library, name.as_ptr())) };
    let engine = engine.ok_or("it lacks functions of the engine")?;
    ENGINE.store(Box::leak(Box::new(engine)), Ordering::Release);
    Ok(())
}
