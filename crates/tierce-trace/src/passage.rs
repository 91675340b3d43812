//! What passes through one chain of tasks, from the first job that looks at something to the last that tells of it.
//!
//! A job looks at what it reads when it first gets a CPU, and has written it when it is done. Example: of a sampled chain `a`, `b`, a job
//! of `a` is released at 0 and ends at 3 ms; a job of `b` begins at 5 ms and ends at 7 ms: a response of 7 ms, and an age of 7 ms. The
//! next job of `b` begins at 10 ms and ends at 12 ms, and there is nothing newer: an age of 12 ms.
//!
//! Who releases the jobs of a triggered task is known in the simulator: each end of a job before it, in their order. On a machine
//! programs wake each other, usually before the end of their own job. There a job of a triggered task knows what the last job before it
//! knew that had begun when it was woken, less the delay of the link. Where programs mark what they deal with, their marks tell instead:
//! the first task gives an item its number, and a job of the last one that marks this number knows of it.

use crate::header::{ChainInfo, LinkInfo, Source};
use crate::histogram::Histogram;
use crate::report::{ChainReport, Spread};
use std::collections::{HashMap, VecDeque};

/// What is known at a task: the number of a job of the first task, from 0, and when that was nominally released.
type Known = (u64, u64);

/// One chain, and what was measured.
#[derive(Debug, Clone)]
pub struct Passage {
    source: Source,
    links: Vec<Link>,
    /// Programs mark what they deal with.
    items: Option<Items>,
    /// All its tasks have begun; what was released before may have waited for that.
    from_ns: u64,
    /// Jobs of the first task since the last one that was told of: when each was nominally released and when it looked.
    looked: VecDeque<Known>,
    /// The number of the first of them, from 0.
    told: u64,
    /// When the one before them looked.
    before_ns: Option<u64>,
    response_ns: Histogram,
    reaction_ns: Histogram,
    age_ns: Histogram,
}

/// Marked items that are remembered, at most: what is older has long come through, or never will.
const ITEMS_MAX: usize = 4096;

/// Items that the first task has marked.
#[derive(Debug, Clone, Default)]
struct Items {
    /// `None`: it is not known when that was released.
    known: HashMap<u64, Option<Known>>,
    /// From the oldest on.
    order: VecDeque<u64>,
    /// Marks of the last task with a number that the first one has not marked, or too long ago.
    strange: u64,
}

impl Items {
    /// Whether it is new.
    fn add(&mut self, item: u64, known: Option<Known>) -> bool {
        if self.known.contains_key(&item) {
            return false;
        }
        self.known.insert(item, known);
        self.order.push_back(item);
        if self.order.len() > ITEMS_MAX {
            self.order.pop_front().map(|oldest| self.known.remove(&oldest));
        }
        true
    }
}

#[derive(Debug, Clone)]
struct Link {
    /// It reads what the one before it wrote; otherwise it gets that with its job.
    reads: bool,
    delay_ns: u64,
    /// It has begun a job, or marked an item.
    there: bool,
    /// Marks of it.
    marks: u64,
    /// From when on what came to it is there, and what; `None`: a job of the one before it knew nothing.
    came: VecDeque<(u64, Option<Known>)>,
    /// What its current job knows.
    known: Option<Known>,
}

impl Link {
    fn new(info: &LinkInfo, first: bool) -> Link {
        Link {
            reads: !first && !info.triggered,
            delay_ns: info.delay_ns,
            there: false,
            marks: 0,
            came: VecDeque::new(),
            known: None,
        }
    }

    /// The last that came until then, which stays.
    fn latest(&mut self, now_ns: u64) -> Option<Known> {
        while self.came.get(1).is_some_and(|(from_ns, _)| *from_ns <= now_ns) {
            self.came.pop_front();
        }
        self.came.front().filter(|(from_ns, _)| *from_ns <= now_ns).and_then(|(_, known)| *known)
    }
}

impl Passage {
    /// Nothing has passed so far.
    pub fn new(chain: &ChainInfo, source: Source) -> Passage {
        let links = chain.links.iter().enumerate();
        Passage {
            source,
            links: links.map(|(at, link)| Link::new(link, at == 0)).collect(),
            items: (source == Source::Run && chain.mark.is_some()).then(Items::default),
            from_ns: 0,
            looked: VecDeque::new(),
            told: 0,
            before_ns: None,
            response_ns: Histogram::default(),
            reaction_ns: Histogram::default(),
            age_ns: Histogram::default(),
        }
    }

    /// On a machine: the task at this place was woken, for a job that was nominally released then.
    pub fn woken(&mut self, at: usize, nominal_ns: u64, now_ns: u64) {
        if self.items.is_some() {
            return;
        }
        let link = &mut self.links[at];
        if at > 0 && !link.reads {
            link.known = link.latest(now_ns);
        }
        self.comes(at, nominal_ns);
    }

