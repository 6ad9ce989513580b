//! Tests that the curl lines of the README work.

use std::process::Command;

use crate::ordered::Ordered;
use crate::server::start;

#[test]
fn the_lines_of_the_readme_work() {
    if !judged::is_installed("curl") {
        return;
    }
    // There is no cluster here.
    let server = start(&["--kubeconfig", "/nowhere"]);
    let readme = include_str!("../../README.md");
    let lines = readme.lines().filter(|line| line.starts_with("curl "));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let printed: Vec<String> = lines
        .map(|line| {
            let line = line.replace("localhost:7080", &server.address);
            let mut command = Command::new("sh");
            let output = command.args(["-c", &line]).current_dir(root).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{line}");
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    let expected = include_str!("../../../../labs/webhook/expected/today.json");
    assert_eq!(printed[0], expected);
    let certificates = Ordered::read(&printed[1]);
    let kind = certificates.at("/attachments/0/kind");
    assert_eq!(kind.and_then(Ordered::text), Some("Certificate"));
    assert_eq!(printed[2], "Internal server error");
    assert_eq!(printed[3], r#"{"status":"UP"}"#);
    assert!(printed[4].contains(r#"webhook_answers_total{endpoint="sync",status="2xx"} 1"#));
    assert_eq!(printed.len(), 5);
}
