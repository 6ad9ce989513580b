//! The cost formula of one operation. A request later fills in the values of its variables.
//!
//! The cost of arguments is computed once per request, and each variable is read once. Both are independent
//! of the number of fields, fragment spreads and response objects that use them.

use std::collections::HashMap;

use graphql_tools::parser::query::Value as Literal;
use serde_json::Value as Json;

use super::Costs;
use super::selected::Selected;
use crate::schema::{Named, Schema, inner_name};
use crate::variables::{Declared, Variables};

/// The cost formula of one operation. Its variables are still open.
#[derive(Debug)]
pub(crate) struct Formula {
    /// Cost of the operation without its fields.
    pub(super) base: f64,
    pub(super) fields: Vec<Node>,
    /// The fields as a response contains them, by response key.
    pub(super) selected: Vec<Selected>,
    /// The arguments of all fields. Spreads of one fragment share their entries.
    pub(super) arguments: Vec<Inputs>,
    /// The variables in arguments, each once.
    pub(super) uses: Vec<Use>,
    /// The positions of the variables that contain list lengths.
    pub(super) sizes: Vec<usize>,
}

/// One field of an operation, after fragments are expanded.
#[derive(Debug)]
pub(super) struct Node {
    /// The response key of the field.
    pub(super) key: Box<str>,
    /// Cost of one value of the field, without the fields selected from it.
    pub(super) own: f64,
    pub(super) count: Count,
    /// Index into [`Formula::arguments`]. `None` if the arguments cost 0.
    pub(super) arguments: Option<usize>,
    pub(super) fields: Vec<Node>,
    /// `@skip` and `@include` with variables: their positions, and the value that keeps the field.
    pub(super) conditions: Vec<Condition>,
}

/// Number of values of a field.
#[derive(Debug)]
pub(super) enum Count {
    Fixed(f64),
    Sliced {
        sizes: Vec<Size>,
        requires_one: bool,
        otherwise: f64,
    },
}

/// The value of a slicing argument.
#[derive(Debug)]
pub(super) enum Size {
    Literal(f64),
    /// Index into [`Formula::sizes`].
    Variable(usize),
}

/// Cost of a field's arguments.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Cost of the literals in the operation's text.
    pub(super) fixed: f64,
    /// Indexes of the variables in [`Formula::uses`].
    pub(super) uses: Vec<usize>,
}

/// A variable that is an argument, or a part of one.
#[derive(Debug)]
pub(super) struct Use {
    /// Position of the variable among the declared variables.
    pub(super) position: usize,
    /// Weight from `@cost` on the argument. It replaces the weight of the type.
    pub(super) weight: Option<f64>,
    pub(super) of: String,
}

/// Reason why a cost cannot be estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEstimate(pub String);

/// The position of a variable, and the value that keeps the field.
pub(super) type Condition = (usize, bool);

pub(super) fn usual(of: Option<Named<'_>>) -> f64 {
    match of {
        Some(Named::Object(_) | Named::Interface(_) | Named::Union(_) | Named::Input(_)) => 1.0,
        Some(Named::Scalar(_) | Named::Enum(_)) | None => 0.0,
    }
}

/// The variables of one request, together with the schema and its costs.
pub(crate) struct Request<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) costs: &'a Costs,
    pub(crate) declared: &'a [Declared],
    pub(crate) variables: &'a Variables,
}

impl Formula {
    /// Expected cost of the operation with these variables.
    pub(crate) fn estimate(&self, request: &Request<'_>) -> Result<f64, NoEstimate> {
        let filled = request.fill(self);
        let fields = filled.sum(&self.fields)?;
        Ok(bounded(self.base + fields))
    }

    /// Approximate size of the formula in bytes.
    pub(crate) fn weight(&self) -> usize {
        fn of(nodes: &[Node]) -> usize {
            let nodes = nodes.iter();
            nodes
                .map(|it| size_of::<Node>() + it.key.len() + of(&it.fields))
                .sum()
        }
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|it| size_of::<Inputs>() + size_of_val(&*it.uses));
        let uses = self.uses.iter().map(|it| size_of::<Use>() + it.of.len());
        size_of::<Self>()
            + of(&self.fields)
            + Selected::weight(&self.selected)
            + arguments.sum::<usize>()
            + uses.sum::<usize>()
            + size_of_val(&*self.sizes)
    }
}

/// Bounds a cost to finite values of at least 0. The planner refuses negative weights, and a negative cost
/// must not pay for other fields. Zero times an infinite list (NaN) counts as 0.
pub(super) fn bounded(cost: f64) -> f64 {
    if cost > 0.0 { cost.min(f64::MAX) } else { 0.0 }
}

/// A formula with the variables of one request filled in.
pub(super) struct Filled<'a> {
    request: &'a Request<'a>,
    /// Costs of the arguments, in the order of [`Formula::arguments`].
    arguments: Vec<f64>,
    /// List lengths from variables, in the order of [`Formula::sizes`].
    sizes: Vec<Option<f64>>,
}

