//! `weigh init --from NAME`: a copy of a lab of the gallery, with the files that it needs.
//!
//! The program contains the gallery, so that a copy needs no clone of the repository.

mod files;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use experiment::exit::Failure;
use experiment::files::Unwritten;
use lab::Lab;
use yaml_with_places::{Document, Findings, Node, did_you_mean, line_and_column, read};

use files::FILES;

/// The first line of a lab in the repository. It names the schema there.
const SCHEMA_LINE: &str = "# yaml-language-server:";

/// The folder of programs that `./setup layers` installs, as the gallery writes it.
const PROGRAMS: &str = "\"{{lab.folder}}/.programs/bin/";

/// The end of a line with such a program.
const INSTALLED: &str = "\"   # from `./setup layers`";

/// The system that a user replaces, if a lab has it. Otherwise the user replaces the target.
const SERVICE: &str = "service";

/// A copy of a lab that is not written yet.
#[derive(Debug)]
pub(super) struct LabCopy {
    /// The path of the lab within the copy.
    pub(super) lab: PathBuf,
    /// All files with their contents, the lab first.
    pub(super) files: Unwritten,
}

/// A line that a user changes.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    file: PathBuf,
    line: usize,
    advice: String,
}

/// Returns a copy of the lab with this name.
///
/// # Errors
///
/// When the gallery has no such lab.
pub(super) fn copy(name: &str) -> Result<LabCopy, Failure> {
    if !names().any(|known| known == name) {
        let hint = did_you_mean(name, names()).map_or_else(String::new, |hint| format!(" {hint}"));
        let all: Vec<&str> = names().collect();
        return Err(Failure::bad_input(format!(
            "expected the name of a lab of the gallery, found `{name}`.{} The labs are {}",
            hint.replace(" did", " Did"),
            all.join(", ")
        )));
    }
    let lab = format!("{name}.yaml");
    let mut needed: Vec<&str> = needed(&lab).into_iter().collect();
    needed.sort_by_key(|path| *path != lab);
    let files = needed.into_iter().map(|path| {
        let content = content(path).expect("a name of the list");
        (PathBuf::from(path), own(path, &lab, content))
    });
    Ok(LabCopy {
        files: Unwritten(files.collect()),
        lab: PathBuf::from(lab),
    })
}

/// The names of all labs: the files at the top of the gallery with a question.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let labs = FILES.iter().filter(|(path, content)| {
        let text = String::from_utf8_lossy(content);
        !path.contains('/') && text.lines().any(|line| line.starts_with("question:"))
    });
    labs.filter_map(|(path, _)| path.strip_suffix(".yaml"))
}

fn content(path: &str) -> Option<&'static [u8]> {
    let found = FILES.iter().find(|(known, _)| *known == path)?;
    Some(found.1)
}

/// The paths of a lab and of all files that it needs.
fn needed(lab: &str) -> BTreeSet<&'static str> {
    let mut needed = BTreeSet::new();
    let mut open: Vec<&'static str> = FILES
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| *path == lab)
        .collect();
    while let Some(path) = open.pop() {
        if !needed.insert(path) {
            continue;
        }
        // Other files than labs name only files of their own folder.
        let is_yaml = Path::new(path).extension().is_some_and(|it| it == "yaml");
        let Some(text) = content(path).filter(|_| is_yaml) else {
            continue;
        };
        let text = String::from_utf8_lossy(text);
        let named = FILES.iter().map(|(path, _)| *path);
        open.extend(named.filter(|other| is_named(other, &text)));
    }
    needed
}

