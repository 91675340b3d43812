//! Who calls, as the bus says, and whether he may, as polkit says. Where there is no polkit, the configuration does.

use crate::manager::access::{refused, Access, Action};
use crate::manager::rates::Rates;
use crate::manager::unit::Units;
use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use tierce_manager::{Asker, Wrong};
use zbus::blocking::fdo::DBusProxy;
use zbus::blocking::Connection;
use zbus::message::Header;
use zbus::names::{BusName, OwnedUniqueName};
use zbus::zvariant::Value;

/// Longest call, bytes: as over the socket.
pub const CALL_MAX: usize = 1 << 16;
/// Callers that are known. A name of the bus is never given twice, so what it has said stays true.
const KNOWN_MAX: usize = 1024;

/// Somebody on the bus.
#[derive(Clone)]
pub struct Caller {
    pub name: OwnedUniqueName,
    pub asker: Asker,
    /// For whom the limits are.
    pub person: u32,
    pub pid: Option<u32>,
}

/// All of them.
pub struct Callers {
    /// Not the one over which they call.
    asking: Connection,
    access: Access,
    rates: Rates,
    units: Units,
    known: Mutex<HashMap<OwnedUniqueName, Caller>>,
}

impl Callers {
    pub fn new(asking: Connection, access: Access, rates: Rates, units: Units) -> Self {
        Self { asking, access, rates, units, known: Mutex::default() }
    }

    /// For what is asked of the bus itself.
    pub fn asking(&self) -> &Connection {
        &self.asking
    }

    /// Whether who has sent this may call once more by now, whatever it is about: nobody is asked about what is too much, and nothing
    /// of what is too long is read.
    pub fn may_call(&self, header: &Header) -> Result<(), Wrong> {
        self.rates.may_ask(self.of(header)?.person)?;
        match header.primary().body_len() as usize > CALL_MAX {
            true => Err(Wrong::new("request_too_long", format!("a call has at most {CALL_MAX} bytes"))),
            false => Ok(()),
        }
    }

    /// Who has sent this.
    pub fn of(&self, header: &Header) -> Result<Caller, Wrong> {
        let unknown = |why: String| Wrong::new("caller_must_be_known", why);
        let name = header.sender().ok_or_else(|| unknown("the bus does not say who calls".into()))?;
        let name = OwnedUniqueName::from(name.to_owned());
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(caller) = known.get(&name) {
            return Ok(caller.clone());
        }
        let bus = DBusProxy::new(&self.asking).map_err(|error| unknown(error.to_string()))?;
        let who = bus.get_connection_credentials(BusName::from(name.as_ref()));
        let who = who.map_err(|error| unknown(error.to_string()))?;
        let uid = who.unix_user_id().ok_or_else(|| unknown("the bus does not know the user".into()))?;
        let groups = who.unix_group_ids().cloned().unwrap_or_default();
        let process = who.process_id().zip(who.process_fd());
        let process = process.filter(|_| uid != 0);
        let of = process.map(|(pid, fd)| self.units.of_process(pid, fd.as_raw_fd())).unwrap_or_default();
        let asker = Asker { uid, groups, unit: of.unit, container: of.container };
        let person = self.rates.people.person(uid);
        let caller = Caller { name: name.clone(), asker, person, pid: who.process_id() };
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name, caller.clone());
        Ok(caller)
    }

    /// Whether he may. Root may.
    pub fn check(&self, caller: &Caller, action: Action) -> Result<(), Wrong> {
        if caller.asker.is_system() {
            return Ok(());
        }
        match self.polkit(caller, action) {
            Ok(Some(true)) => Ok(()),
            Ok(Some(false)) => Err(refused(&caller.asker, action, "polkit")),
            Ok(None) if self.access.allows(&caller.asker, action) => Ok(()),
            Ok(None) => Err(refused(&caller.asker, action, "the manager's configuration")),
            Err(error) => Err(Wrong::new("polkit_must_answer", error.to_string())),
        }
    }

    /// What polkit says; nothing: there is none.
    fn polkit(&self, caller: &Caller, action: Action) -> zbus::Result<Option<bool>> {
        let subject = ("system-bus-name", HashMap::from([("name", Value::from(caller.name.as_str()))]));
        let details: HashMap<&str, &str> = HashMap::new();
        let asked = self.asking.call_method(
            Some("org.freedesktop.PolicyKit1"),
            "/org/freedesktop/PolicyKit1/Authority",
            Some("org.freedesktop.PolicyKit1.Authority"),
            "CheckAuthorization",
            &(subject, action.id(), details, 0u32, ""), // nobody is asked for a password
        );
        match asked {
            Ok(answer) => {
                let answer = answer.body();
                let said: (bool, bool, HashMap<String, String>) = answer.deserialize()?;
                Ok(Some(said.0))
            }
            Err(zbus::Error::MethodError(name, ..)) if is_nobody(name.as_str()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_nobody(error: &str) -> bool {
    ["ServiceUnknown", "NameHasNoOwner"]
        .iter()
        .any(|end| error == format!("org.freedesktop.DBus.Error.{end}"))
}
