//! Comparison of committed files with their generated text.
//!
//! A test of the crate that owns a file generates the text and compares. `cargo xtask schema` runs the same
//! tests with `UPDATE_SCHEMAS` set, so that they write the files instead.

use std::fs;
use std::path::Path;

/// Compares a committed JSON Schema with the schema of the current types. Writes the file if `UPDATE_SCHEMAS`
/// is set.
///
/// # Panics
///
/// Panics if the committed schema differs.
pub fn assert_schema(name: &str, schema: &serde_json::Value) {
    // The alternate form is indented.
    assert_generated(
        &format!("schemas/{name}.schema.json"),
        &format!("{schema:#}\n"),
    );
}

/// Compares a committed file with its generated text. Writes the file if `UPDATE_SCHEMAS` is set. `file` is
/// relative to the root of the repository.
///
/// # Panics
///
/// Panics if the committed file differs, or if it cannot be written.
#[expect(clippy::disallowed_methods, reason = "the switch that writes the file")]
pub fn assert_generated(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        let written = fs::write(&path, text);
        assert!(written.is_ok(), "{file} cannot be written: {written:?}");
    }
    // A missing file is an empty text, which differs.
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = |(new, old): &(&str, &str)| new != old;
    let first = text.lines().zip(committed.lines()).find(differs);
    assert!(
        committed == text,
        "{file} is out of date (first difference: {first:?}); run `cargo xtask schema`"
    );
}
