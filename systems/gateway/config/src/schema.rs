//! The JSON Schema of the file, made from the structs. The check of the structure and editors use
//! it.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::Config;

/// The JSON Schema of the file, as committed at `schemas/gateway.schema.json`.
#[must_use]
pub fn schema() -> Value {
    // Draft 7 is what editors' YAML plugins know best.
    let settings = SchemaSettings::draft07().with_transform(JoinLines);
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<Config>();
    schema.insert("title".to_owned(), json!("Weighbridge gateway"));
    schema.to_value()
}

/// Gives the type that a value is read into the schema of the type it is written as.
macro_rules! written_as {
    ($($read:ty => $written:ty),* $(,)?) => {
        $(impl ::schemars::JsonSchema for $read {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($read).into()
            }

            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                <$written as ::schemars::JsonSchema>::json_schema(generator)
            }
        })*
    };
}

pub(crate) use written_as;

/// Replaces the line breaks of doc comments in descriptions by spaces.
#[derive(Clone)]
struct JoinLines;

impl Transform for JoinLines {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(description)) = schema.get_mut("description") {
            *description = description.replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}
