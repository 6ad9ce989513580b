//! Reads a file of rules: YAML, checked against the JSON Schema of its structs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Schema;
use yaml_with_places::{
    At, Blank, Document, Finding, Findings, Misspelling, Mistakes, Node, Place, Source, Structure,
};

use super::{NamedRule, RuleKey};
use crate::rule::{CountedResults, Mode, Rule};

/// Maximum number of bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of letters of a name.
const NAME_LETTERS_MAX: usize = 64;
const SECOND: Duration = Duration::from_secs(1);
const LONGEST_WINDOW: Duration = Duration::from_secs(86_400);
const LONGEST_BAN: Duration = Duration::from_secs(31_536_000);

/// The reason why a file of rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RulesError {
    /// The file cannot be read.
    #[error("cannot read the rules in `{}`: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The file has mistakes.
    #[error("the file of rules has mistakes\n{0}")]
    Mistakes(#[from] Mistakes),
}

impl RulesError {
    /// The error for the log, without excerpts of the file.
    pub(crate) fn in_one_line(&self) -> String {
        match self {
            Self::Unreadable { .. } => self.to_string(),
            Self::Mistakes(mistakes) => {
                let told = mistakes.iter().map(|mistake| {
                    let place = format!("{}:{}", mistake.file.display(), mistake.line);
                    match &mistake.help {
                        Some(help) => format!("{place}: {} ({help})", mistake.message),
                        None => format!("{place}: {}", mistake.message),
                    }
                });
                told.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The rules of the rate limiter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    /// The rules, in their order of decision.
    #[schemars(length(min = 1))]
    rules: Vec<RuleEntry>,
}

/// One rule. It bans its key if `count` events lie within `window`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    /// Name of the rule, in headers, metrics and the log.
    #[schemars(extend("format" = "rule-name"))]
    name: At<String>,
    /// The result of a login that counts.
    event: EventChoice,
    /// The key that has a counter of its own, and that the rule bans.
    key: KeyChoice,
    /// Length of the window, such as 60s.
    #[schemars(extend("format" = "window"))]
    window: String,
    /// Number of events in the window that start a ban.
    #[schemars(range(min = 1, max = 10_000))]
    count: u32,
    /// Number of different e-mails (key `ip`) or addresses (key `email`) that these events need.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000))]
    different: At<u32>,
    /// Length of the ban, such as 90s.
    #[schemars(extend("format" = "ban"))]
    ban: String,
    /// True if the rule counts and never limits.
    #[serde(default)]
    shadow: bool,
}

fn one() -> At<u32> {
    At {
        place: Place::default(),
        value: 1,
    }
}

/// The result of a login that counts.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum EventChoice {
    /// A failed login.
    LoginFailed,
    /// A successful login.
    LoginSucceeded,
    /// Any login.
    Any,
}

/// The key that has a counter of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum KeyChoice {
    /// The address, or its IPv6 network.
    Ip,
    /// The e-mail, from any address.
    Email,
    /// The e-mail at one address.
    IpAndEmail,
}

/// The JSON Schema of a file of rules.
fn schema() -> Schema {
    schemars::schema_for!(RulesFile).to_value()
}

