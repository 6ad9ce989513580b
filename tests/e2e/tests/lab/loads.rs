//! Arrival of requests in labs, and data in requests.

use e2e::{Run, World};

fn lab(load: &str, proof: &str) -> World {
    World::of_lab(&format!(
        "question: what does it cost?\n\
         load:\n{load}\
         rounds: 1\nwarmup: 0s\nseed: 7\ntarget: server\n\
         systems:\n  server:\n    run: SHOP --listen {{{{addr}}}}\n    ready: {{path: /health}}\n\
         {proof}baseline: {{name: a}}\nvariants: [{{name: b}}]\n"
    ))
}

/// Passed requests of each measurement. A disturbed measurement was repeated, and does not count.
fn sent(run: &Run) -> Vec<u64> {
    let recording = run.recording();
    let rounds = recording["rounds"].as_array().expect("rounds").clone();
    let count = |round: &serde_json::Value| round["outcomes"]["passed"].as_u64();
    let kept = rounds.iter().filter(|round| round["disturbed"] != true);
    kept.filter_map(count).collect()
}

#[test]
fn phases_are_steps_and_ramps_one_after_the_other() {
    let load = "  phases:\n    - {duration: 200ms, rate: 100/s}\n    - {duration: 200ms, rate: 0/s, to: 200/s}\n";
    let run = lab(load, "").run().ran();
    assert_eq!(sent(&run), [40, 40]);
    let model = run.recording()["load"]["model"].clone();
    assert_eq!(model["phases"][1]["rate_to_per_s"], 200.0, "{model:#}");
    // A count ends the measurements earlier.
    let run = lab(&format!("{load}  count: 25\n"), "").run().ran();
    assert_eq!(sent(&run), [25, 25]);
}

#[test]
fn random_gaps_are_the_same_for_all_variants_of_a_round() {
    let load = "  rate: 200/s\n  duration: 300ms\n  arrival: poisson\n";
    let run = lab(load, "").run().ran();
    let sent = sent(&run);
    assert_eq!(sent[0], sent[1]);
    let model = run.recording()["load"]["model"].clone();
    assert_eq!(model["arrival"], "poisson", "{model:#}");
}

#[test]
fn a_count_and_a_duration_end_a_closed_loop_at_whichever_comes_first() {
    let load = "  connections: 2\n  count: 30\n  duration: 1m\n";
    assert_eq!(sent(&lab(load, "").run().ran()), [30, 30]);
    let load = "  connections: 1\n  count: 1000000000\n  duration: 100ms\n";
    assert!(
        sent(&lab(load, "").run().ran())
            .iter()
            .all(|sent| *sent > 0)
    );
}

/// The server sees all rows and ranges, over both passes of the proof and the load.
#[test]
fn lines_of_json_and_ranges_are_filled_in_as_csv_is() {
    let rows = "{\"user\": \"ann\", \"age\": 7}\n{\"user\": \"bo\", \"age\": 9}\n";
    for data in [
        "users.jsonl",
        "{file: users.jsonl}",
        "{file: users.jsonl, order: random}",
    ] {
        let load = format!(
            "  connections: 1\n  count: 40\n  data: {data}\n  path: '/{{{{user}}}}?age={{{{age}}}}'\n"
        );
        let run = lab(&load, "").file("users.jsonl", rows).run().ran();
        assert_eq!(sent(&run), [40, 40]);
    }
    // A range of one number gives that number for every request.
    let proof = "proof: [{ask: '{{server.url}}/seen', json: '/by_path/~1page~15', exactly-per-request: 1}]\n";
    let load =
        "  connections: 1\n  count: 40\n  data: {ranges: {page: 5..5}}\n  path: '/page/{{page}}'\n";
    assert_eq!(sent(&lab(load, proof).run().ran()), [40, 40]);
}