/// True if a text names a file at the top of the gallery, or the folder of a file.
fn is_named(path: &str, text: &str) -> bool {
    match path.split_once('/') {
        Some((folder, _)) => {
            let begins = |before: &str| !before.ends_with(|c: char| is_of_path(c) || c == '/');
            let inside = format!("{folder}/");
            let mut places = text.match_indices(&inside);
            let is_folder = format!("folder: {folder}");
            places.any(|(at, _)| begins(&text[..at]))
                || text.lines().any(|line| line.trim() == is_folder)
        }
        // Another lab is not part of it, and pages are for readers of the repository.
        None => {
            Path::new(path).extension().is_some_and(|it| it == "sh") && {
                text.contains(&format!("./{path}"))
            }
        }
    }
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The content of a file in a copy, which has no schema and no folder of installed programs.
fn own(path: &str, lab: &str, content: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(content) else {
        return content.to_vec();
    };
    if Path::new(path).extension().is_none_or(|it| it != "yaml") {
        return content.to_vec();
    }
    let mut copy = String::new();
    if path == lab {
        copy += "# A copy from the gallery of Weighbridge. It runs from this folder.\n";
    }
    for line in text.lines().filter(|line| !line.starts_with(SCHEMA_LINE)) {
        match line.split_once(PROGRAMS) {
            // A user has the program on PATH.
            Some((key, program)) => {
                let program = program.replace(INSTALLED, "");
                let _ = writeln!(copy, "{key}{program}   # on PATH, or a path");
            }
            None => {
                copy += line;
                copy.push('\n');
            }
        }
    }
    copy.into_bytes()
}

impl LabCopy {
    /// The printed text: the files, the lines to change, and the next commands. `out` is the folder of the copy.
    pub(super) fn next(&self, lab: &Lab, out: &Path) -> String {
        let path = out.join(&self.lab).display().to_string();
        let others = self.files.0.len() - 1;
        let mut text = format!("Wrote {path} and {others} files that it needs\n\n");
        text += "For your own service, change these lines\n";
        for Change { file, line, advice } in self.changes(lab) {
            let file = out.join(file);
            let _ = writeln!(text, "  {}:{line}\n      {advice}", file.display());
        }
        let _ = write!(
            text,
            "
Next commands
  weigh check {path}
      proves that every variant answers correctly, or names missing programs
  weigh lab {path}
      measures the differences
"
        );
        text
    }

    /// The lines that a user changes for a service of their own, in the order of the files.
    fn changes(&self, lab: &Lab) -> Vec<Change> {
        let is_declared = lab.systems.iter().any(|system| system.name == SERVICE);
        let service = if is_declared { SERVICE } else { &lab.target };
        let mut changes = Vec::new();
        for (file, content) in &self.files.0 {
            let text = String::from_utf8_lossy(content);
            let is_yaml = file.extension().is_some_and(|it| it == "yaml");
            let Some(root) = tree(&text).filter(|_| is_yaml) else {
                continue;
            };
            let mut change = |line: usize, advice: String| {
                changes.push(Change {
                    file: file.clone(),
                    line,
                    advice,
                });
            };
            let keys: [(&[&str], String); 4] = [
                (
                    &["load"],
                    "the load. Add `path`, `method` and `headers` of your requests".to_owned(),
                ),
                (&["expect"], "the answers that you expect".to_owned()),
                (
                    &["systems", service, "build"],
                    format!("the build of `{service}`. Remove it if yours is built"),
                ),
                (
                    &["systems", service, "run"],
                    format!(
                        "the command of `{service}`. Yours receives its address by {{{{addr}}}}, \
                         {{{{port}}}} or {{{{url}}}}"
                    ),
                ),
            ];
            for (key, advice) in keys {
                if let Some(entry) = root.at(key) {
                    change(line_and_column(&text, entry.key_place.start).0, advice);
                }
            }
            let asked = format!("ask: \"{{{{{service}.");
            for (index, line) in text.lines().enumerate() {
                if line.contains(&asked) {
                    change(
                        index + 1,
                        format!(
                            "a proof by a counter of `{service}`. Name a counter of yours, or remove it"
                        ),
                    );
                }
            }
        }
        changes
    }
}

/// The tree of a text. `None` for a template that is not YAML.
fn tree(text: &str) -> Option<Node> {
    match read(0, text, "", &mut Findings::default()) {
        Document::Tree(root) => Some(root),
        Document::Empty | Document::Unreadable => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use generated::assert_generated;

    use super::*;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/layers");

    /// Files of the repository that no copy needs.
    const OMITTED: [&str; 3] = ["README.md", "RESULTS.md", "envoy.txt"];
    /// Folders of the repository that no copy needs.
    const FOLDERS_OMITTED: [&str; 3] = ["records", "build", "node_modules"];

    fn paths(folder: &Path, paths: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.starts_with('.') || name.starts_with("__") {
                continue;
            }
            if path.is_dir() && !FOLDERS_OMITTED.contains(&name) {
                self::paths(&path, paths);
            } else if path.is_file() && !OMITTED.contains(&name) {
                let path = path.strip_prefix(ROOT).unwrap();
                paths.push(path.to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn the_program_contains_every_file_of_the_gallery() {
        let mut all = Vec::new();
        paths(Path::new(ROOT), &mut all);
        all.sort();
        let mut text = "//! The files of the gallery. Made by `cargo xtask schema`.\n\n\
             /// A file of `labs/layers` with its content.\nmacro_rules! file {\n    ($path:literal) => {\n        (\n            \
             $path,\n            include_bytes!(concat!(\"../../../../../../labs/layers/\", $path)).as_slice(),\n        )\n    };\n}\n\n\
             /// All files by their paths within the gallery.\npub(super) const FILES: &[(&str, &[u8])] = &[\n"
            .to_owned();
        for path in all {
            let _ = writeln!(text, "    file!(\"{path}\"),");
        }
        text += "];\n";
        assert_generated("crates/weigh/src/command/init/gallery/files.rs", &text);
    }

    fn parsed(copy: &LabCopy) -> Lab {
        lab::parse(&copy.lab, &copy.files).unwrap_or_else(|it| panic!("{}", it.render(false)))
    }

    #[test]
    fn a_copy_of_each_lab_is_right_and_has_the_files_of_its_commands() {
        let names: Vec<&str> = names().collect();
        assert!(names.len() >= 15, "{names:?}");
        for name in names {
            let copy = copy(name).unwrap();
            let lab = parsed(&copy);
            let has = |path: &str| {
                copy.files
                    .0
                    .iter()
                    .any(|(known, _)| known == Path::new(path))
            };
            for (path, content) in &copy.files.0 {
                let text = String::from_utf8_lossy(content);
                let is_of_go = path.ends_with("go.mod");
                for word in [".programs", "labs/layers", SCHEMA_LINE] {
                    // The name of a module is no path.
                    if is_of_go {
                        continue;
                    }
                    assert!(!text.contains(word), "{name}: {}: {word}", path.display());
                }
            }
            for setup in lab.all().flat_map(lab::Variant::systems) {
                let builds = setup.build.iter().flatten();
                for word in builds
                    .chain(setup.command())
                    .chain(setup.version.iter().flatten())
                {
                    // Each file of the gallery that a command names is in the copy.
                    let word = word.to_string();
                    let path = setup.folder.join(word.trim_start_matches("./"));
                    let path = path.to_str().unwrap().trim_start_matches("./").to_owned();
                    assert!(
                        content(&path).is_none() || has(&path),
                        "{name}: {path} is missing"
                    );
                }
                let folder = setup.folder.to_str().unwrap();
                let is_top = matches!(folder, "" | ".");
                let inside = |(path, _): &(PathBuf, Vec<u8>)| path.starts_with(folder);
                assert!(
                    is_top || copy.files.0.iter().any(inside),
                    "{name}: {folder}"
                );
            }
        }
    }

    #[test]
    fn a_copy_has_only_files_that_its_lab_needs() {
        let files = |name: &str| {
            let copy = copy(name).unwrap();
            let paths = copy
                .files
                .0
                .into_iter()
                .map(|(path, _)| path.display().to_string());
            paths.collect::<Vec<_>>()
        };
        assert_eq!(
            files("prometheus-client"),
            [
                "prometheus-client.yaml",
                "prometheus-client/package-lock.json",
                "prometheus-client/package.json",
                "prometheus-client/server.mjs"
            ]
        );
        let sidecar = files("envoy-sidecar");
        for path in [
            "installed.sh",
            "certificates.sh",
            "envoy-sidecar/services/main.go",
        ] {
            assert!(sidecar.contains(&path.to_owned()), "{path}: {sidecar:?}");
        }
        assert!(!sidecar.iter().any(|path| path.starts_with("proxies")));
        let tls = files("proxy-tls");
        assert!(tls.contains(&"proxies/systems.yaml".to_owned()), "{tls:?}");
        assert!(!tls.contains(&"proxies.yaml".to_owned()), "{tls:?}");
    }

    #[test]
    fn an_unknown_name_lists_the_labs() {
        let error = copy("envoy-sidcar").unwrap_err().message;
        for words in [
            "found `envoy-sidcar`. Did you mean `envoy-sidecar`?",
            "access-logs, ",
        ] {
            assert!(error.contains(words), "{words}\n{error}");
        }
    }

    #[test]
    fn the_lines_to_change_are_those_of_the_service() {
        for name in names() {
            let copy = copy(name).unwrap();
            let changes = copy.changes(&parsed(&copy));
            let line_of = |words: &str| {
                let found = changes.iter().find(|it| it.advice.contains(words));
                let found = found.unwrap_or_else(|| panic!("{name}: {words}\n{changes:?}"));
                let (_, content) = copy.files.0.iter().find(|it| it.0 == found.file).unwrap();
                let text = String::from_utf8_lossy(content).into_owned();
                text.lines().nth(found.line - 1).unwrap().trim().to_owned()
            };
            assert!(line_of("the command of").starts_with("run:"), "{name}");
            assert!(line_of("the load").starts_with("load:"), "{name}");
        }
        let copy = copy("envoy-sidecar").unwrap();
        let text = copy.next(&parsed(&copy), Path::new("labs/mine"));
        for words in [
            "Wrote labs/mine/envoy-sidecar.yaml and ",
            "  labs/mine/envoy-sidecar.yaml:5\n      the load.",
            "the command of `service`",
            "weigh lab labs/mine/envoy-sidecar.yaml\n",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}
