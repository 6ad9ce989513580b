//! From a text to a [`Prepared`] operation: parse, measure, validate, choose, plan, compile.
//!
//! Cheap refusals come first. What is heavy runs only on documents whose size with all
//! fragments spread is known to be bounded, and planning itself has a deadline (see `effort`).

use std::collections::HashMap;
use std::sync::Arc;

use graphql_tools::parser::parse_query_with_token_limit;
use graphql_tools::parser::query::{Definition, OperationDefinition, Value as Literal};
use graphql_tools::validation::rules::{NoFragmentsCycle, default_rules_validation_plan};
use graphql_tools::validation::utils::ValidationError;
use graphql_tools::validation::validate::{ValidationPlan, validate};

use crate::access_rules::Grants;
use crate::authorization::Cut;
use crate::checked::Checked;
use crate::cost::Compiler;
use crate::effort::{Effort, Work};
use crate::error::{GraphqlError, one_line};
use crate::fetch::OperationKind;
use crate::introspection;
use crate::large_stack;
use crate::limits::{
    Extent, Limits, QueryDocument, TooMuch, check_variables, exceeded, measure, selection_set,
};
use crate::options::OperationOptions;
use crate::override_labels::Overrides;
use crate::planning::Planning;
use crate::prepared::{Prepared, Shown};
use crate::projection::{self, Fragments, Projection};
use crate::refusal::Refusal;
use crate::schema::Schema;
use crate::supergraph::Supergraph;
use crate::variables::Declared;

/// Validation errors that are told at most.
const ERRORS_MAX: usize = 50;

/// Code of the refusal of a subscription where none are served.
pub const SUBSCRIPTION_DISABLED: &str = "SUBSCRIPTION_DISABLED";

/// An operation that a request asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The text of the document.
    pub query: &'a str,
    /// The name of one of its operations.
    pub operation_name: Option<&'a str>,
    /// The labels that the request drew; read only when the supergraph has labels.
    pub overrides: &'a Overrides,
    /// What the request may see; everything without it. From [`Prepared::grants`] of the operation
    /// for requests that may.
    pub grants: Option<&'a Grants>,
}

/// Does the whole work for one text.
pub(crate) fn prepare(
    supergraph: &Arc<Supergraph>,
    asked: &Asked<'_>,
    options: &OperationOptions,
    effort: &Effort,
) -> Result<Prepared, Refusal> {
    large_stack::run(|| {
        let work = effort.start();
        check(
            &supergraph.schema,
            options,
            (asked.query, asked.operation_name),
            &work,
            |mut checked, document, chosen| {
                let cut = Cut::new(
                    supergraph,
                    options.authorization,
                    (document, chosen),
                    &checked,
                );
                let unauthorized = cut.apply(asked.grants, &mut checked)?;
                let document = unauthorized.asked.as_ref().unwrap_or(document);
                let planning = Planning {
                    supergraph,
                    overrides: asked.overrides,
                    work: &work,
                    groups: (options.defer && checked.projection.groups.len() > 0)
                        .then_some(&checked.projection.groups),
                };
                let planned = planning.plan(document, chosen, &checked.declared)?;
                let compiler = Compiler {
                    schema: &supergraph.schema,
                    costs: &supergraph.costs,
                    document,
                    declared: &checked.declared,
                    list_size: f64::from(options.demand_list_size.unwrap_or_default()),
                };
                let cost = options.demand_list_size.map(|_| {
                    let set = selection_set(chosen.operation);
                    compiler.formula(chosen.kind, set)
                });
                let labelled = supergraph.labelled.as_ref();
                let labels = labelled.map(|it| it.relevant(document));
                Ok(Prepared {
                    supergraph: Arc::clone(supergraph),
                    checked,
                    plan: planned.plan,
                    deferral: planned.deferral.map(Box::new),
                    demands: cut.demands,
                    unauthorized: unauthorized.told,
                    labels: Arc::new(labels.unwrap_or_default()),
                    bounds: options.bounds,
                    cost,
                    shown: Shown::default(),
                })
            },
        )
    })
    .unwrap_or_else(|_| Err(Refusal::internal("the operation could not be planned")))
}

