//! Files that are damaged or malicious: each is refused with its place, or read; nothing panics, and nothing is allocated by what a
//! length says.

mod common;

use common::{bytes, ALL};
use tierce_analysis::generate::Draw;
use tierce_recording::{Recording, RecordingError, Threads};

fn number(name: &str, preset: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(preset)
}

fn read(bytes: Vec<u8>) -> Result<Threads, RecordingError> {
    Threads::of(Recording::of_bytes(bytes)?)
}

fn rule(bytes: Vec<u8>) -> (u64, &'static str, String) {
    match read(bytes) {
        Err(RecordingError::Refused { rule, offset, message }) => (offset, rule, message),
        Err(other) => panic!("{other}"),
        Ok(threads) => panic!("{} threads", threads.all.len()),
    }
}

/// Where these words are in the file.
fn find(bytes: &[u8], words: &[u8]) -> usize {
    bytes.windows(words.len()).position(|window| window == words).unwrap()
}

#[test]
fn mutated_files_are_refused_or_read() {
    let (seed, rounds) = (number("TIERCE_SEED", 20_261_127), number("TIERCE_ROUNDS", 150));
    println!("TIERCE_SEED={seed} TIERCE_ROUNDS={rounds}");
    let mut draw = Draw::new(seed);
    for name in ALL {
        let good = bytes(name);
        let (mut refused, mut whole) = (0, 0);
        for _ in 0..rounds {
            let mut bad = good.clone();
            // Half of the places are in what describes the rest.
            let most = if draw.between(0, 1) == 0 { 8_000.min(bad.len()) } else { bad.len() } as u64;
            for _ in 0..=draw.between(0, 3) {
                let at = draw.between(0, most - 1) as usize;
                match draw.between(0, 4) {
                    0 => bad[at] ^= 1 << draw.between(0, 7),
                    1 => bad[at] = draw.between(0, 255) as u8,
                    2 => bad.truncate(at.max(1)),
                    3 => {
                        let value = [0, 1, u64::MAX, 1 << 31, 1 << 62, 4096][draw.between(0, 5) as usize];
                        let end = bad.len().min(at + 8);
                        let length = end.saturating_sub(at);
                        if length > 0 {
                            bad[at..end].copy_from_slice(&value.to_le_bytes()[..length]);
                        }
                    }
                    _ => {
                        let from = draw.between(0, good.len() as u64 - 1) as usize;
                        let length = (draw.between(1, 64) as usize).min(good.len() - from);
                        let end = (at + length).min(bad.len());
                        if at < end {
                            let part = good[from..from + (end - at)].to_vec();
                            bad[at..end].copy_from_slice(&part);
                        }
                    }
                }
                if bad.len() as u64 <= most {
                    break;
                }
            }
            match read(bad) {
                Err(RecordingError::Refused { rule, message, .. }) => {
                    assert!(!rule.is_empty() && !message.is_empty());
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
                Ok(_) => whole += 1,
            }
        }
        println!("{name}: {refused} refused, {whole} read");
        assert!(refused > 0 && whole > 0, "{name}: {refused} refused, {whole} read");
    }
}

#[test]
fn what_is_no_recording_is_named() {
    for (text, words) in [
        (&b""[..], "byte 0: tool_must_be_known: the file begins with ``"),
        (b"TIERCE\0\x01", "byte 0: tool_must_be_known"),
        (b"2ELIFREP", "byte 0: byte_order_must_be_little"),
        (b"\x17\x08\x44tracing6", "byte 10: text_must_end: the version has no zero at its end"),
        (
            b"\x17\x08\x44tracing9\0\0\x08\0\x10\0\0",
            "byte 10: version_must_be_known: version \"9\", bound 6 or 7",
        ),
        (b"\x17\x08\x44tracing6\0\x01\x08\0\0\x10\0", "byte 12: byte_order_must_be_little"),
        (
            b"\x17\x08\x44tracing6\0\0\x08\x01\0\0\0",
            "byte 14: page_size_must_be_possible: a page has 1 bytes",
        ),
        (
            b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0header_pane\0",
            "byte 18: word_must_be_known: here is `header_pane",
        ),
        (
            b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0",
            "byte 18: compression_must_be_known: \"lzma\", bound none, zlib or zstd",
        ),
        (b"PERFILE2\x10\0\0\0\0\0\0\0", "byte 8: file_must_be_no_pipe"),
        (b"PERFILE2\x68\0\0\0\0\0\0\0", "byte 0: file_must_be_whole: the head is said to have 104 bytes"),
    ] {
        let error = read(text.to_vec()).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let good = bytes(ALL[0]);
    let with = |at: usize, value: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + value.len()].copy_from_slice(value);
        bad
    };
    // A length that the file does not have.
    let at = find(&good, b"header_page\0") + 12;
    let (offset, name, message) = rule(with(at, &u64::MAX.to_le_bytes()));
    assert_eq!((offset, name), (at as u64 + 8, "file_must_be_whole"), "{message}");
    // Descriptions without what is needed.
    for (words, other, expected) in [
        (&b"field: local_t commit"[..], &b"field: local_t comnit"[..], "field_must_be_described"),
        (b"type_len    :    5", b"type_lon    :    5", "entry_must_be_described"),
        (b"name: sched_switch\n", b"name: sched_swatch\n", "switches_must_be_recorded"),
        (b"long prev_state;", b"long prev_stats;", "field_must_be_described"),
        (b"[local] global counter", b" local global [counter]", "clock_must_be_of_ns"),
        (b"flyrecord\0", b"latency  \0", "data_must_be_pages"),
    ] {
        let (_, name, message) = rule(with(find(&good, words), other));
        assert_eq!(name, expected, "{message}");
    }
    // Pages: `flyrecord`, then offset and size of each CPU's.
    let table = find(&good, b"flyrecord\0") + 10;
    let (_, name, message) = rule(with(table, &u64::MAX.to_le_bytes()));
    assert_eq!(name, "file_must_be_whole", "{message}");
    let pages = u64::from_le_bytes(good[table..table + 8].try_into().unwrap()) as usize;
    let (offset, name, message) = rule(with(pages + 8, &5000u64.to_le_bytes()));
    assert_eq!((offset, name), (pages as u64, "page_must_not_use_more_than_it_has"), "{message}");
    let (offset, name, message) = rule(with(pages + 16, &[0; 8]));
    assert_eq!((offset, name), (pages as u64 + 16, "entry_must_have_a_length"), "{message}");
    let (offset, name, message) = rule(with(pages + 16, &[0, 0, 0, 0, 255, 255, 0, 0]));
    assert_eq!((offset, name), (pages as u64 + 16, "entry_must_be_in_its_page"), "{message}");
    // The number of CPUs stands before the options.
    let (_, name, message) = rule(with(find(&good, b"options  \0") - 4, &[255; 4]));
    assert_eq!(name, "cpus_must_be_few", "{message}");
    let mut cut = good.clone();
    cut.truncate(good.len() - 4096);
    assert_eq!(rule(cut).1, "file_must_be_whole");
}

