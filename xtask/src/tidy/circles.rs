//! Circles of imports between the files of one crate.
//!
//! Imports between a file and a file in the folder of its name do not count. A parent lists its parts and
//! gives them its types, and a reader has them open together.
//!
//! A name counts as taken from the file that declares it. If a module passes a name on (`pub use`), the name
//! is followed to its origin.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_source::{Kind, Token, code, without_tests};

/// The files of a crate by their module paths: `[]` is `lib.rs` or `main.rs`.
pub(super) struct Imports {
    /// The `use` items of each module, with complete paths.
    items: BTreeMap<Vec<String>, Vec<Item>>,
}

/// One name that a `use` line imports.
struct Item {
    /// Path from the root of the crate.
    path: Vec<String>,
    /// Name of the item in this module.
    name: String,
    /// True if other modules may take it from here.
    is_passed_on: bool,
}

impl Imports {
    /// Reads the imports of sources, given by their path below `src/`. Tests are left out.
    pub(super) fn of(sources: &[(String, String)]) -> Imports {
        let modules: BTreeSet<Vec<String>> =
            sources.iter().map(|(path, _)| module_of(path)).collect();
        let items = sources.iter().map(|(path, text)| {
            let module = module_of(path);
            let items = items(&module, text, &modules);
            (module, items)
        });
        Imports {
            items: items.collect(),
        }
    }

    /// Each circle as its files in alphabetical order.
    pub(super) fn circles(&self) -> Vec<Vec<String>> {
        let arrows: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> = self
            .items
            .iter()
            .map(|(file, items)| {
                let targets = items.iter().filter(|item| !item.is_passed_on);
                let targets = targets.filter_map(|item| self.declared_in(&item.path, 0));
                let are_apart =
                    |target: &Vec<String>| !target.starts_with(file) && !file.starts_with(target);
                (file, targets.filter(are_apart).collect())
            })
            .collect();
        let reach: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> = arrows
            .keys()
            .map(|file| (*file, reached(&arrows, file)))
            .collect();
        let mut circles = BTreeSet::new();
        for (file, reached) in &reach {
            // Both ways: all files that it reaches and that reach it.
            let circle: Vec<&Vec<String>> = reached
                .iter()
                .filter(|other| reach.get(**other).is_some_and(|back| back.contains(file)))
                .copied()
                .collect();
            if !circle.is_empty() {
                circles.insert(circle.iter().map(|file| file.join("::")).collect());
            }
        }
        circles.into_iter().collect()
    }

    /// The module with the file that declares the item of a path. `None` if the item is not part of the
    /// crate.
    fn declared_in(&self, path: &[String], depth: usize) -> Option<Vec<String>> {
        let known = (0..=path.len())
            .rev()
            .find(|end| self.items.contains_key(&path[..*end]))?;
        let module = &path[..known];
        // The path names a module as a whole, or an item that the module declares itself.
        let Some(name) = path.get(known) else {
            return Some(module.to_vec());
        };
        let passed_on = self.items[module]
            .iter()
            .find(|item| item.is_passed_on && item.name == *name);
        match passed_on {
            // No crate passes a name on more often. A circle of `pub use` would not compile.
            Some(item) if depth < 8 => self.declared_in(&item.path, depth + 1),
            _ => Some(module.to_vec()),
        }
    }
}

/// All files that the arrows reach, including the file itself if they lead back.
fn reached<'a>(
    arrows: &'a BTreeMap<&Vec<String>, BTreeSet<Vec<String>>>,
    from: &'a Vec<String>,
) -> BTreeSet<&'a Vec<String>> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in arrows.get(file).into_iter().flatten() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

