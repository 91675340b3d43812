//! What is written for Perfetto, decoded again: tracks are described before they are used, slices are balanced, and
//! times and counts are those of the statistics.

mod synthetic;

use prost::Message;
use std::collections::HashMap;
use synthetic::{generate, Options};
use tierce_trace::perfetto::{self, proto};
use tierce_trace::{Event, Kind, Source, Trace, TraceHeader};

#[derive(Default)]
struct Track {
    name: String,
    parent: Option<u64>,
    counter: bool,
    open: Vec<u64>,
    slices: usize,
    slice_ns: u64,
    instants: HashMap<String, usize>,
    values: Vec<i64>,
}

fn decode(trace: &Trace) -> HashMap<u64, Track> {
    let mut bytes = Vec::new();
    perfetto::write(trace, &mut bytes).unwrap();
    let decoded = proto::Trace::decode(&bytes[..]).unwrap();
    assert_eq!(decoded.packet[0].sequence_flags, Some(1));
    let mut tracks: HashMap<u64, Track> = HashMap::new();
    for packet in decoded.packet {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(descriptor) = packet.track_descriptor {
            let parent = descriptor.parent_uuid;
            assert!(parent.is_none_or(|parent| tracks.contains_key(&parent)), "{descriptor:?} has no parent");
            let track = Track {
                name: descriptor.name.unwrap(),
                parent,
                counter: descriptor.counter.is_some(),
                ..Default::default()
            };
            assert!(tracks.insert(descriptor.uuid.unwrap(), track).is_none(), "described twice");
            continue;
        }
        let (now, event) = (packet.timestamp.unwrap(), packet.track_event.unwrap());
        let track =
            tracks.get_mut(&event.track_uuid.unwrap()).expect("a track is described before it is used");
        assert_eq!(track.counter, event.r#type == Some(4));
        match event.r#type.unwrap() {
            1 => track.open.push(now),
            2 => {
                track.slices += 1;
                track.slice_ns += now - track.open.pop().expect("no slice ends that did not begin");
            }
            3 => *track.instants.entry(event.name.unwrap()).or_default() += 1,
            4 => track.values.push(event.counter_value.unwrap()),
            other => panic!("event type {other}"),
        }
    }
    for track in tracks.values() {
        assert!(track.open.is_empty(), "{}: a slice does not end", track.name);
    }
    tracks
}

#[test]
fn says_what_happened() {
    let (trace, truth) =
        generate(&Options { seed: 4, end_ns: 500_000_000, stolen: false, source: Source::Sim });
    let tracks = decode(&trace);
    let by_name = |name: &str| {
        tracks.iter().find(|(_, track)| track.name == name).unwrap_or_else(|| panic!("no {name}"))
    };
    for (id, truth) in &truth {
        let name = &trace.header.tasks.iter().find(|task| task.id == *id).unwrap().name;
        let (&uuid, track) = by_name(name);
        let child = |what: &str| tracks.values().find(|t| t.parent == Some(uuid) && t.name.starts_with(what));
        assert_eq!(child("running").unwrap().slice_ns, truth.cpu_ns, "{name}");
        assert_eq!(track.instants.get("missed").copied().unwrap_or(0) as u64, truth.misses, "{name}");
        let waiting: usize = tracks
            .values()
            .filter(|t| t.parent == Some(uuid) && t.name == "waiting jobs")
            .map(|t| t.slices)
            .sum();
        let unfinished = track.slices + waiting - truth.jobs as usize;
        assert!(unfinished < 8, "{name}: {unfinished} unfinished jobs");
        let budget = trace.header.edges.iter().find(|edge| edge.child == *id).unwrap().budget_ns;
        assert_eq!(child("budget under").map(|t| *t.values.iter().max().unwrap() as u64), budget, "{name}");
    }
    let cpus: u64 = (0..2).map(|cpu| by_name(&format!("CPU {cpu}")).1.slice_ns).sum();
    assert_eq!(cpus, truth.iter().map(|(_, truth)| truth.cpu_ns).sum::<u64>());
    let (&desktop, _) = by_name("desktop (fair)");
    let served: Vec<_> = tracks
        .values()
        .filter(|t| t.parent == Some(desktop))
        .map(|t| (t.name.as_str(), t.slice_ns > 0))
        .collect();
    assert_eq!(served.len(), 2);
    assert!(
        served.contains(&("served by top@0", true)) && served.contains(&("served by top@1", true)),
        "{served:?}"
    );
}

#[test]
fn migrations_are_marked_with_their_reason() {
    let header = TraceHeader { cpus: 2, ..Default::default() };
    let events = vec![Event::new(5, Kind::Migrate, 1, 7, 0, 2), Event::new(9, Kind::Migrate, 0, 7, 1, 5)];
    let tracks = decode(&Trace { header, events });
    let task = tracks.values().find(|track| track.name == "#7").unwrap();
    let counted = |name: &str| task.instants.get(name).copied();
    assert_eq!(counted("migrates to CPU 1: pull"), Some(1));
    assert_eq!(counted("migrates to CPU 0: balance"), Some(1));
}

#[test]
fn odd_traces_are_written_too() {
    let (mut trace, _) =
        generate(&Options { seed: 5, end_ns: 100_000_000, stolen: true, source: Source::Run });
    for nth in [2, 3, 5, 7] {
        let mut at = 0;
        let mut sieved = trace.clone();
        sieved.events.retain(|_| {
            at += 1;
            at % nth != 0
        });
        decode(&sieved);
    }
    let last = trace.events.last().unwrap().now_ns;
    trace.events = vec![
        Event::naming(last, 0, 40, "new"),
        Event::new(last, Kind::Attach, 0, 50, 40, 5),
        Event::new(last, Kind::Grant, 1, 99, 5, 0),
        Event::new(last, Kind::Miss, 0, 41, 7, u64::MAX),
        Event::new(last, Kind::JobComplete, 0, 41, 7, u64::MAX),
        Event::new(last, Kind::Lost, 0, 0, 0, u64::MAX),
        Event { kind: 200, ..Default::default() },
    ];
    let tracks = decode(&trace);
    assert!(tracks.values().any(|track| track.name == "new"));
    decode(&Trace { header: TraceHeader { cpus: 1, ..Default::default() }, events: vec![] });
}
