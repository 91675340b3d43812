//! Long work at a terminal: how far it has come, how much time is left, and an early end at Ctrl-C, with what there is by then.
//!
//! Progress is one line of standard error. It is shown after a moment, and only on a terminal; pipes and files get nothing.

mod progress;
mod reading;
mod stop;
mod watched;

pub use progress::{Progress, Unit};
pub use reading::Reading;
pub use stop::{asked, Stop};
pub use watched::{watched, Watched};
