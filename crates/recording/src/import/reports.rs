//! Division of a file into the reports that several runs appended to it.

use serde_json::Value;

use super::{Document, ImportError, Missing};

/// Marks of several reports in one kind of file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reports {
    /// The reader divides the file itself, or a JSON value is a report.
    One,
    /// Starts of lines. The first start is in each report exactly once. A report begins at the next start that
    /// occurs equally often. If there is only one start, a report begins there.
    Lines(&'static [&'static str]),
    /// A report begins with the first line of the file.
    FirstLine,
}

impl Reports {
    /// The reports in a text.
    pub(super) fn of(self, text: &str) -> Result<Vec<&str>, Missing> {
        match self {
            Self::One => Ok(vec![text]),
            Self::FirstLine => {
                let first = text.lines().next().unwrap_or_default().trim_end();
                Ok(cut(text, |line| {
                    line.trim_end() == first && !first.is_empty()
                }))
            }
            Self::Lines(starts) => {
                let begins = |line: &str, start: &str| line.trim_start().starts_with(start);
                let counts = |start: &str| text.lines().filter(|line| begins(line, start)).count();
                let Some((once, others)) = starts.split_first() else {
                    return Ok(vec![text]);
                };
                let count = counts(once);
                if count < 2 {
                    return Ok(vec![text]);
                }
                let start = others.iter().find(|start| counts(start) == count);
                let start = match (start, others.is_empty()) {
                    (Some(start), _) => start,
                    (None, true) => once,
                    (None, false) => {
                        return Err(Missing(format!(
                            "it holds {count} reports without their first lines, so they cannot be told apart. Give each its own file"
                        )));
                    }
                };
                Ok(cut(text, |line| begins(line, start)))
            }
        }
    }
}

/// Cuts a text before each line that begins a report. The text before the first belongs to the first.
fn cut(text: &str, begins: impl Fn(&str) -> bool) -> Vec<&str> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    let mut is_first = true;
    for line in text.split_inclusive('\n') {
        if begins(line) {
            if !is_first {
                parts.push(&text[from..at]);
                from = at;
            }
            is_first = false;
        }
        at += line.len();
    }
    parts.push(&text[from..]);
    parts
}

/// The JSON objects in a text that is more than one value. Other lines between them are messages of a tool.
pub(super) fn objects(text: &str, unit_us: Option<f64>) -> Vec<Document<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next_object(text, at) {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let value = values.next().transpose().map(Option::unwrap_or_default);
        let end = start + values.byte_offset();
        let is_broken = value.is_err();
        found.push(Document {
            text: &text[start..end.max(start)],
            json: value,
            unit_us,
        });
        if is_broken || end <= start {
            break;
        }
        at = end;
    }
    found
}

/// The place of the next line, or rest of a line, that begins with `{`.
fn next_object(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in text[from..].split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with('{') {
            return Some(at + line.len() - trimmed.len());
        }
        at += line.len();
    }
    None
}

/// First lines of reports for humans. A file with two kinds of them is a mixture of tools.
const STARTS: [(&str, &str); 7] = [
    ("ab", "This is ApacheBench"),
    ("bombardier", "Bombarding "),
    ("wrk", "Thread Stats"),
    ("vegeta", "Requests      [total"),
    ("h2load", "starting benchmark..."),
    ("hey, oha or ghz", "Response time histogram:"),
    ("siege", "Transactions:"),
];

/// Refuses a text with reports of two tools, because one reader would read only its own.
pub(super) fn of_one_tool(text: &str) -> Result<(), ImportError> {
    // Such reports are short, and a search in a large list of requests would take time.
    if text.len() > 1 << 20 {
        return Ok(());
    }
    let mut tools = STARTS.iter().filter(|(_, start)| {
        text.lines()
            .any(|line| line.trim_start().starts_with(start))
    });
    match (tools.next(), tools.next()) {
        (Some((one, _)), Some((other, _))) => Err(ImportError::Mixed {
            found: format!("reports of {one} and of {other}"),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_before_each_report() {
        let lines = Reports::Lines(&["sum", "start"]);
        assert_eq!(lines.of("x\nstart\nsum\n").ok().unwrap().len(), 1);
        let two = lines.of("x\nstart\nsum 1\nstart\nsum 2\n").ok().unwrap();
        assert_eq!(two, ["x\nstart\nsum 1\n", "start\nsum 2\n"]);
        let Err(Missing(why)) = lines.of("start\nsum 1\nsum 2\n") else {
            panic!("two sums below one start were taken apart");
        };
        assert!(why.contains("2 reports"), "{why}");
        let table = Reports::FirstLine.of("a,b\n1,2\na,b\n3,4").ok().unwrap();
        assert_eq!(table, ["a,b\n1,2\n", "a,b\n3,4"]);
    }

    #[test]
    fn objects_are_found_between_messages() {
        let text = "Bombarding x\n{\"a\":\n{\"b\":1}}\ndone\n  {\"c\":2} {\"d\":3}\n{\"e\"";
        let found = objects(text, None);
        let texts: Vec<&str> = found.iter().map(|one| one.text.trim()).collect();
        assert_eq!(texts[..2], ["{\"a\":\n{\"b\":1}}", "{\"c\":2}"]);
        assert!(found.last().unwrap().json.is_err());
    }
}
