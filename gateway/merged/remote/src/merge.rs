//! Merges the schemas of services and actions, and records the source of each root field.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gateway_config::{ActionKind, Config, RemoteSchema};
use gateway_federation::{OperationKind, Schema, inner_name, type_name};
use graphql_tools::parser::parse_schema;
use graphql_tools::parser::schema::{
    Definition, Document, Field, InputValue, ObjectType, SchemaDefinition, Type, TypeDefinition,
};

use crate::introspection::SourceSchema;
pub(crate) use crate::names::{MUTATION_ROOT, QUERY_ROOT};
use crate::names::{Names, NamesError, fields_of, namespace_type};

/// The reason why the merged schema has no subscriptions.
pub(crate) const NO_SUBSCRIPTIONS: &str =
    "schemas are merged without subscriptions, and operations checked without allowing them";

const META: &str = include_str!("meta.graphql");
/// The field of a schema that would have no fields.
const PLACEHOLDER: &str = "no_queries_available";

/// The reason why a service or an action is not part of the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistency {
    /// The configured changes of its names are impossible.
    #[error("{0}")]
    Names(#[from] NamesError),
    /// Another source already has a root field of this name.
    #[error(
        "its root field `{field}` is there already, from {other}; give one of them a namespace"
    )]
    RootField {
        /// Name of the root field.
        field: String,
        /// The source that already has the field.
        other: String,
    },
    /// Another source has a different type of this name.
    #[error("its type `{name}` differs from the one of {other}; change it by `type_names`")]
    Type {
        /// Name of the type.
        name: String,
        /// The source that already has the type.
        other: String,
    },
    /// A type is used but not defined.
    #[error("it uses the type `{0}`, which is not defined")]
    UnknownType(String),
}

/// Fields of a service that are not part of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmergedFields {
    /// Name of the service.
    pub service: String,
    /// The fields, each as `type.field`. An argument is `type.field.argument`.
    pub fields: Vec<String>,
    /// The reason for all of them.
    pub reason: UnmergedReason,
}

/// The reason why fields are not part of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmergedReason {
    /// The field would lead to fields that only the service's own root has.
    #[error("lead back to a root type")]
    LeadsBack,
    /// The type is nested deeper than the introspection query asks.
    #[error("have a type of more than nine lists and `!`")]
    TooDeep,
}

/// The source of a root field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A remote schema, by its position.
    Remote(usize),
    /// A remote schema, by its position. Its fields are one level below the field.
    Namespace(usize),
    /// An action, by its position.
    Action(usize),
    /// The placeholder of a schema without fields. Its value is null.
    Placeholder,
}

/// A schema, with the sources of its root fields.
#[derive(Debug)]
pub(crate) struct MergedSchema {
    pub(crate) schema: Arc<Schema>,
    owners: HashMap<(OperationKind, String), Owner>,
    /// Changed names, by position of the remote schema.
    pub(crate) names: Vec<Names>,
    /// Services and actions that are not merged, with the reasons.
    pub(crate) inconsistencies: Vec<(String, Inconsistency)>,
    pub(crate) left_out: Vec<UnmergedFields>,
}

impl MergedSchema {
    /// Merges the available schemas. `schemas` has one entry for each remote schema of the configuration.
    pub(crate) fn new(config: &Config, schemas: &[Option<Arc<SourceSchema>>]) -> Self {
        let mut merging = Merging::default();
        // Actions first: the first of two equal root fields stays, and actions are the gateway's own.
        merging.add_actions(config);
        let mut names = Vec::with_capacity(schemas.len());
        for (index, (remote, schema)) in config.remote_schemas.iter().zip(schemas).enumerate() {
            let added = match schema {
                // A service without a known schema contributes no fields. It is merged once its schema
                // arrives.
                Some(schema) => merging.add_remote(index, remote, schema),
                None => Ok(Names::default()),
            };
            names.push(added.unwrap_or_else(|reason| {
                merging.inconsistencies.push((remote.name.clone(), reason));
                Names::default()
            }));
        }
        merging.finish(names)
    }

