//! Compiles an operation into its cost formula.

use std::collections::HashMap;

use graphql_tools::parser::query::{
    Definition, Directive, Field, Selection, TypeCondition, Value as Literal,
};
use graphql_tools::parser::schema::{Field as Defined, Type};

use super::actual::merged;
use super::formula::{Condition, Count, Formula, Inputs, Node, Size, Use, usual};
use super::{Costs, FieldCost, ListSize};
use crate::fetch::OperationKind;
use crate::limits::{QueryDocument, Set};
use crate::schema::{Named, Schema, TypeText, inner_name};
use crate::variables::Declared;

/// Base cost of an operation of this kind.
fn base(kind: OperationKind) -> f64 {
    match kind {
        OperationKind::Query | OperationKind::Subscription => 0.0,
        OperationKind::Mutation => 10.0,
    }
}

/// A field's `@listSize` for the lists in its own fields, and the field with the arguments.
type Sizing<'a> = (&'a ListSize, &'a Field<'static, String>);

/// Inputs of the formula compiler, the same for all operations of a document.
pub(crate) struct Compiler<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) costs: &'a Costs,
    pub(crate) document: &'a QueryDocument,
    pub(crate) declared: &'a [Declared],
    /// Expected number of items in a list without `@listSize`.
    pub(crate) list_size: f64,
}

impl Compiler<'_> {
    pub(crate) fn formula(&self, kind: OperationKind, set: &Set) -> Formula {
        let positions = self.declared.iter().enumerate();
        let mut compiling = Compiling {
            with: self,
            positions: positions.map(|(at, it)| (it.name.as_str(), at)).collect(),
            known: HashMap::new(),
            known_uses: HashMap::new(),
            made: Formula {
                base: base(kind),
                fields: Vec::new(),
                selected: Vec::new(),
                arguments: Vec::new(),
                uses: Vec::new(),
                sizes: Vec::new(),
            },
        };
        let mut fields = Vec::new();
        let root = self.schema.root(kind);
        compiling.set(set, root, (&[], None), &mut fields);
        Formula {
            selected: merged(fields.iter().collect()),
            fields,
            ..compiling.made
        }
    }
}

/// A formula under construction.
struct Compiling<'a> {
    with: &'a Compiler<'a>,
    /// Positions of the variables, by name.
    positions: HashMap<&'a str, usize>,
    /// Positions of the arguments of each field in the text. A field has one parent, even if its fragment is
    /// spread many times.
    known: HashMap<*const Field<'static, String>, Option<usize>>,
    /// Positions of the uses, by variable position, weight and type.
    known_uses: HashMap<(usize, Option<u64>, String), usize>,
    /// The formula without its fields.
    made: Formula,
}

