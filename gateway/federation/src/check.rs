//! Turns a text into a [`Checked`] operation: parse, measure, validate, choose, project.
//!
//! Cheap checks come first. Heavy work runs only on documents of bounded size, measured with all fragments
//! expanded.

mod introspection_depth;

use std::sync::Arc;

use graphql_tools::parser::parse_query_with_token_limit;
use graphql_tools::parser::query::{Definition, OperationDefinition, Value as Literal};
use graphql_tools::validation::rules::{NoFragmentsCycle, default_rules_validation_plan};
use graphql_tools::validation::utils::ValidationError;
use graphql_tools::validation::validate::{ValidationPlan, validate};

use crate::checked::Checked;
use crate::effort::{Effort, Work};
use crate::error::{GraphqlError, one_line};
use crate::fetch::OperationKind;
use crate::large_stack;
use crate::limits::{
    Extent, Fragments, OperationLimits, QueryDocument, TooMuch, check_variables, exceeded,
    fragments, measure, selection_set,
};
use crate::numbers;
use crate::options::OperationOptions;
use crate::projection::Projection;
use crate::projection_compiler;
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::signature::operation_id;
use crate::variables::Declared;
use introspection_depth::nests_too_deep;

/// Maximum number of validation errors in a response.
const ERRORS_MAX: usize = 50;

/// Error code for a subscription if subscriptions are off.
pub const SUBSCRIPTION_DISABLED: &str = "SUBSCRIPTION_DISABLED";

/// Checks an operation and passes it to `next`, on a thread with enough stack for deep documents.
///
/// `next` receives the operation, its document and its definition on that thread.
///
/// # Errors
/// The errors for the client, if the text is not an executable operation or `next` refuses it.
pub fn check_operation<T: Send>(
    schema: &Arc<Schema>,
    query: &str,
    operation_name: Option<&str>,
    options: &OperationOptions,
    effort: &Effort,
    next: impl FnOnce(
        Checked,
        &QueryDocument,
        &OperationDefinition<'static, String>,
    ) -> Result<T, Refusal>
    + Send,
) -> Result<T, Refusal> {
    large_stack::run(|| {
        check(
            schema,
            options,
            query,
            operation_name,
            &effort.start(),
            |checked, document, chosen| next(checked, document, chosen.operation),
        )
    })
    .unwrap_or_else(|_| Err(Refusal::internal("the operation could not be checked")))
}

struct Checking<'a> {
    schema: &'a Arc<Schema>,
    options: &'a OperationOptions,
}

/// The operation to execute, with its kind, name and measured size.
pub(crate) struct Chosen<'a> {
    pub(crate) operation: &'a OperationDefinition<'static, String>,
    pub(crate) kind: OperationKind,
    pub(crate) name: Option<&'a str>,
    extent: Extent,
}

/// Runs all checks that do not depend on the sources of fields.
pub(crate) fn check<T>(
    schema: &Arc<Schema>,
    options: &OperationOptions,
    query: &str,
    operation_name: Option<&str>,
    work: &Work<'_>,
    next: impl FnOnce(Checked, &QueryDocument, &Chosen<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let checking = Checking { schema, options };
    let parsed = parse(query, &options.limits);
    // Before the parser's own error, which does not name an integer beyond 64 bits.
    if let Some(error) = numbers::changed(query) {
        return Err(Refusal::from_error(error));
    }
    let document = parsed?;
    // Before validation, because some of its rules compare all pairs of fields or expand fragments.
    check_variables(query, &document).map_err(|excess| Refusal::from_error(excess.error()))?;
    let extents = checking.measure(&document)?;
    let selections = extents.iter().map(|it| it.selections);
    work.admit(selections.fold(0, u64::saturating_add))?;
    checking.validate(&document)?;
    work.go_on()?;
    // After validation, so that the errors of an invalid document come before an unknown operation name.
    let chosen = choose(&document, &extents, operation_name)?;
    checking.check_kind(chosen.kind)?;
    let over = exceeded(&chosen.extent, &options.limits);
    if !over.is_empty() && !options.limits.warn_only {
        return Err(Refusal::from_errors(over));
    }
    let declared = declared(chosen.operation);
    let fragments = fragments(&document);
    let projection = checking.project(&fragments, &chosen, &declared)?;
    checking.check_introspection(&projection)?;
    work.go_on()?;
    let checked = Checked {
        schema: Arc::clone(schema),
        kind: chosen.kind,
        operation_name: chosen.name.map(str::to_owned),
        operation_id: operation_id(&fragments, chosen.operation, chosen.kind),
        declared,
        projection,
        extent: chosen.extent,
        exceeded: over,
    };
    next(checked, &document, &chosen)
}

impl Checking<'_> {
    fn measure(&self, document: &QueryDocument) -> Result<Vec<Extent>, Refusal> {
        measure(document, &self.options.limits).map_err(|excess| {
            if excess == TooMuch::Cycle {
                // This rule is safe on a cyclic document and has the error text that clients expect. Other
                // rules may not end on such a document.
                let rule = ValidationPlan::from(vec![Box::new(NoFragmentsCycle::new())]);
                let errors = validate(&self.schema.document, document, &rule);
                if !errors.is_empty() {
                    return invalid(errors);
                }
            }
            Refusal::from_error(excess.error())
        })
    }

    fn validate(&self, document: &QueryDocument) -> Result<(), Refusal> {
        let rules = default_rules_validation_plan();
        let errors = validate(&self.schema.document, document, &rules);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(invalid(errors))
        }
    }

    fn check_kind(&self, kind: OperationKind) -> Result<(), Refusal> {
        let schema = self.schema;
        match kind {
            OperationKind::Mutation if schema.mutation_root().is_none() => Err(Refusal::invalid(
                "The schema has no mutation type; only queries can be executed.",
            )),
            OperationKind::Subscription if !self.options.subscriptions => {
                Err(Refusal::from_error(GraphqlError::new(
                    "subscriptions are not enabled; only queries and mutations can be executed",
                    SUBSCRIPTION_DISABLED,
                )))
            }
            OperationKind::Subscription if schema.subscription_root().is_none() => {
                Err(Refusal::invalid(
                    "The schema has no subscription type; only queries and mutations can be executed.",
                ))
            }
            _ => Ok(()),
        }
    }

    fn project(
        &self,
        fragments: &Fragments<'_>,
        chosen: &Chosen<'_>,
        declared: &[Declared],
    ) -> Result<Projection, Refusal> {
        let schema = self.schema;
        let root_type = schema.root(chosen.kind);
        let set = selection_set(chosen.operation);
        projection_compiler::compile(schema, fragments, declared, root_type, set)
            .map_err(|excess| Refusal::from_error(excess.error()))
    }

    fn check_introspection(&self, projection: &Projection) -> Result<(), Refusal> {
        let root = projection.members.get(projection.root);
        let asks = root
            .into_iter()
            .flatten()
            .any(|member| member.introspection.is_some());
        if !asks {
            return Ok(());
        }
        if !self.options.introspection {
            let error =
                GraphqlError::new("introspection has been disabled", "INTROSPECTION_DISABLED");
            return Err(Refusal::from_error(error));
        }
        if self.options.introspection_max_depth && nests_too_deep(projection) {
            return Err(Refusal::invalid("Maximum introspection depth exceeded"));
        }
        Ok(())
    }
}

