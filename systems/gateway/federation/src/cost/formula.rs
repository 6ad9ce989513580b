//! The cost of one operation, but for its variables.

use graphql_tools::parser::query::{
    Definition, Directive, Field, Selection, TypeCondition, Value as Literal,
};
use graphql_tools::parser::schema::Type;
use serde_json::Value as Json;

use super::{Costs, ListSize};
use crate::fetch::OperationKind;
use crate::limits::{QueryDocument, Set};
use crate::schema::{Named, Schema, TypeText, inner_name};
use crate::variables::{Declared, Variables};

/// The cost of one operation, but for its variables.
#[derive(Debug)]
pub(crate) struct Formula {
    /// Of the operation itself.
    pub(super) base: f64,
    pub(super) fields: Vec<Node>,
}

/// One field of an operation, fragments spread.
#[derive(Debug)]
pub(super) struct Node {
    /// Its response key.
    pub(super) key: Box<str>,
    /// What one of its values costs without what is selected from it.
    pub(super) own: f64,
    count: Count,
    pub(super) arguments: Vec<Input>,
    pub(super) fields: Vec<Node>,
    /// `@skip` and `@include` with variables: their positions, and the value that keeps the field.
    conditions: Vec<Condition>,
}

/// How many values a field has.
#[derive(Debug)]
enum Count {
    Fixed(f64),
    Sliced {
        sizes: Vec<Size>,
        requires_one: bool,
        otherwise: f64,
    },
}

/// A slicing argument.
#[derive(Debug)]
enum Size {
    Literal(f64),
    Variable(usize),
}

/// What an argument costs.
#[derive(Debug)]
pub(super) struct Input {
    /// Of `@cost`, in place of that of its type.
    weight: Option<f64>,
    of: String,
    value: Literal<'static, String>,
}

/// Why a cost cannot be estimated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEstimate(pub String);

/// What an operation of any kind costs by itself.
fn base(kind: OperationKind) -> f64 {
    match kind {
        OperationKind::Query | OperationKind::Subscription => 0.0,
        OperationKind::Mutation => 10.0,
    }
}

/// The position of a variable, and the value that keeps the field.
type Condition = (usize, bool);

/// What a field says of the size of its own fields, and the field with the arguments.
type Sizing<'a> = (&'a ListSize, &'a Field<'static, String>);

/// What formulas are made with.
pub(crate) struct Compiler<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) costs: &'a Costs,
    pub(crate) document: &'a QueryDocument,
    pub(crate) declared: &'a [Declared],
    /// Of lists about which nothing is said.
    pub(crate) list_size: f64,
}

