//! A check that async-graphql lacks: do the values of the variables fit their declared types?
//!
//! By the GraphQL specification (6.1.2, coercing variable values), a missing or unfitting value is an error
//! of the whole request. The server then executes no field. The library detects some of them only when a
//! field reads the value, and then responds with data.

use async_graphql::parser::types::{
    BaseType, OperationDefinition, Type, VariableDefinition as Definition,
};
use async_graphql::{Positioned, Value, Variables};
use graphql_server::reply::{GraphqlError, Location};

/// One error for each variable with a missing or unfitting value.
pub(super) fn check(operation: &OperationDefinition, values: &Variables) -> Vec<GraphqlError> {
    let definitions = operation.variable_definitions.iter();
    definitions
        .filter_map(|definition| mistake(&definition.node, values).map(|text| (definition, text)))
        .map(|(definition, text)| error_at(definition, &text))
        .collect()
}

fn error_at(definition: &Positioned<Definition>, text: &str) -> GraphqlError {
    let Definition { name, var_type, .. } = &definition.node;
    GraphqlError {
        message: format!(
            "variable `${}` of type `{}` {text}",
            name.node, var_type.node
        ),
        locations: vec![Location {
            line: definition.pos.line,
            column: definition.pos.column,
        }],
        path: Vec::new(),
    }
}

fn mistake(definition: &Definition, values: &Variables) -> Option<String> {
    let declared = &definition.var_type.node;
    match values.get(&definition.name.node) {
        None if declared.nullable || definition.default_value.is_some() => None,
        None => Some("is required, but has no value".to_owned()),
        Some(value) if fits(declared, value) => None,
        Some(value) => Some(format!("does not take the value `{value}`")),
    }
}

fn fits(declared: &Type, value: &Value) -> bool {
    match (&declared.base, value) {
        (_, Value::Null) => declared.nullable,
        (BaseType::List(entry), Value::List(values)) => {
            values.iter().all(|value| fits(entry, value))
        }
        // A single value counts as a list of one.
        (BaseType::List(entry), single) => fits(entry, single),
        (BaseType::Named(name), value) => is_of_scalar(name, value),
    }
}

fn is_of_scalar(name: &str, value: &Value) -> bool {
    let is_int = || match value {
        Value::Number(number) => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        _ => false,
    };
    match name {
        "Int" => is_int(),
        "Float" => matches!(value, Value::Number(_)),
        "String" => matches!(value, Value::String(_)),
        "Boolean" => matches!(value, Value::Boolean(_)),
        "ID" => is_int() || matches!(value, Value::String(_)),
        // The schema has no other input types, and the validator has checked that.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;
    use async_graphql::parser::types::DocumentOperations;
    use async_graphql::value;

    use super::*;

    fn mistakes(declared: &str, values: Value) -> Vec<String> {
        let document = parse_query(format!("query({declared}) {{ total }}")).unwrap();
        let DocumentOperations::Single(operation) = document.operations else {
            panic!("one operation");
        };
        let errors = check(&operation.node, &Variables::from_value(values));
        errors.into_iter().map(|error| error.message).collect()
    }

    #[test]
    fn values_that_fit_are_taken() {
        let fitting = [
            ("$a: Int!", value!({"a": -2_147_483_648})),
            ("$a: Int = 1", value!({})),
            ("$a: Int! = 1", value!({})),
            ("$a: Int", value!({"a": null})),
            ("$a: Float!", value!({"a": 1})),
            ("$a: ID!, $b: ID!", value!({"a": 1, "b": "x"})),
            (
                "$a: [Int!]!, $b: [Int]!",
                value!({"a": [1, 2], "b": [null]}),
            ),
            ("$a: [[Int]]", value!({"a": 1})),
            ("$a: Boolean!", value!({"a": true, "not-declared": 1})),
        ];
        for (declared, values) in fitting {
            assert_eq!(
                mistakes(declared, values),
                Vec::<String>::new(),
                "{declared}"
            );
        }
    }

    #[test]
    fn each_value_that_does_not_fit_is_named() {
        let unfit = [
            ("$a: Int!, $b: Int!", value!({})),
            ("$a: Int! = 1", value!({"a": null})),
            ("$a: Int", value!({"a": 2_147_483_648_i64})),
            ("$a: Int", value!({"a": 1.5})),
            ("$a: Int", value!({"a": "1"})),
            ("$a: String", value!({"a": 1})),
            ("$a: ID", value!({"a": true})),
            ("$a: Boolean", value!({"a": 1})),
            ("$a: [Int!]", value!({"a": [1, null]})),
            ("$a: Int", value!({"a": [1]})),
        ];
        let named: Vec<_> = unfit
            .into_iter()
            .flat_map(|(declared, values)| mistakes(declared, values))
            .collect();
        insta::assert_snapshot!(named.join("\n"), @r#"
        variable `$a` of type `Int!` is required, but has no value
        variable `$b` of type `Int!` is required, but has no value
        variable `$a` of type `Int!` does not take the value `null`
        variable `$a` of type `Int` does not take the value `2147483648`
        variable `$a` of type `Int` does not take the value `1.5`
        variable `$a` of type `Int` does not take the value `"1"`
        variable `$a` of type `String` does not take the value `1`
        variable `$a` of type `ID` does not take the value `true`
        variable `$a` of type `Boolean` does not take the value `1`
        variable `$a` of type `[Int!]` does not take the value `[1, null]`
        variable `$a` of type `Int` does not take the value `[1]`
        "#);
    }
}
