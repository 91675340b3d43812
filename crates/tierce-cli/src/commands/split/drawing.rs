//! A distribution of tasks as a picture.

use super::{Name, Outcome};
use crate::picture::{Anchor, Colour, Part, Picture, Rect, Text};
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
        let load = percent(&self.asked().0);
        let title = format!("{}, {load} of each CPU, slots of {}", self.title(), show_time(found.slot_ns));
        let mut slots = Slots { slot_ns: found.slot_ns, down: 0.0, parts: Vec::new() };
        slots.text((LEFT, 24.0), 15.0, Anchor::Start, title.replace('δ', "delta"));
        slots.cpus(self.args.cpus);
        let (mut pale, mut strong) = (PALE.iter().cycle(), STRONG.iter().cycle());
        let mut colours = Vec::new();
        for (server, name) in found.servers.iter().zip(&names) {
            let of_these = if server.pieces.len() > 1 { &mut strong } else { &mut pale };
            let colour = of_these.next().copied().unwrap_or(FREE);
            slots.server(server, name, colour);
            colours.push(colour);
        }
        for piece in &found.rest {
            for turn in 0..2 {
                slots.bar(piece, turn, REST);
            }
        }
        slots.begins(self.args.cpus);
        for ((server, name), colour) in found.servers.iter().zip(&names).zip(colours) {
            slots.key(colour, name, self.key(found, server));
        }
        if let (Some(name), Some(piece)) = (&self.args.rest, found.rest.first()) {
            let length = show_time(piece.length_ns);
            let words = format!("{length} on each CPU, and what the others leave: all other threads");
            slots.key(REST, name, words);
        }
        Picture { width: WIDTH, height: slots.down + 4.0, parts: slots.parts }
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

/// The picture: a row for each CPU, and below them the keys.
struct Slots {
    slot_ns: u64,
    /// Where the next key is.
    down: f32,
    parts: Vec<Part>,
}

impl Slots {
    fn x(&self, ns: u64) -> f32 {
        LEFT + (ns as f64 / (2 * self.slot_ns) as f64) as f32 * (WIDTH - LEFT - RIGHT)
    }

    fn text(&mut self, at: (f32, f32), size: f32, anchor: Anchor, words: String) {
        self.parts.push(Part::Text(Text { at, size, anchor, colour: INK, turned: false, words }));
    }

    fn area(&mut self, area: Rect, colour: Colour) {
        self.parts.push(Part::Area { points: corners(area).to_vec(), colour });
    }

    fn cpus(&mut self, cpus: u32) {
        for cpu in 0..cpus {
            let (left, right, top) = (self.x(0), self.x(2 * self.slot_ns), row(cpu));
            self.area(Rect { left, top, right, bottom: top + BAR }, FREE);
            self.text((LEFT - 8.0, top + BAR / 2.0 + 4.0), 12.0, Anchor::End, format!("CPU {cpu}"));
        }
    }

    fn server(&mut self, server: &Server, name: &str, colour: Colour) {
        let letters: &[_] = if server.pieces.len() > 1 { &["y", "x"] } else { &["N"] };
        for (piece, letter) in server.pieces.iter().zip(letters) {
            for turn in 0..2 {
                let bar = self.bar(piece, turn, colour);
                let [first, rest @ ..] = corners(bar);
                let border = [first].into_iter().chain(rest).chain([first]).collect();
                self.parts.push(Part::Line { points: border, width: 0.6, colour: INK, dashed: false });
                self.label(bar, name, letter, piece.length_ns);
            }
        }
    }

    /// A piece of one of the two slots.
    fn bar(&mut self, piece: &Piece, turn: u64, colour: Colour) -> Rect {
        let begin = turn * self.slot_ns + piece.offset_ns;
        let (left, right, top) = (self.x(begin), self.x(begin + piece.length_ns), row(piece.cpu));
        let bar = Rect { left, top, right, bottom: top + BAR };
        self.area(bar, colour);
        bar
    }

    /// As much as there is room for.
    fn label(&mut self, bar: Rect, name: &str, letter: &str, length_ns: u64) {
        let words = [
            format!("{name}  {letter} = {}", show_time(length_ns)),
            format!("{name} {letter}"),
            name.to_string(),
            letter.to_string(),
        ];
        let at = ((bar.left + bar.right) / 2.0, bar.top + BAR / 2.0 + 4.0);
        let (size, anchor) = (11.0, Anchor::Middle);
        let label =
            words.into_iter().map(|words| Text { at, size, anchor, colour: INK, turned: false, words });
        let fits = |label: &Text| {
            let place = label.place();
            place.left > bar.left + 2.0 && place.right < bar.right - 2.0
        };
        self.parts.extend(label.into_iter().find(fits).map(Part::Text));
    }

    /// Where slots begin, and when.
    fn begins(&mut self, cpus: u32) {
        let foot = row(cpus) - (ROW - BAR);
        for turn in 0..=2 {
            let at = self.x(turn * self.slot_ns);
            let points = vec![(at, TOP - 10.0), (at, foot + 4.0)];
            self.parts.push(Part::Line { points, width: 1.0, colour: GRID, dashed: true });
            self.text((at, TOP - 16.0), 12.0, Anchor::Middle, show_time(turn * self.slot_ns));
        }
        self.down = foot + 28.0;
    }

    fn key(&mut self, colour: Colour, name: &str, words: String) {
        let down = self.down;
        self.area(Rect { left: LEFT, top: down - 10.0, right: LEFT + 14.0, bottom: down + 2.0 }, colour);
        self.text((LEFT + 22.0, down), 12.0, Anchor::Start, name.to_string());
        self.text((LEFT + 130.0, down), 12.0, Anchor::Start, words);
        self.down += LINE;
    }
}

/// Where the row of a CPU begins.
fn row(cpu: u32) -> f32 {
    TOP + cpu as f32 * ROW
}

fn corners(area: Rect) -> [(f32, f32); 4] {
    let Rect { left, top, right, bottom } = area;
    [(left, top), (right, top), (right, bottom), (left, bottom)]
}
