//! The analyses against schedules played slot by slot, on small random sets.
//!
//! What is found is exact: the worst case of the theory is played, and takes exactly as long. What is promised holds: with
//! random phases, jitter, sporadic gaps and supplies nothing takes longer.

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use tierce_analysis::{priorities, Demand, Edf, FixedPriority, Response, Supply, Task};

impl Draw {
    /// From 0 to `most`.
    fn upto(&mut self, most: u64) -> u64 {
        self.below(most as usize + 1) as u64
    }

    fn tasks(&mut self, count: u64, jitter: bool, blocking: bool) -> Vec<Task> {
        const PERIODS: [u64; 8] = [4, 5, 6, 8, 10, 12, 15, 20];
        (0..count)
            .map(|_| {
                let period_ns = PERIODS[self.upto(7) as usize];
                let work_ns = 1 + self.upto(period_ns / 3);
                let deadline_ns = match self.upto(2) {
                    0 => period_ns,
                    1 => work_ns + self.upto(period_ns - work_ns),
                    _ => period_ns + self.upto(period_ns),
                };
                let jitter_ns = if jitter && self.upto(1) == 0 { self.upto(period_ns + 3) } else { 0 };
                let blocking_ns = if blocking && self.upto(1) == 0 { self.upto(4) } else { 0 };
                Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns }
            })
            .collect()
    }

    /// A supply, and a slot-by-slot worst case of it that begins with the longest wait.
    fn supply(&mut self) -> Supply {
        let period = 2 + self.upto(6);
        let budget = 1 + self.upto(period - 1);
        match self.upto(3) {
            0 => Supply::WHOLE,
            1 => Supply::edp(budget, period, budget + self.upto(period - budget)).unwrap(),
            _ => Supply::periodic(budget, period).unwrap(),
        }
    }
}

/// A slot is given in the worst case of a supply that begins at 0.
fn worst_slot(supply: &Supply, slot: u64) -> bool {
    match supply {
        Supply::Chunks(chunks) => {
            slot >= chunks.first_wait_ns
                && (slot - chunks.first_wait_ns) % chunks.period_ns < chunks.budget_ns
        }
        _ => true,
    }
}

/// Jobs as (ready, nominal release, task), in any order.
type Jobs = Vec<(u64, i64, usize)>;

/// Play `jobs` for `slots`; the longest response of each task among jobs that are done. `before(a, b)` says that job a goes
/// before job b, each with its nominal release and task; the first released of a task always goes first.
fn play(
    tasks: &[Task],
    jobs: &Jobs,
    slots: u64,
    given: impl Fn(u64) -> bool,
    before: impl Fn((i64, usize), (i64, usize)) -> bool,
) -> Vec<i64> {
    let mut jobs: Vec<_> =
        jobs.iter().map(|(ready, release, task)| (*ready, *release, *task, tasks[*task].work_ns)).collect();
    jobs.sort();
    let mut longest = vec![0; tasks.len()];
    let (mut come, mut ready) = (0, Vec::<(i64, usize, u64)>::new());
    for slot in 0..slots {
        while come < jobs.len() && jobs[come].0 <= slot {
            ready.push((jobs[come].1, jobs[come].2, jobs[come].3));
            come += 1;
        }
        if !given(slot) || ready.is_empty() {
            continue;
        }
        let mut first = 0;
        for at in 1..ready.len() {
            let (this, best) = ((ready[at].0, ready[at].1), (ready[first].0, ready[first].1));
            if if this.1 == best.1 { this.0 < best.0 } else { before(this, best) } {
                first = at;
            }
        }
        ready[first].2 -= 1;
        if ready[first].2 == 0 {
            let (release, task, _) = ready.remove(first);
            longest[task] = longest[task].max(slot as i64 + 1 - release);
        }
    }
    longest
}

