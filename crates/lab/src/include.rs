//! Reads a lab with the files it includes, and merges them into one tree.
//!
//! The including file takes precedence ([`crate::merge`]). Each value keeps its place, so a path in it is
//! still relative to its own file.

use std::path::Path;

use yaml_with_places::{Document, Finding, Node, Place, Value, read};

use crate::choices;
use crate::factors;
use crate::inherit;
use crate::merge::merge;
use crate::reading::{Reading, tidy};
use crate::structure::{self, Role};

/// The help for a second document in a file.
const ONE_DOCUMENT: &str = "a file contains one lab. Remove the `---`, or write two files";

impl Reading<'_> {
    /// Returns the tree of a lab with all its includes, and with these settings instead of its own. `None` if
    /// no file could be read.
    pub(crate) fn lab(&mut self, path: &Path, settings: &[(String, String)]) -> Option<Node> {
        let text = match self.text(path) {
            Ok(text) => text,
            Err(why) => {
                let place = self.source(path, String::new());
                self.findings.add(Finding::new(place, why));
                return None;
            }
        };
        // Tidied, because includes are compared with it to find cycles.
        self.open.push(tidy(path));
        let root = self.tree(path, text, Role::Lab);
        self.open.pop();
        let root = choices::with(root?, settings, self);
        let root = factors::expand(root, settings, self);
        let root = inherit::inherit(root, self);
        Some(choices::settle(root, self))
    }

    /// Returns the tree of a scenario in a file of its own. `None` if it cannot be read.
    pub(crate) fn scenario(&mut self, path: &Path) -> Option<Node> {
        match self.text(path) {
            Ok(text) => self.tree(path, text, Role::Scenario),
            Err(why) => {
                let place = self.source(path, String::new());
                self.findings.add(Finding::new(place, why));
                None
            }
        }
    }

    fn tree(&mut self, path: &Path, text: String, role: Role) -> Option<Node> {
        let source = self.source(path, text.clone()).source;
        let document = read(source, &text, ONE_DOCUMENT, &mut self.findings);
        let Document::Tree(root) = document else {
            if document == Document::Empty {
                let place = Place {
                    source,
                    ..Place::default()
                };
                self.findings.add(
                    Finding::new(place, "the file is empty")
                        .help("a lab begins with `question:`. See docs/labs.md"),
                );
            }
            // The declarations of the file are unknown, so no name may be reported as undeclared.
            self.has_gaps = true;
            return None;
        };
        let root = structure::check(root, role, &mut self.findings);
        let is_wrong = |node: &Node| node.value == Value::Reported;
        if role == Role::Included {
            let entries = root.entries();
            self.has_gaps |= is_wrong(&root) || entries.iter().any(|it| is_wrong(&it.node));
        }
        let includes: Vec<(String, Place)> = match root.get("include") {
            Some(Node {
                value: Value::List(items),
                ..
            }) => items.iter().filter_map(include).collect(),
            Some(one) => include(one).into_iter().collect(),
            None => Vec::new(),
        };
        let mut merged: Option<Node> = None;
        for (written, place) in includes {
            if let Some(included) = self.included(&written, place) {
                // A later include takes precedence over an earlier include.
                merged = Some(match merged {
                    Some(earlier) => merge(earlier, included),
                    None => included,
                });
            }
        }
        // The including file takes precedence over all its includes.
        Some(match merged {
            Some(shared) => merge(shared, root),
            None => root,
        })
    }

    fn included(&mut self, written: &str, place: Place) -> Option<Node> {
        let path = self.resolve(written, place);
        if let Some(first) = self.open.iter().position(|open| *open == path) {
            let mut circle: Vec<String> = self.open[first..]
                .iter()
                .map(|path| format!("`{}`", path.display()))
                .collect();
            circle.push(format!("`{}`", path.display()));
            self.findings.add(
                Finding::new(place, "this include forms a circle").help(format!(
                    "{}. Remove one of these includes",
                    circle.join(" includes ")
                )),
            );
            return None;
        }
        // Read once, because its mistakes would otherwise be reported for each file that includes it.
        if let Some(tree) = self.trees.get(&path) {
            return tree.clone();
        }
        let tree = match self.text(&path) {
            Ok(text) => {
                self.open.push(path.clone());
                let tree = self.tree(&path, text, Role::Included);
                self.open.pop();
                tree
            }
            Err(why) => {
                self.has_gaps = true;
                self.findings
                    .add(Finding::new(place, why).help("paths are relative to the including file"));
                None
            }
        };
        // Also `None`: a file that cannot be read is reported once.
        self.trees.insert(path, tree.clone());
        tree
    }
}

fn include(node: &Node) -> Option<(String, Place)> {
    node.text().map(|text| (text.to_owned(), node.place))
}
