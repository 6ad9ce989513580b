//! Names that differ between a service and the merged schema, in both directions.

use std::collections::HashMap;

use gateway_config::Customization;
use gateway_federation::type_name;
use graphql_tools::parser::schema::{Field, InputValue, Type, TypeDefinition};

use crate::introspection::{SourceSchema, is_own};

/// The root types of the merged schema.
pub(crate) const QUERY_ROOT: &str = "query_root";
pub(crate) const MUTATION_ROOT: &str = "mutation_root";

/// The name of the type that contains a service's root fields in a namespace.
pub(crate) fn namespace_type(namespace: &str, word: &str) -> String {
    format!("{namespace}{word}")
}

/// The changed names of one service. A name that is missing here is equal on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// The merged schema's type names, by the service's type names.
    forward: HashMap<String, String>,
    /// The service's names, by the merged schema's names.
    back: HashMap<String, String>,
    /// The service's field names, by the merged schema's names of the type and of the field.
    fields: HashMap<String, HashMap<String, String>>,
}

/// The reason why configured names are impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// Two names get the same new name.
    #[error("`{first}` and `{second}` of {place} would both be called `{name}`")]
    Duplicate {
        /// The service, or one of its types.
        place: String,
        /// One of the names.
        first: String,
        /// The other name.
        second: String,
        /// The name that both would get.
        name: String,
    },
    /// The service has no such type.
    #[error("`field_names` speaks of the type `{0}`, which the service does not have")]
    UnknownType(String),
    /// A field of an interface gets another name than the field of a type that implements it.
    #[error(
        "`{object}` implements `{interface}`, whose field `{field}` would be called differently: repeat the change of `field_names` for `{object}`"
    )]
    Torn {
        /// Name of the object type.
        object: String,
        /// Name of the interface.
        interface: String,
        /// The service's name of the field.
        field: String,
    },
}

impl Names {
    /// The changed names of a service's schema, from a configuration.
    ///
    /// # Errors
    /// Fails if two names would become equal, or if an interface and its objects would no longer match.
    pub(crate) fn new(
        schema: &SourceSchema,
        customization: &Customization,
    ) -> Result<Self, NamesError> {
        let mut names = Self::default();
        let change = &customization.type_names;
        for definition in &schema.types {
            let old = type_name(definition);
            // Root types are merged, and the names of GraphQL's own types cannot change.
            if schema.is_root(old) || is_own(old) {
                continue;
            }
            let new = match change.mapping.get(old) {
                Some(new) => new.0.0.clone(),
                None => format!("{}{old}{}", change.prefix, change.suffix),
            };
            // The inverse map finds collisions, including collisions with a type that keeps its name. For
            // this reason, unchanged names are removed only afterwards.
            if let Some(first) = names.back.insert(new.clone(), old.to_owned()) {
                return Err(NamesError::Duplicate {
                    place: "the service".to_owned(),
                    first,
                    second: old.to_owned(),
                    name: new,
                });
            }
            names.forward.insert(old.to_owned(), new);
        }
        names.forward.retain(|old, new| old != new);
        names.back.retain(|new, old| old != new);
        for change in &customization.field_names {
            let definition = schema
                .types
                .iter()
                .find(|it| type_name(it) == change.parent_type);
            let Some(definition) = definition else {
                return Err(NamesError::UnknownType(change.parent_type.clone()));
            };
            let mut by_new: HashMap<String, String> = HashMap::new();
            for field in fields_of(definition) {
                let old = &field.name;
                let new = match change.mapping.get(old) {
                    Some(new) => new.0.0.clone(),
                    None => format!("{}{old}{}", change.prefix, change.suffix),
                };
                if let Some(first) = by_new.insert(new.clone(), old.clone()) {
                    return Err(NamesError::Duplicate {
                        place: format!("`{}`", change.parent_type),
                        first,
                        second: old.clone(),
                        name: new,
                    });
                }
            }
            // As above: the collision check needed unchanged names.
            by_new.retain(|new, old| new != old);
            // The merged schema has other names for the service's root types.
            for parent in merged_parents(schema, customization, &change.parent_type) {
                names.fields.insert(parent, by_new.clone());
            }
            let parent = names.new_type(&change.parent_type).to_owned();
            names.fields.insert(parent, by_new);
        }
        names.check_interfaces(schema)?;
        Ok(names)
    }

    /// True if at least one type has another name.
    #[must_use]
    pub(crate) fn renames_types(&self) -> bool {
        !self.forward.is_empty()
    }

    /// The merged schema's name of a type.
    #[must_use]
    pub(crate) fn new_type<'a>(&'a self, old: &'a str) -> &'a str {
        self.forward.get(old).map_or(old, String::as_str)
    }

    /// The service's name of a type.
    #[must_use]
    pub(crate) fn old_type<'a>(&'a self, new: &'a str) -> &'a str {
        self.back.get(new).map_or(new, String::as_str)
    }

    /// The service's name of a field. Both parameters are names of the merged schema.
    #[must_use]
    pub(crate) fn old_field<'a>(&'a self, parent: &str, new: &'a str) -> &'a str {
        let fields = self.fields.get(parent);
        fields
            .and_then(|fields| fields.get(new))
            .map_or(new, String::as_str)
    }

