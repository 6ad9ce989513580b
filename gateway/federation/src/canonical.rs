//! The canonical form of a document. Two documents with equal meaning are equal in this form.

use std::collections::HashSet;

use graphql_tools::parser::parse_query_with_token_limit;
use graphql_tools::parser::query::{Definition, Selection};

use crate::limits::{QueryDocument, Set, selection_set};

/// A document without ignored tokens such as spaces and comments. Its definitions are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// The text of the sorted definitions.
    pub text: String,
    /// True if all operations select only `__schema`, `__type` and `__typename`.
    pub is_introspection: bool,
}

/// Returns the canonical form of a document of at most `tokens_max` tokens. `None` if the parser refuses the
/// document.
#[must_use]
pub fn canonical(query: &str, tokens_max: usize) -> Option<Canonical> {
    let document = parse_query_with_token_limit::<String>(query, tokens_max).ok()?;
    let document = document.into_static();
    let mut definitions: Vec<String> = document
        .definitions
        .iter()
        .map(|definition| definition.to_string())
        .collect();
    definitions.sort_unstable();
    Some(Canonical {
        text: definitions.concat(),
        is_introspection: is_introspection(&document),
    })
}

fn is_introspection(document: &QueryDocument) -> bool {
    let mut seen = HashSet::new();
    let mut operations = document.definitions.iter().filter_map(|it| match it {
        Definition::Operation(operation) => Some(selection_set(operation)),
        Definition::Fragment(_) => None,
    });
    operations.all(|set| asks_for_schema(document, set, &mut seen))
}

/// True if all fields of the root are introspection fields. Reads each fragment once.
fn asks_for_schema<'a>(
    document: &'a QueryDocument,
    set: &'a Set,
    seen: &mut HashSet<&'a str>,
) -> bool {
    set.items.iter().all(|selection| match selection {
        Selection::Field(field) => {
            matches!(field.name.as_str(), "__schema" | "__type" | "__typename")
        }
        Selection::InlineFragment(inline) => asks_for_schema(document, &inline.selection_set, seen),
        Selection::FragmentSpread(spread) => {
            let name = spread.fragment_name.as_str();
            if !seen.insert(name) {
                return true;
            }
            let fragment = document.definitions.iter().find_map(|it| match it {
                Definition::Fragment(fragment) if fragment.name == name => Some(fragment),
                _ => None,
            });
            fragment.is_some_and(|it| asks_for_schema(document, &it.selection_set, seen))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_ignores_and_the_order_of_definitions_make_no_difference() {
        let one = canonical("query A { a ...F } fragment F on T { b }", 100).unwrap();
        let two = "# note\nfragment F on T{b},,query A{a,...F}";
        assert_eq!(canonical(two, 100).unwrap(), one);
        for other in [
            "query B { a ...F } fragment F on T { b }",
            "query A { ...F a } fragment F on T { b }",
            "query A { x: a ...F } fragment F on T { b }",
            "query A { a ...F } fragment F on T { b(c: 1) }",
        ] {
            assert_ne!(canonical(other, 100).unwrap(), one, "{other}");
        }
    }

    #[test]
    fn a_text_with_other_values_is_another() {
        let text = |query| canonical(query, 100).unwrap().text;
        assert_ne!(text("{ a(b: \"1\") }"), text("{ a(b: \"2\") }"));
        assert_ne!(text("{ a(b: \"x\") }"), text("{ a(b: x) }"));
        assert_ne!(text("{ a @skip(if: true) }"), text("{ a }"));
    }

    #[test]
    fn introspection_is_told_from_operations_that_ask_for_more() {
        let is = |query| canonical(query, 200).unwrap().is_introspection;
        assert!(is("{ __schema { types { name } } __typename }"));
        assert!(is(
            "{ ...F } fragment F on Query { __type(name: \"A\") { name } ...F }"
        ));
        assert!(!is("{ __typename a }"));
        assert!(!is("{ ...F } fragment F on Query { __typename ... { a } }"));
        assert!(!is("query A { __typename } query B { a }"));
        assert!(!is("{ ...Missing }"));
    }

    #[test]
    fn a_text_that_is_too_long_has_none() {
        assert_eq!(canonical("{ a b c d }", 3), None);
        assert_eq!(canonical("{ a", 100), None);
    }
}
