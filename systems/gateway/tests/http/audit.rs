//! Every server audit of the npm package graphql-http: what MUST, SHOULD and MAY be.
//!
//! The package and its runner are those of `systems/graphql-server/audit`.

use std::path::Path;
use std::process::Command;

use crate::gateway::Gateway;
use crate::stub::Stub;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../graphql-server/audit");
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
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("supergraph: {introspection: true}"));
    let url = format!("http://{}/", gateway.address);
    let output = Command::new("node")
        // The header with which a client says that no foreign page made a browser send this.
        .args(["audit.mjs", &url, "apollo-require-preflight: true"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}{talk}");
    println!("{}", told.lines().last().unwrap_or_default());
}
