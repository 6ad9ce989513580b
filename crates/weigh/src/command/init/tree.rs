//! Files of other tools, in JSON or YAML, as trees of values.
//!
//! Other tools read YAML with merge keys, and with null for a key without a value. Labs do neither. Numbers
//! with more digits than a number of this program holds are kept as texts with a mark, see [`json_text`].

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
use yaml_with_places::{Document, Findings, Node, Source, Value as Yaml};

use super::json_lines::{lines, string_length};

/// Maximum number of values in a file. Descriptions of large services have several 100,000.
const VALUES_MAX: usize = 2_000_000;

/// Maximum number of merged mappings within each other.
const MERGES_MAX: usize = 16;

/// Maximum depth of mappings with lines in JSON. Operations and steps are not deeper.
const DEPTH_MAX: usize = 8;

/// The first character of the text of a number with many digits. It is for private use, so no file has it for
/// another reason.
const MARK: char = '\u{f8f0}';

/// The values of a file, and the lines of its mappings.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) root: Value,
    /// The line of each mapping by its JSON pointer, counted from 1.
    lines: HashMap<String, usize>,
}

impl Tree {
    /// Reads a file in JSON or YAML.
    ///
    /// # Errors
    /// The mistake in the file, for the user.
    pub(super) fn read(source: &str, text: &str, color: bool) -> Result<Tree, String> {
        let text = text.trim_start_matches('\u{feff}');
        if text.trim_start().starts_with(['{', '[']) {
            // JSON has its own parser. YAML may begin with a brace as well.
            match json(text) {
                Ok(root) => {
                    return Ok(Tree {
                        root,
                        lines: lines(text, DEPTH_MAX),
                    });
                }
                Err(why) if source.ends_with(".json") => return Err(why),
                Err(why) => return yaml(source, text, color).map_err(|_| why),
            }
        }
        yaml(source, text, color)
    }

    /// The line of the mapping at a JSON pointer.
    pub(super) fn line(&self, pointer: &str) -> Option<usize> {
        self.lines.get(pointer).copied()
    }
}

/// Reads JSON without the loss of digits.
///
/// # Errors
/// The mistake in the file, for the user.
pub(super) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(&with_marks(text))
        .map_err(|error| format!("expected JSON or YAML, found a mistake: {error}"))
}

/// A value as JSON, with all digits of its numbers.
pub(super) fn json_text(value: &Value) -> String {
    let text = value.to_string();
    let mark = format!("\"{MARK}");
    let mut exact = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(&mark) {
        let (digits, after) = after.split_once('"').unwrap_or((after, ""));
        exact.push_str(before);
        exact.push_str(digits);
        rest = after;
    }
    exact + rest
}

/// A text without the mark of a number.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// True if the value is a number with many digits.
pub(super) fn is_marked(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with(MARK))
}

/// A number of JSON as a value, with all its digits.
fn number(text: &str) -> Option<Value> {
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    let is_exact = match text.parse::<f64>() {
        Ok(_) if text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok() => true,
        Ok(number) if number.is_finite() => {
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            // 15 decimal digits survive in a number of 64 bits.
            text.contains(['.', 'e', 'E']) && digits <= 15
        }
        _ => false,
    };
    match is_exact {
        true => serde_json::from_str(text).ok(),
        false => serde_json::from_str::<serde::de::IgnoredAny>(text)
            .ok()
            .map(|_| Value::String(format!("{MARK}{text}"))),
    }
}

/// Turns numbers with many digits into texts with a mark.
fn with_marks(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        marked.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.starts_with('"') {
            true => string_length(rest),
            false => rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'))
                .unwrap_or(rest.len()),
        };
        let token = &rest[..length];
        match number(token) {
            Some(Value::String(exact)) if !token.starts_with('"') => {
                marked.push('"');
                marked.push_str(&exact);
                marked.push('"');
            }
            _ => marked.push_str(token),
        }
        rest = &rest[length..];
    }
    marked + rest
}

fn yaml(source: &str, text: &str, color: bool) -> Result<Tree, String> {
    let mut findings = Findings::default();
    let advice = "keep one document in the file";
    let document = yaml_with_places::read_at_most(VALUES_MAX, 0, text, advice, &mut findings);
    let sources = vec![Source {
        path: PathBuf::from(source),
        text: text.to_owned(),
    }];
    let settled = findings.settle(sources);
    settled.map_err(|mistakes| format!("it has mistakes\n{}", mistakes.render(color)))?;
    let Document::Tree(node) = document else {
        return Ok(Tree::default());
    };
    let mut reader = Reader {
        lines: HashMap::new(),
        line_starts: std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect(),
    };
    let root = reader.value(&node, &mut String::new())?;
    Ok(Tree {
        root,
        lines: reader.lines,
    })
}

/// The conversion of a YAML tree.
struct Reader {
    lines: HashMap<String, usize>,
    /// The first byte of each line.
    line_starts: Vec<usize>,
}