/// All tasks released at 0, as late as jitter allows, and then as soon as possible.
fn critical_jobs(tasks: &[Task], slots: u64) -> Jobs {
    let of = |(index, task): (usize, &Task)| -> Jobs {
        let releases = (0..).map(|job| (job * task.period_ns) as i64 - task.jitter_ns as i64);
        releases
            .take_while(|release| *release < slots as i64)
            .map(|release| (release.max(0) as u64, release, index))
            .collect()
    };
    tasks.iter().enumerate().flat_map(of).collect()
}

/// Random phases, jitter, and gaps longer than the period.
fn random_jobs(tasks: &[Task], slots: u64, draw: &mut Draw) -> Jobs {
    let mut jobs = Jobs::new();
    for (index, task) in tasks.iter().enumerate() {
        let mut release = draw.upto(task.period_ns) as i64;
        let gaps = draw.upto(2) == 0;
        while release < slots as i64 {
            let late = [0, task.jitter_ns, draw.upto(task.jitter_ns)][draw.upto(2) as usize];
            jobs.push((release as u64 + late, release, index));
            release += (task.period_ns + if gaps { draw.upto(3) } else { 0 }) as i64;
        }
    }
    jobs
}

/// A random pattern of a supply: budgets anywhere before their deadlines.
fn random_pattern(supply: &Supply, slots: u64, draw: &mut Draw) -> Vec<bool> {
    let Supply::Chunks(chunks) = supply else { return vec![true; slots as usize] };
    let deadline = chunks.first_wait_ns + 2 * chunks.budget_ns - chunks.period_ns;
    let mut pattern = Vec::new();
    while pattern.len() < slots as usize {
        let mut period = vec![false; chunks.period_ns as usize];
        let mut left = chunks.budget_ns;
        let latest = draw.upto(1) == 0;
        for slot in (0..deadline).rev() {
            if left > 0 && (latest || slot < left || draw.upto(1) == 0) {
                period[slot as usize] = true;
                left -= 1;
            }
        }
        pattern.append(&mut period);
    }
    let phase = draw.upto(chunks.period_ns - 1) as usize;
    pattern.drain(..phase);
    pattern.resize(slots as usize, true);
    pattern
}

const SLOTS: u64 = 800; // longer than any busy period that is bounded here, or the set is skipped

/// The critical instant of the theory, played, takes as long as computed: for every task with blocking of its own, which is
/// played as work that comes first and is not interrupted.
#[test]
fn response_times_are_exact() {
    let mut draw = Draw::new(1);
    let (mut exact, mut unbounded) = (0, 0);
    let mut analysis = FixedPriority::new();
    for round in 0..1_200 {
        let (count, jitter, blocking) = (1 + draw.upto(3), round % 2 == 0, round % 3 == 0);
        let tasks = draw.tasks(count, jitter, blocking);
        let supply = draw.supply();
        let responses = analysis.responses(&tasks, &supply).to_vec();
        for (index, task) in tasks.iter().enumerate() {
            let Response::Within(response) = responses[index] else {
                unbounded += 1;
                continue;
            };
            let blocker = Task::new(task.blocking_ns.max(1), SLOTS);
            let mut playing = tasks[..=index].to_vec();
            let mut jobs = critical_jobs(&playing, SLOTS);
            playing.push(blocker);
            if task.blocking_ns > 0 {
                jobs.push((0, 0, index + 1));
            }
            let rank = |task: usize| if task == index + 1 { 0 } else { task + 1 };
            let played =
                play(&playing, &jobs, SLOTS, |slot| worst_slot(&supply, slot), |a, b| rank(a.1) < rank(b.1));
            if response < SLOTS / 2 {
                assert_eq!(played[index] as u64, response, "task {index} of {tasks:?} in {supply:?}");
                exact += 1;
            }
        }
    }
    println!("{exact} response times exact, {unbounded} unbounded");
    assert!(exact > 1_200 && unbounded > 50, "{exact} {unbounded}");
}

