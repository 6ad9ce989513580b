//! GraphQL inside the configuration: names, type references, type definitions and stored operations. The
//! gateway's own parser reads them.

use graphql_tools::parser::query::{Definition as QueryDefinition, OperationDefinition};
use graphql_tools::parser::schema::{Definition, Type, TypeDefinition};
use graphql_tools::parser::{parse_query, parse_schema};

use crate::written::Form;

/// A GraphQL name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphqlName(pub String);

impl Form for GraphqlName {
    const NAME: &'static str = "graphql-name";

    fn read(text: &str) -> Result<Self, String> {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let starts_well =
            text.starts_with(|first: char| is_letter(first) && !first.is_ascii_digit());
        // Two leading underscores are reserved for introspection.
        if starts_well && text.chars().all(is_letter) && !text.starts_with("__") {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "expected a GraphQL name: letters, digits and `_`, not `__` in front; found `{text}`"
        ))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// A reference to a type: `[product!]!`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeReference(pub Type<'static, String>);

impl Form for TypeReference {
    const NAME: &'static str = "graphql-type";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a GraphQL type such as `Int`, `uuid!` or `[product!]!`, found `{text}`"
            )
        };
        // Checked before parsing, because the parser would also accept a directive or a second field after
        // the type.
        let is_legal = |letter: char| {
            letter.is_ascii_alphanumeric() || matches!(letter, '_' | '[' | ']' | '!')
        };
        if text.is_empty() || !text.chars().all(is_legal) {
            return Err(wrong());
        }
        // The parser reads only documents, so the reference is put into a minimal document.
        let document = format!("type T{{f:{text}}}");
        let document = parse_schema::<String>(&document)
            .map_err(|_| wrong())?
            .into_static();
        match document.definitions.as_slice() {
            [Definition::TypeDefinition(TypeDefinition::Object(object))] => {
                match object.fields.as_slice() {
                    [field] => Ok(Self(field.field_type.clone())),
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// Type definitions in GraphQL's schema language.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TypeDefinitions(pub String);

impl Form for TypeDefinitions {
    const NAME: &'static str = "graphql-types";

    fn read(text: &str) -> Result<Self, String> {
        let document = parse_schema::<String>(text)
            .map_err(|error| format!("not GraphQL's schema language: {}", one_line(&error)))?;
        for definition in &document.definitions {
            match definition {
                Definition::TypeDefinition(_) => {}
                _ => {
                    return Err(
                        "expected definitions of types, found something else, such as `schema`, `extend` or `directive`"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(Self(text.to_owned()))
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// The text of a stored operation: exactly one query or mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredText(pub String);

impl Form for StoredText {
    const NAME: &'static str = "graphql-operation";

    fn read(text: &str) -> Result<Self, String> {
        let document = parse_query::<String>(text)
            .map_err(|error| format!("not a GraphQL operation: {}", one_line(&error)))?;
        let operations: Vec<_> = document
            .definitions
            .iter()
            .filter_map(|definition| match definition {
                QueryDefinition::Operation(operation) => Some(operation),
                QueryDefinition::Fragment(_) => None,
            })
            .collect();
        match operations.as_slice() {
            // REST returns a single response, so a stored operation cannot be a subscription.
            [OperationDefinition::Subscription(_)] => {
                Err("expected a query or a mutation, found a subscription".to_owned())
            }
            [_] => Ok(Self(text.to_owned())),
            found => Err(format!(
                "a stored query should contain exactly one operation, found {}",
                found.len()
            )),
        }
    }

    fn write(&self) -> String {
        self.0.clone()
    }
}

/// The name of a type without lists and `!`.
pub fn inner_name<'a>(of: &'a Type<'_, String>) -> &'a str {
    match of {
        Type::NamedType(name) => name,
        Type::ListType(inner) | Type::NonNullType(inner) => inner_name(inner),
    }
}

fn one_line(error: &impl ToString) -> String {
    // The parser's message has several lines, but a finding has one line.
    let text = error.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
