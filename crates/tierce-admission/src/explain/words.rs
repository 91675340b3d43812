//! For people who never read a paper: what is guaranteed to whom, what that assumes of them, what happens on overrun, and what does
//! not hold.

use crate::demand::jobs::{densest, job};
use crate::demand::uncounted_threads::live_sets;
use crate::explain::chains;
use crate::explain::remedies::{Broken, Problem};
use crate::laws::reservation::servers;
use crate::share::{percent, percent_given};
use crate::verdict::{Admission, NodeVerdict, Part, Promise};
use tierce_guarantee::{noted_time, Guarantee, Kind, Parameter, Supply};
use tierce_plan::policies;
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::show_time;
use tierce_plan::Shape;
use tierce_plan::{Child, Edge, Load, Plan};

/// Children named one by one.
const NAMED: usize = 3;

/// What a guarantee assumes of who relies on it.
pub fn assumes(guarantee: &Guarantee) -> String {
    let show = |parameter| guarantee.get(parameter).map_or(String::new(), |time| noted_time(time, false));
    let (amount, period) = (show(Parameter::Amount), show(Parameter::Period));
    match guarantee.kind() {
        Kind::Null => "nothing, and nothing can be relied on".into(),
        Kind::All => "that it leaves the CPU to others by itself: nothing takes it away".into(),
        Kind::Resu => "that it names its deadlines to the scheduler above".into(),
        Kind::Psbe | Kind::Ps => "that its work fits into its share; time not asked for is not kept for later".into(),
        _ => format!(
            "that it needs at most {amount} of CPU time in any {period}; what it does not ask for in a period is not kept for the next"
        ),
    }
}

/// What happens to who wants more. `throttled`: it has no time beyond budgets.
pub fn overrun(guarantee: &Guarantee, throttled: bool) -> String {
    match guarantee.kind() {
        Kind::Null if throttled => "it is throttled until its next period begins; when it gets the CPU then is not guaranteed".into(),
        Kind::Null => "it runs on when, and for as long as, others leave it the CPU".into(),
        Kind::All => "it runs on, and all that come after it wait for as long".into(),
        Kind::Resu => "its deadlines are missed; others do not notice".into(),
        Kind::Psbe | Kind::Ps => "it gets more while others leave it; otherwise it falls behind, and only itself".into(),
        Kind::Resps => "it may use the time that is set aside for overruns, if nobody else needs it; otherwise it waits for the \
                        next period"
            .into(),
        kind if kind.is_hard() || (throttled && kind.is_reservation()) => {
            "it is throttled until its next period begins, so its work is done a period later or more; others do not notice".into()
        }
        _ => "its guaranteed time is used up until its next period begins; more comes only while others leave it".into(),
    }
}

/// Whether everything comes through budgets that are used up: of a reservation right above, or of one further up on each way.
pub fn is_throttled(plan: &Plan, shape: &Shape, above: &[usize]) -> bool {
    let by = |edge: &usize| {
        let parent = plan.edges[*edge].parent;
        let budgets = policies::by_number(plan.nodes[parent].policy).and_then(policies::budget_and_period);
        let throttles = budgets.is_some() && !ServerRules::of(plan, parent).is_endless();
        throttles || is_throttled(plan, shape, &shape.parents[parent])
    };
    !above.is_empty() && above.iter().all(by)
}

impl Broken {
    /// In plain words what does not hold: who promises what to whom, in which units, what it demands, what happens on overrun.
    pub(crate) fn paragraph(&self, plan: &Plan, shape: &Shape, admission: &Admission) -> String {
        match (&self.need, self.part()) {
            (_, Part::Chain(_)) => match self.problem {
                Problem::Chain(chain, need) => chains::paragraph(plan, admission, chain, need),
                _ => String::new(),
            },
            (Some(need), part) => {
                let throttled = is_throttled(plan, shape, part.above(shape));
                self.of_need(admission.promises_to(part).first(), need, throttled)
            }
            (None, Part::Node(node)) => self.of_law(plan, shape, admission, node),
            (None, Part::Task(task)) => self.of_jobs(plan, shape, admission, task),
            (None, Part::Edge(_)) => String::new(),
        }
    }

