//! An operation made ready: everything that does not depend on the request's variables.

mod plan_json;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use crate::access_rules::{Demand, Demands, Grants};
use crate::authorization::Unauthorized;
use crate::bounds::Bounds;
use crate::checked::Checked;
use crate::cost::{Formula, NoEstimate, Request};
use crate::deferral::Deferral;
use crate::error::GraphqlError;
use crate::fetch::OperationKind;
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
    /// How it is carried out in parts, where something is deferred.
    pub(crate) deferral: Option<Box<Deferral>>,
    /// What a request must bring to see everything.
    pub(crate) demands: Demands,
    /// What was left out.
    pub(crate) unauthorized: Unauthorized,
    /// What the plan depends on beside the text.
    pub(crate) labels: Arc<OverrideLabels>,
    pub(crate) bounds: Bounds,
    /// What it costs, where that is estimated.
    pub(crate) cost: Option<Formula>,
    pub(crate) shown: Shown,
}

/// The plan as stages may see it, written when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    text: OnceLock<Arc<str>>,
    json: OnceLock<Arc<str>>,
}

impl Prepared {
    /// Query, mutation or subscription.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.checked.kind
    }

    /// The name of the chosen operation, when it has one.
    #[must_use]
    pub fn operation_name(&self) -> Option<&str> {
        self.checked.operation_name()
    }

    /// The limits that the operation breaks and is let through with
    /// ([`Limits::warn_only`](crate::Limits::warn_only)).
    #[must_use]
    pub fn exceeded(&self) -> &[GraphqlError] {
        &self.checked.exceeded
    }

    /// What a request must bring to see everything that is asked for; nothing for most operations.
    pub fn demanded(&self) -> impl Iterator<Item = Demand<'_>> {
        let rules = self.supergraph.rules.as_ref();
        rules
            .into_iter()
            .flat_map(|rules| rules.demanded(&self.demands))
    }

    /// What a request may see of it, when that is not everything: the operation has to be found
    /// or made anew, with these grants.
    #[must_use]
    pub fn grants(&self, meets: impl FnMut(Demand<'_>) -> bool) -> Option<Grants> {
        // The one comparison that operations without demands pay.
        if self.demands.is_empty() {
            return None;
        }
        self.supergraph.rules.as_ref()?.grants(&self.demands, meets)
    }

    /// What the request may not see, for the log.
    #[must_use]
    pub fn unauthorized(&self) -> &[GraphqlError] {
        &self.unauthorized.errors
    }

    /// How many requests to subgraphs the plan has at most.
    #[must_use]
    pub fn fetch_count(&self) -> usize {
        self.plan.fetches.len()
    }

    /// What the operation is expected to cost with these variables; nothing where costs are not
    /// estimated ([`OperationOptions::demand_list_size`](crate::OperationOptions)).
    #[must_use]
    pub fn estimate(&self, variables: &Variables) -> Option<Result<f64, NoEstimate>> {
        let formula = self.cost.as_ref()?;
        Some(formula.estimate(&self.cost_request(variables)))
    }

    /// What its response with this body has cost; nothing inside when it is not a response.
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
    /// `raw` is the JSON text of the request's `variables`; absent and `null` mean no variables.
    ///
    /// # Errors
    /// `VALIDATION_INVALID_TYPE_VARIABLE` for each variable that does not fit its type,
    /// `INVALID_GRAPHQL_REQUEST` when `raw` is not an object.
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
