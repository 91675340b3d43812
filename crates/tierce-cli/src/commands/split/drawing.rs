//! A distribution of tasks as a figure.

use super::{Name, Outcome};
use tierce_admission::percent;
use tierce_analysis::split::*;
use tierce_figure::{Axis, Block, Figure, Legend, Look, Panel, Scale, Shape, Tick};
use tierce_plan::show_time;

/// Slots that are shown.
const TURNS: u64 = 2;
/// Of a CPU, in pixels.
const ROW: f64 = 38.0;

impl Outcome {
    /// Two slots of each CPU, and below what is in them: servers on one CPU are pale, those on two are not.
    pub fn drawn(&self, found: &Assignment) -> Figure {
        let load = percent(&self.asked().0);
        let title = format!("{}, {load} of each CPU, slots of {}", self.title(), show_time(found.slot_ns));
        let cpus = self.args.cpus;
        let begins = (0..=TURNS).map(|turn| turn * found.slot_ns);
        let ticks = begins.clone().map(|ns| Tick { at: ns as f64, words: show_time(ns) }).collect();
        let to = (TURNS * found.slot_ns) as f64;
        let x = Axis { label: String::new(), scale: Scale::Linear, from: 0.0, to, ticks, grid: false };
        let y = Axis::rows((0..cpus).map(|cpu| format!("CPU {cpu}")));
        let mut panel = Panel::new(ROW * f64::from(cpus), x, y);
        let (mut pale, mut strong) = ((0..).map(Look::Pale), (0..).map(Look::Number));
        for (server, name) in found.servers.iter().zip(self.names(found)) {
            let looks: &mut dyn Iterator<Item = Look> =
                if server.pieces.len() > 1 { &mut strong } else { &mut pale };
            let letters: &[_] = if server.pieces.len() > 1 { &["y", "x"] } else { &["N"] };
            let blocks = server.pieces.iter().zip(letters).flat_map(|(piece, letter)| {
                blocks(piece, found.slot_ns, labels(&name, letter, piece.length_ns))
            });
            let shape = Shape::Boxes(blocks.collect());
            let words = format!("{name}: {}", self.key(found, server));
            panel = panel.with(words, looks.next().unwrap_or(Look::Reference), shape);
        }
        if let (Some(name), Some(piece)) = (&self.args.rest, found.rest.first()) {
            let length = show_time(piece.length_ns);
            let words = format!("{name}: {length} on each CPU, and what the others leave: all other threads");
            let blocks = found.rest.iter().flat_map(|piece| blocks(piece, found.slot_ns, Vec::new()));
            panel = panel.with(words, Look::Reference, Shape::Boxes(blocks.collect()));
        }
        let panel = panel.with("", Look::Reference, Shape::Rules(begins.map(|ns| ns as f64).collect()));
        Figure::new(title, panel).wide(1000.0).legend(Legend::List)
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

/// A piece in each of the slots.
fn blocks(piece: &Piece, slot_ns: u64, inside: Vec<String>) -> impl Iterator<Item = Block> {
    let (offset, length, row) = (piece.offset_ns, piece.length_ns, f64::from(piece.cpu));
    (0..TURNS).map(move |turn| {
        let begin = turn * slot_ns + offset;
        let x = [begin as f64, (begin + length) as f64];
        Block { inside: inside.clone(), ..Block::new(x, [row + 0.15, row + 0.85]) }
    })
}

/// What is in it, as much as there is room for.
fn labels(name: &str, letter: &str, length_ns: u64) -> Vec<String> {
    vec![
        format!("{name}: {letter} = {}", show_time(length_ns)),
        format!("{name} {letter}"),
        name.to_string(),
        letter.to_string(),
    ]
}
