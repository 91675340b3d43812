//! The manager on the system bus: `org.tierce.Manager1`, and `org.freedesktop.RealtimeKit1`, which audio programs call already.
//!
//! The same requests as over the socket ([`Ask`]), answered by the same loop: what comes over the bus is handed to it, one call after the
//! other, and waited for. The bus says who calls. A second connection asks it, and polkit: their answers must not queue behind calls of
//! others, of which so many are read ahead ([`AHEAD`]) and no more.
//!
//! In layers: `bounded` (what is too much goes no further), `values` (D-Bus values and JSON), `caller` (who calls, and whether he may),
//! `sums` (checksums of programs), `manager1` and `realtime_kit` (the interfaces).

mod bounded;
mod caller;
mod manager1;
mod realtime_kit;
mod sums;
mod values;

pub use realtime_kit::Config as RealtimeKit;

use crate::manager::access::Access;
use crate::manager::rates::Rates;
use crate::manager::unit::Units;
use crate::manager::way::Way;
use anyhow::{Context, Result};
use bounded::Counted;
use caller::Callers;
use manager1::{Manager1, Refused, Watchers};
use realtime_kit::RealtimeKit1;
use std::sync::mpsc::{channel, sync_channel, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierce_manager::Notice;
use zbus::blocking::connection::Builder;
use zbus::blocking::Connection;

/// Calls that are read before they are answered. The bus keeps the rest, within its limits.
const AHEAD: usize = 4;
/// How long the bus or polkit may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// By then an answer has left.
const ANSWERED: Duration = Duration::from_millis(100);
/// Between two looks for a bus.
const AGAIN: Duration = Duration::from_secs(5);
/// Lists of notices that wait for the bus; more are dropped, and can be asked for.
const NOTICES_MAX: usize = 256;

/// What is configured.
#[derive(Clone, Default)]
pub struct Config {
    pub access: Access,
    pub realtime_kit: RealtimeKit,
    pub units: Units,
}

/// The bus, as the manager's loop sees it.
pub struct Bus {
    notices: SyncSender<Vec<Notice>>,
    watchers: Watchers,
}

impl Bus {
    /// Be there for callers, as soon as there is a bus and whenever there is one. `exit`: somebody who may ends the manager.
    pub fn open(config: Config, rates: Rates, way: Way, exit: fn()) -> Result<Bus> {
        let (notices, told) = sync_channel(NOTICES_MAX);
        let thread = std::thread::Builder::new().name("manager-bus".into());
        let watchers = Watchers::default();
        let theirs = watchers.clone();
        let stays = move || stay(&config, &rates, &way, (&told, &theirs), exit);
        thread.spawn(stays).context("a thread for the bus")?;
        Ok(Bus { notices, watchers })
    }

    /// Somebody who acts for the system watches.
    pub fn is_watched_by_system(&self) -> bool {
        self.watchers.are_of_system()
    }

    /// Who watches is told.
    pub fn tell(&self, notices: &[Notice]) {
        if !notices.is_empty() && self.notices.try_send(notices.to_vec()).is_err() {
            eprintln!("tierce: the bus does not take notices; those who watch have to ask for them");
        }
    }
}

/// Notices, and who gets them.
type Told<'t> = (&'t Receiver<Vec<Notice>>, &'t Watchers);

/// On the bus, again after it was lost.
fn stay(config: &Config, rates: &Rates, way: &Way, told: Told, exit: fn()) {
    let mut before = String::new();
    loop {
        match serve(config, rates, way, told, exit) {
            Ok(()) => before.clear(),
            Err(error) => {
                let now = error.to_string(); // zbus says its cause, too
                if now != before {
                    eprintln!("tierce: not on D-Bus: {now}");
                }
                before = now;
            }
        }
        drop_for(told.0, AGAIN);
    }
}

/// While there is no bus, nobody is told over it.
fn drop_for(told: &Receiver<Vec<Notice>>, time: Duration) {
    let ends = Instant::now() + time;
    loop {
        let left = ends.saturating_duration_since(Instant::now());
        match told.recv_timeout(left) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => return std::thread::sleep(left),
        }
    }
}

fn serve(config: &Config, rates: &Rates, way: &Way, (told, watchers): Told, exit: fn()) -> Result<()> {
    let asking = Builder::system()?.method_timeout(PATIENCE).build()?;
    let callers = Arc::new(Callers::new(asking, config.access.clone(), rates.clone(), config.units.clone()));
    let manager = Manager1::new(callers.clone(), way.clone(), watchers.clone());
    let asked = callers.clone();
    let wakes = way.clone();
    // Who asks for it has the answer first.
    let exit = move || {
        let wakes = wakes.clone();
        std::thread::spawn(move || {
            std::thread::sleep(ANSWERED);
            exit();
            wakes.wake();
        });
    };
    let kit = RealtimeKit1::new(callers.clone(), way.clone(), config.realtime_kit.clone(), exit);
    let manager = Counted { inner: manager, callers: callers.clone(), refuse: Refused::from };
    let kit = Counted { inner: kit, callers, refuse: realtime_kit::denied };
    let connection = bounded::system()?
        .max_queued(AHEAD)
        .method_timeout(PATIENCE)
        .serve_at(manager1::PATH, manager)?
        .serve_at(realtime_kit::PATH, kit)?
        .build()?;
    connection.request_name(manager1::NAME)?;
    eprintln!("tierce: the manager is {} on D-Bus", manager1::NAME);
    if config.realtime_kit.enabled {
        match connection.request_name(realtime_kit::NAME) {
            Ok(()) => eprintln!("tierce: and answers as {}", realtime_kit::NAME),
            Err(error) => eprintln!("tierce: another one is {}: {error}", realtime_kit::NAME),
        }
    }
    let ended = ends(&connection)?;
    loop {
        match told.recv_timeout(AGAIN) {
            Ok(notices) => watchers.tell(&connection, &notices),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        watchers.look(|name| asked.is_there(name));
        if ended.try_recv().is_err_and(|error| error == TryRecvError::Disconnected) {
            eprintln!("tierce: the bus has hung up");
            return Ok(());
        }
    }
}

/// Hangs up when the bus does.
fn ends(connection: &Connection) -> Result<Receiver<()>> {
    let (lives, ended) = channel();
    let connection = connection.clone();
    let thread = std::thread::Builder::new().name("manager-bus-end".into());
    thread.spawn(move || {
        let _lives: std::sync::mpsc::Sender<()> = lives;
        let messages = zbus::blocking::MessageIterator::from(connection);
        messages.take_while(std::result::Result::is_ok).for_each(drop);
    })?;
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bus_notices_are_dropped() {
        let (notices, told) = sync_channel(2);
        let dropping = std::thread::spawn(move || drop_for(&told, Duration::from_secs(1)));
        for _ in 0..100 {
            notices.send(Vec::new()).unwrap();
        }
        drop(notices);
        dropping.join().unwrap();
    }
}
