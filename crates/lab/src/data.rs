//! Values that differ from request to request: rows of a file, and numbers from ranges.

use model::{Data, Range, RowOrder};
use yaml_with_places::{At, Finding};

use crate::formats::{Name, Written};
use crate::quantities::Numbers;
use crate::reading::Reading;
use crate::table::Table;
use crate::wire::{DataEntry, DataFile, RowOrderFile};

/// Iterates over the names of all values.
pub(crate) fn names(data: &Data) -> impl Iterator<Item = &str> {
    let ranges = data.ranges.iter().map(|range| range.name.as_str());
    data.columns.iter().map(String::as_str).chain(ranges)
}

/// Returns the readable parts of the data of a load.
pub(crate) fn check(entry: &At<DataEntry>, reading: &mut Reading<'_>) -> Data {
    let whole;
    let file: &DataFile = match &entry.value {
        DataEntry::Text(path) => {
            whole = DataFile {
                file: Some(At {
                    place: entry.place,
                    value: path.clone(),
                }),
                ..DataFile::default()
            };
            &whole
        }
        DataEntry::Mapping(file) => file,
    };
    let mut data = Data {
        order: match &file.order {
            Some(order) if order.value == RowOrderFile::Random => RowOrder::Random,
            _ => RowOrder::Rotation,
        },
        ..Data::default()
    };
    if let Some(path) = &file.file {
        let table = table(path, reading);
        (data.columns, data.rows) = (table.columns, table.rows);
    } else if let Some(order) = &file.order {
        reading.findings.add(
            Finding::new(order.place, "`order` without `file`")
                .help("`order` is the order of the rows of a file. Add `file`, or remove `order`"),
        );
    }
    // After the file, because its columns are needed to find duplicate names.
    for (At { place, value }, Written(Numbers { from, to })) in &file.ranges.0 {
        let Name(name) = value;
        if names(&data).any(|known| known == name) {
            reading.findings.add(
                Finding::new(*place, format!("the file already has a column `{name}`"))
                    .help("give the range another name"),
            );
        }
        data.ranges.push(Range {
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
                .help("write CSV rows below a header row, or one JSON object per line"),
        },
        Err(why) => Finding::new(
            path.place,
            format!("cannot read `{}`: {why}", found.display()),
        )
        .help("paths are relative to the file that contains them"),
    };
    reading.findings.add(wrong);
    // The columns of the data are unknown, so names are not reported as undeclared.
    reading.has_gaps = true;
    Table::default()
}
