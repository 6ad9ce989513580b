//! Several instances behind a real balancer. All serve, every response is counted, and no process is left
//! running.

use std::fs;

use e2e::{PATIENCE, Run, World, processes_mentioning, wait_until, weigh_command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A lab of one instance against four, with more flags for each, and more keys.
fn world(flags: &str, keys: &str) -> World {
    lab(
        "load: {connections: 8, count: 400, path: /items}\nrounds: 1\nwarmup: 0s\n",
        flags,
        keys,
    )
}

fn lab(load: &str, flags: &str, keys: &str) -> World {
    World::of_lab(&format!(
        "question: what do four instances buy?\n{load}target: shop\n\
         systems:\n  shop:\n    settings: {{instances: 1, called: 'shop-{{{{instance}}}}'}}\n    \
         run: SHOP --listen {{{{addr}}}} --name {{{{called}}}} --tag MARKER {flags}\n    \
         ready: {{path: /health}}\n    replicas: '{{{{instances}}}}'\n{keys}\
         proof:\n  - name: every instance serves\n    request: {{path: /who}}\n    times: 40\n    \
         expect: {{distinct: {{/name: {{at-least: '{{{{shop.instances}}}}'}}}}}}\n\
         baseline: {{name: one}}\n\
         variants: [{{name: four, with: {{shop.instances: 4}}}}]\n"
    ))
}

/// A text that every process of the world has in its command line. While `weigh` runs, it has the text too.
fn folder_of(world: &World) -> String {
    let name = world.path().file_name().expect("a folder has a name");
    name.to_string_lossy().into_owned()
}

fn nothing_is_left(world: &World) {
    let folder = folder_of(world);
    wait_until("every process of the run is gone", PATIENCE, || {
        processes_mentioning(&folder).is_empty()
    });
    wait_until("every cgroup of the run is gone", PATIENCE, || {
        e2e::cgroups_of_dead_runs().is_empty()
    });
}

/// The measurement of `four` in the first round.
fn round_of_four(run: &Run) -> Value {
    let recording = run.recording();
    let rounds = recording["rounds"].as_array().expect("rounds");
    let round = rounds.iter().find(|round| round["variant"] == "four");
    round.expect("a round of four").clone()
}

fn render(run: &Run, format: &str) -> String {
    let output = weigh_command()
        .arg("report")
        .arg(run.recording_folder())
        .args(["--format", format])
        .output()
        .expect("weigh starts");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn four_instances_all_serve_and_their_answers_sum_up() {
    let world = world("", "");
    let run = world.run().ran();
    let round = round_of_four(&run);
    let systems = round["systems"].as_array().expect("systems");
    let names: Vec<&str> = systems
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, ["shop", "shop-balancer"], "{round:#}");
    let instances = systems[0]["instances"].as_array().expect("instances");
    let answers = |instance: &Value| instance["answers"].as_u64().expect("a count");
    assert_eq!(instances.len(), 4, "{systems:#?}");
    assert!(instances.iter().all(|it| answers(it) > 0), "{instances:#?}");
    assert_eq!(instances.iter().map(answers).sum::<u64>(), 400);
    assert_eq!(round["outcomes"]["passed"], 400);
    assert!(systems[1]["cpu_us"].is_u64(), "the balancer is not hidden");
    let proofs = round["proofs"].as_array().expect("proofs");
    let counted = proofs
        .iter()
        .find(|it| it["proof"] == "requests by instance");
    let seen = counted.and_then(|it| it["seen"].as_str()).expect("a sum");
    assert!(seen.ends_with("= 400 answers to 400 requests"), "{seen}");
    let recording = run.recording();
    let proof = recording["variants"][1]["proof"]["seen"].to_string();
    assert!(
        proof.contains("4 different values at `/name` in 40 answers"),
        "{proof}"
    );
    assert_eq!(recording["variants"][1]["systems"][0]["replicas"], 4);
    let version = &recording["variants"][1]["systems"][1]["version"];
    assert!(
        version.as_str().is_some_and(|it| it.contains("HAProxy")),
        "{version}"
    );
    nothing_is_left(&world);
    // Without a verdict there are no figures to show.
    if !run.status().success() {
        judged::not_run("a check withheld the verdict, so that the reports have no figures");
        return;
    }
    judged::ran();
    for format in ["full", "md", "html"] {
        let page = render(&run, format);
        assert!(page.contains("Requests by instance"), "{format}:\n{page}");
        for name in ["shop-1", "shop-2", "shop-3", "shop-4", "shop-balancer"] {
            assert!(page.contains(name), "{format}, {name}:\n{page}");
        }
    }
    let row = &run.json()["variants"][1]["systems"][0]["instances"][3];
    assert_eq!(row["name"], "shop-4");
}

#[test]
fn the_requests_go_round_when_the_lab_says_so() {
    let world = world("", "    balance: roundrobin\n");
    let run = world.run().ran();
    let round = round_of_four(&run);
    let instances = round["systems"][0]["instances"]
        .as_array()
        .expect("instances");
    let answers = instances.iter().map(|it| it["answers"].as_u64());
    let answers: Vec<u64> = answers.map(|count| count.expect("a count")).collect();
    assert!(
        answers.iter().all(|count| (90..=110).contains(count)),
        "{answers:?}"
    );
    let folder = run.recording_folder().join("logs/four/round-1");
    let written = fs::read_to_string(folder.join("shop-balancer.cfg")).expect("it is kept");
    assert!(written.contains("balance roundrobin"), "{written}");
}

#[test]
fn instances_that_cannot_be_told_apart_prove_nothing() {
    let world = world("", "");
    let path = world.lab();
    let text = fs::read_to_string(&path).expect("the lab");
    let same = World::of_lab(&text.replace("shop-{{instance}}", "shop"));
    let _ = same
        .run()
        .exits_with(3)
        .row(
            "four",
            &[
                "did not do the work: every instance serves",
                "expected at least 4, found 1 different",
            ],
        )
        .no_number_for("four");
    nothing_is_left(&same);
}

#[test]
fn an_instance_that_dies_under_load_is_named() {
    let world = world("--dies shop-3:40", "");
    let run = world.run().exits_with(5).no_number_for("four");
    for words in [
        "`shop-3` (instance 3 of 4 of `shop`)",
        "exit code 9",
        "out of cheese",
    ] {
        run.shows(words);
    }
    nothing_is_left(&world);
}

#[test]
fn an_interrupt_leaves_neither_instances_nor_balancer() {
    let load = "load: {connections: 8, duration: 60s, path: /items}\nrounds: 9\nwarmup: 0s\n";
    let world = lab(load, "", "    balance: leastconn\n");
    let child = world.start();
    let folder = folder_of(&world);
    // weigh, the balancer, and one or four instances, depending on the order.
    wait_until("a measurement is under way", PATIENCE, || {
        processes_mentioning(&folder).len() >= 3
            && fs::read_dir(world.path().join("recordings")).is_ok_and(|recordings| {
                recordings.flatten().any(|recording| {
                    let logs = recording.path().join("logs");
                    ["one", "four"].iter().any(|variant| {
                        logs.join(variant)
                            .join("round-1/shop-balancer.log")
                            .exists()
                    })
                })
            })
    });
    kill_process(Pid::from_child(&child), Signal::INT).expect("weigh is alive");
    let _ = world.finish(child).exits_with(6);
    nothing_is_left(&world);
}

#[test]
fn without_the_balancer_the_variants_that_need_it_say_so() {
    let world = World::of_lab(
        "question: what does a balancer cost?\n\
         load: {connections: 2, count: 40, path: /items}\nrounds: 1\nwarmup: 0s\ntarget: shop\n\
         systems:\n  shop:\n    settings: {way: none}\n    run: SHOP --listen {{addr}}\n    \
         ready: {path: /health}\n    replicas: 1\n    balance: '{{way}}'\n\
         baseline: {name: alone}\nvariants:\n  - {name: behind one, with: {shop.way: leastconn}}\n  \
         - {name: alone again}\n",
    );
    let output = world.command("lab").env("PATH", "/nowhere").output();
    let folder = world.path().join("recordings");
    let output = output.expect("weigh starts");
    let run = Run::of(output).exits_with(5);
    run.shows("`shop-balancer` needs it");
    assert!(folder.is_dir(), "the others are measured");
    run.shows("alone again");
}

#[test]
fn a_lab_that_cannot_be_meant_is_refused_before_anything_starts() {
    for (from, to, words) in [
        ("'{{instances}}'", "0", "`0` is not a number of instances"),
        (
            "--listen {{addr}}",
            "--listen 127.0.0.1:80",
            "has no listen address",
        ),
        (
            "'{{instances}}'",
            "2\n    balance: fair",
            "`none`, found `fair`",
        ),
        (
            "{at-least: '{{shop.instances}}'}",
            "{}",
            "`distinct` has no limit",
        ),
    ] {
        let text = fs::read_to_string(world("", "").lab()).expect("the lab");
        assert!(text.contains(from), "{text}");
        let broken = World::of_lab(&text.replace(from, to));
        let run = broken.run().exits_with(2);
        run.says(words);
    }
}

#[test]
fn the_highest_rate_that_is_sustained_is_found() {
    // One request after the other with 10 ms each, so never more than 100 a second.
    let load = "load:\n  capacity: {from: 10/s, to: 640/s, step-percent: 100, p99-below: 900ms}\n  \
                duration: 2s\n  path: /items\nrounds: 1\nwarmup: 0s\n";
    let world = World::of_lab(&format!(
        "question: how far does it go?\n{load}target: shop\n\
         systems:\n  shop:\n    settings: {{busy: 10}}\n    \
         run: SHOP --listen {{{{addr}}}} --busy-ms {{{{busy}}}}\n    ready: {{path: /health}}\n\
         baseline: {{name: quick}}\n\
         variants:\n  - {{name: slow, with: {{shop.busy: 90}}}}\n  \
         - {{name: hopeless, with: {{shop.busy: 1500}}}}\n"
    ));
    let run = world.run().exits_with(5);
    let recording = run.recording();
    let rounds = recording["rounds"].as_array().expect("rounds");
    let sustained = |variant: &str| {
        let round = rounds.iter().find(|round| round["variant"] == variant);
        let steps = round.expect("a round")["search"]["steps"].as_array();
        let steps = steps.expect("steps").iter();
        let held = steps.filter(|step| step["is_sustained"] == true);
        held.filter_map(|step| step["rate_per_s"].as_f64())
            .fold(0.0, f64::max)
    };
    assert!(
        (10.0..=80.0).contains(&sustained("quick")),
        "{}",
        sustained("quick")
    );
    assert_eq!(sustained("slow"), 10.0, "11 a second at the most");
    let answer = run.full();
    // If the machine is too busy for a verdict, there is no such table.
    let is_withheld = ["quick", "slow"].map(|variant| run.verdict_of(variant).contains("invalid"));
    assert!(
        answer.contains("The highest rate sustained, by round") || is_withheld == [true, true],
        "{answer}"
    );
    let _ = run.row(
        "hopeless",
        &["the lowest rate of the search is not sustained"],
    );
}

#[test]
fn instances_are_sampled_together_and_the_balancer_beside_them() {
    let world = world("", "");
    let run = world.run_with(&["--flamegraph"]).ran();
    let recording = run.recording();
    let profiles = recording["profiles"].as_array().expect("profiles");
    let systems: Vec<(&str, &str)> = profiles
        .iter()
        .filter_map(|it| Some((it["variant"].as_str()?, it["system"].as_str()?)))
        .collect();
    let expected = ["one", "four"]
        .map(|variant| [(variant, "shop"), (variant, "shop-balancer")])
        .concat();
    assert_eq!(systems, expected);
    nothing_is_left(&world);
}
