//! Values in the text of a generated lab.

/// Quotes any text for YAML. A JSON string is also a YAML string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
