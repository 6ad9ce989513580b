//! What an operation costs: by `@cost` and `@listSize` of a supergraph, as the specification of IBM has
//! them and as Apollo Router counts.
//!
//! An object, interface or union costs 1, a leaf 0, an input object 1, a mutation 10 more; `@cost` says
//! otherwise. A list costs its items, as many as `@listSize` expects of it, or as the configuration says.
//!
//! The text of an operation becomes a [`Formula`] once; each request fills its variables in. The cost of a
//! response is counted along the same formula, with the lists as they are.

mod actual;
mod compile;
mod formula;
mod selected;

use std::collections::HashMap;

use graphql_tools::parser::schema::{
    Definition, Document, Field, InputValue, TypeDefinition, Value,
};
use hive_router_query_planner::utils::parsing::safe_parse_schema;

use crate::schema::Schema;
use crate::sdl::{Applied, argument};

pub(crate) use compile::Compiler;
pub use formula::NoEstimate;
pub(crate) use formula::{Formula, Request};

/// What the directives of a supergraph say.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// `@cost` of types.
    types: HashMap<String, f64>,
    /// Of fields, by type and name.
    fields: HashMap<(String, String), FieldCost>,
    /// `@cost` of fields of input objects, by type and name.
    inputs: HashMap<(String, String), f64>,
}

#[derive(Debug, Default, PartialEq)]
struct FieldCost {
    weight: Option<f64>,
    arguments: HashMap<String, f64>,
    list: Option<ListSize>,
}

/// `@listSize`.
#[derive(Clone, Debug, Default, PartialEq)]
struct ListSize {
    assumed: Option<f64>,
    slicing: Vec<String>,
    /// Fields of the field's object whose size this is; empty for the field's own.
    sized: Vec<String>,
    /// Whether exactly one slicing argument must be given.
    requires_one: bool,
}

/// What the two directives are called.
pub(crate) struct CostNames {
    pub(crate) cost: String,
    pub(crate) list_size: String,
}

impl Costs {
    pub(crate) fn of(document: &Document<'static, String>, names: &CostNames) -> Costs {
        let mut costs = Costs::default();
        for definition in &document.definitions {
            let Definition::TypeDefinition(definition) = definition else {
                continue;
            };
            let (name, directives) = named(definition);
            if let Some(weight) = weight(directives, names) {
                costs.types.insert(name.to_owned(), weight);
            }
            match definition {
                TypeDefinition::Object(it) => costs.add_fields(name, &it.fields, names),
                TypeDefinition::Interface(it) => costs.add_fields(name, &it.fields, names),
                TypeDefinition::InputObject(it) => costs.add_inputs(name, &it.fields, names),
                _ => {}
            }
        }
        costs
    }