/// Nothing takes longer, whatever the phases, jitter, gaps and pattern of the supply.
#[test]
fn response_times_are_bounds() {
    let mut draw = Draw::new(2);
    let (mut analysis, mut edf) = (FixedPriority::new(), Edf::new());
    let (mut sets, mut verdicts) = (0, 0);
    while sets < 2_000 {
        let count = 2 + draw.upto(2);
        let tasks = draw.tasks(count, sets % 2 == 0, false);
        let supply = draw.supply();
        let fixed = analysis.responses(&tasks, &supply).to_vec();
        let earliest = edf.responses(&tasks, &supply).to_vec();
        if fixed.iter().all(|response| response.ns().is_none()) {
            continue;
        }
        sets += 1;
        let met = edf.demand(&tasks, &supply) == Demand::Met;
        for _ in 0..2 {
            let (jobs, pattern) =
                (random_jobs(&tasks, 400, &mut draw), random_pattern(&supply, 400, &mut draw));
            let given = |slot: u64| pattern[slot as usize];
            let played = play(&tasks, &jobs, 400, given, |a, b| a.1 < b.1);
            for (played, response) in played.iter().zip(&fixed) {
                assert!(response.ns().is_none_or(|most| *played as u64 <= most), "{tasks:?} {supply:?}");
            }
            let due = |job: (i64, usize)| job.0 + tasks[job.1].deadline_ns as i64;
            let played = play(&tasks, &jobs, 400, given, |a, b| (due(a), a.1) < (due(b), b.1));
            for ((played, response), task) in played.iter().zip(&earliest).zip(&tasks) {
                assert!(response.ns().is_none_or(|most| *played as u64 <= most), "EDF {tasks:?} {supply:?}");
                assert!(!met || *played as u64 <= task.deadline_ns, "EDF met: {tasks:?} {supply:?}");
            }
            verdicts += 1;
        }
    }
    println!("{sets} sets, {verdicts} schedules each of fixed priorities and EDF");
}

/// Equal priorities: each member of a level has the others above it, and waits when one of them is blocked.
#[test]
fn equal_priorities() {
    let mut draw = Draw::new(3);
    let mut analysis = FixedPriority::new();
    for _ in 0..500 {
        let mut tasks = draw.tasks(4, true, true);
        let levels = [0, 1, 1, 2];
        let supply = draw.supply();
        let together = analysis.responses_by_level(&tasks, &levels, &supply).to_vec();
        let longest = tasks[1].blocking_ns.max(tasks[2].blocking_ns);
        tasks[1..3].iter_mut().for_each(|task| task.blocking_ns = longest);
        let apart = analysis.responses(&tasks, &supply).to_vec();
        tasks.swap(1, 2);
        let swapped = analysis.responses(&tasks, &supply).to_vec();
        let worst = [apart[0], swapped[2], apart[2], apart[3]];
        // A level is bounded as a whole.
        let bounded = |index: usize| together[index].ns().is_some();
        assert!(
            (0..4).filter(|index| bounded(*index)).all(|index| together[index] == worst[index]),
            "{tasks:?}"
        );
        assert!(together[1].ns().is_some() == together[2].ns().is_some());
    }
}

/// One task below others in any order, and Audsley's choice against all orders.
#[test]
fn audsley_is_optimal() {
    let mut draw = Draw::new(4);
    let mut analysis = FixedPriority::new();
    let (mut found, mut none) = (0, 0);
    for _ in 0..600 {
        let tasks = draw.tasks(3, true, true);
        let supply = draw.supply();
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let mut holds = |order: &[usize]| {
            let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
            analysis.schedulable(&ordered, &supply)
        };
        let any = orders.iter().any(|order| holds(order));
        match priorities::audsley(&tasks, &supply) {
            Some(order) => {
                assert!(holds(&order), "{order:?} of {tasks:?}");
                found += 1;
            }
            None => {
                assert!(!any, "{tasks:?} in {supply:?}");
                none += 1;
            }
        }
    }
    assert!(found > 50 && none > 50, "{found} {none}");
}

