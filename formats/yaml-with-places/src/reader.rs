//! Parses YAML text into the tree.
//!
//! This is the only file that uses the YAML library. Scalars keep their original text, so that
//! `version: 1.10` is not read as 1.1. The schema decides their types later. Anchors and aliases are
//! supported. Merge keys, custom tags and several documents in a file are not.
//!
//! The parser detects duplicate keys here, because the tree cannot represent them.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};

use crate::mistake::{Finding, Findings};
use crate::tree::{Entry, Node, Place, Value};

/// Maximum number of values in one file. Each use of an alias counts. Without a limit, a few lines of aliases
/// could create billions of values.
const NODES_MAX: usize = 100_000;
/// Deepest nesting. Readers of the tree recurse, and the stack is limited. serde_json has the same limit.
const DEPTH_MAX: usize = 128;

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// A value that is not null.
    Tree(Node),
    /// Only comments, or null.
    Empty,
    /// Text that is not YAML. The mistake is reported.
    Unreadable,
}

/// Reads one file. Places refer to it by the number `source`, its index in the sources for
/// [`Findings::settle`]. `one_document` is the advice if the file has a second document.
pub fn read(source: usize, text: &str, one_document: &str, findings: &mut Findings) -> Document {
    read_at_most(NODES_MAX, source, text, one_document, findings)
}

/// Reads one file like [`read`], with another largest number of values. Each use of an alias counts. It is for
/// files that a program wrote.
pub fn read_at_most(
    values: usize,
    source: usize,
    text: &str,
    one_document: &str,
    findings: &mut Findings,
) -> Document {
    let mut builder = Builder {
        nodes_max: values,
        source,
        text,
        one_document,
        findings,
        anchors: HashMap::new(),
        open: Vec::new(),
        nodes: 0,
        has_bad_key: false,
        root: None,
    };
    match builder.build() {
        Ok(()) => match builder.root.filter(|root| !root.is_null()) {
            Some(root) => Document::Tree(root),
            None => Document::Empty,
        },
        // A collection as a key is usually an unquoted template, which also breaks the rest.
        Err(_) if builder.has_bad_key => Document::Unreadable,
        Err(finding) => {
            findings.add(finding);
            Document::Unreadable
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
        has_bad_key: bool,
    },
}

struct Builder<'a> {
    source: usize,
    text: &'a str,
    one_document: &'a str,
    findings: &'a mut Findings,
    anchors: HashMap<usize, Node>,
    open: Vec<Open>,
    nodes: usize,
    nodes_max: usize,
    has_bad_key: bool,
    root: Option<Node>,
}

