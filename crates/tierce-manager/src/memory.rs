//! How much memory a thread has allocated: what a rule may have at a time has a bound.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated, less those that it has freed; of which another one frees some, they still count here.
    static USED: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed, if the program's allocator is [`Counted`]; else 0.
pub fn used() -> isize {
    USED.get()
}

/// An allocator that counts. Where it is not the program's, the memory of a rule has no bound but those of its values.
pub struct Counted<A>(pub A);

fn count(bytes: usize, sign: isize) {
    USED.set(USED.get().wrapping_add(sign * bytes as isize));
}

// SAFETY: every call goes to the allocator inside; counting allocates nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: as the caller says.
        unsafe { self.0.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(size, 1);
        // SAFETY: as the caller says.
        unsafe { self.0.realloc(at, layout, size) }
    }
}
