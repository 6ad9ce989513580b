//! The rules of the repository as tests. Each failure names the file and the rule.
//!
//! Rules about code that rustc and clippy can check are lints in `Cargo.toml`. The rules here are about the
//! whole repository: allowed imports, pure crates, and forbidden content of files.

mod circles;
mod coprocessors;
mod english;
mod fail_closed;
mod graph;
mod links;
mod names;

use std::fs;
use std::path::Path;

use crate::repository::root;
use circles::Imports;
use graph::Graph;

/// Allowed imports inside `crates/` (design: "an arrow means may import").
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("schedule", &["model"]),
    ("grpc-schema", &[]),
    ("lab", &["model", "schedule", "grpc-schema"]),
    ("recording", &["model", "stats"]),
    ("analysis", &["model", "stats", "recording"]),
    ("report", &["model", "stats", "recording", "analysis"]),
    ("load", &["model", "schedule", "stats", "grpc-schema"]),
    ("cluster", &["model"]),
    ("rig", &["model"]),
    ("engine", &[]),
    ("k6-script", &[]),
    (
        "experiment",
        &[
            "model",
            "lab",
            "schedule",
            "grpc-schema",
            "stats",
            "recording",
            "analysis",
            "report",
            "load",
            "rig",
            "cluster",
            "engine",
        ],
    ),
    (
        "weigh",
        &[
            "model",
            "lab",
            "schedule",
            "grpc-schema",
            "stats",
            "recording",
            "analysis",
            "report",
            "load",
            "rig",
            "cluster",
            "engine",
            "k6-script",
            "experiment",
        ],
    ),
];

/// Folders of the gateway, of the other services, and of the crates that they share.
const SYSTEMS: [&str; 3] = ["gateway", "services", "service-kit"];

/// Folders of `crates/` without sockets, clock or environment. The crates in `formats/` are pure, too.
const PURE: &[&str] = &[
    "model",
    "stats",
    "schedule",
    "grpc-schema",
    "lab",
    "recording",
    "analysis",
    "report",
];

/// Crates that bring sockets, a clock or an operating system with them.
const IMPURE_CRATES: &[&str] = &[
    "tokio",
    "mio",
    "socket2",
    "rustix",
    "nix",
    "hyper",
    "reqwest",
    "async-std",
    "smol",
    "signal-hook",
    "chrono",
    "getrandom",
    "rand",
];

/// Names that the sources of a pure crate must not contain.
const IMPURE_PATHS: &[&str] = &[
    // An address is a plain value and allowed. A type that opens a connection to it is not.
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "ToSocketAddrs",
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "std::os::",
];

#[test]
fn crates_import_only_along_the_arrows() {
    let graph = Graph::load();
    let rooms: Vec<&str> = MAY_IMPORT.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in MAY_IMPORT {
        for import in graph.direct(name) {
            assert!(
                !rooms.contains(&import.as_str()) || allowed.contains(&import.as_str()),
                "crates/{name} imports `{import}`; ARCHITECTURE.md allows only {allowed:?}"
            );
        }
    }
}

#[test]
fn every_crate_of_the_instrument_has_its_arrows_written_down() {
    for name in Graph::load().members_below("crates/") {
        assert!(
            MAY_IMPORT.iter().any(|(known, _)| *known == name),
            "crates/{name} is new: add it to MAY_IMPORT and to ARCHITECTURE.md"
        );
    }
}

#[test]
fn systems_and_end_to_end_tests_do_not_link_the_instrument() {
    let graph = Graph::load();
    let outside = SYSTEMS.into_iter().chain(["tests"]);
    for name in outside.flat_map(|folder| graph.members_below(&format!("{folder}/"))) {
        for (room, _) in MAY_IMPORT {
            assert!(
                !graph.reach_with_dev(&name).contains(*room),
                "`{name}` links to crates/{room}; what is weighed and what tests it reach the \
                 instrument through processes and sockets only"
            );
        }
    }
}

#[test]
fn formats_import_nothing_of_ours() {
    let graph = Graph::load();
    for name in graph.members_below("formats/") {
        for other in graph.members_below("") {
            assert!(
                other == name || !graph.reach_with_dev(&name).contains(&other),
                "formats/{name} links to `{other}`; the instrument and what it weighs share the \
                 reading of files and nothing else"
            );
        }
    }
}

#[test]
fn pure_rooms_pull_in_nothing_impure() {
    let graph = Graph::load();
    for (name, folder) in pure_rooms(&graph) {
        let reach = graph.reach(&name);
        for banned in IMPURE_CRATES {
            assert!(
                !reach.contains(*banned),
                "{folder} is pure, yet `{banned}` is among its dependencies"
            );
        }
    }
}

/// Names and folders of all pure crates.
fn pure_rooms(graph: &Graph) -> Vec<(String, String)> {
    let of_crates = PURE
        .iter()
        .map(|name| ((*name).to_owned(), format!("crates/{name}")));
    let formats = graph.members_below("formats/").into_iter();
    of_crates
        .chain(formats.map(|name| (name.clone(), format!("formats/{name}"))))
        .collect()
}

