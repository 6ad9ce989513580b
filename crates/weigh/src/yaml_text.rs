//! Values as they stand in a lab that is written here.

/// A text of YAML, whatever is in it: one of JSON is one of YAML.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
