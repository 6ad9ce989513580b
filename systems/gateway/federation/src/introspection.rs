//! Answers `__schema` and `__type` from the client's schema.
//!
//! No subgraph is asked: a node is a reference into the schema's document, and what the
//! client selected of it is walked like any other selection, in turns and up to the size that a
//! response may have: types refer to each other, so that a short query can mean any size.

use std::borrow::Cow;

use graphql_tools::parser::query::Value as Literal;
use graphql_tools::parser::schema::{
    Definition, Directive, DirectiveDefinition, EnumValue, Field, InputValue, Type,
};

use crate::projection::{Asked, Member, Projection, Shape, What};
use crate::response::{Stop, Writer};
use crate::schema::{Named, Schema, TypeText, type_name};
use crate::sdl;

/// Lists of fields within lists of fields that are still answered when
/// `limits.introspection_max_depth` is on.
const NESTED_LISTS_MAX: usize = 2;

type Directives = [Directive<'static, String>];

/// Something that can be asked about.
#[derive(Clone, Copy)]
pub(crate) enum Node<'a> {
    Schema,
    Named(&'a str),
    Wrapped(&'a TypeText),
    Field(&'a Field<'static, String>),
    Input(&'a InputValue<'static, String>),
    EnumValue(&'a EnumValue<'static, String>),
    Directive(&'a DirectiveDefinition<'static, String>),
}

enum Answer<'a> {
    Null,
    Bool(bool),
    Text(Cow<'a, str>),
    Texts(Vec<&'a str>),
    One(Node<'a>),
    Many(Vec<Node<'a>>),
}

impl<'a> Answer<'a> {
    fn text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Answer::Null, |text| Answer::Text(text.into()))
    }
}

/// A part of an answer that is not written to its end.
pub(crate) enum Part<'a> {
    Object {
        node: Node<'a>,
        /// Those that are left.
        members: std::slice::Iter<'a, Member>,
        separate: bool,
    },
    List {
        /// Those that are left.
        nodes: std::vec::IntoIter<Node<'a>>,
        item: &'a Shape,
        separate: bool,
    },
}

/// Answers a root field, or goes on with it after a pause.
pub(crate) fn write_root<'a>(
    writer: &mut Writer<'a>,
    asked: &'a Asked,
    shape: &'a Shape,
) -> Result<(), Stop> {
    if writer.introspected.is_empty() {
        let answer = ask_root(writer, asked);
        write(writer, answer, shape)?;
    }
    // The levels of an answer are in a list and not on the stack, so that it can be left at any place.
    while let Some(mut part) = writer.introspected.pop() {
        if let Err(stop) = writer.step(0) {
            writer.introspected.push(part);
            return Err(stop);
        }
        match &mut part {
            Part::Object {
                node,
                members,
                separate,
            } => match members.next() {
                None => writer.out.push(b'}'),
                Some(member) => {
                    let node = *node;
                    let is_there = open(writer, member, separate);
                    writer.introspected.push(part);
                    if is_there {
                        write_member(writer, node, member)?;
                    }
                }
            },
            Part::List {
                nodes,
                item,
                separate,
            } => match nodes.next() {
                None => writer.out.push(b']'),
                Some(node) => {
                    if std::mem::replace(separate, true) {
                        writer.out.push(b',');
                    }
                    let item = *item;
                    writer.introspected.push(part);
                    write_node(writer, node, item);
                }
            },
        }
    }
    Ok(())
}

fn ask_root<'a>(writer: &Writer<'a>, asked: &'a Asked) -> Answer<'a> {
    let schema = &writer.checked.schema;
    match asked.name.as_str() {
        "__schema" => Answer::One(Node::Schema),
        "__type" => match text_argument(writer, asked, "name") {
            // The schema's own copy of the name: a node must live as long as the schema.
            Some(name) => match schema.named(&name) {
                Some(named) => Answer::One(Node::Named(name_of(named))),
                None => Answer::Null,
            },
            None => Answer::Null,
        },
        // Only `__schema` and `__type` are root fields of introspection, and validation refused any
        // other name.
        _ => Answer::Null,
    }
}

/// How deep lists of types and fields are nested below a member of the root.
pub(crate) fn nests_too_deep(projection: &Projection) -> bool {
    let Some(root) = projection.members.get(projection.root) else {
        return false;
    };
    root.iter()
        .filter(|member| member.introspection.is_some())
        .any(|member| match &member.what {
            What::Value(shape) => list_depth(projection, shape) > NESTED_LISTS_MAX,
            What::Text(_) | What::Denied | What::Deferred(_) => false,
        })
}

fn list_depth(projection: &Projection, shape: &Shape) -> usize {
    let selection = match shape {
        Shape::Leaf(_) => return 0,
        Shape::List { item, .. } => return list_depth(projection, item),
        Shape::Object(selection) => *selection,
    };
    let Some(per_type) = projection.selections.get(selection) else {
        return 0;
    };
    // The types of introspection are objects, never interfaces, so `otherwise` holds all members.
    let members = projection.members.get(per_type.otherwise);
    let depths = members.into_iter().flatten().map(|member| {
        let What::Value(shape) = &member.what else {
            return 0;
        };
        let name = member
            .introspection
            .as_ref()
            .map_or("", |asked| &asked.name);
        let listed = matches!(
            name,
            "fields" | "interfaces" | "possibleTypes" | "inputFields"
        );
        usize::from(listed) + list_depth(projection, shape)
    });
    depths.max().unwrap_or(0)
}

/// Writes a leaf, or begins an object or a list.
fn write<'a>(writer: &mut Writer<'a>, answer: Answer<'a>, shape: &'a Shape) -> Result<(), Stop> {
    // One level is enough: the introspection schema has no list of lists.
    let item = match shape {
        Shape::List { item, .. } => item,
        other => other,
    };
    match answer {
        Answer::Null => writer.out.extend_from_slice(b"null"),
        Answer::Bool(true) => writer.out.extend_from_slice(b"true"),
        Answer::Bool(false) => writer.out.extend_from_slice(b"false"),
        Answer::Text(text) => writer.json_string(&text)?,
        Answer::Texts(texts) => {
            writer.out.push(b'[');
            for (index, text) in texts.iter().enumerate() {
                if index > 0 {
                    writer.out.push(b',');
                }
                writer.json_string(text)?;
            }
            writer.out.push(b']');
        }
        Answer::One(node) => write_node(writer, node, item),
        Answer::Many(nodes) => {
            writer.out.push(b'[');
            writer.introspected.push(Part::List {
                nodes: nodes.into_iter(),
                item,
                separate: false,
            });
        }
    }
    Ok(())
}

