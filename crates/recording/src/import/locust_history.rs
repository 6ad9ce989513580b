//! Reader of Locust's `stats_history.csv`. Its rows are totals since the start, and percentiles of the last
//! seconds.

use model::Metric;

use super::samples::{column, rows};
use super::{Document, ForeignRun, Missing, Reader, Reports, whole};

const SHAPE: &str = "stats_history.csv of Locust";

pub(super) const HISTORY: Reader = Reader {
    shape: SHAPE,
    reports: Reports::FirstLine,
    recognizes: |document| {
        let header = document.text.lines().next().unwrap_or_default();
        header.contains("Timestamp") && header.contains("Total Request Count")
    },
    read,
};

/// The last row of a name, and the time of its first row.
struct Last {
    name: String,
    row: csv::StringRecord,
    first_s: f64,
}

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let place = |name: &str| {
        column(document.text, name).ok_or_else(|| Missing(format!("it has no column `{name}`")))
    };
    let names = [place("Type")?, place("Name")?];
    let (time, count) = (place("Timestamp")?, place("Total Request Count")?);
    let number = |row: &csv::StringRecord, place: usize| row.get(place)?.parse::<f64>().ok();
    let mut last: Vec<Last> = Vec::new();
    for row in rows(document.text, true, b',') {
        let (line, row) = row?;
        let name = names
            .map(|place| row.get(place).unwrap_or_default())
            .join(" ");
        let name = name.trim().to_owned();
        let (Some(now), Some(total)) = (number(&row, time), number(&row, count)) else {
            return Err(Missing(format!(
                "row {line} has no time and no count of requests"
            )));
        };
        match last.iter_mut().find(|known| known.name == name) {
            Some(known) if number(&known.row, count).is_some_and(|before| before > total) => {
                return Err(Missing(format!(
                    "the count of requests falls in row {line}, so the file holds two runs. Give each run its own file"
                )));
            }
            Some(known) => known.row = row,
            None => last.push(Last {
                name,
                row,
                first_s: now,
            }),
        }
    }
    let mut total = None;
    let mut named = Vec::new();
    for last in last {
        let mut run = ForeignRun::new(SHAPE).closed();
        let at = |name: &str| number(&last.row, column(document.text, name)?);
        run.put_all(
            1e3,
            [
                (Metric::Min, at("Total Min Response Time")),
                (Metric::Mean, at("Total Average Response Time")),
                (Metric::P50, at("Total Median Response Time")),
                (Metric::Max, at("Total Max Response Time")),
            ],
        );
        if let (Some(all), Some(failed)) = (at("Total Request Count"), at("Total Failure Count")) {
            run.count(
                whole(all - failed),
                whole(failed),
                "Locust calls them failures",
            );
        }
        run.rate_over(at("Timestamp").map(|end| end - last.first_s));
        if last.name == "Aggregated" || last.name == "Total" {
            total = Some(run);
        } else {
            named.push(run.named(last.name));
        }
    }
    let mut run = total.ok_or_else(|| Missing("it has no row `Aggregated`".to_owned()))?;
    run.name_several(named);
    run.note(
        "its percentiles are of the last seconds of the run, so they are left out. stats.csv has those of the whole run",
    );
    Ok(vec![run])
}
