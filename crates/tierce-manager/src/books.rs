//! The books: which requests there are, who owns them, and what each has. They are kept in a file by whoever runs the manager, and
//! are all that the manager knows beside the plan in force.

use crate::ask::{Ending, Granted, Notice, Shown, State, What};
use crate::mode::Mode;
use crate::principal::Principal;
use crate::wrong::Wrong;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use tierce_plan::{Edit, Keys};

/// Version of the file.
pub const VERSION: u64 = 1;

/// Notices that are kept for who was not there to hear them.
const NOTICES_MAX: usize = 1024;

/// Parts of the plan that the manager makes have names that begin so.
pub const PREFIX: &str = "grant-";

/// Most texts of requests and notices are shorter, bytes.
const JSON_USUAL: usize = 512;

/// Digits of a number, at most.
const DIGITS_MAX: usize = 20;

/// All that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Books {
    /// [`VERSION`].
    pub version: u64,
    /// The boot of the machine; threads and times mean nothing in another one.
    pub boot: String,
    /// The number of the next request: none is used twice.
    pub next_id: u64,
    /// The number of the next notice.
    pub next_notice: u64,
    /// Those that are granted or pending. Who keeps one sees by its address whether it is still what it was: whoever changes one that
    /// others keep changes a copy. [`Writer`] adds them to what is written.
    #[serde(skip_serializing, deserialize_with = "read_requests")]
    pub requests: BTreeMap<u64, Rc<Request>>,
    /// Users who are there.
    pub users: BTreeSet<u32>,
    /// What rules have added to the plan: the operation that creates each part, by its name.
    pub parts: BTreeMap<String, Edit>,
    /// The last ones, the oldest first. [`Writer`] adds them to what is written.
    #[serde(skip_serializing)]
    pub notices: VecDeque<Notice>,
}

/// Writes books for their file, again and again. There may be a thousand notices, which do not change, and most requests are what they
/// were: each is put into words once.
#[derive(Default)]
pub struct Writer {
    /// All but the notices.
    before: String,
    /// By number.
    requests: BTreeMap<u64, (Rc<Request>, String)>,
    /// Number and length of each that is in the text, and of the comma after it.
    notices: VecDeque<(u64, usize)>,
    /// What they say; before that, what is of no use any more.
    text: String,
    useless: usize,
}

impl Writer {
    /// For the file: one after the other.
    pub fn written(&mut self, books: &Books) -> [&str; 3] {
        self.read_requests(books);
        self.read_notices(books);
        let requests = self.requests.values().map(|(_, text)| text.len() + 1).sum::<usize>();
        let of_all = json(books);
        let text = &mut self.before;
        text.clear();
        text.reserve(of_all.len() + requests + 64);
        text.push_str(&of_all[..of_all.len().saturating_sub(1)]);
        text.push_str(",\"requests\":{");
        for (at, (_, request)) in self.requests.values().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            text.push_str(request);
        }
        text.push_str("},\"notices\":[");
        let notices = &self.text[self.useless..];
        [&self.before, notices.strip_suffix(',').unwrap_or(notices), "]}"]
    }

    fn read_requests(&mut self, books: &Books) {
        let is_same = |is: &Rc<Request>, known: &Rc<Request>| Rc::ptr_eq(is, known) || is == known;
        self.requests.retain(|id, (known, _)| books.requests.get(id).is_some_and(|is| is_same(is, known)));
        for (id, request) in &books.requests {
            let text = || (request.clone(), ["\"", &id.to_string(), "\":", &json(&**request)].concat());
            self.requests.entry(*id).or_insert_with(text);
        }
    }

    fn read_notices(&mut self, books: &Books) {
        let first = books.notices.front().map_or(u64::MAX, |notice| notice.number);
        let old = self.notices.partition_point(|(number, _)| *number < first);
        self.useless += self.notices.drain(..old).map(|(_, length)| length).sum::<usize>();
        if self.useless > self.text.len() / 2 {
            self.text.drain(..self.useless);
            self.useless = 0;
        }
        let next = self.notices.back().map_or(0, |(number, _)| number + 1);
        let new = books.notices.partition_point(|notice| notice.number < next);
        for notice in books.notices.range(new..) {
            let text = json(notice);
            self.notices.push_back((notice.number, text.len() + 1));
            self.text.push_str(&text);
            self.text.push(',');
        }
    }
}

