//! Directives that ask for more than this gateway does: where the answer is right without, they
//! are ignored; where it would be wrong, the supergraph is refused.

use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value, parse_schema};

/// What clients may write, and what is ignored: an answer in one piece is an answer to a query
/// with `@defer`, too.
const DEFER: &str = "directive @defer(if: Boolean! = true, label: String) \
    on FRAGMENT_SPREAD | INLINE_FRAGMENT";

/// The client's schema with `@defer`, so that validation knows it and its arguments.
pub(crate) fn with_defer(client: &Document<'static, String>) -> Document<'static, String> {
    let mut client = client.clone();
    let is_defined = client.definitions.iter().any(
        |it| matches!(it, Definition::DirectiveDefinition(directive) if directive.name == "defer"),
    );
    if !is_defined {
        let defer = parse_schema::<String>(DEFER).expect("the text above is a definition");
        client.definitions.extend(defer.into_static().definitions);
    }
    client
}

/// The field that takes an argument from a context (`@fromContext`), if there is one.
///
/// Composition takes such arguments out of the client's schema, and the planner (2.10) knows
/// nothing of them, so the subgraph would never see one.
pub(crate) fn argument_from_context(document: &Document<'static, String>) -> Option<String> {
    document.definitions.iter().find_map(|definition| {
        let (name, fields) = match definition {
            Definition::TypeDefinition(TypeDefinition::Object(it)) => (&it.name, &it.fields),
            Definition::TypeDefinition(TypeDefinition::Interface(it)) => (&it.name, &it.fields),
            _ => return None,
        };
        let mut fields = fields.iter();
        let found = fields.find(|field| {
            let mut arguments = field
                .directives
                .iter()
                .filter(|it| it.name == "join__field")
                .flat_map(|it| &it.arguments);
            arguments.any(|(name, value)| {
                let is_empty = matches!(value, Value::List(list) if list.is_empty());
                name == "contextArguments" && !is_empty && *value != Value::Null
            })
        })?;
        Some(format!("{name}.{}", found.name))
    })
}
