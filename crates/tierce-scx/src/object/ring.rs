//! A ring buffer of the kernel side, read here.

use anyhow::{ensure, Result};
use libbpf_sys as sys;
use std::ffi::{c_int, c_long, c_void};
use std::io::Error;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// Records between two looks at the clock.
const AT_ONCE: sys::size_t = 256;

pub(super) type Take = Box<dyn FnMut(&[u8])>;

/// A ring buffer being read.
pub struct Ring {
    pub(super) raw: NonNull<sys::ring_buffer>,
    pub(super) take: *mut Take,
}

impl Ring {
    pub(super) unsafe extern "C" fn sample(
        context: *mut c_void,
        data: *mut c_void,
        size: sys::size_t,
    ) -> c_int {
        // SAFETY: libbpf passes the pointer given to ring_buffer__new and one record.
        unsafe { (*context.cast::<Take>())(std::slice::from_raw_parts(data.cast(), size as usize)) };
        0
    }

    /// Pass on the records that there are by now. More may come meanwhile, without end.
    pub fn drain_present(&mut self) -> Result<()> {
        // SAFETY: a valid ring, which has one buffer.
        let ring = unsafe { sys::ring_buffer__ring(self.raw.as_ptr(), 0) };
        // SAFETY: a valid buffer.
        let end = unsafe { sys::ring__producer_pos(ring) };
        loop {
            // SAFETY: a valid ring.
            let count = unsafe { sys::ring_buffer__consume_n(self.raw.as_ptr(), AT_ONCE) };
            ensure!(count >= 0, "reading records: {}", Error::from_raw_os_error(-count));
            // SAFETY: a valid buffer. Positions only grow, and may wrap.
            let left = end.wrapping_sub(unsafe { sys::ring__consumer_pos(ring) }) as c_long;
            if count == 0 || left <= 0 {
                return Ok(());
            }
        }
    }

    /// Pass on the records there are, for about that long: they may come faster than they are read. Whether that was all.
    pub fn drain(&mut self, longest: Duration) -> Result<bool> {
        let begun = Instant::now();
        loop {
            // SAFETY: a valid ring.
            let count = unsafe { sys::ring_buffer__consume_n(self.raw.as_ptr(), AT_ONCE) };
            ensure!(count >= 0, "reading records: {}", Error::from_raw_os_error(-count));
            if (count as sys::size_t) < AT_ONCE {
                return Ok(true);
            }
            if begun.elapsed() >= longest {
                return Ok(false);
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: made together in Object::ring, and not used after.
        unsafe {
            sys::ring_buffer__free(self.raw.as_ptr());
            drop(Box::from_raw(self.take));
        }
    }
}