/// The demand test against the worst schedule: all released together, the longest wait for the supply first.
#[test]
fn the_demand_test_is_exact() {
    let mut draw = Draw::new(5);
    let mut edf = Edf::new();
    let (mut met, mut missed) = (0, 0);
    for round in 0..1_500 {
        let count = 1 + draw.upto(3);
        let tasks = draw.tasks(count, round % 3 == 0, false);
        let supply = draw.supply();
        let found = edf.demand(&tasks, &supply);
        let jobs = critical_jobs(&tasks, SLOTS);
        let due = |job: (i64, usize)| job.0 + tasks[job.1].deadline_ns as i64;
        let played = play(
            &tasks,
            &jobs,
            SLOTS,
            |slot| worst_slot(&supply, slot),
            |a, b| (due(a), a.1) < (due(b), b.1),
        );
        let late = played.iter().zip(&tasks).any(|(played, task)| *played as u64 > task.deadline_ns);
        match found {
            Demand::Met => {
                assert!(!late, "{tasks:?} in {supply:?}");
                met += 1;
            }
            Demand::Exceeds { window_ns, due_ns } => {
                assert!(late, "{tasks:?} in {supply:?}: {due_ns} in {window_ns}");
                assert!(supply.time_for(due_ns) > window_ns);
                missed += 1;
            }
            Demand::Overload => {}
            Demand::TooLong => panic!("{tasks:?}"),
        }
    }
    println!("{met} met, {missed} missed");
    assert!(met > 150 && missed > 150);
}

/// EDF response times against every choice of phases.
#[test]
fn edf_response_times_are_exact() {
    let mut draw = Draw::new(6);
    let mut edf = Edf::new();
    let mut exact = 0;
    while exact < 60 {
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let period = [3, 4, 6][draw.upto(2) as usize];
                let work = 1 + draw.upto(1);
                Task { deadline_ns: work + draw.upto(2 * period - work), ..Task::new(work, period) }
            })
            .collect();
        let responses: Option<Vec<_>> =
            edf.responses(&tasks, &Supply::WHOLE).iter().map(|response| response.ns()).collect();
        let Some(responses) = responses else { continue };
        let mut longest = [0; 3];
        let due = |job: (i64, usize)| job.0 + tasks[job.1].deadline_ns as i64;
        for phases in 0..6 * 6 * 6 {
            let phases = [phases % 6, phases / 6 % 6, phases / 36];
            if phases.iter().zip(&tasks).any(|(phase, task)| *phase >= task.period_ns) {
                continue;
            }
            let of = |index: usize| (0..60).map(move |job| (job, index));
            let jobs: Jobs = (0..3)
                .flat_map(of)
                .map(|(job, index)| phases[index] + job * tasks[index].period_ns)
                .zip((0..3).flat_map(|index| std::iter::repeat_n(index, 60)))
                .map(|(release, index)| (release, release as i64, index))
                .collect();
            // Of equal deadlines each may come last: whoever is looked at.
            for last in 0..3 {
                let played =
                    play(&tasks, &jobs, 60, |_| true, |a, b| (due(a), a.1 == last) < (due(b), b.1 == last));
                longest[last] = longest[last].max(played[last] as u64);
            }
        }
        assert_eq!(responses, longest, "{tasks:?}");
        exact += 1;
    }
}

/// Earliest deadline first with a resource that each job of some tasks holds for its first `held` slots, by the stack
/// resource policy: nobody who could use it, and nobody of a longer deadline than one who could, begins meanwhile.
fn play_with_resource(tasks: &[Task], held: &[u64], jobs: &Jobs, slots: u64) -> Vec<i64> {
    let shortest = users(tasks, held).map(|user| tasks[user].deadline_ns).min().unwrap_or(u64::MAX);
    let mut jobs = jobs.clone();
    jobs.sort();
    let mut longest = vec![0; tasks.len()];
    let (mut come, mut ready) = (0, Vec::<(i64, usize, u64)>::new());
    for slot in 0..slots {
        while come < jobs.len() && jobs[come].0 <= slot {
            let (_, release, task) = jobs[come];
            ready.push((release + tasks[task].deadline_ns as i64, task, 0));
            come += 1;
        }
        let Some(mut first) = (0..ready.len()).min_by_key(|at| ready[*at]) else { continue };
        let holds = |(_, task, done): &(i64, usize, u64)| 0 < *done && *done < held[*task];
        if ready[first].2 == 0 && tasks[ready[first].1].deadline_ns >= shortest {
            first = ready.iter().position(holds).unwrap_or(first);
        }
        let (due, task, done) = &mut ready[first];
        *done += 1;
        if *done == tasks[*task].work_ns {
            let response = slot as i64 + 1 - (*due - tasks[*task].deadline_ns as i64);
            longest[*task] = longest[*task].max(response);
            ready.remove(first);
        }
    }
    longest
}

