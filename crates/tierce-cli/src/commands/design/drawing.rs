//! Periods and budgets of servers as a picture.

use crate::picture::{Anchor, Colour, Part, Picture, Rect, Text};
use tierce_analysis::server::{Frontier, Server};
use tierce_plan::show_time;

const WIDTH: f32 = 720.0;
const HEIGHT: f32 = 440.0;
const LEFT: f32 = 74.0;
const RIGHT: f32 = 24.0;
const TOP: f32 = 46.0;
const BOTTOM: f32 = 54.0;

const INK: Colour = [0x33, 0x33, 0x33];
const GRID: Colour = [0xe4, 0xe4, 0xe4];
const CURVE: Colour = [0x1f, 0x4e, 0x9c];
const SHADE: Colour = [0xe1, 0xe5, 0xed];
const LOAD: Colour = [0xb3, 0x54, 0x1e];
const FAINT: Colour = [0x5a, 0x64, 0x75];

type Point = (f32, f32);

/// Period to the right, budget upwards; shaded where the budget is not enough. `load`: the tasks' utilisation.
pub fn drawn(title: String, load: f64, found: &Frontier) -> Picture {
    let mut plot = Plot::of(found);
    plot.shade();
    plot.grid();
    let until = plot.last.min(plot.most / load);
    let of_load = [plot.place(0.0, 0.0), plot.place(until, load * until)];
    plot.line(of_load.to_vec(), 1.0, LOAD, true);
    plot.line(plot.curve.clone(), 2.0, CURVE, false);
    plot.titles(title);
    // Words within the plot go where nothing else is.
    plot.free.line(&of_load);
    plot.marks();
    let along = plot.place(until * 0.8, load * until * 0.8);
    plot.words_below(text(along, 12.0, Anchor::Start, LOAD, "the tasks' utilisation".into()));
    let corner = (WIDTH - RIGHT - 10.0, HEIGHT - BOTTOM - 10.0);
    plot.words_if_free(text(corner, 12.0, Anchor::End, FAINT, "not enough".into()));
    Picture { width: WIDTH, height: HEIGHT, parts: plot.parts }
}

struct Plot<'a> {
    found: &'a Frontier,
    /// The longest period, ms.
    last: f64,
    /// A little more than the largest budget, ms.
    most: f64,
    curve: Vec<Point>,
    free: Free,
    parts: Vec<Part>,
}

