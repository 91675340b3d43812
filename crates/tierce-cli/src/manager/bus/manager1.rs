//! `org.tierce.Manager1`: requests as over the socket, with values of D-Bus in place of JSON.

use super::caller::{Caller, Callers};
use super::values::{read, table, Table};
use crate::manager::access::Action;
use crate::manager::way::Way;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tierce_manager::{Answer, Ask, Change, Divide, List, Mode, News, Notice, Which, Wrong};
use zbus::blocking::fdo::DBusProxy;
use zbus::blocking::Connection;
use zbus::message::{Header, Message};
use zbus::names::{BusName, ErrorName, OwnedUniqueName};
use zbus::object_server::SignalEmitter;
use zbus::{interface, DBusError};

pub const NAME: &str = "org.tierce.Manager1";
pub const PATH: &str = "/org/tierce/Manager1";

/// Those who watch, of one person and of all.
const EACH_MAX: usize = 8;
const ALL_MAX: usize = 256;

pub struct Manager1 {
    callers: Arc<Callers>,
    way: Way,
    watchers: Watchers,
}

impl Manager1 {
    pub fn new(callers: Arc<Callers>, way: Way, watchers: Watchers) -> Self {
        Self { callers, way, watchers }
    }

    /// Only what is the caller's own is seen and ended, so nobody else is asked about that.
    fn ask(&self, header: &Header, action: Option<Action>, ask: Ask) -> Result<(Caller, Answer), Refused> {
        let caller = self.callers.of(header)?;
        action.map_or(Ok(()), |action| self.callers.check(&caller, action))?;
        let answer = self.way.ask(&caller.asker, ask)?;
        Ok((caller, answer))
    }
}

/// One call after the other.
#[interface(name = "org.tierce.Manager1", spawn = false)]
impl Manager1 {
    /// For a guarantee: what the socket's `request` has.
    fn request(&self, wish: Table, #[zbus(header)] header: Header<'_>) -> Result<Table, Refused> {
        let wish = Ask::Request(Box::new(read(&wish)?));
        Ok(table(&self.ask(&header, Some(Action::Request), wish)?.1))
    }

    /// Other modes for a request.
    fn change(
        &self,
        id: u64,
        modes: Vec<Table>,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Table, Refused> {
        let modes = modes.iter().map(read).collect::<Result<Vec<Mode>, _>>()?;
        let change = Ask::Change(Change { id, modes });
        Ok(table(&self.ask(&header, Some(Action::Request), change)?.1))
    }

    /// Operations below a scheduler that belongs to the caller: what the socket's `divide` has.
    fn divide(
        &self,
        id: u64,
        edits: Vec<Table>,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Table, Refused> {
        let edits = edits.iter().map(read).collect::<Result<_, _>>()?;
        let divide = Ask::Divide(Divide { id, edits, dry_run });
        Ok(table(&self.ask(&header, Some(Action::Request), divide)?.1))
    }

    /// A request ends.
    fn cancel(&self, id: u64, #[zbus(header)] header: Header<'_>) -> Result<Table, Refused> {
        Ok(table(&self.ask(&header, None, Ask::Cancel(Which { id }))?.1))
    }

    /// The caller's requests.
    fn list(&self, #[zbus(header)] header: Header<'_>) -> Result<Vec<Table>, Refused> {
        let (_, answer) = self.ask(&header, None, Ask::List(List {}))?;
        Ok(answer.requests.iter().map(table).collect())
    }

    /// Notices after that number; from then on the caller gets the signal `Notice` for each.
    fn watch(&self, after: u64, #[zbus(header)] header: Header<'_>) -> Result<Vec<Table>, Refused> {
        let (caller, answer) = self.ask(&header, None, Ask::News(News { after }))?;
        self.watchers.add(caller, &self.callers)?;
        Ok(answer.news.iter().map(table).collect())
    }

    /// For those who watch, each what he may see.
    #[zbus(signal)]
    async fn notice(emitter: &SignalEmitter<'_>, notice: Table) -> zbus::Result<()>;
}

/// Why not. The error's name is that of the rule: `org.tierce.Manager1.ThreadMustBeThere`.
#[derive(Debug)]
pub struct Refused {
    name: String,
    message: String,
}

impl From<Wrong> for Refused {
    fn from(wrong: Wrong) -> Self {
        let letters = wrong.rule.split(|c: char| !c.is_ascii_alphanumeric());
        let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
        let name: String = letters.filter(|it| !it.is_empty()).map(word).collect();
        Self { name: format!("{NAME}.{name}"), message: wrong.message }
    }
}

impl DBusError for Refused {
    fn create_reply(&self, call: &Header<'_>) -> zbus::Result<Message> {
        Message::error(call, self.name())?.build(&(&self.message,))
    }

    fn name(&self) -> ErrorName<'_> {
        // A rule of a user may have any name.
        ErrorName::try_from(self.name.as_str())
            .unwrap_or_else(|_| ErrorName::from_static_str_unchecked("org.tierce.Manager1.Refused"))
    }

    fn description(&self) -> Option<&str> {
        Some(&self.message)
    }
}

/// Who gets the signal.
#[derive(Clone, Default)]
pub struct Watchers {
    all: Arc<Mutex<Vec<Caller>>>,
    /// Somebody of them acts for the system.
    system: Arc<AtomicBool>,
}

impl Watchers {
    fn add(&self, caller: Caller, callers: &Callers) -> Result<(), Wrong> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|other| other.name == caller.name) {
            return Ok(());
        }
        let is_full = |all: &[Caller]| {
            all.len() >= ALL_MAX
                || all.iter().filter(|other| other.person == caller.person).count() >= EACH_MAX
        };
        if is_full(&all) {
            all.retain(|other| callers.is_there(&other.name)); // nobody says when he goes
        }
        if is_full(&all) {
            return Err(Wrong::new("too_many_watchers", format!("{EACH_MAX} of a user, {ALL_MAX} in all")));
        }
        if caller.asker.is_system() {
            self.system.store(true, Ordering::Relaxed);
        }
        all.push(caller);
        Ok(())
    }

