//! Who may ask, as the configuration says.

use serde::Deserialize;
use tierce_manager::{Ask, Asker, Principal, Wrong};

/// Over the socket, and on D-Bus where there is no polkit. Nobody is named: everybody may.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Access {
    request: Option<Vec<Principal>>,
    real_time: Option<Vec<Principal>>,
    high_priority: Option<Vec<Principal>>,
}

/// What polkit is asked about; its files are in `dist/org.tierce.Manager1.policy`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Request,
    RealTime,
    HighPriority,
}

impl Action {
    pub fn id(self) -> &'static str {
        match self {
            Self::Request => "org.tierce.Manager1.request",
            Self::RealTime => "org.tierce.Manager1.real-time",
            Self::HighPriority => "org.tierce.Manager1.high-priority",
        }
    }
}

impl Access {
    pub fn allows(&self, asker: &Asker, action: Action) -> bool {
        let list = match action {
            Action::Request => &self.request,
            Action::RealTime => &self.real_time,
            Action::HighPriority => &self.high_priority,
        };
        list.as_ref().is_none_or(|list| list.iter().any(|principal| asker.acts_for(principal)))
    }

    /// What is asked for over the socket. Only what is the asker's own is seen and ended, so that needs no leave. Root may.
    pub fn may_ask(&self, asker: &Asker, ask: &Ask) -> Result<(), Wrong> {
        let wants = matches!(ask, Ask::Request(_) | Ask::Change(_) | Ask::Divide(_));
        match !wants || asker.is_system() || self.allows(asker, Action::Request) {
            true => Ok(()),
            false => Err(refused(asker, Action::Request, "the manager's configuration")),
        }
    }
}

/// `by`: who refuses.
pub fn refused(asker: &Asker, action: Action, by: &str) -> Wrong {
    let message = format!("user {} may not: {} ({by})", asker.uid, action.id());
    Wrong::new("asker_must_be_authorized", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_manager::{Change, Divide, List, News, Which};

    #[test]
    fn the_configuration_says_who_may() {
        let access: Access = toml::from_str("request = []\nreal-time = [\"group:29\", \"user:7\"]").unwrap();
        let one = Asker { groups: vec![29], ..Asker::user(1000) };
        assert!(!access.allows(&one, Action::Request) && access.allows(&one, Action::RealTime));
        assert!(
            access.allows(&Asker::user(7), Action::RealTime)
                && !access.allows(&Asker::user(8), Action::RealTime)
        );
        assert!(access.allows(&one, Action::HighPriority), "nobody is named");
        assert!(toml::from_str::<Access>("realtime = []").is_err());
    }

    #[test]
    fn over_the_socket_who_may_not_ask_sees_and_ends_what_is_his() {
        let access: Access = toml::from_str("request = [\"user:7\", \"unit:web.service\"]").unwrap();
        let change = Change { id: 1, modes: Vec::new() };
        let divide = Divide { id: 1, edits: Vec::new(), dry_run: true };
        let of_web = Asker { unit: Some("web.service".into()), ..Asker::user(1000) };
        for ask in [Ask::Request(Box::default()), Ask::Change(change), Ask::Divide(divide)] {
            let wrong = access.may_ask(&Asker::user(1000), &ask).unwrap_err();
            assert_eq!(wrong.rule, "asker_must_be_authorized");
            assert!(wrong.message.contains("user 1000 may not: org.tierce.Manager1.request"), "{wrong}");
            for asker in [&Asker::user(7), &of_web, &Asker::SYSTEM] {
                access.may_ask(asker, &ask).unwrap();
            }
            Access::default().may_ask(&Asker::user(1000), &ask).unwrap();
        }
        for ask in [Ask::List(List {}), Ask::Cancel(Which { id: 1 }), Ask::News(News { after: 0 })] {
            access.may_ask(&Asker::user(1000), &ask).unwrap();
        }
    }
}
