//! Version 7 as it may be written: sections and pages compressed by zlib, times in cycles; and what is wrong with such files. They are
//! made of what we write as version 6.

mod common;

use std::io::Write;
use tierce_recording::{write_trace_dat, Recording, RecordingError, Sched, Threads};
use tierce_trace::{Event, Kind, TaskInfo, Trace, TraceHeader};

fn version_6() -> Vec<u8> {
    let task = TaskInfo { id: 7, name: "audio".into(), ..TaskInfo::default() };
    let header = TraceHeader { cpus: 1, tasks: vec![task], ..TraceHeader::default() };
    let mut events = Vec::new();
    for at in 0..200 {
        let now = 1_000_000 * at + 10;
        events.push(Event::new(now, Kind::Request, 0, 7, 0, 0));
        events.push(Event::new(now + 20, Kind::Decision, 0, 7, 1, 0));
        events.push(Event::new(now + 500, Kind::Release, 0, 7, 3, 0));
        events.push(Event::new(now + 500, Kind::Decision, 0, 0, 0, 7));
    }
    let mut file = Vec::new();
    write_trace_dat(&Trace { header, events }, &mut file).unwrap();
    file
}

fn find(bytes: &[u8], words: &[u8]) -> usize {
    bytes.windows(words.len()).position(|window| window == words).unwrap()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    let bytes = encoder.finish().unwrap();
    let sizes = [bytes.len() as u32, body.len() as u32].map(u32::to_le_bytes).concat();
    [sizes, bytes].concat()
}

fn section(id: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let head = [id.to_le_bytes(), flags.to_le_bytes(), [0; 2], [0; 2]].concat();
    [head, (body.len() as u64).to_le_bytes().to_vec(), body.to_vec()].concat()
}

fn option(id: u16, body: &[u8]) -> Vec<u8> {
    [id.to_le_bytes().to_vec(), (body.len() as u32).to_le_bytes().to_vec(), body.to_vec()].concat()
}

/// The same records as version 7. `more`: further options; `next`: where the next list of options is said to be.
fn version_7(clock: &str, more: &[u8], next: impl Fn(u64) -> u64) -> Vec<u8> {
    let six = version_6();
    let headers = find(&six, b"header_page\0");
    let event = find(&six, b"header_event\0") + 13;
    let headers_end = event + 8 + u64_at(&six, event) as usize;
    let formats = headers_end + 4;
    let mut formats_end = find(&six, b"sched\0") + 10;
    for _ in 0..2 {
        formats_end += 8 + u64_at(&six, formats_end) as usize;
    }
    let table = find(&six, b"flyrecord\0") + 10;
    let (pages, size) = (u64_at(&six, table) as usize, u64_at(&six, table + 8) as usize);
    let mut file = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zlib\x001\0".to_vec();
    let options_at = file.len();
    file.extend([0; 8]);
    let mut put = |section: Vec<u8>| {
        let at = file.len() as u64;
        file.extend(section);
        at
    };
    let headers = put(section(16, 1, &packed(&six[headers..headers_end])));
    let formats = put(section(18, 1, &packed(&six[formats..formats_end])));
    // Two chunks of pages.
    let (one, two) = six[pages..pages + size].split_at(4096);
    let chunks = [2u32.to_le_bytes().to_vec(), packed(one), packed(two)].concat();
    let buffer = put(section(3, 1, &chunks));
    let place = [(buffer + 16).to_le_bytes(), (chunks.len() as u64).to_le_bytes()].concat();
    let of_buffer = [
        buffer.to_le_bytes().to_vec(),
        b"\0".to_vec(),
        clock.as_bytes().to_vec(),
        b"\0".to_vec(),
        [4096u32, 1, 0].map(u32::to_le_bytes).concat(),
        place,
    ];
    let options = file.len() as u64;
    let body = [
        option(16, &headers.to_le_bytes()),
        option(18, &formats.to_le_bytes()),
        option(3, &of_buffer.concat()),
        option(8, &1u32.to_le_bytes()),
        more.to_vec(),
        option(0, &next(options).to_le_bytes()),
    ];
    file.extend(section(0, 0, &body.concat()));
    file[options_at..options_at + 8].copy_from_slice(&options.to_le_bytes());
    file
}

