//! The kind and the name of a requested operation, read without parsing the document.
//!
//! A scan takes less than a microsecond and needs no stack. It is looser than the grammar. An invalid document
//! is refused when it is planned.

use crate::fetch::OperationKind;
use crate::tokens::{Tokens, is_name};

/// The kind and the name of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationHead<'a> {
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The name. `None` for an anonymous operation.
    pub name: Option<&'a str>,
}

impl<'a> OperationHead<'a> {
    /// Finds the operation with this name. Without a name, finds the only operation. `None` if the document has
    /// no such operation, or is not valid.
    #[must_use]
    pub fn find(text: &'a str, requested: Option<&str>) -> Option<OperationHead<'a>> {
        let mut heads = Heads(Tokens::of(text));
        // An empty name counts as no name.
        match requested.filter(|name| !name.is_empty()) {
            Some(name) => heads.find(|head| head.name == Some(name)),
            None => {
                let only = heads.next()?;
                heads.next().is_none().then_some(only)
            }
        }
    }
}

/// The heads of all operations of a document.
struct Heads<'a>(Tokens<'a>);

impl<'a> Iterator for Heads<'a> {
    type Item = OperationHead<'a>;

    fn next(&mut self) -> Option<OperationHead<'a>> {
        let tokens = &mut self.0;
        loop {
            let kind = match tokens.next()? {
                "{" => {
                    tokens.skip_group();
                    let kind = OperationKind::Query;
                    return Some(OperationHead { kind, name: None });
                }
                "query" => OperationKind::Query,
                "mutation" => OperationKind::Mutation,
                "subscription" => OperationKind::Subscription,
                "fragment" => {
                    tokens.skip_definition();
                    continue;
                }
                // A description of the next definition.
                text if text.starts_with('"') => continue,
                // An invalid document.
                _ => return None,
            };
            let name = tokens.peek().filter(|token| is_name(token));
            if name.is_some() {
                tokens.next();
            }
            tokens.skip_definition();
            return Some(OperationHead { kind, name });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, name: Option<&str>) -> Option<(&'static str, Option<String>)> {
        OperationHead::find(text, name)
            .map(|head| (head.kind.as_str(), head.name.map(str::to_owned)))
    }

    fn found(kind: &'static str, name: &str) -> Option<(&'static str, Option<String>)> {
        Some((kind, (!name.is_empty()).then(|| name.to_owned())))
    }

    #[test]
    fn the_only_operation_needs_no_name() {
        for (text, wanted) in [
            ("{a}", found("query", "")),
            ("query{a}", found("query", "")),
            ("query Q{a}", found("query", "Q")),
            (
                "\u{feff}# mutation M\n  query\n Q ($i: I = {a: \"}\"}) @d(a: {b: 1}) {a}",
                found("query", "Q"),
            ),
            ("mutation M{drop(id:1)}", found("mutation", "M")),
            ("mutation{drop}", found("mutation", "")),
            ("mutation @d {drop}", found("mutation", "")),
            ("mutation ($i: Int) {drop}", found("mutation", "")),
            ("subscription S{a}", found("subscription", "S")),
            (
                "fragment F on query {a} mutation M{b}",
                found("mutation", "M"),
            ),
            (
                "fragment mutation on T {a} query query{b}",
                found("query", "query"),
            ),
            ("{a(s: \"\\\"} mutation M {\")}", found("query", "")),
            (
                "{a(s: \"\"\"\\\"\"\"} mutation M {\"\"\")} fragment F on T {a}",
                found("query", ""),
            ),
            ("{a(s: \"\\\\\")} fragment F on T {a}", found("query", "")),
            ("{mutation {query subscription}}", found("query", "")),
            ("\"reads {\" query Q {a}", found("query", "Q")),
            ("\"\"\"writes\"\"\" mutation M {a}", found("mutation", "M")),
            ("type T {a: Int} {a}", None),
        ] {
            assert_eq!(head(text, None), wanted, "{text}");
            assert_eq!(head(text, Some("")), wanted, "{text}");
        }
    }

    #[test]
    fn a_name_chooses_one_of_several_operations() {
        let text = "query A{a} mutation B{b} subscription C{c}";
        assert_eq!(head(text, Some("A")), found("query", "A"));
        assert_eq!(head(text, Some("B")), found("mutation", "B"));
        assert_eq!(head(text, Some("C")), found("subscription", "C"));
        assert_eq!(head(text, Some("D")), None);
        assert_eq!(head(text, None), None);
        assert_eq!(head("{a}", Some("A")), None);
    }

    #[test]
    fn no_text_makes_it_panic_or_loop() {
        for text in [
            "",
            " ",
            "}",
            "{",
            "(",
            "\"",
            "\"\"\"",
            "\"\\",
            "query",
            "query Q",
            "query Q(",
            "#",
            "é{é}",
            "\u{feff}",
            "mutation \"M\" {a}",
            "...",
            "{a(s: \"é\\é\")}",
        ] {
            let _any = OperationHead::find(text, None);
            let _any = OperationHead::find(text, Some("Q"));
        }
    }
}
