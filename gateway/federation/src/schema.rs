//! The client's schema, indexed for lookups during preparation and execution.
//!
//! The planner's crate derives the client's document from the supergraph, without `@inaccessible` elements
//! and federation's own directives. This file adds the index. It also stores the objects behind each
//! interface and union of the whole supergraph, because subgraphs return inaccessible objects, too.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use graphql_tools::parser::schema::{
    Definition, Document, EnumType, Field, InputObjectType, InputValue, InterfaceType, ObjectType,
    ScalarType, Type, TypeDefinition, UnionType,
};

use crate::fetch::OperationKind;
use crate::sdl;

pub(crate) type TypeText = Type<'static, String>;
type Text = String;

/// A named type of the client's schema.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Named<'a> {
    Scalar(&'a ScalarType<'static, Text>),
    Enum(&'a EnumType<'static, Text>),
    Object(&'a ObjectType<'static, Text>),
    Interface(&'a InterfaceType<'static, Text>),
    Union(&'a UnionType<'static, Text>),
    Input(&'a InputObjectType<'static, Text>),
}

impl<'a> Named<'a> {
    /// The output fields. Empty for types without fields.
    pub(crate) fn fields(self) -> &'a [Field<'static, Text>] {
        match self {
            Named::Object(object) => &object.fields,
            Named::Interface(interface) => &interface.fields,
            _ => &[],
        }
    }

    pub(crate) fn field(self, name: &str) -> Option<&'a Field<'static, Text>> {
        self.fields().iter().find(|field| field.name == name)
    }
}

/// The schema that clients see.
#[derive(Debug)]
pub struct Schema {
    /// The description of the schema itself.
    pub(crate) description: Option<String>,
    pub(crate) document: Arc<Document<'static, Text>>,
    /// Index of each type's definition in the document.
    types: HashMap<String, usize>,
    /// The root types: query, mutation, subscription.
    roots: [Option<String>; 3],
    /// The objects behind each abstract type, over the whole supergraph.
    possible: HashMap<String, Vec<String>>,
    /// All object types of the supergraph.
    objects: HashSet<String>,
}

impl Schema {
    /// The schema of a document without federation. Clients can see everything in it. The document must
    /// contain the types of introspection, too.
    #[must_use]
    pub fn of(document: Document<'static, Text>) -> Schema {
        let document = Arc::new(document);
        Schema::new(Arc::clone(&document), &document)
    }

    /// The innermost type name of a field's type.
    #[must_use]
    pub fn field_type(&self, parent: &str, field: &str) -> Option<&str> {
        let field = self.named(parent)?.field(field)?;
        Some(inner_name(&field.field_type))
    }

    /// The fields of an input object type. `None` for any other type.
    #[must_use]
    pub fn input_fields(&self, name: &str) -> Option<&[InputValue<'static, Text>]> {
        match self.named(name)? {
            Named::Input(input) => Some(&input.fields),
            _ => None,
        }
    }

