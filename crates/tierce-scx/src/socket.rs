//! The control socket of a running plan: a line of JSON asks, a line of JSON answers.
//!
//! Requests have `version` 1 and `request`; answers have `version`, `ok`, and either `answer` or `error`. What requests
//! there are is up to who serves them. The socket belongs to root and the server's user; nobody else is heard. A client
//! is never waited for: what it sends is read as it comes, up to [`REQUEST_MAX`]; who is too slow or says too much is
//! hung up on.

use crate::listener::{Listener, Words};
use anyhow::{ensure, Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::borrow::Cow;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tierce_plan::Edit;

/// Version of requests and answers.
pub const VERSION: u64 = 1;
/// Longest request, bytes: a plan with all its files.
pub const REQUEST_MAX: usize = 8 << 20;
/// Clients at a time.
const CLIENTS_MAX: usize = 16;
/// Read from one client per turn, bytes.
const TURN_MAX: usize = 1 << 20;
/// Most requests fit.
type Block = [u8; 1 << 10];
/// A client with an unfinished request or an answer that it does not read is hung up on after this.
const SLOW: Duration = Duration::from_secs(10);
/// How long a client waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long if a kernel object may have to be verified before.
pub const PATIENCE_RELOAD: Duration = Duration::from_secs(600);

/// Where a plan in force listens.
pub const PATH: &str = "/run/tierce.sock";

/// The control socket: as given, else of the environment, else the usual one.
pub fn path(given: Option<PathBuf>) -> PathBuf {
    let named = || std::env::var_os("TIERCE_SOCKET").filter(|path| !path.is_empty()).map(PathBuf::from);
    given.or_else(named).unwrap_or_else(|| PATH.into())
}

/// What a client hears: the answer, or what is wrong (a rule in snake_case, a sentence).
pub type Served<T = Value> = Result<T, (String, String)>;

/// Of who serves a request: the answer has been written, or what is wrong.
pub type Said = Result<(), (String, String)>;

/// Who serves requests: each, and where its answer is written as JSON.
pub type Serve<'s> = &'s mut dyn FnMut(Asked, &mut Vec<u8>) -> Said;

/// A request.
pub struct Asked<'a> {
    /// What is asked for.
    pub request: Cow<'a, str>,
    /// The operation of a request for one, as it usually is; not everything that JSON can say about it in other ways
    /// ([`Asked::value`]).
    pub edit: Option<EditAsked>,
    line: &'a [u8],
}

/// One operation, and how it is asked for.
pub struct EditAsked {
    /// What is to be done.
    pub edit: Edit,
    /// How.
    pub manner: Manner,
}

/// How a change is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Try it only.
    pub dry_run: bool,
    /// Another kernel object may take over, should this one lack something.
    pub reload: bool,
    /// Say what is not proved any more.
    pub prove: bool,
    /// What it makes may only be where its thread may run.
    pub limited: bool,
}

impl Manner {
    /// As a request says.
    pub fn of(request: &Value) -> Manner {
        let is = |key: &str| request[key] == true;
        Manner { dry_run: is("dry_run"), reload: is("reload"), prove: is("prove"), limited: false }
    }
}

impl Asked<'_> {
    /// All of it.
    pub fn value(&self) -> Value {
        serde_json::from_slice(self.line).unwrap_or_default()
    }
}

/// Write an answer.
pub fn say(answer: &impl Serialize, out: &mut Vec<u8>) -> Said {
    serde_json::to_writer(out, answer).map_err(|error| ("answer".into(), error.to_string()))
}

struct Client {
    stream: UnixStream,
    asked: Vec<u8>,
    answer: Vec<u8>,
    /// Since when it has owed us something.
    since: Instant,
    open: bool,
}

/// The socket.
pub struct Server {
    listener: Listener,
    clients: Vec<Client>,
    /// What is read comes here first.
    block: Box<Block>,
    /// Somebody wants to be let in.
    knocked: bool,
    /// The user that runs this.
    me: u32,
}

