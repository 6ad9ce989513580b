//! A schema for the interpreter, read from SDL.

use std::collections::{BTreeMap, BTreeSet};

use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{
    BaseType, ConstDirective, FieldDefinition, InputValueDefinition, Type, TypeDefinition,
    TypeKind, TypeSystemDefinition,
};
use async_graphql::{Name, Positioned};
use serde_json::Value;

use crate::fieldset::{self, FieldSet};

/// Reason for refusing a schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not SDL.
    #[error("not a schema: {0}")]
    Parse(#[from] async_graphql::parser::Error),
    /// The text of a key, `@requires` or `@provides` is not a selection.
    #[error("not a field set: `{0}`")]
    FieldSet(String),
}

/// The schema of one server.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub(crate) types: BTreeMap<String, Definition>,
    /// The possible object types of each abstract type. An object type contains itself.
    pub(crate) possible: BTreeMap<String, BTreeSet<String>>,
    pub(crate) query: String,
    pub(crate) mutation: String,
}

/// The view of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The view of the subgraph. It includes inaccessible elements, because gateways request them.
    All,
    /// The view of clients, without inaccessible elements.
    Accessible,
}

impl Shown {
    fn hides(self, directives: &[Positioned<ConstDirective>]) -> bool {
        self == Self::Accessible && has(directives, "inaccessible")
    }
}

/// The kind of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    #[default]
    Scalar,
    Object,
    Interface,
    Union,
    Enum,
    Input,
}

/// The definition of one type, with all its extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definition {
    pub(crate) kind: Kind,
    pub(crate) fields: Vec<Field>,
    pub(crate) implements: Vec<String>,
    pub(crate) members: Vec<String>,
    pub(crate) values: Vec<String>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) keys: Vec<Key>,
    /// True if the type stands for all objects of an interface. The subgraph does not define these objects.
    pub(crate) is_interface_object: bool,
}

/// One field of an object or interface.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) arguments: Vec<Input>,
    /// True if the value must come from the representation.
    pub(crate) is_external: bool,
    pub(crate) provides: Option<FieldSet>,
}

/// An argument, or a field of an input object.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) default: Option<Value>,
}

/// One `@key` of a type.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) fields: FieldSet,
    pub(crate) is_resolvable: bool,
}

impl Schema {
    /// Reads the SDL of a subgraph.
    ///
    /// # Errors
    /// If the text is not SDL or contains an unreadable field set.
    pub fn of_subgraph(sdl: &str) -> Result<Self, SchemaError> {
        Self::parse(sdl, Shown::All)
    }

    /// Reads the clients' schema from the SDL of a supergraph.
    ///
    /// # Errors
    /// As [`Schema::of_subgraph`].
    pub fn of_clients(sdl: &str) -> Result<Self, SchemaError> {
        Self::parse(sdl, Shown::Accessible)
    }

    fn parse(sdl: &str, shown: Shown) -> Result<Self, SchemaError> {
        let mut schema = Self {
            query: "Query".to_owned(),
            mutation: "Mutation".to_owned(),
            ..Self::default()
        };
        let definitions = parse_schema(sdl)?.definitions;
        let names = Names::of(&definitions);
        for definition in definitions {
            match definition {
                TypeSystemDefinition::Schema(schema_definition) => {
                    let roots = schema_definition.node;
                    if let Some(query) = roots.query {
                        schema.query = query.node.to_string();
                    }
                    if let Some(mutation) = roots.mutation {
                        schema.mutation = mutation.node.to_string();
                    }
                }
                TypeSystemDefinition::Type(definition) => {
                    let mut definition = definition.node;
                    names.make_usual(&mut definition);
                    schema.add(definition, shown)?;
                }
                TypeSystemDefinition::Directive(_) => {}
            }
        }
        // SDL does not contain the built-in scalars.
        for scalar in ["Int", "Float", "String", "Boolean", "ID"] {
            schema.types.entry(scalar.to_owned()).or_default();
        }
        // A subgraph without query fields still answers `_entities`.
        schema.types.entry(schema.query.clone()).or_default().kind = Kind::Object;
        schema.find_possible();
        Ok(schema)
    }

