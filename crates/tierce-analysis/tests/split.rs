//! Split tasks: an oracle that knows only pieces and tasks, boundary cases, refusals.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::split::{
    assign, bound, remedy, Algorithm, Assignment, Costs, Interrupt, Piece, Question, Refusal, Remedy, Server,
};
use tierce_analysis::Task;
use tierce_guarantee::{ratio, whole, Exact};

const MS: u64 = 1_000_000;

fn question(algorithm: Algorithm, cpus: u32, delta: u32) -> Question {
    Question { algorithm, cpus, delta, costs: Costs::default(), piece_min_ns: 0, rest_ns: 0 }
}

fn tasks(all: &[(u64, u64)]) -> Vec<Task> {
    all.iter().map(|(work, period)| Task::new(*work, *period)).collect()
}

/// When a server runs for sure within a slot: its pieces from the jitter on, in order of time.
fn sure(server: &Server, slot: u64, jitter: u64) -> Vec<(u64, u64)> {
    if server.pieces.iter().any(|piece| piece.length_ns == slot) {
        return vec![(0, slot)];
    }
    let end = |piece: &Piece| piece.offset_ns + piece.length_ns;
    let late = server.pieces.iter().map(|piece| (end(piece).min(piece.offset_ns + jitter), end(piece)));
    let mut parts: Vec<_> = late.collect();
    parts.sort_unstable();
    parts
}

/// The least that these parts of each slot give in a window of `t`, over all places of it.
fn supply(parts: &[(u64, u64)], slot: u64, t: u64) -> u64 {
    let each: u64 = parts.iter().map(|(begin, end)| end - begin).sum();
    let until = |time: u64| {
        let part = |(begin, end): &(u64, u64)| (time % slot).clamp(*begin, *end) - begin;
        time / slot * each + parts.iter().map(part).sum::<u64>()
    };
    // What is supplied is least where a window begins as a part ends, or ends as one begins.
    let begins = parts.iter().map(|(_, end)| *end);
    let begins = begins.chain(parts.iter().map(|(begin, _)| (begin + slot - t % slot) % slot));
    begins.map(|begin| until(begin + t) - until(begin)).min().unwrap_or(0)
}

/// The first window in which more is due than comes, of those up to where none can be.
fn late(members: &[Task], parts: &[(u64, u64)], slot: u64) -> Option<u64> {
    let due = |t: u64| {
        members.iter().map(|task| u128::from(t / task.period_ns) * u128::from(task.work_ns)).sum::<u128>()
    };
    let rate = parts.iter().map(|(begin, end)| end - begin).sum::<u64>() as f64 / slot as f64;
    let used: f64 = members.iter().map(|task| task.work_ns as f64 / task.period_ns as f64).sum();
    let longest = members.iter().map(|task| task.period_ns).max().unwrap_or(0);
    let enough = (slot as f64 * rate * (1.0 - rate) / (rate - used).max(1e-6)) as u64;
    let horizon = enough.clamp(2 * longest, longest.saturating_mul(20));
    let mut windows: Vec<_> = members
        .iter()
        .flat_map(|task| (1..=horizon / task.period_ns).take(500).map(|count| count * task.period_ns))
        .collect();
    windows.sort_unstable();
    windows.dedup();
    windows.into_iter().find(|t| due(*t) > u128::from(supply(parts, slot, *t)))
}

