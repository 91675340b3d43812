//! Tables of tasks: defaults, and every refusal.

use tierce_analysis::{parse, Sections, Task};

#[test]
fn a_table() {
    let text = "# a set\nname, work, period, deadline, jitter, priority\n\naudio,1ms,10ms,,0.5us,2\nvideo,5000000,33.333333ms,40ms,,-1\n";
    let entries = parse(text).unwrap();
    assert_eq!(entries[0].name, "audio");
    let audio = Task { jitter_ns: 500, ..Task::new(1_000_000, 10_000_000) };
    assert_eq!((entries[0].task, entries[0].priority), (audio, Some(2)));
    let video = Task { deadline_ns: 40_000_000, ..Task::new(5_000_000, 33_333_333) };
    assert_eq!((entries[1].task, entries[1].priority), (video, Some(-1)));
}

#[test]
fn criticalities_and_spans() {
    let text = "name,work,period,criticality,work_hi\na,1,10,hi,4\nb,2,10,lo,\nc,2,10,,3\n";
    let found: Vec<_> = parse(text).unwrap().iter().map(|entry| entry.criticality.unwrap()).collect();
    assert_eq!(
        found.iter().map(|found| (found.hi, found.work_hi_ns)).collect::<Vec<_>>(),
        [(true, 4), (false, 2), (false, 3)]
    );
    assert_eq!(parse("name,work,period\na,1,10").unwrap()[0].criticality, None);
    let spans: Vec<_> = parse("name,work,period,span\na,3,10,2\nb,3,10,")
        .unwrap()
        .iter()
        .map(|entry| entry.span_ns)
        .collect();
    assert_eq!(spans, [Some(2), Some(3)]);
    let fault = &parse("name,work,period,criticality\na,1,10,high").unwrap_err()[0];
    assert_eq!((fault.rule, fault.column), ("criticality_must_be_known", 8));
}

#[test]
fn regions_and_suspensions() {
    let text = "name,work,period,suspension,section,last_section\na,9,20,4,3,\nb,9,20,,,2\nc,9,20,,7,2\nd,9,20,,9,9\n";
    let entries = parse(text).unwrap();
    assert_eq!((entries[0].suspension_ns, entries[1].suspension_ns), (4, 0));
    let sections: Vec<_> = entries.iter().map(|entry| entry.sections).collect();
    let section = |longest_ns, last_ns| Sections { longest_ns, last_ns };
    assert_eq!(sections, [section(3, 0), section(2, 2), section(7, 2), section(9, 9)]);
}

#[test]
fn works_in_turn_and_bursts() {
    let text = "name,work,period,deadline\na,4 1 1,5,\nb,1ms,1ms 2ms 50ms,\nc,2us 1us,1us  9us,7us\nd,1,2,";
    let entries = parse(text).unwrap();
    let numbers = |at: usize| {
        let Task { work_ns, period_ns, deadline_ns, .. } = entries[at].task;
        [work_ns, period_ns, deadline_ns]
    };
    assert_eq!(numbers(0), [4, 5, 5]);
    assert_eq!(numbers(1), [1_000_000, 1_000_000, 50_000_000]);
    assert_eq!(numbers(2), [2_000, 1_000, 7_000]);
    let requests = |at: usize| entries[at].requests.as_ref().unwrap();
    assert_eq!([1, 2, 3, 4].map(|jobs| requests(0).work_ns(jobs)), [4, 5, 6, 10]);
    assert_eq!(
        [1, 2, 3, 4].map(|jobs| requests(1).distance_ns(jobs)),
        [1, 2, 50, 51].map(|ms| ms * 1_000_000)
    );
    assert_eq!((requests(2).work_ns(2), requests(2).distance_ns(2)), (3_000, 9_000));
    assert_eq!(entries[3].requests, None);
}

#[test]
fn cells_in_quotes() {
    let text = "\"name\",work,\"period\"\n\"a, the first\", \"1ms\" ,2ms\n\"say \"\"b\"\"\",1ms,\"2ms\"\nfive\" disk,1ms,2ms\n\"\"\"\",1ms,2ms\n";
    let names: Vec<_> = parse(text).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["a, the first", "say \"b\"", "five\" disk", "\""]);
}