#[test]
fn pure_rooms_name_no_clock_socket_or_environment() {
    for (_, folder) in pure_rooms(&Graph::load()) {
        for file in tracked(&format!("{folder}/src")) {
            if is_test_source(&file) {
                continue;
            }
            let text = read(&file);
            // Tests may use these names.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                // A comment may mention a clock.
                let line = line.split("//").next().unwrap_or_default();
                for banned in IMPURE_PATHS {
                    assert!(
                        !line.contains(banned),
                        "{file}:{}: {folder} is pure and may not use `{banned}`",
                        number + 1
                    );
                }
            }
        }
    }
}

#[test]
fn files_of_a_crate_import_in_no_circle() {
    let graph = Graph::load();
    let roots = ["crates", "formats", "xtask"].into_iter().chain(SYSTEMS);
    let mut found = Vec::new();
    for folder in roots.flat_map(|root| graph.folders_below(&format!("{root}/"))) {
        let below = format!("{folder}/src/");
        let sources: Vec<(String, String)> = tracked(&below)
            .into_iter()
            .filter(|file| file.ends_with(".rs") && !is_test_source(file))
            .map(|file| (file[below.len()..].to_owned(), read(&file)))
            .collect();
        assert!(!sources.is_empty(), "{folder} has no sources");
        let circles = Imports::of(&sources).circles();
        found.extend(circles.iter().map(|circle| format!("{folder}: {circle:?}")));
    }
    assert!(
        found.is_empty(),
        "files import in a circle. Move the names that both files need into a file of their own:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_dependency_has_its_sentence() {
    let manifest = read("Cargo.toml");
    let section = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .expect("the root manifest lists dependencies");
    for line in section.lines() {
        // A crate of our own needs no sentence, because it has a header.
        let is_entry = line.contains(" = ") && !line.contains("{ path =");
        assert!(
            !is_entry || line.contains("# ") || line.trim_start().starts_with('#'),
            "Cargo.toml: say in one sentence what this is for: {line}"
        );
    }
}

#[test]
fn names_of_files_say_what_they_hold() {
    const EMPTY_NAMES: &[&str] = &[
        "mod.rs",
        "imp.rs",
        "utils.rs",
        "util.rs",
        "helpers.rs",
        "common.rs",
        "misc.rs",
        "shared.rs",
        "types.rs",
        "models.rs",
        "core.rs",
    ];
    for file in tracked("") {
        let name = Path::new(&file).file_name().and_then(|name| name.to_str());
        assert!(
            !name.is_some_and(|name| EMPTY_NAMES.contains(&name)),
            "{file}: this name says nothing; name the content"
        );
    }
}

#[test]
fn mains_are_thin() {
    for file in tracked("") {
        if file.ends_with("src/main.rs") {
            let lines = read(&file).lines().count();
            assert!(
                lines <= 40,
                "{file} has {lines} lines; a main has at most 40"
            );
        }
    }
}

#[test]
fn lab_files_name_their_schema() {
    for file in tracked("labs") {
        if !file.ends_with(".yaml") {
            continue;
        }
        let text = read(&file);
        if text.lines().any(|line| line.starts_with("question:")) {
            assert!(
                text.starts_with("# yaml-language-server: $schema="),
                "{file}: a lab starts with `# yaml-language-server: $schema=…/schemas/lab.schema.json`"
            );
        }
    }
}

#[test]
fn no_file_speaks_of_the_machine_it_was_written_on() {
    // Written in two halves so that this file passes its own test.
    let banned = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("registry.npm", "js.org"),
        concat!("index.crates", ".io"),
    ];
    for file in tracked("") {
        let Ok(text) = fs::read_to_string(root().join(&file)) else {
            continue;
        };
        for word in banned {
            assert!(!text.contains(word), "{file} contains `{word}`");
        }
    }
}

#[test]
fn heavy_crates_are_built_once() {
    const HEAVY: &[&str] = &[
        "tokio",
        "hyper",
        "h2",
        "rustls",
        "ring",
        "regex-automata",
        "async-graphql",
        "juniper",
    ];
    let lock = read("Cargo.lock");
    for name in HEAVY {
        let copies = lock.matches(&format!("name = \"{name}\"\n")).count();
        assert!(
            copies <= 1,
            "Cargo.lock holds {copies} versions of `{name}`"
        );
    }
}

fn is_test_source(file: &str) -> bool {
    file.ends_with("tests.rs") || file.ends_with("props.rs") || file.contains("/tests/")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Files below `folder`. All files if it is empty.
fn tracked(folder: &str) -> Vec<String> {
    // Git takes no empty path.
    let folder = if folder.is_empty() { "." } else { folder };
    crate::repository::tracked(folder).expect("git lists the files")
}
