//! Writes `__schema` and `__type` from the client's schema, without subgraphs.
//!
//! A node is a reference into the schema's document. The writer walks the client's selection like any other
//! selection, in turns and up to the size limit of a response. Types refer to each other, so a short query
//! can produce a response of any size.

mod ask;

use std::borrow::Cow;

use graphql_tools::parser::query::Value as Literal;
use graphql_tools::parser::schema::{DirectiveDefinition, EnumValue, Field, InputValue};

use super::{Stop, Writer};
use crate::bounds::Excess;
use crate::checked::Checked;
use crate::error::GraphqlError;
use crate::projection::{Member, RequestedField, Shape, What};
use crate::schema::TypeText;
use crate::store::Store;
use crate::variables::Variables;

use ask::{ask, name_of};

/// A part of the schema with fields.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
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

/// A part of the response that is not completely written.
pub(super) enum Part<'a> {
    Object {
        node: Node<'a>,
        /// The members that are still missing.
        members: std::slice::Iter<'a, Member>,
        separate: bool,
    },
    List {
        /// The nodes that are still missing.
        nodes: std::vec::IntoIter<Node<'a>>,
        item: &'a Shape,
        separate: bool,
    },
}

impl Checked {
    /// Appends the value of `__schema` or `__type`, a member of the root: at most `bytes_max` bytes.
    ///
    /// `give_way` lets the other requests of this thread run. It is called repeatedly while a large value is
    /// written.
    ///
    /// # Errors
    /// `RESPONSE_TOO_LARGE` if the value would be larger.
    pub async fn write_introspection(
        &self,
        position: usize,
        variables: &Variables,
        out: Vec<u8>,
        bytes_max: usize,
        give_way: impl AsyncFn(),
    ) -> Result<Vec<u8>, GraphqlError> {
        let store = Store::default();
        let presences = self.presences(variables);
        let mut writer = Writer::new(self, variables, &store, &presences, out, bytes_max);
        let members = self.projection.members.get(self.projection.root);
        if let Some(member) = members.and_then(|members| members.get(position))
            && let (What::Value(shape), Some(field)) = (&member.what, &member.introspection)
        {
            loop {
                match write_root(&mut writer, field, shape) {
                    Ok(()) if writer.has_room(0) => break,
                    Err(Stop::Paused) => give_way().await,
                    _ => return Err(Excess::Response(bytes_max).error()),
                }
            }
        }
        Ok(writer.out)
    }
}

/// Writes a root field, or continues it after a pause.
pub(super) fn write_root<'a>(
    writer: &mut Writer<'a>,
    field: &'a RequestedField,
    shape: &'a Shape,
) -> Result<(), Stop> {
    if writer.introspected.is_empty() {
        let answer = resolve_root(writer, field);
        write(writer, answer, shape)?;
    }
    // The levels are in a list and not on the stack. So the writer can pause at any place.
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

fn resolve_root<'a>(writer: &Writer<'a>, field: &'a RequestedField) -> Answer<'a> {
    let schema = &writer.checked.schema;
    match field.name.as_str() {
        "__schema" => Answer::One(Node::Schema),
        "__type" => match text_argument(writer, field, "name") {
            // The schema's own copy of the name, because a node must live as long as the schema.
            Some(name) => match schema.named(&name) {
                Some(named) => Answer::One(Node::Named(name_of(named))),
                None => Answer::Null,
            },
            None => Answer::Null,
        },
        // `__schema` and `__type` are the only root fields of introspection. Validation refuses any other
        // name.
        _ => Answer::Null,
    }
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

/// Begins an object for a node.
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

/// Writes the key of a member if the member is present.
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
        (What::Value(shape), Some(field)) => {
            let all = flag_argument(writer, field, "includeDeprecated");
            let answer = ask(&writer.checked.schema, node, &field.name, all);
            write(writer, answer, shape)?;
        }
        // Unreachable: `projection_compiler` sets the field for each type with a name that begins with `__`.
        (What::Value(_), None) => writer.out.extend_from_slice(b"null"),
    }
    Ok(())
}

fn literal<'a>(
    writer: &Writer<'a>,
    field: &'a RequestedField,
    name: &str,
) -> Option<serde_json::Value> {
    let (_, literal) = field.arguments.iter().find(|(key, _)| key == name)?;
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
        // Only a lone surrogate fails here, because variables are checked before. It cannot be part of a
        // name.
        Some(json) => serde_json::from_slice(json).ok(),
        None => declared[index].default.as_ref().and_then(of),
    }
}

fn text_argument(writer: &Writer<'_>, field: &RequestedField, name: &str) -> Option<String> {
    match literal(writer, field, name) {
        Some(serde_json::Value::String(text)) => Some(text),
        _ => None,
    }
}

fn flag_argument(writer: &Writer<'_>, field: &RequestedField, name: &str) -> bool {
    literal(writer, field, name) == Some(serde_json::Value::Bool(true))
}