impl Compiler<'_> {
    pub(crate) fn formula(&self, kind: OperationKind, set: &Set) -> Formula {
        let mut fields = Vec::new();
        let root = self.schema.root(kind);
        self.set(set, root, (&[], None), &mut fields);
        Formula {
            base: base(kind),
            fields,
        }
    }

    /// `from` holds the conditions of fragments around, and the size that the field has for its own
    /// fields. Documents are bounded with their fragments spread (`limits`), and have no cycles.
    fn set(
        &self,
        set: &Set,
        parent: &str,
        from: (&[Condition], Option<Sizing<'_>>),
        nodes: &mut Vec<Node>,
    ) {
        for selection in &set.items {
            let directives = match selection {
                Selection::Field(it) => &it.directives,
                Selection::InlineFragment(it) => &it.directives,
                Selection::FragmentSpread(it) => &it.directives,
            };
            let Some(own) = self.conditions(directives) else {
                continue;
            };
            let conditions: Vec<_> = from.0.iter().copied().chain(own).collect();
            match selection {
                Selection::Field(field) => {
                    nodes.extend(self.field(field, parent, conditions, from.1));
                }
                Selection::InlineFragment(it) => {
                    let parent = condition_of(it.type_condition.as_ref()).unwrap_or(parent);
                    self.set(&it.selection_set, parent, (&conditions, from.1), nodes);
                }
                Selection::FragmentSpread(spread) => {
                    let fragment = self.document.definitions.iter().find_map(|it| match it {
                        Definition::Fragment(it) if it.name == spread.fragment_name => Some(it),
                        _ => None,
                    });
                    if let Some(it) = fragment {
                        let parent = condition_of(Some(&it.type_condition)).unwrap_or(parent);
                        self.set(&it.selection_set, parent, (&conditions, from.1), nodes);
                    }
                }
            }
        }
    }

    fn field(
        &self,
        field: &Field<'static, String>,
        parent: &str,
        conditions: Vec<Condition>,
        sized: Option<Sizing<'_>>,
    ) -> Option<Node> {
        // `__typename` and introspection cost no subgraph anything.
        let definition = self.schema.named(parent)?.field(&field.name)?;
        let of = inner_name(&definition.field_type);
        let cost = self.costs.field(parent, &field.name);
        let list = cost.and_then(|it| it.list.as_ref());
        let own = cost
            .and_then(|it| it.weight)
            .or_else(|| self.costs.types.get(of).copied())
            .unwrap_or_else(|| usual(self.schema.named(of)));
        let of_parent = sized.filter(|(list, _)| list.sized.contains(&field.name));
        let count = match (of_parent, list) {
            (Some((list, sizing)), _) => self.count(list, sizing),
            (None, Some(list)) if list.sized.is_empty() => self.count(list, field),
            _ if is_list(&definition.field_type) => Count::Fixed(self.list_size),
            _ => Count::Fixed(1.0),
        };
        let arguments = field.arguments.iter().filter_map(|(name, value)| {
            let argument = definition.arguments.iter().find(|it| it.name == *name)?;
            Some(Input {
                weight: cost.and_then(|it| it.arguments.get(name).copied()),
                of: inner_name(&argument.value_type).to_owned(),
                value: value.clone(),
            })
        });
        let arguments = arguments.filter(|it| self.may_cost(it)).collect();
        let mut fields = Vec::new();
        let sizes = list.filter(|it| !it.sized.is_empty());
        let sizes = sizes.map(|list| (list, field));
        self.set(&field.selection_set, of, (&[], sizes), &mut fields);
        Some(Node {
            key: field.alias.as_ref().unwrap_or(&field.name).as_str().into(),
            own,
            count,
            arguments,
            fields,
            conditions,
        })
    }

    /// Leaves without a weight cost nothing, whatever their values.
    fn may_cost(&self, input: &Input) -> bool {
        input.weight.is_some()
            || self.costs.types.contains_key(&input.of)
            || matches!(self.schema.named(&input.of), Some(Named::Input(_)))
    }

    fn count(&self, list: &ListSize, field: &Field<'static, String>) -> Count {
        let otherwise = list.assumed.unwrap_or(self.list_size);
        if list.slicing.is_empty() {
            return Count::Fixed(otherwise);
        }
        let given = field.arguments.iter();
        let given = given.filter(|(name, _)| list.slicing.contains(name));
        let sizes = given.filter_map(|(_, value)| match value {
            Literal::Variable(name) => self.position(name).map(Size::Variable),
            value => super::number(value).map(Size::Literal),
        });
        Count::Sliced {
            sizes: sizes.collect(),
            requires_one: list.requires_one,
            otherwise,
        }
    }

    /// The conditions with variables; nothing when the field is never there.
    fn conditions(&self, directives: &[Directive<'static, String>]) -> Option<Vec<Condition>> {
        let mut conditions = Vec::new();
        for directive in directives {
            let wanted = match directive.name.as_str() {
                "skip" => false,
                "include" => true,
                _ => continue,
            };
            let mut arguments = directive.arguments.iter();
            match arguments.find(|(name, _)| name == "if").map(|(_, it)| it) {
                Some(Literal::Boolean(value)) if *value != wanted => return None,
                Some(Literal::Variable(name)) => {
                    conditions.extend(self.position(name).map(|it| (it, wanted)));
                }
                _ => {}
            }
        }
        Some(conditions)
    }

    fn position(&self, variable: &str) -> Option<usize> {
        self.declared.iter().position(|it| it.name == variable)
    }
}

fn condition_of<'a>(condition: Option<&'a TypeCondition<'static, String>>) -> Option<&'a str> {
    condition.map(|TypeCondition::On(name)| name.as_str())
}

fn usual(of: Option<Named<'_>>) -> f64 {
    match of {
        Some(Named::Object(_) | Named::Interface(_) | Named::Union(_) | Named::Input(_)) => 1.0,
        Some(Named::Scalar(_) | Named::Enum(_)) | None => 0.0,
    }
}

fn is_list(of: &TypeText) -> bool {
    match of {
        Type::NonNullType(inner) => is_list(inner),
        Type::ListType(_) => true,
        Type::NamedType(_) => false,
    }
}

/// The variables of one request, and what is known of the schema.
pub(crate) struct Request<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) costs: &'a Costs,
    pub(crate) declared: &'a [Declared],
    pub(crate) variables: &'a Variables,
}