    /// The document with all definitions.
    #[must_use]
    pub fn document(&self) -> &Document<'static, Text> {
        &self.document
    }

    pub(crate) fn new(
        client: Arc<Document<'static, Text>>,
        supergraph: &Document<'static, Text>,
    ) -> Schema {
        let types = client
            .definitions
            .iter()
            // The planner's crate leaves these types in the document. Without an index entry, clients can
            // neither select nor see them.
            .enumerate()
            .filter_map(|(index, definition)| match definition {
                Definition::TypeDefinition(definition) if !is_composed(type_name(definition)) => {
                    Some((type_name(definition).to_owned(), index))
                }
                _ => None,
            })
            .collect();
        let roots = sdl::roots(&client);
        let (possible, objects) = possible_types(supergraph);
        Schema {
            description: None,
            document: client,
            types,
            roots,
            possible,
            objects,
        }
    }

    /// The schema with a description of its own.
    pub(crate) fn described(self, description: Option<String>) -> Schema {
        Schema {
            description,
            ..self
        }
    }

    pub(crate) fn named(&self, name: &str) -> Option<Named<'_>> {
        let index = *self.types.get(name)?;
        match self.document.definitions.get(index)? {
            Definition::TypeDefinition(definition) => Some(match definition {
                TypeDefinition::Scalar(scalar) => Named::Scalar(scalar),
                TypeDefinition::Object(object) => Named::Object(object),
                TypeDefinition::Interface(interface) => Named::Interface(interface),
                TypeDefinition::Union(union) => Named::Union(union),
                TypeDefinition::Enum(enumeration) => Named::Enum(enumeration),
                TypeDefinition::InputObject(input) => Named::Input(input),
            }),
            _ => None,
        }
    }

    /// The name of the query type.
    #[must_use]
    pub fn query_root(&self) -> &str {
        self.roots[0].as_deref().unwrap_or("Query")
    }

    pub(crate) fn mutation_root(&self) -> Option<&str> {
        self.roots[1].as_deref()
    }

    pub(crate) fn subscription_root(&self) -> Option<&str> {
        self.roots[2].as_deref()
    }

    /// The name of the root type for operations of this kind.
    #[must_use]
    pub fn root(&self, kind: OperationKind) -> &str {
        match kind {
            OperationKind::Query => self.query_root(),
            OperationKind::Mutation => self.mutation_root().unwrap_or("Mutation"),
            OperationKind::Subscription => self.subscription_root().unwrap_or("Subscription"),
        }
    }

    /// The possible object types of a value with this type. For an object, the type itself.
    pub(crate) fn possible(&self, name: &str) -> Vec<&str> {
        match self.possible.get(name) {
            Some(objects) => objects.iter().map(String::as_str).collect(),
            None => self
                .objects
                .get(name)
                .map(String::as_str)
                .into_iter()
                .collect(),
        }
    }

    /// True if every value of type `name` also has the type `condition`.
    pub(crate) fn is_subtype(&self, name: &str, condition: &str) -> bool {
        if name == condition {
            return true;
        }
        let Some(allowed) = self.possible.get(condition) else {
            return false;
        };
        // Compared over the whole supergraph. With the client's objects alone, a fragment could seem to fit
        // an interface that also has inaccessible objects.
        match self.possible.get(name) {
            Some(objects) => objects.iter().all(|object| allowed.contains(object)),
            None => allowed.iter().any(|object| object == name),
        }
    }

    /// True if the name belongs to an object, not to an interface or union.
    pub(crate) fn is_object(&self, name: &[u8]) -> bool {
        std::str::from_utf8(name).is_ok_and(|name| self.objects.contains(name))
    }
}

/// The name of a defined type.
pub fn type_name<'a>(definition: &'a TypeDefinition<'static, Text>) -> &'a str {
    match definition {
        TypeDefinition::Scalar(it) => &it.name,
        TypeDefinition::Object(it) => &it.name,
        TypeDefinition::Interface(it) => &it.name,
        TypeDefinition::Union(it) => &it.name,
        TypeDefinition::Enum(it) => &it.name,
        TypeDefinition::InputObject(it) => &it.name,
    }
}

/// True if a type is part of composition itself. The planner's crate removes only the types of its version of
/// the join specification. Later versions have more.
fn is_composed(name: &str) -> bool {
    let prefixes = ["join__", "link__", "requiresScopes__", "policy__"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// The innermost name of a type, without lists and exclamation marks.
#[must_use]
pub fn inner_name(of: &TypeText) -> &str {
    match of {
        Type::NamedType(name) => name,
        Type::ListType(inner) | Type::NonNullType(inner) => inner_name(inner),
    }
}

type Possible = (HashMap<String, Vec<String>>, HashSet<String>);

fn possible_types(supergraph: &Document<'static, Text>) -> Possible {
    let mut possible: HashMap<String, Vec<String>> = HashMap::new();
    let mut objects = HashSet::new();
    for definition in &supergraph.definitions {
        let Definition::TypeDefinition(definition) = definition else {
            continue;
        };
        match definition {
            TypeDefinition::Object(object) => {
                objects.insert(object.name.clone());
                for interface in &object.implements_interfaces {
                    let behind = possible.entry(interface.clone()).or_default();
                    if !behind.contains(&object.name) {
                        behind.push(object.name.clone());
                    }
                }
            }
            TypeDefinition::Interface(interface) => {
                // An interface without an implementing type is still abstract.
                possible.entry(interface.name.clone()).or_default();
            }
            TypeDefinition::Union(union) => {
                possible.insert(union.name.clone(), union.types.clone());
            }
            _ => {}
        }
    }
    (possible, objects)
}
