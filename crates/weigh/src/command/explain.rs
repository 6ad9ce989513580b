//! `weigh explain`: the meaning of a key, a check, a figure, a word or an exit code, from the pages of
//! reference.
//!
//! The pages have a table for each group of names. One source serves the book and this command.

use std::fmt::Write as _;

use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use report::wrapped;
use yaml_with_places::did_you_mean;

/// Explain a key of a lab file, a check, a figure, a word of a report or an exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A key such as `rate` or `load.rate`, a check such as `lateness`, a figure such as `typical`, a word such
    /// as `overhead`, or an exit code.
    #[arg(value_name = "NAME", required = true, num_args = 1..)]
    name: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  weigh explain typical
  weigh explain load.rate
  weigh explain generator pauses
  weigh explain exit code 7";

/// A page of reference.
struct Page {
    /// The word for a name of this page.
    kind: &'static str,
    /// The page of the book.
    page: &'static str,
    text: &'static str,
}

const PAGES: [Page; 5] = [
    Page {
        kind: "key",
        page: "labs",
        text: include_str!("../../../../docs/labs.md"),
    },
    Page {
        kind: "check",
        page: "checks",
        text: include_str!("../../../../docs/checks.md"),
    },
    Page {
        kind: "figure",
        page: "figures",
        text: include_str!("../../../../docs/figures.md"),
    },
    Page {
        kind: "word",
        page: "words",
        text: include_str!("../../../../docs/words.md"),
    },
    Page {
        kind: "exit code",
        page: "exit-codes",
        text: include_str!("../../../../docs/reference/exit-codes.md"),
    },
];

/// One row of a table.
struct Entry {
    page: &'static Page,
    /// The key of the mapping that contains this key. Empty for a key of the lab, a check or a figure.
    group: String,
    name: String,
    /// Other names with the same meaning.
    others: Vec<String>,
    /// The headings of the other columns with their texts.
    facts: Vec<Fact>,
}

struct Fact {
    heading: String,
    text: String,
}

/// Prints the meanings of a name.
///
/// # Errors
///
/// Fails if no page has this name.
pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let name = args.name.join(" ");
    let entries = entries();
    let found: Vec<&Entry> = entries.iter().filter(|it| it.is_called(&name)).collect();
    if found.is_empty() {
        return Err(Failure::bad_input(unknown(&name, &entries)));
    }
    let width = console.terminal().width;
    let texts: Vec<String> = found.iter().map(|entry| entry.text(width)).collect();
    console.answer(&texts.join("\n"));
    Ok(Exit::Done)
}

fn unknown(name: &str, entries: &[Entry]) -> String {
    let names = entries.iter().map(Entry::bare);
    let hint = did_you_mean(name, names);
    let hint = hint.map(|hint| hint.replacen("did", " Did", 1));
    format!(
        "expected a key of a lab file, a check, a figure, a word or an exit code, found `{name}`.{} \
         `weigh book labs`, `weigh book checks`, `weigh book figures` and `weigh book words` list them",
        hint.unwrap_or_default()
    )
}

/// All rows of tables with names in the first column.
fn entries() -> Vec<Entry> {
    PAGES.iter().flat_map(of_page).collect()
}

fn of_page(page: &'static Page) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut group = String::new();
    let mut headings: Option<Vec<String>> = None;
    for line in page.text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            // A heading such as `load.capacity` is the group of its keys.
            group = match heading.starts_with('`') {
                true => plain(heading),
                false => String::new(),
            };
        }
        if !line.starts_with('|') {
            headings = None;
            continue;
        }
        let cells = cells(line);
        let Some(headings) = &headings else {
            headings = Some(cells);
            continue;
        };
        let first = headings[0].to_lowercase();
        if !["key", "check", "name", "word", "code"].contains(&first.as_str())
            || cells[0].starts_with("---")
        {
            continue;
        }
        entries.push(Entry::new(page, &group, headings, &cells));
    }
    entries
}

