//! Plain English as a test: the patterns of CONTRIBUTING, counted in each page and in the comments of each source.
//!
//! `xtask/src/tidy/english.tsv` lists the files that have more of them than the rule allows, with their counts. No
//! count may grow, and a file that is not listed must keep the rule.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use regex::Regex;

use super::{read, tracked};
use crate::repository::root;

const LIST: &str = "xtask/src/tidy/english.tsv";

/// Pages that others wrote, or that a chore writes from recordings and code.
const EXEMPT: [&str; 3] = ["LICENSE", "/records/", "RESULTS.md"];

/// A pattern that makes a sentence hard to read.
struct Pattern {
    name: &'static str,
    regex: &'static str,
    /// Most per 1,000 words: the worst of the codebases that were measured.
    limit: f64,
    /// True if a match within a question does not count.
    is_fine_in_questions: bool,
}

const fn pattern(name: &'static str, regex: &'static str, limit: f64) -> Pattern {
    Pattern {
        name,
        regex,
        limit,
        is_fine_in_questions: false,
    }
}

const PATTERNS: [Pattern; 9] = [
    Pattern {
        is_fine_in_questions: true,
        ..pattern("what-clause", r"(?i)\bwhat\b", 2.0)
    },
    pattern(
        "of which, whose",
        r"(?i)\b(?:whose|(?:of|by|for|in|with|from|to|over|beside|behind) (?:which|whom))\b",
        1.5,
    ),
    Pattern {
        is_fine_in_questions: true,
        ..pattern(
            "begins with What or Whether",
            r"(?:^|[.!?] )(?:What|Whether|Who|Where|How|Which)\b",
            4.0,
        )
    },
    pattern(
        "nobody, nothing, none",
        r"(?i)\b(?:nobody|nothing|none|no one|whoever|somebody|anybody)\b",
        3.5,
    ),
    pattern(
        "those of, the ones",
        r"(?i)\b(?:the ones?|that one|those (?:of|that|who)|that (?:of|which))\b",
        1.5,
    ),
    pattern(
        "so many, so long",
        r"(?i)\bso (?:many|much|long|narrow|wide|few|far|little)\b(?: that)?",
        0.5,
    ),
    pattern(
        "anew, beside, alike",
        r"(?i)\b(?:anew|alike|beside|as far as|in place of|goes on|comes to)\b",
        1.0,
    ),
    pattern(
        "is told, says",
        r"(?i)\b(?:is|are|was|were|be) (?:told|said|asked|heard|known)\b|\b(?:tells|knows)\b",
        2.0,
    ),
    pattern("semicolon", ";", 1.5),
];

/// The counts of one text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    words: usize,
    /// In the order of [`PATTERNS`].
    found: [usize; PATTERNS.len()],
}

impl Counts {
    fn of(lines: &[String], regexes: &[Regex]) -> Counts {
        let mut counts = Counts::default();
        for line in lines {
            counts.words += line.split_whitespace().count();
            let line = without_code(line);
            for ((pattern, regex), found) in PATTERNS.iter().zip(regexes).zip(&mut counts.found) {
                *found += regex
                    .find_iter(&line)
                    .filter(|it| counted(pattern, &line, it.as_str(), it.end()))
                    .count();
            }
        }
        counts
    }

    fn total(&self) -> usize {
        self.found.iter().sum()
    }

    /// True if each pattern is within its limit. A short text may have each pattern once.
    #[expect(clippy::cast_precision_loss, reason = "counts of words are small")]
    fn is_plain(&self) -> bool {
        PATTERNS.iter().zip(self.found).all(|(pattern, found)| {
            let allowed = pattern.limit * self.words as f64 / 1e3;
            found <= 1 || found as f64 <= allowed
        })
    }

    /// The patterns that were found, for an error.
    fn shown(&self) -> String {
        let found = PATTERNS
            .iter()
            .zip(self.found)
            .filter(|(_, found)| *found > 0);
        let shown: Vec<String> = found
            .map(|(pattern, found)| format!("{} {found}", pattern.name))
            .collect();
        shown.join(", ")
    }
}

/// True if a match that ends at `end` counts.
fn counted(pattern: &Pattern, line: &str, found: &str, end: usize) -> bool {
    if pattern.name == "so many, so long" {
        return !found.ends_with(" that");
    }
    let rest = line.get(end..).unwrap_or_default();
    let is_question = rest
        .find(['.', '?', '!'])
        .is_some_and(|at| rest.as_bytes()[at] == b'?');
    !(pattern.is_fine_in_questions && is_question)
}