struct Checking<'a> {
    schema: &'a Arc<Schema>,
    options: &'a OperationOptions,
}

/// The operation to execute, taken out of its document.
pub(crate) struct Chosen<'a> {
    pub(crate) operation: &'a OperationDefinition<'static, String>,
    pub(crate) kind: OperationKind,
    pub(crate) name: Option<&'a str>,
    extent: Extent,
}

/// Everything that does not depend on where fields come from.
pub(crate) fn check<T>(
    schema: &Arc<Schema>,
    options: &OperationOptions,
    (query, operation_name): (&str, Option<&str>),
    work: &Work<'_>,
    next: impl FnOnce(Checked, &QueryDocument, &Chosen<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let checking = Checking { schema, options };
    let document = parse(query, &options.limits)?;
    // Before validation, some of whose rules compare all pairs of fields or expand fragments.
    check_variables(query, &document).map_err(|excess| Refusal::from_error(excess.error()))?;
    let extents = checking.measure(&document)?;
    let selections = extents.iter().map(|it| it.selections);
    work.admit(selections.fold(0, u64::saturating_add))?;
    checking.validate(&document)?;
    work.go_on()?;
    // After validation: an invalid document is told as such, even when the name is wrong, too.
    let chosen = choose(&document, &extents, operation_name)?;
    checking.check_kind(chosen.kind)?;
    let over = exceeded(&chosen.extent, &options.limits);
    if !over.is_empty() && !options.limits.warn_only {
        return Err(Refusal::from_errors(over));
    }
    let declared = declared(chosen.operation);
    let projection = checking.project(&document, &chosen, &declared)?;
    checking.check_introspection(&projection)?;
    work.go_on()?;
    let checked = Checked {
        schema: Arc::clone(schema),
        kind: chosen.kind,
        operation_name: chosen.name.map(str::to_owned),
        declared,
        projection,
        exceeded: over,
    };
    next(checked, &document, &chosen)
}

impl Checking<'_> {
    fn measure(&self, document: &QueryDocument) -> Result<Vec<Extent>, Refusal> {
        measure(document, &self.options.limits).map_err(|excess| {
            if excess == TooMuch::Cycle {
                // This rule words the error as clients know it and is safe on a cyclic document;
                // others may not end on one.
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
        document: &QueryDocument,
        chosen: &Chosen<'_>,
        declared: &[Declared],
    ) -> Result<Projection, Refusal> {
        let fragments: Fragments<'_> = document
            .definitions
            .iter()
            .filter_map(|definition| match definition {
                Definition::Fragment(it) => Some((it.name.as_str(), it)),
                Definition::Operation(_) => None,
            })
            .collect::<HashMap<_, _>>();
        let schema = self.schema;
        let root_type = schema.root(chosen.kind);
        let set = selection_set(chosen.operation);
        projection::compile(schema, &fragments, declared, root_type, set)
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
        if self.options.introspection_max_depth && introspection::nests_too_deep(projection) {
            return Err(Refusal::invalid("Maximum introspection depth exceeded"));
        }
        Ok(())
    }
}

fn parse(query: &str, limits: &Limits) -> Result<QueryDocument, Refusal> {
    let parsed = parse_query_with_token_limit::<String>(query, limits.parser_max_tokens);
    parsed
        .map(|document| document.into_static())
        .map_err(|error| {
            let place = error.0.position;
            let text = one_line(&error.to_string());
            // The parser repeats the position in its message; clients get it in `locations`.
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
    // A small document can be wrong in thousands of places, and refusals are kept in the cache.
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
    // No operation can have an empty name, so an empty `operationName` can only mean that none is
    // given.
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