    fn add(&mut self, definition: TypeDefinition, shown: Shown) -> Result<(), SchemaError> {
        if shown.hides(&definition.directives) {
            return Ok(());
        }
        // A type can have one definition and several extensions. They are merged.
        let known = self
            .types
            .entry(definition.name.node.to_string())
            .or_default();
        for directive in &definition.directives {
            match directive.node.name.node.as_str() {
                "key" => known.keys.push(key(&directive.node)?),
                "interfaceObject" => known.is_interface_object = true,
                _ => {}
            }
        }
        // `@external` on a type applies to all its fields.
        let all_external = has(&definition.directives, "external");
        match definition.kind {
            TypeKind::Scalar => known.kind = Kind::Scalar,
            TypeKind::Object(object) => {
                known.kind = Kind::Object;
                known.implements.extend(texts(object.implements));
                known
                    .fields
                    .extend(fields(object.fields, all_external, shown)?);
            }
            TypeKind::Interface(interface) => {
                known.kind = Kind::Interface;
                known.implements.extend(texts(interface.implements));
                known
                    .fields
                    .extend(fields(interface.fields, all_external, shown)?);
            }
            TypeKind::Union(union) => {
                known.kind = Kind::Union;
                known.members.extend(texts(union.members));
            }
            TypeKind::Enum(values) => {
                known.kind = Kind::Enum;
                let shown = values
                    .values
                    .into_iter()
                    .filter(|value| !shown.hides(&value.node.directives));
                known
                    .values
                    .extend(shown.map(|value| value.node.value.node.to_string()));
            }
            TypeKind::InputObject(input) => {
                known.kind = Kind::Input;
                known.inputs.extend(inputs(input.fields, shown));
            }
        }
        Ok(())
    }

    pub(crate) fn find_possible(&mut self) {
        let mut possible: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, definition) in &self.types {
            if definition.kind == Kind::Object {
                // An object type is possible for itself, so that `is_a` needs no special case.
                for abstract_type in definition.implements.iter().chain([name]) {
                    possible
                        .entry(abstract_type.clone())
                        .or_default()
                        .insert(name.clone());
                }
            }
            for member in &definition.members {
                possible
                    .entry(name.clone())
                    .or_default()
                    .insert(member.clone());
            }
        }
        self.possible = possible;
    }

    /// True if every object of the type `concrete` also has the type `other`.
    pub(crate) fn is_a(&self, concrete: &str, other: &str) -> bool {
        concrete == other
            || self
                .possible
                .get(other)
                .is_some_and(|names| names.contains(concrete))
    }

    /// True if an object can have both types.
    pub(crate) fn overlap(&self, one: &str, other: &str) -> bool {
        match (self.possible.get(one), self.possible.get(other)) {
            (Some(one), Some(other)) => !one.is_disjoint(other),
            _ => false,
        }
    }

    pub(crate) fn field(&self, ty: &str, name: &str) -> Option<&Field> {
        self.types
            .get(ty)?
            .fields
            .iter()
            .find(|field| field.name == name)
    }

    pub(crate) fn kind(&self, ty: &str) -> Option<Kind> {
        self.types.get(ty).map(|definition| definition.kind)
    }
}

impl Kind {
    /// True if values of this kind have fields to select.
    pub(crate) fn is_composite(self) -> bool {
        matches!(self, Self::Object | Self::Interface | Self::Union)
    }
}

/// The innermost type name, without lists.
pub(crate) fn named(ty: &Type) -> &str {
    match &ty.base {
        BaseType::Named(name) => name,
        BaseType::List(inner) => named(inner),
    }
}

fn fields(
    definitions: Vec<Positioned<FieldDefinition>>,
    all_external: bool,
    shown: Shown,
) -> Result<Vec<Field>, SchemaError> {
    definitions
        .into_iter()
        .filter(|field| !shown.hides(&field.node.directives))
        .map(|field| {
            let field = field.node;
            let set = |name: &str| {
                let found = field
                    .directives
                    .iter()
                    .find(|directive| directive.node.name.node == name);
                found
                    .map(|directive| field_set(&directive.node))
                    .transpose()
            };
            Ok(Field {
                provides: set("provides")?,
                is_external: all_external || has(&field.directives, "external"),
                name: field.name.node.to_string(),
                ty: field.ty.node,
                arguments: inputs(field.arguments, shown),
            })
        })
        .collect()
}

