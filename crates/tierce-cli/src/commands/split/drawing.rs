//! A distribution of tasks as a picture.

use super::{Name, Outcome};
use crate::picture::{Anchor, Colour, Part, Picture, Text};
use tierce_admission::percent;
use tierce_analysis::split::*;
use tierce_plan::show_time;

const LEFT: f32 = 64.0;
const WIDTH: f32 = 1000.0;
const RIGHT: f32 = 48.0;
const TOP: f32 = 62.0;
const ROW: f32 = 40.0;
const BAR: f32 = 26.0;
const LINE: f32 = 19.0;

const INK: Colour = [0x33, 0x33, 0x33];
const GRID: Colour = [0x8a, 0x8a, 0x8a];
const FREE: Colour = [0xf1, 0xf1, 0xf1];
const REST: Colour = [0x9a, 0x9a, 0x9a];
/// Of servers on one CPU, in turn, and of those on two.
const PALE: [Colour; 4] = [[0xcf, 0xdc, 0xee], [0xdd, 0xe8, 0xd2], [0xe9, 0xdd, 0xec], [0xf0, 0xe6, 0xcd]];
const STRONG: [Colour; 6] = [
    [0xe8, 0x8c, 0x5a],
    [0x6c, 0xa6, 0xd9],
    [0x84, 0xbd, 0x6a],
    [0xc9, 0x84, 0xc2],
    [0xe0, 0xba, 0x45],
    [0x5f, 0xbd, 0xb2],
];

impl Outcome {
    /// Two slots of each CPU, and below what is in them.
    pub fn drawn(&self, found: &Assignment) -> Picture {
        let names = self.names(found);
        let (cpus, slot) = (self.args.cpus, found.slot_ns);
        let x = |ns: u64| LEFT + (ns as f64 / (2 * slot) as f64) as f32 * (WIDTH - LEFT - RIGHT);
        let row = |cpu: u32| TOP + cpu as f32 * ROW;
        let foot = row(cpus) - (ROW - BAR);
        let text = |at: (f32, f32), size: f32, anchor: Anchor, words: String| Text {
            at,
            size,
            anchor,
            colour: INK,
            turned: false,
            words,
        };
        let area = |left: f32, top: f32, right: f32, bottom: f32, colour: Colour| Part::Area {
            points: vec![(left, top), (right, top), (right, bottom), (left, bottom)],
            colour,
        };
        let mut parts = Vec::new();
        let load = percent(&self.asked().0);
        let title = format!("{}, {load} of each CPU, slots of {}", self.title(), show_time(slot))
            .replace('δ', "delta");
        parts.push(Part::Text(text((LEFT, 24.0), 15.0, Anchor::Start, title)));
        for cpu in 0..cpus {
            parts.push(area(x(0), row(cpu), x(2 * slot), row(cpu) + BAR, FREE));
            let middle = row(cpu) + BAR / 2.0 + 4.0;
            parts.push(Part::Text(text((LEFT - 8.0, middle), 12.0, Anchor::End, format!("CPU {cpu}"))));
        }
        let (mut pale, mut strong) = (PALE.iter().cycle(), STRONG.iter().cycle());
        let mut keys = Vec::new();
        for (server, name) in found.servers.iter().zip(&names) {
            let split = server.pieces.len() > 1;
            let colours = if split { &mut strong } else { &mut pale };
            let colour = colours.next().copied().unwrap_or(FREE);
            for (at, piece) in server.pieces.iter().enumerate() {
                for turn in 0..2 {
                    let begin = turn * slot + piece.offset_ns;
                    let (left, right) = (x(begin), x(begin + piece.length_ns));
                    let (top, bottom) = (row(piece.cpu), row(piece.cpu) + BAR);
                    parts.push(area(left, top, right, bottom, colour));
                    let border =
                        vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
                    parts.push(Part::Line { points: border, width: 0.6, colour: INK, dashed: false });
                    let letter = if split { ["y", "x"][at] } else { "N" };
                    let length = show_time(piece.length_ns);
                    let words = [
                        format!("{name}  {letter} = {length}"),
                        format!("{name} {letter}"),
                        name.clone(),
                        letter.into(),
                    ];
                    let at = ((left + right) / 2.0, top + BAR / 2.0 + 4.0);
                    let label = words.into_iter().map(|words| text(at, 11.0, Anchor::Middle, words));
                    let fits = |label: &Text| {
                        let place = label.place();
                        place.left > left + 2.0 && place.right < right - 2.0
                    };
                    parts.extend(label.into_iter().find(fits).map(Part::Text));
                }
            }
            keys.push((colour, name.clone(), self.key(found, server)));
        }
        for piece in &found.rest {
            for turn in 0..2 {
                let (left, right) =
                    (x(turn * slot + piece.offset_ns), x(turn * slot + piece.offset_ns + piece.length_ns));
                parts.push(area(left, row(piece.cpu), right, row(piece.cpu) + BAR, REST));
            }
        }
        // Where slots begin, and when.
        for turn in 0..=2 {
            let at = x(turn * slot);
            let points = vec![(at, TOP - 10.0), (at, foot + 4.0)];
            parts.push(Part::Line { points, width: 1.0, colour: GRID, dashed: true });
            parts.push(Part::Text(text((at, TOP - 16.0), 12.0, Anchor::Middle, show_time(turn * slot))));
        }
        let mut down = foot + 28.0;
        for (colour, name, words) in keys {
            parts.push(area(LEFT, down - 10.0, LEFT + 14.0, down + 2.0, colour));
            parts.push(Part::Text(text((LEFT + 22.0, down), 12.0, Anchor::Start, name)));
            parts.push(Part::Text(text((LEFT + 130.0, down), 12.0, Anchor::Start, words)));
            down += LINE;
        }
        if let (Some(name), Some(piece)) = (&self.args.rest, found.rest.first()) {
            parts.push(area(LEFT, down - 10.0, LEFT + 14.0, down + 2.0, REST));
            let words = format!(
                "{} on each CPU, and what the others leave: all other threads",
                show_time(piece.length_ns)
            );
            parts.push(Part::Text(text((LEFT + 22.0, down), 12.0, Anchor::Start, name.clone())));
            parts.push(Part::Text(text((LEFT + 130.0, down), 12.0, Anchor::Start, words)));
            down += LINE;
        }
        Picture { width: WIDTH, height: down + 4.0, parts }
    }

    fn key(&self, found: &Assignment, server: &Server) -> String {
        let used = percent(&self.used(found, server));
        let at = match &server.pieces[..] {
            [first, second] => format!(
                "y = {} on CPU {}, x = {} on CPU {}",
                show_time(first.length_ns),
                first.cpu,
                show_time(second.length_ns),
                second.cpu
            ),
            pieces => format!("N = {} on CPU {}", show_time(pieces[0].length_ns), pieces[0].cpu),
        };
        match &server.tasks[..] {
            [_] if server.pieces.len() > 1 && self.args.algorithm == Name::SEkg => format!("{used}, {at}"),
            _ => format!("{used}, {at}: {}", self.some_members(server, 64)),
        }
    }
}