impl Formula {
    /// What the operation is expected to cost with these variables.
    pub(crate) fn estimate(&self, request: &Request<'_>) -> Result<f64, NoEstimate> {
        let fields = request.sum(&self.fields)?;
        Ok(self.base + fields)
    }

    /// Roughly the bytes that it takes.
    pub(crate) fn weight(&self) -> usize {
        fn of(nodes: &[Node]) -> usize {
            let nodes = nodes.iter();
            nodes
                .map(|it| {
                    size_of::<Node>() + it.key.len() + 128 * it.arguments.len() + of(&it.fields)
                })
                .sum()
        }
        size_of::<Self>() + of(&self.fields)
    }
}

impl Request<'_> {
    fn sum(&self, nodes: &[Node]) -> Result<f64, NoEstimate> {
        nodes
            .iter()
            .try_fold(0.0, |sum, node| Ok(sum + self.node(node)?))
    }

    fn node(&self, node: &Node) -> Result<f64, NoEstimate> {
        let is_out = |(position, wanted): &Condition| self.flag(*position) == Some(!wanted);
        if node.conditions.iter().any(is_out) {
            return Ok(0.0);
        }
        let one = node.own + self.sum(&node.fields)?;
        let cost = self.count(&node.count)? * one + self.inputs(&node.arguments);
        // The planner refuses negative weights. What other fields cost must not be paid with one.
        Ok(cost.max(0.0))
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
            Size::Variable(position) => self.value(*position)?.as_f64(),
        });
        let given: Vec<f64> = given.collect();
        if requires_one && given.len() != 1 {
            return Err(NoEstimate(format!(
                "Exactly one slicing argument is required, but found {}",
                given.len()
            )));
        }
        let largest = given.into_iter().reduce(f64::max);
        Ok(largest.map_or(otherwise, |size| size.max(0.0)))
    }

    pub(super) fn inputs(&self, inputs: &[Input]) -> f64 {
        let inputs = inputs.iter();
        inputs
            .map(|it| self.input(it.weight, &it.of, &self.json(&it.value)))
            .sum()
    }

    /// What a value costs: each object and each weighted leaf in it. Values are no deeper than bodies
    /// and documents may be.
    fn input(&self, weight: Option<f64>, of: &str, value: &Json) -> f64 {
        match value {
            Json::Null => 0.0,
            Json::Array(items) => items.iter().map(|it| self.input(weight, of, it)).sum(),
            value => {
                let type_weight = || self.costs.types.get(of).copied();
                let named = self.schema.named(of);
                let own = weight.or_else(type_weight).unwrap_or_else(|| usual(named));
                let (Json::Object(members), Some(Named::Input(input))) = (value, named) else {
                    return own;
                };
                let members = members.iter().filter_map(|(name, value)| {
                    let field = input.fields.iter().find(|it| it.name == *name)?;
                    let key = (of.to_owned(), name.clone());
                    let weight = self.costs.inputs.get(&key).copied();
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

    /// The value of a variable: what the client gave, or the default.
    fn value(&self, position: usize) -> Option<Json> {
        match self.variables.json(position) {
            Some(text) => serde_json::from_slice(text).ok(),
            None => {
                let default = self.declared.get(position)?.default.as_ref()?;
                Some(self.json(default))
            }
        }
    }

    fn json(&self, literal: &Literal<'static, String>) -> Json {
        match literal {
            Literal::Variable(name) => {
                let position = self.declared.iter().position(|it| it.name == *name);
                position.and_then(|it| self.value(it)).unwrap_or(Json::Null)
            }
            Literal::Int(number) => number.as_i64().map_or(Json::Null, Json::from),
            Literal::Float(number) => Json::from(*number),
            Literal::String(text) | Literal::Enum(text) => Json::from(text.as_str()),
            Literal::Boolean(flag) => Json::from(*flag),
            Literal::Null => Json::Null,
            Literal::List(items) => items.iter().map(|it| self.json(it)).collect(),
            Literal::Object(members) => members
                .iter()
                .map(|(name, value)| (name.clone(), self.json(value)))
                .collect(),
        }
    }
}