/// Reads the rules in a file.
pub(crate) fn read(path: &Path) -> Result<Vec<NamedRule>, RulesError> {
    let unreadable = |reason: String| RulesError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let size = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if size.len() > FILE_BYTES_MAX {
        return Err(unreadable(format!(
            "expected at most {FILE_BYTES_MAX} bytes, found {}",
            size.len()
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    Ok(parse(path, &text)?)
}

/// Reads the rules in a text. `path` is only used in messages.
fn parse(path: &Path, text: &str) -> Result<Vec<NamedRule>, Mistakes> {
    let sources = vec![Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }];
    let mut findings = Findings::default();
    let tree = match yaml_with_places::read(0, text, "remove the `---`", &mut findings) {
        Document::Tree(tree) => Some(check(tree, &mut findings)),
        Document::Empty => {
            let empty = Finding::new(Place::default(), "expected rules, found an empty file");
            findings.add(empty.help("begin with `rules:` and a list, or start without a file"));
            None
        }
        Document::Unreadable => None,
    };
    let sources = findings.settle(sources)?;
    let tree = tree.expect("a file without a tree has a mistake");
    let mut findings = Findings::default();
    let entries = match RulesFile::deserialize(&tree) {
        Ok(file) => file.rules,
        Err(error) => {
            // The check above finds every mistake that serde finds. This line is for a gap in it.
            findings.add(Finding::new(tree.place, error.to_string()));
            Vec::new()
        }
    };
    check_together(&entries, &mut findings);
    findings.settle(sources)?;
    Ok(entries.into_iter().map(RuleEntry::named).collect())
}

fn check(tree: Node, findings: &mut Findings) -> Node {
    let structure = Structure {
        schema: &schema(),
        formats,
        // Each optional key can be left out, so a key without a value is a mistake.
        blank: Blank::Null,
    };
    structure.check(tree, findings)
}

/// Checks the text of a format. `None` for an unknown format.
fn formats(form: &str, text: &str) -> Option<Result<(), Misspelling>> {
    let time = |longest| {
        let read = chassis::time(text, SECOND..=longest);
        read.map(|_| ()).map_err(|error| Misspelling {
            message: format!("{error}, found `{text}`"),
            help: None,
        })
    };
    match form {
        "window" => Some(time(LONGEST_WINDOW)),
        "ban" => Some(time(LONGEST_BAN)),
        "rule-name" => Some(check_name(text)),
        _ => None,
    }
}

fn check_name(text: &str) -> Result<(), Misspelling> {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_name = (1..=NAME_LETTERS_MAX).contains(&text.len()) && text.bytes().all(is_letter);
    if is_name {
        return Ok(());
    }
    Err(Misspelling::new(
        format!("`{text}` is not a name of a rule"),
        format!("expected 1 to {NAME_LETTERS_MAX} of a-z, 0-9 and `-`, such as `many-emails`"),
    ))
}

/// Checks that names differ, and that each rule can start a ban.
fn check_together(entries: &[RuleEntry], findings: &mut Findings) {
    for (place, entry) in entries.iter().enumerate() {
        let name = &entry.name;
        let mut before = entries[..place].iter();
        if let Some(first) = before.find(|other| other.name.value == name.value) {
            let message = format!("two rules have the name `{}`", name.value);
            let finding = Finding::new(name.place, message);
            let finding = finding.related(first.name.place, "the first rule of this name");
            findings.add(finding.help("give each rule its own name"));
        }
        let different = &entry.different;
        if different.value > 1 && entry.key == KeyChoice::IpAndEmail {
            let message = "`different` has no meaning for the key `ip-and-email`";
            let finding = Finding::new(different.place, message);
            findings.add(finding.help("remove it, or use the key `ip` or `email`"));
        }
        if different.value > entry.count {
            let (count, found) = (entry.count, different.value);
            let message =
                format!("expected at most {count}, the `count` of the rule, found `{found}`");
            let finding = Finding::new(different.place, message);
            findings.add(
                finding.help("these events can never have so many, and the rule would never ban"),
            );
        }
    }
}

impl RuleEntry {
    fn named(self) -> NamedRule {
        let ms = |text: &str, longest| {
            let time = chassis::time(text, SECOND..=longest);
            let time = time.expect("the format of the time was checked");
            u64::try_from(time.as_millis()).expect("a year has fewer milliseconds")
        };
        let rule = Rule {
            ban_ms: ms(&self.ban, LONGEST_BAN),
            window_ms: ms(&self.window, LONGEST_WINDOW),
            failures_max: self.count,
            emails_max: self.different.value,
            mode: Mode::Fixed,
            inclusive: true,
            counts: match self.event {
                EventChoice::LoginFailed => CountedResults::Failed,
                EventChoice::LoginSucceeded => CountedResults::Succeeded,
                EventChoice::Any => CountedResults::Any,
            },
        };
        let key = match self.key {
            KeyChoice::Ip => RuleKey::Ip,
            KeyChoice::Email => RuleKey::Email,
            KeyChoice::IpAndEmail => RuleKey::Both,
        };
        NamedRule::of_file(self.name.value, key, rule, self.shadow)
    }
}

#[cfg(test)]
mod tests;
