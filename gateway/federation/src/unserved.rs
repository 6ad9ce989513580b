//! Directives for features that this gateway lacks. It ignores a directive if the response is still correct.
//! Otherwise it refuses the supergraph.

use std::borrow::Cow;

use graphql_tools::parser::query::{self, OperationDefinition, Selection};
use graphql_tools::parser::schema::{Definition, Document, Value, parse_schema};

use crate::limits::{QueryDocument, Set, selection_set};
use crate::sdl;

/// A directive that clients may write and that can be ignored. A response in one piece is a valid response to
/// a query with `@defer`.
const DEFER: &str = "directive @defer(if: Boolean! = true, label: String) \
    on FRAGMENT_SPREAD | INLINE_FRAGMENT";

/// The client's schema with `@defer`, so that validation accepts it and its arguments.
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

/// A document without `@defer`. The planner would treat a fragment with this directive as conditional, and
/// lose a field without other selections.
pub(crate) fn without_defer(document: &QueryDocument) -> Cow<'_, QueryDocument> {
    let mut sets = document
        .definitions
        .iter()
        .map(|definition| match definition {
            query::Definition::Operation(operation) => selection_set(operation),
            query::Definition::Fragment(fragment) => &fragment.selection_set,
        });
    if !sets.any(has_defer) {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    for definition in &mut document.definitions {
        drop_defer(match definition {
            query::Definition::Fragment(fragment) => &mut fragment.selection_set,
            query::Definition::Operation(operation) => match operation {
                OperationDefinition::SelectionSet(set) => set,
                OperationDefinition::Query(it) => &mut it.selection_set,
                OperationDefinition::Mutation(it) => &mut it.selection_set,
                OperationDefinition::Subscription(it) => &mut it.selection_set,
            },
        });
    }
    Cow::Owned(document)
}

/// True if a fragment in a selection is deferred.
pub(crate) fn has_defer(set: &Set) -> bool {
    set.items.iter().any(|item| match item {
        Selection::Field(field) => has_defer(&field.selection_set),
        Selection::InlineFragment(inline) => {
            inline.directives.iter().any(|it| it.name == "defer")
                || has_defer(&inline.selection_set)
        }
        Selection::FragmentSpread(spread) => spread.directives.iter().any(|it| it.name == "defer"),
    })
}

fn drop_defer(set: &mut Set) {
    for item in &mut set.items {
        match item {
            Selection::Field(field) => drop_defer(&mut field.selection_set),
            Selection::InlineFragment(inline) => {
                inline.directives.retain(|it| it.name != "defer");
                drop_defer(&mut inline.selection_set);
            }
            Selection::FragmentSpread(spread) => spread.directives.retain(|it| it.name != "defer"),
        }
    }
}

/// The field with an argument from a context (`@fromContext`), if there is one.
///
/// Composition removes such arguments from the client's schema, and the planner (2.10) does not support them.
/// So the subgraph would never receive one.
pub(crate) fn argument_from_context(document: &Document<'static, String>) -> Option<String> {
    document.definitions.iter().find_map(|definition| {
        let composite = sdl::composite(definition)?;
        let found = composite.fields.iter().find(|field| {
            let mut joins = field
                .directives
                .iter()
                .filter(|it| it.name == "join__field");
            joins.any(|join| match sdl::argument(join, "contextArguments") {
                None | Some(Value::Null) => false,
                Some(Value::List(list)) => !list.is_empty(),
                Some(_) => true,
            })
        })?;
        Some(format!("{}.{}", composite.name, found.name))
    })
}
