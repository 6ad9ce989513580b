//! The labs of `labs/router-extensibility`, with some coprocessors that do not do the work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::{Run, gateway, planets, runner, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

/// The list of languages in the labs. The tests replace it.
const LANGUAGES: &str = "[rust, go, node, csharp, java, python]";

fn shipped() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("labs/router-extensibility");
    folder.canonicalize().expect("the labs are there")
}

/// A folder with shipped labs, with other programs, a shorter load and other coprocessors instead of the
/// languages.
struct Labs {
    folder: TempDir,
}

/// The items of a list in YAML, without its brackets. Empty for an empty text.
fn within(list: &str) -> &str {
    list.trim_start_matches('[').trim_end_matches(']')
}

impl Labs {
    fn new() -> Labs {
        let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
        let systems = fs::read_to_string(shipped().join("systems.yaml"))
            .expect("the labs and their folder are there");
        let token = systems
            .split("Bearer ")
            .nth(1)
            .expect("the load has a token");
        let token = token
            .lines()
            .next()
            .expect("the labs and their folder are there");
        let programs = format!(
            "load: {{rate: 40/s, duration: 200ms}}\n\
             settle: {{connections: 1, within: 100ms}}\n\
             warmup: 0s\n\
             rounds: 1\n\
             systems:\n  \
             planets: {{build: 'true', settings: {{program: {planets}}}}}\n  \
             gateway: {{settings: {{program: {gateway}}}}}\n  \
             coprocessor:\n    build: 'true'\n    version: {runner} --version\n    \
             run: env {{{{where}}}} {runner} {{{{language}}}}\n    \
             env: {{TOKEN: {token}}}\n    settings: {{language: honest}}\n",
            planets = planets().display(),
            gateway = gateway().display(),
            runner = runner().display(),
        );
        fs::write(folder.path().join("programs.yaml"), programs)
            .expect("the labs and their folder are there");
        Labs { folder }
    }

    /// The shipped lab of this name, with these coprocessors instead of the languages.
    fn with(self, lab: &str, manners: &str) -> Labs {
        let path = shipped().join(lab).with_extension("yaml");
        let text = fs::read_to_string(&path).expect("the labs and their folder are there");
        let above = path.parent().expect("the labs and their folder are there");
        let systems = shipped().join("systems.yaml");
        let text = text
            .replace("include: systems.yaml", "include: ../systems.yaml")
            .replace(
                "include: ../systems.yaml",
                &format!("include: [{}, programs.yaml]", systems.display()),
            )
            .replace(
                "folder: ..\n",
                &format!("folder: {}\n", shipped().display()),
            )
            // Replaces them also in a group with other variants.
            .replace(within(LANGUAGES), within(manners));
        // Request files stay in their folder, so their paths become absolute.
        let files = [
            "body: ../",
            "body: batching/",
            "batch: &both ../",
            ": persisted/",
            ": defer/",
        ];
        let text = files.iter().fold(text, |text, file| {
            let (key, path) = file.rsplit_once(' ').expect("a key and a path");
            text.replace(file, &format!("{key} {}/{path}", above.display()))
        });
        // Drops builds, because the programs are built. Drops groups on lines of their own, because they name
        // the languages.
        let is_build = |line: &str| line.trim_start().starts_with("- \"cargo build");
        let is_group = |line: &str| line == "groups:" || line.starts_with("  - [");
        let lines = text.lines();
        let lines = lines.filter(|line| !is_build(line) && !is_group(line));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        let name = path
            .file_name()
            .expect("the labs and their folder are there");
        fs::write(self.folder.path().join(name), text)
            .expect("the labs and their folder are there");
        self
    }

    fn weigh(&self, words: &[&str]) -> Run {
        let mut command = weigh_command();
        command.args(words).current_dir(self.folder.path());
        Run::of(command.output().expect("weigh starts"))
    }

    /// The recordings of this folder, with their paths.
    fn recordings(&self) -> Vec<(PathBuf, Value)> {
        let folders = fs::read_dir(self.folder.path().join("recordings"))
            .expect("the labs and their folder are there");
        folders
            .map(|entry| {
                let folder = entry.expect("the labs and their folder are there").path();
                let text = fs::read_to_string(folder.join("recording.json"))
                    .expect("the labs and their folder are there");
                (
                    folder,
                    serde_json::from_str(&text).expect("the labs and their folder are there"),
                )
            })
            .collect()
    }

