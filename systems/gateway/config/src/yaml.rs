//! YAML text to a tree in which every key and value knows its place.
//!
//! The only file that knows the YAML library. Anchors and aliases work; several documents in a
//! file and tags of one's own do not. Keys given twice are found here, because the tree that
//! follows could not hold them.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value as Json};

use crate::mistake::{Finding, Findings, Place};

/// Most values in one file, aliases counted as often as they are used. A few lines of aliases can
/// ask for billions.
const NODES_MAX: usize = 100_000;
/// Deepest nesting; every reader of the tree may recurse.
const DEPTH_MAX: usize = 64;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Text without its quotes; only plain (unquoted) text may mean a number.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// A value that was wrong and has been reported; nobody should complain about it again.
    Reported,
}

/// A key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Node {
    /// What an empty file holds.
    pub(crate) fn nothing() -> Self {
        Self {
            place: Place::default(),
            value: Value::Map(Vec::new()),
        }
    }

    /// The entry of a mapping under this key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The entry at a path of keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Entry> {
        let (first, rest) = path.split_first()?;
        let entry = self.entry(first)?;
        if rest.is_empty() {
            Some(entry)
        } else {
            entry.node.at(rest)
        }
    }

    /// The value in the types of JSON, by YAML 1.2's core schema. A key without a value counts as
    /// left out, unless it says `null`.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            Value::Scalar { text, plain } => scalar(text, *plain),
            Value::Reported => Json::Null,
            Value::List(items) => items.iter().map(Node::json).collect(),
            Value::Map(entries) => {
                let members = entries
                    .iter()
                    .filter(|entry| !entry.node.is_blank())
                    .map(|entry| (entry.key.clone(), entry.node.json()));
                Json::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// Whether there is no value at all after the key.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if text.is_empty() || text == "~")
    }
}

/// What a scalar means, by YAML 1.2's core schema.
pub(crate) fn scalar(text: &str, plain: bool) -> Json {
    if !plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Json::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return text.into();
    }
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| text.into(), Json::Number)
}

/// Reads a file. `None` when it is not YAML, which is reported, or empty, which is not.
pub(crate) fn read(text: &str, findings: &mut Findings) -> Option<Node> {
    let mut builder = Builder {
        findings,
        text,
        anchors: HashMap::new(),
        open: Vec::new(),
        nodes: 0,
        root: None,
    };
    match builder.build() {
        Ok(()) => builder.root.filter(|root| !root.is_blank()),
        Err(finding) => {
            findings.add(finding);
            None
        }
    }
}

/// A collection that is still being read.
struct Open {
    place: Place,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        key: Option<(String, Place)>,
    },
}

struct Builder<'a> {
    findings: &'a mut Findings,
    text: &'a str,
    anchors: HashMap<usize, Node>,
    open: Vec<Open>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), Finding> {
        let mut documents = 0;
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|error| {
                let start = error.marker().byte_offset().unwrap_or(0);
                let place = Place {
                    start,
                    end: start + 1,
                };
                Finding::new(place, format!("this is not YAML: {}", error.info()))
            })?;
            documents += usize::from(matches!(event, Event::DocumentStart(..)));
            if documents > 1 {
                return Err(Finding::new(place(span), "a second document begins here")
                    .help("remove the `---`"));
            }
            self.take(event, span)?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = Value::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain && tag.is_none(),
                };
                let place = place(span);
                self.finish(Node { place, value }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.start(span, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                let (entries, key) = (Vec::new(), None);
                self.start(span, anchor, Content::Map { entries, key })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open {
                    place: start,
                    anchor,
                    content,
                }) = self.open.pop()
                else {
                    return Ok(());
                };
                let value = match content {
                    Content::List(items) => Value::List(items),
                    Content::Map { entries, .. } => Value::Map(entries),
                };
                self.finish(
                    Node {
                        place: start,
                        value,
                    },
                    anchor,
                )
            }
            Event::Alias(id) => match self.anchors.get(&id).cloned() {
                Some(node) => {
                    self.nodes += count(&node);
                    self.finish(node, 0)
                }
                None => Err(Finding::new(
                    place(span),
                    "this alias stands within its own anchor",
                )),
            },
            _ => Ok(()),
        }
    }

    fn start(&mut self, span: Span, anchor: usize, content: Content) -> Result<(), Finding> {
        let mut place = place(span);
        // A block collection is marked by its first character: all of its lines would be too much.
        place.end = place.start + 1;
        self.open.push(Open {
            place,
            anchor,
            content,
        });
        if self.open.len() > DEPTH_MAX {
            return Err(Finding::new(
                place,
                format!("values are nested more than {DEPTH_MAX} deep"),
            ));
        }
        Ok(())
    }

    /// Puts a complete node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Finding> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let message = format!("the file holds more than {NODES_MAX} values");
            return Err(
                Finding::new(node.place, message).help("aliases count as often as they are used")
            );
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map { entries, key }) => match (key.take(), node.value) {
                (None, Value::Scalar { text, .. }) => *key = Some((text, node.place)),
                (None, _) => {
                    return Err(Finding::new(
                        node.place,
                        "a key must be a word, not a collection",
                    ));
                }
                (Some((text, place)), value) => {
                    if entries.iter().any(|entry| entry.key == text) {
                        let message = format!("the key `{text}` is here twice");
                        self.findings
                            .add(Finding::new(place, message).help("keep one of the two"));
                    } else {
                        let node = Node { value, ..node };
                        entries.push(Entry {
                            key: text,
                            place,
                            node,
                        });
                    }
                }
            },
        }
        Ok(())
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|entry| count(&entry.node)).sum(),
        Value::Scalar { .. } | Value::Reported => 0,
    }
}

fn place(span: Span) -> Place {
    let range = span.byte_range().unwrap_or(0..0);
    Place {
        start: range.start,
        end: range.end.max(range.start),
    }
}
