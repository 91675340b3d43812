//! A socket of this machine at which somebody listens: where it lies, who may connect, who is at the other end.

use anyhow::{bail, Context, Result};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Those who have knocked and wait; one more waits outside. Few: whoever comes next is let in after them.
pub const BACKLOG: libc::c_int = 128;

/// What people are told when the socket cannot be had.
pub struct Words<'a> {
    /// Somebody answers there.
    pub is_taken: &'a str,
    /// Whose it was that nobody answers.
    pub dead: &'a str,
    /// What it is, and the option for another place.
    pub what: &'a str,
}

/// The socket. Its file goes with it, unless another one has taken its place.
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the file.
    id: (u64, u64),
}

impl Listener {
    /// Listen at `path`, with that mode. A socket that nobody answers is replaced; one that somebody does is not. Called while this
    /// process has one thread: the mode is set by its mask.
    pub fn bind(path: &Path, mode: libc::mode_t, words: &Words) -> Result<Listener> {
        let shown = path.display();
        match fs::symlink_metadata(path) {
            Ok(about) if !about.file_type().is_socket() => {
                bail!("{shown}: there is something else than a socket")
            }
            Ok(_) if UnixStream::connect(path).is_ok() => bail!("{shown}: {}", words.is_taken),
            Ok(_) => fs::remove_file(path)
                .with_context(|| format!("{shown}: replacing the socket of a dead {}", words.dead))?,
            Err(_) => {}
        }
        // SAFETY: sets the mask of this process; there is one thread, and it is set back at once.
        let mask = unsafe { libc::umask(0o777 & !mode) };
        let socket = UnixListener::bind(path);
        // SAFETY: as above.
        unsafe { libc::umask(mask) };
        let socket = socket.with_context(|| format!("{shown}: {}", words.what))?;
        socket.set_nonblocking(true)?;
        // SAFETY: a descriptor of ours, which listens already; only the length of its queue changes.
        unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) };
        let about = fs::symlink_metadata(path)?;
        Ok(Listener { socket, path: path.into(), id: (about.dev(), about.ino()) })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next one who knocks, never waited for, with user and group as the kernel says.
    pub fn accept(&self) -> Option<(UnixStream, libc::ucred)> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: nobody wants the address; a descriptor that comes is ours alone.
        let stream = unsafe {
            let listener = self.socket.as_raw_fd();
            let stream = libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags);
            (stream >= 0).then(|| UnixStream::from_raw_fd(stream))?
        };
        let mut who = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the structure has the length that is passed. If it is not filled, it is nobody.
        unsafe {
            let (fd, at) = (stream.as_raw_fd(), (&raw mut who).cast());
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut length)
        };
        Some((stream, who))
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|about| (about.dev(), about.ino()) == self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
