//! Figures that sentences of documents quote from recordings.
//!
//! A sentence contains a placeholder for each figure:
//!
//! ```text
//! nginx costs a request <!-- figure: nginx | with nginx | typical difference -->88 us (64 to 108)<!-- end -->
//! ```
//!
//! The placeholder names a recording in `records/` next to the document, or `FOLDER/NAME` in `labs/`. It also
//! names the variant, the figure and its form ([`analysis::quoted::Form`]). `cargo xtask figures` fills all
//! placeholders, and a test compares them with the recordings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use analysis::Summary;
use analysis::quoted::{Form, quoted};
use anyhow::{Context as _, bail};
use model::Metric;
use recording::Recording;

use crate::repository::{root, tracked};

const BEGIN: &str = "<!-- figure: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Summaries of recordings that were read.
type Read = BTreeMap<PathBuf, Summary>;

/// Fills the placeholders of all documents.
pub(crate) fn write() -> anyhow::Result<()> {
    let mut read = Read::new();
    for document in documents()? {
        let path = root().join(&document);
        let text = fs::read_to_string(&path)?;
        let filled = filled(&text, &document, &mut read)?;
        if filled != text {
            fs::write(&path, filled).with_context(|| format!("{document} cannot be written"))?;
        }
    }
    Ok(())
}

fn documents() -> anyhow::Result<Vec<String>> {
    let files = tracked(".")?.into_iter();
    Ok(files.filter(|file| file.ends_with(".md")).collect())
}

/// The text with the values from its recordings in each placeholder.
fn filled(text: &str, document: &str, read: &mut Read) -> anyhow::Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, place)) = rest.split_once(BEGIN) {
        let place = place.split_once(CLOSE);
        let place = place.and_then(|(name, after)| Some((name, after.split_once(END)?.1)));
        let Some((name, after)) = place else {
            bail!("{document}: expected `{END}` behind each `{BEGIN}…{CLOSE}`");
        };
        let figure =
            figure(name, document, read).with_context(|| format!("{document}: `{name}`"))?;
        out += &format!("{before}{BEGIN}{name}{CLOSE}{figure}{END}");
        rest = after;
    }
    Ok(out + rest)
}

/// The value from a recording, by the name of a placeholder such as
/// `nginx | with nginx | typical difference`.
fn figure(name: &str, document: &str, read: &mut Read) -> anyhow::Result<String> {
    let parts: Vec<&str> = name.split(" | ").collect();
    let [record, variant, which] = parts[..] else {
        bail!("expected RECORDING | VARIANT | FIGURE FORM");
    };
    let (metric, form) = which.split_once(' ').unwrap_or((which, "difference"));
    let metric = Metric::named(metric).with_context(|| format!("no figure `{metric}`"))?;
    let form: Form = form.parse().map_err(anyhow::Error::msg)?;
    let path = match record.split_once('/') {
        Some((folder, name)) => root().join("labs").join(folder).join("records").join(name),
        None => {
            let beside = Path::new(document).parent().unwrap_or(Path::new(""));
            root().join(beside).join("records").join(record)
        }
    };
    let path = path.with_extension("json");
    if !read.contains_key(&path) {
        let text = fs::read_to_string(&path)
            .with_context(|| format!("`{}` cannot be read", path.display()))?;
        let recording = Recording::from_json(&text)?;
        read.insert(path.clone(), Summary::of(&recording));
    }
    let words = quoted(&read[&path], variant, metric, form);
    words.with_context(|| format!("`{variant}` does not have it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_in_documents_are_those_of_their_recordings() {
        let mut read = Read::new();
        let mut stale = Vec::new();
        for document in documents().unwrap() {
            let text = fs::read_to_string(root().join(&document)).unwrap();
            let filled = filled(&text, &document, &mut read).unwrap();
            let lines = text.lines().zip(filled.lines());
            let other = lines.filter(|(is, should)| is != should);
            stale.extend(other.map(|(is, should)| format!("{document}:\n- {is}\n+ {should}")));
        }
        assert!(
            stale.is_empty(),
            "run `cargo xtask figures`:\n{}",
            stale.join("\n")
        );
    }

    /// Every interval in the sentences of results is in a placeholder, so that no interval is typed by hand.
    #[test]
    fn intervals_in_results_are_in_places() {
        let mut typed = Vec::new();
        for document in documents().unwrap() {
            if !document.ends_with("RESULTS.md") && document != "README.md" {
                continue;
            }
            let text = fs::read_to_string(root().join(&document)).unwrap();
            typed.extend(intervals_typed(&text).map(|line| format!("{document}: {line}")));
        }
        assert!(typed.is_empty(), "{}", typed.join("\n"));
    }

    /// Lines with an interval outside of placeholders, of generated tables, and of code blocks.
    fn intervals_typed(text: &str) -> impl Iterator<Item = String> + '_ {
        let (mut is_written, mut is_code) = (false, false);
        let lines = text.lines().filter(move |line| {
            if line.starts_with("<!-- written by a chore") || line.starts_with("<!-- end of") {
                is_written = line.starts_with("<!-- written");
            }
            is_code ^= line.starts_with("```");
            !is_written && !is_code && !line.starts_with('|')
        });
        lines
            .filter(|line| has_interval(&without_places(line)))
            .map(str::to_owned)
    }

    fn without_places(line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some((before, place)) = rest.split_once(BEGIN) {
            out += before;
            rest = place.split_once(END).map_or("", |(_, after)| after);
        }
        out + rest
    }

    /// True if the line contains `(4 to 8`, the beginning of every interval in a sentence.
    fn has_interval(line: &str) -> bool {
        line.split('(').skip(1).any(|inner| {
            let mut words = inner.split(' ');
            let number = |word: Option<&str>| {
                let word = word
                    .unwrap_or_default()
                    .trim_end_matches([')', ',', ';', '.']);
                !word.is_empty()
                    && word
                        .chars()
                        .all(|it| it.is_ascii_digit() || "+-.,".contains(it))
            };
            number(words.next()) && words.next() == Some("to") && number(words.next())
        })
    }

    #[test]
    fn an_interval_outside_of_a_place_is_found() {
        let place =
            "it costs <!-- figure: a | b | mean difference -->4 us (3 to 5)<!-- end --> more";
        assert_eq!(intervals_typed(place).count(), 0);
        assert_eq!(intervals_typed("it costs 4 us (3 to 5) more").count(), 1);
        assert_eq!(
            intervals_typed("a pod (one of up to 4) costs (10 to 20 times)").count(),
            1
        );
        assert_eq!(intervals_typed("| a | 4 (3 to 5) |").count(), 0);
    }
}