impl Server {
    /// Listen at `path`. A socket that nobody answers is replaced; one that somebody does is not.
    pub fn bind(path: &Path) -> Result<Server> {
        let words = Words {
            is_taken: "a plan is in force already (tierce apply changes it; --socket PATH for another)",
            dead: "run",
            what: "the control socket (--socket PATH)",
        };
        let listener = Listener::bind(path, 0o600, &words)?;
        let (clients, block) = (Vec::new(), Box::new([0; 1 << 10]));
        // SAFETY: no arguments.
        let me = unsafe { libc::geteuid() };
        Ok(Server { listener, clients, block, knocked: false, me })
    }

    /// Sleep until somebody wants something, at most that long; whether somebody does.
    pub fn wait(&mut self, most: Duration) -> bool {
        let poll = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
        let mut list = vec![poll(
            self.listener.as_raw_fd(),
            if self.clients.len() < CLIENTS_MAX { libc::POLLIN } else { 0 },
        )];
        list.extend(self.clients.iter().map(|client| {
            let events = if client.answer.is_empty() { libc::POLLIN } else { libc::POLLOUT };
            poll(client.stream.as_raw_fd(), events)
        }));
        let most_ms = most.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128);
        // SAFETY: the array has the length that is passed.
        let ready =
            unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, most_ms as libc::c_int) };
        self.knocked = list[0].revents != 0;
        ready > 0
    }

    /// Serve who has asked, without waiting for anybody: whom [`Server::wait`] has seen.
    pub fn turn(&mut self, serve: Serve) {
        if std::mem::take(&mut self.knocked) && self.clients.len() < CLIENTS_MAX {
            if let Some(stream) = self.let_in() {
                let (asked, answer) = (Vec::new(), Vec::new());
                self.clients.push(Client { stream, asked, answer, since: Instant::now(), open: true });
            }
        }
        for client in &mut self.clients {
            client.turn(serve, &mut self.block);
        }
        self.clients.retain(|client| client.open);
    }

    /// The next one who knocks: root, or who runs this; the file's mode says so, too.
    fn let_in(&self) -> Option<UnixStream> {
        let (stream, who) = self.listener.accept()?;
        (who.uid == 0 || who.uid == self.me).then_some(stream)
    }
}

impl Client {
    fn turn(&mut self, serve: Serve, block: &mut Block) {
        self.send();
        if self.answer.is_empty() && self.open {
            let ended = self.read(block);
            if let Some(end) = self.asked.iter().position(|&byte| byte == b'\n') {
                answer(&self.asked[..=end], serve, &mut self.answer);
                self.asked.drain(..=end);
                self.since = Instant::now();
            } else if self.asked.len() > REQUEST_MAX {
                self.asked.clear();
                let most = format!("a request has at most {REQUEST_MAX} bytes");
                refuse("request_too_long", &most, &mut self.answer);
                self.send();
                self.open = false;
            } else if ended {
                self.open = false;
            }
            self.send();
        }
        let owes = !self.answer.is_empty() || !self.asked.is_empty();
        if owes && self.since.elapsed() > SLOW {
            self.open = false;
        }
    }