/// Everything that has to be true of an assignment.
fn judge(found: &Assignment, asked: &Question) {
    let (slot, jitter) = (found.slot_ns, asked.costs.reserve_jitter_ns);
    let mut seen = vec![0; found.sized.len()];
    let mut on: Vec<Vec<(u64, u64)>> = vec![Vec::new(); asked.cpus as usize];
    let mut sum = 0;
    for server in &found.servers {
        server.tasks.iter().for_each(|index| seen[*index] += 1);
        assert!(!server.tasks.is_empty() && matches!(server.pieces.len(), 1 | 2));
        for piece in &server.pieces {
            assert!(piece.length_ns > 0 && piece.offset_ns + piece.length_ns <= slot);
            on[piece.cpu as usize].push((piece.offset_ns, piece.offset_ns + piece.length_ns));
            sum += piece.length_ns;
        }
        if let [first, second] = server.pieces[..] {
            assert_eq!(
                (first.cpu + 1, first.offset_ns + first.length_ns, second.offset_ns),
                (second.cpu, slot, 0)
            );
            assert!(second.length_ns <= first.offset_ns, "on two CPUs at once");
            assert!(!server.fills);
        }
        let parts = sure(server, slot, jitter);
        assert!(parts.iter().map(|(begin, end)| end - begin).sum::<u64>() >= server.needs_ns);
        let least = asked.piece_min_ns.min(slot.saturating_sub(asked.rest_ns));
        assert!(server.pieces.iter().all(|piece| piece.length_ns >= least));
        let members: Vec<_> = server.tasks.iter().map(|index| found.sized[*index]).collect();
        assert_eq!(late(&members, &parts, slot), None, "{server:?} {members:?}, slot {slot}");
    }
    let others: Vec<_> = found.rest.iter().map(|rest| (rest.cpu, rest.length_ns)).collect();
    let cpus = if asked.rest_ns > 0 { asked.cpus } else { 0 };
    assert_eq!(others, (0..cpus).map(|cpu| (cpu, asked.rest_ns)).collect::<Vec<_>>());
    for Piece { cpu, offset_ns, length_ns } in &found.rest {
        assert!(offset_ns + length_ns <= slot);
        on[*cpu as usize].push((*offset_ns, offset_ns + length_ns));
    }
    assert!(seen.iter().all(|count| *count == 1), "each task has one server");
    assert!(sum <= u64::from(asked.cpus) * slot);
    for places in &mut on {
        places.sort_unstable();
        assert!(
            places.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "pieces on one CPU overlap: {places:?}"
        );
    }
    assert!(found.split() < asked.cpus as usize);
    if let Algorithm::Clustered(cluster) = asked.algorithm {
        let crosses = |server: &Server| server.pieces.len() == 2 && server.pieces[1].cpu % cluster == 0;
        assert!(!found.servers.iter().any(crosses), "a cluster is left");
    }
    if asked.algorithm == Algorithm::SEkg {
        assert!(found.servers.iter().all(|server| server.pieces.len() == 1 || server.tasks.len() == 1));
    }
}

fn of(numbers: &[u64], draw: &mut Draw) -> u64 {
    numbers[draw.below(numbers.len())]
}

fn any_algorithm(draw: &mut Draw) -> (Algorithm, u32) {
    let cpus = 1 + draw.below(8) as u32;
    match draw.below(3) {
        0 => (Algorithm::SEkg, cpus),
        1 => (Algorithm::NpsF, cpus),
        _ => {
            let cluster = 1 + draw.below(4) as u32;
            (Algorithm::Clustered(cluster), cluster * (1 + draw.below(3) as u32))
        }
    }
}

/// From ns to ms, since the shorter the slot, the more it is rounded.
fn any_tasks(draw: &mut Draw, most: f64) -> Vec<Task> {
    let unit = of(&[1, 30, 1_000, MS], draw) as usize;
    let (least, heaviest) = (of(&[1, 100, 500], draw), of(&[120, 520, 1000], draw));
    let (mut tasks, mut sum) = (Vec::new(), 0.0);
    for _ in 0..60 {
        let period = 20 * unit + draw.below(180 * unit);
        let share = least + draw.below((heaviest + 1).saturating_sub(least).max(1) as usize) as u64;
        let work = (period as u64 * share / 1000).max(1);
        sum += work as f64 / period as f64;
        if sum > most {
            break;
        }
        tasks.push(Task::new(work, period as u64));
    }
    tasks
}

