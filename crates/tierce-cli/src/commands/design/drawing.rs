//! Periods and budgets of servers as a figure.

use tierce_analysis::server::{Frontier, Server};
use tierce_figure::{Axis, Figure, Look, Panel, Place, Point, Shape};
use tierce_plan::show_time;

const CURVE: Look = Look::Number(0);
const LOAD: Look = Look::Number(1);

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

pub fn point(server: &Server) -> Point {
    [ms(server.period_ns), ms(server.budget_ns)]
}

/// Period to the right, budget upwards; shaded where the budget is not enough. `load`: the tasks' utilisation.
pub fn drawn(title: String, load: f64, found: &Frontier) -> Figure {
    let curve: Vec<_> = found.servers.iter().map(point).collect();
    let most = |of: usize| curve.iter().map(|point| point[of]).fold(0.0, f64::max);
    let (last, highest) = (most(0), most(1) * 1.08);
    let ends = [curve.last(), curve.first()].into_iter().flatten().map(|point| [point[0], 0.0]);
    let shade = curve.iter().copied().chain(ends).collect();
    let until = last.min(highest / load);
    let along = [until * 0.8, load * until * 0.8];
    let panel =
        Panel::new(340.0, Axis::new("period (ms)", 0.0, last), Axis::new("budget (ms)", 0.0, highest))
            .with("", CURVE, Shape::Area(shade))
            .with("", LOAD, Shape::Plain(vec![[0.0, 0.0], [until, load * until]]))
            .with("", CURVE, Shape::Plain(curve));
    let panel = marks(panel, found).note(along, "the tasks' utilisation", Place::Below).note(
        [last, 0.0],
        "not enough",
        Place::Corner,
    );
    Figure::new(title, panel)
}

/// The best server and the knee, and what they are.
fn marks(panel: Panel, found: &Frontier) -> Panel {
    let same = found.knee == Some(found.best);
    let knee = found.knee.filter(|_| !same);
    let marks = [(if same { "best and knee" } else { "best" }, Some(found.best)), ("knee", knee)];
    let marks = marks.into_iter().filter_map(|(name, index)| Some((name, &found.servers[index?])));
    marks.fold(panel, |panel, (name, server)| {
        let words = format!("{name}: {} / {}", show_time(server.budget_ns), show_time(server.period_ns));
        panel.with("", CURVE, Shape::Points(vec![point(server)])).note(point(server), words, Place::Near)
    })
}