    /// What has come, but no more than one turn's worth; whether that was the end.
    fn read(&mut self, block: &mut Block) -> bool {
        let before = self.asked.len();
        while self.asked.len() - before < TURN_MAX && self.asked.len() <= REQUEST_MAX {
            match self.stream.read(block) {
                Ok(0) => return true,
                Ok(length) => {
                    if self.asked.is_empty() {
                        self.since = Instant::now();
                    }
                    self.asked.extend_from_slice(&block[..length]);
                    if length < block.len() {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
        false
    }

    fn send(&mut self) {
        while !self.answer.is_empty() {
            match self.stream.write(&self.answer) {
                Ok(length) if length > 0 => _ = self.answer.drain(..length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => {
                    self.open = false;
                    return;
                }
            }
        }
    }
}

fn refuse(rule: &str, message: &str, out: &mut Vec<u8>) {
    out.clear();
    let said = json!({ "version": VERSION, "ok": false, "error": { "rule": rule, "message": message } });
    let _ = writeln!(out, "{said}"); // a vector takes it
}

/// What every request has, and what the one has that has to be fast: so it is read in one pass.
#[derive(Deserialize)]
struct Line<'a> {
    version: u64,
    #[serde(borrow)]
    request: Cow<'a, str>,
    edit: Option<Edit>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    reload: bool,
    #[serde(default)]
    prove: bool,
}

/// Serve a request; `out`, which is empty, gets the line to answer.
fn answer(line: &[u8], serve: Serve, out: &mut Vec<u8>) {
    let asked = match serde_json::from_slice::<Line>(line) {
        Ok(Line { version: VERSION, request, edit, dry_run, reload, prove }) => {
            let manner = Manner { dry_run, reload, prove, limited: false };
            Asked { request, edit: edit.map(|edit| EditAsked { edit, manner }), line }
        }
        _ => {
            let request: Value = match serde_json::from_slice(line) {
                Ok(request) => request,
                Err(error) => return refuse("request_must_be_json", &error.to_string(), out),
            };
            if request["version"].as_u64() != Some(VERSION) {
                let known = format!("this tierce speaks version {VERSION}");
                return refuse("version_must_be_known", &known, out);
            }
            let request = request["request"].as_str().unwrap_or_default().to_string();
            Asked { request: request.into(), edit: None, line }
        }
    };
    let _ = write!(out, "{{\"version\":{VERSION},\"ok\":true,\"answer\":");
    match serve(asked, out) {
        Ok(()) => out.extend_from_slice(b"}\n"),
        Err((rule, message)) => refuse(&rule, &message, out),
    }
}

/// A way to the plan in force, for one request after another.
pub struct Connection {
    stream: UnixStream,
    shown: String,
    patience: Duration,
}

#[derive(Deserialize)]
struct Reply<T> {
    version: Option<u64>,
    #[serde(default)]
    ok: bool,
    answer: Option<T>,
    error: Option<Wrong>,
}

#[derive(Deserialize)]
struct Wrong {
    rule: String,
    message: String,
}

/// Requests that are longer may have to wait until the other end has read a part.
const SHORT: usize = 1 << 15;

impl Connection {
    /// To who listens at `path`.
    pub fn open(path: &Path) -> Result<Connection> {
        let shown = path.display().to_string();
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                anyhow::anyhow!("no plan is in force: nobody answers at {shown} (tierce run PLAN)")
            }
            _ => anyhow::anyhow!("{shown}: {error}"),
        })?;
        Ok(Connection { stream, shown, patience: PATIENCE })
    }

    /// Sleep until there is something to read. A read would be woken up, too, when the other end has read the request: a switch
    /// there and back for nothing.
    fn await_answer(&self) -> Result<(), Error> {
        let mut one = libc::pollfd { fd: self.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            // SAFETY: one structure.
            match unsafe { libc::poll(&mut one, 1, self.patience.as_millis() as libc::c_int) } {
                0 => return Err(ErrorKind::TimedOut.into()),
                -1 if Error::last_os_error().kind() == ErrorKind::Interrupted => {}
                _ => return Ok(()), // the read says what else there is
            }
        }
    }

    /// Ask. A request is a table that has `request`; the answer is read as far as it is wanted. The outer error: nobody answers, or
    /// not in our language.
    pub fn ask<T: DeserializeOwned + Default>(&mut self, request: &impl Serialize) -> Result<Served<T>> {
        let mut line = format!("{{\"version\":{VERSION},").into_bytes();
        let begin = line.len();
        serde_json::to_writer(&mut line, request)?;
        ensure!(line.get(begin) == Some(&b'{'), "a request is a table");
        line.remove(begin);
        ensure!(
            line.len() < REQUEST_MAX,
            "the plan with all its files is longer than {} MiB",
            REQUEST_MAX >> 20
        );
        line.push(b'\n');
        if line.len() > SHORT {
            self.stream.set_write_timeout(Some(PATIENCE))?;
        }
        let hung_up = || format!("{}: the plan in force has hung up", self.shown);
        (&self.stream).write_all(&line).with_context(hung_up)?;
        let (mut text, mut block) = (Vec::new(), [0; 1 << 10]);
        while text.last() != Some(&b'\n') {
            self.await_answer().with_context(hung_up)?;
            match (&self.stream).read(&mut block) {
                Ok(0) => break,
                Ok(length) => text.extend_from_slice(&block[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(hung_up),
            }
        }
        ensure!(!text.is_empty(), hung_up());
        let reply: Reply<T> =
            serde_json::from_slice(&text).with_context(|| format!("{}: not an answer", self.shown))?;
        ensure!(
            reply.version == Some(VERSION),
            "{}: an answer of another version: {}",
            self.shown,
            String::from_utf8_lossy(&text)
        );
        if reply.ok {
            return Ok(Ok(reply.answer.unwrap_or_default()));
        }
        let unknown = || ("?".to_string(), "?".to_string());
        Ok(Err(reply.error.map_or_else(unknown, |wrong| (wrong.rule, wrong.message))))
    }
}

/// Ask the plan in force at `path`, once.
pub fn ask(path: &Path, request: impl Serialize) -> Result<Served> {
    ask_within(path, request, PATIENCE)
}

/// Likewise, and wait so long for the answer.
pub fn ask_within(path: &Path, request: impl Serialize, patience: Duration) -> Result<Served> {
    let mut connection = Connection::open(path)?;
    connection.patience = patience;
    connection.ask(&request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tierce-socket-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn serve(asked: Asked, out: &mut Vec<u8>) -> Said {
        match &*asked.request {
            "echo" => say(&asked.value()["text"], out),
            "long" => say(&"x".repeat(4 << 20), out),
            other => Err(("request_must_be_known".into(), format!("{other:?}"))),
        }
    }

    fn turns(server: &mut Server, count: usize) {
        for _ in 0..count {
            server.wait(Duration::from_millis(5));
            server.turn(&mut serve);
        }
    }

    /// What the server says to these bytes.
    fn said(server: &mut Server, bytes: &[u8]) -> String {
        let mut client = UnixStream::connect(server.listener.path()).unwrap();
        client.write_all(bytes).unwrap();
        turns(server, 5);
        client.set_nonblocking(true).unwrap();
        let mut block = vec![0; 1 << 16];
        let length = client.read(&mut block).unwrap_or(0);
        String::from_utf8_lossy(&block[..length]).into_owned()
    }

    #[test]
    fn who_asks_is_answered() {
        let path = place("asks");
        let mut server = Server::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let at = path.clone();
        let client = std::thread::spawn(move || {
            let echo = ask(&at, json!({ "request": "echo", "text": "é\n" })).unwrap();
            let long = ask(&at, json!({ "request": "long" })).unwrap().unwrap();
            let mut connection = Connection::open(&at).unwrap();
            for number in 0..3 {
                let request = json!({ "request": "echo", "text": number });
                assert_eq!(connection.ask::<Value>(&request).unwrap(), Ok(number.into()));
            }
            let unknown = connection.ask::<Value>(&json!({ "request": "?" })).unwrap();
            assert!(connection.ask::<Value>(&7).is_err(), "no request");
            (echo, long.as_str().unwrap().len(), unknown)
        });
        while !client.is_finished() {
            turns(&mut server, 1);
        }
        let (echo, long, unknown) = client.join().unwrap();
        assert_eq!((echo, long), (Ok("é\n".into()), 4 << 20));
        assert_eq!(unknown.unwrap_err().0, "request_must_be_known");
        drop(server);
        assert!(!path.exists());
        let error = ask(&path, json!({ "request": "echo" })).unwrap_err().to_string();
        assert!(error.starts_with("no plan is in force"), "{error}");
    }

    #[test]
    fn rude_clients_are_told_and_hung_up_on() {
        let path = place("rude");
        let mut server = Server::bind(&path).unwrap();
        for (bytes, expected) in [
            (&b"{\"version\":1,\"request\":\"echo\",\"text\":7}\n"[..], "\"answer\":7"),
            (b"garbage\n", "request_must_be_json"),
            (b"\xff\xfe\n", "request_must_be_json"),
            (b"[]\n", "version_must_be_known"),
            (b"{\"version\":2,\"request\":\"echo\"}\n", "version_must_be_known"),
            (b"{\"version\":1}\n", "request_must_be_known"),
            (b"{\"version\":1,\"request\":7}\n", "request_must_be_known"),
            (b"{\"version\":1,\"request\":\"no\",\"request\":\"echo\",\"text\":7}\n", "\"answer\":7"),
            (b"{\"version\":1,\"request\":", ""), // the rest never comes
            (b"", ""),
        ] {
            let text = said(&mut server, bytes);
            assert!(if expected.is_empty() { text.is_empty() } else { text.contains(expected) }, "{text}");
        }
        turns(&mut server, 3);
        assert!(server.clients.is_empty(), "they have all gone");
        // Two requests at once: one answer each, in order.
        let two = b"{\"version\":1,\"request\":\"echo\",\"text\":1}\n{\"version\":1,\"request\":\"echo\",\"text\":2}\n";
        let text = said(&mut server, two);
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn a_request_without_end_is_cut_off() {
        let path = place("endless");
        let mut server = Server::bind(&path).unwrap();
        let at = path.clone();
        let client = std::thread::spawn(move || {
            let mut client = UnixStream::connect(at).unwrap();
            let block = vec![b'x'; 1 << 20];
            let mut sent = 0;
            while sent <= 4 * REQUEST_MAX && client.write_all(&block).is_ok() {
                sent += block.len();
            }
            let mut text = String::new();
            let _ = client.read_to_string(&mut text);
            (sent, text)
        });
        while !client.is_finished() {
            turns(&mut server, 1);
            assert!(server.clients.iter().all(|client| client.asked.len() <= REQUEST_MAX + (1 << 16)));
        }
        let (sent, _) = client.join().unwrap();
        assert!(sent <= REQUEST_MAX + (4 << 20), "{sent}");
        turns(&mut server, 2);
        assert!(server.clients.is_empty());
    }

    #[test]
    fn slow_clients_stop_nobody() {
        let path = place("slow");
        let mut server = Server::bind(&path).unwrap();
        // Some who say nothing, half a request, or do not read a long answer; more than there is room for.
        let mut slow = Vec::new();
        for n in 0..CLIENTS_MAX + 4 {
            let mut client = UnixStream::connect(&path).unwrap();
            match n % 3 {
                0 => {}
                1 => client.write_all(b"{\"version\":1,").unwrap(),
                _ => client.write_all(b"{\"version\":1,\"request\":\"long\"}\n").unwrap(),
            }
            slow.push(client);
        }
        let begun = Instant::now();
        turns(&mut server, CLIENTS_MAX + 4); // one is let in per turn
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert_eq!(server.clients.len(), CLIENTS_MAX);
        for client in &mut server.clients {
            client.since -= SLOW;
        }
        server.turn(&mut serve);
        let left = server.clients.len();
        assert!(left < CLIENTS_MAX, "who owed something is gone: {left}");
        drop(slow);
        turns(&mut server, 5);
        assert!(
            said(&mut server, b"{\"version\":1,\"request\":\"echo\",\"text\":7}\n").contains("\"answer\":7")
        );
    }

    #[test]
    fn the_socket_of_a_dead_run_is_replaced_and_no_other() {
        let path = place("stale");
        let mut server = Server::bind(&path).unwrap();
        let error = Server::bind(&path).err().unwrap().to_string();
        assert!(error.contains("a plan is in force already"), "{error}");
        turns(&mut server, 2);
        std::mem::forget(server); // as kill -9 leaves it, but for the descriptor
        let stale = place("stale-too");
        drop(UnixListener::bind(&stale).unwrap());
        let server = Server::bind(&stale).unwrap();
        fs::remove_file(&stale).unwrap();
        fs::write(&stale, "something").unwrap();
        drop(server);
        assert_eq!(fs::read_to_string(&stale).unwrap(), "something", "not ours any more");
        let error = Server::bind(&stale).err().unwrap().to_string();
        assert!(error.contains("something else than a socket"), "{error}");
        assert!(Server::bind(Path::new("/nowhere/tierce.sock")).is_err());
        fs::remove_file(&stale).unwrap();
        fs::remove_file(&path).unwrap();
    }
}
