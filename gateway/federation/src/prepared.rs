//! A prepared operation: everything that does not depend on the request's variables.

mod plan_json;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use crate::access_rules::{Demand, Demands, Grants};
use crate::authorization::Unauthorized;
use crate::bounds::ExecutionLimits;
use crate::checked::Checked;
use crate::cost::{Formula, NoEstimate, Request};
use crate::deferral::Deferral;
use crate::error::GraphqlError;
use crate::fetch::OperationKind;
use crate::limits::Extent;
use crate::override_labels::OverrideLabels;
use crate::plan::{Plan, Step};
use crate::supergraph::Supergraph;
use crate::variables::Variables;

/// An operation, parsed, validated and planned. Shared by all requests that send it.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) supergraph: Arc<Supergraph>,
    pub(crate) checked: Checked,
    pub(crate) plan: Plan,
    /// The plan for a response in parts. `None` if no fragment is deferred.
    pub(crate) deferral: Option<Box<Deferral>>,
    /// The demands that a request must meet to see the whole operation.
    pub(crate) demands: Demands,
    /// Errors about the unauthorized fields that were removed.
    pub(crate) unauthorized: Unauthorized,
    /// The labels that the plan depends on, in addition to the text.
    pub(crate) labels: Arc<OverrideLabels>,
    pub(crate) bounds: ExecutionLimits,
    /// True if values that the schema does not allow are errors.
    pub(crate) value_errors: bool,
    /// The cost formula. `None` if costs are not estimated.
    pub(crate) cost: Option<Formula>,
    pub(crate) shown: Shown,
}

/// The plan as a text for stages, written at its first use.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    text: OnceLock<Arc<str>>,
    json: OnceLock<Arc<str>>,
}

impl Prepared {
    /// The kind of the operation: query, mutation or subscription.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.checked.kind
    }

    /// The name of the chosen operation, if it has one.
    #[must_use]
    pub fn operation_name(&self) -> Option<&str> {
        self.checked.operation_name()
    }

    /// The SHA-1 digest of the operation's signature. See [`Checked::operation_id`].
    #[must_use]
    pub fn operation_id(&self) -> &str {
        self.checked.operation_id()
    }

    /// The measured size of the operation.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.checked.extent()
    }

    /// The limits that the operation exceeds, although it is accepted
    /// ([`OperationLimits::warn_only`](crate::OperationLimits::warn_only)).
    #[must_use]
    pub fn exceeded(&self) -> &[GraphqlError] {
        &self.checked.exceeded
    }

    /// The demands that a request must meet to see all selected fields. Empty for most operations.
    pub fn demanded(&self) -> impl Iterator<Item = Demand<'_>> {
        let rules = self.supergraph.rules.as_ref();
        rules
            .into_iter()
            .flat_map(|rules| rules.demanded(&self.demands))
    }

    /// The grants of a request. `None` if it meets every demand. Otherwise the caller must find or prepare
    /// the operation again with these grants.
    #[must_use]
    pub fn grants(&self, meets: impl FnMut(Demand<'_>) -> bool) -> Option<Grants> {
        // Operations without demands pay only for this comparison.
        if self.demands.is_empty() {
            return None;
        }
        self.supergraph.rules.as_ref()?.grants(&self.demands, meets)
    }

    /// Errors about unauthorized fields, for the log.
    #[must_use]
    pub fn unauthorized(&self) -> &[GraphqlError] {
        &self.unauthorized.errors
    }

    /// Maximum number of subgraph requests in the plan.
    #[must_use]
    pub fn fetch_count(&self) -> usize {
        self.plan.fetches.len()
    }

    /// Estimated cost of the operation with these variables. `None` if costs are not estimated
    /// ([`OperationOptions::demand_list_size`](crate::OperationOptions)).
    #[must_use]
    pub fn estimate(&self, variables: &Variables) -> Option<Result<f64, NoEstimate>> {
        let formula = self.cost.as_ref()?;
        Some(formula.estimate(&self.cost_request(variables)))
    }

    /// Actual cost of the response with this body. The inner `None` means that the body is not a GraphQL
    /// response.
    #[must_use]
    pub fn actual_cost(&self, variables: &Variables, body: &[u8]) -> Option<Option<f64>> {
        let formula = self.cost.as_ref()?;
        Some(formula.actual(&self.cost_request(variables), body))
    }

    fn cost_request<'a>(&'a self, variables: &'a Variables) -> Request<'a> {
        Request {
            schema: &self.supergraph.schema,
            costs: &self.supergraph.costs,
            declared: &self.checked.declared,
            variables,
        }
    }

    /// Checks the variables of a request.
    ///
    /// `raw` is the JSON text of the request's `variables`. `None` and `null` stand for no variables.
    ///
    /// # Errors
    /// `VALIDATION_INVALID_TYPE_VARIABLE` for each variable that does not fit its type,
    /// `INVALID_GRAPHQL_REQUEST` if `raw` is not an object.
    pub fn coerce(&self, raw: Option<&[u8]>) -> Result<Variables, Vec<GraphqlError>> {
        self.checked.coerce(raw)
    }

    /// The plan as indented text, for logs and scripts.
    #[must_use]
    pub fn plan_text(&self) -> Arc<str> {
        let write = || {
            let mut out = "QueryPlan {\n".to_owned();
            if let Some(root) = &self.plan.root {
                self.describe(root, 1, &mut out);
            }
            out.push('}');
            out.into()
        };
        Arc::clone(self.shown.text.get_or_init(write))
    }

    /// The plan as the text of a JSON object, for coprocessors: `{"kind":"QueryPlan","node":…}`
    /// with the nodes `Fetch`, `Flatten`, `Sequence`, `Parallel` and `Condition`.
    #[must_use]
    pub fn plan_json(&self) -> Arc<str> {
        let write = || self.plan_value().to_string().into();
        Arc::clone(self.shown.json.get_or_init(write))
    }

    fn describe(&self, step: &Step, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        let block = |name: &str, steps: &[&Step], out: &mut String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{indent}{name} {{");
            for step in steps {
                self.describe(step, depth + 1, out);
            }
            let _ = writeln!(out, "{indent}}},");
        };
        match step {
            Step::Fetch(index) => {
                if let Some(fetch) = self.plan.fetches.get(*index) {
                    let name = &self.supergraph.subgraphs()[fetch.subgraph].name;
                    let word = match fetch.kind {
                        OperationKind::Subscription => "Subscription",
                        OperationKind::Query | OperationKind::Mutation => "Fetch",
                    };
                    let _ = writeln!(
                        out,
                        "{indent}{word}(service: \"{name}\") {{ {} }},",
                        fetch.operation
                    );
                }
            }
            Step::Sequence(steps) => block("Sequence", &steps.iter().collect::<Vec<_>>(), out),
            Step::Parallel(steps) => block("Parallel", &steps.iter().collect::<Vec<_>>(), out),
            Step::Condition {
                variable,
                if_true,
                if_false,
            } => {
                let name = self
                    .checked
                    .declared
                    .get(*variable)
                    .map_or("", |it| &it.name);
                for (word, clause) in [("Include", if_true), ("Skip", if_false)] {
                    if let Some(step) = clause {
                        block(&format!("{word}(if: ${name})"), &[step], out);
                    }
                }
            }
        }
    }
}
