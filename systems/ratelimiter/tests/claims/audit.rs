//! The server audits of the npm package graphql-http, run from the folder of graphql-server.

use std::path::Path;
use std::process::Command;

use crate::server::Server;

/// SHOULD answer 200 to `application/json` where the contract's clients expect 400: documents that
/// cannot be parsed, that are not valid, and variables that do not fit.
const DIFFERENT: [&str; 3] = ["572B", "FDE2", "7B9B"];

#[test]
fn every_audit_is_ok_but_the_three_that_the_contract_answers_otherwise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../graphql-server/audit");
    for program in ["node", "npm"] {
        if !judged::is_installed(program) {
            return;
        }
    }
    if !folder
        .join("node_modules/graphql-http/package.json")
        .exists()
    {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        let status = install.current_dir(&folder).status().unwrap();
        assert!(status.success(), "`npm ci` in {} failed", folder.display());
    }
    let server = Server::start(&[]);
    let url = format!("http://{}/graphql", server.address);
    let mut audit = Command::new("node");
    audit.args(["audit.mjs", &url]).current_dir(&folder);
    let output = audit.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let not_ok: Vec<_> = told
        .lines()
        .filter_map(|line| line.strip_prefix("NOT OK "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(not_ok, DIFFERENT, "{told}");
    assert!(told.contains("58 of 61 audits ok"), "{told}");
}