    fn add_fields(&mut self, of: &str, fields: &[Field<'static, String>], names: &CostNames) {
        for field in fields {
            let arguments = field.arguments.iter().filter_map(|it| {
                let weight = weight(&it.directives, names)?;
                Some((it.name.clone(), weight))
            });
            let cost = FieldCost {
                weight: weight(&field.directives, names),
                arguments: arguments.collect(),
                list: list_size(&field.directives, names),
            };
            if cost != FieldCost::default() {
                self.fields
                    .insert((of.to_owned(), field.name.clone()), cost);
            }
        }
    }

    fn add_inputs(&mut self, of: &str, fields: &[InputValue<'static, String>], names: &CostNames) {
        for field in fields {
            if let Some(weight) = weight(&field.directives, names) {
                self.inputs
                    .insert((of.to_owned(), field.name.clone()), weight);
            }
        }
    }

    fn field(&self, of: &str, name: &str) -> Option<&FieldCost> {
        // The usual supergraph says nothing, and its fields are not looked up.
        if self.fields.is_empty() {
            return None;
        }
        self.fields.get(&(of.to_owned(), name.to_owned()))
    }

    /// The weight of a field of an input object.
    fn member(&self, of: &str, name: &str) -> Option<f64> {
        if self.inputs.is_empty() {
            return None;
        }
        let key = (of.to_owned(), name.to_owned());
        self.inputs.get(&key).copied()
    }

    /// What a value of this type costs by itself. `weight` is that of the place where it stands.
    fn input(&self, schema: &Schema, weight: Option<f64>, of: &str) -> f64 {
        weight
            .or_else(|| self.types.get(of).copied())
            .unwrap_or_else(|| formula::usual(schema.named(of)))
    }
}

/// The first `@cost` that the planner panics about, with its weight: it has no message of its own.
pub(crate) fn unreadable(sdl: &str) -> Option<(String, String)> {
    let document = safe_parse_schema(sdl).ok()?;
    let wrong = |directives: &[Applied]| {
        let found = directives.iter().find(|it| it.name == "cost")?;
        match argument(found, "weight") {
            Some(Value::Int(number)) if number.as_i64().is_none_or(|it| it >= 0) => None,
            Some(value) => Some(format!("`{value}`")),
            None => Some("none".to_owned()),
        }
    };
    let inputs = |of: &str, all: &[InputValue<'static, String>]| {
        let mut all = all.iter();
        all.find_map(|it| Some((format!("{of}.{}", it.name), wrong(&it.directives)?)))
    };
    let fields = |of: &str, all: &[Field<'static, String>]| {
        all.iter().find_map(|field| {
            let place = format!("{of}.{}", field.name);
            let mut arguments = field.arguments.iter();
            let argument = arguments.find_map(|it| {
                let found = wrong(&it.directives)?;
                Some((format!("{place}({}:)", it.name), found))
            });
            argument.or_else(|| Some((place, wrong(&field.directives)?)))
        })
    };
    document.definitions.iter().find_map(|definition| {
        let Definition::TypeDefinition(definition) = definition else {
            return None;
        };
        let (name, directives) = named(definition);
        let within = match definition {
            TypeDefinition::Object(it) => fields(name, &it.fields),
            TypeDefinition::Interface(it) => fields(name, &it.fields),
            TypeDefinition::InputObject(it) => inputs(name, &it.fields),
            _ => None,
        };
        within.or_else(|| Some((name.to_owned(), wrong(directives)?)))
    })
}

fn named<'a>(definition: &'a TypeDefinition<'static, String>) -> (&'a str, &'a [Applied]) {
    let (name, directives) = match definition {
        TypeDefinition::Scalar(it) => (&it.name, &it.directives),
        TypeDefinition::Object(it) => (&it.name, &it.directives),
        TypeDefinition::Interface(it) => (&it.name, &it.directives),
        TypeDefinition::Union(it) => (&it.name, &it.directives),
        TypeDefinition::Enum(it) => (&it.name, &it.directives),
        TypeDefinition::InputObject(it) => (&it.name, &it.directives),
    };
    (name, directives)
}

fn weight(directives: &[Applied], names: &CostNames) -> Option<f64> {
    let found = directives.iter().find(|it| it.name == names.cost)?;
    number(argument(found, "weight")?)
}

fn list_size(directives: &[Applied], names: &CostNames) -> Option<ListSize> {
    let found = directives.iter().find(|it| it.name == names.list_size)?;
    let texts = |key| match argument(found, key) {
        Some(Value::List(items)) => items
            .iter()
            .filter_map(|it| match it {
                Value::String(text) => Some(text.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let slicing = texts("slicingArguments");
    let requires_one = !matches!(
        argument(found, "requireOneSlicingArgument"),
        Some(Value::Boolean(false))
    );
    Some(ListSize {
        assumed: argument(found, "assumedSize").and_then(number),
        requires_one: requires_one && !slicing.is_empty(),
        slicing,
        sized: texts("sizedFields"),
    })
}

/// A number of a schema; one that is written as a text, as the specification of IBM has weights, counts.
fn number(value: &Value<'static, String>) -> Option<f64> {
    match value {
        // Beyond 2^53 a cost need not be exact.
        #[expect(clippy::cast_precision_loss, reason = "a cost is an estimate")]
        Value::Int(number) => number.as_i64().map(|it| it as f64),
        Value::Float(number) => Some(*number),
        Value::String(text) => text.parse().ok().filter(|it: &f64| it.is_finite()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
