//! Checks that the commands and the workflows in `docs/ci.md`, `docs/pr.md` and `docs/compare.md` work.

use std::collections::BTreeMap;

use e2e::{Run, weigh_command};
use granit_parser::{Event, Parser};

const PAGES: [&str; 3] = [
    include_str!("../../../../docs/ci.md"),
    include_str!("../../../../docs/pr.md"),
    include_str!("../../../../docs/compare.md"),
];

/// The blocks of a page in this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    let parts = page.split(&start).skip(1);
    parts.filter_map(|part| part.split("```").next()).collect()
}

fn weigh_says(arguments: &[&str]) -> Run {
    let output = weigh_command()
        .args(arguments)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

/// Every command of `weigh` on the pages, a line each, without its comment.
fn commands() -> Vec<String> {
    let mut found = Vec::new();
    for page in PAGES {
        for block in blocks(page, "sh") {
            found.extend(block.lines().map(str::to_owned));
        }
        for block in blocks(page, "yaml") {
            // The folded command of the workflow: its lines up to the next step.
            let folded = block
                .lines()
                .skip_while(|line| !line.contains("release/weigh"))
                .take_while(|line| !line.trim().starts_with("- name"))
                .map(str::trim);
            let folded = folded.collect::<Vec<_>>().join(" ");
            found.push(folded.replace("target/release/", ""));
        }
    }
    found.retain(|line| line.starts_with("weigh "));
    found
}

#[test]
fn the_commands_use_flags_that_exist() {
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    let commands = commands();
    assert!(commands.len() >= 9, "{commands:#?}");
    for command in commands {
        let command = command.split(" #").next().expect("a command");
        let words: Vec<&str> = command.split_whitespace().collect();
        let help = helps
            .entry(words[1].to_owned())
            .or_insert_with(|| weigh_says(&[words[1], "--help"]).exits_with(0).answer());
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let is_there = help
                .lines()
                .any(|line| line.split([' ', ',']).any(|word| word == *flag));
            assert!(is_there, "`{flag}` of `{command}`");
        }
    }
}

#[test]
fn the_gates_on_the_pages_can_be_read() {
    let mut gates = 0;
    for command in commands() {
        for part in command.split("--gate \"").skip(1) {
            let gate = part.split('"').next().expect("a quoted gate");
            let run = weigh_says(&["report", "/nowhere/at-all", "--gate", gate]).exits_with(2);
            // The command reaches the step that reads the recording.
            run.says("cannot be read");
            gates += 1;
        }
    }
    assert!(gates >= 6, "{gates}");
}

#[test]
fn the_workflows_are_yaml_with_inputs_and_variants_that_exist() {
    // The page also shows a part of a lab, and that is not a workflow.
    let mut workflows = blocks(PAGES[0], "yaml");
    workflows.retain(|block| block.contains("jobs:"));
    let [of_pull_requests, of_layers] = workflows[..] else {
        panic!("two workflows, found {}", workflows.len());
    };
    let action = include_str!("../../../../action.yml");
    let given = of_pull_requests
        .split("        with:\n")
        .last()
        .expect("inputs");
    for input in given
        .lines()
        .filter(|line| line.starts_with("          ") && !line.starts_with("            "))
    {
        let name = input.trim().split(':').next().expect("a name");
        assert!(
            action.contains(&format!("\n  {name}:\n")),
            "`{name}` is an input"
        );
    }
    for event in Parser::new_from_str(of_pull_requests) {
        event.expect("valid YAML");
    }
    let mut words = Vec::new();
    for event in Parser::new_from_str(of_layers) {
        if let (Event::Scalar(text, ..), _) = event.expect("valid YAML") {
            words.push(text.into_owned());
        }
    }
    for key in ["on", "jobs", "runs-on", "steps", "uses", "run"] {
        assert!(words.iter().any(|word| word == key), "{key} in {words:?}");
    }
    let command = words
        .iter()
        .find(|word| word.contains("weigh lab"))
        .expect("a command");
    assert!(
        !command.contains('\n'),
        "it is folded into one line: {command}"
    );
    let lab = include_str!("../../../../labs/graphql-server/graphql-server.yaml");
    let gated = command.split("--gate \"").nth(1).expect("a gate");
    let variant = gated.split(' ').next().expect("a variant");
    assert!(lab.contains(&format!("name: {variant}\n")), "{variant}");
}

#[test]
fn the_help_lists_the_exit_code_of_gates_and_the_grammar() {
    let help = weigh_says(&["--help"]).exits_with(0);
    help.shows("4 a gate did not pass");
    for subcommand in ["lab", "report", "compare"] {
        let help = weigh_says(&[subcommand, "--help"]).exits_with(0);
        help.shows("[VARIANT] METRIC overhead|ratio|value");
    }
}