fn tsc(mult: u32, shift: u32, offset: u64) -> Vec<u8> {
    option(
        14,
        &[mult.to_le_bytes().to_vec(), shift.to_le_bytes().to_vec(), offset.to_le_bytes().to_vec()].concat(),
    )
}

fn events(bytes: Vec<u8>) -> Vec<Sched> {
    Recording::of_bytes(bytes).unwrap().map(Result::unwrap).collect()
}

fn rule(bytes: Vec<u8>) -> &'static str {
    match Recording::of_bytes(bytes).and_then(Threads::of) {
        Err(RecordingError::Refused { rule, .. }) => rule,
        other => panic!("{:?}", other.map(|threads| threads.records)),
    }
}

#[test]
fn zlib_gives_the_same_records() {
    let six = events(version_6());
    assert_eq!(six.len(), 600);
    assert_eq!(events(version_7("mono", &[], |_| 0)), six);
}

#[test]
fn cycles_become_ns() {
    let six = events(version_6());
    let seven = events(version_7("x86-tsc", &tsc(3, 1, 1000), |_| 0));
    for (ns, cycles) in six.iter().zip(&seven) {
        assert_eq!(cycles.time_ns, ns.time_ns * 3 / 2 + 1000);
        assert_eq!(cycles.what, ns.what);
    }
    assert_eq!(rule(version_7("x86-tsc", &tsc(3, 64, 0), |_| 0)), "shift_must_be_possible");
    assert_eq!(rule(version_7("x86-tsc", &[], |_| 0)), "clock_must_be_of_ns");
    assert_eq!(rule(version_7("counter", &[], |_| 0)), "clock_must_be_of_ns");
}

#[test]
fn lists_of_options_that_follow_each_other_for_ever() {
    assert_eq!(rule(version_7("mono", &[], |here| here)), "options_must_end");
}

#[test]
fn pages_and_records_that_are_too_short() {
    let six = version_6();
    let with = |at: usize, value: &[u8]| {
        let mut bad = six.clone();
        bad[at..at + value.len()].copy_from_slice(value);
        bad
    };
    let table = find(&six, b"flyrecord\0") + 10;
    assert_eq!(rule(with(table + 8, &4u64.to_le_bytes())), "page_must_have_a_head");
    let field = find(&six, b"next_prio;\toffset:60") + 18;
    assert_eq!(rule(with(field, b"99")), "record_must_be_whole");
    // No description of pages at all.
    let begin = find(&six, b"header_page\0") + 12;
    let end = begin + 8 + u64_at(&six, begin) as usize;
    let mut none = six[..begin].to_vec();
    none.extend([0; 8]);
    none.extend(&six[end..]);
    // The pages have moved: their place is where they were.
    let moved = (end - begin - 8) as u64;
    let table = find(&none, b"flyrecord\0") + 10;
    let place = u64_at(&none, table) - moved;
    none[table..table + 8].copy_from_slice(&place.to_le_bytes());
    assert_eq!(rule(none), "page_must_be_described");
}

#[test]
fn a_pipe_without_end_is_not_read_for_ever() {
    let Err(error) = Recording::open(std::path::Path::new("/dev/zero")) else { panic!("it is read") };
    assert!(error.to_string().contains("pipe_must_be_short"), "{error}");
}

#[test]
fn samples_without_records_are_named() {
    let mut bad = common::bytes("perf.data.zst");
    let (at, length) = (u64_at(&bad, 24) as usize, u64_at(&bad, 32) as usize);
    let size = u64_at(&bad, 16) as usize;
    for event in (at..at + length).step_by(size) {
        let has = u64_at(&bad, event + 24) & !(1 << 10);
        bad[event + 24..event + 32].copy_from_slice(&has.to_le_bytes());
    }
    assert_eq!(rule(bad), "samples_must_be_raw");
}
