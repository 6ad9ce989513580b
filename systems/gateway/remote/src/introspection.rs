//! Converts the response to an introspection query to type definitions.

use graphql_tools::introspection::{
    IntrospectionEnumValue, IntrospectionField, IntrospectionInputTypeRef, IntrospectionInputValue,
    IntrospectionNamedTypeRef, IntrospectionOutputTypeRef, IntrospectionQuery, IntrospectionSchema,
    IntrospectionType,
};
use graphql_tools::parser::parse_schema;
use graphql_tools::parser::schema::{
    Definition, Directive, EnumType, EnumValue, Field, InputObjectType, InputValue, InterfaceType,
    ObjectType, ScalarType, Type, TypeDefinition, UnionType, Value,
};
use serde::Deserialize;

/// The body of the request for a service's schema.
pub const INTROSPECTION_BODY: &str = concat!(
    r#"{"operationName":"IntrospectionQuery","query":"query IntrospectionQuery{__schema{"#,
    "queryType{name}mutationType{name}subscriptionType{name}types{...T}directives{name description locations args{...I}}}}",
    "fragment T on __Type{kind name description fields(includeDeprecated:true){name description args{...I}type{...R}isDeprecated deprecationReason}",
    "inputFields{...I}interfaces{...R}enumValues(includeDeprecated:true){name description isDeprecated deprecationReason}possibleTypes{...R}}",
    "fragment I on __InputValue{name description type{...R}defaultValue}",
    "fragment R on __Type{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name}}}}}}}}",
    r#""}"#,
);

/// The reason why a service's response is not a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntrospectionError {
    /// The text is not the JSON of an introspection.
    #[error("the answer to the introspection query is not a schema: {0}")]
    Unreadable(String),
    /// The service returned errors.
    #[error("the service refused the introspection query: {0}")]
    Refused(String),
    /// The schema has more types than the configuration allows.
    #[error("the schema has {count} types, more than `limits.remote_schema_max_types` ({most})")]
    TooManyTypes {
        /// Number of types in the schema.
        count: usize,
        /// Maximum number of types.
        most: usize,
    },
}

/// The schema of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSchema {
    pub(crate) types: Vec<TypeDefinition<'static, String>>,
    pub(crate) query: String,
    pub(crate) mutation: Option<String>,
    pub(crate) subscription: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    data: Option<serde_json::Value>,
    #[serde(default)]
    errors: Vec<serde_json::Value>,
}

impl SourceSchema {
    /// Reads the response to [`INTROSPECTION_BODY`], with at most `types_max` types. GraphQL's own types are
    /// not counted.
    ///
    /// # Errors
    /// Fails if the text is not such a response, has errors and no data, or has more types.
    pub fn read(body: &[u8], types_max: usize) -> Result<Self, IntrospectionError> {
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|error| IntrospectionError::Unreadable(error.to_string()))?;
        let Some(data) = answer.data.filter(|data| !data.is_null()) else {
            let first = answer.errors.first().map(|error| match &error["message"] {
                serde_json::Value::String(message) => message.clone(),
                _ => error.to_string(),
                // Data takes precedence over errors: a service may report an error in a part and still
                // describe its schema.
            });
            return Err(match first {
                Some(message) => IntrospectionError::Refused(message),
                None => IntrospectionError::Unreadable("it has no `data`".to_owned()),
            });
        };
        let schema = schema_of(data)?;
        let is_told = |it: &&IntrospectionType| !is_own(it.name());
        let count = schema.types.iter().filter(is_told).count();
        if count > types_max {
            let most = types_max;
            return Err(IntrospectionError::TooManyTypes { count, most });
        }
        let types = schema.types.into_iter();
        Ok(Self {
            types: types
                .filter(|it| !is_own(it.name()))
                .filter_map(definition)
                .collect(),
            query: schema.query_type.name,
            mutation: schema.mutation_type.map(|it| it.name),
            subscription: schema.subscription_type.map(|it| it.name),
        })
    }
}

/// The schema in the data of an introspection.
fn schema_of(mut data: serde_json::Value) -> Result<IntrospectionSchema, IntrospectionError> {
    // The merged schema has no directives of a service. A newer specification may add locations that the
    // library does not know, as graphql-js 16.14 did.
    if let Some(schema) = data
        .get_mut("__schema")
        .and_then(serde_json::Value::as_object_mut)
    {
        schema.insert(
            "directives".to_owned(),
            serde_json::Value::Array(Vec::new()),
        );
    }
    let read: IntrospectionQuery = serde_json::from_value(data)
        .map_err(|error| IntrospectionError::Unreadable(error.to_string()))?;
    Ok(read.__schema)
}

/// True if the type belongs to GraphQL itself.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with("__") || is_built_in_scalar(name)
}

pub(crate) fn is_built_in_scalar(name: &str) -> bool {
    matches!(name, "Int" | "Float" | "String" | "Boolean" | "ID")
}