/// Begins an object.
fn write_node<'a>(writer: &mut Writer<'a>, node: Node<'a>, shape: &'a Shape) {
    let projection = &writer.checked.projection;
    let Shape::Object(selection) = shape else {
        return;
    };
    let members = projection
        .selections
        .get(*selection)
        .and_then(|per_type| projection.members.get(per_type.otherwise));
    writer.out.push(b'{');
    writer.introspected.push(Part::Object {
        node,
        members: members.map(|it| it.iter()).unwrap_or_default(),
        separate: false,
    });
}

/// Writes the key of a member if the member is there.
fn open(writer: &mut Writer<'_>, member: &Member, separate: &mut bool) -> bool {
    let is_there = member
        .presence
        .is_none_or(|index| writer.presences.get(index).is_some_and(|it| *it));
    if is_there {
        if std::mem::replace(separate, true) {
            writer.out.push(b',');
        }
        writer.out.extend_from_slice(&member.opener);
    }
    is_there
}

fn write_member<'a>(
    writer: &mut Writer<'a>,
    node: Node<'a>,
    member: &'a Member,
) -> Result<(), Stop> {
    match (&member.what, &member.introspection) {
        (What::Text(text), _) => writer.out.extend_from_slice(text),
        (What::Denied, _) => writer.out.extend_from_slice(b"null"),
        (What::Deferred(_), _) => unreachable!("such a member is never present"),
        (What::Value(shape), Some(asked)) => {
            let all = flag_argument(writer, asked, "includeDeprecated");
            let answer = ask(&writer.checked.schema, node, &asked.name, all);
            write(writer, answer, shape)?;
        }
        // Unreachable: `projection` notes the field for each type whose name begins with `__`.
        (What::Value(_), None) => writer.out.extend_from_slice(b"null"),
    }
    Ok(())
}

fn literal<'a>(writer: &Writer<'a>, asked: &'a Asked, name: &str) -> Option<serde_json::Value> {
    let (_, literal) = asked.arguments.iter().find(|(key, _)| key == name)?;
    let of = |literal: &Literal<'static, String>| match literal {
        Literal::String(text) => Some(serde_json::Value::from(text.as_str())),
        Literal::Boolean(flag) => Some(serde_json::Value::from(*flag)),
        _ => None,
    };
    let Literal::Variable(variable) = literal else {
        return of(literal);
    };
    let declared = &writer.checked.declared;
    let index = declared.iter().position(|it| it.name == *variable)?;
    match writer.variables.json(index) {
        // Only a lone surrogate fails here (variables are checked before), and it cannot be part of
        // a name.
        Some(json) => serde_json::from_slice(json).ok(),
        None => declared[index].default.as_ref().and_then(of),
    }
}

fn text_argument(writer: &Writer<'_>, asked: &Asked, name: &str) -> Option<String> {
    match literal(writer, asked, name) {
        Some(serde_json::Value::String(text)) => Some(text),
        _ => None,
    }
}

fn flag_argument(writer: &Writer<'_>, asked: &Asked, name: &str) -> bool {
    literal(writer, asked, name) == Some(serde_json::Value::Bool(true))
}

fn ask<'a>(schema: &'a Schema, node: Node<'a>, field: &str, deprecated: bool) -> Answer<'a> {
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
            "defaultValue" => Answer::text(it.default_value.as_ref().map(ToString::to_string)),
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
                        // Types of composition are in the document but not in the index; see
                        // `is_composed`.
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
            // An inaccessible interface must not be named.
            let known = names.iter().filter(|name| schema.named(name).is_some());
            Answer::Many(known.map(|name| Node::Named(name)).collect())
        }
        "possibleTypes" => match named {
            Named::Interface(_) | Named::Union(_) => {
                let objects = schema.possible(name_of(named)).into_iter();
                // `possible` covers the whole supergraph, with its inaccessible objects.
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

fn name_of(named: Named<'_>) -> &str {
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
