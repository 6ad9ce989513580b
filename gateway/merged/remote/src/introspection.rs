//! Converts the response to an introspection query to type definitions.

use graphql_tools::parser::parse_schema;
use graphql_tools::parser::schema::{
    Definition, Directive, EnumType, EnumValue, Field, InputObjectType, InputValue, InterfaceType,
    ObjectType, ScalarType, Type, TypeDefinition, UnionType, Value,
};
use serde::Deserialize;

/// Writes the body of the request for a service's schema. The parts differ by specification: the fields of a
/// type, the arguments of `args` and `inputFields`, and the fields of an input.
macro_rules! body {
    ($type:literal, $inputs:literal, $input:literal) => {
        concat!(
            r#"{"operationName":"IntrospectionQuery","query":"query IntrospectionQuery{__schema{"#,
            "queryType{name}mutationType{name}subscriptionType{name}types{...T}}}",
            "fragment T on __Type{kind name description",
            $type,
            " fields(includeDeprecated:true){name description args",
            $inputs,
            "{...I}type{...R}isDeprecated deprecationReason}",
            "inputFields",
            $inputs,
            "{...I}interfaces{...R}enumValues(includeDeprecated:true){name description isDeprecated deprecationReason}possibleTypes{...R}}",
            "fragment I on __InputValue{name description type{...R}defaultValue",
            $input,
            "}fragment R on __Type{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name}}}}}}}}}}",
            r#""}"#,
        )
    };
}

/// The bodies of requests for a service's schema, from the newest specification to the oldest. A service
/// refuses a body with fields that it does not know, so the next one is sent then.
pub const INTROSPECTION_BODIES: [&str; 3] = [
    // September 2025: `@oneOf`.
    body!(
        " specifiedByURL isOneOf",
        "(includeDeprecated:true)",
        " isDeprecated deprecationReason"
    ),
    // Servers that know deprecated arguments, but not `@oneOf`.
    body!(
        " specifiedByURL",
        "(includeDeprecated:true)",
        " isDeprecated deprecationReason"
    ),
    // June 2018.
    body!("", "", ""),
];

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
    /// Fields, arguments and input fields with types that are nested deeper than the introspection query asks.
    pub(crate) too_deep: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    data: Option<serde_json::Value>,
    #[serde(default)]
    errors: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "__schema")]
    schema: SchemaText,
}

// The library's types for an introspection do not know `isOneOf`, deprecated inputs and directive locations of
// later specifications. These types ignore everything that the gateway does not use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemaText {
    query_type: NameText,
    mutation_type: Option<NameText>,
    subscription_type: Option<NameText>,
    types: Vec<TypeText>,
}

#[derive(Deserialize)]
struct NameText {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeText {
    kind: String,
    name: String,
    description: Option<String>,
    #[serde(rename = "specifiedByURL")]
    specified_by_url: Option<String>,
    is_one_of: Option<bool>,
    fields: Option<Vec<FieldText>>,
    input_fields: Option<Vec<InputText>>,
    interfaces: Option<Vec<NameText>>,
    enum_values: Option<Vec<EnumValueText>>,
    possible_types: Option<Vec<NameText>>,
}

#[derive(Deserialize)]
struct FieldText {
    name: String,
    description: Option<String>,
    #[serde(default)]
    args: Vec<InputText>,
    #[serde(rename = "type")]
    of: ReferenceText,
    #[serde(flatten)]
    deprecation: DeprecationText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputText {
    name: String,
    description: Option<String>,
    #[serde(rename = "type")]
    of: ReferenceText,
    default_value: Option<String>,
    #[serde(flatten)]
    deprecation: DeprecationText,
}

#[derive(Deserialize)]
struct EnumValueText {
    name: String,
    description: Option<String>,
    #[serde(flatten)]
    deprecation: DeprecationText,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeprecationText {
    is_deprecated: Option<bool>,
    deprecation_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReferenceText {
    kind: String,
    name: Option<String>,
    of_type: Option<Box<ReferenceText>>,
}

impl SourceSchema {
    /// Reads the response to one of [`INTROSPECTION_BODIES`], with at most `types_max` types. GraphQL's own
    /// types are not counted.
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
        let data: Data = serde_json::from_value(data)
            .map_err(|error| IntrospectionError::Unreadable(error.to_string()))?;
        let schema = data.schema;
        let told = schema.types.into_iter().filter(|it| !is_own(&it.name));
        let told: Vec<TypeText> = told.collect();
        if told.len() > types_max {
            return Err(IntrospectionError::TooManyTypes {
                count: told.len(),
                most: types_max,
            });
        }
        let mut reading = Reading::default();
        Ok(Self {
            types: told
                .into_iter()
                .filter_map(|it| reading.definition(it))
                .collect(),
            query: schema.query_type.name,
            mutation: schema.mutation_type.map(|it| it.name),
            subscription: schema.subscription_type.map(|it| it.name),
            too_deep: reading.too_deep,
        })
    }
}

/// True if the type belongs to GraphQL itself.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with("__") || is_built_in_scalar(name)
}

pub(crate) fn is_built_in_scalar(name: &str) -> bool {
    matches!(name, "Int" | "Float" | "String" | "Boolean" | "ID")
}

/// The state while the types of an introspection are read.
#[derive(Default)]
struct Reading {
    too_deep: Vec<String>,
}

impl Reading {
    /// The definition of a type. `None` for a kind of a later specification.
    fn definition(&mut self, of: TypeText) -> Option<TypeDefinition<'static, String>> {
        let description = of.description;
        Some(match of.kind.as_str() {
            "SCALAR" => TypeDefinition::Scalar(ScalarType {
                description,
                directives: of
                    .specified_by_url
                    .map(|url| directive("specifiedBy", Some(("url", url))))
                    .into_iter()
                    .collect(),
                ..ScalarType::new(of.name)
            }),
            "OBJECT" => TypeDefinition::Object(ObjectType {
                description,
                implements_interfaces: names(of.interfaces),
                fields: self.fields(&of.name, of.fields),
                ..ObjectType::new(of.name)
            }),
            "INTERFACE" => TypeDefinition::Interface(InterfaceType {
                description,
                implements_interfaces: names(of.interfaces),
                fields: self.fields(&of.name, of.fields),
                ..InterfaceType::new(of.name)
            }),
            "UNION" => TypeDefinition::Union(UnionType {
                description,
                types: names(of.possible_types),
                ..UnionType::new(of.name)
            }),
            "ENUM" => TypeDefinition::Enum(EnumType {
                description,
                values: of
                    .enum_values
                    .into_iter()
                    .flatten()
                    .map(enum_value)
                    .collect(),
                ..EnumType::new(of.name)
            }),
            "INPUT_OBJECT" => TypeDefinition::InputObject(InputObjectType {
                description,
                fields: self.inputs(&of.name, of.input_fields.unwrap_or_default()),
                directives: of
                    .is_one_of
                    .filter(|flag| *flag)
                    .map(|_| directive("oneOf", None))
                    .into_iter()
                    .collect(),
                ..InputObjectType::new(of.name)
            }),
            _ => return None,
        })
    }