    /// Somebody who acts for the system watches, or did so a few seconds ago.
    pub fn are_of_system(&self) -> bool {
        self.system.load(Ordering::Relaxed)
    }

    /// Those of the system who are gone are forgotten: for them more is looked at.
    pub fn look(&self, is_there: impl Fn(&OwnedUniqueName) -> bool) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|watcher| !watcher.asker.is_system() || is_there(&watcher.name));
        let system = all.iter().any(|watcher| watcher.asker.is_system());
        self.system.store(system, Ordering::Relaxed);
    }

    /// A signal to a name that is gone goes nowhere.
    pub fn tell(&self, bus: &Connection, notices: &[Notice]) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for notice in notices {
            for watcher in all.iter().filter(|watcher| watcher.asker.acts_for(&notice.to)) {
                let _ = bus.emit_signal(Some(&watcher.name), PATH, NAME, "Notice", &(table(notice),));
            }
        }
    }
}

impl Callers {
    pub fn is_there(&self, name: &OwnedUniqueName) -> bool {
        let bus = DBusProxy::new(self.asking());
        bus.and_then(|bus| Ok(bus.name_has_owner(BusName::from(name.as_ref()))?)).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_manager::Asker;

    #[test]
    fn whether_somebody_watches_for_the_system() {
        let watchers = Watchers::default();
        let one = |name: &str, uid| Caller {
            name: OwnedUniqueName::try_from(name).unwrap(),
            asker: Asker::user(uid),
            person: uid,
            pid: None,
        };
        let add = |caller| watchers.all.lock().unwrap().push(caller);
        add(one(":1.1", 1000));
        watchers.look(|_| true);
        assert!(!watchers.are_of_system());
        add(one(":1.2", 0));
        watchers.look(|name| name.as_str() == ":1.2"); // of others nobody asks whether they are there
        assert!(watchers.are_of_system());
        watchers.look(|_| false);
        assert!(!watchers.are_of_system());
        assert_eq!(watchers.all.lock().unwrap().len(), 1);
    }

    #[test]
    fn an_error_has_the_name_of_its_rule() {
        let name = |rule: &str| Refused::from(Wrong::new(rule, "")).name().to_string();
        assert_eq!(name("thread_must_be_there"), "org.tierce.Manager1.ThreadMustBeThere");
        assert_eq!(name("_é9__"), "org.tierce.Manager1.Refused");
        assert_eq!(name(""), "org.tierce.Manager1.Refused");
    }
}
