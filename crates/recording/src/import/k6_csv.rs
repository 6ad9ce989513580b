//! Reader of k6's stream of points as a table, `--out csv`, with one value per line. Times are in whole
//! seconds by default.

use jiff::Timestamp;

use super::k6_points::{Point, Points};
use super::{Document, ForeignRun, Missing, Reader, Reports, samples};

const SHAPE: &str = "k6 --out csv";

pub(super) const CSV: Reader = Reader {
    shape: SHAPE,
    reports: Reports::FirstLine,
    recognizes: |document| {
        document
            .text
            .starts_with("metric_name,timestamp,metric_value")
    },
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let [group, method, name] =
        ["group", "method", "name"].map(|name| samples::column(document.text, name));
    let mut points = Points::default();
    for row in samples::rows(document.text, true, b',') {
        let (number, row) = row?;
        // Missing fields of a short row are empty. The code below rejects them if a number is required.
        let at = |place: usize| row.get(place).unwrap_or_default();
        let wrong = |what: &str, place: usize| {
            Missing(format!("row {number} has no {what}, found `{}`", at(place)))
        };
        points.add(&Point {
            metric: at(0),
            time: read_time(at(1)).ok_or_else(|| wrong("time", 1))?,
            value: at(2).parse().map_err(|_| wrong("value", 2))?,
            group: group.map_or("", at),
            method: method.map_or("", at),
            name: name.map_or("", at),
        });
    }
    let mut run = points.run(SHAPE)?;
    run.note(
        "requests/s is counted from the first answer to the last, in whole seconds unless \
         K6_CSV_TIME_FORMAT sets another format",
    );
    Ok(vec![run])
}

/// Parses seconds, smaller units by their number of digits, or RFC 3339.
fn read_time(text: &str) -> Option<Timestamp> {
    let Ok(number) = text.parse::<i64>() else {
        return text.parse().ok();
    };
    // Seconds have at most 11 digits until the year 5138, and each smaller unit has three more.
    match text.len() {
        0..=11 => Timestamp::from_second(number),
        12..=14 => Timestamp::from_millisecond(number),
        15..=17 => Timestamp::from_microsecond(number),
        _ => Timestamp::from_nanosecond(i128::from(number)),
    }
    .ok()
}
