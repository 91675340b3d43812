//! What the kernel side writes, into the buffers of a running plan.

use super::news::News;
use crate::kernel::Kernel;
use crate::object::Ring;
use anyhow::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// Records, entries and news of an object, as they come.
pub(super) fn rings(
    kernel: &Kernel,
    bytes: [&Rc<RefCell<Vec<u8>>>; 2],
    news: &Rc<RefCell<Vec<News>>>,
) -> Result<[Ring; 3]> {
    let into = |sink: &Rc<RefCell<Vec<u8>>>| {
        let sink = sink.clone();
        Box::new(move |bytes: &[u8]| sink.borrow_mut().extend_from_slice(bytes))
    };
    let sink = news.clone();
    let take = move |bytes: &[u8]| sink.borrow_mut().extend(News::from_bytes(bytes));
    Ok([
        kernel.ring("records", into(bytes[0]))?,
        kernel.ring("entries", into(bytes[1]))?,
        kernel.ring("news", Box::new(take))?,
    ])
}
