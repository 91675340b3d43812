//! The figures of a study whose rows are all there: pictures, and their numbers as NAME.csv.

use crate::drawing::described;
use crate::figures::{Gathering, Table};
use crate::folder::{write, Folder, Refused};
use crate::study::Study;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Names of the figures of a study, without the ending.
pub fn figures_of(study: &Study) -> impl Iterator<Item = &str> {
    study.figures.iter().map(|figure| &*figure.file)
}

/// Draw them into a folder; which files were written.
pub fn draw(study: &Study, folder: &Folder, path: &Path) -> Result<Vec<PathBuf>, Refused> {
    if study.figures.is_empty() {
        return Ok(Vec::new());
    }
    let mut gatherings: Vec<_> = study.figures.iter().map(|figure| Gathering::new(study, figure)).collect();
    for chunk in 0..study.chunks() {
        let rows = folder.rows(study, chunk)?;
        gatherings.iter_mut().for_each(|gathering| gathering.take(&rows));
    }
    let mut written = Vec::new();
    for (figure, gathering) in study.figures.iter().zip(gatherings) {
        let table = gathering.table();
        if table.lines.is_empty() {
            let message = format!("{}: no row is of this figure", figure.file);
            return Err(Refused { rule: "figure_has_rows", message });
        }
        let file = path.join(&figure.file);
        described(figure, &table)
            .write(&file)
            .map_err(|error| Refused { rule: "figure_must_be_drawn", message: format!("{error:#}") })?;
        write(&file.with_extension("csv"), &csv(&figure.line, &figure.x, &table))?;
        written.push(file);
    }
    Ok(written)
}

fn csv(line: &str, x: &str, table: &Table) -> String {
    let mut text = format!("{line},{x},estimate,low,high,rows\n");
    for line in &table.lines {
        let name = line.name.replace('"', "\"\"");
        for spot in &line.spots {
            let _ =
                writeln!(text, "\"{name}\",{},{},{},{},{}", spot.x, spot.y, spot.low, spot.high, spot.count);
        }
    }
    text
}
