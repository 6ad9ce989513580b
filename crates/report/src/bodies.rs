//! Tables and sentences about the bodies of responses, and about their statuses.

use std::cmp::Reverse;

use analysis::summary::{BodiesSummary, BodyNote, Summary, VariantSummary};
use model::{IDENTITY, Metric};
use recording::{describe, digits, float};

use crate::cell;

/// The title of the table of bodies.
pub(crate) const TITLE: &str = "Bodies of responses";
/// The title of the table of statuses.
pub(crate) const STATUS_TITLE: &str = "Latency by status (all responses)";

/// The variants with counted bodies.
pub(crate) fn counted(summary: &Summary) -> impl Iterator<Item = &VariantSummary> {
    let rows = summary.variants.iter();
    rows.filter(|row| row.bodies.bytes_mean.is_some())
}

/// The encoding and the bytes of each variant, in a sentence. `None` without counted bodies.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    let each: Vec<String> = counted(summary)
        .map(|row| {
            let bodies = &row.bodies;
            let encoded = match (bodies.encodings.is_empty(), bodies.decoded_bytes) {
                (true, _) => String::new(),
                (false, None) => format!(" in {}", encoding(bodies)),
                (false, Some(_)) => {
                    format!(
                        " in {} ({} decoded)",
                        encoding(bodies),
                        bytes(bodies.decoded_bytes)
                    )
                }
            };
            format!("`{}` {} bytes{encoded}", row.name, bytes(bodies.bytes_mean))
        })
        .collect();
    if each.is_empty() {
        return None;
    }
    let compared = summary
        .variants
        .iter()
        .filter_map(|row| row.bodies.is_equal_decoded);
    let equal = match compared.reduce(|all, one| all && one) {
        None => "",
        Some(true) => ". The decoded bodies are equal",
        Some(false) => ". The decoded bodies differ",
    };
    Some(format!("Bodies: {}{equal}.", each.join(", ")))
}

/// Returns `gzip`, `plain`, or the shares if responses differ: `gzip 60 %; plain 40 %`.
pub(crate) fn encoding(bodies: &BodiesSummary) -> String {
    let name = |coding: &str| match coding {
        IDENTITY => "plain".to_owned(),
        coding => coding.to_owned(),
    };
    let counted = bodies.responses_by_encoding.iter();
    let mut counted: Vec<(&String, &u64)> = counted.filter(|(_, count)| **count > 0).collect();
    counted.sort_by_key(|(_, count)| Reverse(**count));
    let total: u64 = counted.iter().map(|(_, count)| **count).sum();
    match counted.as_slice() {
        [] if bodies.encodings.is_empty() => name(IDENTITY),
        [] => bodies.encodings.join("; "),
        [(only, _)] => name(only),
        several => {
            let shares = several.iter().map(|(coding, count)| {
                let share = digits::percent(float(**count) / float(total));
                format!("{} {share}", name(coding))
            });
            shares.collect::<Vec<_>>().join("; ")
        }
    }
}

/// A mean number of bytes: `1,234`, or a dash.
pub(crate) fn bytes(mean: Option<f64>) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole bytes, never negative"
    )]
    let whole = |bytes: f64| digits::count(bytes.round().max(0.0) as u64);
    mean.map_or_else(|| digits::NOTHING.to_owned(), whole)
}

/// The kinds of checks on encoded bodies under load, in words.
pub(crate) fn checks(bodies: &BodiesSummary) -> String {
    let Some(seen) = &bodies.checked else {
        return String::new();
    };
    let parts = [
        (seen.same_bytes, "by equal bytes"),
        (seen.checksum, "by the checksum of gzip"),
        (seen.decoded, "decoded at once"),
        (seen.differing, "with different bytes"),
    ];
    let mut words: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{} {how}", digits::count(count)))
        .collect();
    if seen.checksum + seen.differing > 0 {
        let sampled = digits::count(seen.sampled);
        words.push(format!("{sampled} of these decoded after the load"));
    }
    words.join(", ")
}

/// The sentence if bodies are not all plain and equally long. `None` otherwise.
pub(crate) fn sentence_if_telling(summary: &Summary) -> Option<String> {
    let first = counted(summary).next()?.bodies.bytes_mean?;
    let is_other = |row: &VariantSummary| {
        let bytes = row.bodies.bytes_mean.unwrap_or(first);
        !row.bodies.encodings.is_empty() || (bytes - first).abs() > first * 0.01
    };
    let is_telling = counted(summary).any(is_other);
    is_telling.then(|| sentence(summary)).flatten()
}

/// Findings about bodies that a reader must know. A finding about several variants is one note.
pub(crate) fn notes(summary: &Summary) -> Vec<String> {
    let mut findings: Vec<(&BodyNote, Vec<String>)> = Vec::new();
    for row in &summary.variants {
        for note in &row.bodies.notes {
            let name = format!("`{}`", row.name);
            match findings.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name),
                None => findings.push((note, vec![name])),
            }
        }
    }
    let sentence = |(note, names): (&BodyNote, Vec<String>)| match names.as_slice() {
        [name] => note.sentence(name),
        all if all.len() == summary.variants.len() => note.sentence("Every variant"),
        several => note.sentence(&format!("Each of {}", several.join(", "))),
    };
    findings.into_iter().map(sentence).collect()
}

/// The statuses of one variant, in words: `200: 90 % (50 % 1.2 ms), 429: 10 % (50 % 300 us)`.
pub(crate) fn statuses(row: &VariantSummary) -> Option<String> {
    let times = row.unit(Metric::Mean);
    let all: u64 = row.by_status.values().map(|seen| seen.responses).sum();
    let each: Vec<String> = row
        .by_status
        .iter()
        .map(|(status, seen)| {
            format!(
                "{status}: {}, {} (50 % {}, 99 % {})",
                describe::plural(seen.responses, "response"),
                digits::percent(float(seen.responses) / float(all.max(1))),
                cell::latency(Some(seen.latency_us_p50), times),
                cell::latency(Some(seen.latency_us_p99), times),
            )
        })
        .collect();
    (!each.is_empty()).then(|| each.join("; "))
}

/// A sentence for each variant with several right statuses.
pub(crate) fn status_sentences(summary: &Summary) -> Vec<String> {
    let rows = summary.variants.iter();
    rows.filter_map(|row| Some(format!("`{}` {}", row.name, statuses(row)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_finding_about_several_variants_is_one_note() {
        let sample = SampleRun::closed().variant("a", 700.0).variant("b", 800.0);
        let mut summary = Summary::of(&sample.variant("c", 900.0).build());
        let mut notes_of = |names: &[&str]| {
            for row in &mut summary.variants {
                let is_named = names.contains(&row.name.as_str());
                let coding = "gzip".to_owned();
                let note = is_named.then_some(BodyNote::CompressesIfAsked { coding });
                row.bodies.notes = note.into_iter().collect();
            }
            let notes = notes(&summary);
            assert_eq!(notes.len(), 1);
            let subject = notes[0].split_once(" can compress").unwrap().0;
            subject.to_owned()
        };
        assert_eq!(notes_of(&["b"]), "`b`");
        assert_eq!(notes_of(&["a", "c"]), "Each of `a`, `c`");
        assert_eq!(notes_of(&["a", "b", "c"]), "Every variant");
    }
}
