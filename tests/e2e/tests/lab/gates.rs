//! Gates in a lab file.

use crate::null_servers::NullServers;

#[test]
fn gates_of_a_lab_are_judged_and_those_of_the_command_line_are_added() {
    // 20 ms differ clearly from 1 us and from 1 s.
    let world = NullServers::under("{connections: 1, duration: 300ms, path: /}")
        .key("order: in-turn")
        .key("gates: [late p50 overhead < 1us, p50 overhead < 1s]")
        .variants("  - {name: late, with: {server.flag: --delay=20ms}}\n")
        .world();
    let run = world
        .run_with(&["--gate", "late p50 value > 1us"])
        .exits_with(4);
    run.shows("`late p50 overhead < 1us`: broken: ");
    run.shows("`p50 overhead < 1s` on `late`: holds: ");
    run.shows("`late p50 value > 1us`: holds: ");
    assert!(run.recording_folder().join("junit.xml").is_file());
}