impl Reader {
    fn value(&mut self, node: &Node, pointer: &mut String) -> Result<Value, String> {
        Ok(match &node.value {
            Yaml::Scalar { text, plain } => scalar(text, *plain),
            Yaml::Reported => Value::Null,
            Yaml::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let length = pointer.len();
                    pointer.push_str(&format!("/{index}"));
                    values.push(self.value(item, pointer)?);
                    pointer.truncate(length);
                }
                Value::Array(values)
            }
            Yaml::Map(_) => {
                let line = self.line_of(node);
                self.lines.entry(pointer.clone()).or_insert(line);
                Value::Object(self.mapping(node, pointer, 0)?)
            }
        })
    }

    fn line_of(&self, node: &Node) -> usize {
        self.line_starts
            .partition_point(|start| *start <= node.place.start)
    }

    /// The members of a mapping. Its own members win over merged members, and earlier merged mappings over
    /// later ones.
    fn mapping(
        &mut self,
        node: &Node,
        pointer: &mut String,
        depth: usize,
    ) -> Result<Map<String, Value>, String> {
        let mut members = Map::new();
        for entry in node.entries().iter().filter(|entry| entry.key != "<<") {
            let length = pointer.len();
            let key = entry.key.replace('~', "~0").replace('/', "~1");
            pointer.push_str(&format!("/{key}"));
            let value = self.value(&entry.node, pointer)?;
            pointer.truncate(length);
            members.insert(entry.key.clone(), value);
        }
        let Some(merged) = node.get("<<") else {
            return Ok(members);
        };
        let sources = match &merged.value {
            Yaml::List(items) => items.iter().collect(),
            _ => vec![merged],
        };
        for source in sources {
            if !matches!(source.value, Yaml::Map(_)) || depth == MERGES_MAX {
                return Err(format!(
                    "expected a mapping, or a list of mappings, for the merge key `<<` in line {}",
                    self.line_of(node)
                ));
            }
            for (key, value) in self.mapping(source, pointer, depth + 1)? {
                members.entry(key).or_insert(value);
            }
        }
        Ok(members)
    }
}

/// The value of a scalar by YAML's core schema, with all digits of its number.
fn scalar(text: &str, is_plain: bool) -> Value {
    let unsigned = |digits: &str, base| u64::from_str_radix(digits, base).ok().map(Value::from);
    if is_plain {
        let based = match text.get(..2) {
            Some("0x") => unsigned(&text[2..], 16),
            Some("0o") => unsigned(&text[2..], 8),
            _ => None,
        };
        let exact = || number(text).filter(is_marked);
        if let Some(value) = based.or_else(exact) {
            return value;
        }
    }
    yaml_with_places::scalar(text, is_plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        Tree::read("x.yaml", text, false).expect("a file").root
    }

    #[test]
    fn merge_keys_are_merged_as_other_tools_do() {
        let text = "\
a: &a {sku: tea, count: 2}
b: &b {<<: *a, count: 3, b: 1}
c:
  <<: [*b, {b: 2, d: 4}]
  sku: coffee
";
        assert_eq!(
            read(text)["c"],
            json!({"sku": "coffee", "count": 3, "b": 1, "d": 4})
        );
        let refused = Tree::read("x.yaml", "a:\n  <<: 7\n", false).unwrap_err();
        assert!(refused.contains("in line 2"), "{refused}");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let long = "12345678901234567890123";
        for text in [
            format!(
                "{{\"a\":{long},\"b\":[1.0,-7,1e3],\"c\":\"x{long}\",\"d\":0.1234567890123456789}}"
            ),
            format!("a: {long}\nb: [1.0, -7, 1e3]\nc: x{long}\nd: 0.1234567890123456789"),
        ] {
            let value = read(&text);
            assert_eq!(
                json_text(&value),
                format!(
                    "{{\"a\":{long},\"b\":[1.0,-7,1000.0],\"c\":\"x{long}\",\"d\":0.1234567890123456789}}"
                )
            );
            assert_eq!(without_mark(value["a"].as_str().expect("a text")), long);
        }
        assert!(json("{\"a\": 01}").is_err());
        assert!(json("{\"a\": \"\\\"1").is_err());
    }

    #[test]
    fn scalars_are_those_of_the_core_schema() {
        assert_eq!(
            read("{a: 0x1F, b: 0o17, c: ~, d: , e: null, f: yes, g: '0x1F', h: 2026-01-02}"),
            json!({"a": 31, "b": 15, "c": null, "d": null, "e": null, "f": "yes", "g": "0x1F", "h": "2026-01-02"})
        );
    }

    #[test]
    fn mappings_have_lines() {
        let tree =
            Tree::read("x", "a:\n  - b: 1\n  - {c: 2}\nd/e:\n  f: 1\n", false).expect("a file");
        assert_eq!(tree.line("/a/0"), Some(2));
        assert_eq!(tree.line("/a/1"), Some(3));
        assert_eq!(tree.line("/d~1e"), Some(5));
        assert_eq!(tree.line("/x"), None);
        let tree = Tree::read("x.json", "{\"a\": [\n  {}, {}\n]}", false).expect("a file");
        assert_eq!(tree.line("/a/1"), Some(2));
    }
}
