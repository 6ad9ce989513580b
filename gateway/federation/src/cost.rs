//! The cost of an operation, from `@cost` and `@listSize` of a supergraph. The rules are the IBM cost
//! specification as Apollo Router implements it.
//!
//! By default an object, interface or union costs 1, a leaf 0 and an input object 1. A mutation adds 10.
//! `@cost` overrides these values. A list costs the sum of its items. `@listSize` or the configuration sets
//! the expected number of items.
//!
//! The text of an operation becomes a [`Formula`] once. Each request fills in its variables. The cost of a
//! response is counted along the same formula, with the actual lists.

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
use crate::schema_description::Described;
use crate::sdl::{Applied, argument};

pub(crate) use compile::Compiler;
pub use formula::NoEstimate;
pub(crate) use formula::{Formula, Request};

/// The cost directives of a supergraph.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Weights from `@cost` on types, by type name.
    types: HashMap<String, f64>,
    /// Costs of fields, by type and name.
    fields: HashMap<(String, String), FieldCost>,
    /// Weights from `@cost` on fields of input objects, by type and name.
    inputs: HashMap<(String, String), f64>,
}

#[derive(Debug, Default, PartialEq)]
struct FieldCost {
    weight: Option<f64>,
    arguments: HashMap<String, f64>,
    list: Option<ListSize>,
}

/// The arguments of one `@listSize`.
#[derive(Clone, Debug, Default, PartialEq)]
struct ListSize {
    assumed: Option<f64>,
    slicing: Vec<String>,
    /// Fields of the returned object that have this size. Empty if the field itself has it.
    sized: Vec<String>,
    /// True if a query must set exactly one slicing argument.
    requires_one: bool,
}

/// Names of the two directives in the supergraph.
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
        // A typical supergraph has no cost directives. Then the lookup is skipped.
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

    /// Cost of one value of this type, without its members. `weight` is the weight of the argument or field.
    fn input(&self, schema: &Schema, weight: Option<f64>, of: &str) -> f64 {
        weight
            .or_else(|| self.types.get(of).copied())
            .unwrap_or_else(|| formula::usual(schema.named(of)))
    }
}

/// Finds the first `@cost` that makes the planner panic. Returns its place and weight for an error message,
/// because the planner has no message.
pub(crate) fn unreadable(sdl: &str) -> Option<(String, String)> {
    let document = safe_parse_schema(&Described::read(sdl).sdl).ok()?;
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

/// Reads a number of a schema. A string with a number also counts, because the IBM specification writes
/// weights as strings.
fn number(value: &Value<'static, String>) -> Option<f64> {
    match value {
        // Rounding beyond 2^53 is acceptable for a cost.
        #[expect(clippy::cast_precision_loss, reason = "a cost is an estimate")]
        Value::Int(number) => number.as_i64().map(|it| it as f64),
        Value::Float(number) => Some(*number),
        Value::String(text) => text.parse().ok().filter(|it: &f64| it.is_finite()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