/// Without a loss for pieces, first fit decreasing places the tasks each on one CPU.
fn in_parts(set: &[Task], asked: &Question) -> bool {
    let holds = |on: &[usize]| {
        on.iter().map(|index| ratio(set[*index].work_ns, set[*index].period_ns)).sum::<Exact>() <= whole(1)
    };
    let lost = asked.rest_ns + asked.costs.reserve_jitter_ns + asked.piece_min_ns;
    lost == 0 && matches!(partition(set, asked.cpus as usize, Fit::First, holds), Partition::Fits(_))
}

#[test]
fn random_sets() {
    let mut draw = Draw::new(40);
    let (mut accepted, mut split, mut refused) = (0, 0, 0);
    for _ in 0..4_000 {
        let (algorithm, cpus) = any_algorithm(&mut draw);
        let most = f64::from(cpus) * (0.5 + draw.below(500) as f64 / 1000.0);
        let set = any_tasks(&mut draw, most);
        let mut asked = question(algorithm, cpus, 1 + draw.below(9) as u32);
        let shortest = set.iter().map(|task| task.period_ns).min().unwrap_or(1);
        asked.costs.reserve_jitter_ns = of(&[0, 0, 0, shortest / 500, shortest / 100], &mut draw);
        let delta = u64::from(asked.delta);
        asked.rest_ns = of(&[0, 0, shortest / delta / 100, shortest / delta / 9], &mut draw);
        asked.piece_min_ns = of(&[0, 0, shortest / 1000, shortest / 200], &mut draw);
        match assign(&set, &asked) {
            Ok(found) => {
                judge(&found, &asked);
                accepted += 1;
                split += found.split();
            }
            Err(Refusal::NoRoom { asked: share, bound: limit }) => {
                assert!(
                    asked.algorithm != Algorithm::NpsF || !in_parts(&set, &asked),
                    "a partition fits: {asked:?}"
                );
                assert!(share > limit, "refused within the bound: {share} {limit} {asked:?}");
                refused += 1;
            }
            Err(Refusal::MoreThanACpu(_)) => assert!(asked.rest_ns > 0),
            Err(other) => assert_eq!((other, set.is_empty()), (Refusal::NoTasks, true)),
        }
    }
    println!("{accepted} accepted, {split} servers split, {refused} refused");
    assert!(accepted > 1_500 && split > 1_500 && refused > 200);
}

/// Works that ask for exactly `total` of `whole` each, in tasks of at most one CPU, periods one, two or four times the shortest.
fn exactly(total: u64, shortest: u64, draw: &mut Draw) -> Vec<Task> {
    let mut left = total;
    let mut set = Vec::new();
    let (least, most) = match draw.below(4) {
        0 => (shortest / 2 + 1, shortest / 2 + 1 + shortest / 100), // two of them share no bin
        1 => (shortest / 50 + 1, shortest / 8 + 1),
        2 => (shortest / 3, shortest / 3 * 2),
        _ => (1, shortest),
    };
    while left > 0 {
        let share = (least + draw.below((most - least + 1) as usize) as u64).clamp(1, left);
        let times = if set.is_empty() { 1 } else { of(&[1, 2, 4], draw) };
        set.push(Task::new(share * times, shortest * times));
        left -= share;
    }
    set
}