/// `line` with every span in backticks as one letter.
fn without_code(line: &str) -> String {
    let mut parts = line.split('`');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(after) => {
                text.push('x');
                text += after;
            }
            None => {
                text.push('`');
                text += code;
            }
        }
    }
    text
}

/// The prose of a page, or the comments of a source.
fn prose(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<String> = if path.ends_with(".rs") {
        text.lines().map(comment).collect()
    } else {
        markdown(text)
    };
    lines
        .into_iter()
        .filter(|line| !line.trim().is_empty())
        .collect()
}

/// The comment of a line that is only a comment, or an empty text.
fn comment(line: &str) -> String {
    let Some(rest) = line.trim_start().strip_prefix("//") else {
        return String::new();
    };
    let rest = rest.strip_prefix(['/', '!']).unwrap_or(rest);
    rest.strip_prefix(' ').unwrap_or(rest).to_owned()
}

/// Lines of a page without code blocks, comments, tables, headings and indented blocks.
fn markdown(text: &str) -> Vec<String> {
    let hidden = Regex::new(r"(?s)```.*?```|<!--.*?-->").expect("it is valid");
    let text = hidden.replace_all(text, "");
    let is_prose = |line: &&str| !["|", "#", "    "].iter().any(|mark| line.starts_with(mark));
    text.lines().filter(is_prose).map(str::to_owned).collect()
}

/// The compiled patterns, in the order of [`PATTERNS`].
fn regexes() -> [Regex; PATTERNS.len()] {
    PATTERNS.map(|it| Regex::new(it.regex).expect("it is valid"))
}

/// The counts of every page and source.
fn all() -> BTreeMap<String, Counts> {
    let regexes = regexes();
    let files = tracked(".").into_iter().filter(|file| {
        let is_text = [".rs", ".md"].iter().any(|end| file.ends_with(end));
        is_text && !EXEMPT.iter().any(|part| file.contains(part))
    });
    files
        .map(|file| {
            let counts = Counts::of(&prose(&file, &read(&file)), &regexes);
            (file, counts)
        })
        .collect()
}

/// Reads the list: counts by file.
fn listed() -> BTreeMap<String, usize> {
    let rows = read(LIST);
    let rows = rows.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let (file, count) = line.split_once('\t').expect("a file, a tab and a count");
        (file.to_owned(), count.parse().expect("a count"))
    })
    .collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the switch that writes the list")]
fn no_file_becomes_harder_to_read() {
    let found = all();
    if std::env::var_os("UPDATE_ENGLISH").is_some() {
        let mut list =
            "# Files that break the rules of plain English, and how often. Counts may only fall.\n"
                .to_owned();
        for (file, counts) in found.iter().filter(|(_, counts)| !counts.is_plain()) {
            let _ = writeln!(list, "{file}\t{}", counts.total());
        }
        std::fs::write(root().join(LIST), list).expect("the list can be written");
    }
    let listed = listed();
    let mut worse = Vec::new();
    for (file, counts) in &found {
        match listed.get(file) {
            Some(limit) if counts.total() > *limit => worse.push(format!(
                "{file}: {} patterns, {limit} before ({})",
                counts.total(),
                counts.shown()
            )),
            None if !counts.is_plain() => worse.push(format!("{file}: {}", counts.shown())),
            _ => {}
        }
    }
    assert!(
        worse.is_empty(),
        "these files are harder to read than before; CONTRIBUTING has the rules:\n{}",
        worse.join("\n")
    );
    let gone: Vec<&String> = listed
        .keys()
        .filter(|file| !found.contains_key(*file))
        .collect();
    assert!(
        gone.is_empty(),
        "{LIST} lists files that are gone: {gone:?}; run `UPDATE_ENGLISH=1 cargo test -p xtask english`"
    );
}

#[test]
fn patterns_are_counted_as_in_the_rules() {
    let regexes = regexes();
    let found = |text: &str| Counts::of(&prose("a.md", text), &regexes).shown();
    assert_eq!(found("It shows what a client sent."), "what-clause 1");
    assert_eq!(found("What is this?"), "");
    assert_eq!(
        found("Whether it counts; or not."),
        "begins with What or Whether 1, semicolon 1"
    );
    assert_eq!(found("It is so long that it wraps, `whose` is code."), "");
    assert_eq!(found("It is so long."), "so many, so long 1");
    assert_eq!(found("```\nwhose; what\n```\n| whose |\n# What\n"), "");
    let found = |text: &str| Counts::of(&prose("a.rs", text), &regexes).shown();
    assert_eq!(
        found("let whose = 1; // whose\n    /// The one beside.\n"),
        "those of, the ones 1, anew, beside, alike 1"
    );
}