fn read_requests<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u64, Rc<Request>>, D::Error> {
    let requests = BTreeMap::<u64, Request>::deserialize(from)?;
    Ok(requests.into_iter().map(|(id, request)| (id, Rc::new(request))).collect())
}

fn json(of: &impl Serialize) -> String {
    let mut text = Vec::with_capacity(JSON_USUAL);
    let written = serde_json::to_writer(&mut text, of); // strings and numbers: cannot fail
    written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_default()
}

/// A request that is granted or pending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its number.
    pub id: u64,
    /// Whose it is.
    pub owner: Principal,
    /// The user who has asked in the name of another principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
    /// A word for people and rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What else rules may want to know.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub about: Map<String, Value>,
    /// For whom.
    pub target: Target,
    /// How threads share it, or the policy of the scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The most valuable first.
    pub modes: Vec<Mode>,
    /// Only below this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// It stays pending when it cannot be granted, and when it is revoked.
    pub waits: bool,
    /// What it has; nothing: it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Why it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Wrong>,
    /// What it has will be taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Taken>,
    /// How its owner has divided a scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub divided: Vec<Edit>,
}

/// For whom a guarantee is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// A thread. Its number may be another's later, so the time at which it began counts, too.
    Thread {
        /// Its number.
        tid: u32,
        /// When it began, in the kernel's ticks since boot.
        began: u64,
    },
    /// Threads that match any of these.
    Match(Vec<Keys>),
    /// A scheduler, for its owner to divide.
    Scheduler,
}

/// What a request has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Which of its modes.
    pub mode: usize,
    /// The node above.
    pub under: String,
    /// The replica of that node, where a rule has chosen one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// A second parent, for time beyond the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<String>,
    /// Parameters of the edge.
    pub keys: Keys,
    /// Deadline of its jobs, as the plan has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<u64>,
}

/// A guarantee that will be taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// When, in ns since boot.
    pub due_ns: u64,
    /// Why.
    pub reason: String,
    /// For this request.
    pub for_id: Option<u64>,
    /// Because of this event, which is signalled again when it is due.
    pub event: Option<String>,
}

impl Books {
    /// Nothing yet.
    pub fn new(boot: impl Into<String>) -> Self {
        Self {
            version: VERSION,
            boot: boot.into(),
            next_id: 1,
            next_notice: 1,
            requests: BTreeMap::new(),
            users: BTreeSet::new(),
            parts: BTreeMap::new(),
            notices: VecDeque::new(),
        }
    }

    /// As they were written. Books of another boot have only their numbers left: the threads of that time are gone.
    pub fn read(text: &str, boot: &str) -> Result<Self, String> {
        let books: Self = serde_json::from_str(text).map_err(|error| format!("no books: {error}"))?;
        if books.version != VERSION {
            return Err(format!("books of version {}, bound {VERSION}", books.version));
        }
        if let Some(wrong) = books.requests.iter().find_map(|(id, request)| request.wrong(*id)) {
            return Err(wrong);
        }
        if books.boot != boot {
            return Ok(Self { next_id: books.next_id, next_notice: books.next_notice, ..Self::new(boot) });
        }
        Ok(books)
    }

    /// For the file.
    pub fn written(&self) -> String {
        Writer::default().written(self).concat()
    }

    /// Only the requests, as they are now, which is all that admission is asked about.
    pub fn of_requests(&self) -> Self {
        Self { requests: self.requests.clone(), ..Self::new("") }
    }

    /// Those that are granted or pending.
    pub fn all(&self) -> impl Iterator<Item = &Request> {
        self.requests.values().map(Rc::as_ref)
    }

    /// A request.
    pub fn get(&self, id: &u64) -> Option<&Request> {
        self.requests.get(id).map(Rc::as_ref)
    }