/// Utilisation at the bound, to the last ns: there is always room.
#[test]
fn at_the_bound() {
    let mut draw = Draw::new(41);
    let mut split = 0;
    for round in 0..6_000 {
        let (algorithm, cpus) = any_algorithm(&mut draw);
        let delta = of(&[1, 2, 3, 4, 8, 16], &mut draw);
        let slot = of(&[60, 997, 25_000, 1_250_000], &mut draw) + draw.below(50) as u64;
        let shortest = slot * delta;
        let mut asked = question(algorithm, cpus, delta as u32);
        let mut some = |every| if round % every == 0 { draw.below(slot as usize / 30) as u64 } else { 0 };
        (asked.costs.reserve_jitter_ns, asked.piece_min_ns, asked.rest_ns) = (some(3), some(4), some(5));
        let limit = bound(&[Task::new(1, shortest)], &asked).unwrap();
        let total = (&limit * whole(u64::from(cpus) * shortest)).floor();
        let total = u64::try_from(total.to_integer()).unwrap();
        if total == 0 {
            continue;
        }
        let set = exactly(total, shortest, &mut draw);
        let used: Exact = set.iter().map(|task| ratio(task.work_ns, task.period_ns)).sum();
        assert!(whole(u64::from(cpus)) * &limit - used < ratio(1, shortest), "at the bound");
        let found = match assign(&set, &asked) {
            Err(Refusal::MoreThanACpu(_)) if asked.rest_ns > 0 => continue,
            found => found.unwrap_or_else(|refusal| panic!("{refusal:?} {asked:?} {set:?}")),
        };
        judge(&found, &asked);
        split += found.split();
    }
    assert!(split > 5_000, "{split}");
}

/// What the oracle is worth: pieces 2 % shorter are found out.
#[test]
fn shorter_pieces_are_late() {
    let mut draw = Draw::new(42);
    let (mut tried, mut caught) = (0, 0);
    for _ in 0..300 {
        let asked = question([Algorithm::SEkg, Algorithm::NpsF][draw.below(2)], 4, 1 + draw.below(4) as u32);
        let slot = 1_000_000 + draw.below(1000) as u64;
        let shortest = slot * u64::from(asked.delta);
        let set = exactly(3 * shortest * 3 / 5, shortest, &mut draw);
        let Ok(found) = assign(&set, &asked) else { continue };
        tried += 1;
        caught += u32::from(found.servers.iter().any(|server| {
            let parts: Vec<_> = sure(server, found.slot_ns, 0)
                .into_iter()
                .map(|(begin, end)| (begin, end - (end - begin) / 50))
                .collect();
            let members: Vec<_> = server.tasks.iter().map(|index| found.sized[*index]).collect();
            late(&members, &parts, found.slot_ns).is_some()
        }));
    }
    assert!(tried > 200 && caught > tried / 5, "{caught} of {tried}");
}

/// The numbers at the head of the file.
#[test]
fn the_example() {
    let set = tasks(&[(5_500_000, 10 * MS); 3]);
    let pieces = |algorithm| {
        let found = assign(&set, &question(algorithm, 2, 4)).unwrap();
        assert_eq!((found.slot_ns, found.split()), (2_500_000, 1));
        let place = |piece: &Piece| (piece.cpu, piece.offset_ns, piece.length_ns);
        found.servers.iter().map(|server| server.pieces.iter().map(place).collect()).collect::<Vec<Vec<_>>>()
    };
    let nps_f = pieces(Algorithm::NpsF);
    assert_eq!(nps_f[0], [(0, 0, 1_510_990)]);
    assert_eq!(nps_f[1], [(0, 1_510_990, 989_010), (1, 0, 521_980)]);
    assert_eq!(nps_f[2], [(1, 521_980, 1_510_990)]);
    let s_ekg = pieces(Algorithm::SEkg);
    assert_eq!(s_ekg[0], [(0, 0, 2_500_000 - 916_017)]);
    assert_eq!(s_ekg[1], [(0, 2_500_000 - 916_017, 916_017), (1, 0, 598_305)]);
    assert_eq!(s_ekg[2], [(1, 598_305, 2_500_000 - 598_305)]);
}

