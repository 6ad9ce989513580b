//! Turns a text into a [`Prepared`] operation: check, authorize, plan, compile.
//!
//! Planning has a deadline (see `effort`) and receives only operations that passed the checks.

use std::sync::Arc;

use crate::access_rules::Grants;
use crate::authorization::Cut;
use crate::check::check;
use crate::cost::Compiler;
use crate::effort::Effort;
use crate::large_stack;
use crate::limits::selection_set;
use crate::options::OperationOptions;
use crate::override_labels::Overrides;
use crate::planning::Planning;
use crate::prepared::{Prepared, Shown};
use crate::refusal::Refusal;
use crate::reserved_alias;
use crate::supergraph::Supergraph;

/// The operation of a request.
#[derive(Debug, Clone, Copy)]
pub struct OperationRequest<'a> {
    /// The text of the document.
    pub query: &'a str,
    /// The name of one of its operations.
    pub operation_name: Option<&'a str>,
    /// The active labels of the request. They matter only if the supergraph has labels.
    pub overrides: &'a Overrides,
    /// The demands that the request meets, from [`Prepared::grants`] of the operation. `None` if the
    /// request may see everything.
    pub grants: Option<&'a Grants>,
}

/// Prepares the operation of one text.
pub(crate) fn prepare(
    supergraph: &Arc<Supergraph>,
    requested: &OperationRequest<'_>,
    options: &OperationOptions,
    effort: &Effort,
) -> Result<Prepared, Refusal> {
    large_stack::run(|| {
        let work = effort.start();
        check(
            &supergraph.schema,
            options,
            requested.query,
            requested.operation_name,
            &work,
            |mut checked, document, chosen| {
                if let Some(error) = reserved_alias::error(document) {
                    return Err(Refusal::from_error(error));
                }
                let cut = Cut::new(
                    supergraph,
                    options.authorization,
                    document,
                    chosen,
                    &checked,
                );
                let authorized = cut.apply(requested.grants, &mut checked)?;
                let document = authorized.asked.as_ref().unwrap_or(document);
                let planning = Planning {
                    supergraph,
                    overrides: requested.overrides,
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
                    unauthorized: authorized.unauthorized,
                    labels: Arc::new(labels.unwrap_or_default()),
                    bounds: options.bounds,
                    value_errors: options.value_errors,
                    cost,
                    shown: Shown::default(),
                })
            },
        )
    })
    .unwrap_or_else(|_| {
        let reason = "the thread that planned the operation panicked";
        Err(Refusal::unplanned(reason.to_owned()))
    })
}