/// The module of a file: `summary/check.rs` is `[summary, check]`.
fn module_of(path: &str) -> Vec<String> {
    match path.trim_end_matches(".rs") {
        "lib" | "main" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

/// The `use` items of a source, without the items of its tests.
fn items(module: &[String], text: &str, modules: &BTreeSet<Vec<String>>) -> Vec<Item> {
    // Tests may import any file of their crate.
    let code = &without_tests(&code(text));
    let mut items = Vec::new();
    // The end of the last `use` line, so that its paths are read once.
    let mut read_until = 0;
    for (index, token) in code.iter().enumerate() {
        if token.kind != Kind::Word || index < read_until {
            continue;
        }
        if token.text != "use" {
            let path = path_at(code, index).and_then(|path| whole(module, &path, modules));
            items.extend(path.map(|path| Item {
                path,
                name: String::new(),
                is_passed_on: false,
            }));
            continue;
        }
        // `pub use`, `pub(crate) use`.
        let before = index.checked_sub(1).map(|before| code[before].text);
        let is_passed_on = matches!(before, Some("pub" | ")"));
        let line: Vec<&str> = code[index + 1..]
            .iter()
            .map(|token| token.text)
            .take_while(|text| *text != ";")
            .collect();
        read_until = index + 1 + line.len();
        for (path, name) in paths(&line) {
            if let Some(path) = whole(module, &path, modules) {
                items.push(Item {
                    path,
                    name,
                    is_passed_on,
                });
            }
        }
    }
    items
}

/// The path that begins with this word in the middle of code: `child::function`.
fn path_at(code: &[Token<'_>], from: usize) -> Option<Vec<String>> {
    let is_within = from
        .checked_sub(1)
        .is_some_and(|before| code[before].text == ":");
    let rest = &code[from..];
    let is_path = |at: usize| {
        let marks = rest.get(at..at + 2);
        marks.is_some_and(|marks| marks.iter().all(|mark| mark.text == ":"))
    };
    if is_within || !is_path(1) {
        return None;
    }
    let mut path = vec![rest[0].text.to_owned()];
    let mut at = 1;
    while is_path(at) {
        // If a type follows, the next token is `<`.
        let Some(word) = rest.get(at + 2).filter(|word| word.kind == Kind::Word) else {
            break;
        };
        path.push(word.text.to_owned());
        at += 3;
    }
    Some(path)
}

/// Every path of a `use` tree, with its local name.
fn paths(tree: &[&str]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let (mut prefixes, mut path): (Vec<Vec<String>>, Vec<String>) = (Vec::new(), Vec::new());
    let mut alias = None;
    let mut words = tree.iter().copied();
    let mut end = |path: &mut Vec<String>, alias: &mut Option<String>, prefix: &[String]| {
        // `{self, x}` names the module itself.
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        if path.len() > prefix.len() || path.last().is_some_and(|_| !path.is_empty()) {
            let name = alias.take().or_else(|| path.last().cloned());
            found.extend(name.map(|name| (path.clone(), name)));
        }
        *path = prefix.to_vec();
    };
    let mut is_closed = false;
    while let Some(word) = words.next() {
        match word {
            ":" => {}
            "{" => prefixes.push(path.clone()),
            "," | "}" => {
                let prefix = prefixes.last().cloned().unwrap_or_default();
                // There is no item between two closing braces, or after one.
                if !is_closed && path.len() > prefix.len() {
                    end(&mut path, &mut alias, &prefix);
                }
                is_closed = word == "}";
                if is_closed {
                    prefixes.pop();
                }
                path = prefixes.last().cloned().unwrap_or_default();
                continue;
            }
            "as" => alias = words.next().map(str::to_owned),
            word => path.push(word.to_owned()),
        }
        is_closed = false;
    }
    if !is_closed && !path.is_empty() {
        end(&mut path, &mut alias, &[]);
    }
    found
}

/// A path from the root of the crate. `None` if it leads out of the crate.
fn whole(
    module: &[String],
    path: &[String],
    modules: &BTreeSet<Vec<String>>,
) -> Option<Vec<String>> {
    let first = path.first()?;
    let ups = path.iter().take_while(|part| *part == "super").count();
    if ups > 0 {
        let kept = module.len().checked_sub(ups)?;
        return Some([&module[..kept], &path[ups..]].concat());
    }
    match first.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        // A child of this module.
        _ => {
            let child = [module, &path[..1]].concat();
            modules.contains(&child).then(|| [module, path].concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<(String, String)> = sources
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        Imports::of(&sources).circles()
    }

    #[test]
    fn a_circle_is_found_through_any_number_of_files() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use std::fmt; use crate::{c::{self, C as D}, d};"),
            ("c.rs", "use super::a::A;"),
            ("d.rs", "use std::mem;"),
        ]);
        assert_eq!(found, [["a", "b", "c"]]);
    }

    #[test]
    fn a_name_that_is_passed_on_counts_for_the_file_that_declares_it() {
        let parent = "mod child; pub use child::Word; use crate::leaf;";
        let through = |leaf: &str| {
            circles(&[
                ("lib.rs", "mod parent; mod leaf;"),
                ("parent.rs", parent),
                ("parent/child.rs", ""),
                ("leaf.rs", leaf),
            ])
        };
        assert!(through("use crate::parent::Word;").is_empty());
        assert_eq!(through("use crate::parent::Own;"), [["leaf", "parent"]]);
    }

    #[test]
    fn a_path_in_the_middle_of_code_is_an_arrow() {
        let found = circles(&[
            ("lib.rs", ""),
            ("a.rs", "fn f() { crate::b::g::<u8>(); }"),
            ("b.rs", "fn g<T>() -> Option<super::a::A> { None }"),
        ]);
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn what_tests_import_is_no_arrow() {
        let found = circles(&[
            ("lib.rs", ""),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_parent_and_its_children_are_no_circle() {
        let found = circles(&[
            ("lib.rs", ""),
            ("a.rs", "mod b; use b::B; struct A;"),
            ("a/b.rs", "use super::A; use crate::c::C;"),
            ("c.rs", ""),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
