//! The id of a row: a UUID.

use std::str::FromStr;

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// The id of a row. Both databases sort ids by their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id(pub(crate) Uuid);

/// The text is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a UUID such as 3f0a6c1e-52d9-8b7e-9a41-0c6f7d2b8e10")]
pub(crate) struct IdError;

impl Id {
    /// Creates a new unique id.
    pub(crate) fn fresh() -> Self {
        Self(Uuid::new_v4())
    }
}

impl FromStr for Id {
    type Err = IdError;

    /// Only the form with hyphens is valid, so that each row has one name.
    fn from_str(text: &str) -> Result<Self, IdError> {
        const LENGTH: usize = uuid::fmt::Hyphenated::LENGTH;
        // The parser also accepts forms without hyphens, in braces and as URN. They would be further names of
        // the same row.
        if text.len() != LENGTH {
            return Err(IdError);
        }
        text.parse().map(Self).map_err(|_| IdError)
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.hyphenated().fmt(formatter)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut buffer))
    }
}

/// The id of a row, in the form with hyphens.
#[Scalar(name = "uuid")]
impl ScalarType for Id {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => Ok(text.parse::<Self>()?),
            _ => Err(InputValueError::custom(IdError)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(text) if text.parse::<Self>().is_ok())
    }

    fn to_value(&self) -> Value {
        Value::String(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_form_with_hyphens_is_taken() {
        let text = "0f0a6c1e-52d9-8b7e-9a41-0c6f7d2b8e10";
        let id: Id = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
        for wrong in [
            "",
            "0f0a6c1e52d98b7e9a410c6f7d2b8e10",
            "{0f0a6c1e-52d9-8b7e-9a41-0c6f7d2b8e10}",
            "0f0a6c1e-52d9-8b7e-9a41-0c6f7d2b8e1' ",
            "' OR 1=1 --",
        ] {
            assert_eq!(wrong.parse::<Id>(), Err(IdError), "{wrong}");
        }
    }
}