impl<'a> Request<'a> {
    /// Reads the variables that a formula needs.
    pub(super) fn fill(&'a self, formula: &Formula) -> Filled<'a> {
        let mut read: HashMap<usize, Json> = HashMap::new();
        let uses = formula.uses.iter().map(|it| {
            let value = read.entry(it.position);
            let value = value.or_insert_with(|| self.value(it.position).unwrap_or_default());
            self.input(it.weight, &it.of, value)
        });
        let uses: Vec<f64> = uses.collect();
        let arguments = formula.arguments.iter().map(|it| {
            let variables = it.uses.iter().filter_map(|it| uses.get(*it));
            it.fixed + variables.sum::<f64>()
        });
        Filled {
            request: self,
            arguments: arguments.collect(),
            sizes: formula.sizes.iter().map(|it| self.size(*it)).collect(),
        }
    }

    /// Cost of an input value: each object and each weighted leaf in it. The limits on bodies and documents
    /// bound the depth.
    fn input(&self, weight: Option<f64>, of: &str, value: &Json) -> f64 {
        match value {
            Json::Null => 0.0,
            Json::Array(items) => items.iter().map(|it| self.input(weight, of, it)).sum(),
            value => {
                let own = self.costs.input(self.schema, weight, of);
                let (Json::Object(members), Some(Named::Input(input))) =
                    (value, self.schema.named(of))
                else {
                    return own;
                };
                let members = members.iter().filter_map(|(name, value)| {
                    let field = input.fields.iter().find(|it| it.name == *name)?;
                    let weight = self.costs.member(of, name);
                    Some(self.input(weight, inner_name(&field.value_type), value))
                });
                own + members.sum::<f64>()
            }
        }
    }

    fn flag(&self, position: usize) -> Option<bool> {
        let declared = self.declared.get(position)?;
        let given = self.variables.json(position);
        match given {
            Some(text) => Some(text == b"true"),
            None => declared.boolean_default,
        }
    }

    /// The value of a variable: from the client, or the default.
    fn value(&self, position: usize) -> Option<Json> {
        match self.given(position) {
            Some(text) => serde_json::from_slice(text).ok(),
            None => {
                let default = self.declared.get(position)?.default.as_ref()?;
                Some(json(default))
            }
        }
    }

    /// The value of a variable as a number.
    fn size(&self, position: usize) -> Option<f64> {
        match self.given(position) {
            Some(text) => serde_json::from_slice(text).ok(),
            None => super::number(self.declared.get(position)?.default.as_ref()?),
        }
    }

    fn given(&self, position: usize) -> Option<&[u8]> {
        #[cfg(test)]
        READS.set(READS.get() + 1);
        self.variables.json(position)
    }
}

#[cfg(test)]
thread_local! {
    /// Number of times that this thread read a variable.
    pub(super) static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Filled<'_> {
    fn sum(&self, nodes: &[Node]) -> Result<f64, NoEstimate> {
        nodes
            .iter()
            .try_fold(0.0, |sum, node| Ok(sum + self.node(node)?))
    }

    fn node(&self, node: &Node) -> Result<f64, NoEstimate> {
        let is_out = |(position, wanted): &Condition| self.request.flag(*position) == Some(!wanted);
        if node.conditions.iter().any(is_out) {
            return Ok(0.0);
        }
        let one = node.own + self.sum(&node.fields)?;
        let cost = self.count(&node.count)? * one + self.arguments(node.arguments);
        Ok(bounded(cost))
    }

    fn count(&self, count: &Count) -> Result<f64, NoEstimate> {
        let (sizes, requires_one, otherwise) = match count {
            Count::Fixed(count) => return Ok(*count),
            Count::Sliced {
                sizes,
                requires_one,
                otherwise,
            } => (sizes, *requires_one, *otherwise),
        };
        let given = sizes.iter().filter_map(|size| match size {
            Size::Literal(size) => Some(*size),
            Size::Variable(place) => *self.sizes.get(*place)?,
        });
        let given: Vec<f64> = given.collect();
        if requires_one && given.len() != 1 {
            return Err(NoEstimate(format!(
                "Exactly one slicing argument is required, but found {}",
                given.len()
            )));
        }
        // A negative size does not predict the length of the subgraph's list.
        let sizes = given
            .into_iter()
            .map(|it| if it >= 0.0 { it } else { otherwise });
        Ok(sizes.reduce(f64::max).unwrap_or(otherwise))
    }

    /// Cost of a field's arguments, by their index.
    pub(super) fn arguments(&self, place: Option<usize>) -> f64 {
        let cost = place.and_then(|it| self.arguments.get(it));
        cost.copied().unwrap_or_default()
    }
}

/// Converts a literal without variables, such as a default.
fn json(literal: &Literal<'static, String>) -> Json {
    match literal {
        Literal::Variable(_) | Literal::Null => Json::Null,
        Literal::Int(number) => number.as_i64().map_or(Json::Null, Json::from),
        Literal::Float(number) => Json::from(*number),
        Literal::String(text) | Literal::Enum(text) => Json::from(text.as_str()),
        Literal::Boolean(flag) => Json::from(*flag),
        Literal::List(items) => items.iter().map(json).collect(),
        Literal::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), json(value)))
            .collect(),
    }
}
