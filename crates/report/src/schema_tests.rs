//! Common code of the tests of generated files.

/// Compares a committed JSON Schema with the schema of the current types. Writes the file if `UPDATE_SCHEMAS`
/// is set.
pub(crate) fn assert_schema(name: &str, schema: &serde_json::Value) {
    let schema = serde_json::to_string_pretty(schema).unwrap() + "\n";
    assert_generated(&format!("schemas/{name}.schema.json"), &schema);
}

/// Compares a committed file with its generated text. Writes the file if `UPDATE_SCHEMAS` is set. `file` is
/// relative to the root of the repository.
#[expect(clippy::disallowed_methods, reason = "the switch that writes the file")]
pub(crate) fn assert_generated(file: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = |(new, old): &(&str, &str)| new != old;
    let first = text.lines().zip(committed.lines()).find(differs);
    assert!(
        committed == text,
        "{file} is out of date (first difference: {first:?}); run `cargo xtask schema`"
    );
}
