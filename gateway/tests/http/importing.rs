//! Tests the command `import`: its output, its refusals and its exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn gateway(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gateway"))
        .args(arguments)
        .current_dir(folder)
        .env("BASE", "http://127.0.0.1:1")
        .output()
        .unwrap()
}

/// A metadata folder with these files.
fn metadata(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("version.yaml", "version: 3\n")].iter().chain(files) {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const PERMISSIONS: (&str, &str) = (
    "remote_schemas.yaml",
    "- name: shop\n  definition: {url: 'http://127.0.0.1:1'}\n  permissions: [{role: user, definition: {schema: 'type Query { a: Int }'}}]\n",
);

/// The configuration would serve every field of the remote schema to every role.
#[test]
fn an_import_that_loses_permissions_is_refused() {
    let folder = metadata(&[PERMISSIONS]);
    let refused = gateway(&["import", "."], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(text(&refused.stdout), "");
    let said = text(&refused.stderr);
    assert!(said.contains("`permissions` of `shop`"), "{said}");
    assert!(said.contains("--without-restrictions"), "{said}");
    let written = gateway(&["import", ".", "--without-restrictions"], folder.path());
    assert_eq!(written.status.code(), Some(0));
    assert!(text(&written.stdout).contains("name: \"shop\""));
    assert!(text(&written.stderr).contains("`permissions` of `shop`"));
}

#[test]
fn an_import_without_readable_types_is_refused() {
    let actions = (
        "actions.yaml",
        "actions: [{name: a, definition: {handler: 'http://h'}}]\n",
    );
    let folder = metadata(&[actions, ("actions.graphql", "type Query { a(")]);
    let refused = gateway(&["import", "."], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(text(&refused.stdout), "");
    assert!(text(&refused.stderr).contains("actions.graphql"));
}

/// A file that exists and cannot be read is not a missing file.
#[test]
fn an_unreadable_file_ends_the_import() {
    let folder = metadata(&[]);
    fs::create_dir(folder.path().join("actions.yaml")).unwrap();
    let refused = gateway(&["import", "."], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("actions.yaml"));
}

#[test]
fn an_export_of_the_console_is_imported_and_passes_the_check() {
    let export = r#"{"resource_version": 3, "metadata": {"version": 3, "actions": [{"name": "price",
        "permissions": [{"role": "user"}], "definition": {"handler": "{{BASE}}/price", "type": "query",
        "kind": "synchronous", "output_type": "Price", "arguments": [{"name": "of", "type": "uuid!"}],
        "forward_client_headers": true, "ignored_client_headers": ["authorization"]}}],
        "custom_types": {"objects": [{"name": "Price", "fields": [{"name": "amount", "type": "numeric!"}]}]}}}"#;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("metadata.json"), export).unwrap();
    let imported = gateway(&["import", "metadata.json"], folder.path());
    assert_eq!(
        imported.status.code(),
        Some(0),
        "{}",
        text(&imported.stderr)
    );
    fs::write(folder.path().join("gateway.yaml"), &imported.stdout).unwrap();
    let checked = gateway(&["check", "gateway.yaml"], folder.path());
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    fs::write(folder.path().join("metadata.json"), "{}").unwrap();
    let refused = gateway(&["import", "metadata.json"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("expected `version: 3`"));
    let missing = gateway(&["import", "nowhere"], folder.path());
    assert_eq!(missing.status.code(), Some(2));
}
