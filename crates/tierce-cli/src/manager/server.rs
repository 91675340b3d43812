//! The socket of the manager: everybody may connect, and the kernel says who it is. A line of JSON asks, a line of JSON answers; whoever
//! watches gets a line for each event.
//!
//! Nobody is waited for. A client that leaves a request unfinished or an answer unread is hung up on, and so is one that says nothing.
//! Each person ([`People`](crate::manager::people::People)) has so many connections and so many requests per second; the system has room
//! beside them.

use crate::manager::rates::Rates;
use crate::manager::unit::Units;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tierce_manager::{Answer, Ask, Asker, News, Notice, Wrong, VERSION};
use tierce_scx::listener::{Listener, Words};

/// Longest request, bytes.
const REQUEST_MAX: usize = 1 << 16;
/// What a client may leave unread, bytes.
const UNREAD_MAX: usize = 1 << 18;
/// Connections of one person.
const EACH_MAX: usize = 8;
/// Connections of all.
const PERSONS_MAX: usize = 240;
/// Connections of the system beside them.
const SYSTEM_MAX: usize = 16;
/// Let in per turn: who has asked waits for no more of those who have knocked.
const ACCEPTED_MAX: usize = 16;
/// Until the first request; for the rest of one; for an answer to be read.
const SLOW: Duration = Duration::from_secs(5);
/// Between two requests.
const IDLE: Duration = Duration::from_secs(60);

/// Who answers.
pub type Serve<'s> = &'s mut dyn FnMut(&Asker, Ask) -> Result<Answer, Wrong>;

pub struct Server {
    listener: Listener,
    clients: Vec<Client>,
    rates: Rates,
    units: Units,
}

/// As it is sent.
#[derive(Serialize)]
struct Said {
    version: u64,
    ok: bool,
    answer: Answer,
}

struct Client {
    stream: UnixStream,
    asker: Asker,
    /// Whose groups and unit are not known yet.
    unknown: Option<libc::ucred>,
    /// For whom the bounds are.
    person: u32,
    asked: Vec<u8>,
    answer: Vec<u8>,
    /// Since when it owes something, or has said nothing.
    since: Instant,
    /// Since when there is a request that has not ended.
    begun: Instant,
    has_asked: bool,
    watches: bool,
    open: bool,
}

impl Server {
    /// Listen at `path`, for everybody. A socket that nobody answers is replaced.
    pub fn bind(path: &Path, rates: Rates, units: Units) -> Result<Server> {
        let words = Words {
            is_taken: "a manager is running already (--listen PATH for another)",
            dead: "manager",
            what: "the manager's socket (--listen PATH)",
        };
        let listener = Listener::bind(path, 0o666, &words)?;
        Ok(Server { listener, clients: Vec::new(), rates, units })
    }

