//! The seed's command line, with the real ApacheBench.

use std::path::Path;
use std::process::Command;

use crate::server::start;

#[test]
fn the_seeds_run_has_no_failed_request() {
    // Of Debian's package apache2-utils.
    if !judged::is_installed("ab") {
        return;
    }
    let body = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/webhook/requests/route.json");
    for (path, format, length) in [("/sync", "seed", 1799), ("/webhook/sync", "today", 4153)] {
        let server = start(&["--compat", format]);
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
