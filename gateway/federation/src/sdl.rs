//! Reads the definitions of a supergraph: the arguments of directives, and types with fields.

use graphql_tools::parser::schema::{
    Definition, Directive, Document, Field, TypeDefinition, Value,
};

pub(crate) type Applied = Directive<'static, String>;
pub(crate) type Written = Value<'static, String>;

/// An argument of a directive.
pub(crate) fn argument<'a>(directive: &'a Applied, name: &str) -> Option<&'a Written> {
    member(&directive.arguments, name)
}

/// A string argument of a directive.
pub(crate) fn text<'a>(directive: &'a Applied, name: &str) -> Option<&'a str> {
    match argument(directive, name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The value of `join__Graph` in a directive of composition.
pub(crate) fn graph(directive: &Applied) -> Option<&str> {
    match argument(directive, "graph")? {
        Value::Enum(graph) => Some(graph),
        _ => None,
    }
}

/// Finds a member of an object, or one of several arguments.
pub(crate) fn member<'a>(members: &'a [(String, Written)], name: &str) -> Option<&'a Written> {
    let mut members = members.iter();
    members.find(|(key, _)| key == name).map(|(_, it)| it)
}

/// The root types of queries, mutations and subscriptions. Without a schema definition, the types with the usual names
/// are the roots.
pub(crate) fn roots(document: &Document<'static, String>) -> [Option<String>; 3] {
    let stated = document.definitions.iter().find_map(|it| match it {
        Definition::SchemaDefinition(schema) => Some([
            schema.query.clone(),
            schema.mutation.clone(),
            schema.subscription.clone(),
        ]),
        _ => None,
    });
    let exists = |name: &str| {
        document.definitions.iter().any(
            |it| matches!(it, Definition::TypeDefinition(TypeDefinition::Object(object)) if object.name == name),
        )
    };
    let usual = ["Query", "Mutation", "Subscription"];
    stated.unwrap_or_else(|| usual.map(|name| exists(name).then(|| name.to_owned())))
}

/// The common parts of objects and interfaces.
#[derive(Clone, Copy)]
pub(crate) struct Composite<'a> {
    pub(crate) name: &'a str,
    pub(crate) interfaces: &'a [String],
    pub(crate) directives: &'a [Applied],
    pub(crate) fields: &'a [Field<'static, String>],
}

/// The object or interface that a definition defines.
pub(crate) fn composite<'a>(definition: &'a Definition<'static, String>) -> Option<Composite<'a>> {
    match definition {
        Definition::TypeDefinition(TypeDefinition::Object(it)) => Some(Composite {
            name: &it.name,
            interfaces: &it.implements_interfaces,
            directives: &it.directives,
            fields: &it.fields,
        }),
        Definition::TypeDefinition(TypeDefinition::Interface(it)) => Some(Composite {
            name: &it.name,
            interfaces: &it.implements_interfaces,
            directives: &it.directives,
            fields: &it.fields,
        }),
        _ => None,
    }
}