    /// A request, to change it.
    pub fn request_mut(&mut self, id: u64) -> Option<&mut Request> {
        self.requests.get_mut(&id).map(Rc::make_mut)
    }

    /// Those that have a guarantee.
    pub fn granted(&self) -> impl Iterator<Item = (&Request, &Held)> {
        self.all().filter_map(|request| Some((request, request.held.as_ref()?)))
    }

    /// The request that a part of the plan was made for.
    pub fn request_of(&self, part: &str) -> Option<&Request> {
        let rest = part.strip_prefix(PREFIX)?;
        let digits = rest.split('-').next()?;
        self.get(&digits.parse().ok()?)
    }

    /// Whose guarantee a node of the plan has: the system's, unless it was given away.
    pub fn owner_of(&self, node: &str) -> Principal {
        match self.request_of(node) {
            Some(request) => request.owner.clone(),
            None => Principal::System,
        }
    }

    /// A request, and all that are below what it has.
    pub fn with_inner(&self, id: u64) -> Vec<u64> {
        let mut all = vec![id];
        let mut at = 0;
        while at < all.len() {
            let outer = all[at];
            let is_inner = |under: &str| self.request_of(under).is_some_and(|request| request.id == outer);
            let inner =
                self.granted().filter(|(_, held)| is_inner(&held.under)).map(|(request, _)| request.id);
            let inner: Vec<u64> = inner.filter(|id| !all.contains(id)).collect();
            all.extend(inner);
            at += 1;
        }
        all
    }

    /// How many schedulers of requests it is below.
    pub fn depth(&self, id: u64) -> usize {
        let outer = |id: u64| {
            let held = self.requests.get(&id)?.held.as_ref()?;
            self.request_of(&held.under).map(|outer| outer.id)
        };
        std::iter::successors(outer(id), |id| outer(*id)).take(self.requests.len()).count()
    }

    /// Number of the last notice; 0 before the first.
    pub fn last_notice(&self) -> u64 {
        self.next_notice.saturating_sub(1)
    }

    /// Told to a principal, and kept.
    pub fn tell(&mut self, to: &Principal, id: Option<u64>, what: What, text: String) -> &mut Notice {
        let number = self.next_notice;
        self.next_notice += 1;
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(Notice {
            number,
            to: to.clone(),
            id,
            what,
            text,
            within_ms: None,
            mode: None,
            part: None,
        });
        let last = self.notices.len() - 1;
        &mut self.notices[last]
    }
}

