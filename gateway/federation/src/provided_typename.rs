//! `__typename` in `provides`, which the planner's graph does not know.
//!
//! Every object has a `__typename`, so a field set means the same without it.

use graphql_tools::parser::schema::{
    Definition, Directive, Document, Field, TypeDefinition, Value,
};

use crate::tokens::Tokens;

/// Removes `__typename` from the `provides` of all fields.
pub(crate) fn remove(document: &mut Document<'static, String>) {
    for definition in &mut document.definitions {
        let fields: &mut [Field<'static, String>] = match definition {
            Definition::TypeDefinition(TypeDefinition::Object(it)) => &mut it.fields,
            Definition::TypeDefinition(TypeDefinition::Interface(it)) => &mut it.fields,
            _ => continue,
        };
        for field in fields {
            field.directives.iter_mut().for_each(remove_from);
        }
    }
}

fn remove_from(directive: &mut Directive<'static, String>) {
    if directive.name != "join__field" {
        return;
    }
    directive.arguments.retain_mut(|(name, value)| {
        let Value::String(text) = value else {
            return true;
        };
        if name != "provides" || !text.contains("__typename") {
            return true;
        }
        *text = without_typename(text);
        !text.is_empty()
    });
}

/// The field set without `__typename`, and without fields that select nothing else.
fn without_typename(set: &str) -> String {
    // One list of selections for each open brace.
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut is_spread = false;
    for token in Tokens::of(set) {
        match token {
            "{" => open.push(Vec::new()),
            "}" if open.len() > 1 => {
                let inner = open.pop().unwrap_or_default();
                let owner = open.last_mut().and_then(Vec::pop).unwrap_or_default();
                if let (Some(outer), false) = (open.last_mut(), inner.is_empty()) {
                    outer.push(format!("{owner} {{ {} }}", inner.join(" ")));
                }
            }
            "__typename" => {}
            // `... on T` is three dots and two words.
            "." => is_spread = true,
            word => {
                let Some(selections) = open.last_mut() else {
                    continue;
                };
                match selections.last_mut() {
                    Some(spread) if spread == "... on" => {
                        spread.push(' ');
                        spread.push_str(word);
                    }
                    _ if is_spread && word == "on" => selections.push("... on".to_owned()),
                    _ => selections.push(word.to_owned()),
                }
                is_spread = false;
            }
        }
    }
    open.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::without_typename;

    #[test]
    fn only_the_name_of_the_type_is_left_out() {
        for (set, expected) in [
            ("__typename", ""),
            ("name __typename", "name"),
            ("a { __typename } b", "b"),
            ("a { __typename c } b", "a { c } b"),
            (
                "x { ... on T { __typename } ... on U { n { __typename, m } } }",
                "x { ... on U { n { m } } }",
            ),
            ("on { a }", "on { a }"),
        ] {
            assert_eq!(without_typename(set), expected, "{set}");
        }
    }
}