    fn of_need(&self, promise: Option<&Promise>, need: &str, throttled: bool) -> String {
        let Some((goal, promise)) = Guarantee::parse(need).ok().zip(promise) else { return String::new() };
        let (name, promised) = (&self.name, &promise.guarantee);
        let mut text = format!("`{name}` needs {}. ", goal.meaning());
        if promised.kind() == Kind::Null {
            text += &format!(
                "It has no guarantee: {}. It gets the CPU when others leave it, and nothing bounds when that is. ",
                promise.because
            );
            return text
                + "What would help is a place in a reservation that nothing of higher priority can hold up.";
        }
        text += &format!("It is guaranteed something else: {}. ", promised.meaning());
        if let Some((amount, period)) = goal.amount_and_period() {
            let sure = Supply::of(promised).at(period);
            let (period, amount) = (noted_time(period, true), noted_time(amount, true));
            text += &match sure == tierce_guarantee::whole(0) {
                true => format!("Some window of {period} may hold none of it. "),
                false => {
                    format!(
                        "Some window of {period} may hold only {} of it, not {amount}. ",
                        noted_time(&sure, false)
                    )
                }
            };
        }
        let said = promised.kind() == Kind::Psbe;
        if let Some(gap) = Supply::of(promised).longest_gap().filter(|_| !said) {
            text += &format!("The longest time without supply is {}. ", noted_time(&gap, true));
        }
        text += &format!(
            "The guarantee assumes {}. If it wants more, {}.",
            assumes(promised),
            overrun(promised, throttled)
        );
        text
    }

    fn of_law(&self, plan: &Plan, shape: &Shape, admission: &Admission, node: usize) -> String {
        let children = &shape.children[node];
        let policy = policies::by_number(plan.nodes[node].policy);
        let Some((budget, period)) = policy.and_then(policies::budget_and_period) else {
            return self.of_deadlines(plan, admission, node, children);
        };
        let promised = |edge: &Edge| {
            let at = policy.and_then(|policy| policies::position(&policy.edge_params, "deadline"));
            let due = at.map(|at| edge.params[at]).filter(|due| *due < edge.params[period]);
            let due = due.map_or("in".into(), |due| format!("in the first {} of", show_time(due)));
            format!("{} {due} every {}", show_time(edge.params[budget]), show_time(edge.params[period]))
        };
        let set = |edge: &Edge| match edge.child {
            Child::Task(task) => plan.tasks[task].set,
            _ => None,
        };
        let edges: Vec<_> = children.iter().map(|edge| &plan.edges[*edge]).collect();
        // Members of a set with the same budget are one of the list.
        let alike = edges.chunk_by(|a, b| set(a).is_some() && set(a) == set(b) && promised(a) == promised(b));
        let each = alike.map(|alike| match (set(alike[0]), alike.len()) {
            (Some(set), members @ 2..) => {
                format!("each of {members} members of `{}` {}", plan.sets[set].name, promised(alike[0]))
            }
            _ => format!("`{}` {}", plan.child_name(alike[0].child), promised(alike[0])),
        });
        let matching = live_sets(plan, node).map(|(set, edge)| {
            let further = if set.members.is_empty() { "" } else { "further " };
            format!("each {further}thread that matches `{}` {}", set.name, promised(edge))
        });
        let each: Vec<_> = each.chain(matching).collect();
        let count = each.len();
        let each = listed(each.into_iter().take(NAMED), count);
        let why = self.of_budgets(plan, shape, &admission.nodes[node], node);
        format!("`{}` has these budgets to give: {each}. {why}", self.name)
    }