fn text(at: Point, size: f32, anchor: Anchor, colour: Colour, words: String) -> Text {
    Text { at, size, anchor, colour, turned: false, words }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl<'a> Plot<'a> {
    fn of(found: &'a Frontier) -> Self {
        let last = found.servers.iter().map(|server| server.period_ns).max().map_or(1.0, ms);
        let most = found.servers.iter().map(|server| server.budget_ns).max().map_or(1.0, ms) * 1.08;
        let inside = Rect { left: LEFT, top: TOP, right: WIDTH - RIGHT, bottom: HEIGHT - BOTTOM };
        let free = Free { inside, taken: Vec::new() };
        let mut plot = Self { found, last, most, curve: Vec::new(), free, parts: Vec::new() };
        plot.curve = found.servers.iter().map(|server| plot.at(server)).collect();
        plot.free.line(&plot.curve);
        plot
    }

    fn place(&self, period_ms: f64, budget_ms: f64) -> Point {
        let x = LEFT + (period_ms / self.last) as f32 * (WIDTH - LEFT - RIGHT);
        let y = HEIGHT - BOTTOM - (budget_ms / self.most) as f32 * (HEIGHT - TOP - BOTTOM);
        (x, y)
    }

    fn at(&self, server: &Server) -> Point {
        self.place(ms(server.period_ns), ms(server.budget_ns))
    }

    fn line(&mut self, points: Vec<Point>, width: f32, colour: Colour, dashed: bool) {
        self.parts.push(Part::Line { points, width, colour, dashed });
    }

    fn shade(&mut self) {
        let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let first = self.curve.first().map_or(LEFT, |point| point.0);
        let end = self.curve.last().map_or(right, |point| point.0);
        let points = [(first, floor)].into_iter().chain(self.curve.iter().copied()).chain([(end, floor)]);
        self.parts.push(Part::Area { points: points.collect(), colour: SHADE });
    }

    fn grid(&mut self) {
        let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let (step, count) = steps(self.last);
        for value in (0..=count).map(|tick| step * f64::from(tick)) {
            let (x, _) = self.place(value, 0.0);
            self.line(vec![(x, TOP), (x, floor)], 1.0, GRID, false);
            let number = text((x, floor + 18.0), 12.0, Anchor::Middle, INK, trimmed(value));
            self.parts.push(Part::Text(number));
        }
        let (step, count) = steps(self.most);
        for value in (0..=count).map(|tick| step * f64::from(tick)) {
            let (_, y) = self.place(0.0, value);
            self.line(vec![(LEFT, y), (right, y)], 1.0, GRID, false);
            let number = text((LEFT - 8.0, y + 4.0), 12.0, Anchor::End, INK, trimmed(value));
            self.parts.push(Part::Text(number));
        }
    }

    /// Of the picture and its axes.
    fn titles(&mut self, title: String) {
        let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        self.parts.push(Part::Text(text((LEFT, 26.0), 15.0, Anchor::Start, INK, title)));
        let middle = ((LEFT + right) / 2.0, HEIGHT - 14.0);
        self.parts.push(Part::Text(text(middle, 12.0, Anchor::Middle, INK, "period (ms)".into())));
        let budget = text((22.0, (TOP + floor) / 2.0), 12.0, Anchor::Middle, INK, "budget (ms)".into());
        self.parts.push(Part::Text(Text { turned: true, ..budget }));
    }

    /// The best server and the knee: dots, and what they are.
    fn marks(&mut self) {
        let found = self.found;
        let same = found.knee == Some(found.best);
        let knee = found.knee.filter(|_| !same);
        let marks = [(if same { "best and knee" } else { "best" }, Some(found.best)), ("knee", knee)];
        let marks: Vec<_> =
            marks.iter().filter_map(|(name, index)| Some((*name, &found.servers[(*index)?]))).collect();
        for (_, server) in &marks {
            let (at, radius) = (self.at(server), 4.5);
            let (left, right, top, bottom) = (at.0 - 6.0, at.0 + 6.0, at.1 - 6.0, at.1 + 6.0);
            self.free.taken.push(Rect { left, top, right, bottom });
            self.parts.push(Part::Dot { at, radius, colour: CURVE });
        }
        for (name, server) in marks {
            let words = format!("{name}: {} / {}", show_time(server.budget_ns), show_time(server.period_ns));
            let dot = self.at(server);
            let label = self.free.place(text(dot, 12.0, Anchor::Start, INK, words), true);
            // From the words to their dot, where they are not beside it.
            let place = label.place();
            let near = (dot.0.clamp(place.left, place.right), dot.1.clamp(place.top, place.bottom));
            if (near.0 - dot.0).hypot(near.1 - dot.1) > 14.0 {
                self.line(vec![near, dot], 0.8, CURVE, false);
            }
            self.parts.push(Part::Text(label));
        }
    }

    fn words_below(&mut self, text: Text) {
        let text = self.free.place(text, false);
        self.parts.push(Part::Text(text));
    }

    fn words_if_free(&mut self, text: Text) {
        if !self.free.taken.iter().any(|taken| taken.meets(&text.place())) {
            self.parts.push(Part::Text(text));
        }
    }
}

/// About five round steps up to `most`.
fn steps(most: f64) -> (f64, u32) {
    let rough = most / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    (step, (most / step * 1.000001) as u32)
}

/// Where there is room for words.
struct Free {
    inside: Rect,
    taken: Vec<Rect>,
}

impl Free {
    /// Nothing may stand on a line: small pieces of it are taken.
    fn line(&mut self, points: &[(f32, f32)]) {
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let pieces = ((x2 - x1).hypot(y2 - y1) / 4.0).ceil().max(1.0);
            for piece in 0..=(pieces as u32) {
                let part = piece as f32 / pieces;
                let (x, y) = (x1 + (x2 - x1) * part, y1 + (y2 - y1) * part);
                self.taken.push(Rect { left: x - 2.0, top: y - 2.0, right: x + 2.0, bottom: y + 2.0 });
            }
        }
    }

    /// The text around its place, on that side (above and left, or below and right) and as near as there is room; where there is
    /// none, on as little as possible.
    fn place(&mut self, text: Text, above: bool) -> Text {
        const TURNS: u32 = 24;
        // From above to the left and on; or from below to the right and on.
        let begin = if above { 0.25 } else { 0.75 };
        let ring = |turns: std::ops::Range<u32>| {
            (1..=12).flat_map(move |ring| turns.clone().map(move |turn| (ring, turn)))
        };
        let moved = ring(0..TURNS / 2).chain(ring(TURNS / 2..TURNS)).map(|(ring, turn)| {
            let angle = (turn as f32 / TURNS as f32 + begin) * std::f32::consts::TAU;
            let reach = 6.0 + ring as f32 * 12.0;
            let (right, up) = (angle.cos() * reach, angle.sin() * reach);
            let anchor = match right {
                right if right > 4.0 => Anchor::Start,
                right if right < -4.0 => Anchor::End,
                _ => Anchor::Middle,
            };
            let at = (text.at.0 + right, text.at.1 - up + text.size * 0.3);
            Text { at, anchor, ..text.clone() }
        });
        let inside: Vec<_> = moved.filter(|text| self.inside.holds(&text.place())).collect();
        let covered = |text: &Text| {
            let place = text.place();
            self.taken.iter().filter(|taken| taken.meets(&place)).count()
        };
        let found = inside.iter().min_by_key(|text| covered(text)).cloned().unwrap_or(text);
        let Rect { left, top, right, bottom } = found.place();
        self.taken.push(Rect { left: left - 4.0, top: top - 4.0, right: right + 4.0, bottom: bottom + 4.0 });
        found
    }
}

/// Without trailing zeros.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
