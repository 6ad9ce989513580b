//! Runs all server audits of the npm package graphql-http, for the levels MUST, SHOULD and MAY.

use std::path::Path;

use crate::node;

/// The results of the audits.
#[derive(Debug)]
pub struct Report {
    /// Ids of the failed audits.
    pub not_ok: Vec<String>,
    /// The whole output.
    pub text: String,
}

/// Audits an endpoint. `headers` are added to every request, as `NAME: VALUE`. If node is not installed,
/// returns `None` and prints a line NOT RUN.
///
/// # Panics
/// Panics if the package cannot be installed.
#[must_use]
pub fn run(url: &str, headers: &[&str]) -> Option<Report> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../graphql-http/audit");
    let words = [&["audit.mjs", url], headers].concat();
    let text = node::run(&folder, "graphql-http", &words)?;
    assert!(text.contains(" audits ok"), "it did not end: {text}");
    let not_ok = text
        .lines()
        .filter_map(|line| line.strip_prefix("NOT OK ")?.split(' ').next());
    Some(Report {
        not_ok: not_ok.map(str::to_owned).collect(),
        text,
    })
}

/// Checks that all 61 audits are ok.
///
/// # Panics
/// Panics if an audit is not ok.
pub fn all_are_ok(url: &str, headers: &[&str]) {
    if let Some(report) = run(url, headers) {
        assert!(report.not_ok.is_empty(), "{}", report.text);
        assert!(
            report.text.contains("61 of 61 audits ok"),
            "{}",
            report.text
        );
    }
}