fn users<'t>(tasks: &'t [Task], held: &'t [u64]) -> impl Iterator<Item = usize> + 't {
    (0..tasks.len()).filter(|at| held[*at] > 0)
}

/// Blocking under EDF, whoever is blocked: a task with a short deadline that waits for a resource makes those wait that have
/// longer ones and no resource.
#[test]
fn blocking_holds_for_edf() {
    let mut draw = Draw::new(9);
    let mut edf = Edf::new();
    let (mut bounded, mut met, mut reached) = (0, 0, 0);
    for round in 0..12_000 {
        let count = 3 + draw.upto(1);
        let mut tasks = draw.tasks(count, round % 2 == 0, false);
        let held: Vec<_> =
            tasks.iter().map(|task| if draw.upto(2) > 0 { draw.upto(task.work_ns) } else { 0 }).collect();
        let shortest = users(&tasks, &held).map(|user| tasks[user].deadline_ns).min().unwrap_or(u64::MAX);
        // Jobs of a task do not overtake each other.
        tasks.iter_mut().for_each(|task| task.jitter_ns = task.jitter_ns.min(task.period_ns));
        for at in 0..tasks.len() {
            // Whoever is due later may have begun one slot before.
            let task = tasks[at];
            let later = |other: &usize| tasks[*other].deadline_ns + task.jitter_ns > task.deadline_ns;
            let blocks = users(&tasks, &held).filter(|other| *other != at && later(other));
            let longest = blocks.map(|other| held[other] - 1).max().unwrap_or(0);
            tasks[at].blocking_ns = if shortest <= task.deadline_ns { longest } else { 0 };
        }
        let responses: Option<Vec<_>> =
            edf.responses(&tasks, &Supply::WHOLE).iter().map(|response| response.ns()).collect();
        let Some(responses) = responses else { continue };
        let demand = edf.demand(&tasks, &Supply::WHOLE);
        bounded += 1;
        met += u32::from(demand == Demand::Met);
        for _ in 0..6 {
            let jobs = random_jobs(&tasks, 150, &mut draw);
            let played = play_with_resource(&tasks, &held, &jobs, 150);
            for ((task, response), played) in tasks.iter().zip(&responses).zip(played) {
                let what = || format!("{task:?} of {tasks:?}, held {held:?}: {played}, not {response}");
                assert!(played as u64 <= *response, "{}", what());
                assert!(demand != Demand::Met || played as u64 <= task.deadline_ns, "{}", what());
                reached += u32::from(played as u64 == *response && task.blocking_ns > 0);
            }
        }
    }
    println!("{bounded} sets, {met} met, {reached} times as long as computed");
    assert!(bounded > 3_000 && met > 500 && reached > 100, "{bounded} {met} {reached}");
}