/// The bounds of the papers, from below.
#[test]
fn bounds() {
    let share = |algorithm, delta: u32, cpus| {
        let set = [Task::new(1, 1_000_000_000_000 * u64::from(delta))];
        let bound = bound(&set, &question(algorithm, cpus, delta)).unwrap();
        u64::try_from((bound * whole(10_000_000)).round().to_integer()).unwrap()
    };
    let s_ekg = [1, 2, 4, 8].map(|delta| share(Algorithm::SEkg, delta, 4));
    assert_eq!(s_ekg, [6_568_542, 7_979_590, 8_885_438, 9_411_255]);
    let nps_f = [1, 2, 4, 8].map(|delta| share(Algorithm::NpsF, delta, 4));
    assert_eq!(nps_f, [7_500_000, 8_333_333, 9_000_000, 9_444_444]);
    assert_eq!(share(Algorithm::Clustered(2), 1, 8), 5_625_000); // 3/4 of 2·9/(8·3)
    assert_eq!(share(Algorithm::Clustered(8), 4, 8), 9_000_000);
}

#[test]
fn boundary_cases() {
    let both = [Algorithm::SEkg, Algorithm::NpsF];
    for algorithm in both {
        // A task of utilisation 1 has a CPU; one above has none.
        let asked = question(algorithm, 2, 4);
        let found = assign(&tasks(&[(10, 10), (1, 10)]), &asked).unwrap();
        judge(&found, &asked);
        assert_eq!(found.servers[0].pieces, [Piece { cpu: 0, offset_ns: 0, length_ns: found.slot_ns }]);
        assert_eq!(assign(&tasks(&[(1, 10), (11, 10)]), &asked), Err(Refusal::MoreThanACpu(1)));
        assert_eq!(
            assign(&tasks(&[(10, 10); 3]), &asked),
            Err(Refusal::NoRoom { asked: ratio(3, 2), bound: bound(&tasks(&[(1, 10)]), &asked).unwrap() })
        );
        // More CPUs than tasks, and a shortest period that δ does not divide.
        let asked = question(algorithm, 16, 4);
        let found = assign(&tasks(&[(3, 11_003), (9_001, 20_000)]), &asked).unwrap();
        judge(&found, &asked);
        assert_eq!(found.slot_ns, 2_750);
        // One CPU: nothing is split.
        let asked = question(algorithm, 1, 4);
        let found = assign(&tasks(&[(3 * MS, 10 * MS), (5 * MS, 11 * MS)]), &asked).unwrap();
        judge(&found, &asked);
        assert_eq!(found.split(), 0);
        let refused = |asked: &Question| assign(&tasks(&[(1, 10)]), asked).unwrap_err().rule();
        assert_eq!(assign(&[], &asked).unwrap_err().rule(), "tasks_are_there");
        assert_eq!(refused(&question(algorithm, 1, 0)), "delta_is_at_least_one");
        assert_eq!(refused(&question(algorithm, 0, 1)), "cpus_are_at_least_one");
        assert_eq!(refused(&question(algorithm, 1, 11)), "slot_is_at_least_1ns");
        // Slots of 1 ns and times at their end.
        judge(&assign(&tasks(&[(1, 10)]), &question(algorithm, 1, 10)).unwrap(), &question(algorithm, 1, 10));
        for delta in [1, 4, u32::MAX] {
            let asked = question(algorithm, 3, delta);
            judge(&assign(&tasks(&[(1 << 58, 1 << 60), ((1 << 58) + 1, 1 << 60)]), &asked).unwrap(), &asked);
        }
    }
    for cluster in [0, 3, 5] {
        let refusal = assign(&tasks(&[(1, 10)]), &question(Algorithm::Clustered(cluster), 4, 1));
        assert_eq!(refusal.unwrap_err().rule(), "cluster_divides_cpus");
    }
    let blocked = [Task { blocking_ns: 1, ..Task::new(1, 10) }];
    let asked = question(Algorithm::SEkg, 1, 1);
    assert_eq!(assign(&blocked, &asked).unwrap_err().rule(), "tasks_are_not_blocked");
    assert_eq!(assign(&[Task::new(0, 10)], &asked).unwrap_err().rule(), "times_are_in_range");
    // A CPU filled to the last ns: the next task is not split but begins on the next.
    let asked = question(Algorithm::SEkg, 2, 1);
    let slot = 1_000_000;
    let found = assign(&tasks(&[(1, slot)]), &asked).unwrap();
    assert_eq!(found.servers[0].pieces[0].length_ns, slot);
    let fill = bound(&tasks(&[(1, slot)]), &asked).unwrap() * whole(slot) + whole(2);
    let fill = u64::try_from(fill.to_integer()).unwrap();
    let full = assign(&tasks(&[(fill, slot), (fill / 2, slot)]), &asked).unwrap();
    judge(&full, &asked);
    assert_eq!((full.split(), full.servers.len()), (0, 2));
    let one_less = assign(&tasks(&[(fill - 1, slot), (fill / 2, slot)]), &asked).unwrap();
    judge(&one_less, &asked);
    assert_eq!(one_less.split(), 1);
    // Where something is left to others, a task has less than a CPU.
    let asked = Question { rest_ns: 1, ..question(Algorithm::NpsF, 2, 1) };
    assert_eq!(assign(&tasks(&[(1, 10), (10, 10)]), &asked), Err(Refusal::MoreThanACpu(1)));
    let found = assign(&tasks(&[(1, 10), (8, 10)]), &asked).unwrap();
    judge(&found, &asked);
    assert_eq!(found.rest[0], Piece { cpu: 0, offset_ns: 0, length_ns: 1 });
    let asked = Question { rest_ns: u64::MAX, ..asked };
    assert_eq!(assign(&tasks(&[(1, 10)]), &asked), Err(Refusal::MoreThanACpu(0)));
    // A block of a whole slot is not split, wherever its bin stands.
    let asked = question(Algorithm::NpsF, 2, 2);
    let found = assign(&tasks(&[(3, 10), (10, 10)]), &asked).unwrap();
    judge(&found, &asked);
    assert_eq!((found.split(), &found.servers[0].tasks[..]), (0, &[1][..]));
}