    /// Why budgets cannot be relied on, and what helps.
    fn of_budgets(&self, plan: &Plan, shape: &Shape, verdict: &NodeVerdict, node: usize) -> String {
        let asked = verdict.asked.as_ref().map(percent).unwrap_or_default();
        let why = match self.rule {
            "budgets_must_fit_the_cpu" if shape.reach[node].are_several() => {
                return format!(
                    "Together they are {asked} of a CPU. A `reservation` that several CPUs share may give at most 100 %, \
                     however many CPUs run it. Make it one for each CPU: `per_cpu = true` in `{name}` and the nodes above it, and \
                     `cpu = \"any\"` in each edge below it; or reduce the budgets.",
                    name = self.name
                )
            }
            "budgets_must_fit_the_cpu" => {
                format!("Together these budgets would take {asked} of one CPU's time, and there is 100 %. ")
            }
            "budgets_must_fit_the_cap" => {
                let cap = servers::cap(plan, node).map_or(String::new(), |cap| percent_given(&cap));
                let least = match verdict.asked.as_ref() {
                    Some(asked) if *asked <= crate::share::one() => format!("a cap of {} would be enough", percent(asked)),
                    _ => "a cap can be 100 % at most".into(),
                };
                format!(
                    "Together these budgets would take {asked} of one CPU's time, and the cap of `{}` leaves them {cap}; {least}. ",
                    self.name
                )
            }
            "budgets_must_fit_the_supply" => format!(
                "Together these budgets take {asked} of a CPU, but `{}` gets only {} itself, and can give no more than \
                 it gets. ",
                self.name,
                verdict.available.as_ref().map_or(String::new(), percent_given)
            ),
            "budgets_must_fit_every_window" => "In the long run there is room for all of them, but not in every window: \
                 when all begin at once, more has to be given before the first deadlines than there is time until then. "
                .into(),
            "kept_budgets_must_fit" => "A task that sleeps keeps the rest of its budget until its deadline. If it wakes late, it \
                 uses that rest shortly before its deadline, and delays others whose deadlines are later. "
                .into(),
            "budget_must_pay_for_a_switch" => "A switch takes time, which is charged to the task that begins. A budget as \
                 short as this one leaves nothing for work. "
                .into(),
            "budgets_must_fit_what_is_left" => format!(
                "On this machine others run before everything in the plan and leave too little: {}. ",
                self.excess.test
            ),
            "budgets_are_not_proved" => return not_proved(&self.name, &verdict.promises[0]),
            "windows_must_be_few" => {
                return "They fill the CPU so nearly that it could not be decided whether they fit: leave a little room, or \
                        take periods that divide each other."
                    .into()
            }
            _ => String::new(),
        };
        why + "So none of them can be relied on: in some period a task gets less than its budget, or gets it too late. A \
               budget is a limit, too: a task that wants more in a period is throttled until the next one begins, and the others \
               do not notice. Make each budget as large as its work needs, no larger, or let it come less often."
    }

    fn of_deadlines(&self, plan: &Plan, admission: &Admission, node: usize, children: &[usize]) -> String {
        let (name, verdict) = (&self.name, &admission.nodes[node]);
        let jobs = children.iter().filter_map(|edge| match plan.edges[*edge].child {
            Child::Task(task) => Some((&plan.tasks[task].name, work(plan.tasks[task].load.as_ref()?)?)),
            _ => None,
        });
        let count = jobs.clone().count();
        let each = jobs.take(NAMED).map(|(name, work)| format!("`{name}` {work}"));
        let mut text = format!(
            "`{name}` lets those below it meet deadlines, as long as no job works longer than its load says: {}. ",
            listed(each, count)
        );
        let promise = verdict.promises.first().map(|promise| &promise.guarantee);
        text += &match (self.rule, promise) {
            ("deadlines_must_fit_the_supply", _) => format!(
                "The jobs need {} of a CPU and there is {}: sooner or later jobs are late, and ever more so. ",
                verdict.asked.as_ref().map_or(String::new(), percent),
                verdict.available.as_ref().map_or(String::new(), percent_given)
            ),
            ("deadlines_must_fit_what_is_promised", Some(promise)) => format!(
                "Its guarantee is {}. In some window more work can be due than that supplies. ",
                promise.meaning()
            ),
            _ => "In the long run there is room for all of them, but not in every window: when jobs come at once, more is due \
                  before the first deadlines than there is time until then. "
                .into(),
        };
        text + "A job that works longer than it says takes the time from all others: nothing here stops it. Where that may \
                happen give the task a reservation of its own. Otherwise let jobs work less, come less often or be due later, or \
                give all of them more from above."
    }

