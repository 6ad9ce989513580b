//! A service that executes every operation of its schema. Each leaf is the name of its type and field, and
//! each list has two items. Values of abstract types are of each type in turn.

use gateway_federation::type_name;
use graphql_tools::parser::parse_query;
use graphql_tools::parser::query::{
    Definition, FragmentDefinition, OperationDefinition, Selection, SelectionSet, TypeCondition,
};
use graphql_tools::parser::schema::{Definition as Defined, Document, Field, Type, TypeDefinition};
use serde_json::{Map, Value, json};

pub(crate) struct Echo<'a> {
    pub(crate) schema: &'a Document<'static, String>,
}

impl Echo<'_> {
    /// The response to a request body.
    pub(crate) fn respond(&self, body: &str) -> Vec<u8> {
        let request: Value = serde_json::from_str(body).unwrap();
        let query = request["query"].as_str().unwrap();
        let document = parse_query::<String>(query).unwrap().into_static();
        let fragments: Vec<&FragmentDefinition<'static, String>> = document
            .definitions
            .iter()
            .filter_map(|it| match it {
                Definition::Fragment(it) => Some(it),
                Definition::Operation(_) => None,
            })
            .collect();
        let set = document.definitions.iter().find_map(|it| match it {
            Definition::Operation(OperationDefinition::SelectionSet(set)) => Some(set),
            Definition::Operation(OperationDefinition::Query(it)) => Some(&it.selection_set),
            _ => None,
        });
        let mut data = Map::new();
        self.object("Query", set.unwrap(), &fragments, &mut data);
        json!({"data": data}).to_string().into_bytes()
    }

    fn named(&self, name: &str) -> Option<&TypeDefinition<'static, String>> {
        self.schema.definitions.iter().find_map(|it| match it {
            Defined::TypeDefinition(it) if type_name(it) == name => Some(it),
            _ => None,
        })
    }

    fn is_a(&self, object: &str, name: &str) -> bool {
        object == name || self.possible(name).iter().any(|it| it == object)
    }

    fn possible(&self, name: &str) -> Vec<String> {
        match self.named(name) {
            Some(TypeDefinition::Union(it)) => it.types.clone(),
            Some(TypeDefinition::Interface(_)) => {
                let objects = self.schema.definitions.iter().filter_map(|it| match it {
                    Defined::TypeDefinition(TypeDefinition::Object(it))
                        if it.implements_interfaces.iter().any(|known| known == name) =>
                    {
                        Some(it.name.clone())
                    }
                    _ => None,
                });
                objects.collect()
            }
            _ => vec![name.to_owned()],
        }
    }

    fn object(
        &self,
        object: &str,
        set: &SelectionSet<'static, String>,
        fragments: &[&FragmentDefinition<'static, String>],
        out: &mut Map<String, Value>,
    ) {
        for selection in &set.items {
            let (condition, inner) = match selection {
                Selection::Field(field) => {
                    let key = field.alias.as_deref().unwrap_or(&field.name);
                    let value = if field.name == "__typename" {
                        object.into()
                    } else {
                        let Some(definition) = self.field(object, &field.name) else {
                            panic!("the service has no `{object}.{}`", field.name);
                        };
                        let old = out.remove(key).unwrap_or_default();
                        let leaf = format!("{object}.{}", field.name);
                        self.value(
                            &definition.field_type,
                            &leaf,
                            0,
                            &field.selection_set,
                            fragments,
                            old,
                        )
                    };
                    out.insert(key.to_owned(), value);
                    continue;
                }
                Selection::InlineFragment(it) => (it.type_condition.as_ref(), &it.selection_set),
                Selection::FragmentSpread(it) => {
                    let fragment = fragments
                        .iter()
                        .find(|known| known.name == it.fragment_name);
                    let fragment = fragment.expect("the service gets the fragments it needs");
                    (Some(&fragment.type_condition), &fragment.selection_set)
                }
            };
            if condition.is_none_or(|TypeCondition::On(name)| self.is_a(object, name)) {
                self.object(object, inner, fragments, out);
            }
        }
    }

    fn field(&self, object: &str, name: &str) -> Option<&Field<'static, String>> {
        match self.named(object)? {
            TypeDefinition::Object(it) => it.fields.iter().find(|it| it.name == name),
            _ => None,
        }
    }

    fn value(
        &self,
        kind: &Type<'static, String>,
        leaf: &str,
        position: usize,
        set: &SelectionSet<'static, String>,
        fragments: &[&FragmentDefinition<'static, String>],
        old: Value,
    ) -> Value {
        match kind {
            Type::NonNullType(inner) => self.value(inner, leaf, position, set, fragments, old),
            Type::ListType(inner) => {
                let items = (0..2).map(|index| {
                    let old = old.get(index).cloned().unwrap_or_default();
                    self.value(inner, leaf, index, set, fragments, old)
                });
                items.collect()
            }
            Type::NamedType(_) if set.items.is_empty() => leaf.into(),
            Type::NamedType(name) => {
                let possible = self.possible(name);
                let object = &possible[position % possible.len()];
                let mut members = match old {
                    Value::Object(members) => members,
                    _ => Map::new(),
                };
                self.object(object, set, fragments, &mut members);
                Value::Object(members)
            }
        }
    }
}