/// The part of the plan that the request of this number has, or would have.
pub fn name_of(id: u64, name: &mut String) {
    name.clear();
    name.push_str(PREFIX);
    let (mut digits, mut rest, mut at) = ([0; DIGITS_MAX], id, DIGITS_MAX);
    while rest > 0 || at == DIGITS_MAX {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

impl Request {
    /// The part of the plan that it has, or would have.
    pub fn name(&self) -> String {
        let mut name = String::with_capacity(PREFIX.len() + DIGITS_MAX);
        name_of(self.id, &mut name);
        name
    }

    /// The mode that it has.
    pub fn mode(&self) -> Option<&Mode> {
        self.modes.get(self.held.as_ref()?.mode)
    }

    /// What it is worth: by the mode that it has, else by its best.
    pub fn value(&self) -> i64 {
        self.mode().or(self.modes.first()).map_or(0, |mode| mode.value)
    }

    /// Its part is a node, below which its threads or its owner's schedulers are.
    pub fn is_node(&self) -> bool {
        !matches!(self.target, Target::Thread { .. })
    }

    /// As its owner sees it.
    pub fn shown(&self) -> Shown {
        let granted = self.held.as_ref().zip(self.mode()).map(|(held, mode)| Granted {
            name: self.name(),
            under: held.under.clone(),
            cpu: held.cpu,
            mode: mode.clone(),
        });
        let ending = self.ending.as_ref();
        Shown {
            id: self.id,
            state: if granted.is_some() { State::Granted } else { State::Pending },
            owner: self.owner.clone(),
            label: self.label.clone(),
            thread: match self.target {
                Target::Thread { tid, .. } => Some(tid),
                _ => None,
            },
            matches: match &self.target {
                Target::Match(list) => list.iter().map(shown_keys).collect(),
                _ => Vec::new(),
            },
            modes: self.modes.clone(),
            granted,
            reason: self.reason.clone(),
            ending: ending.map(|taken| Ending { due_ns: taken.due_ns, reason: taken.reason.clone() }),
            divided: Vec::new(),
        }
    }

    /// A file may be anything.
    fn wrong(&self, id: u64) -> Option<String> {
        let is_there = self.held.as_ref().is_none_or(|held| held.mode < self.modes.len());
        (self.id != id || !is_there || self.modes.is_empty())
            .then(|| format!("request {id} of the books contradicts itself"))
    }
}

fn shown_keys(keys: &Keys) -> Map<String, Value> {
    keys.iter().map(|(key, value)| (key.clone(), Value::String(value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> Books {
        let mut books = Books::new("boot");
        let request = Request {
            id: 7,
            owner: Principal::User(1000),
            by: None,
            label: None,
            about: Map::new(),
            target: Target::Scheduler,
            policy: Some("fair".into()),
            modes: vec![Mode::budget(1_000_000, 10_000_000, 1).unwrap()],
            under: None,
            waits: false,
            held: Some(Held { under: "rt".into(), ..Held::default() }),
            reason: None,
            ending: None,
            divided: Vec::new(),
        };
        books.requests.insert(7, Rc::new(request));
        books.next_id = 8;
        books
    }

    #[test]
    fn books_are_read_as_they_were_written() {
        let books = books();
        assert_eq!(Books::read(&books.written(), "boot").unwrap(), books);
        let other = Books::read(&books.written(), "another").unwrap();
        assert_eq!((other.requests.len(), other.next_id), (0, 8), "numbers are not used again");
        for (text, why) in [
            ("", "no books"),
            ("{}", "missing field"),
            (&*books.written().replace("\"version\":1", "\"version\":2"), "version 2"),
            (&*books.written().replace("\"mode\":0", "\"mode\":1"), "contradicts itself"),
            (&*books.written().replace("\"id\":7", "\"id\":6"), "contradicts itself"),
        ] {
            let error = Books::read(text, "boot").unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_was_given_away_is_not_the_systems() {
        let books = books();
        for (node, owner) in [
            ("rt", Principal::System),
            ("grant-7", Principal::User(1000)),
            ("grant-7-mine", Principal::User(1000)),
            ("grant-70", Principal::System),
            ("grant-", Principal::System),
            ("grant-x", Principal::System),
        ] {
            assert_eq!(books.owner_of(node), owner, "{node}");
        }
    }

    #[test]
    fn old_notices_are_forgotten() {
        let mut books = Books::new("boot");
        for _ in 0..NOTICES_MAX + 10 {
            books.tell(&Principal::System, None, What::Said, String::new());
        }
        assert_eq!((books.notices.len(), books.notices[0].number), (NOTICES_MAX, 11));
    }

    #[test]
    fn who_writes_often_writes_the_same() {
        let (mut books, mut writer) = (books(), Writer::default());
        for round in 0..2 * NOTICES_MAX {
            if round % 3 > 0 {
                books.tell(&Principal::System, None, What::Said, format!("\"{round}\"")).within_ms = Some(5);
            }
            if round % 7 == 0 {
                let request = Request { id: round as u64, ..Request::clone(&books.requests[&7]) };
                books.requests.insert(round as u64, Rc::new(request));
            }
            if round % 11 == 0 {
                books.requests.retain(|id, _| *id == 7 || id % 5 > 0);
                books.requests.values_mut().for_each(|request| Rc::make_mut(request).waits = round % 2 == 0);
            }
            if round % 100 < 5 {
                let text = writer.written(&books).concat();
                assert_eq!((&text, Books::read(&text, "boot").as_ref()), (&books.written(), Ok(&books)));
            }
        }
        books.notices.clear();
        books.requests.clear();
        assert_eq!(writer.written(&books).concat(), books.written());
        assert_eq!(Books::read(&books.written(), "boot").unwrap(), books);
    }
}