/// The last one holds what the first one needs, for 4 from -1 on. At 0 the first one comes 5 late, due at 5, and the second
/// one, due at 7: one waits for the other, which waits for 3, and is done at 8.
#[test]
fn blocking_of_a_late_job() {
    let task = |work, deadline_ns, jitter_ns, blocking_ns| Task {
        deadline_ns,
        jitter_ns,
        blocking_ns,
        ..Task::new(work, 30)
    };
    let tasks = [task(2, 10, 5, 3), task(3, 7, 0, 0), task(4, 12, 0, 0)];
    let played = play_with_resource(&tasks, &[1, 0, 4], &vec![(0, -1, 2), (1, -4, 0), (1, 1, 1)], 20);
    assert_eq!(played, [10, 8, 5]);
    let mut edf = Edf::new();
    let found = edf.demand(&tasks, &Supply::WHOLE);
    assert_eq!(found, Demand::Exceeds { window_ns: 7, due_ns: 8 });
    assert_eq!(edf.responses(&tasks, &Supply::WHOLE)[1], Response::Within(8));
}

/// The ghost task of HLS 6.1 gives the same response times as the exact supply.
#[test]
fn ghost_tasks_equal_reservations() {
    let mut draw = Draw::new(7);
    let mut analysis = FixedPriority::new();
    let mut same = 0;
    while same < 3_000 {
        let count = 1 + draw.upto(3);
        let tasks = draw.tasks(count, same % 2 == 0, false);
        let period = 2 + draw.upto(6);
        let budget = 1 + draw.upto(period - 2);
        let inside = analysis.responses(&tasks, &Supply::periodic(budget, period).unwrap()).to_vec();
        let ghost = Task { jitter_ns: budget, ..Task::new(period - budget, period) };
        let with_ghost: Vec<_> = [ghost].iter().chain(&tasks).copied().collect();
        let outside = analysis.responses(&with_ghost, &Supply::WHOLE);
        assert_eq!(inside, outside[1..], "{tasks:?} in {budget}/{period}");
        same += inside.iter().filter(|response| response.ns().is_some()).count();
    }
}

/// The demand test against every window up to a common multiple of the periods, for nearly full CPUs, where windows that
/// fail are long.
#[test]
fn no_window_is_forgotten() {
    let mut draw = Draw::new(8);
    let mut edf = Edf::new();
    // Only a window of 2400 fails, the first in which all deadlines fall together; the bound for windows is 3000.
    let only = [(100, 200, 200), (88, 300, 300), (100, 400, 500)];
    let only = only.map(|(work, deadline_ns, period)| Task { deadline_ns, ..Task::new(work, period) });
    let found = edf.demand(&only, &Supply::WHOLE);
    assert_eq!(found, Demand::Exceeds { window_ns: 2_400, due_ns: 2_404 });
    let (mut late, mut missed, mut met) = (0, 0, 0);
    while missed < 300 || met < 300 {
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let period_ns = [7, 9, 10, 11, 13][draw.upto(4) as usize];
                let work_ns = 1 + draw.upto(period_ns / 2);
                Task { deadline_ns: period_ns - draw.upto(2), ..Task::new(work_ns, period_ns) }
            })
            .collect();
        let used: f64 = tasks.iter().map(|task| task.work_ns as f64 / task.period_ns as f64).sum();
        if !(0.9..=1.0).contains(&used) {
            continue;
        }
        let due = |window: u64| -> u64 {
            let jobs = |task: &Task| (window + task.period_ns - task.deadline_ns) / task.period_ns;
            tasks.iter().map(|task| jobs(task) * task.work_ns).sum()
        };
        let cycle: u64 = 7 * 9 * 10 * 11 * 13;
        let cycle = if used > 0.999 { cycle } else { 4_000 };
        let first = (1..=cycle + 13).find(|window| due(*window) > *window);
        let found = edf.demand(&tasks, &Supply::WHOLE);
        assert_eq!(first.is_none(), found == Demand::Met, "{tasks:?}: {first:?}, {found:?}");
        let shortest = edf.shortest_excess(&tasks, &Supply::WHOLE);
        assert_eq!(shortest.map(|(window, _)| window), first, "{tasks:?}");
        match first {
            None => met += 1,
            Some(window) => {
                missed += 1;
                late += u32::from(window > 30);
            }
        }
    }
    println!("{missed} missed, {late} of them not before 30; {met} met");
    assert!(late > 10);
}