    /// The merged schema's name of a field. `parent` and `old` are the service's names.
    #[must_use]
    pub(crate) fn new_field<'a>(&'a self, parent: &str, old: &'a str) -> &'a str {
        let fields = self.fields.get(self.new_type(parent));
        let found = fields.and_then(|fields| fields.iter().find(|(_, known)| *known == old));
        // A search by value, because it runs during a merge and not for requests.
        found.map_or(old, |(new, _)| new)
    }

    fn check_interfaces(&self, schema: &SourceSchema) -> Result<(), NamesError> {
        let types = schema.types.iter();
        let by_name: HashMap<&str, _> = types.map(|it| (type_name(it), it)).collect();
        for definition in &schema.types {
            let interfaces = match definition {
                TypeDefinition::Object(it) => &it.implements_interfaces,
                TypeDefinition::Interface(it) => &it.implements_interfaces,
                _ => continue,
            };
            let object = type_name(definition);
            for interface in interfaces {
                let of = by_name.get(interface.as_str());
                for field in of.into_iter().flat_map(|it| fields_of(it)) {
                    if self.new_field(interface, &field.name) != self.new_field(object, &field.name)
                    {
                        return Err(NamesError::Torn {
                            object: object.to_owned(),
                            interface: interface.clone(),
                            field: field.name.clone(),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// The service's types under the merged schema's names, without its roots.
    pub(crate) fn renamed(&self, schema: &SourceSchema) -> Vec<TypeDefinition<'static, String>> {
        let types = schema.types.iter();
        types
            .filter(|it| !schema.is_root(type_name(it)))
            .map(|it| self.renamed_type(it))
            .collect()
    }

    /// The fields of one of the service's root types, with the merged schema's names.
    pub(crate) fn renamed_fields(
        &self,
        schema: &SourceSchema,
        root: &str,
    ) -> Vec<Field<'static, String>> {
        let root = schema.types.iter().find(|it| type_name(it) == root);
        let fields = root.into_iter().flat_map(|root| {
            let parent = type_name(root);
            fields_of(root)
                .iter()
                .map(move |it| self.renamed_field(parent, it))
        });
        fields.collect()
    }

    fn renamed_type(
        &self,
        definition: &TypeDefinition<'static, String>,
    ) -> TypeDefinition<'static, String> {
        let mut renamed = definition.clone();
        let old = type_name(definition);
        let new = self.new_type(old).to_owned();
        let types = |names: &mut Vec<String>| {
            for name in names {
                *name = self.new_type(name).to_owned();
            }
        };
        let fields = |fields: &mut Vec<Field<'static, String>>| {
            for field in fields {
                *field = self.renamed_field(old, field);
            }
        };
        match &mut renamed {
            TypeDefinition::Scalar(it) => it.name = new,
            TypeDefinition::Enum(it) => it.name = new,
            TypeDefinition::Union(it) => {
                it.name = new;
                types(&mut it.types);
            }
            TypeDefinition::Object(it) => {
                it.name = new;
                types(&mut it.implements_interfaces);
                fields(&mut it.fields);
            }
            TypeDefinition::Interface(it) => {
                it.name = new;
                types(&mut it.implements_interfaces);
                fields(&mut it.fields);
            }
            TypeDefinition::InputObject(it) => {
                it.name = new;
                self.rename_inputs(&mut it.fields);
            }
        }
        renamed
    }

    fn renamed_field(
        &self,
        parent: &str,
        field: &Field<'static, String>,
    ) -> Field<'static, String> {
        let mut field = field.clone();
        field.name = self.new_field(parent, &field.name).to_owned();
        rename_inside(&mut field.field_type, &|name| {
            self.new_type(name).to_owned()
        });
        self.rename_inputs(&mut field.arguments);
        field
    }

    fn rename_inputs(&self, inputs: &mut [InputValue<'static, String>]) {
        for input in inputs {
            rename_inside(&mut input.value_type, &|name| {
                self.new_type(name).to_owned()
            });
        }
    }
}

/// Changes the innermost name of a type.
pub(crate) fn rename_inside(of: &mut Type<'static, String>, rename: &dyn Fn(&str) -> String) {
    match of {
        Type::NamedType(name) => *name = rename(name),
        Type::ListType(inner) | Type::NonNullType(inner) => rename_inside(inner, rename),
    }
}

pub(crate) fn fields_of<'a>(
    definition: &'a TypeDefinition<'static, String>,
) -> &'a [Field<'static, String>] {
    match definition {
        TypeDefinition::Object(it) => &it.fields,
        TypeDefinition::Interface(it) => &it.fields,
        _ => &[],
    }
}

/// The names that a root type of the service has in the merged schema. Empty for other types.
fn merged_parents(
    schema: &SourceSchema,
    customization: &Customization,
    parent: &str,
) -> Vec<String> {
    let roots = [
        (Some(schema.query.as_str()), QUERY_ROOT, "Query"),
        (schema.mutation.as_deref(), MUTATION_ROOT, "Mutation"),
    ];
    let namespace = customization.root_fields_namespace.as_ref();
    let own = roots.into_iter().filter(|(root, ..)| *root == Some(parent));
    own.map(|(_, merged, word)| match namespace {
        Some(namespace) => namespace_type(&namespace.0.0, word),
        None => merged.to_owned(),
    })
    .collect()
}

impl SourceSchema {
    /// True if a type is a root type of operations.
    pub(crate) fn is_root(&self, name: &str) -> bool {
        self.query == name
            || self.mutation.as_deref() == Some(name)
            || self.subscription.as_deref() == Some(name)
    }
}
