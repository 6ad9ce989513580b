//! Every server audit of the npm package graphql-http: what MUST, SHOULD and MAY be.

use std::path::Path;
use std::process::Command;

use crate::server::Server;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("audit");
    if !judged::is_installed("node") {
        return;
    }
    if !folder
        .join("node_modules/graphql-http/package.json")
        .exists()
    {
        if !judged::is_installed("npm") {
            return;
        }
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        let status = install.current_dir(&folder).status().unwrap();
        assert!(status.success(), "`npm ci` in {} failed", folder.display());
    }
    for server in Server::both(&[]) {
        let url = format!("http://{}/graphql", server.address());
        let output = Command::new("node")
            .args(["audit.mjs", &url])
            .current_dir(&folder)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}{talk}");
        println!("{}", told.lines().last().unwrap_or_default());
    }
}
