//! Rows of results: their columns, and files of them.
//!
//! | column | |
//! |---|---|
//! | `point`, `set`, `seed` | place in the grid, number of the set there, its seed |
//! | `tasks` | in the set |
//! | `test` | name of the analysis or simulation |
//! | `schedulable` | all deadlines are shown to be met; in a simulation: were met |
//! | `ratio` | the largest response over deadline, if it was asked for and is bounded |
//! | `jobs`, `misses` | of a simulation |
//! | `method`, `cpus`, `utilisation`, … | of the point |
//! | names of parameters | of the point |

use crate::study::{Parameter, Study};
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::sync::Arc;

/// What was found of a set by one test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Index into the study's points.
    pub point: u32,
    /// From 0, at each point.
    pub set: u32,
    /// Of the set: `tierce gen --seed` draws it.
    pub seed: u64,
    /// In the set.
    pub tasks: u32,
    /// Index into the study's tests.
    pub test: u32,
    /// See the table above.
    pub schedulable: bool,
    /// See the table above.
    pub ratio: Option<f64>,
    /// Of a simulation.
    pub jobs: Option<u64>,
    /// Of a simulation.
    pub misses: Option<u64>,
}

impl Row {
    /// Number of the set, over all points.
    pub fn job(&self, study: &Study) -> u64 {
        u64::from(self.point) * u64::from(study.sets) + u64::from(self.set)
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A whole number.
    Whole(u64),
    /// Any number.
    Real(f64),
    /// A text.
    Text(String),
    /// True or false.
    Bool(bool),
    /// There is none.
    Missing,
}

/// The type of a column, as the schema has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Whole numbers, below 2^63.
    Whole,
    /// Whole numbers of 64 bits.
    Seed,
    /// Any numbers.
    Real,
    /// Texts.
    Text,
    /// True or false.
    Bool,
}

const RESULTS: [(&str, Type, bool); 9] = [
    ("point", Type::Whole, true),
    ("set", Type::Whole, true),
    ("seed", Type::Seed, true),
    ("tasks", Type::Whole, true),
    ("test", Type::Text, true),
    ("schedulable", Type::Bool, true),
    ("ratio", Type::Real, false),
    ("jobs", Type::Whole, false),
    ("misses", Type::Whole, false),
];

const DRAWN: [(&str, Type, bool); 8] = [
    ("method", Type::Text, true),
    ("cpus", Type::Whole, true),
    ("utilisation", Type::Real, true),
    ("utilisation_most", Type::Real, true),
    ("share_least", Type::Real, true),
    ("share_most", Type::Real, true),
    ("period_shortest_ns", Type::Whole, true),
    ("period_longest_ns", Type::Whole, true),
];

/// Names of columns of a study with and without sets, for names that parameters cannot have.
pub fn reserved() -> impl Iterator<Item = &'static str> {
    RESULTS.iter().chain(&DRAWN).map(|(name, ..)| *name)
}

/// Names, types, and whether there is always a value: of all columns, in their order.
pub fn types(study: &Study) -> Vec<(&str, Type, bool)> {
    let has_sets = study.points.iter().any(|point| point.drawn.is_some());
    let drawn = DRAWN.iter().filter(|_| has_sets);
    let number =
        |index| study.points.iter().all(|point| matches!(point.parameters[index], Parameter::Number(_)));
    let mut columns: Vec<_> = RESULTS.iter().chain(drawn).copied().collect();
    for (index, name) in study.parameters.iter().enumerate() {
        columns.push((name, if number(index) { Type::Real } else { Type::Text }, true));
    }
    columns
}

/// Names of the columns, in their order.
pub fn columns(study: &Study) -> Vec<&str> {
    types(study).into_iter().map(|(name, ..)| name).collect()
}

/// Whether the values of a column are numbers.
pub fn is_number(study: &Study, column: &str) -> bool {
    let kind = types(study).into_iter().find(|(name, ..)| *name == column).map(|(_, kind, _)| kind);
    matches!(kind, Some(Type::Whole | Type::Seed | Type::Real))
}

