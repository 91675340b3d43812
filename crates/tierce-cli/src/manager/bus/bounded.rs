//! What comes over the bus is bounded before it is unpacked: zbus makes a value of each byte of an array, and a call may have 32 MiB. So a
//! call is read up to its longest length and no further ([`Bounded`]), and whoever calls too often is refused before anybody looks at
//! what it is about ([`Counted`]).

use super::caller::{Callers, CALL_MAX};
use std::collections::HashMap;
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tierce_manager::Wrong;
use zbus::address::transport::{Transport, UnixSocket};
use zbus::blocking::connection::Builder;
use zbus::connection::socket::{BoxedSplit, ReadHalf, Split};
use zbus::message::{Header, Message};
use zbus::names::{InterfaceName, MemberName};
use zbus::object_server::{DispatchResult, Interface, SignalEmitter};
use zbus::zvariant::{OwnedValue, Value};
use zbus::{fdo, Address, Connection, DBusError, ObjectServer};

/// The part of a message that has the lengths of the others.
const LENGTHS: usize = 16;

/// To the system bus. What is too long is known by its length, and nothing else of it is kept.
pub fn system() -> zbus::Result<Builder<'static>> {
    let address = Address::system()?;
    let path = match address.transport() {
        Transport::Unix(unix) => match unix.path() {
            UnixSocket::File(path) => path.clone(),
            _ => return Builder::address(address),
        },
        _ => return Builder::address(address),
    };
    let stream = Arc::new(async_io::Async::new(UnixStream::connect(path)?)?);
    let split: BoxedSplit = Split::new(Box::new(Bounded(stream.clone())), Box::new(stream));
    Ok(Builder::socket(split))
}

/// Reads no more of a message than a call may have, and one byte by which that is seen.
#[derive(Debug)]
struct Bounded<R>(R);

impl<R: ReadHalf> Bounded<R> {
    /// Until there are so many.
    async fn fill(&mut self, bytes: &mut Vec<u8>, length: usize) -> io::Result<()> {
        while bytes.len() < length {
            let has = bytes.len();
            bytes.resize(length, 0);
            let (more, _) = self.0.recvmsg(&mut bytes[has..]).await?;
            bytes.truncate(has + more);
            if more == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// The next so many are nobody's; some of them may have come.
    async fn skip(&mut self, bytes: &mut Vec<u8>, length: u64) -> io::Result<()> {
        let came = length.min(bytes.len() as u64);
        bytes.drain(..came as usize);
        let mut left = length - came;
        let mut block = vec![0; CALL_MAX];
        while left > 0 {
            let most = left.min(CALL_MAX as u64) as usize;
            let (more, _) = self.0.recvmsg(&mut block[..most]).await?;
            if more == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            left -= more as u64;
        }
        Ok(())
    }
}

/// Of what stands before the body, and of the body.
fn lengths(bytes: &[u8]) -> (u64, u64) {
    let number = |at: usize| {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        u64::from(if bytes[0] == b'B' { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    };
    ((LENGTHS as u64 + number(12)).next_multiple_of(8), number(4))
}

#[async_trait::async_trait]
impl<R: ReadHalf> ReadHalf for Bounded<R> {
    async fn receive_message(
        &mut self,
        seq: u64,
        bytes: &mut Vec<u8>,
        fds: &mut Vec<OwnedFd>,
    ) -> zbus::Result<Message> {
        loop {
            self.fill(bytes, LENGTHS).await?;
            let (before, body) = lengths(bytes);
            if before > CALL_MAX as u64 {
                self.skip(bytes, before + body).await?; // the name of who calls is somewhere in it
                continue;
            }
            if body > CALL_MAX as u64 {
                let kept = before as usize + CALL_MAX + 1;
                self.fill(bytes, kept).await?;
                let mut rest = bytes.split_off(kept);
                self.skip(&mut rest, before + body - kept as u64).await?;
                bytes.append(&mut rest);
                let length = CALL_MAX as u32 + 1;
                let length = if bytes[0] == b'B' { length.to_be_bytes() } else { length.to_le_bytes() };
                bytes[4..8].copy_from_slice(&length);
            }
            return self.0.receive_message(seq, bytes, fds).await;
        }
    }

    async fn recvmsg(&mut self, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        self.0.recvmsg(bytes).await
    }

    /// No call has any, so the bus lets none through.
    fn can_pass_unix_fd(&self) -> bool {
        false
    }

    async fn peer_credentials(&mut self) -> io::Result<fdo::ConnectionCredentials> {
        self.0.peer_credentials().await
    }
}

/// An interface, for those who may call once more by now. `refuse`: how it says no.
pub struct Counted<I, E> {
    pub inner: I,
    pub callers: Arc<Callers>,
    pub refuse: fn(Wrong) -> E,
}

#[async_trait::async_trait]
impl<I: Interface, E: DBusError + Send + 'static> Interface for Counted<I, E> {
    fn name() -> InterfaceName<'static> {
        I::name()
    }

    fn spawn_tasks_for_methods(&self) -> bool {
        self.inner.spawn_tasks_for_methods()
    }

    async fn get(
        &self,
        property: &str,
        server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        emitter: &SignalEmitter<'_>,
    ) -> Option<fdo::Result<OwnedValue>> {
        self.inner.get(property, server, connection, header, emitter).await
    }

    async fn get_all(
        &self,
        server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        emitter: &SignalEmitter<'_>,
    ) -> fdo::Result<HashMap<String, OwnedValue>> {
        self.inner.get_all(server, connection, header, emitter).await
    }

    async fn set_mut(
        &mut self,
        property: &str,
        value: &Value<'_>,
        server: &ObjectServer,
        connection: &Connection,
        header: Option<&Header<'_>>,
        emitter: &SignalEmitter<'_>,
    ) -> Option<fdo::Result<()>> {
        self.inner.set_mut(property, value, server, connection, header, emitter).await
    }

    fn call<'call>(
        &'call self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        match self.callers.may_call(&message.header()) {
            Ok(()) => self.inner.call(server, connection, message, name),
            Err(wrong) => {
                let refused = (self.refuse)(wrong);
                DispatchResult::new_async(connection, message, async move { Err::<(), E>(refused) })
            }
        }
    }

    /// Nobody comes here but by [`Interface::call`].
    fn call_mut<'call>(
        &'call mut self,
        server: &'call ObjectServer,
        connection: &'call Connection,
        message: &'call Message,
        name: MemberName<'call>,
    ) -> DispatchResult<'call> {
        self.inner.call_mut(server, connection, message, name)
    }

    fn introspect_to_writer(&self, writer: &mut dyn Write, level: usize) {
        self.inner.introspect_to_writer(writer, level);
    }
}
