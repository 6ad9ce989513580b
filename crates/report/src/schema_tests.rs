//! Common code of the tests of generated schemas.

/// Compares a committed JSON Schema with the schema of the current types. Writes the file if `UPDATE_SCHEMAS`
/// is set.
#[expect(clippy::disallowed_methods, reason = "the switch that writes the file")]
pub(crate) fn assert_schema(name: &str, schema: &serde_json::Value) {
    let file = format!("schemas/{name}.schema.json");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(&file);
    let schema = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = |(new, old): &(&str, &str)| new != old;
    let first = schema.lines().zip(committed.lines()).find(differs);
    assert!(
        committed == schema,
        "{file} is out of date (first difference: {first:?}); run `cargo xtask schema`"
    );
}
