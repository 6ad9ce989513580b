//! `cargo xtask shape`: size and habits of the sources in numbers, to compare two states of the repository.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::repository::{root, tracked};
use crate::rust_source::{self, Kind, Token, reads};

/// A function with more lines counts as long.
const FUNCTION_LINES: usize = 70;
/// A file with more lines counts as long.
const FILE_LINES: usize = 500;
/// Words that the sources should not use.
const WORDS: [&str; 4] = ["nobody", "whoever", "somebody", "anybody"];

/// The counts of one folder.
#[derive(Clone, Debug, Default)]
struct Counts {
    lines: usize,
    files: usize,
    product: Lines,
    unit_tests: Lines,
    integration_tests: Lines,
    /// Benches, examples, fuzz targets and programs that only tests start.
    beside: Lines,
    xtask: Lines,
    functions: Vec<usize>,
    /// Number of lines of the product with a plain comment.
    comments: usize,
    unwraps: usize,
    asserts: usize,
    unwrap_or_default: usize,
    unwrap_or_zero: usize,
    unwrap_or_max: usize,
    long_files: usize,
    words: usize,
}

/// Number of all lines, of lines that are not blank, and of lines with code.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    all: usize,
    filled: usize,
    code: usize,
}

/// The part of the repository that a line belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Room {
    Product,
    UnitTests,
    IntegrationTests,
    Beside,
    Xtask,
}

pub(crate) fn shape() -> anyhow::Result<()> {
    let table = table(&count(&tracked(".")?));
    #[expect(clippy::print_stdout, reason = "the table is the answer")]
    {
        print!("{table}");
    }
    Ok(())
}

/// Counts by top-level folder. Files outside of folders count for `.`.
fn count(files: &[String]) -> BTreeMap<String, Counts> {
    let mut folders: BTreeMap<String, Counts> = BTreeMap::new();
    let counted = files
        .iter()
        .filter(|file| file.ends_with(".rs") || file.ends_with(".md"));
    for file in counted {
        let Ok(text) = fs::read_to_string(root().join(file)) else {
            // A dangling symbolic link.
            continue;
        };
        let folder = file.split_once('/').map_or(".", |(folder, _)| folder);
        let counts = folders.entry(folder.to_owned()).or_default();
        counts.words += words(&text);
        if file.ends_with(".rs") {
            counts.add(room(file), &text);
        }
    }
    folders
}

fn room(file: &str) -> Room {
    let has = |folder: &str| file.split('/').any(|part| part == folder);
    if ["benches", "examples", "fuzz", "fixture"]
        .iter()
        .any(|name| has(name))
    {
        Room::Beside
    } else if has("tests") {
        Room::IntegrationTests
    } else if has("xtask") {
        Room::Xtask
    } else if file.ends_with("tests.rs") || file.ends_with("props.rs") {
        Room::UnitTests
    } else {
        Room::Product
    }
}

fn words(text: &str) -> usize {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words
        .filter(|word| WORDS.iter().any(|other| word.eq_ignore_ascii_case(other)))
        .count()
}

impl Counts {
    /// Adds the lines of a Rust source.
    fn add(&mut self, room: Room, text: &str) {
        let length = text.lines().count();
        self.files += 1;
        self.lines += length;
        self.long_files += usize::from(length > FILE_LINES);
        let tokens = rust_source::tokens(text);
        let rooms = rooms(text, room, &tokens);
        self.add_lines(text, &rooms, &tokens);
        if room == Room::Product {
            self.add_habits(&tokens, &rooms);
        }
    }

