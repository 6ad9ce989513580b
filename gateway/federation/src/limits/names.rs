//! Counts the length of names. The planner copies names into all its data about an operation. So a long name
//! costs as much as several selections.

use graphql_tools::parser::query::{
    Directive, Field, FragmentDefinition, OperationDefinition, Selection, TypeCondition, Value,
    VariableDefinition,
};

use crate::schema::inner_name;

/// Bytes of a name that count as one selection. Names written by people or tools are shorter.
const NAME_BYTES: usize = 64;

/// Number of additional selections for the length of a name.
pub(super) fn of(name: &str) -> u64 {
    (name.len() / NAME_BYTES) as u64
}

/// Number of additional selections for the names in a selection, without its nested selections.
pub(super) fn of_selection(selection: &Selection<'static, String>) -> u64 {
    match selection {
        Selection::Field(field) => of_field(field),
        Selection::InlineFragment(inline) => {
            let on = inline.type_condition.as_ref();
            let on = on.map_or(0, |TypeCondition::On(name)| of(name));
            on.saturating_add(of_directives(&inline.directives))
        }
        Selection::FragmentSpread(spread) => {
            of(&spread.fragment_name).saturating_add(of_directives(&spread.directives))
        }
    }
}

/// Number of additional selections for the names in a fragment. Its own name counts at each spread.
pub(super) fn of_fragment(fragment: &FragmentDefinition<'static, String>) -> u64 {
    let TypeCondition::On(on) = &fragment.type_condition;
    of(on).saturating_add(of_directives(&fragment.directives))
}

fn of_field(field: &Field<'static, String>) -> u64 {
    let alias = field.alias.as_deref().map_or(0, of);
    let own = alias.saturating_add(of(&field.name));
    own.saturating_add(of_arguments(&field.arguments))
        .saturating_add(of_directives(&field.directives))
}

/// Number of additional selections for the names in an operation, without its selections.
pub(super) fn of_operation(operation: &OperationDefinition<'static, String>) -> u64 {
    let (name, variables, directives): (_, &[VariableDefinition<'static, String>], &[_]) =
        match operation {
            OperationDefinition::SelectionSet(_) => return 0,
            OperationDefinition::Query(it) => (&it.name, &it.variable_definitions, &it.directives),
            OperationDefinition::Mutation(it) => {
                (&it.name, &it.variable_definitions, &it.directives)
            }
            OperationDefinition::Subscription(it) => {
                (&it.name, &it.variable_definitions, &it.directives)
            }
        };
    let variables = variables.iter().map(|it| {
        let default = it.default_value.as_ref().map_or(0, of_value);
        of(&it.name)
            .saturating_add(of(inner_name(&it.var_type)))
            .saturating_add(default)
    });
    sum(variables)
        .saturating_add(name.as_deref().map_or(0, of))
        .saturating_add(of_directives(directives))
}

fn of_directives(directives: &[Directive<'static, String>]) -> u64 {
    sum(directives
        .iter()
        .map(|it| of(&it.name).saturating_add(of_arguments(&it.arguments))))
}

fn of_arguments(arguments: &[(String, Value<'static, String>)]) -> u64 {
    let one = |(name, value): &(String, _)| of(name).saturating_add(of_value(value));
    sum(arguments.iter().map(one))
}

/// Strings are not names. The parser bounds the depth of values.
fn of_value(value: &Value<'static, String>) -> u64 {
    match value {
        Value::Variable(name) | Value::Enum(name) => of(name),
        Value::List(items) => sum(items.iter().map(of_value)),
        Value::Object(members) => sum(members
            .iter()
            .map(|(name, value)| of(name).saturating_add(of_value(value)))),
        Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Boolean(_) | Value::Null => 0,
    }
}

fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
