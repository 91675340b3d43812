//! Principals: whose use of CPU time is controlled and accounted for. They are not hierarchical.

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The number of all users together of whom nobody knows for whom they act. No user has it.
pub const NAMELESS: u32 = u32::MAX;

/// A principal. Guarantees, rules and requests each have one as their owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// Owns the CPUs, and all that it has not given away.
    System,
    /// A user, by number.
    User(u32),
    /// A group of users, by number: each member may act for it.
    Group(u32),
    /// A service of the system's: its processes act for it.
    Unit(String),
    /// A container of the system's: its processes act for it.
    Container(String),
}

impl Principal {
    /// The user that it is.
    pub fn user(&self) -> Option<u32> {
        match self {
            Self::User(uid) => Some(*uid),
            _ => None,
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::System => write!(f, "system"),
            Self::User(uid) => write!(f, "user:{uid}"),
            Self::Group(gid) => write!(f, "group:{gid}"),
            Self::Unit(name) => write!(f, "unit:{name}"),
            Self::Container(name) => write!(f, "container:{name}"),
        }
    }
}

/// Longest name of a unit, bytes: systemd's. Of containers the same.
const NAME_MAX: usize = 255;

impl FromStr for Principal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no principal: system, user:NUMBER, group:NUMBER, unit:NAME or container:NAME"
            )
        };
        let is_name = |name: &str| !name.is_empty() && name.len() <= NAME_MAX;
        let number = |text: &str| text.parse().map_err(|_| wrong());
        match text.split_once(':') {
            None if text == "system" => Ok(Self::System),
            Some(("user", uid)) => number(uid).map(Self::User),
            Some(("group", gid)) => number(gid).map(Self::Group),
            Some(("unit", name)) if is_name(name) => Ok(Self::Unit(name.to_string())),
            Some(("container", name)) if is_name(name) => Ok(Self::Container(name.to_string())),
            _ => Err(wrong()),
        }
    }
}

impl Serialize for Principal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Principal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// Who asks, as the kernel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Effective user.
    pub uid: u32,
    /// All groups.
    pub groups: Vec<u32>,
    /// The service of the system's whose process asks.
    pub unit: Option<String>,
    /// The container of the system's whose process asks.
    pub container: Option<String>,
}

impl Asker {
    /// Root, who is the system.
    pub const SYSTEM: Asker = Asker { uid: 0, groups: Vec::new(), unit: None, container: None };

    /// A user without groups.
    pub fn user(uid: u32) -> Self {
        Self { uid, ..Self::SYSTEM }
    }

    /// May do everything.
    pub fn is_system(&self) -> bool {
        self.uid == 0
    }

    /// Whose requests these are unless another principal is named.
    pub fn principal(&self) -> Principal {
        if self.is_system() {
            Principal::System
        } else {
            Principal::User(self.uid)
        }
    }

    /// Whether what belongs to that principal may be seen and ended by this one.
    pub fn acts_for(&self, principal: &Principal) -> bool {
        self.is_system()
            || match principal {
                Principal::User(uid) => *uid == self.uid,
                Principal::Group(gid) => self.groups.contains(gid),
                Principal::Unit(unit) => self.unit.as_ref() == Some(unit),
                Principal::Container(container) => self.container.as_ref() == Some(container),
                Principal::System => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_are_read_as_they_are_written() {
        for text in ["system", "user:0", "user:1000", "group:27", "unit:web.service", "container:0a1b"] {
            assert_eq!(text.parse::<Principal>().unwrap().to_string(), text);
        }
        for text in
            ["", "root", "user:", "user:-1", "user:x", "unit:", "container:", "group:4294967296", "SYSTEM"]
        {
            assert!(text.parse::<Principal>().unwrap_err().contains("is no principal"), "{text}");
        }
    }

    #[test]
    fn only_the_system_acts_for_all() {
        let (unit, container) = (Some("b".into()), Some("c".into()));
        let asker = Asker { uid: 1000, groups: vec![27], unit, container };
        let may = |text: &str| asker.acts_for(&text.parse().unwrap());
        assert!(may("user:1000") && may("group:27") && may("unit:b") && may("container:c"));
        assert!(!may("container:b") && !may("unit:c"));
        assert!(!may("user:1001") && !may("user:0") && !may("group:28") && !may("system") && !may("unit:a"));
        assert!(Asker::SYSTEM.acts_for(&Principal::Unit("a".into())));
        assert_eq!(Asker::user(0).principal(), Principal::System);
    }
}
