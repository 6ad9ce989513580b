//! Values that differ from request to request: rows of a file, and numbers from ranges.

use yaml_with_places::{At, Finding};

use crate::formats::{Format, Misspelling, Name, Written};
use crate::include::Reading;
use crate::table::Table;
use crate::wire::{DataEntry, DataFile, RowOrderFile};

/// Values for `{{…}}` in requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Columns and rows; empty without a file.
    pub table: Table,
    /// Numbers drawn once for each request, or once for each pass through a scenario.
    pub ranges: Vec<DataRange>,
    /// Whether rows are drawn at random. Otherwise they are taken one after the other.
    pub is_random: bool,
}

/// Whole numbers to draw from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRange {
    /// What places call it; no column has this name.
    pub name: String,
    /// The smallest.
    pub from: u64,
    /// The largest; not less than the smallest.
    pub to: u64,
}

impl Data {
    /// The names of all values.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let ranges = self.ranges.iter().map(|range| range.name.as_str());
        self.table.columns.iter().map(String::as_str).chain(ranges)
    }
}

/// A range of whole numbers, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    from: u64,
    to: u64,
}

impl Format for Numbers {
    const NAME: &'static str = "range";
    const EXAMPLE: Option<&'static str> = Some("1..1000");

    fn read(text: &str) -> Result<Self, Misspelling> {
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let ends = text.split_once("..");
        let ends = ends.and_then(|(from, to)| number(from).zip(number(to)));
        match ends {
            Some((from, to)) if from <= to && to - from < u64::MAX => Ok(Numbers { from, to }),
            Some(_) => Err(Misspelling::new(
                format!("`{text}` is not a range: it ends before it begins"),
                "write the smaller number first: `1..1000`",
            )),
            None => Err(Misspelling::new(
                format!("`{text}` is not a range"),
                "write two whole numbers, which both belong to it: `1..1000`",
            )),
        }
    }
}

/// The data of a load, as far as they can be read.
pub(crate) fn check(entry: &At<DataEntry>, reading: &mut Reading<'_>) -> Data {
    let whole;
    let file: &DataFile = match &entry.value {
        DataEntry::File(path) => {
            whole = DataFile {
                file: Some(At {
                    place: entry.place,
                    value: path.clone(),
                }),
                ..DataFile::default()
            };
            &whole
        }
        DataEntry::Whole(file) => file,
    };
    let mut data = Data {
        is_random: matches!(&file.order, Some(order) if order.value == RowOrderFile::Random),
        ..Data::default()
    };
    if let Some(path) = &file.file {
        data.table = table(path, reading);
    } else if let Some(order) = &file.order {
        reading.findings.add(
            Finding::new(order.place, "`order` without `file`")
                .help("it is the order of the rows of a file"),
        );
    }
    for (At { place, value }, Written(Numbers { from, to })) in &file.ranges.0 {
        let Name(name) = value;
        if data.names().any(|known| known == name) {
            reading.findings.add(
                Finding::new(*place, format!("`{name}` is a column of the file already"))
                    .help("give the range a name of its own"),
            );
        }
        data.ranges.push(DataRange {
            name: name.clone(),
            from: *from,
            to: *to,
        });
    }
    data
}

fn table(path: &At<String>, reading: &mut Reading<'_>) -> Table {
    let found = reading.resolve(&path.value, path.place);
    let wrong = match reading.files.read(&found) {
        Ok(bytes) => match Table::read(&bytes) {
            Ok(table) => return table,
            Err(why) => Finding::new(path.place, format!("`{}`: {why}", found.display()))
                .help("rows are CSV below a header row, or one JSON object a line"),
        },
        Err(why) => Finding::new(
            path.place,
            format!("cannot read `{}`: {why}", found.display()),
        )
        .help("paths are relative to the file they are written in"),
    };
    reading.findings.add(wrong);
    // What it would have had is not known, so places are not looked up in vain.
    reading.has_gaps = true;
    Table::default()
}
