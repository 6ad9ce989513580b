//! Configuration files of systems, which each start writes anew.

use e2e::{Run, World, weigh};
use serde_json::Value;

/// A lab whose server gets its delay from a file, with a file of the user next to it.
fn world(variants: &str) -> World {
    let text = format!(
        "question: What does a setting in a file cost?
load: {{rate: 50/s, duration: 500ms, path: /}}
rounds: 2
warmup: 100ms
target: server
systems:
  server:
    settings: {{delay: 1ms}}
    files:
      start.sh: start.tmpl
      conf.d/delay: {{text: '{{{{delay}}}}'}}
      as-it-is: {{text: '{{{{.Values}}}}', raw: true}}
    run: sh {{{{file.start.sh}}}}
baseline: {{name: old}}
variants:
{variants}expect: {{status: 200}}
"
    );
    let start = format!(
        "grep -q Values {{{{file.as-it-is}}}} || exit 3\nexec {} null-server --listen {{{{addr}}}} --delay $(cat {{{{files}}}}/conf.d/delay)\n",
        weigh().display()
    );
    World::of_lab(&text).file("start.tmpl", &start)
}

fn file_digest<'a>(recording: &'a Value, variant: usize, file: &str) -> &'a str {
    let system = &recording["variants"][variant]["systems"][0];
    system["files"][file].as_str().expect("a digest")
}

#[test]
fn variants_differ_in_a_file_and_the_recording_keeps_it() {
    let world = world("  - {name: new, with: {server.delay: 3ms}}\n");
    let run: Run = world.run().ran();
    let recording = run.recording();
    let digest = |variant, file| file_digest(&recording, variant, file);
    assert_ne!(digest(0, "conf.d/delay"), digest(1, "conf.d/delay"));
    // Addresses differ from start to start, and are not in the digest.
    assert_eq!(digest(0, "start.sh"), digest(1, "start.sh"));
    let logs = run.recording_folder().join("logs/new");
    let of_round = |round: &str| {
        let file = logs.join(round).join("server.files/start.sh");
        std::fs::read_to_string(file).expect("the file of a round")
    };
    assert_ne!(of_round("round-1"), of_round("round-2"));
    let sources = recording["lab"]["files"].to_string();
    assert!(sources.contains("start.tmpl"), "{}", recording["lab"]);
}

#[test]
fn a_wrong_template_is_reported_at_its_line() {
    let world = world("  - {name: new, with: {server.delay: 3ms}}\n")
        .file("start.tmpl", "first\n  --delay {{dely}}\n");
    let run = world.run().exits_with(2);
    run.says("start.tmpl:2:11");
    run.says("`{{dely}}` is not defined here");
}
