//! Gates on a single load. They are judged on its blocks, reported in every layout, and visible in the exit
//! code.

use e2e::{Run, Server, weigh_command};
use serde_json::Value;

/// Blocks of 25 responses: enough for a median and too few for p99. A closed loop has no lateness, so a pause of the
/// machine withholds no number.
const LOAD: [&str; 4] = ["-n", "600", "-c", "8"];

fn gates<'a>(gates: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    let gates = gates.iter().flat_map(|gate| ["--gate", *gate]);
    LOAD.into_iter()
        .chain(gates)
        .chain(rest.iter().copied())
        .collect()
}

#[test]
fn a_limit_that_is_kept_is_zero_and_one_that_is_not_is_four() {
    let server = Server::start(&["--delay-us", "2000"]);
    let kept = ["p50 value < 1s", "failures value < 1%", "max value < 30s"];
    let run = server.load(&gates(&kept, &[])).ran();
    let text = run.answer();
    for gate in kept {
        assert!(text.contains(&format!("holds: {gate}: ")), "{text}");
    }
    assert!(text.contains("blocks of one load"), "{text}");
    let run = server.load(&gates(&["p50 value < 1ms"], &[])).exits_with(4);
    assert!(
        run.answer().contains("broken: p50 value < 1ms"),
        "{}",
        run.answer()
    );
    // A small number of requests does not show this tail, so the gate is undecided.
    let tail = ["p99.9 value < 10s"];
    let run = server.load(&gates(&tail, &[])).exits_with(4);
    assert!(run.answer().contains("Load for longer"), "{}", run.answer());
    server.load(&gates(&tail, &["--undecided", "pass"])).ran();
}

#[test]
fn every_layout_says_what_became_of_a_gate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.json");
    let recording = path.to_str().expect("a path of ours");
    let server = Server::start(&["--delay-us", "2000"]);
    let gate = "p50 value < 1ns";
    for format in ["text", "md", "html", "csv", "junit", "comment", "json"] {
        let short = ["-c", "8", "-n", "200", "--gate", gate, "--format", format];
        let run = server.load(&short).exits_with(4);
        let answer = run.answer();
        assert!(answer.contains("broken"), "{format}: {answer}");
        assert!(
            answer.contains("p50 value &lt; 1ns") || answer.contains(gate),
            "{format}: {answer}"
        );
    }
    // Scripts parse the output format of another tool, so the gate is reported on standard error.
    let run = server.load(&gates(&[gate], &["--format", "k6", "--record", recording]));
    let run = run.exits_with(4);
    serde_json::from_str::<Value>(&run.answer()).expect("k6's JSON and nothing else");
    run.says("gate broken: p50 value < 1ns");
    // The recording contains the blocks, so the gate has the same result.
    let report = |gate: &str| {
        let mut command = weigh_command();
        command.args(["report", recording, "--gate", gate]);
        Run::of(command.output().expect("weigh starts"))
    };
    report(gate).exits_with(4);
    report("p50 value < 10s").exits_with(0);
}

#[test]
fn how_many_may_fail_is_for_a_gate_to_say() {
    // After the first 590 the server is unavailable.
    let half_broken = |flags: &[&str]| {
        let server = Server::start(&["--answer", "unavailable", "--honest-first", "590"]);
        server.load(flags)
    };
    half_broken(&LOAD).exits_with(3);
    let run = half_broken(&gates(&["failures value < 5%", "p50 value < 10s"], &[]));
    let text = run.ran().answer();
    assert!(
        text.contains("holds: failures value < 5%: 1.7 % (10 of 600)"),
        "{text}"
    );
    assert!(
        text.contains("some requests did not pass, as a gate allows"),
        "{text}"
    );
    let run = half_broken(&gates(&["failures value < 1%", "p50 value < 10s"], &[]));
    let text = run.exits_with(4).answer();
    assert!(text.contains("broken: failures value < 1%"), "{text}");
    assert!(text.contains("undecided: p50 value < 10s"), "{text}");
}

#[test]
fn what_a_single_load_cannot_have_is_refused_before_it_begins() {
    let server = Server::start(&[]);
    for (gate, words) in [
        ("p99 overhead < 1ms", "has no baseline. Write `p99 value …`"),
        ("p99 ratio < 2", "has no baseline"),
        (
            "rhai p99 value < 1ms",
            "names the variant `rhai`, but a single load has no variants",
        ),
        ("failures ratio < 2", "`failures` have no ratio"),
    ] {
        server.load(&gates(&[gate], &[])).exits_with(2).says(words);
    }
}