/// The value of a row in the column of that name.
pub fn cell(study: &Study, row: &Row, column: &str) -> Cell {
    let point = &study.points[row.point as usize];
    let drawn =
        |value: &dyn Fn(&crate::study::Drawn) -> Cell| point.drawn.as_ref().map_or(Cell::Missing, value);
    let whole = |value: u32| Cell::Whole(value.into());
    match column {
        "point" => whole(row.point),
        "set" => whole(row.set),
        "seed" => Cell::Whole(row.seed),
        "tasks" => whole(row.tasks),
        "test" => Cell::Text(study.tests[row.test as usize].name.clone()),
        "schedulable" => Cell::Bool(row.schedulable),
        "ratio" => row.ratio.map_or(Cell::Missing, Cell::Real),
        "jobs" => row.jobs.map_or(Cell::Missing, Cell::Whole),
        "misses" => row.misses.map_or(Cell::Missing, Cell::Whole),
        "method" => drawn(&|drawn| Cell::Text(drawn.method.name().into())),
        "cpus" => drawn(&|drawn| whole(drawn.cpus)),
        "utilisation" => drawn(&|drawn| Cell::Real(drawn.utilisation.0.to_f64())),
        "utilisation_most" => drawn(&|drawn| Cell::Real(drawn.utilisation.1.to_f64())),
        "share_least" => drawn(&|drawn| Cell::Real(drawn.shares.0.to_f64())),
        "share_most" => drawn(&|drawn| Cell::Real(drawn.shares.1.to_f64())),
        "period_shortest_ns" => drawn(&|drawn| Cell::Whole(drawn.periods_ns.0)),
        "period_longest_ns" => drawn(&|drawn| Cell::Whole(drawn.periods_ns.1)),
        name => {
            let at = study.parameters.iter().position(|parameter| parameter == name);
            at.map_or(Cell::Missing, |at| match &point.parameters[at] {
                Parameter::Number(number) => Cell::Real(number.to_f64()),
                Parameter::Text(text) => Cell::Text(text.clone()),
            })
        }
    }
}

/// A row as an object of JSON.
pub fn to_json(study: &Study, row: &Row) -> serde_json::Value {
    let value = |name: &str| match cell(study, row, name) {
        Cell::Whole(number) => number.into(),
        Cell::Real(number) => number.into(),
        Cell::Text(text) => text.into(),
        Cell::Bool(yes) => yes.into(),
        Cell::Missing => serde_json::Value::Null,
    };
    columns(study).into_iter().map(|name| (name.to_string(), value(name))).collect()
}

/// Key of a file's metadata.
pub const STUDY: &str = "tierce.study";

/// A file of rows. The same rows give the same bytes.
pub fn encode(study: &Study, identity: &str, rows: &[Row]) -> Result<Vec<u8>> {
    let types = types(study);
    let field = |(name, kind, always): &(&str, Type, bool)| {
        let kind = match kind {
            Type::Whole => ("int64", ""),
            Type::Seed => ("int64", " (INTEGER(64,false))"),
            Type::Real => ("double", ""),
            Type::Text => ("binary", " (STRING)"),
            Type::Bool => ("boolean", ""),
        };
        format!("{} {} {name}{};", if *always { "required" } else { "optional" }, kind.0, kind.1)
    };
    let schema = format!("message rows {{ {} }}", types.iter().map(field).collect::<String>());
    let note = |key: &str, value: String| KeyValue::new(key.to_string(), value);
    let version = env!("CARGO_PKG_VERSION");
    let properties = WriterProperties::builder()
        .set_created_by(format!("tierce-sweep {version}"))
        .set_compression(Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled(ColumnPath::from("seed"), false) // all differ
        .set_key_value_metadata(Some(vec![
            note(STUDY, identity.into()),
            note("tierce.seed", study.seed.to_string()),
            note("tierce.version", version.into()),
        ]));
    let schema = Arc::new(parse_message_type(&schema)?);
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties.build()))?;
    let mut group = file.next_row_group()?;
    for (name, _, always) in types {
        let cells: Vec<_> = rows.iter().map(|row| cell(study, row, name)).collect();
        let Some(mut column) = group.next_column()? else { break };
        write(column.untyped(), &cells, always)?;
        column.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn write(column: &mut ColumnWriter, cells: &[Cell], always: bool) -> Result<()> {
    let defined: Vec<i16> = cells.iter().map(|cell| i16::from(*cell != Cell::Missing)).collect();
    let defined = (!always).then_some(&defined[..]);
    let whole = |cell: &Cell| if let Cell::Whole(number) = cell { Some(*number as i64) } else { None };
    let real = |cell: &Cell| if let Cell::Real(number) = cell { Some(*number) } else { None };
    let bool = |cell: &Cell| if let Cell::Bool(yes) = cell { Some(*yes) } else { None };
    match column {
        ColumnWriter::Int64ColumnWriter(column) => {
            column.write_batch(&cells.iter().filter_map(whole).collect::<Vec<_>>(), defined, None)?
        }
        ColumnWriter::DoubleColumnWriter(column) => {
            column.write_batch(&cells.iter().filter_map(real).collect::<Vec<_>>(), defined, None)?
        }
        ColumnWriter::BoolColumnWriter(column) => {
            column.write_batch(&cells.iter().filter_map(bool).collect::<Vec<_>>(), defined, None)?
        }
        ColumnWriter::ByteArrayColumnWriter(column) => {
            let text = |cell: &Cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                Cell::Real(number) => Some(ByteArray::from(number.to_string().as_str())),
                _ => None,
            };
            column.write_batch(&cells.iter().filter_map(text).collect::<Vec<_>>(), defined, None)?
        }
        _ => 0,
    };
    Ok(())
}

