//! The resource manager: principals ask for guarantees of CPU time; rules, the guarantee algebra and admission control decide who gets one, and
//! the plan in force is changed accordingly. After chapter 8 of Regehr's thesis (HLS, 2001).
//!
//! It knows nothing of how requests arrive ([`Ask`], [`Answer`]), where the plan in force is ([`InForce`]), what the machine's
//! threads are ([`Threads`]) or what time it is. In layers; each uses those above it only:
//!
//! - `wrong`, `principal`, `mode`, `ask`: who asks, for what, and what is answered;
//! - `books`: what is granted and pending, and whose it is;
//! - `in_force`, `trial`, `candidates`: the plan, what would become of it, and who can give what is asked for;
//! - `rules`: scripts that decide, as data;
//! - `proposal`: changes of books and plan that belong together;
//! - `manager`: what happens when somebody asks, or something happens;
//! - `words`: answers and notices, for people;
//! - `check`: whether books, plan and verdict agree.

mod ask;
mod books;
mod candidates;
mod check;
mod in_force;
mod manager;
pub mod memory;
mod mode;
mod principal;
mod proposal;
pub mod rules;
mod trial;
pub mod words;
mod wrong;

pub use ask::{
    Answer, Ask, Change, Divide, Ending, Granted, List, News, Notice, Part, Received, Said, Shown, Signal,
    State, What, Which, Wish, LISTEN, VERSION,
};
pub use books::{Books, Held, Request, Taken, Target, Writer, PREFIX};
pub use check::check;
pub use in_force::{InForce, InMemory};
pub use manager::{Limits, Manager, ThreadInfo, Threads, Unmatched, PART_EVENTS};
pub use mode::{Mode, MODES_MAX, VALUE_MAX};
pub use principal::{Asker, Principal, NAMELESS};
pub use rules::Rules;
pub use trial::{Promised, Trial};
pub use wrong::Wrong;
