//! A variant that does not do its work has no number, and its row shows the observation.

use e2e::{Run, World};

/// A lab of a gateway before an origin. The variant `b` differs in `flags`.
fn world(proof: &str, flags: &str) -> World {
    World::of_lab(&format!(
        "question: what does the gateway cost?\n\
         load:\n  connections: 2\n  count: 40\n  path: /items\n\
         rounds: 1\nwarmup: 0s\ntarget: gateway\n\
         systems:\n  \
         gateway:\n    settings: {{flags: --trusting, source: config}}\n    \
         run: SHOP --listen {{{{addr}}}} --origin {{{{origin.addr}}}} --source {{{{source}}}} {{{{flags}}}}\n    \
         ready: {{path: /health}}\n  \
         origin:\n    run: SHOP --listen {{{{addr}}}}\n    ready: {{path: /health}}\n\
         proof:\n{proof}\
         baseline: {{name: a, with: {{gateway.flags: --guids=10}}}}\n\
         variants: [{{name: b, with: {{gateway.flags: {flags}}}}}]\n"
    ))
}

fn run(proof: &str, flags: &str) -> Run {
    world(proof, flags).run()
}

const SEEN: &str = "  - {name: the header arrives, ask: '{{origin.url}}/seen', json: '/by_source/{{gateway.source}}', exactly-per-request: 1}\n";

#[test]
fn what_the_origin_saw_is_held_against_the_requests() {
    let run = run(SEEN, "--guids=1").ran();
    let recording = run.recording();
    let round = &recording["rounds"][0]["proofs"][0];
    assert_eq!(round["proof"], "the header arrives", "{recording:#}");
    assert_eq!(round["seen"], "40 in 40 requests");
    let proof = &recording["variants"][1]["proof"]["seen"][0];
    assert_eq!(proof["seen"], "2 in 2 requests");
}

#[test]
fn a_variant_that_never_does_its_work_is_found_before_the_load() {
    let _ = run(SEEN, "--lazy-after=0")
        .exits_with(3)
        .row(
            "b",
            &[
                "did not do the work",
                "the header arrives",
                "found 0 in 2 requests",
            ],
        )
        .no_number_for("b");
}

#[test]
fn a_variant_that_stops_doing_its_work_is_found_during_the_load() {
    // One request of the repeated proof and 29 of the load.
    let run = run(SEEN, "--lazy-after=30")
        .exits_with(3)
        .row(
            "b",
            &["did not do the work", "found 29 in 40 requests (round 1)"],
        )
        .no_number_for("b");
    // The evidence is kept.
    let recording = run.recording();
    let rounds = recording["rounds"].as_array().expect("rounds");
    let round = rounds.iter().find(|round| round["variant"] == "b");
    let seen = &round.expect("a round of b")["proofs"][0]["seen"];
    assert_eq!(
        seen,
        "expected exactly 1 per request, found 29 in 40 requests"
    );
}

#[test]
fn a_metric_is_a_number_as_well() {
    let proof = "  - {ask: '{{origin.url}}/metrics', metric: 'shop_requests_total{kind=\"any\"}', at-least-per-request: 1}\n";
    let _ = run(proof, "--guids=1").ran();
    let _ = run(proof, "--lazy-after=0")
        .exits_with(3)
        .no_number_for("b");
}

#[test]
fn a_request_that_must_be_refused_is_sent_and_must_be_refused() {
    let proof = "  - {of: variants, name: a tampered token is refused, request: {headers: {X-Token: tampered}}, expect: {status: 401, json: {/errors/0/message: 'who are you?'}}}\n";
    let _ = run(proof, "--guids=1").ran();
    let _ = run(proof, "--trusting")
        .exits_with(3)
        .row(
            "b",
            &[
                "did not do the work",
                "a tampered token is refused",
                "expected status 401, found 200",
            ],
        )
        .no_number_for("b");
}

#[test]
fn ten_different_values_of_a_header_are_counted() {
    let proof = "  - {name: ten GUIDs, expect: {values: {'GUID*': {count: 10, distinct: 10}}}}\n";
    let _ = run(proof, "--guids=10").ran();
    for (flags, words) in [
        ("'--guids=9'", "found 9 of header `GUID*`, 9 different"),
        ("--trusting", "found 0 of header `GUID*`"),
        ("--same-guids=10", "found 10 of header `GUID*`, 1 different"),
    ] {
        let _ = run(proof, flags)
            .exits_with(3)
            .row("b", &["did not do the work: ten GUIDs", words])
            .no_number_for("b");
    }
}

#[test]
fn a_proof_that_leaves_something_behind_is_given_once_a_start() {
    // A second request on the same systems would find that it is not the first.
    let proof = "  - {name: new, request: {path: /first}, expect: {json: {/is_first: true}}}\n";
    let _ = run(proof, "--guids=1").ran();
    let run = world(proof, "--guids=1")
        .run_with(&["--quick", "--rounds", "3"])
        .ran();
    let recording = run.recording();
    assert_eq!(recording["load"]["keeps_systems"], true);
    let rounds = recording["rounds"].as_array().expect("rounds");
    assert!(rounds.len() >= 6, "{recording:#}");
}

#[test]
fn a_check_without_load_finds_it_too() {
    let output = world(SEEN, "--lazy-after=0")
        .command("check")
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(3);
    run.shows("- `a`: proven");
    run.shows("- `b`: did not do the work");
}