    /// Runs the only lab of the folder, with proof and measurement.
    fn lab(&self) -> Run {
        self.weigh(&["lab", "."])
    }
}

#[test]
fn the_header_reaches_the_origin_or_the_variant_has_no_number() {
    let labs = Labs::new().with("static-subgraph", "[honest, wrong-stage, header-dropped]");
    let mut run = labs.lab().exits_with(3);
    for broken in ["wrong-stage", "header-dropped"] {
        run = run.row(
            broken,
            &[
                "did not do the work",
                "the origin saw header `source` = `coprocessor`",
                "found 0 in 4 requests",
            ],
        );
    }
    let recordings = labs.recordings();
    assert_eq!(recordings.len(), 1, "{}", run.talk());
    let rounds = recordings[0].1["rounds"].as_array().unwrap();
    for honest in ["config", "rhai", "honest"] {
        let mut of_it = rounds.iter().filter(|round| round["variant"] == honest);
        let proofs = &of_it.next().expect("it is measured")["proofs"];
        // 40/s for 200 ms are 8 requests, and each of them reaches both subgraphs.
        for subgraph in 0..2 {
            assert_eq!(proofs[subgraph]["seen"], "8 in 8 requests", "{proofs:#}");
        }
    }
    let measured = |round: &Value| round["variant"].as_str().map(str::to_owned);
    let measured: Vec<_> = rounds.iter().filter_map(measured).collect();
    assert!(
        !measured.iter().any(|name| name.contains('-')),
        "{measured:?}"
    );
}

#[test]
fn ten_different_guids_arrive_or_the_variant_has_no_number() {
    let labs = Labs::new().with("guid-response", "[honest, same-guids, wrong-stage]");
    let answer = labs.weigh(&["check", "."]).exits_with(3).text();
    for proven in ["baseline", "rhai", "honest"] {
        assert!(
            answer.contains(&format!("- `{proven}`: proven")),
            "{answer}"
        );
    }
    let same = "- `same-guids`: did not do the work: ten different GUIDs arrive";
    assert!(answer.contains(same), "{answer}");
    assert!(
        answer.contains("found 10 of header `guid*`, 1 different"),
        "{answer}"
    );
    assert!(
        answer.contains("found 0 of header `guid*`, 0 different"),
        "{answer}"
    );
}

#[test]
fn who_believes_every_token_does_not_know_its_clients() {
    let labs = Labs::new().with("client-awareness", "[honest, trusting, header-dropped]");
    let answer = labs.weigh(&["check", "."]).exits_with(3).text();
    for proven in ["baseline", "config", "rhai", "honest"] {
        assert!(
            answer.contains(&format!("- `{proven}`: proven")),
            "{answer}"
        );
    }
    let trusting =
        "- `trusting`: did not do the work: a token with the claims of another is refused";
    assert!(answer.contains(trusting), "{answer}");
    let dropped =
        "- `header-dropped`: did not do the work: the gateway counts the client of the token";
    assert!(answer.contains(dropped), "{answer}");
}

#[test]
fn every_stage_is_called_as_often_as_the_labs_say() {
    for (lab, count) in [("beyond/stages", 5), ("beyond/bodies", 17)] {
        let labs = Labs::new().with(lab, "");
        let answer = labs.weigh(&["check", "."]).exits_with(0).text();
        assert_eq!(answer.matches(": proven").count(), count, "{answer}");
    }
}

#[test]
fn every_layer_of_the_gateway_does_its_work() {
    let labs = Labs::new().with("beyond/layers", "");
    let answer = labs.weigh(&["check", "."]).exits_with(0).text();
    assert_eq!(answer.matches(": proven").count(), 8, "{answer}");
}

