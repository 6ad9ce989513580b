//! Links between the folders of systems, and between the halves of the gateway (decision 13).

use std::collections::{BTreeMap, BTreeSet};

use super::graph::Graph;
use super::{read, tracked};

/// The crates of merged schemas.
const MERGED: &str = "gateway/merged/";

/// Links from other crates to the crates of merged schemas.
const INTO_MERGED: [(&str, &str); 2] = [
    // The program chooses the half that serves a configuration.
    ("gateway", "gateway-import"),
    ("gateway", "gateway-remote"),
];

/// Crates of the gateway that reach no crate of merged schemas, not even through another crate.
const WITHOUT_MERGED: [&str; 8] = [
    "gateway-audit",
    "gateway-config",
    "gateway-extensions",
    "gateway-federation",
    "gateway-hop",
    "gateway-telemetry",
    "gateway-template",
    "gateway-upstream",
];

/// Files of the program that know both halves, because they choose between them.
const CHOOSING: [&str; 7] = [
    "gateway/src/graphql/engine.rs",
    "gateway/src/graphql/execution.rs",
    "gateway/src/http/front.rs",
    "gateway/src/process/generation.rs",
    "gateway/src/process/loader.rs",
    "gateway/src/process/startup.rs",
    "gateway/src/process/worker.rs",
];

/// Imports of crates: the name of a crate, and the names that it imports itself.
type Imported = BTreeMap<String, BTreeSet<String>>;

/// Mistakes in the links from other crates into a family of crates. A link must be in `allowed`, and each
/// link of `allowed` must exist.
fn mistakes(
    imports: &Imported,
    family: &BTreeSet<String>,
    allowed: &[(&str, &str)],
) -> Vec<String> {
    let outside = imports.iter().filter(|(name, _)| !family.contains(*name));
    let links: BTreeSet<(&str, &str)> = outside
        .flat_map(|(name, targets)| {
            let targets = targets.iter().filter(|target| family.contains(*target));
            targets.map(|target| (name.as_str(), target.as_str()))
        })
        .collect();
    let allowed: BTreeSet<(&str, &str)> = allowed.iter().copied().collect();
    let new = links.difference(&allowed);
    let gone = allowed.difference(&links);
    new.map(|(name, target)| format!("`{name}` imports `{target}`"))
        .chain(gone.map(|(name, target)| format!("`{name}` no longer imports `{target}`")))
        .collect()
}

/// Direct imports of all crates of the workspace, with the imports of their tests.
fn imports(graph: &Graph) -> Imported {
    let members = graph.members_below("").into_iter();
    members
        .map(|name| (name.clone(), graph.direct(&name)))
        .collect()
}

fn family(graph: &Graph, folder: &str) -> BTreeSet<String> {
    let members: BTreeSet<String> = graph.members_below(folder).into_iter().collect();
    assert!(
        !members.is_empty(),
        "expected crates in {folder}, found none"
    );
    members
}

#[test]
fn the_federated_half_does_not_know_the_merged_half() {
    let graph = Graph::load();
    let merged = family(&graph, MERGED);
    let found = mistakes(&imports(&graph), &merged, &INTO_MERGED);
    assert!(
        found.is_empty(),
        "the links into {MERGED} differ from INTO_MERGED in xtask/src/tidy/links.rs:\n{}",
        found.join("\n")
    );
    for name in WITHOUT_MERGED {
        let reached = graph.reach_with_dev(name);
        let reached: Vec<&String> = reached.intersection(&merged).collect();
        assert!(
            reached.is_empty(),
            "`{name}` belongs to the federated half, yet it links to {reached:?} of {MERGED}"
        );
    }
}

#[test]
fn few_files_of_the_gateway_know_both_halves() {
    const NAMES: [&str; 3] = ["crate::merged", "gateway_import", "gateway_remote"];
    let files = tracked("gateway/src").into_iter();
    let files = files.filter(|file| !file.starts_with("gateway/src/merged/"));
    let mut knowing: Vec<String> = files
        .filter(|file| {
            let text = read(file);
            NAMES.iter().any(|name| text.contains(name))
        })
        .collect();
    knowing.sort_unstable();
    assert_eq!(
        knowing, CHOOSING,
        "the files that name merged schemas (left) differ from CHOOSING in xtask/src/tidy/links.rs (right)"
    );
}

#[test]
fn services_and_the_gateway_meet_only_through_sockets() {
    let graph = Graph::load();
    let imports = imports(&graph);
    let services = family(&graph, "services/");
    let mut programs: Vec<BTreeSet<String>> = services
        .into_iter()
        .map(|name| BTreeSet::from([name]))
        .collect();
    programs.push(family(&graph, "gateway/"));
    for program in programs {
        let found = mistakes(&imports, &program, &[]);
        assert!(
            found.is_empty(),
            "no other crate may link to a crate of a program. Move shared code to service-kit/:\n{}",
            found.join("\n")
        );
    }
}

#[test]
fn a_link_to_the_merged_half_is_found() {
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let imports = Imported::from([
        ("gateway".to_owned(), names(&["remote", "federation"])),
        ("federation".to_owned(), names(&["template", "json-text"])),
        ("remote".to_owned(), names(&["template", "federation"])),
        ("template".to_owned(), names(&["json-text"])),
    ]);
    let merged = names(&["remote", "template"]);
    let allowed = [("gateway", "remote"), ("config", "template")];
    assert_eq!(
        mistakes(&imports, &merged, &allowed),
        [
            "`federation` imports `template`",
            "`config` no longer imports `template`"
        ]
    );
}
