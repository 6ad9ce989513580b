//! Fields that an answer must have.

use serde_json::Value;

/// Fields with their values. Other fields of an answer may have any value.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedFields {
    /// The fields as written, which are compared.
    written: Value,
    /// The same message in the form of answers.
    value: Value,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// JSON pointer to the field.
    pub pointer: String,
    /// The expected value, as JSON.
    pub expected: String,
    /// The received value, as JSON.
    pub found: String,
}

impl ExpectedFields {
    pub(crate) fn new(written: Value, value: Value) -> ExpectedFields {
        ExpectedFields { written, value }
    }

    /// Returns the first difference of an answer.
    #[must_use]
    pub fn difference(&self, answer: &Value) -> Option<Difference> {
        let mut pointer = String::new();
        compare(&self.written, &self.value, Some(answer), &mut pointer)
    }
}

fn compare(
    written: &Value,
    expected: &Value,
    found: Option<&Value>,
    pointer: &mut String,
) -> Option<Difference> {
    let length = pointer.len();
    match (written, expected, found) {
        (Value::Object(names), Value::Object(own), Some(Value::Object(other))) => {
            for (name, written) in names {
                pointer.push('/');
                pointer.push_str(name);
                let expected = own.get(name).unwrap_or(&Value::Null);
                let differs = compare(written, expected, other.get(name), pointer);
                if differs.is_some() {
                    return differs;
                }
                pointer.truncate(length);
            }
            None
        }
        (Value::Array(items), Value::Array(own), Some(Value::Array(other)))
            if own.len() == other.len() && items.len() == own.len() =>
        {
            for (index, written) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                let differs = compare(written, &own[index], other.get(index), pointer);
                if differs.is_some() {
                    return differs;
                }
                pointer.truncate(length);
            }
            None
        }
        // A field without a value, such as an absent message, is not in the answer.
        (_, Value::Null, None) => None,
        (_, expected, found) if Some(expected) == found => None,
        (_, expected, found) => Some(Difference {
            pointer: pointer.clone(),
            expected: expected.to_string(),
            found: found.map_or_else(|| "none".to_owned(), Value::to_string),
        }),
    }
}