    fn add_lines(&mut self, text: &str, rooms: &[Room], tokens: &[Token<'_>]) {
        let mut has_code = vec![false; rooms.len()];
        for token in tokens.iter().filter(|token| token.is_code()) {
            has_code[token.line..=token.last_line()].fill(true);
        }
        for ((line, room), has_code) in text.lines().zip(rooms).zip(has_code) {
            let lines = match room {
                Room::Product => &mut self.product,
                Room::UnitTests => &mut self.unit_tests,
                Room::IntegrationTests => &mut self.integration_tests,
                Room::Beside => &mut self.beside,
                Room::Xtask => &mut self.xtask,
            };
            lines.all += 1;
            lines.filled += usize::from(!line.trim().is_empty());
            lines.code += usize::from(has_code);
        }
    }

    /// Counts functions, comments and calls of the product.
    fn add_habits(&mut self, tokens: &[Token<'_>], rooms: &[Room]) {
        let own: Vec<Token<'_>> = tokens
            .iter()
            .filter(|token| rooms[token.line] == Room::Product)
            .copied()
            .collect();
        let plain = own.iter().filter(|token| token.kind == Kind::Comment);
        self.comments += plain
            .map(|token| token.last_line() - token.line + 1)
            .sum::<usize>();
        let code: Vec<Token<'_>> = own.into_iter().filter(Token::is_code).collect();
        self.functions.extend(rust_source::functions(&code));
        for at in 0..code.len() {
            let is = |texts: &[&str]| reads(&code, at, texts);
            self.unwraps +=
                usize::from(is(&[".", "unwrap", "(", ")"]) || is(&[".", "expect", "("]));
            let is_macro = code.get(at + 1).is_some_and(|next| next.text == "!");
            let name = code[at].text.trim_start_matches("debug_");
            let is_assert = ["assert", "assert_eq", "assert_ne"].contains(&name);
            self.asserts += usize::from(is_macro && is_assert);
            self.unwrap_or_default += usize::from(is(&[".", "unwrap_or_default"]));
            self.unwrap_or_zero += usize::from(is(&[".", "unwrap_or", "(", "0", ")"]));
            let end = code.get(at + 6);
            self.unwrap_or_max += usize::from(
                is(&[".", "unwrap_or", "("]) && end.is_some_and(|token| token.text == "MAX"),
            );
        }
    }

    fn merged<'a>(all: impl Iterator<Item = &'a Counts>) -> Counts {
        let mut total = Counts::default();
        for one in all {
            total.lines += one.lines;
            total.files += one.files;
            for (sum, lines) in [
                (&mut total.product, one.product),
                (&mut total.unit_tests, one.unit_tests),
                (&mut total.integration_tests, one.integration_tests),
                (&mut total.beside, one.beside),
                (&mut total.xtask, one.xtask),
            ] {
                sum.all += lines.all;
                sum.filled += lines.filled;
                sum.code += lines.code;
            }
            total.functions.extend(&one.functions);
            total.comments += one.comments;
            total.unwraps += one.unwraps;
            total.asserts += one.asserts;
            total.unwrap_or_default += one.unwrap_or_default;
            total.unwrap_or_zero += one.unwrap_or_zero;
            total.unwrap_or_max += one.unwrap_or_max;
            total.long_files += one.long_files;
            total.words += one.words;
        }
        total
    }

    /// Each measure with its figure.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let mut functions = self.functions.clone();
        functions.sort_unstable();
        let quantile = |share: usize| match functions.len() {
            0 => "-".to_owned(),
            count => functions[(count - 1) * share / 100].to_string(),
        };
        let long = functions.iter().filter(|lines| **lines > FUNCTION_LINES);
        let all = |lines: Lines| lines.all.to_string();
        // A million lines are exact in a f64.
        #[expect(clippy::cast_precision_loss, reason = "line counts are small")]
        let share = |part: usize, of: usize, unit: f64| match of {
            0 => "-".to_owned(),
            of => format!("{:.1}", part as f64 * unit / of as f64),
        };
        vec![
            ("files", self.files.to_string()),
            ("lines", self.lines.to_string()),
            ("product", all(self.product)),
            ("product, not blank", self.product.filled.to_string()),
            ("product, code", self.product.code.to_string()),
            ("unit tests", all(self.unit_tests)),
            ("integration tests", all(self.integration_tests)),
            ("benches, examples, fuzz", all(self.beside)),
            ("xtask", all(self.xtask)),
            ("functions", functions.len().to_string()),
            ("function lines, median", quantile(50)),
            ("function lines, p90", quantile(90)),
            ("function lines, max", quantile(100)),
            ("functions over 70 lines", long.count().to_string()),
            ("plain comments, lines", self.comments.to_string()),
            (
                "plain comments, %",
                share(self.comments, self.product.filled, 100.0),
            ),
            (
                "unwrap + expect per 1,000",
                share(self.unwraps, self.product.filled, 1e3),
            ),
            (
                "asserts per 1,000",
                share(self.asserts, self.product.filled, 1e3),
            ),
            ("unwrap_or_default", self.unwrap_or_default.to_string()),
            ("unwrap_or(0)", self.unwrap_or_zero.to_string()),
            ("unwrap_or(MAX)", self.unwrap_or_max.to_string()),
            ("files over 500 lines", self.long_files.to_string()),
            ("nobody, whoever, ...", self.words.to_string()),
        ]
    }
}

/// The part that each line belongs to.
fn rooms(text: &str, room: Room, tokens: &[Token<'_>]) -> Vec<Room> {
    let mut rooms = vec![room; text.lines().count() + 1];
    if room == Room::Product {
        let code: Vec<Token<'_>> = tokens
            .iter()
            .filter(|token| token.is_code())
            .copied()
            .collect();
        for range in rust_source::tests(&code) {
            let last = code[range.end - 1].last_line();
            rooms[code[range.start].line..=last].fill(Room::UnitTests);
        }
    }
    rooms
}

/// One row a measure, one column a folder.
fn table(folders: &BTreeMap<String, Counts>) -> String {
    let total = Counts::merged(folders.values());
    let columns: Vec<(&str, Vec<(&str, String)>)> = folders
        .iter()
        .map(|(name, counts)| (name.as_str(), counts.rows()))
        .chain([("total", total.rows())])
        .collect();
    let mut out = format!("{:<28}", "");
    for (name, _) in &columns {
        let _ = write!(out, "{name:>10}");
    }
    out.push('\n');
    for (row, (label, _)) in columns[0].1.iter().enumerate() {
        let _ = write!(out, "{label:<28}");
        for (_, rows) in &columns {
            let _ = write!(out, "{:>10}", rows[row].1);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_counted_by_what_its_lines_are_for() {
        let text = "//! Module.\n\n// why\nfn a() {\n    b.unwrap(); // also why\n    assert!(c);\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    fn d() { e.unwrap(); }\n}\n";
        let mut counts = Counts::default();
        counts.add(Room::Product, text);
        assert_eq!(
            (
                counts.product.all,
                counts.product.filled,
                counts.product.code
            ),
            (8, 6, 4)
        );
        assert_eq!(counts.unit_tests.all, 4);
        assert_eq!((counts.unwraps, counts.asserts, counts.comments), (1, 1, 2));
        assert_eq!(counts.functions, [4]);
        assert_eq!(words("Nobody said: \"whoever\", not nobody's."), 3);
    }

    #[test]
    fn a_path_says_what_a_file_is_for() {
        for (file, expected) in [
            ("crates/load/src/worker.rs", Room::Product),
            ("crates/load/src/check/tests.rs", Room::UnitTests),
            ("crates/load/tests/engine/main.rs", Room::IntegrationTests),
            ("tests/e2e/src/lib.rs", Room::IntegrationTests),
            ("crates/load/benches/recorder.rs", Room::Beside),
            ("xtask/src/main.rs", Room::Xtask),
        ] {
            assert_eq!(room(file), expected, "{file}");
        }
    }
}
