//! The signature of an operation, in the form of Apollo's usage reports, and its digest.
//!
//! Operations that differ in literals, aliases, order or unused fragments have one signature. The form is the
//! default of Apollo Router (`signature_normalization_algorithm: legacy`), so that the ids of both agree.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use graphql_tools::parser::query::{
    Directive, Field, FragmentDefinition, OperationDefinition, Selection, SelectionSet,
    TypeCondition, Value, VariableDefinition,
};
use sha1::{Digest as _, Sha1};

use crate::fetch::OperationKind;
use crate::limits::{Fragments, selection_set};

/// Maximum length of a field's line in graphql-js, in bytes. In longer lines, a space
/// is between arguments instead of a comma.
const LINE_MAX: usize = 80;

type Fragment = FragmentDefinition<'static, String>;
type Set = SelectionSet<'static, String>;
type Arguments = [(String, Value<'static, String>)];

/// The id of an operation: the SHA-1 digest of its signature, in lower-case hexadecimal.
pub(crate) fn operation_id(
    fragments: &Fragments<'_>,
    operation: &OperationDefinition<'static, String>,
    kind: OperationKind,
) -> String {
    let digest = Sha1::digest(signature(fragments, operation, kind).as_bytes());
    HEXLOWER.encode(&digest)
}

fn signature(
    fragments: &Fragments<'_>,
    operation: &OperationDefinition<'static, String>,
    kind: OperationKind,
) -> String {
    let mut used = BTreeMap::new();
    let set = selection_set(operation);
    collect(fragments, set, &mut used);
    let (name, variables, directives) = head(operation);
    let mut text = format!("# {}\n", name.unwrap_or("-"));
    for fragment in used.values() {
        let TypeCondition::On(of) = &fragment.type_condition;
        let _ = write!(text, "fragment {} on {of}", fragment.name);
        write_directives(&fragment.directives, true, &mut text);
        write_set(&fragment.selection_set, &mut text);
    }
    let is_short = name.is_none()
        && kind == OperationKind::Query
        && variables.is_empty()
        && directives.is_empty();
    if !is_short {
        text.push_str(kind.as_str());
        if let Some(name) = name {
            text.push(' ');
            text.push_str(name);
        }
        write_variables(variables, &mut text);
        write_directives(directives, false, &mut text);
    }
    write_set(set, &mut text);
    text
}

/// The name, the variables and the directives of an operation.
fn head<'a>(
    operation: &'a OperationDefinition<'static, String>,
) -> (
    Option<&'a str>,
    &'a [VariableDefinition<'static, String>],
    &'a [Directive<'static, String>],
) {
    let (name, variables, directives) = match operation {
        OperationDefinition::SelectionSet(_) => return (None, &[], &[]),
        OperationDefinition::Query(it) => (&it.name, &it.variable_definitions, &it.directives),
        OperationDefinition::Mutation(it) => (&it.name, &it.variable_definitions, &it.directives),
        OperationDefinition::Subscription(it) => {
            (&it.name, &it.variable_definitions, &it.directives)
        }
    };
    (name.as_deref(), variables, directives)
}

/// Collects the fragments that a selection uses, by name.
fn collect<'a>(
    fragments: &Fragments<'a>,
    set: &'a Set,
    used: &mut BTreeMap<&'a str, &'a Fragment>,
) {
    for selection in &set.items {
        match selection {
            Selection::Field(field) => collect(fragments, &field.selection_set, used),
            Selection::InlineFragment(inline) => collect(fragments, &inline.selection_set, used),
            Selection::FragmentSpread(spread) => {
                let name = spread.fragment_name.as_str();
                if let Some(fragment) = fragments.get(name)
                    && used.insert(name, fragment).is_none()
                {
                    collect(fragments, &fragment.selection_set, used);
                }
            }
        }
    }
}

/// Writes fields by name, then spreads by name, then inline fragments in their order.
fn write_set(set: &Set, text: &mut String) {
    if set.items.is_empty() {
        return;
    }
    let (mut fields, mut spreads, mut inlines) = (Vec::new(), Vec::new(), Vec::new());
    for selection in &set.items {
        match selection {
            Selection::Field(field) => fields.push(field),
            Selection::FragmentSpread(spread) => spreads.push(spread),
            Selection::InlineFragment(inline) => inlines.push(inline),
        }
    }
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    spreads.sort_by(|a, b| a.fragment_name.cmp(&b.fragment_name));
    text.push('{');
    for (position, field) in fields.iter().enumerate() {
        if position > 0 && ends_in_word(text) {
            text.push(' ');
        }
        write_field(field, text);
    }
    for spread in spreads {
        text.push_str("...");
        text.push_str(&spread.fragment_name);
        write_directives(&spread.directives, true, text);
    }
    for inline in inlines {
        text.push_str("...");
        if let Some(TypeCondition::On(of)) = &inline.type_condition {
            let _ = write!(text, "on {of}");
        }
        write_directives(&inline.directives, true, text);
        write_set(&inline.selection_set, text);
    }
    text.push('}');
}

