//! Profiles of the processor time, and the message if a machine cannot sample.

use std::fs;
use std::path::Path;

use e2e::{Run, World, weigh_command};
use serde_json::Value;

/// A world with two variants. Only one has a certain function.
fn world() -> World {
    World::new()
        .variant("burning", "server.burn: 500")
        .duration("300ms")
}

/// The profiles of a recording. If this machine cannot sample, checks the reason and returns `None`.
#[track_caller]
fn profiles(run: &Run) -> Option<Vec<Value>> {
    let recording = run.recording();
    let profiles = recording["profiles"].as_array().expect("profiles").clone();
    if profiles.iter().any(|profile| profile["samples"] == 0) {
        let text = profiles[0]["missing"].as_str().expect("a reason");
        assert!(text.contains("perf"), "{text}");
        judged::not_run(text);
        return None;
    }
    judged::ran();
    Some(profiles)
}

fn needs_nothing_else(drawing: &Path) {
    let text = fs::read_to_string(drawing).expect("a drawing");
    let foreign = text.replace("http://www.w3.org/2000/svg", "");
    for reference in ["http:", "https:", "href", "url("] {
        assert!(!foreign.contains(reference), "{reference} in {text}");
    }
}

#[test]
fn each_system_has_a_flamegraph_and_each_variant_a_difference() {
    let run = world().run_with(&["--flamegraph"]).ran();
    let Some(profiles) = profiles(&run) else {
        return;
    };
    let burning = profiles
        .iter()
        .find(|profile| profile["variant"] == "burning")
        .expect("a profile of each");
    let hottest = burning["hottest"].as_array().expect("functions");
    let is_burn = |function: &&Value| function["function"] == "fixture::burn";
    let burn = hottest.iter().find(is_burn).expect("it burns");
    let all = burning["samples"].as_u64().expect("a count");
    // The function takes nearly all of the cost of a request.
    assert!(
        burn["total_samples"].as_u64() > Some(all / 2),
        "{burning:#}"
    );
    let files = burning["files"].as_array().expect("files");
    let names: Vec<&str> = files.iter().filter_map(Value::as_str).collect();
    assert_eq!(
        names,
        [
            "flamegraphs/burning-server.svg",
            "flamegraphs/burning-server.folded",
            "flamegraphs/burning-server-difference.svg"
        ]
    );
    for name in names.iter().filter(|name| name.ends_with(".svg")) {
        needs_nothing_else(&run.recording_folder().join(name));
    }
    let markdown = fs::read_to_string(run.recording_folder().join("report.md")).expect("a report");
    for rendering in [run.text(), markdown] {
        assert!(rendering.contains("Hottest functions"), "{rendering}");
        assert!(rendering.contains("fixture::burn"), "{rendering}");
    }
    // Profiles are taken outside of rounds, so no round was added.
    let rounds = run.recording()["rounds"].as_array().map_or(0, |rounds| {
        let counted = rounds.iter().filter(|round| round["disturbed"] == false);
        counted.count()
    });
    assert_eq!(rounds, 12);
}

#[test]
fn without_perf_the_lab_is_carried_out_and_says_what_is_missing() {
    let world = world();
    let empty = world.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let child = world
        .command("lab")
        .arg("--flamegraph")
        .env("PATH", &empty)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("weigh starts");
    let run = world.finish(child).ran();
    run.shows("`perf` does not start");
    run.shows("Install it");
    assert!(!run.recording_folder().join("flamegraphs").exists());
}

#[test]
fn functions_that_node_compiles_have_names() {
    if !judged::is_installed("node") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let script = "function warmTheRoom(){let x=0;for(let i=0;i<2e5;i++)x+=Math.sqrt(i);return x}\n\
        const [host,port]=process.argv[2].split(':');\n\
        require('http').createServer((q,r)=>{r.setHeader('content-type','application/json');\n\
        r.end(warmTheRoom()>0?'{\"data\":{}}':'')}).listen(+port,host);\n";
    fs::write(folder.path().join("server.js"), script).expect("a script");
    let lab = "question: what does node do?\n\
        load: {connections: 2, duration: 300ms, path: /, requests: [{name: a, query: \"{ a }\"}]}\n\
        rounds: 1\nwarmup: 100ms\ntarget: server\n\
        systems:\n  server:\n    settings: {more: a}\n    run: \"node server.js {{addr}} {{more}}\"\n    \
        ready: {path: /, within: 20s}\n\
        expect: {status: 200}\nbaseline: {name: plain}\n\
        variants: [{name: twin, with: {server.more: b}}]\n";
    fs::write(folder.path().join("node.yaml"), lab).expect("a lab");
    let output = weigh_command()
        .args(["lab", "node.yaml", "--flamegraph"])
        .current_dir(folder.path())
        .output()
        .expect("weigh starts");
    let run = Run::of(output).ran();
    if run.answer().contains("`perf`") {
        judged::not_run("`perf` does not sample on this machine");
        return;
    }
    run.shows("warmTheRoom");
}