    /// Sleep until somebody wants something, here or where `others` are, at most that long.
    pub fn wait(&self, others: RawFd, most: Duration) {
        let poll = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
        let mut list = vec![poll(self.listener.as_raw_fd(), libc::POLLIN), poll(others, libc::POLLIN)];
        list.extend(self.clients.iter().map(|client| {
            let events = if client.answer.is_empty() { libc::POLLIN } else { libc::POLLOUT };
            poll(client.stream.as_raw_fd(), events)
        }));
        let is_asked = self.clients.iter().any(Client::has_line);
        let most_ms =
            if is_asked { 0 } else { most.as_nanos().div_ceil(1_000_000).min(60_000) as libc::c_int };
        // SAFETY: the array has the length that is passed.
        unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, most_ms) };
    }

    /// Serve who has asked: one request of each person, however many connections and user ids he has.
    pub fn turn(&mut self, serve: Serve) {
        let mut persons = HashSet::new();
        let (mut clients, mut served) = (Vec::new(), Vec::new());
        for mut client in std::mem::take(&mut self.clients) {
            let is_served = client.turn(serve, &self.rates, &self.units, &mut persons);
            if client.open {
                if is_served { &mut served } else { &mut clients }.push(client);
            }
        }
        clients.append(&mut served); // next time after the others
        self.clients = clients;
        self.let_in();
    }

    /// Who watches is told.
    pub fn tell(&mut self, notices: &[Notice]) {
        for client in self.clients.iter_mut().filter(|client| client.watches) {
            if client.answer.is_empty() {
                client.since = Instant::now();
            }
            for notice in notices.iter().filter(|notice| client.asker.acts_for(&notice.to)) {
                let _ = writeln!(client.answer, "{}", json!({ "version": VERSION, "event": notice }));
                // a vector takes it
            }
            client.open &= client.answer.len() <= UNREAD_MAX;
            client.send();
        }
    }

    /// Somebody watches who acts for the system.
    pub fn is_watched_by_system(&self) -> bool {
        self.clients.iter().any(|client| client.watches && client.asker.is_system())
    }

    /// Who is connected, beside the system.
    pub fn persons(&self) -> impl Iterator<Item = u32> + '_ {
        self.clients.iter().map(|client| client.person).filter(|person| *person != 0)
    }

    fn let_in(&mut self) {
        for _ in 0..ACCEPTED_MAX {
            let Some((stream, who)) = self.listener.accept() else { return };
            if who.uid == u32::MAX {
                continue;
            }
            let person = self.rates.people.person(who.uid);
            let theirs = self.clients.iter().filter(|client| client.person == person).count();
            let has_room = match person {
                0 => theirs < SYSTEM_MAX,
                _ => theirs < EACH_MAX && self.persons().count() < PERSONS_MAX,
            };
            let mut client = Client {
                stream,
                asker: Asker::user(who.uid),
                unknown: Some(who),
                person,
                asked: Vec::new(),
                answer: Vec::new(),
                since: Instant::now(),
                begun: Instant::now(),
                has_asked: false,
                watches: false,
                open: true,
            };
            if has_room {
                self.clients.push(client);
            } else {
                client.refuse("too_many_connections", &format!("a person has at most {EACH_MAX}"));
                client.send(); // as far as that is possible; then it is dropped
            }
        }
    }
}

/// What is asked of the socket itself: to watch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Watch {
    #[serde(default)]
    after: u64,
}

impl Client {
    /// What has come is read, what is left is sent, and a request is served, unless one of these persons' was; whether it was.
    fn turn(&mut self, serve: Serve, rates: &Rates, units: &Units, persons: &mut HashSet<u32>) -> bool {
        self.send();
        let ended = self.open && self.answer.len() < UNREAD_MAX && self.read();
        let is_served = self.has_line() && self.open && persons.insert(self.person);
        if is_served {
            self.serve(serve, rates, units);
        }
        if self.asked.len() > REQUEST_MAX {
            self.refuse("request_too_long", &format!("a request has at most {REQUEST_MAX} bytes"));
            self.send();
            self.open = false;
        }
        let owes = !self.answer.is_empty() || !self.asked.is_empty() || !self.has_asked;
        let patience = if owes { SLOW } else { IDLE };
        // What it is told meanwhile is no reason to wait for the rest.
        let is_unfinished = !self.asked.is_empty() && !self.has_line() && self.begun.elapsed() > SLOW;
        let is_late = is_unfinished || self.since.elapsed() > patience && (owes || !self.watches);
        self.open &= (self.has_line() || !ended) && !is_late;
        is_served
    }

    /// A whole request, and nothing of an answer is left to be read.
    fn has_line(&self) -> bool {
        (self.answer.is_empty() || self.watches) && self.asked.contains(&b'\n')
    }

