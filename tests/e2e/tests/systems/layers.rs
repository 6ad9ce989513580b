//! The labs of `labs/layers`: each variant is proven, or the answer names the missing software.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use e2e::{Run, weigh_command};

/// Number of labs that are proven at once.
const AT_ONCE: usize = 3;

fn gallery() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("labs/layers");
    folder.canonicalize().expect("the gallery is there")
}

/// The lab files of the gallery, by name.
fn labs() -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(gallery()).expect("the gallery is there");
    let paths = entries.map(|entry| entry.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect()
}

/// Proves all variants of a lab, without a measurement.
fn check(lab: &Path) -> Run {
    let mut command = weigh_command();
    command.arg("check").arg(lab);
    Run::of(command.output().expect("weigh starts"))
}

/// The results of an answer of `weigh check`, one for each variant.
///
/// Variants that fail for the same reason share a line.
fn rows(answer: &str) -> Vec<(&str, &str)> {
    let lines = answer.lines().filter_map(|line| line.strip_prefix("- "));
    let lines = lines.filter_map(|line| line.split_once(": "));
    let is_prediction = |names: &str| {
        [
            "requests in flight",
            "time",
            "smallest difference that the run would probably show",
        ]
        .contains(&names)
    };
    let lines = lines.filter(|(names, _)| !is_prediction(names));
    let rows = lines.flat_map(|(names, result)| {
        let names = names.trim_matches('`').split("`, `");
        names.map(move |name| (name, result))
    });
    rows.collect()
}

/// True if a result says that software is missing, here or for the baseline.
fn is_missing(result: &str) -> bool {
    ["is not installed", "its baseline"]
        .iter()
        .any(|words| result.contains(words))
}

/// True if a result says that a registry of packages could not be reached. That is a fact about the machine.
fn is_unreachable(result: &str) -> bool {
    let words = [
        "dial tcp",
        "ENOTFOUND",
        "ETIMEDOUT",
        "EAI_AGAIN",
        "Temporary failure",
        "i/o timeout",
    ];
    words.iter().any(|words| result.contains(words))
}

/// True if a lab or a machine lacks something that a variant needs.
fn is_absent(result: &str) -> bool {
    is_missing(result) || is_unreachable(result)
}

/// Proves a lab. Returns the number of its proven variants.
fn prove(lab: &Path) -> usize {
    let run = check(lab);
    let answer = run.answer();
    let name = lab.display();
    let rows = rows(&answer);
    assert!(rows.len() >= 3, "{name}: {answer}");
    for (variant, result) in &rows {
        assert!(
            *result == "proven" || is_absent(result),
            "{name}, {variant}: {result}"
        );
    }
    let missing = rows.iter().find(|(_, result)| is_absent(result));
    match missing {
        Some((variant, result)) => judged::absent(format_args!("{name}, {variant}: {result}")),
        None => judged::ran(),
    }
    let results = rows.iter().map(|(_, result)| *result);
    results.filter(|result| *result == "proven").count()
}

#[test]
fn each_lab_of_the_gallery_is_proven_or_names_the_missing_software() {
    let labs = labs();
    assert!(labs.len() >= 10, "the gallery lost labs: {labs:?}");
    let left = Mutex::new(labs.iter());
    let next = || left.lock().expect("no lab fails while it is taken").next();
    // Most of a proof is a wait for a start or a download, so several labs share the cores.
    let proven: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| iter::from_fn(next).map(|lab| prove(lab)).sum::<usize>()))
            .collect();
        let counts = workers.into_iter().map(|worker| worker.join());
        counts.map(|count| count.expect("each lab is proven")).sum()
    });
    // Go, Node and Python are on every machine of these tests, and their labs need nothing else.
    assert!(proven >= 10, "only {proven} variants are proven");
}

#[test]
fn the_page_of_the_gallery_has_a_command_and_a_section_for_each_lab() {
    let page = fs::read_to_string(gallery().join("README.md")).expect("the page");
    for lab in labs() {
        let name = lab
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&lab).expect("the lab");
        let question = text
            .lines()
            .find_map(|line| line.strip_prefix("question: "));
        let question = question.expect("a question");
        let row = format!("| `weigh lab layers/{name}` | {question} |");
        assert!(page.contains(&row), "the page has no row `{row}`");
        let section = format!("\n## `{name}`\n");
        assert!(
            page.contains(&section),
            "the page has no section of `{name}`"
        );
    }
}