fn inputs(definitions: Vec<Positioned<InputValueDefinition>>, shown: Shown) -> Vec<Input> {
    definitions
        .into_iter()
        .filter(|input| !shown.hides(&input.node.directives))
        .map(|input| Input {
            name: input.node.name.node.to_string(),
            ty: input.node.ty.node,
            default: input
                .node
                .default_value
                .map(|default| default.node.into_json().expect("a default is plain data")),
        })
        .collect()
}

fn key(directive: &ConstDirective) -> Result<Key, SchemaError> {
    let resolvable = directive.get_argument("resolvable");
    Ok(Key {
        fields: field_set(directive)?,
        is_resolvable: resolvable
            .is_none_or(|value| value.node != async_graphql::Value::Boolean(false)),
    })
}

/// Reads the argument `fields` of a directive.
fn field_set(directive: &ConstDirective) -> Result<FieldSet, SchemaError> {
    let text = argument_text(directive, "fields");
    fieldset::parse(&text).ok_or(SchemaError::FieldSet(text))
}

fn argument_text(directive: &ConstDirective, name: &str) -> String {
    match directive.get_argument(name).map(|value| &value.node) {
        Some(async_graphql::Value::String(text)) => text.clone(),
        // The argument is missing. `fieldset::parse` refuses the empty text.
        _ => String::new(),
    }
}

fn has(directives: &[Positioned<ConstDirective>], name: &str) -> bool {
    directives.iter().any(|it| it.node.name.node == name)
}

/// Names of the federation directives in a subgraph.
struct Names {
    /// Prefix of directives without an import, including two underscores.
    namespace: String,
    /// The usual names, by the names in the subgraph.
    renamed: BTreeMap<String, String>,
}

impl Names {
    fn of(definitions: &[TypeSystemDefinition]) -> Self {
        let mut names = Self {
            namespace: "federation__".to_owned(),
            renamed: BTreeMap::new(),
        };
        let schemas = definitions.iter().filter_map(|it| match it {
            TypeSystemDefinition::Schema(schema) => Some(&schema.node.directives),
            _ => None,
        });
        for link in schemas.flatten().map(|directive| &directive.node) {
            if !argument_text(link, "url").starts_with("https://specs.apollo.dev/federation/") {
                continue;
            }
            if link.get_argument("as").is_some() {
                names.namespace = format!("{}__", argument_text(link, "as"));
            }
            let imports = link.get_argument("import");
            let imports = imports.map(|it| it.node.clone().into_json().expect("plain data"));
            for import in imports.iter().flat_map(|it| it.as_array()).flatten() {
                let text = |key: &str| import[key].as_str()?.strip_prefix('@');
                if let (Some(usual), Some(own)) = (text("name"), text("as")) {
                    names.renamed.insert(own.to_owned(), usual.to_owned());
                }
            }
        }
        names
    }

    /// Renames the directives of a type and of its fields to their usual names.
    fn make_usual(&self, definition: &mut TypeDefinition) {
        self.rename(&mut definition.directives);
        let fields = match &mut definition.kind {
            TypeKind::Object(object) => &mut object.fields,
            TypeKind::Interface(interface) => &mut interface.fields,
            _ => return,
        };
        for field in fields {
            self.rename(&mut field.node.directives);
        }
    }

    fn rename(&self, directives: &mut [Positioned<ConstDirective>]) {
        for directive in directives {
            let own = directive.node.name.node.clone();
            let usual = self.renamed.get(own.as_str()).map(String::as_str);
            let usual = usual.or_else(|| own.strip_prefix(self.namespace.as_str()));
            if let Some(usual) = usual {
                directive.node.name.node = Name::new(usual);
            }
        }
    }
}

fn texts(names: Vec<Positioned<Name>>) -> impl Iterator<Item = String> {
    names.into_iter().map(|name| name.node.to_string())
}
