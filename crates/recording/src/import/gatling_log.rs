//! Reader of Gatling's `simulation.log` as text. Versions since 3.11 write it in a binary form.

use super::samples::{Hit, Hits};
use super::{Document, ForeignRun, Missing, Reader, Reports};

const SHAPE: &str = "simulation.log of Gatling";

pub(super) const LOG: Reader = Reader {
    shape: SHAPE,
    reports: Reports::Lines(&["RUN\t"]),
    recognizes: |document| {
        document.text.starts_with("RUN\t") || document.text.starts_with("REQUEST\t")
    },
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let mut hits = Hits::default();
    let lines = document.text.lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| line.starts_with("REQUEST\t")) {
        let fields: Vec<&str> = line.split('\t').collect();
        // The first columns differ between versions. Name, start, end and result follow one another in all.
        let found = fields.windows(4).find_map(|part| {
            let is_success = match part[3].trim() {
                "OK" => true,
                "KO" => false,
                _ => return None,
            };
            let (start, end): (f64, f64) = (part[1].parse().ok()?, part[2].parse().ok()?);
            Some((part[0], start, end - start, is_success))
        });
        let (name, start_ms, took_ms, is_success) = found.ok_or_else(|| {
            Missing(format!(
                "line {} has no start, end and result of a request",
                index + 1
            ))
        })?;
        hits.add(&Hit {
            name,
            sent_us: Some(start_ms * 1e3),
            latency_us: took_ms * 1e3,
            is_success: Some(is_success),
            is_repeat: false,
        });
    }
    let mut run = hits.run(SHAPE, "Gatling calls them KO")?;
    run.note("Gatling keeps latency in whole milliseconds");
    Ok(vec![run])
}