    fn fields(&mut self, parent: &str, of: Option<Vec<FieldText>>) -> Vec<Field<'static, String>> {
        let mut fields = Vec::new();
        for field in of.into_iter().flatten() {
            let place = format!("{parent}.{}", field.name);
            // A field of an incomplete type is left out, because its type would be wrong.
            let Some(field_type) = type_of(field.of) else {
                self.too_deep.push(place);
                continue;
            };
            fields.push(Field {
                position: Default::default(),
                description: field.description,
                arguments: self.inputs(&place, field.args),
                name: field.name,
                field_type,
                directives: field.deprecation.directives(),
            });
        }
        fields
    }

    fn inputs(&mut self, parent: &str, of: Vec<InputText>) -> Vec<InputValue<'static, String>> {
        let mut inputs = Vec::new();
        for input in of {
            let Some(value_type) = type_of(input.of) else {
                self.too_deep.push(format!("{parent}.{}", input.name));
                continue;
            };
            inputs.push(InputValue {
                position: Default::default(),
                description: input.description,
                name: input.name,
                value_type,
                // An unreadable default counts as absent. The service applies its own default.
                default_value: input.default_value.as_deref().and_then(literal),
                directives: input.deprecation.directives(),
            });
        }
        inputs
    }
}

impl DeprecationText {
    fn directives(self) -> Vec<Directive<'static, String>> {
        if self.is_deprecated != Some(true) {
            return Vec::new();
        }
        let reason = self.deprecation_reason.map(|reason| ("reason", reason));
        vec![directive("deprecated", reason)]
    }
}

fn directive(name: &str, argument: Option<(&str, String)>) -> Directive<'static, String> {
    let argument = argument.map(|(name, text)| (name.to_owned(), Value::String(text)));
    Directive {
        position: Default::default(),
        name: name.to_owned(),
        arguments: argument.into_iter().collect(),
    }
}

fn names(references: Option<Vec<NameText>>) -> Vec<String> {
    let references = references.into_iter().flatten();
    references.map(|it| it.name).collect()
}

fn enum_value(of: EnumValueText) -> EnumValue<'static, String> {
    EnumValue {
        description: of.description,
        directives: of.deprecation.directives(),
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

/// The type of a reference. `None` if it is nested deeper than the introspection query asks.
fn type_of(of: ReferenceText) -> Option<Type<'static, String>> {
    let inner = |of: Option<Box<ReferenceText>>| type_of(*of?).map(Box::new);
    Some(match of.kind.as_str() {
        "LIST" => Type::ListType(inner(of.of_type)?),
        "NON_NULL" => Type::NonNullType(inner(of.of_type)?),
        _ => Type::NamedType(of.name?),
    })
}