    /// A job of the task at this place, which was nominally released then, has its first CPU.
    pub fn begun(&mut self, at: usize, nominal_ns: u64, now_ns: u64) {
        if self.items.is_some() {
            return;
        }
        let link = &mut self.links[at];
        if at == 0 {
            link.known = Some((self.told + self.looked.len() as u64, nominal_ns));
            self.looked.push_back((nominal_ns, now_ns));
        } else if link.reads {
            link.known = link.latest(now_ns);
        } else if self.source == Source::Sim {
            link.known = link.came.pop_front().and_then(|(_, known)| known);
        }
        let known = link.known;
        if at == 0 || link.reads {
            self.comes(at, nominal_ns);
        }
        if self.wakes(at + 1) {
            self.pass_on(at + 1, known, now_ns);
        }
    }

    /// The task at this place deals with that item from here on, in a job that was nominally released then; `None`: that is not known.
    pub fn marked(&mut self, at: usize, item: u64, nominal_ns: Option<u64>, now_ns: u64) {
        let Some(items) = &mut self.items else { return };
        self.links[at].marks += 1;
        if at == 0 {
            let number = self.told + self.looked.len() as u64;
            let new = items.add(item, nominal_ns.map(|nominal_ns| (number, nominal_ns)));
            let Some(nominal_ns) = nominal_ns.filter(|_| new) else { return };
            self.looked.push_back((nominal_ns, now_ns));
        }
        let Some(nominal_ns) = nominal_ns else { return };
        if at > 0 && at + 1 == self.links.len() {
            let known = items.known.get(&item).copied();
            items.strange += u64::from(known.is_none());
            let known = known.flatten();
            let before = std::mem::replace(&mut self.links[at].known, known);
            if before != known {
                self.tell(before, now_ns); // it is done with that
            }
        }
        self.comes(at, nominal_ns);
    }

    /// The job of the task at this place is done.
    pub fn ended(&mut self, at: usize, now_ns: u64) {
        let known = self.links[at].known;
        if at + 1 == self.links.len() {
            if self.items.is_some() {
                self.links[at].known = None; // the next job marks its own
            }
            self.tell(known, now_ns);
        } else if self.items.is_none() && !self.wakes(at + 1) {
            self.pass_on(at + 1, known, now_ns);
        }
    }

    /// The last task has told of this.
    fn tell(&mut self, known: Option<Known>, now_ns: u64) {
        let Some((number, nominal_ns)) = known else { return };
        self.age_ns.record(now_ns.saturating_sub(nominal_ns));
        while self.told <= number {
            let Some((nominal_ns, looked_ns)) = self.looked.pop_front() else { break };
            self.told += 1;
            let before_ns = self.before_ns.replace(looked_ns);
            if nominal_ns < self.from_ns {
                continue;
            }
            self.response_ns.record(now_ns.saturating_sub(nominal_ns));
            // An event may have come just after the job before had looked.
            before_ns.into_iter().for_each(|ns| self.reaction_ns.record(now_ns.saturating_sub(ns)));
        }
    }

    /// Of a chain whose programs mark what they deal with: how many marks the task at each place has written, and how many of the last
    /// one name no item of the first.
    pub fn marks(&self) -> Option<(Vec<u64>, u64)> {
        let items = self.items.as_ref()?;
        Some((self.links.iter().map(|link| link.marks).collect(), items.strange))
    }

    /// A first job there: what was released before that may have waited for it.
    fn comes(&mut self, at: usize, nominal_ns: u64) {
        if !std::mem::replace(&mut self.links[at].there, true) {
            self.from_ns = self.from_ns.max(nominal_ns);
        }
    }

    /// Does a program wake the task at this place?
    fn wakes(&self, at: usize) -> bool {
        self.source == Source::Run && self.links.get(at).is_some_and(|link| !link.reads)
    }

    fn pass_on(&mut self, to: usize, known: Option<Known>, now_ns: u64) {
        let link = &mut self.links[to];
        link.came.push_back((now_ns.saturating_add(link.delay_ns), known));
    }

    /// Response, reaction and age, in the order of [`tierce_plan::Latency::ALL`].
    pub fn times(&self) -> [&Histogram; 3] {
        [&self.response_ns, &self.reaction_ns, &self.age_ns]
    }

    /// The same under the chain's name.
    pub fn report(&self, name: &str) -> ChainReport {
        let [response_ns, reaction_ns, age_ns] = self.times().map(Spread::of);
        ChainReport { name: name.into(), ended: false, response_ns, reaction_ns, age_ns }
    }
}
