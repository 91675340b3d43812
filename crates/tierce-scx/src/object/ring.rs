//! A ring buffer of the kernel side, read here.

use anyhow::{ensure, Result};
use libbpf_sys as sys;
use std::ffi::{c_int, c_void};
use std::io::Error;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// Records between two looks at the clock.
const AT_ONCE: sys::size_t = 256;

/// Gets each record, and its position: which byte it begins with, of all that were ever written.
pub type Take = Box<dyn FnMut(u64, &[u8])>;

/// A ring buffer being read.
pub struct Ring {
    raw: NonNull<sys::ring_buffer>,
    reader: *mut Reader,
}

struct Reader {
    take: Take,
    buffer: *const sys::ring,
}

impl Ring {
    /// Of a map.
    pub(super) fn new(map: c_int, take: Take) -> Result<Ring, Error> {
        let reader = Box::into_raw(Box::new(Reader { take, buffer: std::ptr::null() }));
        // SAFETY: the callback gets the reader, which lives as long as the ring.
        let raw = unsafe { sys::ring_buffer__new(map, Some(Ring::sample), reader.cast(), std::ptr::null()) };
        match NonNull::new(raw) {
            Some(raw) => {
                // SAFETY: a valid ring, which has one buffer.
                unsafe { (*reader).buffer = sys::ring_buffer__ring(raw.as_ptr(), 0) };
                Ok(Ring { raw, reader })
            }
            None => {
                let error = Error::last_os_error();
                // SAFETY: made above, and passed to nobody.
                drop(unsafe { Box::from_raw(reader) });
                Err(error)
            }
        }
    }

    unsafe extern "C" fn sample(context: *mut c_void, data: *mut c_void, size: sys::size_t) -> c_int {
        // SAFETY: libbpf passes the pointer given to ring_buffer__new and one record, to whose begin it has read.
        unsafe {
            let reader = &mut *context.cast::<Reader>();
            let at = sys::ring__consumer_pos(reader.buffer);
            (reader.take)(at, std::slice::from_raw_parts(data.cast(), size as usize));
        }
        0
    }

    fn buffer(&self) -> *const sys::ring {
        // SAFETY: made with the ring.
        unsafe { (*self.reader).buffer }
    }

    /// Where the next record will begin. Those before it are there, or are being written.
    pub fn written(&self) -> u64 {
        // SAFETY: a valid buffer.
        unsafe { sys::ring__producer_pos(self.buffer()) }
    }

    /// Where the record begins that is read next.
    pub fn read(&self) -> u64 {
        // SAFETY: a valid buffer.
        unsafe { sys::ring__consumer_pos(self.buffer()) }
    }

    /// Pass on the records that there are by now. More may come meanwhile, without end.
    pub fn drain_present(&mut self) -> Result<()> {
        let end = self.written();
        loop {
            // SAFETY: a valid ring.
            let count = unsafe { sys::ring_buffer__consume_n(self.raw.as_ptr(), AT_ONCE) };
            ensure!(count >= 0, "reading records: {}", Error::from_raw_os_error(-count));
            if count == 0 || self.read() >= end {
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
        // SAFETY: made together, and not used after.
        unsafe {
            sys::ring_buffer__free(self.raw.as_ptr());
            drop(Box::from_raw(self.reader));
        }
    }
}
