//! The engine that runs rules, within its bounds.

use super::bounds::*;
use super::convert::{of_rule, text, to_rule, Data, Record};
use super::decision::Decision;
use super::known::{It, Known};
use crate::ask::Said;
use crate::memory::used;
use crate::principal::Principal;
use crate::wrong::Wrong;
use rhai::packages::{
    BasicArrayPackage, BasicFnPackage, BasicIteratorPackage, BasicMapPackage, BasicMathPackage,
    BasicStringPackage, LanguageCorePackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{Array, CallFnOptions, Dynamic, Engine, EvalAltResult, Map, Module, Scope, AST};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::time::Duration;

/// Whether a request would be admitted: its number (0: the one that is asked for), without these others, on that CPU.
pub type Fits = Rc<dyn Fn(u64, &[u64], Option<u32>) -> bool>;

/// Rules, in the order in which they are asked.
pub struct Rules {
    engine: Engine,
    list: Vec<Rule>,
    running: Rc<Running>,
    /// CPU time since others were answered.
    spent: Cell<Duration>,
}

struct Rule {
    name: String,
    owner: Principal,
    parameters: Dynamic,
    program: AST,
    /// The events that it has a function for.
    events: BTreeSet<String>,
    calls: u64,
    failures: u64,
    /// CPU time in which it has failed since others were answered.
    wasted: Duration,
}

/// What functions of the engine need to know of the rule that runs.
struct Running {
    /// CPU time of this thread.
    until: Cell<Duration>,
    /// Memory of this thread.
    most: Cell<isize>,
    questions: Cell<u32>,
    fits: RefCell<Option<Fits>>,
}

/// What all rules have said to an event.
#[derive(Default)]
pub struct Evaluated {
    /// Each rule that had a function for it: its name, its owner, its decision.
    pub decisions: Vec<(String, Principal, Box<Decision>)>,
    /// Each that failed, why, and how many had decided before.
    pub failed: Vec<(usize, Said)>,
    /// The last rule that failed and after which none has decided.
    pub broken: Option<Wrong>,
}

impl Evaluated {
    /// What each has decided, in words, or why it failed.
    pub fn said(&self) -> Vec<Said> {
        let said = |rule: &String, decision: &Decision| Said { rule: rule.clone(), said: decision.said() };
        let mut all: Vec<_> = self.decisions.iter().map(|(rule, _, decision)| said(rule, decision)).collect();
        for (before, failed) in self.failed.iter().rev() {
            all.insert(*before, failed.clone());
        }
        all
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules {
    /// None.
    pub fn new() -> Self {
        let running = Rc::new(Running {
            until: Cell::new(Duration::ZERO),
            most: Cell::new(isize::MAX),
            questions: Cell::new(0),
            fits: RefCell::new(None),
        });
        Self { engine: engine(&running), list: Vec::new(), running, spent: Cell::default() }
    }

    /// Others have been answered. Before that all rules have so much time together, and a rule that fails is asked again only until it has
    /// used up its own: there may be many events.
    pub fn begin_turn(&mut self) {
        self.spent.set(Duration::ZERO);
        self.list.iter_mut().for_each(|rule| rule.wasted = Duration::ZERO);
    }

    /// CPU time that is left until others are answered.
    pub fn left(&self) -> Duration {
        TURN.saturating_sub(self.spent.get())
    }

    /// Too little is left for another event: it can wait until others have been answered.
    pub fn is_turn_over(&self) -> bool {
        self.left() < RULE
    }

    /// What this takes counts as time of rules.
    pub fn counted<R>(&self, what: impl FnOnce() -> R) -> R {
        let begun = cpu_time();
        let done = what();
        self.spent.set(self.spent.get() + (cpu_time() - begun));
        done
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any rule is about this event.
    pub fn heeds(&self, event: &str) -> bool {
        self.list.iter().any(|rule| rule.events.contains(event))
    }

    /// Whether any rule of the system is.
    pub fn heeds_of_system(&self, event: &str) -> bool {
        self.list.iter().any(|rule| rule.owner == Principal::System && rule.events.contains(event))
    }

    /// Add a rule, which is asked after those that are there.
    pub fn add(&mut self, name: &str, owner: Principal, text: &str, parameters: &Value) -> Result<(), Wrong> {
        let wrong = |message: String| Wrong::new("rule_must_be_sound", format!("{name}: {message}"));
        if text.len() > TEXT {
            return Err(wrong(format!("{} bytes, bound {TEXT}", text.len())));
        }
        if self.list.iter().any(|rule| rule.name == name) {
            return Err(Wrong::new("rule_name_is_unique", format!("there is a rule `{name}` already")));
        }
        let program = catch_unwind(AssertUnwindSafe(|| self.engine.compile(text)));
        let program = program.map_err(|_| wrong("its text cannot be read".into()))?;
        let program = program.map_err(|error| wrong(error.to_string()))?;
        let one = program.iter_functions().filter(|function| function.params.len() == 1);
        let events: BTreeSet<String> = one.map(|function| function.name.to_string()).collect();
        if events.is_empty() {
            return Err(wrong("it has no function of one argument, such as `fn new_request(it)`".into()));
        }
        let (name, parameters) = (name.to_string(), to_rule(parameters));
        self.list.push(Rule {
            name,
            owner,
            parameters,
            program,
            events,
            calls: 0,
            failures: 0,
            wasted: Duration::ZERO,
        });
        Ok(())
    }

    /// Ask every rule that is about this event: those of the system, and with an `owner` those of that principal. `fits`: whom to ask
    /// whether a request would be admitted.
    pub fn decide(
        &mut self,
        event: &str,
        known: &Known,
        owner: Option<&Principal>,
        fits: Option<Fits>,
    ) -> Evaluated {
        let mut evaluated = Evaluated::default();
        if !self.heeds(event) {
            return evaluated;
        }
        let begun = cpu_time();
        let ends = begun + self.left();
        *self.running.fits.borrow_mut() = fits;
        let is_asked = |rule: &Rule| {
            rule.events.contains(event) && (rule.owner == Principal::System || Some(&rule.owner) == owner)
        };
        let those: Vec<usize> = (0..self.list.len()).filter(|at| is_asked(&self.list[*at])).collect();
        evaluated.decisions.reserve(those.len());
        let event_name = text(event);
        for at in those {
            let asked = cpu_time();
            self.running.until.set(ends.min(asked + RULE));
            self.running.most.set(used() + MEMORY);
            self.running.questions.set(QUESTIONS);
            let decided = match self.list[at].wasted < RULE {
                true => self.call(at, event, &event_name, known),
                false => Err(format!("CPU time, bound {} ms, used up by other events", RULE.as_millis())),
            };
            let rule = &mut self.list[at];
            rule.calls += 1;
            let (name, owner) = (rule.name.clone(), rule.owner.clone());
            match decided {
                Ok(decision) => {
                    let has_decided = decision.grant || decision.refuse.is_some() || decision.defer.is_some();
                    evaluated.broken = evaluated.broken.filter(|_| !has_decided);
                    let ends = decision.refuse.is_some();
                    evaluated.decisions.push((name, owner, Box::new(decision)));
                    if ends {
                        break;
                    }
                }
                Err(why) => {
                    rule.failures += 1;
                    rule.wasted += cpu_time() - asked;
                    let failed = Said { rule: name.clone(), said: format!("failed: {why}") };
                    evaluated.failed.push((evaluated.decisions.len(), failed));
                    evaluated.broken = Some(Wrong::new(
                        "rule_failed",
                        format!("the rule `{name}` has decided nothing: {why}"),
                    ));
                }
            }
        }
        *self.running.fits.borrow_mut() = None;
        self.spent.set(self.spent.get() + (cpu_time() - begun));
        evaluated
    }

    fn call(&self, at: usize, event: &str, name: &Data, known: &Known) -> Result<Decision, String> {
        let rule = &self.list[at];
        let it = It::new(known, name.clone(), &rule.parameters);
        let options = CallFnOptions::new().eval_ast(false);
        let called = catch_unwind(AssertUnwindSafe(|| {
            let mut scope = Scope::new();
            self.engine.call_fn_with_options::<Dynamic>(options, &mut scope, &rule.program, event, (it,))
        }));
        let returned = called.map_err(|_| "it panicked".to_string())?.map_err(|error| ended_by(&error))?;
        Decision::of(of_rule(returned)?)
    }

    /// Each rule: its name, how often it was asked, and how often it failed.
    pub fn shown(&self) -> Vec<Said> {
        let said = |rule: &Rule| {
            let events: Vec<_> = rule.events.iter().map(String::as_str).collect();
            let Rule { owner, calls, failures, .. } = rule;
            format!("of {owner}, {}: asked {calls} times, failed {failures} times", events.join(", "))
        };
        self.list.iter().map(|rule| Said { rule: rule.name.clone(), said: said(rule) }).collect()
    }
}

/// Operations between two looks at the clock.
const LOOK: u64 = 16;

/// That this thread has had.
pub fn cpu_time() -> Duration {
    // SAFETY: an all-zero timespec is valid, and the call fills it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The bound that ended a rule, by name, or what was wrong with it.
fn ended_by(error: &EvalAltResult) -> String {
    match error.unwrap_inner() {
        EvalAltResult::ErrorTooManyOperations(_) => format!("operations, bound {OPERATIONS}"),
        EvalAltResult::ErrorTerminated(why, _) if why.is_int() => {
            format!("memory, bound {} MiB", MEMORY >> 20)
        }
        EvalAltResult::ErrorTerminated(..) => {
            format!("CPU time, bound {} ms, and {} ms for all rules", RULE.as_millis(), TURN.as_millis())
        }
        EvalAltResult::ErrorStackOverflow(_) => format!("calls within calls, bound {DEPTH}"),
        EvalAltResult::ErrorDataTooLarge(what, _) => {
            format!("size of data ({what}), bound {STRING} bytes, {ARRAY} elements, {MAP} entries")
        }
        EvalAltResult::ErrorTooManyVariables(_) => format!("variables, bound {VARIABLES}"),
        other => other.to_string(),
    }
}

fn engine(running: &Rc<Running>) -> Engine {
    let mut engine = Engine::new_raw();
    // All in one: a function is looked for in each module.
    let mut module = Module::new();
    LanguageCorePackage::init(&mut module);
    LogicPackage::init(&mut module);
    BasicMathPackage::init(&mut module);
    BasicFnPackage::init(&mut module);
    BasicIteratorPackage::init(&mut module);
    BasicArrayPackage::init(&mut module);
    BasicMapPackage::init(&mut module);
    BasicStringPackage::init(&mut module);
    MoreStringPackage::init(&mut module);
    module.register_lazy_functions();
    module.build_index();
    engine.register_global_module(module.into());
    engine.disable_symbol("eval");
    engine.on_print(|_| {});
    engine.on_debug(|_, _, _| {});
    engine.set_max_operations(OPERATIONS);
    engine.set_max_call_levels(DEPTH);
    engine.set_max_expr_depths(EXPRESSIONS, EXPRESSIONS);
    engine.set_max_string_size(STRING);
    engine.set_max_array_size(ARRAY);
    engine.set_max_map_size(MAP);
    engine.set_max_variables(VARIABLES);
    engine.set_max_functions(FUNCTIONS);
    let bounds = running.clone();
    engine.on_progress(move |count| {
        if used() > bounds.most.get() {
            return Some(Dynamic::ONE); // see `ended_by`
        }
        let is_over = count % LOOK == 0 && cpu_time() > bounds.until.get();
        is_over.then_some(Dynamic::UNIT)
    });
    register(&mut engine, running);
    Record::register(&mut engine);
    It::register(&mut engine);
    engine
}

/// What rules can ask.
fn register(engine: &mut Engine, running: &Rc<Running>) {
    let ask = |running: &Rc<Running>| {
        let running = running.clone();
        move |request: Dynamic, without: Array, cpu: Option<u32>| fits(&running, &request, &without, cpu)
    };
    let one = ask(running);
    engine.register_fn("fits", move |request: Dynamic| one(request, Array::new(), None));
    let one = ask(running);
    engine.register_fn("fits", move |request: Dynamic, without: Array| one(request, without, None));
    let one = ask(running);
    engine.register_fn("fits", move |request: Dynamic, without: Array, cpu: i64| {
        one(request, without, Some(u32::try_from(cpu).unwrap_or(u32::MAX)))
    });
    engine.register_fn("percent", |ppm: i64| {
        let hundredths = (ppm.saturating_add(99)).div_euclid(100);
        format!("{}.{:02} %", hundredths / 100, hundredths.rem_euclid(100))
    });
}

fn fits(
    running: &Running,
    request: &Dynamic,
    without: &Array,
    cpu: Option<u32>,
) -> Result<bool, Box<EvalAltResult>> {
    let left = running.questions.get().checked_sub(1);
    let left = left.ok_or_else(|| format!("questions to admission, bound {QUESTIONS}"))?;
    running.questions.set(left);
    if cpu_time() > running.until.get() {
        return Err(EvalAltResult::ErrorTerminated(Dynamic::UNIT, rhai::Position::NONE).into());
    }
    let number = |value: Option<&Dynamic>| value.and_then(|id| u64::try_from(id.as_int().ok()?).ok());
    let id = match (request.read_lock::<Record>(), request.read_lock::<Map>()) {
        (Some(record), _) => number(Some(record.id())),
        (_, Some(map)) => number(map.get("id")),
        _ => None,
    };
    let id = id.ok_or("`fits` is about a request")?;
    let without: Option<Vec<u64>> = without.iter().map(|id| number(Some(id))).collect();
    let without = without.ok_or("`fits` is without requests, by their numbers")?;
    let ask = running.fits.borrow().clone();
    Ok(ask.is_some_and(|ask| ask(id, &without, cpu)))
}