#[test]
fn costs_are_paid() {
    let costs = Costs {
        reserve_jitter_ns: 20_000,
        release_jitter_ns: 100_000,
        switch_ns: 2_000,
        interrupts: vec![
            Interrupt { every_ns: MS, takes_ns: 1_000 },
            Interrupt { every_ns: 7 * MS, takes_ns: 25_000 },
        ],
    };
    let set = [
        Task { jitter_ns: 400_000, ..Task::new(2 * MS, 10 * MS) },
        Task { deadline_ns: 5 * MS, ..Task::new(MS, 20 * MS) },
    ];
    for algorithm in [Algorithm::SEkg, Algorithm::NpsF] {
        let asked = Question { costs: costs.clone(), ..question(algorithm, 2, 2) };
        let found = assign(&set, &asked).unwrap();
        judge(&found, &asked);
        // 9.5 ms: ten ticks, two of the others; 4.9 ms: five and one.
        assert_eq!(found.sized, tasks(&[(2_066_000, 9_500_000), (1_036_000, 4_900_000)]));
        assert_eq!(found.slot_ns, 2_450_000);
    }
    // Never less with costs than without; what does not fit because of them says so.
    let asked = |costs: Costs| Question { costs, ..question(Algorithm::SEkg, 1, 2) };
    let late = Costs { release_jitter_ns: 10 * MS, ..Costs::default() };
    assert_eq!(assign(&set[..1], &asked(late)), Err(Refusal::MoreThanACpu(0)));
    let slow = Costs { switch_ns: u64::MAX, ..Costs::default() };
    assert_eq!(assign(&set[..1], &asked(slow)), Err(Refusal::MoreThanACpu(0)));
    let storm = Costs { interrupts: vec![Interrupt { every_ns: 0, takes_ns: u64::MAX }], ..Costs::default() };
    assert_eq!(assign(&set[..1], &asked(storm)), Err(Refusal::MoreThanACpu(0)));
    // With no room for margins each task has a CPU.
    let jitter = Costs { reserve_jitter_ns: u64::MAX, ..Costs::default() };
    let asked = Question { costs: jitter, ..question(Algorithm::SEkg, 2, 2) };
    assert_eq!(assign(&set, &asked).unwrap().servers.len(), 2);
    assert!(assign(&set, &Question { algorithm: Algorithm::NpsF, ..asked }).is_ok());
}

