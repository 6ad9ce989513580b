//! Writes YAML.

use serde_json::Value as Json;

/// A YAML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Out {
    /// Written without quotes or escapes.
    Plain(String),
    /// Text that needs quotes, or a block if it has several lines.
    Text(String),
    List(Vec<Out>),
    Map(Vec<(String, Out)>),
}

impl Out {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Converts a value of a file, with its texts protected from expansion.
    pub(crate) fn of(value: &Json) -> Self {
        match value {
            Json::String(text) => Self::Text(expanded(text)),
            Json::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Json::Object(members) => {
                let members = members.iter();
                Self::Map(
                    members
                        .map(|(key, it)| (key.clone(), Self::of(it)))
                        .collect(),
                )
            }
            other => Self::Plain(other.to_string()),
        }
    }

    /// Appends the value as YAML. `indent` is the number of spaces before each line.
    pub(crate) fn write(&self, indent: usize, out: &mut String) {
        let pad = " ".repeat(indent);
        match self {
            Self::Map(members) => {
                for (key, value) in members {
                    out.push_str(&pad);
                    out.push_str(&key_text(key));
                    out.push(':');
                    value.write_behind(indent, out);
                }
            }
            Self::List(items) => {
                for item in items {
                    let mut inner = String::new();
                    if let (Self::Map(members), false) = (item, item.is_empty()) {
                        Self::Map(members.clone()).write(indent + 2, &mut inner);
                        // Written with the indentation of the other members. The first member moves behind
                        // the dash.
                        out.push_str(&format!("{pad}- {}", inner.trim_start()));
                    } else {
                        out.push_str(&format!("{pad}-"));
                        item.write_behind(indent, out);
                    }
                }
            }
            Self::Plain(_) | Self::Text(_) => self.write_behind(indent, out),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Map(members) => members.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Plain(_) | Self::Text(_) => false,
        }
    }

    fn write_behind(&self, indent: usize, out: &mut String) {
        match self {
            Self::Plain(text) => out.push_str(&format!(" {text}\n")),
            // Queries and templates stay readable as blocks.
            Self::Text(text) if is_block(text) => {
                let pad = " ".repeat(indent + 2);
                out.push_str(" |-\n");
                for line in text.trim_end().lines() {
                    let line = if line.is_empty() {
                        String::new()
                    } else {
                        format!("{pad}{line}")
                    };
                    out.push_str(&line);
                    out.push('\n');
                }
            }
            // A JSON string is a valid YAML string, so its escapes are correct.
            Self::Text(text) => out.push_str(&format!(" {}\n", Json::from(text.as_str()))),
            Self::Map(members) if members.is_empty() => out.push_str(" {}\n"),
            Self::List(items) if items.is_empty() => out.push_str(" []\n"),
            inner => {
                out.push('\n');
                inner.write(indent + 2, out);
            }
        }
    }
}

/// True if a text can be written as a block without a change of its meaning.
fn is_block(text: &str) -> bool {
    // A block has no escapes and takes its indentation from its first line, and `|-` drops line breaks at the
    // end.
    let is_plain = |letter: char| letter == '\n' || !letter.is_control();
    text.trim_end().contains('\n')
        && !text.starts_with([' ', '\n'])
        && text.chars().all(is_plain)
        && !text.ends_with([' ', '\n'])
}

fn key_text(key: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_word = key.starts_with(|first: char| first.is_ascii_alphabetic());
    // Words that YAML 1.1 reads as switches or null.
    let means_more = matches!(
        key.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "on" | "off" | "yes" | "no"
    );
    if is_word && !means_more && key.chars().all(is_plain) {
        key.to_owned()
    } else {
        Json::from(key).to_string()
    }
}

/// Converts a text of Hasura. `{{NAME}}` becomes `${env.NAME}`, and a `$` that would start an expansion is
/// doubled.
pub(crate) fn expanded(text: &str) -> String {
    // First, because otherwise the `${env.…}` below would be doubled as well.
    let text = literal_dollars(text);
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, inside)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, after)) = inside.split_once("}}") else {
            // Without an end it is not a variable, and stays unchanged.
            out.push_str("{{");
            rest = inside;
            continue;
        };
        let is_variable =
            |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        if !name.is_empty() && name.chars().all(is_variable) {
            out.push_str(&format!("${{env.{name}}}"));
        } else {
            out.push_str(&format!("{{{{{name}}}}}"));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Doubles every `$` that expansion would interpret: each `$` before a `$` or a `{`, and the last one of a
/// run.
fn literal_dollars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        let after = from.trim_start_matches('$');
        let dollars = from.len() - after.len();
        // A single `$` is literal. Runs of `$`, and `${`, are expanded, so each `$` in them is doubled.
        let is_plain = dollars == 1 && !after.starts_with('{');
        let written = if is_plain { 1 } else { 2 * dollars };
        out.push_str(before);
        out.extend(std::iter::repeat_n('$', written));
        rest = after;
    }
    out.push_str(rest);
    out
}