    /// The arguments of a root field.
    pub(crate) fn arguments(
        &self,
        kind: OperationKind,
        field: &str,
    ) -> &[InputValue<'static, String>] {
        let root = match kind {
            OperationKind::Query => QUERY_ROOT,
            OperationKind::Mutation => MUTATION_ROOT,
            OperationKind::Subscription => return &[],
        };
        let definitions = self.schema.document().definitions.iter();
        let fields = definitions.filter_map(|it| match it {
            Definition::TypeDefinition(it) if type_name(it) == root => Some(fields_of(it)),
            _ => None,
        });
        let field = fields.flatten().find(|it| it.name == field);
        field.map_or(&[], |it| &it.arguments)
    }

    pub(crate) fn owner(&self, kind: OperationKind, field: &str) -> Owner {
        let key = (kind, field.to_owned());
        self.owners.get(&key).copied().unwrap_or(Owner::Placeholder)
    }
}

type Fields = Vec<Field<'static, String>>;

#[derive(Default)]
struct Merging {
    types: Vec<TypeDefinition<'static, String>>,
    /// The source of each type, by the name of the type.
    origins: HashMap<String, (usize, String)>,
    query: Fields,
    mutation: Fields,
    owners: HashMap<(OperationKind, String), Owner>,
    titles: HashMap<(OperationKind, String), String>,
    inconsistencies: Vec<(String, Inconsistency)>,
    left_out: Vec<UnmergedFields>,
}

impl Merging {
    fn add_actions(&mut self, config: &Config) {
        // The configuration check has parsed `types`. A document that does not parse would leave its actions
        // inconsistent below.
        let document = parse_schema::<String>(&config.types.0.0)
            .map(Document::into_static)
            .unwrap_or_default();
        for definition in document.definitions {
            if let Definition::TypeDefinition(definition) = definition {
                self.put_type(definition, "`types`");
            }
        }
        for (index, action) in config.actions.iter().enumerate() {
            let arguments = action.arguments.iter().map(|argument| InputValue {
                position: Default::default(),
                description: argument.description.clone(),
                name: argument.name.0.0.clone(),
                value_type: argument.kind.0.0.clone(),
                default_value: None,
                directives: Vec::new(),
            });
            let field = Field {
                position: Default::default(),
                description: action.comment.clone(),
                name: action.name.0.0.clone(),
                arguments: arguments.collect(),
                field_type: action.output_type.0.0.clone(),
                directives: Vec::new(),
            };
            let kind = match action.kind {
                ActionKind::Query => OperationKind::Query,
                ActionKind::Mutation => OperationKind::Mutation,
            };
            let title = format!("the action `{}`", field.name);
            let name = field.name.clone();
            let added = self
                .check_types([&field].into_iter(), &HashSet::new())
                .and_then(|()| self.check_root(kind, &field.name));
            match added {
                Ok(()) => self.put_root(kind, field, Owner::Action(index), title),
                Err(reason) => self.inconsistencies.push((name, reason)),
            }
        }
    }

    fn add_remote(
        &mut self,
        index: usize,
        remote: &RemoteSchema,
        schema: &SourceSchema,
    ) -> Result<Names, Inconsistency> {
        let names = Names::new(schema, &remote.customization)?;
        let title = format!("the remote schema `{}`", remote.name);
        let mut types = names.renamed(schema);
        let mut query = names.renamed_fields(schema, &schema.query);
        let mutation = schema.mutation.as_deref();
        let mut mutation =
            mutation.map_or(Fields::new(), |root| names.renamed_fields(schema, root));
        let leading = leave_out_leading(schema, &mut types, &mut query, &mut mutation);
        for (fields, reason) in [
            (leading, UnmergedReason::LeadsBack),
            (schema.too_deep.clone(), UnmergedReason::TooDeep),
        ] {
            if !fields.is_empty() {
                self.left_out.push(UnmergedFields {
                    service: remote.name.clone(),
                    fields,
                    reason,
                });
            }
        }
        let mut roots = vec![
            (OperationKind::Query, query),
            (OperationKind::Mutation, mutation),
        ];
        let mut owner = Owner::Remote(index);
        if let Some(namespace) = &remote.customization.root_fields_namespace {
            owner = Owner::Namespace(index);
            for (kind, fields) in &mut roots {
                let word = match kind {
                    OperationKind::Query => "Query",
                    OperationKind::Mutation => "Mutation",
                    OperationKind::Subscription => unreachable!("{NO_SUBSCRIPTIONS}"),
                };
                if !fields.is_empty() {
                    let (field, object) = namespaced(&namespace.0.0, word, std::mem::take(fields));
                    types.push(object);
                    fields.push(field);
                }
            }
        }
        // All types are checked before any is added: a service is merged completely or not at all.
        for definition in &types {
            self.check_type(definition)?;
        }
        {
            // A set, because a schema may have many types and many fields of these types.
            let coming: HashSet<&str> = types.iter().map(type_name).collect();
            for (kind, fields) in &roots {
                self.check_types(fields.iter(), &coming)?;
                for field in fields {
                    self.check_root(*kind, &field.name)?;
                }
            }
        }
        for definition in types {
            self.put_type(definition, &title);
        }
        for (kind, fields) in roots {
            for field in fields {
                self.put_root(kind, field, owner, title.clone());
            }
        }
        Ok(names)
    }