    /// One request: others have their turn before the next.
    fn serve(&mut self, serve: Serve, rates: &Rates, units: &Units) {
        let end = self.asked.iter().position(|&byte| byte == b'\n').unwrap_or(0);
        let rest = self.asked.split_off(end + 1);
        let line = std::mem::replace(&mut self.asked, rest);
        (self.since, self.begun, self.has_asked) = (Instant::now(), Instant::now(), true);
        if let Err(wrong) = rates.may_ask(self.person) {
            self.refuse(&wrong.rule, &wrong.message);
            self.send();
            self.open = false;
            return;
        }
        // What costs something, once it is clear that this person may ask.
        if let Some(who) = self.unknown.take().filter(|who| who.uid != 0) {
            self.asker.groups = groups(&self.stream, who.gid);
            let of = units.of_peer(&self.stream, who.pid);
            (self.asker.unit, self.asker.container) = (of.unit, of.container);
        }
        match self.answered(&line, serve) {
            Ok(answer) => {
                let _ = serde_json::to_writer(&mut self.answer, &Said { version: VERSION, ok: true, answer });
                self.answer.push(b'\n');
            }
            Err(wrong) => self.refuse(&wrong.rule, &wrong.message),
        }
        self.since = Instant::now();
        self.send();
    }

    fn answered(&mut self, line: &[u8], serve: Serve) -> Result<Answer, Wrong> {
        let wrong = |rule: &str, error: serde_json::Error| Wrong::new(rule, error.to_string());
        let request: Value =
            serde_json::from_slice(line).map_err(|error| wrong("request_must_be_json", error))?;
        let Value::Object(mut request) = request else {
            return Err(Wrong::new("request_must_be_json", "a request is a table"));
        };
        if request.remove("version").and_then(|version| version.as_u64()) != Some(VERSION) {
            return Err(Wrong::new("version_must_be_known", format!("this tierce speaks version {VERSION}")));
        }
        if request.get("request").and_then(Value::as_str) == Some("watch") {
            request.remove("request");
            let watch = serde_json::from_value::<Watch>(request.into());
            let watch = watch.map_err(|error| wrong("request_must_be_known", error))?;
            self.watches = true;
            return serve(&self.asker, Ask::News(News { after: watch.after }));
        }
        let ask = serde_json::from_value::<Ask>(request.into())
            .map_err(|error| wrong("request_must_be_known", error))?;
        serve(&self.asker, ask)
    }