impl Compiling<'_> {
    /// `from` contains the conditions of the surrounding fragments, and the list size that the field sets for
    /// its own fields. `limits` bounds documents with their fragments expanded, and refuses cycles.
    fn set(
        &mut self,
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
                    let definitions = &self.with.document.definitions;
                    let fragment = definitions.iter().find_map(|it| match it {
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
        &mut self,
        field: &Field<'static, String>,
        parent: &str,
        conditions: Vec<Condition>,
        sized: Option<Sizing<'_>>,
    ) -> Option<Node> {
        let &Compiler { schema, costs, .. } = self.with;
        // `__typename` and introspection cause no work in a subgraph.
        let definition = schema.named(parent)?.field(&field.name)?;
        let of = inner_name(&definition.field_type);
        let cost = costs.field(parent, &field.name);
        let list = cost.and_then(|it| it.list.as_ref());
        let own = cost
            .and_then(|it| it.weight)
            .or_else(|| costs.types.get(of).copied())
            .unwrap_or_else(|| usual(schema.named(of)));
        let of_parent = sized.filter(|(list, _)| list.sized.contains(&field.name));
        let count = match (of_parent, list) {
            (Some((list, sizing)), _) => self.count(list, sizing),
            (None, Some(list)) if list.sized.is_empty() => self.count(list, field),
            _ if is_list(&definition.field_type) => Count::Fixed(self.with.list_size),
            _ => Count::Fixed(1.0),
        };
        let arguments = self.arguments(field, definition, cost);
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

    fn arguments(
        &mut self,
        field: &Field<'static, String>,
        definition: &Defined<'static, String>,
        cost: Option<&FieldCost>,
    ) -> Option<usize> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(field)) {
            return *known;
        }
        let mut inputs = Inputs::default();
        for (name, value) in &field.arguments {
            let mut defined = definition.arguments.iter();
            let Some(argument) = defined.find(|it| it.name == *name) else {
                continue;
            };
            let weight = cost.and_then(|it| it.arguments.get(name).copied());
            let of = inner_name(&argument.value_type);
            if self.may_cost(weight, of) {
                self.input(weight, of, value, &mut inputs);
            }
        }
        let is_nothing = inputs.fixed == 0.0 && inputs.uses.is_empty();
        let place = (!is_nothing).then(|| {
            self.made.arguments.push(inputs);
            self.made.arguments.len() - 1
        });
        self.known.insert(field, place);
        place
    }

    /// True if values of this type can have a cost. Leaves without a weight cost 0, whatever their values.
    fn may_cost(&self, weight: Option<f64>, of: &str) -> bool {
        weight.is_some()
            || self.with.costs.types.contains_key(of)
            || matches!(self.with.schema.named(of), Some(Named::Input(_)))
    }

    /// Cost of a literal: each object and each weighted leaf in it.
    fn input(
        &mut self,
        weight: Option<f64>,
        of: &str,
        value: &Literal<'static, String>,
        inputs: &mut Inputs,
    ) {
        let &Compiler { schema, costs, .. } = self.with;
        match value {
            Literal::Null => {}
            Literal::Variable(name) => {
                if let Some(position) = self.positions.get(name.as_str()).copied()
                    && self.may_cost(weight, of)
                {
                    inputs.uses.push(self.use_of(position, weight, of));
                }
            }
            Literal::List(items) => {
                for item in items {
                    self.input(weight, of, item, inputs);
                }
            }
            value => {
                inputs.fixed += costs.input(schema, weight, of);
                let (Literal::Object(members), Some(Named::Input(input))) =
                    (value, schema.named(of))
                else {
                    return;
                };
                for (name, value) in members {
                    if let Some(field) = input.fields.iter().find(|it| it.name == *name) {
                        let weight = costs.member(of, name);
                        self.input(weight, inner_name(&field.value_type), value, inputs);
                    }
                }
            }
        }
    }

    fn use_of(&mut self, position: usize, weight: Option<f64>, of: &str) -> usize {
        let uses = &mut self.made.uses;
        let key = (position, weight.map(f64::to_bits), of.to_owned());
        let place = self.known_uses.entry(key).or_insert_with(|| {
            uses.push(Use {
                position,
                weight,
                of: of.to_owned(),
            });
            uses.len() - 1
        });
        *place
    }

    fn count(&mut self, list: &ListSize, field: &Field<'static, String>) -> Count {
        let otherwise = list.assumed.unwrap_or(self.with.list_size);
        if list.slicing.is_empty() {
            return Count::Fixed(otherwise);
        }
        let given = field.arguments.iter();
        let given = given.filter(|(name, _)| list.slicing.contains(name));
        let sizes = given.filter_map(|(_, value)| match value {
            Literal::Variable(name) => {
                let position = *self.positions.get(name.as_str())?;
                Some(Size::Variable(self.size_of(position)))
            }
            value => super::number(value).map(Size::Literal),
        });
        Count::Sliced {
            sizes: sizes.collect(),
            requires_one: list.requires_one,
            otherwise,
        }
    }

    fn size_of(&mut self, position: usize) -> usize {
        let sizes = &mut self.made.sizes;
        let known = sizes.iter().position(|it| *it == position);
        known.unwrap_or_else(|| {
            sizes.push(position);
            sizes.len() - 1
        })
    }

    /// The conditions with variables. `None` if the field is never present.
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
                    let position = self.positions.get(name.as_str());
                    conditions.extend(position.map(|it| (*it, wanted)));
                }
                _ => {}
            }
        }
        Some(conditions)
    }
}

fn condition_of<'a>(condition: Option<&'a TypeCondition<'static, String>>) -> Option<&'a str> {
    condition.map(|TypeCondition::On(name)| name.as_str())
}

fn is_list(of: &TypeText) -> bool {
    match of {
        Type::NonNullType(inner) => is_list(inner),
        Type::ListType(_) => true,
        Type::NamedType(_) => false,
    }
}
