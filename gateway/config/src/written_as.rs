//! The JSON Schema of types that are read from another type.

/// Implements `JsonSchema` for a type with the schema of its type in the file.
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