    fn check_root(&self, kind: OperationKind, field: &str) -> Result<(), Inconsistency> {
        match self.titles.get(&(kind, field.to_owned())) {
            None => Ok(()),
            Some(other) => Err(Inconsistency::RootField {
                field: field.to_owned(),
                other: other.clone(),
            }),
        }
    }

    fn put_root(
        &mut self,
        kind: OperationKind,
        field: Field<'static, String>,
        owner: Owner,
        title: String,
    ) {
        let key = (kind, field.name.clone());
        self.owners.insert(key.clone(), owner);
        self.titles.insert(key, title);
        match kind {
            OperationKind::Query => self.query.push(field),
            OperationKind::Mutation => self.mutation.push(field),
            OperationKind::Subscription => unreachable!("{NO_SUBSCRIPTIONS}"),
        }
    }

    /// Checks a type. Several sources may define it if their definitions are equal.
    fn check_type(
        &self,
        definition: &TypeDefinition<'static, String>,
    ) -> Result<(), Inconsistency> {
        let name = type_name(definition);
        let reserved = name == QUERY_ROOT || name == MUTATION_ROOT;
        match self.origins.get(name) {
            // Several services may define the same type, for instance a shared scalar. Descriptions may
            // differ.
            Some((index, _)) if bare(&self.types[*index]) == bare(definition) => Ok(()),
            None if !reserved => Ok(()),
            known => Err(Inconsistency::Type {
                name: name.to_owned(),
                other: known.map_or_else(|| "the gateway".to_owned(), |(_, title)| title.clone()),
            }),
        }
    }

    fn put_type(&mut self, definition: TypeDefinition<'static, String>, title: &str) {
        let name = type_name(&definition).to_owned();
        if !self.origins.contains_key(&name) {
            self.origins
                .insert(name, (self.types.len(), title.to_owned()));
            self.types.push(definition);
        }
    }