impl Entry {
    fn new(page: &'static Page, group: &str, headings: &[String], cells: &[String]) -> Entry {
        let facts = headings.iter().zip(cells).skip(1);
        let facts: Vec<Fact> = facts
            .filter(|(_, text)| !text.is_empty())
            .map(|(heading, text)| Fact {
                heading: heading.to_lowercase(),
                text: text.clone(),
            })
            .collect();
        let spelled = |heading: &str| {
            let fact = facts.iter().find(|fact| fact.heading == heading);
            let texts = fact.into_iter().flat_map(|fact| fact.text.split(", "));
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut others = spelled("other spellings");
        others.extend(spelled("key in json and csv"));
        if page.kind == "exit code" {
            let code = &cells[0];
            others.extend(["exit code", "exit", "code"].map(|word| format!("{word} {code}")));
        }
        Entry {
            page,
            group: group.to_owned(),
            name: cells[0].clone(),
            others,
            facts,
        }
    }

    /// The name without the conditions of a check, which stand in brackets.
    fn bare(&self) -> &str {
        self.name.split(" (").next().unwrap_or(&self.name)
    }

    /// True if a person can mean this entry by `name`.
    fn is_called(&self, name: &str) -> bool {
        let path = self.path();
        let names = self.others.iter().map(String::as_str);
        let mut names = names.chain([self.bare(), &path]);
        names.any(|own| folded(own) == folded(name))
    }

    /// The name with its group, such as `load.rate`.
    fn path(&self) -> String {
        match self.group.as_str() {
            "" => self.name.clone(),
            group => format!("{group}.{}", self.name),
        }
    }

    fn text(&self, width: usize) -> String {
        let mut text = match self.page.kind {
            "exit code" => format!("exit code {}\n", self.name),
            kind => format!("{}, a {kind}\n", self.path()),
        };
        let (meaning, facts): (Vec<&Fact>, Vec<&Fact>) = self
            .facts
            .iter()
            .partition(|fact| fact.heading == "meaning");
        for fact in meaning {
            text += &wrapped("  ", &fact.text, width);
        }
        for fact in facts {
            text += &wrapped("  ", &format!("{}: {}", fact.heading, fact.text), width);
        }
        let _ = writeln!(text, "  more: weigh book {}", self.page.page);
        text
    }
}

/// A name as people type it in several ways: `side-by-side`, `Side by side`, `` `order` ``.
fn folded(name: &str) -> String {
    let name = name.trim().trim_matches('`').trim_start_matches("--");
    name.to_lowercase().replace(['-', '_'], " ")
}

/// The cells of a row of a table, without marks of Markdown. `\|` is a bar within a cell.
fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|').trim_end_matches('|');
    let joined = inner.replace("\\|", "\u{0}");
    let cells = joined.split('|');
    cells
        .map(|cell| plain(cell.trim()).replace('\u{0}', "|"))
        .collect()
}

/// A text without marks of code and with the words of its links.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let link = rest[start + 1..].split_once("](");
        let words = link.and_then(|(words, after)| Some((words, after.split_once(')')?.1)));
        out += &rest[..start];
        match words {
            Some((words, after)) => {
                out += words;
                rest = after;
            }
            // A list such as `[200, 429]` is no link.
            None => {
                out.push('[');
                rest = &rest[start + 1..];
            }
        }
    }
    (out + rest).replace('`', "").replace("<br>", " ")
}

#[cfg(test)]
mod tests {
    use model::Metric;

    use super::*;

    fn explained(name: &str) -> String {
        let entries = entries();
        let found = entries.iter().filter(|entry| entry.is_called(name));
        found.map(|entry| entry.text(80)).collect()
    }

    #[test]
    fn a_key_is_explained_with_its_group_and_its_values() {
        let text = explained("rate");
        for words in [
            "load.rate, a key",
            "load.phases.rate, a key",
            "value: a rate: 100/s",
            "weigh book labs",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
        let text = explained("load.rate");
        assert!(text.starts_with("load.rate, a key\n"), "{text}");
        assert!(!text.contains("load.phases"), "{text}");
        assert!(!text.contains('`') && !text.contains("]("), "{text}");
        assert!(explained("rounds").contains("default: 10"));
        // A key with several paragraphs does not hide the keys after it.
        for key in ["requests", "sweep", "timeout", "tls"] {
            assert!(explained(&format!("load.{key}")).contains("a key"), "{key}");
        }
    }

    #[test]
    fn every_check_and_every_figure_is_explained() {
        for check in analysis::summary::CheckName::ALL {
            let name = check.to_string();
            assert!(explained(&name).contains("a check"), "{name}");
        }
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(explained(name).contains("a figure"), "{name}");
        }
        assert!(explained("rps").contains("requests/s, a figure"));
    }

    #[test]
    fn words_that_a_newcomer_types_are_explained() {
        for (name, words) in [
            ("lateness", "a check"),
            ("typical", "fastest three quarters"),
            ("load.capacity", "highest sustained rate"),
            ("order", "side-by-side"),
            ("cycles left out", "a check"),
            ("p99", "99 of 100"),
            ("latency_us_p99", "99 of 100"),
            ("gates", "Limits to keep"),
            ("gate", "whole interval"),
            ("exit codes", "0 success"),
            ("exit code 7", "--max-time"),
            ("7", "--max-time"),
            ("overhead", "minus the figure of its baseline"),
            ("Overhead", "minus the figure of its baseline"),
            ("withheld", "estimate"),
            ("side-by-side", "at every due time"),
            ("coordinated omission", "late send"),
            ("confidence interval", "95 of 100"),
            ("failures", "Share of the requests"),
            ("median", "half of the requests"),
            ("Little's law", "a check"),
            ("proof", "did its work"),
            ("noise", "weigh tare"),
        ] {
            let text = explained(name);
            assert!(text.contains(words), "{name}: {text}");
        }
    }

    #[test]
    fn an_unknown_name_gets_a_hint() {
        let error = unknown("latenes", &entries());
        assert!(error.contains("found `latenes`. Did you mean"), "{error}");
        let error = unknown("xyzzy", &entries());
        assert!(error.contains("found `xyzzy`. `weigh book"), "{error}");
    }

    #[test]
    fn marks_of_a_page_are_left_out() {
        assert_eq!(
            cells("| `a` | see [`b`](#b), or `[x, y]` | c \\| d |"),
            ["a", "see b, or [x, y]", "c | d"]
        );
    }
}
