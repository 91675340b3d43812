//! `[[figure]]`: what is drawn.

use super::values::Reader;
use crate::rows::{columns, is_number};
use crate::study::{Figure, Measure, Study};
use std::path::Path;
use tierce_figure::Format;
use tierce_plan::reading::{listed, Fields, Kind, Value};
use tierce_plan::{closest, Fault};

impl Reader<'_> {
    pub fn figure(&mut self, value: &Value, study: &mut Study) -> Option<()> {
        let table = self.collector.table("`figure`", value)?;
        let mut fields = Fields::new("`figure`", table);
        let file = fields.take("file");
        let [title, x_label, y_label] = ["title", "x_label", "y_label"]
            .map(|name| fields.text(name, &mut self.collector).map(str::to_string));
        let [x, y, line] = ["x", "y", "line"].map(|name| fields.take(name));
        let quantile = fields.take("quantile");
        let only = fields.take("where");
        fields.finish(&mut self.collector);
        let file = self.file_name(value, file);
        let all: Vec<String> = columns(study).into_iter().map(String::from).collect();
        let names: Vec<_> = all.iter().map(String::as_str).collect();
        let x_place = x.unwrap_or(value);
        let x = self.column("`x`", value, x, &names, "utilisation");
        let line = self.column("`line`", value, line, &names, "test");
        if x.as_ref().is_some_and(|x| !is_number(study, x)) {
            self.fault("x_is_a_number", x_place, "`x` is a column of numbers");
        }
        let measures = [("schedulable", Measure::Schedulable), ("ratio", Measure::Mean)];
        let y = y.map_or(Some(Measure::Schedulable), |value| self.choice("`y`", value, &measures));
        let part = match quantile {
            None => None,
            Some(value) => {
                let part = self.decimal("`quantile`", value)?;
                if y == Some(Measure::Schedulable) || !(1..=1_000_000_000).contains(&part.0) {
                    let message = "`quantile` is a part of the values of `y = \"ratio\"`";
                    let fault = Fault::new("quantile_is_a_part", value.spot, message);
                    self.collector.add(fault.value(part).bound("above 0, at most 1"));
                    return None;
                }
                Some(part)
            }
        };
        let only = only.map_or(Some(Vec::new()), |value| self.only(value, &names));
        let (file, x, line, y, only) = (file?, x?, line?, y?, only?);
        if study
            .figures
            .iter()
            .any(|figure| Path::new(&figure.file).file_stem() == Path::new(&file).file_stem())
        {
            self.fault("name_is_unique", value, format!("a second figure `{file}`"));
        }
        let label = match (y, part) {
            (Measure::Schedulable, _) => "schedulable sets".to_string(),
            (_, None) => "mean of longest response / deadline".to_string(),
            (_, Some(part)) => format!("{part} quantile of longest response / deadline"),
        };
        study.figures.push(Figure {
            file,
            title,
            x_label: x_label.unwrap_or_else(|| x.replace('_', " ")),
            x,
            y: part.map_or(y, |part| Measure::Quantile(part.to_f64())),
            y_label: y_label.unwrap_or(label),
            line,
            only,
        });
        Some(())
    }

    /// `NAME.svg`, `NAME.pdf` or `NAME.png`.
    pub fn file_name(&mut self, place: &Value, value: Option<&Value>) -> Option<String> {
        let Some(value) = value else {
            self.fault(
                "file_must_be_given",
                place,
                "`file` is missing: \"NAME.svg\", \"NAME.pdf\" or \"NAME.png\"",
            );
            return None;
        };
        let text = self.collector.text("`file`", value)?;
        if text.contains(['/', '\\']) || Format::of(Path::new(text)).is_err() {
            let message = "`file` is a name that ends in .svg, .pdf or .png, in the folder";
            let fault = Fault::new("picture_is_svg_pdf_or_png", value.spot, message);
            self.collector.add(fault.value(format!("\"{text}\"")));
            return None;
        }
        Some(text.into())
    }

    /// One of the columns.
    pub fn column(
        &mut self,
        what: &str,
        place: &Value,
        value: Option<&Value>,
        names: &[&str],
        preset: &str,
    ) -> Option<String> {
        let text = value.map_or(Some(preset), |value| self.collector.text(what, value))?;
        let value = value.unwrap_or(place);
        if names.contains(&text) {
            return Some(text.to_string());
        }
        let near = closest(text, names.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let fault = Fault::new("column_must_exist", value.spot, format!("{what} is no column"));
        self.collector
            .add(fault.value(format!("\"{text}\"")).hint(format!("{hint}there are {}", listed(names))));
        None
    }

    /// `{ COLUMN = VALUE or [VALUE, …] }`.
    pub fn only(&mut self, value: &Value, names: &[&str]) -> Option<Vec<(String, Vec<String>)>> {
        let table = self.collector.table("`where`", value)?;
        let mut only = Vec::new();
        for (key, value) in &table.entries {
            let column = Value { spot: key.spot, kind: Kind::Text(key.text.clone()) };
            let column = self.column("this", &column, Some(&column), names, "")?;
            let one = |reader: &mut Self, what: &str, value: &Value| match &value.kind {
                Kind::Text(text) => Some(text.clone()),
                Kind::Bool(yes) => Some(yes.to_string()),
                _ => reader.decimal(what, value).map(|number| number.to_string()),
            };
            only.push((column, self.values(&format!("`{}`", key.text), value, one)?));
        }
        Some(only)
    }
}