#[test]
fn every_layer_in_the_request_itself_is_proven() {
    for (lab, count, programs) in [
        ("persisted", 4, &[][..]),
        ("batching", 4, &[]),
        ("telemetry", 4, &[]),
        ("defer", 4, &[]),
        ("tls", 4, &["openssl"]),
        ("tls-subgraphs", 3, &["openssl", "haproxy"]),
    ] {
        let is_missing = |program: &&str| Command::new(program).arg("version").output().is_err();
        if let Some(missing) = programs.iter().copied().find(|program| is_missing(program)) {
            judged::not_run(format!("`{missing}` is not installed"));
            continue;
        }
        let labs = Labs::new().with(&format!("beyond/{lab}"), LANGUAGES);
        let answer = labs.weigh(&["check", "."]).exits_with(0).text();
        judged::ran();
        assert_eq!(answer.matches(": proven").count(), count, "{answer}");
    }
}

#[test]
fn a_coprocessor_is_reached_over_tcp_and_over_its_unix_socket() {
    let labs = Labs::new().with("beyond/sockets", "[honest, header-dropped]");
    let answer = labs.weigh(&["check", "."]).exits_with(3).text();
    for told in [
        "- `honest over TCP`: proven",
        "- `honest over a Unix socket`: proven",
        "- `header-dropped over TCP`: did not do the work",
        "- `header-dropped over a Unix socket`: its baseline `header-dropped over TCP`",
    ] {
        assert!(answer.contains(told), "{told}\n{answer}");
    }

    // The proofs also check a coprocessor behind the socket.
    let labs = Labs::new().with("beyond/sockets", "[honest]");
    let path = labs.folder.path().join("sockets.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let (above, variants) = text.split_once("\nvariants:\n").unwrap();
    let variants = variants.replace(r#"language: "{{language}}""#, "language: header-dropped");
    fs::write(&path, format!("{above}\nvariants:\n{variants}")).unwrap();
    let answer = labs.weigh(&["check", "."]).exits_with(3).text();
    for told in [
        "- `honest over TCP`: proven",
        "- `honest over a Unix socket`: did not do the work",
    ] {
        assert!(answer.contains(told), "{told}\n{answer}");
    }
}

#[test]
fn a_router_is_named_by_a_variable_or_its_row_says_that_it_is_missing() {
    let labs = Labs::new().with("beyond/routers", "");
    // The gateway reads the same configuration as the router, so it can replace the router.
    let path = labs.folder.path().join("routers.yaml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(&format!("folder: {}\n", shipped().display())));
    let text = text.replace("[gateway, apollo-router", "[apollo-router");
    fs::write(&path, text).unwrap();
    let run = weigh_command()
        .args(["check", "."])
        .current_dir(labs.folder.path())
        .env("APOLLO_ROUTER", gateway())
        .env("HIVE_ROUTER", "no-such-program")
        .output()
        .expect("weigh starts");
    let answer = Run::of(run).exits_with(5).text();
    for way in ["", ", config", ", rhai", ", coprocessor in Rust"] {
        assert!(
            answer.contains(&format!("- `apollo-router{way}`: proven")),
            "{answer}"
        );
    }
    let missing = "- `hive_router`, `hive_router, config`: hive_router is not installed; put hive_router on PATH, or name it in HIVE_ROUTER";
    assert!(answer.contains(missing), "{answer}");
}

#[test]
fn a_folder_is_run_lab_by_lab_and_a_quick_run_keeps_what_is_slow_to_start() {
    let labs = Labs::new()
        .with("static-subgraph", "[honest]")
        .with("guid-response", "[honest]");
    let run = labs
        .weigh(&[
            "lab",
            ".",
            "--quick",
            "--rounds",
            "2",
            "--variants",
            "honest",
        ])
        .ran();
    let recordings = labs.recordings();
    assert_eq!(recordings.len(), 2, "{}", run.talk());
    for (folder, recording) in recordings {
        for variant in ["baseline", "honest"] {
            let started: Vec<_> = fs::read_dir(folder.join("logs").join(variant))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert!(started.iter().any(|name| name == "proof"), "{started:?}");
            // The first round uses the systems of the proof. Systems that start fast are restarted in the
            // second round. On a very busy machine all starts are slow, and all systems are kept.
            let are_kept = recording["load"]["keeps_systems"] == true;
            let is_again = started.iter().any(|name| name == "round-2");
            assert_eq!(is_again, !are_kept, "{started:?}: {}", run.talk());
            assert!(started.iter().all(|name| name != "round-1"), "{started:?}");
        }
    }
}