#[test]
fn payload_sizes_are_each_compared_with_a_baseline_of_their_own() {
    let run = World::of_lab(
        "question: what does the size cost?\n\
         load:\n  connections: 2\n  count: 30\n  path: '/items?n={{size}}'\n\
         rounds: 2\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    settings: {flags: --trusting}\n    \
         run: SHOP --listen {{addr}} {{flags}}\n    ready: {path: /health}\n\
         expect: {same-as: baseline}\n\
         baseline: {name: 'direct {{size}}', for: {size: [1, 10, 100]}}\n\
         variants:\n  - {name: 'through {{size}}', for: {size: [1, 10, 100]}, with: {server.flags: --guids=1}}\n",
    )
    .run()
    .ran();
    let summary = run.json();
    let rows = summary["variants"].as_array().expect("rows");
    let pairs: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["name"].as_str().expect("text"),
                row["baseline"].as_str().expect("text"),
            )
        })
        .collect();
    assert_eq!(
        pairs,
        [
            ("direct 1", "direct 1"),
            ("through 1", "direct 1"),
            ("direct 10", "direct 10"),
            ("through 10", "direct 10"),
            ("direct 100", "direct 100"),
            ("through 100", "direct 100"),
        ]
    );
    let path = &run.recording()["variants"][3]["requests"][0]["path"];
    assert_eq!(path, "/items?n=10");
    // A row that a check withholds is not compared with other rows.
    let overheads = rows.iter().filter(|row| {
        let overhead = &row["metrics"]["requests_per_s"]["overhead"];
        assert!(
            !overhead.is_object() || row["name"] != row["baseline"],
            "{row:#}"
        );
        overhead.is_object()
    });
    assert_eq!(summary["comparisons"], overheads.count());
    run.shows_in_full("the baseline of its group");
}

#[test]
fn a_variant_that_is_asked_for_keeps_its_own_baseline() {
    let run = World::of_lab(
        "question: what does the size cost?\n\
         load:\n  connections: 1\n  count: 5\n  path: '/items?n={{size}}'\n\
         rounds: 1\nwarmup: 0s\ntarget: server\n\
         systems:\n  server:\n    run: SHOP --listen {{addr}}\n    ready: {path: /health}\n\
         baseline: {name: 'direct {{size}}', for: {size: [1, 10]}}\n\
         variants:\n  - {name: 'through {{size}}', for: {size: [1, 10]}}\n",
    )
    .run_with(&["--variants", "through 10"])
    .ran();
    let summary = run.json();
    let names: Vec<&str> = summary["variants"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert_eq!(names, ["direct 10", "through 10"]);
}

#[test]
fn an_answer_is_held_against_a_golden_body_members_and_headers() {
    for (expect, words) in [
        ("{body: golden.json}", None),
        ("{json: {/items/0: x}}", None),
        ("{headers: {Content-Type: application/json}}", None),
        ("{values: {GUID: {}}}", None),
        ("{body: other.json}", Some("differ at byte")),
        ("{json: {/items/0: y}}", Some("`/items/0`")),
        ("{json: {/items/7: x}}", Some("`/items/7`")),
        ("{headers: {Content-Type: text/html}}", Some("Content-Type")),
        ("{values: {Absent: {}}}", Some("found 0 of header `Absent`")),
    ] {
        let proof = format!("  - {{of: variants, name: it is right, expect: {expect}}}\n");
        let run = world(&proof, "--guids=1")
            .file("golden.json", r#"{"items":["x"]}"#)
            .file("other.json", r#"{"items":["z"]}"#)
            .run();
        let _ = match words {
            None => run.ran(),
            Some(words) => run
                .exits_with(3)
                .row("b", &["did not do the work: it is right", words])
                .no_number_for("b"),
        };
    }
}

/// The proof starts the systems for the first time, and each round starts them once more.
#[test]
fn what_is_proven_before_the_load_is_proven_again_in_every_round() {
    let proof = "  - {of: variants, name: a tampered token is refused, request: {headers: {X-Token: tampered}}, expect: {status: 401}}\n";
    // From its third start on, which is the second round, it accepts every token.
    let script = "echo start >> starts\n\
        [ $(wc -l < starts) -lt 3 ] || trusting=--trusting\n\
        exec SHOP --listen $1 $trusting\n";
    let lab = |rounds: u32| {
        World::of_lab(&format!(
            "question: who is trusted?\n\
             load:\n  connections: 1\n  count: 5\n  path: /items\n\
             rounds: {rounds}\nwarmup: 0s\ntarget: server\n\
             systems:\n  server:\n    settings: {{program: SHOP, first: --listen}}\n    folder: .\n    \
             run: '{{{{program}}}} {{{{first}}}} {{{{addr}}}}'\n    ready: {{path: /health}}\n\
             proof:\n{proof}\
             baseline: {{name: a}}\n\
             variants: [{{name: b, with: {{server.program: sh, server.first: start.sh}}}}]\n"
        ))
        .file(
            "start.sh",
            &script.replace("SHOP", &e2e::shop().display().to_string()),
        )
    };
    let _ = lab(1).run().ran();
    let _ = lab(2)
        .run()
        .exits_with(3)
        .row(
            "b",
            &[
                "did not do the work",
                "a tampered token is refused",
                "expected status 401, found 200",
            ],
        )
        .no_number_for("b");
}