    /// What has come; whether that was the end.
    fn read(&mut self) -> bool {
        let mut block = [0; 1 << 12];
        while self.asked.len() <= REQUEST_MAX {
            match self.stream.read(&mut block) {
                Ok(0) => return true,
                Ok(length) => {
                    if self.asked.is_empty() {
                        (self.since, self.begun) = (Instant::now(), Instant::now());
                    }
                    self.asked.extend_from_slice(&block[..length]);
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
                Ok(length) if length > 0 => {
                    self.answer.drain(..length);
                    self.since = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => {
                    self.open = false;
                    return;
                }
            }
        }
    }

    fn refuse(&mut self, rule: &str, message: &str) {
        let said = json!({ "version": VERSION, "ok": false, "error": { "rule": rule, "message": message } });
        let _ = writeln!(self.answer, "{said}"); // a vector takes it
    }
}

/// Groups of a user, at most.
const GROUPS_MAX: usize = 1 << 10;

/// The groups of who is at the other end, as the kernel says.
fn groups(stream: &UnixStream, own: u32) -> Vec<u32> {
    let mut groups = vec![0u32; GROUPS_MAX];
    let mut bytes = (GROUPS_MAX * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: the array has the length that is passed.
    let listed = unsafe {
        let (fd, at) = (stream.as_raw_fd(), groups.as_mut_ptr().cast());
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERGROUPS, at, &mut bytes)
    };
    groups.truncate(if listed == 0 { bytes as usize / size_of::<u32>() } else { 0 });
    groups.push(own);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::people::{tests::Folder, People};
    use crate::manager::rates::BURST;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use tierce_manager::{Principal, State, What, NAMELESS};

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tierce-manager-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn rates() -> Rates {
        Rates::new(People::of(Path::new("/")))
    }

    /// As the kernel would say of another process.
    fn be(client: &mut Client, uid: u32) {
        (client.asker, client.person) = (Asker::user(uid), uid);
    }

    /// Connected by that user; only root can be somebody else. The system call changes the user of this thread alone.
    fn connected(path: &Path, uid: u32) -> UnixStream {
        const SAME: u32 = u32::MAX;
        // SAFETY: no arguments but numbers.
        let be = |uid: u32| unsafe { libc::syscall(libc::SYS_setresuid, SAME, uid, SAME) };
        assert_eq!(be(uid), 0);
        let stream = UnixStream::connect(path);
        assert_eq!(be(0), 0);
        stream.unwrap()
    }

    fn is_root() -> bool {
        // SAFETY: no arguments.
        unsafe { libc::geteuid() == 0 }
    }

    fn turns(server: &mut Server, count: usize) {
        for _ in 0..count {
            server.wait(-1, Duration::from_millis(5)); // nobody else
            server.turn(&mut |_, _| Ok(Answer::new(State::Done)));
        }
    }

    /// What the server says to these bytes.
    fn said(server: &mut Server, bytes: &[u8]) -> (UnixStream, String) {
        let mut client = UnixStream::connect(server.listener.path()).unwrap();
        client.write_all(bytes).unwrap();
        turns(server, 6);
        client.set_nonblocking(true).unwrap();
        let text = heard(&mut client);
        (client, text)
    }

    fn heard(client: &mut UnixStream) -> String {
        let mut block = vec![0; 1 << 16];
        let length = client.read(&mut block).unwrap_or(0);
        String::from_utf8_lossy(&block[..length]).into_owned()
    }

    fn notice(uid: u32, text: String) -> Notice {
        let (to, what) = (Principal::User(uid), What::Granted);
        Notice { number: 1, to, id: Some(7), what, text, within_ms: None, mode: None, part: None }
    }

    const LIST: &[u8] = b"{\"version\":1,\"request\":\"list\"}\n";

    #[test]
    fn who_asks_is_answered_and_who_asks_badly_is_told() {
        let path = place("asks");
        let mut server = Server::bind(&path, rates(), Units::default()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        for (bytes, expected) in [
            (LIST, "\"ok\":true"),
            (b"garbage\n", "request_must_be_json"),
            (b"[]\n", "request_must_be_json"),
            (b"{\"request\":\"list\"}\n", "version_must_be_known"),
            (b"{\"version\":2,\"request\":\"list\"}\n", "version_must_be_known"),
            (b"{\"version\":1,\"request\":\"no\"}\n", "request_must_be_known"),
            (b"{\"version\":1,\"request\":\"list\",\"more\":1}\n", "request_must_be_known"),
            (b"{\"version\":1,\"request\":\"watch\",\"more\":1}\n", "request_must_be_known"),
            (b"{\"version\":1,\"request\":\"request\",\"budgte\":1}\n", "request_must_be_known"),
            (b"{\"version\":1,\"request\":\"cancel\",\"id\":-1}\n", "request_must_be_known"),
            (b"{\"version\":1,", ""), // the rest never comes
        ] {
            let (_, text) = said(&mut server, bytes);
            assert!(if expected.is_empty() { text.is_empty() } else { text.contains(expected) }, "{text}");
        }
        turns(&mut server, 3);
        assert!(server.clients.is_empty(), "they have all gone");
        // Three at once: an answer each.
        let (_, text) = said(&mut server, &[LIST, LIST, LIST].concat());
        assert_eq!(text.lines().count(), 3, "{text}");
        let error = Server::bind(&path, rates(), Units::default()).err().unwrap().to_string();
        assert!(error.contains("a manager is running already"), "{error}");
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn who_watches_is_told_what_is_for_him_until_he_does_not_read() {
        let mut server = Server::bind(&place("watches"), rates(), Units::default()).unwrap();
        let (mut client, text) = said(&mut server, b"{\"version\":1,\"request\":\"watch\"}\n");
        assert!(text.contains("\"ok\":true"), "{text}");
        be(&mut server.clients[0], 0);
        assert!(server.is_watched_by_system());
        be(&mut server.clients[0], 1000);
        assert!(!server.is_watched_by_system());
        server.tell(&[notice(1001, "no".into()), notice(1000, "yes".into())]);
        let text = heard(&mut client);
        assert!(text.contains("\"yes\"") && text.lines().count() == 1, "{text}");
        for _ in 0..100 {
            server.tell(&[notice(1000, "x".repeat(1 << 14))]);
        }
        turns(&mut server, 1);
        assert!(server.clients.is_empty(), "nobody is waited for");
    }

    #[test]
    fn who_watches_and_leaves_a_request_unfinished_is_hung_up_on() {
        let mut server = Server::bind(&place("unfinished"), rates(), Units::default()).unwrap();
        let (mut client, text) = said(&mut server, b"{\"version\":1,\"request\":\"watch\"}\n{\"version\":1,");
        assert!(text.contains("\"ok\":true"), "{text}");
        turns(&mut server, 1);
        assert_eq!(server.clients.len(), 1);
        server.clients[0].begun -= SLOW + Duration::from_millis(1);
        be(&mut server.clients[0], 1000);
        server.tell(&[notice(1000, "yes".into())]);
        assert!(heard(&mut client).contains("event"));
        turns(&mut server, 1);
        assert!(server.clients.is_empty());
    }

    #[test]
    fn each_user_has_so_many_connections_and_requests() {
        let mut server = Server::bind(&place("many"), rates(), Units::default()).unwrap();
        let path = server.listener.path().to_path_buf();
        let mut all: Vec<_> = (0..SYSTEM_MAX + 4).map(|_| UnixStream::connect(&path).unwrap()).collect();
        turns(&mut server, 2);
        assert_eq!(server.clients.len(), SYSTEM_MAX);
        let mut last = all.pop().unwrap();
        assert!(heard(&mut last).contains("too_many_connections"));
        // Who says nothing is hung up on, and so is who asks too often.
        server.clients.iter_mut().for_each(|client| client.since -= SLOW);
        turns(&mut server, 1);
        assert!(server.clients.is_empty());
        let mut client = UnixStream::connect(&path).unwrap();
        turns(&mut server, 1);
        be(&mut server.clients[0], 1000);
        let (asked, begun) = (10 * BURST as usize, Instant::now());
        client.write_all(&LIST.repeat(asked)).unwrap();
        client.set_nonblocking(true).unwrap();
        let mut text = String::new();
        for _ in 0..asked + 3 {
            turns(&mut server, 1);
            text += &heard(&mut client);
        }
        let more = 1 + begun.elapsed().as_millis() as usize / 100; // ten per second
        assert!(server.clients.is_empty() && text.contains("too_many_requests_per_second"), "{text}");
        let answered = text.lines().filter(|line| line.contains("\"ok\":true")).count();
        assert!((BURST as usize..=BURST as usize + more).contains(&answered), "{answered}");
    }

    #[test]
    fn requests_of_one_user_stand_before_those_of_another_one_at_a_time() {
        let mut server = Server::bind(&place("turns"), rates(), Units::default()).unwrap();
        let path = server.listener.path().to_path_buf();
        let mut all: Vec<_> = (0..EACH_MAX + 1).map(|_| UnixStream::connect(&path).unwrap()).collect();
        turns(&mut server, 1);
        let users: Vec<u32> = std::iter::repeat_n(1001, EACH_MAX).chain([1002]).collect();
        for (client, uid) in server.clients.iter_mut().zip(users) {
            be(client, uid);
        }
        all.iter_mut().for_each(|client| client.write_all(&LIST.repeat(2)).unwrap());
        let mut asked = Vec::new();
        for _ in 0..2 * EACH_MAX {
            server.turn(&mut |asker, _| {
                asked.push(asker.uid);
                Ok(Answer::new(State::Done))
            });
        }
        assert_eq!(asked[..4], [1001, 1002, 1001, 1002]);
        assert_eq!(asked.len(), 2 * (EACH_MAX + 1));
        // Connections of one user take turns, too.
        all.iter_mut().for_each(|client| assert_eq!(heard(client).lines().count(), 2));
    }

    #[test]
    fn users_of_one_range_are_one_person() {
        if !is_root() {
            return; // nobody else can be somebody else
        }
        let folder = Folder::new("range");
        let path = folder.0.join("socket");
        let mut server = Server::bind(&path, Rates::new(People::of(&folder.0)), Units::default()).unwrap();
        // Alice herself, 300 users of her range, 100 of a container of root's, 100 of nobody's: three would have been enough for all places.
        let (ranges, mut all) =
            ([100_000..100_300, 300_000..300_100, 3_000_000_000..3_000_000_100], Vec::new());
        for uid in std::iter::once(1001).chain(ranges.into_iter().flatten()) {
            all.push(connected(&path, uid));
            turns(&mut server, 1);
        }
        let count = |server: &Server, person| server.persons().filter(|it| *it == person).count();
        assert_eq!((count(&server, 1001), count(&server, NAMELESS)), (EACH_MAX, EACH_MAX));
        assert_eq!(server.clients.len(), 2 * EACH_MAX);
        assert!(heard(all.last_mut().unwrap()).contains("too_many_connections"));
        // Bob is heard, and so is one of his own range.
        for uid in [1002, 165_536] {
            let mut bob = connected(&path, uid);
            bob.write_all(LIST).unwrap();
            turns(&mut server, 2);
            assert!(heard(&mut bob).contains("\"ok\":true"));
        }
    }

    #[test]
    fn users_of_one_range_ask_in_turn_and_no_more_than_one_person() {
        if !is_root() {
            return;
        }
        let folder = Folder::new("asks");
        let path = folder.0.join("socket");
        let mut server = Server::bind(&path, Rates::new(People::of(&folder.0)), Units::default()).unwrap();
        let mut all: Vec<_> = (0..EACH_MAX as u32).map(|n| connected(&path, 100_000 + n)).collect();
        all.push(connected(&path, 1002));
        turns(&mut server, 1);
        all.iter_mut().for_each(|client| client.write_all(&LIST.repeat(4)).unwrap());
        let (mut asked, begun) = (Vec::new(), Instant::now());
        for _ in 0..4 * EACH_MAX {
            server.turn(&mut |asker, _| {
                asked.push(asker.uid);
                Ok(Answer::new(State::Done))
            });
        }
        let more = 1 + begun.elapsed().as_millis() as usize / 100; // ten per second
        assert_eq!((asked[0], asked[1], asked[3], asked[5], asked[7]), (100_000, 1002, 1002, 1002, 1002));
        let of_alice = asked.iter().filter(|uid| **uid != 1002).count();
        assert!(
            (BURST as usize..=BURST as usize + more).contains(&of_alice),
            "{of_alice} of {}",
            4 * EACH_MAX
        );
        let left: Vec<u32> = server.clients.iter().map(|client| client.person).collect();
        assert!(left.contains(&1002), "bob is not hung up on: {left:?}");
    }

    #[test]
    fn a_request_without_end_is_cut_off() {
        let mut server = Server::bind(&place("endless"), rates(), Units::default()).unwrap();
        let path = server.listener.path().to_path_buf();
        let client = std::thread::spawn(move || {
            let mut client = UnixStream::connect(path).unwrap();
            let mut sent = 0;
            while sent < 4 << 20 && client.write_all(&[b'x'; 1 << 12]).is_ok() {
                sent += 1 << 12;
            }
            sent
        });
        while !client.is_finished() {
            turns(&mut server, 1);
            assert!(server.clients.iter().all(|client| client.asked.len() <= REQUEST_MAX + (1 << 13)));
        }
        assert!(client.join().unwrap() < 4 << 20);
    }
}