fn write_field(field: &Field<'static, String>, text: &mut String) {
    text.push_str(&field.name);
    if !field.arguments.is_empty() {
        let arguments = by_name(&field.arguments);
        // The line of graphql-js has a pair of parentheses, a space after each colon, and a comma and a space
        // between arguments.
        let lengths = arguments.iter().map(|it| it.len() + 1).sum::<usize>();
        let line = field.name.len() + 2 + lengths + (arguments.len() - 1) * 2;
        text.push('(');
        for (position, argument) in arguments.iter().enumerate() {
            if position > 0 && line <= LINE_MAX {
                text.push(',');
            } else if position > 0 && ends_in_word(text) {
                text.push(' ');
            }
            text.push_str(argument);
        }
        text.push(')');
    }
    write_directives(&field.directives, false, text);
    write_set(&field.selection_set, text);
}

fn write_variables(variables: &[VariableDefinition<'static, String>], text: &mut String) {
    if variables.is_empty() {
        return;
    }
    let mut variables: Vec<_> = variables.iter().collect();
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    text.push('(');
    for (position, variable) in variables.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        let _ = write!(text, "${}:{}", variable.name, variable.var_type);
        if let Some(default) = &variable.default_value {
            text.push('=');
            write_value(default, text);
        }
    }
    text.push(')');
}

/// Writes directives. The directives of fragments are in the order of their names.
fn write_directives(directives: &[Directive<'static, String>], is_sorted: bool, text: &mut String) {
    let mut directives: Vec<_> = directives.iter().collect();
    if is_sorted {
        directives.sort_by(|a, b| a.name.cmp(&b.name));
    }
    for directive in directives {
        text.push('@');
        text.push_str(&directive.name);
        if !directive.arguments.is_empty() {
            let arguments = by_name(&directive.arguments);
            let _ = write!(text, "({})", arguments.join(","));
        }
    }
}

/// The texts of arguments, in the order of their names.
fn by_name(arguments: &Arguments) -> Vec<String> {
    let mut arguments: Vec<_> = arguments.iter().collect();
    arguments.sort_by(|(a, _), (b, _)| a.cmp(b));
    let texts = arguments.into_iter().map(|(name, value)| {
        let mut text = format!("{name}:");
        write_value(value, &mut text);
        text
    });
    texts.collect()
}

/// Writes a value. The content of numbers, strings, lists and objects is left out.
fn write_value(value: &Value<'static, String>, text: &mut String) {
    match value {
        Value::Variable(name) => {
            text.push('$');
            text.push_str(name);
        }
        Value::Int(_) | Value::Float(_) => text.push('0'),
        Value::String(_) => text.push_str("\"\""),
        Value::Boolean(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Null => text.push_str("null"),
        Value::Enum(name) => text.push_str(name),
        Value::List(_) => text.push_str("[]"),
        Value::Object(_) => text.push_str("{}"),
    }
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|last: char| last.is_alphanumeric() || last == '_')
}

#[cfg(test)]
mod tests {
    use graphql_tools::parser::query::Definition;

    use super::*;
    use crate::limits::fragments;

    fn signature_of(query: &str) -> String {
        let document = graphql_tools::parser::parse_query::<String>(query)
            .expect("a query")
            .into_static();
        let operation = document.definitions.iter().find_map(|it| match it {
            Definition::Operation(operation) => Some(operation),
            Definition::Fragment(_) => None,
        });
        let operation = operation.expect("an operation");
        let kind = match operation {
            OperationDefinition::Mutation(_) => OperationKind::Mutation,
            OperationDefinition::Subscription(_) => OperationKind::Subscription,
            _ => OperationKind::Query,
        };
        signature(&fragments(&document), operation, kind)
    }

    /// The expected texts are the signatures of Apollo Router for queries of this shape.
    #[test]
    fn signatures_have_the_form_of_usage_reports() {
        let cases = [
            ("{ b a }", "# -\n{a b}"),
            ("query { a: b(x: 1) { c } }", "# -\n{b(x:0){c}}"),
            (
                "query Q($b: [Int!]! = [1], $a: E = ONE) @d(y: 2, x: \"t\") @c { a(b: $b, a: $a) }",
                "# Q\nquery Q($a:E=ONE,$b:[Int!]!=[])@d(x:\"\",y:0)@c{a(a:$a,b:$b)}",
            ),
            (
                "mutation { set(in: {a: 1}, l: [1], n: null, f: -1.5, b: true) { _id a_ b } }",
                "# -\nmutation{set(b:true,f:0,in:{},l:[],n:null){_id a_ b}}",
            ),
            (
                "fragment B on T { x ...A } fragment A on T { y } fragment Unused on T { z }
                 query N { t { ...B @z @a ...A ... on U { u } ... @include(if: true) { v } w } }",
                "# N\nfragment A on T{y}fragment B on T{x...A}query N{t{w...A...B@a@z...on U{u}...@include(if:true){v}}}",
            ),
            // A line of more than 80 bytes has spaces only where a word ends.
            (
                "query T { scalarInputQuery(idInput: \"a1\", listInput: [1], boolInput: true, intInput: 1, stringInput: \"x\", floatInput: 1.2) { a } }",
                "# T\nquery T{scalarInputQuery(boolInput:true floatInput:0 idInput:\"\"intInput:0 listInput:[]stringInput:\"\"){a}}",
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(signature_of(query), expected);
        }
    }

    #[test]
    fn operations_that_differ_in_literals_and_order_have_one_signature() {
        let one = "query Q { b(n: 1, m: \"x\") one: a }";
        let other = "query Q {\n  two: a, b(m: \"yz\", n: 22)\n} fragment F on T { c }";
        assert_eq!(signature_of(one), signature_of(other));
        assert_ne!(signature_of(one), signature_of("query Q { a }"));
    }
}
