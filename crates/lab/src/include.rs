//! Reads a lab with the files it includes, and merges them into one tree.
//!
//! Mappings are merged key by key, everything else is replaced; each value keeps its place, so a
//! path in it is still relative to the file it was written in. How requests arrive is one choice:
//! a lab that says `rate` does not inherit `connections`.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use yaml_with_places::{Document, Entry, Finding, Findings, Node, Place, Source, Value, read};

use crate::Files;
use crate::choices;
use crate::structure::{self, Role};

/// What to do about a second document in a file.
const ONE_DOCUMENT: &str = "a file holds one lab; remove the `---`, or make two files of it";

/// What was read so far: files, texts and mistakes.
pub(crate) struct Reading<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) sources: Vec<Source>,
    pub(crate) findings: Findings,
    /// Whether a part of the lab could not be read, so that what is not found may be there.
    pub(crate) has_gaps: bool,
    /// Files that are read already: two includes may share a third.
    trees: HashMap<PathBuf, Option<Node>>,
    /// The files being read, each included by the one before.
    open: Vec<PathBuf>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(files: &'a dyn Files) -> Reading<'a> {
        Reading {
            files,
            sources: Vec::new(),
            findings: Findings::default(),
            has_gaps: false,
            trees: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The tree of a lab with everything it includes, and these settings instead of its own. `None`
    /// when nothing could be read.
    pub(crate) fn lab(&mut self, path: &Path, settings: &[(String, String)]) -> Option<Node> {
        let text = match self.text(path) {
            Ok(text) => text,
            Err(why) => {
                let place = self.source(path, String::new());
                self.findings.add(Finding::new(place, why));
                return None;
            }
        };
        // Tidied, because includes are compared with it to find circles.
        self.open.push(tidy(path));
        let root = self.tree(path, text, Role::Lab);
        self.open.pop();
        let root = choices::with(root?, settings, self);
        Some(choices::settle(root, self))
    }

    /// The tree of a scenario in a file of its own. `None` when it cannot be read.
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

    /// The folder that paths written at this place are relative to.
    pub(crate) fn folder(&self, place: Place) -> PathBuf {
        self.sources
            .get(place.source)
            .and_then(|source| source.path.parent())
            .map(Path::to_owned)
            // A path without a parent is relative to where `weigh` runs.
            .unwrap_or_default()
    }

    /// A path written at this place, as the caller's files know it.
    pub(crate) fn resolve(&self, written: &str, place: Place) -> PathBuf {
        tidy(&self.folder(place).join(written))
    }

    /// The place of a reference within the value that stands at `place`.
    pub(crate) fn reference(&self, place: Place, index: usize) -> Place {
        let found = || {
            let text = self
                .sources
                .get(place.source)?
                .text
                .get(place.start..place.end)?;
            let (start, _) = text.match_indices("{{").nth(index)?;
            let length = text.get(start..)?.find("}}")? + 2;
            Some(Place {
                start: place.start + start,
                end: place.start + start + length,
                ..place
            })
        };
        // A value with escapes may have no such text; the whole value is near enough.
        found().unwrap_or(place)
    }

    /// The text of a file, or what is wrong with it.
    pub(crate) fn text(&self, path: &Path) -> Result<String, String> {
        let bytes = self
            .files
            .read(path)
            .map_err(|why| format!("cannot read `{}`: {why}", path.display()))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("`{}` is not UTF-8 text: see byte {at}", path.display())
        })
    }

    /// Adds a source and gives the place of its beginning.
    pub(crate) fn source(&mut self, path: &Path, text: String) -> Place {
        let source = Source {
            path: path.to_owned(),
            text,
        };
        // A file of requests is looked at for every variant.
        let known = self.sources.iter().position(|known| *known == source);
        let source = known.unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        });
        Place {
            source,
            ..Place::default()
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
                        .help("a lab begins with `question:`; see docs/labs.md"),
                );
            }
            // What the file would have declared is unknown now, so nothing may be called
            // undeclared.
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
                // A later include wins over an earlier one.
                merged = Some(match merged {
                    Some(earlier) => merge(earlier, included),
                    None => included,
                });
            }
        }
        // The including file wins over all that it includes.
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
                Finding::new(place, "this include comes back to itself")
                    .help(format!("{}: break the circle", circle.join(" includes "))),
            );
            return None;
        }
        // Read once: its mistakes would otherwise be reported for each file that includes it.
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
                self.findings.add(
                    Finding::new(place, why).help("paths are relative to the file that includes"),
                );
                None
            }
        };
        self.trees.insert(path, tree.clone());
        tree
    }
}

fn include(node: &Node) -> Option<(String, Place)> {
    node.text().map(|text| (text.to_owned(), node.place))
}

/// A path without `.` and, where a folder precedes it, without `..`. Links are not followed:
/// this room has no file system.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    // By its text alone, because this crate has no file system; a link in the path is not followed.
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                // Only a name can be taken back: `../..` leads further up.
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    if tidy.as_os_str().is_empty() {
        tidy.push(Component::CurDir);
    }
    tidy
}

/// A choice of how requests arrive, and the keys that belong to the other choices.
const LOAD_CHOICES: [(&str, &[&str]); 5] = [
    (
        "connections",
        &["rate", "phases", "arrival", "connections-max"],
    ),
    ("rate", &["connections", "phases"]),
    ("phases", &["connections", "rate", "duration"]),
    ("requests", &["scenario"]),
    ("scenario", &["requests"]),
];

/// Two trees as one. Where both say something, `over` wins.
pub(crate) fn merge(base: Node, over: Node) -> Node {
    let place = over.place;
    match (base.value, over.value) {
        (Value::Map(base), Value::Map(over)) => Node {
            place,
            value: Value::Map(merge_entries(base, over)),
        },
        (_, value) => Node { place, value },
    }
}

fn merge_entries(base: Vec<Entry>, over: Vec<Entry>) -> Vec<Entry> {
    merge_each(base, over, |key, mut lower, upper| {
        if key == "load"
            && let Value::Map(inherited) = &mut lower.value
        {
            for (_, others) in LOAD_CHOICES
                .iter()
                .filter(|(choice, _)| upper.entry(choice).is_some())
            {
                // What an included file says of another choice would contradict the one made here.
                inherited.retain(|inherited| !others.contains(&inherited.key.as_str()));
            }
        }
        match key {
            "settings" => choices::merge_settings(lower, upper),
            _ => merge(lower, upper),
        }
    })
}

/// The entries of both, in the order of the first; `both` makes one node of an entry that both have.
pub(crate) fn merge_each(
    base: Vec<Entry>,
    over: Vec<Entry>,
    both: impl Fn(&str, Node, Node) -> Node,
) -> Vec<Entry> {
    let mut merged = base;
    for entry in over {
        let Some(below) = merged.iter_mut().find(|below| below.key == entry.key) else {
            merged.push(entry);
            continue;
        };
        // Mistakes about the key are shown where its value comes from.
        below.key_place = entry.key_place;
        // A stand-in for the moment in which the node is moved out of the list.
        let nothing = Node::reported(below.node.place);
        let lower = std::mem::replace(&mut below.node, nothing);
        below.node = both(&entry.key, lower, entry.node);
    }
    merged
}
