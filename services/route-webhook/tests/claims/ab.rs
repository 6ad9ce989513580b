//! Tests the seed's command line with the real ApacheBench.

use std::path::Path;
use std::process::Command;

use crate::server::start;

/// An image with a name as long as the image name in the document's cluster.
const SEED_IMAGE: &str = "registry.example/keip-default-image:0.0.2";

#[test]
fn the_request_of_2023_has_its_length_and_answer() {
    let request = include_str!("../../../../labs/webhook/requests/seed.json");
    let answer = include_str!("../../../../labs/webhook/expected/seed.json");
    // With the 147 bytes of ab's head, the request has 1,657 bytes, as in the document.
    assert_eq!((request.len(), answer.len()), (1510, 1729));
    let server = start(&["--compat=seed", "--integration-image", SEED_IMAGE]);
    let response = server.client().post("/sync", request);
    assert_eq!((response.status, &*response.body), (200, answer));
}

#[test]
fn the_seeds_run_has_no_failed_request() {
    // From Debian's package apache2-utils.
    if !judged::is_installed("ab") {
        return;
    }
    let requests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/webhook/requests");
    let seed = ["--compat=seed", "--integration-image", SEED_IMAGE];
    for (path, flags, body, length) in [
        // The lengths in the document.
        ("/sync", &seed[..], "seed.json", 1729),
        ("/webhook/sync", &[], "route.json", 4153),
    ] {
        let server = start(flags);
        let body = requests.join(body);
        let output = Command::new("ab")
            .args(["-n", "1000", "-c", "10", "-T", "application/json", "-p"])
            .arg(&body)
            .arg(format!("http://{}{path}", server.address))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        for line in [
            "Complete requests:      1000\n".to_owned(),
            "Failed requests:        0\n".to_owned(),
            "Server Software:        route-webhook\n".to_owned(),
            format!("Document Path:          {path}\n"),
            format!("Document Length:        {length} bytes\n"),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(!text.contains("Non-2xx"), "{text}");
    }
}
