//! The labs of `labs/remote-schema`: their proofs, and the detection of systems that do not do the work.

use std::fs;
use std::path::{Path, PathBuf};

use e2e::{Run, catalog, gateway, weigh_command};
use tempfile::TempDir;

fn shipped() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("labs/remote-schema");
    folder.canonicalize().expect("the labs are there")
}

/// A folder with one shipped lab, with other programs, another database and a shorter load.
struct Lab {
    folder: TempDir,
}

impl Lab {
    /// The lab of this name, with the given replacements.
    fn with(name: &str, changes: &[(&str, &str)]) -> Lab {
        let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
        let node = |number: u32, program: PathBuf| {
            let program = program.display();
            format!("  node-{number}: {{build: \"true\", settings: {{program: {program}}}}}\n")
        };
        let nodes: String = [1, 4, 5]
            .map(|number| node(number, gateway()))
            .into_iter()
            .chain([2, 3].map(|number| node(number, catalog())))
            .collect();
        let programs = format!(
            "load: {{count: 20, duration: 60s, timeout: 60s}}\nwarmup: 0s\nrounds: 1\n\
             settings: {{database: \"sqlite:{}/catalog.sqlite3\"}}\nsystems:\n{nodes}",
            folder.path().display()
        );
        let path = shipped().join(name).with_extension("yaml");
        let systems = format!(
            "include: [{}/systems.yaml, programs.yaml]",
            shipped().display()
        );
        let mut text = fs::read_to_string(path).expect("the lab is there");
        for (old, new) in changes
            .iter()
            .chain(&[("include: systems.yaml", &*systems)])
        {
            assert!(text.contains(old), "{name} lost `{old}`");
            text = text.replace(old, new);
        }
        fs::write(folder.path().join("programs.yaml"), programs).expect("the file can be written");
        fs::write(folder.path().join("lab.yaml"), text).expect("the file can be written");
        Lab { folder }
    }

    fn check(&self) -> Run {
        let mut command = weigh_command();
        command.args(["check", "."]).current_dir(self.folder.path());
        Run::of(command.output().expect("weigh starts"))
    }
}

fn proven(lab: &Lab, names: &[&str]) {
    let answer = lab.check().exits_with(0).text();
    for name in names {
        assert!(answer.contains(&format!("- `{name}`: proven")), "{answer}");
    }
    assert_eq!(answer.matches(": proven").count(), names.len(), "{answer}");
}

#[test]
fn the_hop_gives_the_answers_of_the_node_behind_it() {
    let names = ["node-5 direct", "through node-1"];
    for lab in ["remote-schema", "full-speed"] {
        proven(&Lab::with(lab, &[]), &names);
    }
    let with_proxy = ["node-5 direct", "through HAProxy", "through node-1"];
    proven(&Lab::with("fixed-rate", &[]), &with_proxy);
}

#[test]
fn a_hop_that_answers_something_else_has_no_number() {
    // Another size of response stands for a proxy that loses rows.
    let change = ("target: node-1}", "target: node-1, with: {size: 9}}");
    let run = Lab::with("remote-schema", &[change]).check().exits_with(3);
    let answer = run.text();
    assert!(answer.contains("- `node-5 direct`: proven"), "{answer}");
    assert!(!answer.contains("- `through node-1`: proven"), "{answer}");
}

#[test]
fn every_size_of_answer_goes_both_ways() {
    let lab = Lab::with("payload", &[("[1, 10, 100, 1000]", "[1, 1000]")]);
    let names = [
        "node-5 direct, 1 products",
        "through node-1, 1 products",
        "node-5 direct, 1000 products",
        "through node-1, 1000 products",
    ];
    proven(&lab, &names);
}

#[test]
fn an_action_gives_the_rows_of_the_endpoint_behind_it() {
    proven(
        &Lab::with("action", &[]),
        &["REST of node-3", "action of node-5"],
    );
}

#[test]
fn both_databases_give_the_same_bytes() {
    proven(&Lab::with("database", &[]), &["SQLite", "PostgreSQL"]);
}

#[test]
fn headers_arrive_at_the_leaf_when_both_hops_forward_them_and_never_else() {
    proven(&Lab::with("headers", &[]), &["not forwarded", "forwarded"]);
    let change = ("forward: \"true\"", "forward: \"false\"");
    let run = Lab::with("headers", &[change]).check().exits_with(3);
    let answer = run.text();
    assert!(answer.contains("- `not forwarded`: proven"), "{answer}");
    assert!(
        answer.contains("the leaf saw the client's header on every request"),
        "{answer}"
    );
}