/// One row per refusal: text, and line, column and rule of all its faults.
#[test]
fn refusals() {
    for (text, faults) in [
        ("", &[(1, 1, "table_needs_a_header")][..]),
        ("name,work,period", &[(1, 1, "table_needs_tasks")]),
        ("name,work", &[(1, 1, "column_must_be_there")]),
        ("name,work,period\na,1,3 2", &[(2, 5, "separations_must_ascend")]),
        ("name,work,period\na,1 0,3", &[(2, 3, "time_must_be_positive")]),
        ("name,work,period\na,1 x,3 4", &[(2, 3, "number_must_be_a_number")]),
        ("name,work,period,color", &[(1, 18, "column_must_be_known")]),
        ("name,work,work,period", &[(1, 11, "columns_are_unique")]),
        ("name,work,period\na,1ms", &[(2, 1, "lines_are_as_long_as_the_header")]),
        ("name,work,period\na,1ms,2ms\na,1ms,2ms", &[(3, 1, "names_are_unique")]),
        ("name,work,period\n,1ms,2ms", &[(2, 1, "cell_must_not_be_empty")]),
        ("name,work,period\na,,2ms", &[(2, 3, "cell_must_not_be_empty")]),
        (
            "name,work,period\na,0ms,2ms\nb,1x,2ms\nc,1ms,-1ms",
            &[
                (2, 3, "time_must_be_positive"),
                (3, 3, "unit_must_exist"),
                (4, 7, "number_must_not_be_negative"),
            ],
        ),
        (
            "name,work,period\na,1.5ns, 0.5 ms",
            &[(2, 3, "time_not_finer_than_1ns"), (2, 10, "time_needs_a_unit")],
        ),
        ("name,work,period\na,1ms,99999999999s", &[(2, 7, "time_must_fit")]),
        ("name,work,period\n\"a,1ms,2ms", &[(2, 1, "quotes_must_end_the_cell")]),
        ("name,work,period\na, \"1\"ms,2ms", &[(2, 4, "quotes_must_end_the_cell")]),
        ("name,\"work,period\na,1ms,2ms", &[(1, 6, "quotes_must_end_the_cell")]),
        ("name,work,period,priority\na,1ms,2ms,high", &[(2, 11, "priority_must_be_whole")]),
        ("name,work,period,threshold\na,9,20,3", &[(2, 8, "threshold_needs_a_priority")]),
        ("name,work,period,priority,threshold\na,9,20,3,2", &[(2, 10, "threshold_not_below_priority")]),
        ("name,work,period,priority,threshold\na,9,20,3,x", &[(2, 10, "priority_must_be_whole")]),
        ("name,work,period,section\na,9,20,10", &[(2, 8, "sections_are_within_the_work")]),
        ("name,work,period,last_section\na,9,20,10", &[(2, 8, "sections_are_within_the_work")]),
        ("name,work,period,section,last_section\na,9,20,8,2", &[(2, 8, "sections_are_within_the_work")]),
        ("name,work,period,section,last_section\na,9,20,1,2", &[(2, 8, "section_is_the_longest")]),
    ] {
        let found: Vec<_> =
            parse(text).unwrap_err().iter().map(|fault| (fault.line, fault.column, fault.rule)).collect();
        assert_eq!(found, faults, "{text}");
    }
}

#[test]
fn nothing_panics() {
    let mut state = 1u64;
    for _ in 0..20_000 {
        let text: String = std::iter::from_fn(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let words = [
                "name", "work", "period", ",", ",", "\n", "1ms", "9", "-", "µs", "\u{feff}", "priority", "/",
                "\"",
            ];
            (state >> 60 != 0).then(|| words[(state >> 33) as usize % words.len()])
        })
        .collect();
        let _ = parse(&text);
        let _ = parse(&format!("name,work,period\n{text}"));
    }
}
