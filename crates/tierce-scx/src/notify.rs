//! Tell the service manager how far we are, if one asked: `Type=notify` of systemd.

use std::ffi::OsStr;
use std::io::Result;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// `READY=1`, `STOPPING=1`, … Nobody to tell is no error.
pub fn notify(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = send(&socket, state);
    }
}

/// A path, or `@` and a name that is no file's.
fn send(socket: &OsStr, state: &str) -> Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_hears_it() {
        let path = std::env::temp_dir().join(format!("tierce-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let name = format!("tierce-notify-{}", std::process::id());
        let of_a_file = UnixDatagram::bind(&path).unwrap();
        let of_a_name = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        for (socket, listener) in [(path.display().to_string(), of_a_file), (format!("@{name}"), of_a_name)] {
            send(socket.as_ref(), "READY=1").unwrap();
            let mut heard = [0; 16];
            let length = listener.recv(&mut heard).unwrap();
            assert_eq!(&heard[..length], b"READY=1");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(send(path.as_os_str(), "READY=1").is_err());
    }
}