/// Whose study the rows of a file are, and how many there are.
pub fn origin(file: impl ChunkReader + 'static) -> Result<(String, u64)> {
    let reader = SerializedFileReader::new(file)?;
    let metadata = reader.metadata().file_metadata();
    let notes = metadata.key_value_metadata().into_iter().flatten();
    let study = notes.filter(|note| note.key == STUDY).find_map(|note| note.value.clone());
    Ok((study.unwrap_or_default(), metadata.num_rows() as u64))
}

/// The rows of a file of that study.
pub fn decode(study: &Study, file: impl ChunkReader + 'static) -> Result<Vec<Row>> {
    let reader = SerializedFileReader::new(file)?;
    let mut rows = Vec::new();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        let count = group.metadata().num_rows() as usize;
        let whole = |at| read::<Int64Type>(group.get_column_reader(at)?, count);
        let (points, sets, seeds, tasks) = (whole(0)?, whole(1)?, whole(2)?, whole(3)?);
        let names = read::<ByteArrayType>(group.get_column_reader(4)?, count)?;
        let schedulable = read::<BoolType>(group.get_column_reader(5)?, count)?;
        let ratios = read::<DoubleType>(group.get_column_reader(6)?, count)?;
        let (jobs, misses) = (whole(7)?, whole(8)?);
        for at in 0..count {
            let lost = || ParquetError::General("a row lacks a value".into());
            let number = |column: &[Option<i64>]| column[at].map(|number| number as u64);
            let small = |column: &[Option<i64>]| number(column).and_then(|number| u32::try_from(number).ok());
            let name = names[at].as_ref().map(ByteArray::data);
            let test = study.tests.iter().position(|test| Some(test.name.as_bytes()) == name);
            let point = small(&points).filter(|point| (*point as usize) < study.points.len());
            rows.push(Row {
                point: point.ok_or_else(lost)?,
                set: small(&sets).ok_or_else(lost)?,
                seed: number(&seeds).ok_or_else(lost)?,
                tasks: small(&tasks).ok_or_else(lost)?,
                test: test.ok_or_else(lost)? as u32,
                schedulable: schedulable[at].ok_or_else(lost)?,
                ratio: ratios[at],
                jobs: number(&jobs),
                misses: number(&misses),
            });
        }
    }
    Ok(rows)
}

/// All values of a column.
fn read<T: DataType>(
    reader: parquet::column::reader::ColumnReader,
    count: usize,
) -> Result<Vec<Option<T::T>>> {
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut values, mut defined) = (Vec::new(), Vec::new());
    let (records, _, levels) = reader.read_records(count, Some(&mut defined), None, &mut values)?;
    if records != count {
        return Err(ParquetError::General("a column is too short".into()));
    }
    let mut values = values.into_iter();
    // Without levels (a required column) there is a value for each.
    defined.resize(levels.max(count), 1);
    Ok(defined.into_iter().map(|level| if level == 1 { values.next() } else { None }).collect())
}
