//! A setting, as it is written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use yaml_with_places::At;

use crate::fields::Table;
use crate::formats::{ChoiceName, Name, Verbatim};
use crate::template::Template;

/// Settings by name. Each has one value after the choices are made ([`crate::choices`]).
pub(crate) type Settings = Table<Name, At<Verbatim<Template>>>;
/// Settings as they are written.
pub(crate) type SettingsFile = Table<Name, SettingFile>;

/// A value, or values by the names that choose them. Only the schema uses this type, because choices
/// are made before a lab is read.
pub(crate) struct SettingFile;

impl JsonSchema for SettingFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "setting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<Verbatim<Template>>();
        let choices = generator.subschema_for::<Table<ChoiceName, Verbatim<Template>>>();
        json_schema!({"anyOf": [value, choices]})
    }
}