    /// Checks that every type in the fields exists or is about to be added.
    fn check_types<'a>(
        &self,
        fields: impl Iterator<Item = &'a Field<'static, String>>,
        coming: &HashSet<&str>,
    ) -> Result<(), Inconsistency> {
        for field in fields {
            let inputs = field.arguments.iter().map(|it| inner_name(&it.value_type));
            for name in inputs.chain([inner_name(&field.field_type)]) {
                let is_known = self.origins.contains_key(name)
                    || crate::introspection::is_built_in_scalar(name)
                    || coming.contains(name);
                if !is_known {
                    return Err(Inconsistency::UnknownType(name.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, names: Vec<Names>) -> MergedSchema {
        if self.query.is_empty() {
            // A schema must have a query type with a field, or introspection would fail.
            let field = Field {
                position: Default::default(),
                description: Some("There is nothing to query.".to_owned()),
                name: PLACEHOLDER.to_owned(),
                arguments: Vec::new(),
                field_type: Type::NamedType("String".to_owned()),
                directives: Vec::new(),
            };
            self.put_root(
                OperationKind::Query,
                field,
                Owner::Placeholder,
                String::new(),
            );
        }
        let mut document = parse_schema::<String>(META)
            .expect("a test reads the types of introspection")
            .into_static();
        for definition in &mut document.definitions {
            if let Definition::TypeDefinition(TypeDefinition::Object(object)) = definition
                && object.name == QUERY_ROOT
            {
                object.fields.append(&mut self.query);
            }
        }
        let has_mutations = !self.mutation.is_empty();
        if has_mutations {
            let mutation = ObjectType {
                fields: self.mutation,
                ..ObjectType::new(MUTATION_ROOT.to_owned())
            };
            self.types.push(TypeDefinition::Object(mutation));
        }
        let types = self.types.into_iter().map(Definition::TypeDefinition);
        document.definitions.extend(types);
        let roots = SchemaDefinition {
            query: Some(QUERY_ROOT.to_owned()),
            mutation: has_mutations.then(|| MUTATION_ROOT.to_owned()),
            ..SchemaDefinition::default()
        };
        document
            .definitions
            .push(Definition::SchemaDefinition(roots));
        MergedSchema {
            schema: Arc::new(Schema::of(document)),
            owners: self.owners,
            names,
            inconsistencies: self.inconsistencies,
            left_out: self.left_out,
        }
    }
}

/// Leaves out the fields of the service's root types. They would lead to fields that only the service's own root
/// has. Returns their names, each as `type.field`.
fn leave_out_leading(
    schema: &SourceSchema,
    types: &mut [TypeDefinition<'static, String>],
    query: &mut Fields,
    mutation: &mut Fields,
) -> Vec<String> {
    let mut left_out = Vec::new();
    let mut leave_out = |parent: &str, fields: &mut Fields| {
        let leads_back =
            |field: &Field<'static, String>| schema.is_root(inner_name(&field.field_type));
        let leading = fields.iter().filter(|field| leads_back(field));
        left_out.extend(leading.map(|field| format!("{parent}.{}", field.name)));
        fields.retain(|field| !leads_back(field));
    };
    for definition in types {
        match definition {
            TypeDefinition::Object(it) => leave_out(&it.name, &mut it.fields),
            TypeDefinition::Interface(it) => leave_out(&it.name, &mut it.fields),
            TypeDefinition::Union(it) => it.types.retain(|member| !schema.is_root(member)),
            _ => {}
        }
    }
    leave_out(QUERY_ROOT, query);
    leave_out(MUTATION_ROOT, mutation);
    left_out
}

/// The namespace field, which contains a service's root fields, and its type.
fn namespaced(
    namespace: &str,
    word: &str,
    fields: Fields,
) -> (Field<'static, String>, TypeDefinition<'static, String>) {
    let object = ObjectType {
        fields,
        ..ObjectType::new(namespace_type(namespace, word))
    };
    let field = Field {
        position: Default::default(),
        description: None,
        name: namespace.to_owned(),
        arguments: Vec::new(),
        field_type: Type::NonNullType(Box::new(Type::NamedType(object.name.clone()))),
        directives: Vec::new(),
    };
    (field, TypeDefinition::Object(object))
}

/// The part that two equal definitions must share: everything except descriptions.
fn bare(definition: &TypeDefinition<'static, String>) -> String {
    let inputs = |inputs: &[InputValue<'static, String>]| {
        let mut inputs: Vec<String> = inputs
            .iter()
            .map(|it| {
                let default = it.default_value.as_ref().map(ToString::to_string);
                format!(
                    "{}:{}={}",
                    it.name,
                    it.value_type,
                    default.unwrap_or_default()
                )
            })
            .collect();
        inputs.sort();
        inputs.join(",")
    };
    let mut parts: Vec<String> = fields_of(definition)
        .iter()
        .map(|it| format!("{}({}):{}", it.name, inputs(&it.arguments), it.field_type))
        .collect();
    let kind = match definition {
        TypeDefinition::Scalar(_) => "scalar",
        TypeDefinition::Object(it) => {
            parts.extend(it.implements_interfaces.iter().map(|it| format!("&{it}")));
            "object"
        }
        TypeDefinition::Interface(it) => {
            parts.extend(it.implements_interfaces.iter().map(|it| format!("&{it}")));
            "interface"
        }
        TypeDefinition::Union(it) => {
            parts.extend(it.types.iter().cloned());
            "union"
        }
        TypeDefinition::Enum(it) => {
            parts.extend(it.values.iter().map(|value| value.name.clone()));
            "enum"
        }
        TypeDefinition::InputObject(it) => {
            parts.push(inputs(&it.fields));
            if it.directives.iter().any(|it| it.name == "oneOf") {
                "input @oneOf"
            } else {
                "input"
            }
        }
    };
    parts.sort();
    format!("{kind} {}", parts.join(";"))
}
