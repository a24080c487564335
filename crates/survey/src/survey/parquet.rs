//! The survey as Parquet: `values.parquet`, one row a value, as `export --format long`; `samples.parquet`, one row an access of the reports that hold theirs.

use super::export::{Holds, Table, values};
use super::{Result, Row, Survey, SurveyError, io};
use crate::device::Op;
use crate::saved::Report;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows of a group: what a reader takes at a time.
const GROUP: usize = 1 << 16;

/// Writes the tables into a directory; how many rows each has.
///
/// # Errors
/// The database, a damaged file, or a file that cannot be written.
pub fn write(s: &mut Survey, rows: &[Row], with_serial: bool, dir: &Path) -> Result<[usize; 2]> {
    io(dir, std::fs::create_dir_all(dir))?;
    let table = values(s, rows, with_serial)?;
    put(&table, &dir.join("values.parquet"))?;
    let samples = samples(s, rows)?;
    put(&samples, &dir.join("samples.parquet"))?;
    Ok([table.rows.len(), samples.rows.len()])
}

fn samples(s: &mut Survey, rows: &[Row]) -> Result<Table> {
    use Holds::{Text, Whole};
    let columns = vec![
        ("id", Text),
        ("experiment", Text),
        ("cell", Whole),
        ("trial", Whole),
        ("role", Whole),
        ("op", Text),
        ("at", Whole),
        ("len", Whole),
        ("start_ns", Whole),
        ("took_ns", Whole),
    ];
    let mut out = Table { columns, rows: vec![] };
    for r in rows {
        let Ok(report) = Report::from_value(s.get(&r.id)?.original, &r.id) else { continue };
        for run in &report.runs {
            out.rows.extend(run.samples.iter().map(|x| {
                let op = if matches!(x.op, Op::Write(_)) { "write" } else { x.op.name() };
                let numbers = [x.at, x.len, x.start.0, x.took.0].map(|n| n.to_string());
                let cells =
                    [r.id.clone(), run.experiment.clone(), x.cell.to_string(), x.trial.to_string(), x.role.to_string(), op.to_string()];
                cells.into_iter().chain(numbers).collect()
            }));
        }
    }
    Ok(out)
}

fn failed(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> SurveyError + '_ {
    move |e| SurveyError::Io { path: path.display().to_string(), source: std::io::Error::other(e) }
}

/// Written beside and renamed, so that nobody reads half of it.
fn put(table: &Table, path: &Path) -> Result<()> {
    let bad = failed(path);
    let column = |(name, holds): &(&str, Holds)| {
        let (physical, logical) = match holds {
            Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Holds::Whole => (Physical::INT64, None),
            Holds::Real => (Physical::DOUBLE, None),
        };
        let one = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build();
        one.map(Arc::new)
    };
    let fields = table.columns.iter().map(column).collect::<std::result::Result<Vec<_>, _>>().map_err(&bad)?;
    let schema = Arc::new(Type::group_type_builder("nandscope").with_fields(fields).build().map_err(&bad)?);
    let part = path.with_extension("parquet.part");
    let file = io(&part, File::create(&part))?;
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).map_err(&bad)?;
    for rows in table.rows.chunks(GROUP) {
        let mut group = writer.next_row_group().map_err(&bad)?;
        for i in 0..table.columns.len() {
            one(&mut group, rows, i, table.columns[i].1).map_err(&bad)?;
        }
        group.close().map_err(&bad)?;
    }
    writer.close().map_err(&bad)?;
    io(path, std::fs::rename(&part, path))
}

/// One column of a group of rows: the values that there are, and for each row whether there is one.
fn one(
    group: &mut SerializedRowGroupWriter<'_, File>,
    rows: &[Vec<String>],
    i: usize,
    holds: Holds,
) -> std::result::Result<(), parquet::errors::ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let cells = || rows.iter().map(|r| r[i].as_str());
    macro_rules! put {
        ($kind:ty, $of:expr) => {{
            let read: Vec<Option<_>> = cells().map($of).collect();
            let there: Vec<i16> = read.iter().map(|v| i16::from(v.is_some())).collect();
            let values: Vec<_> = read.into_iter().flatten().collect();
            column.typed::<$kind>().write_batch(&values, Some(&there), None)?;
        }};
    }
    match holds {
        Holds::Text => put!(ByteArrayType, |c: &str| (!c.is_empty()).then(|| ByteArray::from(c))),
        Holds::Whole => put!(Int64Type, |c: &str| c.parse::<i64>().ok()),
        Holds::Real => put!(DoubleType, |c: &str| c.parse::<f64>().ok()),
    }
    column.close()
}
