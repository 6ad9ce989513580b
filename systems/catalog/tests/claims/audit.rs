//! Every server audit of the npm package graphql-http, run from the folder of graphql-server.

use std::path::Path;
use std::process::Command;

use crate::databases::Database;
use crate::server::Server;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
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
    let database = Database::sqlite();
    let server = Server::start(&database, &[]);
    let url = format!("http://{}/graphql", server.address);
    let mut audit = Command::new("node");
    audit.args(["audit.mjs", &url]).current_dir(&folder);
    let output = audit.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("61 of 61 audits ok"), "{told}");
}