#[test]
fn damage_of_compressed_sections_and_of_perf_is_named() {
    let good = bytes(ALL[1]);
    // Right after the compression's name and version: where the first options are.
    let at = find(&good, b"zstd\0") + 5;
    let at = at + good[at..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let options = u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
    for (place, value, expected) in [
        (at, u64::MAX.to_le_bytes(), "file_must_be_whole"),
        (at, 0u64.to_le_bytes(), "sections_must_be_there"),
        (options + 8, u64::MAX.to_le_bytes(), "part_must_be_short"),
        // The descriptions of pages follow, compressed: their size before, and their first bytes.
        (at + 28, [0xff; 8], "part_must_be_short"),
        (at + 32, [0; 8], "compressed_part_must_be_whole"),
    ] {
        let mut bad = good.clone();
        bad[place..place + 8].copy_from_slice(&value);
        let (_, name, message) = rule(bad);
        assert_eq!(name, expected, "{message}");
    }
    let good = bytes(ALL[2]);
    let data = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    let attributes = u64::from_le_bytes(good[24..32].try_into().unwrap()) as usize;
    for (place, value, expected) in [
        (16, 7u64.to_le_bytes(), "event_must_have_a_length"),
        (48, u64::MAX.to_le_bytes(), "file_must_be_whole"),
        (72, 0u64.to_le_bytes(), "events_must_be_described"),
        (data, [0; 8], "record_must_have_a_length"),
        (data, [81, 0, 0, 0, 0, 0, 8, 0], "samples_must_not_be_compressed"),
        (attributes + 24, 0x1_0403u64.to_le_bytes(), "samples_must_have_time_and_cpu"),
        (attributes + 24, 0x487u64.to_le_bytes(), "samples_must_be_alike"),
    ] {
        let mut bad = good.clone();
        bad[place..place + 8].copy_from_slice(&value);
        let (_, name, message) = rule(bad);
        assert_eq!(name, expected, "{message}");
    }
}