impl Builder<'_> {
    fn build(&mut self) -> Result<(), Finding> {
        let mut documents = 0;
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|error| self.syntax(&error))?;
            if matches!(event, Event::DocumentStart(..)) {
                documents += 1;
            }
            if documents > 1 {
                return Err(
                    Finding::new(self.place(span), "a second document begins here")
                        .help(self.one_document),
                );
            }
            self.take(event, span)?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        if let Some(tag) = event.tag()
            && !tag.is_yaml_core_schema()
        {
            let place = self.place(span.tag_span().unwrap_or(span));
            let message = format!("the tag `{}` has no meaning here", tag.original());
            self.findings
                .add(Finding::new(place, message).help("remove it"));
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let node = Node {
                    place: self.place(span),
                    value: Value::Scalar {
                        text: text.into_owned(),
                        plain: style == ScalarStyle::Plain && tag.is_none(),
                    },
                };
                self.finish(node, anchor)
            }
            Event::SequenceStart(style, anchor, _) => {
                self.start(span, style, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(style, anchor, _) => {
                let content = Content::Map {
                    entries: Vec::new(),
                    key: None,
                    has_bad_key: false,
                };
                self.start(span, style, anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(id) => match self.anchors.get(&id).cloned() {
                // The copied values are counted before the copy is stored, so that aliases of aliases stop at
                // the limit.
                Some(node) => {
                    self.nodes += node.count();
                    self.finish(node, 0)
                }
                None => Err(Finding::new(
                    self.place(span),
                    "this alias is inside its own anchor",
                )),
            },
            _ => Ok(()),
        }
    }

    fn start(
        &mut self,
        span: Span,
        style: StructureStyle,
        anchor: usize,
        content: Content,
    ) -> Result<(), Finding> {
        let mut place = self.place(span);
        if style == StructureStyle::Block && matches!(content, Content::List(_)) {
            // Only the dash: the block has many lines, and marking them all highlights no specific place.
            place.end = place.start + 1;
        }
        self.open.push(Open {
            place,
            anchor,
            content,
        });
        if self.open.len() > DEPTH_MAX {
            let message = format!("values are nested more than {DEPTH_MAX} deep");
            return Err(Finding::new(place, message));
        }
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), Finding> {
        // The parser pairs starts and ends, so there is no end without a start.
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let end = self.place(span).end;
        let mut place = open.place;
        // Only a flow collection has its own end mark. A block ends at the next key.
        if self
            .text
            .get(place.start..)
            .is_some_and(|rest| rest.starts_with(['{', '[']))
        {
            place.end = end;
        }
        let value = match open.content {
            Content::List(items) => Value::List(items),
            Content::Map {
                has_bad_key: true, ..
            } => Value::Reported,
            // A block mapping has no mark of its own. Its first key stands for it.
            Content::Map { entries, .. } => {
                if place.end <= place.start
                    && let Some(first) = entries.first()
                {
                    place = first.key_place;
                }
                Value::Map(entries)
            }
        };
        self.finish(Node { place, value }, open.anchor)
    }

    /// Adds a complete node to its parent.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Finding> {
        self.nodes += 1;
        // An error and not a finding, because the parser must stop here.
        if self.nodes > self.nodes_max {
            return Err(Finding::new(
                node.place,
                format!("the file holds more than {} values", self.nodes_max),
            )
            .help("every use of an alias counts"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map {
                entries,
                key,
                has_bad_key,
            }) => match key.take() {
                None => match node.value {
                    Value::Scalar { text, .. } => *key = Some((text, node.place)),
                    _ => {
                        *has_bad_key = true;
                        self.has_bad_key = true;
                        // A placeholder key, so that the next node is not taken as a key.
                        *key = Some((String::new(), node.place));
                        let finding = bad_key(node.place, self.text);
                        self.findings.add(finding);
                    }
                },
                Some((text, key_place)) => match entries.iter().find(|entry| entry.key == text) {
                    // A mapping with a bad key is reported once. Reports about its other keys would only
                    // repeat that.
                    Some(first) if !*has_bad_key => self.findings.add(
                        Finding::new(key_place, format!("the key `{text}` is here twice"))
                            .label("and again here")
                            .related(first.key_place, "first here")
                            .help("keep one of the two"),
                    ),
                    _ => entries.push(Entry {
                        key: text,
                        key_place,
                        node,
                        is_guess: false,
                    }),
                },
            },
        }
        Ok(())
    }

    fn place(&self, span: Span) -> Place {
        let range = span.byte_range().unwrap_or(0..0);
        Place {
            source: self.source,
            start: range.start,
            end: range.end.max(range.start),
        }
    }

    fn syntax(&self, error: &ScanError) -> Finding {
        let at = error
            .marker()
            .byte_offset()
            // Without a position the mistake is shown at the start of the file.
            .unwrap_or(0)
            .min(self.text.len());
        // At the end of the file, the last written character is more helpful than the empty rest.
        let start = match self.text.get(at..).map(str::trim_start) {
            Some("") => self
                .text
                .trim_end()
                .char_indices()
                .next_back()
                .map_or(0, |(at, _)| at),
            _ => at,
        };
        let place = Place {
            source: self.source,
            start,
            end: start
                + self
                    .text
                    .get(start..)
                    .and_then(|rest| rest.chars().next())
                    .map_or(0, char::len_utf8),
        };
        Finding::new(place, format!("this is not YAML: {}", error.info()))
            .help_if(spaces_for_tab(self.text, start).or_else(|| quote_template(self.text, start)))
    }
}

/// Advice to write spaces instead of a tab before a mistake.
fn spaces_for_tab(text: &str, at: usize) -> Option<String> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    let is_tab = text.get(at..)?.starts_with('\t') || line.ends_with('\t');
    is_tab.then(|| "YAML is indented by spaces. Replace the tab".to_owned())
}

fn bad_key(place: Place, text: &str) -> Finding {
    Finding::new(place, "a key must be a word, not a collection")
        .help_if(quote_template(text, place.start))
}

/// Advice to quote a template. `{{` opens a mapping at the beginning of a value and within flow collections,
/// but the author probably meant a template.
fn quote_template(text: &str, at: usize) -> Option<String> {
    let line_start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(line_start..)?.lines().next()?;
    line.contains("{{").then(|| {
        "text with `{{` needs quotes at the beginning of a value and within `[…]` or `{…}`: \
         \"{{name}}\""
            .to_owned()
    })
}

#[cfg(test)]
mod tests;
