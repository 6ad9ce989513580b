//! The introspection fields of schemas, types, fields and directives.

use graphql_tools::parser::schema::{Definition, Directive, InputValue, Type, Value};

use super::{Answer, Node};
use crate::schema::{Named, Schema, TypeText, type_name};
use crate::sdl;

type Directives = [Directive<'static, String>];

/// The value of a node's field.
pub(super) fn ask<'a>(
    schema: &'a Schema,
    node: Node<'a>,
    field: &str,
    deprecated: bool,
) -> Answer<'a> {
    match node {
        Node::Schema => ask_schema(schema, field),
        Node::Named(name) => match schema.named(name) {
            Some(named) => ask_type(schema, named, field, deprecated),
            None => Answer::Null,
        },
        Node::Wrapped(kind) => ask_wrapped(kind, field),
        Node::Field(it) => match field {
            "name" => Answer::Text(it.name.as_str().into()),
            "description" => Answer::text(it.description.as_deref()),
            "args" => inputs(&it.arguments, deprecated),
            "type" => Answer::One(type_node(&it.field_type)),
            _ => ask_deprecated(&it.directives, field),
        },
        Node::Input(it) => match field {
            "name" => Answer::Text(it.name.as_str().into()),
            "description" => Answer::text(it.description.as_deref()),
            "type" => Answer::One(type_node(&it.value_type)),
            "defaultValue" => Answer::text(it.default_value.as_ref().map(literal_text)),
            _ => ask_deprecated(&it.directives, field),
        },
        Node::EnumValue(it) => match field {
            "name" => Answer::Text(it.name.as_str().into()),
            "description" => Answer::text(it.description.as_deref()),
            _ => ask_deprecated(&it.directives, field),
        },
        Node::Directive(it) => match field {
            "name" => Answer::Text(it.name.as_str().into()),
            "description" => Answer::text(it.description.as_deref()),
            "args" => inputs(&it.arguments, deprecated),
            "isRepeatable" => Answer::Bool(it.repeatable),
            "locations" => Answer::Texts(it.locations.iter().map(|place| place.as_str()).collect()),
            _ => Answer::Null,
        },
    }
}

fn ask_schema<'a>(schema: &'a Schema, field: &str) -> Answer<'a> {
    let definitions = &schema.document.definitions;
    match field {
        "description" => Answer::text(schema.description.as_deref()),
        "queryType" => Answer::One(Node::Named(schema.query_root())),
        "mutationType" => schema
            .mutation_root()
            .map_or(Answer::Null, |name| Answer::One(Node::Named(name))),
        "subscriptionType" => schema
            .subscription_root()
            .map_or(Answer::Null, |name| Answer::One(Node::Named(name))),
        "types" => Answer::Many(
            definitions
                .iter()
                .filter_map(|it| match it {
                    Definition::TypeDefinition(it) => {
                        // Types of composition are in the document but not in the index. See `is_composed`.
                        let named = schema.named(type_name(it))?;
                        Some(Node::Named(name_of(named)))
                    }
                    _ => None,
                })
                .collect(),
        ),
        "directives" => Answer::Many(
            definitions
                .iter()
                .filter_map(|it| match it {
                    Definition::DirectiveDefinition(it) => Some(Node::Directive(it)),
                    _ => None,
                })
                .collect(),
        ),
        _ => Answer::Null,
    }
}