fn parse(query: &str, limits: &OperationLimits) -> Result<QueryDocument, Refusal> {
    let parsed = parse_query_with_token_limit::<String>(query, limits.parser_max_tokens);
    parsed
        .map(|document| document.into_static())
        .map_err(|error| {
            let place = error.0.position;
            let text = one_line(&error.to_string());
            // The parser repeats the position in its message. Clients receive it in `locations`.
            let reason = text
                .split_once(&format!("{}:{} ", place.line, place.column))
                .map_or(text.as_str(), |(_, reason)| reason);
            let message = format!("parsing error: {reason}");
            Refusal::from_error(
                GraphqlError::new(message, "PARSING_ERROR").at(place.line, place.column),
            )
        })
}

fn invalid(errors: Vec<ValidationError>) -> Refusal {
    // A small document can have thousands of errors, and the cache stores them.
    let errors = errors.into_iter().take(ERRORS_MAX).map(|error| {
        let converted = GraphqlError::new(error.message, "GRAPHQL_VALIDATION_FAILED");
        let places = error.locations.iter();
        places.fold(converted, |it, place| it.at(place.line, place.column))
    });
    Refusal::from_errors(errors.collect())
}

fn choose<'a>(
    document: &'a QueryDocument,
    extents: &[Extent],
    wanted: Option<&str>,
) -> Result<Chosen<'a>, Refusal> {
    let operations = document.definitions.iter().filter_map(|it| match it {
        Definition::Operation(operation) => Some(operation),
        Definition::Fragment(_) => None,
    });
    let mut candidates = operations.zip(extents).map(|(operation, extent)| {
        let (kind, name) = kind_and_name(operation);
        (operation, kind, name, *extent)
    });
    // An operation cannot have an empty name. So an empty `operationName` counts as absent.
    let found = match wanted.filter(|wanted| !wanted.is_empty()) {
        Some(wanted) => candidates
            .find(|(.., name, _)| *name == Some(wanted))
            .ok_or_else(|| {
                Refusal::from_error(GraphqlError::new(
                    format!("Unknown operation named \"{wanted}\""),
                    "GRAPHQL_UNKNOWN_OPERATION_NAME",
                ))
            })?,
        None => {
            let first = candidates
                .next()
                .ok_or_else(|| Refusal::invalid("Must provide an operation."))?;
            if candidates.next().is_some() {
                return Err(Refusal::invalid(
                    "Must provide operation name if query contains multiple operations.",
                ));
            }
            first
        }
    };
    let (operation, kind, name, extent) = found;
    Ok(Chosen {
        operation,
        kind,
        name,
        extent,
    })
}

type KindAndName<'a> = (OperationKind, Option<&'a str>);

fn kind_and_name<'a>(operation: &'a OperationDefinition<'static, String>) -> KindAndName<'a> {
    match operation {
        OperationDefinition::SelectionSet(_) => (OperationKind::Query, None),
        OperationDefinition::Query(it) => (OperationKind::Query, it.name.as_deref()),
        OperationDefinition::Mutation(it) => (OperationKind::Mutation, it.name.as_deref()),
        OperationDefinition::Subscription(it) => (OperationKind::Subscription, it.name.as_deref()),
    }
}

fn declared(operation: &OperationDefinition<'static, String>) -> Vec<Declared> {
    let definitions = match operation {
        OperationDefinition::SelectionSet(_) => &[][..],
        OperationDefinition::Query(it) => &it.variable_definitions,
        OperationDefinition::Mutation(it) => &it.variable_definitions,
        OperationDefinition::Subscription(it) => &it.variable_definitions,
    };
    definitions
        .iter()
        .map(|definition| Declared {
            name: definition.name.clone(),
            kind: definition.var_type.clone(),
            boolean_default: match &definition.default_value {
                Some(Literal::Boolean(flag)) => Some(*flag),
                _ => None,
            },
            default: definition.default_value.clone(),
        })
        .collect()
}
