//! The numbers of a figure: per line and point a mean or a quantile, with its confidence interval at 95 %.
//!
//! | of | estimate | interval | source |
//! |---|---|---|---|
//! | share k/n | k/n | (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n) | Wilson 1927; Brown, Cai & DasGupta 2001 |
//! | mean | Σx/n | mean ± z s/√n | central limit theorem; n of 30 and more |
//! | quantile q | x₍⌈nq⌉₎ | from x₍⌊nq − z √(nq(1 − q))⌋₎ to x₍⌈nq + z √(nq(1 − q))⌉₊₁₎ | order statistics: Conover 1999, 3.2 |

use crate::rows::{cell, Cell, Row};
use crate::study::{Figure, Measure, Study};
use std::collections::BTreeMap;

/// Of the normal distribution: 97.5 % are below.
const Z: f64 = 1.959_963_984_540_054;

/// What a figure shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// In the order of tests and points.
    pub lines: Vec<Line>,
}

/// A line of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The value of its column.
    pub name: String,
    /// By x.
    pub spots: Vec<Spot>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Where.
    pub x: f64,
    /// The estimate.
    pub y: f64,
    /// Its interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Rows that it is made of.
    pub count: u64,
}

/// Rows of a study become the points of its figures, chunk by chunk.
pub struct Gathering<'s> {
    study: &'s Study,
    figure: &'s Figure,
    /// By line in the order in which they come, then by x as bits, which order numbers of 0 and more.
    found: Vec<(String, BTreeMap<u64, Values>)>,
}

#[derive(Default)]
struct Values {
    count: u64,
    good: u64,
    values: Vec<f64>,
}

impl<'s> Gathering<'s> {
    pub fn new(study: &'s Study, figure: &'s Figure) -> Self {
        Self { study, figure, found: Vec::new() }
    }

    pub fn take(&mut self, rows: &[Row]) {
        for row in rows {
            let shown = |column: &str| show(&cell(self.study, row, column));
            if !self.figure.only.iter().all(|(column, values)| values.contains(&shown(column))) {
                continue;
            }
            let x = match cell(self.study, row, &self.figure.x) {
                Cell::Real(number) => number,
                Cell::Whole(number) => number as f64,
                _ => continue,
            };
            let line = shown(&self.figure.line);
            let at = self.found.iter().position(|(name, _)| *name == line).unwrap_or_else(|| {
                self.found.push((line, BTreeMap::new()));
                self.found.len() - 1
            });
            let values = self.found[at].1.entry(x.to_bits()).or_default();
            match (self.figure.y, row.ratio) {
                (Measure::Schedulable, _) => {
                    values.count += 1;
                    values.good += u64::from(row.schedulable);
                }
                (_, Some(ratio)) => values.values.push(ratio),
                (_, None) => {}
            }
        }
    }

    pub fn table(self) -> Table {
        let measure = self.figure.y;
        let line = |(name, by_x): (String, BTreeMap<u64, Values>)| {
            let spots = by_x.into_iter().filter_map(|(x, values)| spot(measure, f64::from_bits(x), values));
            Line { name, spots: spots.collect() }
        };
        Table { lines: self.found.into_iter().map(line).collect() }
    }
}

/// The numbers of a figure of these rows.
pub fn points(study: &Study, figure: usize, rows: &[Row]) -> Table {
    let mut gathering = Gathering::new(study, &study.figures[figure]);
    gathering.take(rows);
    gathering.table()
}

/// As a line is named, and as `where` has it.
pub fn show(cell: &Cell) -> String {
    match cell {
        Cell::Whole(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Bool(yes) => yes.to_string(),
        Cell::Missing => "none".into(),
    }
}

fn spot(measure: Measure, x: f64, mut values: Values) -> Option<Spot> {
    let count = values.values.len();
    let (y, low, high) = match measure {
        Measure::Schedulable => {
            let (low, high) = wilson(values.good, values.count);
            let y = values.good as f64 / values.count as f64;
            return Some(Spot { x, y, low, high, count: values.count });
        }
        _ if count == 0 => return None,
        Measure::Mean => mean(&values.values),
        Measure::Quantile(part) => {
            values.values.sort_by(f64::total_cmp);
            quantile(&values.values, part)
        }
    };
    Some(Spot { x, y, low, high, count: count as u64 })
}

/// The interval of a share, `count` above 0.
fn wilson(good: u64, count: u64) -> (f64, f64) {
    let (n, p) = (count as f64, good as f64 / count as f64);
    let (middle, scale) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    // 0 of n and n of n end at 0 and 1, but for rounding.
    let low = if good == 0 { 0.0 } else { (middle - half) / scale };
    let high = if good == count { 1.0 } else { (middle + half) / scale };
    (low, high)
}

fn mean(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let half = if values.len() > 1 { Z * (squares / (n - 1.0) / n).sqrt() } else { 0.0 };
    (mean, mean - half, mean + half)
}

/// Of sorted values, at least one.
fn quantile(values: &[f64], part: f64) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let half = Z * (n * part * (1.0 - part)).sqrt();
    // The r-th smallest, from 1; what is beyond the ends is the end.
    let at = |rank: f64| values[(rank.max(1.0) as usize).min(values.len()) - 1];
    (at((n * part).ceil()), at((n * part - half).floor()), at((n * part + half).ceil() + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 5e-5, "{found} {wanted}");
    }

    /// Brown, Cai & DasGupta's and other tables of the interval.
    #[test]
    fn wilson_intervals() {
        for (good, count, low, high) in [
            (0, 10, 0.0, 0.27753),
            (10, 10, 0.72247, 1.0),
            (5, 10, 0.23659, 0.76341),
            (81, 263, 0.25529, 0.36621),
        ] {
            let found = wilson(good, count);
            near(found.0, low);
            near(found.1, high);
        }
    }

    #[test]
    fn means_and_quantiles() {
        let (y, low, high) = mean(&[1.0, 2.0, 3.0, 4.0]);
        near(y, 2.5);
        near(high - y, 1.959_964 * (5.0f64 / 3.0 / 4.0).sqrt());
        near(y - low, high - y);
        assert_eq!(mean(&[3.0]), (3.0, 3.0, 3.0));
        let hundred: Vec<_> = (1..=100).map(f64::from).collect();
        // 50 ± 1.96·5 = 40.2, 59.8
        assert_eq!(quantile(&hundred, 0.5), (50.0, 40.0, 61.0));
        assert_eq!(quantile(&hundred, 1.0), (100.0, 100.0, 100.0));
        assert_eq!(quantile(&[7.0], 0.99), (7.0, 7.0, 7.0));
    }
}