    fn of_jobs(&self, plan: &Plan, shape: &Shape, admission: &Admission, task: usize) -> String {
        let Some(work) = plan.tasks[task].load.as_ref().and_then(work) else { return String::new() };
        let promise = &admission.tasks[task].promises[0].guarantee;
        let mut text = format!("`{}` has jobs with deadlines: {work}. ", self.name);
        text += &match promise.kind() {
            Kind::Null => {
                "It has no guarantee of its own; it depends on what those before it leave. ".to_string()
            }
            _ => format!("It is guaranteed {}. ", promise.meaning()),
        };
        text += match self.rule {
            "deadline_is_not_proved" => "No test proves that this is enough for each job to be complete at its deadline: it may be, but \
                 nobody can rely on it. ",
            _ => "At worst that is not enough for a job to be done by its deadline: it will be late, and the next one may be, too. ",
        };
        let throttled = is_throttled(plan, shape, &shape.task_parents[task]);
        text + &format!("If a job works even longer, {}.", overrun(promise, throttled))
    }
}

/// Why budgets are not sure to come from what the node above them is promised, and what helps.
fn not_proved(name: &str, promise: &Promise) -> String {
    let Promise { guarantee, because, .. } = promise;
    if guarantee.kind() == Kind::Null {
        return format!(
            "But `{name}` has no guarantee itself: {because}. So it may get no CPU time, and none of these budgets is \
             guaranteed. Give `{name}` a higher priority than all that nothing limits, or a budget in a reservation."
        );
    }
    format!(
        "The guarantee of `{name}` is {}, and in some window that is less than the demand. So none of these budgets is \
         guaranteed: in some period a task may get less, or get it too late. Give `{name}` more from above, or make these \
         budgets smaller.",
        guarantee.meaning()
    )
}

/// "1ms every 10ms, due within 5ms"; of bursts "up to 1ms, 3 times in 50ms".
fn work(load: &Load) -> Option<String> {
    let told = |suspension_ns: u64| load.is_bursty() || suspension_ns > 0 || job(load, 0).is_some();
    let (job, suspension_ns) = densest(load, 0).filter(|(_, suspension_ns)| told(*suspension_ns))?;
    let due = match job.deadline_ns {
        deadline if deadline == job.period_ns || load.deadline_ns().is_none() => String::new(),
        deadline => format!(", due within {}", show_time(deadline)),
    };
    let mut work = show_time(job.work_ns);
    if suspension_ns > 0 {
        work += &format!(" of work and {} of suspension", show_time(suspension_ns));
    }
    if let Load::Sporadic(tierce_plan::Sporadic { further_ns, .. }) = load {
        if let Some(last_ns) = further_ns.last() {
            return Some(format!(
                "up to {work}, {} times in {}{due}",
                further_ns.len() + 1,
                show_time(*last_ns)
            ));
        }
    }
    Some(format!("up to {work} every {}{due}", show_time(job.period_ns)))
}

/// The first of them, and how many there are.
fn listed(each: impl Iterator<Item = String>, all: usize) -> String {
    let mut each: Vec<_> = each.collect();
    if all > each.len() {
        each.push(format!("and {} more", all - each.len()));
    }
    each.join(", ")
}

/// In lines of about 110 characters, indented by two.
pub fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let width = word.chars().count();
        if column == 0 || (column + 1 + width > 110 && word != "%") {
            lines += if column == 0 { "  " } else { "\n  " };
            column = 2;
        } else {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += width;
    }
    lines
}

/// "2 tasks".
pub(super) fn count(number: usize, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}