fn ask_type<'a>(schema: &'a Schema, named: Named<'a>, field: &str, deprecated: bool) -> Answer<'a> {
    match field {
        "kind" => Answer::Text(kind(named).into()),
        "name" => Answer::Text(name_of(named).into()),
        "description" => Answer::text(description(named)),
        "specifiedByURL" => match named {
            Named::Scalar(it) => Answer::text(argument(&it.directives, "specifiedBy", "url")),
            _ => Answer::Null,
        },
        "isOneOf" => match named {
            Named::Input(it) => Answer::Bool(it.directives.iter().any(|it| it.name == "oneOf")),
            _ => Answer::Null,
        },
        "fields" => match named {
            Named::Object(_) | Named::Interface(_) => {
                let shown = named.fields().iter().filter(|field| {
                    !field.name.starts_with("__")
                        && (deprecated || !is_deprecated(&field.directives))
                });
                Answer::Many(shown.map(Node::Field).collect())
            }
            _ => Answer::Null,
        },
        "interfaces" => {
            let names = match named {
                Named::Object(it) => &it.implements_interfaces,
                Named::Interface(it) => &it.implements_interfaces,
                _ => return Answer::Null,
            };
            // Clients must not see the name of an inaccessible interface.
            let known = names.iter().filter(|name| schema.named(name).is_some());
            Answer::Many(known.map(|name| Node::Named(name)).collect())
        }
        "possibleTypes" => match named {
            Named::Interface(_) | Named::Union(_) => {
                let objects = schema.possible(name_of(named)).into_iter();
                // `possible` covers the whole supergraph, including inaccessible objects.
                let known = objects.filter(|name| schema.named(name).is_some());
                Answer::Many(known.map(Node::Named).collect())
            }
            _ => Answer::Null,
        },
        "enumValues" => match named {
            Named::Enum(it) => {
                let shown = it.values.iter();
                let shown = shown.filter(|it| deprecated || !is_deprecated(&it.directives));
                Answer::Many(shown.map(Node::EnumValue).collect())
            }
            _ => Answer::Null,
        },
        "inputFields" => match named {
            Named::Input(it) => inputs(&it.fields, deprecated),
            _ => Answer::Null,
        },
        _ => Answer::Null,
    }
}

fn ask_wrapped<'a>(of: &'a TypeText, field: &str) -> Answer<'a> {
    let (kind, inner) = match of {
        Type::ListType(inner) => ("LIST", inner),
        Type::NonNullType(inner) => ("NON_NULL", inner),
        Type::NamedType(_) => return Answer::Null,
    };
    match field {
        "kind" => Answer::Text(kind.into()),
        "ofType" => Answer::One(type_node(inner)),
        _ => Answer::Null,
    }
}

fn ask_deprecated<'a>(directives: &'a Directives, field: &str) -> Answer<'a> {
    match field {
        "isDeprecated" => Answer::Bool(is_deprecated(directives)),
        "deprecationReason" if is_deprecated(directives) => Answer::Text(
            argument(directives, "deprecated", "reason")
                // The default value of `reason` in the GraphQL specification, section 3.13.3.
                .unwrap_or("No longer supported")
                .into(),
        ),
        _ => Answer::Null,
    }
}

fn type_node(of: &TypeText) -> Node<'_> {
    match of {
        Type::NamedType(name) => Node::Named(name),
        wrapped => Node::Wrapped(wrapped),
    }
}

fn inputs<'a>(values: &'a [InputValue<'static, String>], deprecated: bool) -> Answer<'a> {
    let shown = values
        .iter()
        .filter(|it| deprecated || !is_deprecated(&it.directives));
    Answer::Many(shown.map(Node::Input).collect())
}

fn is_deprecated(directives: &Directives) -> bool {
    directives.iter().any(|it| it.name == "deprecated")
}

fn argument<'a>(directives: &'a Directives, directive: &str, name: &str) -> Option<&'a str> {
    let directive = directives.iter().find(|it| it.name == directive)?;
    sdl::text(directive, name)
}

fn kind(named: Named<'_>) -> &'static str {
    match named {
        Named::Scalar(_) => "SCALAR",
        Named::Enum(_) => "ENUM",
        Named::Object(_) => "OBJECT",
        Named::Interface(_) => "INTERFACE",
        Named::Union(_) => "UNION",
        Named::Input(_) => "INPUT_OBJECT",
    }
}

pub(super) fn name_of(named: Named<'_>) -> &str {
    match named {
        Named::Scalar(it) => &it.name,
        Named::Enum(it) => &it.name,
        Named::Object(it) => &it.name,
        Named::Interface(it) => &it.name,
        Named::Union(it) => &it.name,
        Named::Input(it) => &it.name,
    }
}

fn description(named: Named<'_>) -> Option<&str> {
    match named {
        Named::Scalar(it) => it.description.as_deref(),
        Named::Enum(it) => it.description.as_deref(),
        Named::Object(it) => it.description.as_deref(),
        Named::Interface(it) => it.description.as_deref(),
        Named::Union(it) => it.description.as_deref(),
        Named::Input(it) => it.description.as_deref(),
    }
}

/// A default as GraphQL text on one line. A block string would lose line ends at its begin and end.
fn literal_text(value: &Value<'static, String>) -> String {
    match value {
        Value::String(text) => {
            // Every escape of JSON is one of GraphQL.
            serde_json::to_string(text).expect("a string has a JSON form")
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(literal_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members: Vec<String> = members
                .map(|(name, value)| format!("{name}: {}", literal_text(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}