fn definition(of: IntrospectionType) -> Option<TypeDefinition<'static, String>> {
    Some(match of {
        IntrospectionType::SCALAR(it) => TypeDefinition::Scalar(ScalarType {
            description: it.description,
            ..ScalarType::new(it.name)
        }),
        IntrospectionType::OBJECT(it) => TypeDefinition::Object(ObjectType {
            description: it.description,
            implements_interfaces: names(it.interfaces),
            // A field is left out if its type is nested deeper than the introspection query. Its type would
            // be wrong.
            fields: it.fields.into_iter().filter_map(field).collect(),
            ..ObjectType::new(it.name)
        }),
        IntrospectionType::INTERFACE(it) => TypeDefinition::Interface(InterfaceType {
            description: it.description,
            implements_interfaces: names(it.interfaces.unwrap_or_default()),
            fields: it.fields.into_iter().filter_map(field).collect(),
            ..InterfaceType::new(it.name)
        }),
        IntrospectionType::UNION(it) => TypeDefinition::Union(UnionType {
            description: it.description,
            types: names(it.possible_types),
            ..UnionType::new(it.name)
        }),
        IntrospectionType::ENUM(it) => TypeDefinition::Enum(EnumType {
            description: it.description,
            values: it.enum_values.into_iter().map(enum_value).collect(),
            ..EnumType::new(it.name)
        }),
        IntrospectionType::INPUT_OBJECT(it) => TypeDefinition::InputObject(InputObjectType {
            description: it.description,
            fields: it.input_fields.into_iter().filter_map(input).collect(),
            ..InputObjectType::new(it.name)
        }),
    })
}

fn names(references: Vec<IntrospectionNamedTypeRef>) -> Vec<String> {
    references.into_iter().map(|it| it.name).collect()
}

fn field(of: IntrospectionField) -> Option<Field<'static, String>> {
    Some(Field {
        position: Default::default(),
        description: of.description,
        name: of.name,
        arguments: of.args.into_iter().filter_map(input).collect(),
        field_type: output_type(of.type_ref)?,
        directives: deprecation(of.is_deprecated, of.deprecation_reason),
    })
}

fn input(of: IntrospectionInputValue) -> Option<InputValue<'static, String>> {
    // An unreadable default counts as absent. The service applies its own default.
    let default = match of.default_value {
        Some(serde_json::Value::String(text)) => literal(&text),
        _ => None,
    };
    Some(InputValue {
        position: Default::default(),
        description: of.description,
        name: of.name,
        value_type: input_type(of.type_ref?)?,
        default_value: default,
        directives: Vec::new(),
    })
}

fn enum_value(of: IntrospectionEnumValue) -> EnumValue<'static, String> {
    EnumValue {
        description: of.description,
        directives: deprecation(of.is_deprecated, of.deprecation_reason),
        ..EnumValue::new(of.name)
    }
}

/// Parses a GraphQL literal, the form of defaults in introspection. An unreadable default is left out,
/// because the service applies it anyway.
fn literal(text: &str) -> Option<Value<'static, String>> {
    let document = format!("input I{{f:T={text}}}");
    let document = parse_schema::<String>(&document).ok()?.into_static();
    match document.definitions.as_slice() {
        [Definition::TypeDefinition(TypeDefinition::InputObject(object))] => {
            object.fields.first()?.default_value.clone()
        }
        _ => None,
    }
}

fn deprecation(flag: Option<bool>, reason: Option<String>) -> Vec<Directive<'static, String>> {
    if flag != Some(true) {
        return Vec::new();
    }
    let reason = reason.map(|text| ("reason".to_owned(), Value::String(text)));
    vec![Directive {
        position: Default::default(),
        name: "deprecated".to_owned(),
        arguments: reason.into_iter().collect(),
    }]
}

fn output_type(of: IntrospectionOutputTypeRef) -> Option<Type<'static, String>> {
    use IntrospectionOutputTypeRef as Of;
    Some(match of {
        Of::LIST { of_type } => Type::ListType(Box::new(output_type(*of_type?)?)),
        Of::NON_NULL { of_type } => Type::NonNullType(Box::new(output_type(*of_type?)?)),
        Of::SCALAR(it)
        | Of::ENUM(it)
        | Of::INPUT_OBJECT(it)
        | Of::UNION(it)
        | Of::OBJECT(it)
        | Of::INTERFACE(it) => Type::NamedType(it.name),
    })
}

fn input_type(of: IntrospectionInputTypeRef) -> Option<Type<'static, String>> {
    use IntrospectionInputTypeRef as Of;
    Some(match of {
        Of::LIST { of_type } => Type::ListType(Box::new(input_type(*of_type?)?)),
        Of::NON_NULL { of_type } => Type::NonNullType(Box::new(input_type(*of_type?)?)),
        Of::SCALAR(it) | Of::ENUM(it) | Of::INPUT_OBJECT(it) => Type::NamedType(it.name),
    })
}