#[test]
fn what_would_help() {
    let set = tasks(&[(7 * MS, 10 * MS); 5]); // 0.875 of four CPUs
    let asked = question(Algorithm::SEkg, 4, 1);
    let Err(Refusal::NoRoom { asked: share, bound }) = assign(&set, &asked) else {
        panic!("0.657 is the bound")
    };
    assert_eq!(share, ratio(7, 8));
    assert!(bound < ratio(6569, 10_000) && bound > ratio(6568, 10_000));
    let found = remedy(&set, &asked);
    assert_eq!(found, Remedy { delta: Some(4), cpus: Some(5) });
    assert!(assign(&set, &question(Algorithm::SEkg, 4, 4)).is_ok());
    assert!(assign(&set, &question(Algorithm::SEkg, 4, 3)).is_err());
    // δ does not help beyond a whole CPU for each.
    let full = tasks(&[(10, 10); 3]);
    assert_eq!(remedy(&full, &question(Algorithm::NpsF, 2, 1)), Remedy { delta: None, cpus: Some(3) });
    assert_eq!(
        remedy(&full, &question(Algorithm::Clustered(2), 2, 1)),
        Remedy { delta: None, cpus: Some(4) }
    );
}

/// Times, costs and numbers of any size: an assignment that is right, or a refusal.
#[test]
fn nothing_panics() {
    let mut draw = Draw::new(43);
    let mut assigned = 0;
    for _ in 0..20_000 {
        let any = |draw: &mut Draw| {
            let bits = draw.below(66);
            if bits > 63 {
                u64::MAX
            } else {
                draw.below(1 << bits.min(62)) as u64 | 1 << bits
            }
        };
        let (algorithm, cpus) = any_algorithm(&mut draw);
        let set: Vec<_> = (0..draw.below(6))
            .map(|_| {
                let (a, b) = (any(&mut draw), any(&mut draw));
                let (jitter_ns, late) = (draw.below(3) as u64, draw.below(20) == 0);
                let deadline_ns = if late { any(&mut draw) } else { a.max(b) };
                Task { deadline_ns, jitter_ns, ..Task::new(a.min(b), a.max(b)) }
            })
            .collect();
        let small = |draw: &mut Draw| if draw.below(3) == 0 { any(draw) } else { 0 };
        let mut asked = question(algorithm, cpus, any(&mut draw).min(u32::MAX.into()) as u32);
        asked.costs = Costs {
            reserve_jitter_ns: small(&mut draw),
            release_jitter_ns: small(&mut draw),
            switch_ns: small(&mut draw),
            interrupts: vec![Interrupt { every_ns: any(&mut draw), takes_ns: small(&mut draw) }],
        };
        (asked.piece_min_ns, asked.rest_ns) = (small(&mut draw), small(&mut draw));
        let _ = bound(&set, &asked);
        match assign(&set, &asked) {
            Ok(found) => {
                assigned += 1;
                if found.slot_ns < 1 << 40 && found.slot_ns > 0 {
                    judge(&found, &asked);
                }
            }
            Err(Refusal::NoRoom { asked: share, bound }) => assert!(share > bound, "{asked:?} {set:?}"),
            Err(_) => {}
        }
        let _ = remedy(&set, &asked);
    }
    assert!(assigned > 500, "{assigned}");
}
