//! The plan as JSON, in the format of Apollo's gateways and tools.

use serde_json::{Value, json};

use crate::entities::place_path;
use crate::error::PathSegment;
use crate::fetch::OperationKind;
use crate::plan::{FetchPlan, Place, Step};
use crate::prepared::Prepared;

impl Prepared {
    pub(super) fn plan_value(&self) -> Value {
        let node = self.plan.root.as_ref().map(|root| self.node(root));
        json!({ "kind": "QueryPlan", "node": node })
    }

    fn node(&self, step: &Step) -> Value {
        let nodes = |steps: &[Step]| steps.iter().map(|step| self.node(step)).collect::<Value>();
        match step {
            Step::Fetch(index) => self.plan.fetches.get(*index).map_or(Value::Null, |fetch| {
                let places: Vec<&Place> = fetch
                    .inputs
                    .iter()
                    .flat_map(|input| &input.places)
                    .collect();
                let node = self.fetch_node(fetch);
                match places.as_slice() {
                    [] => node,
                    [place] => json!({ "kind": "Flatten", "path": path(place), "node": node }),
                    places => {
                        let paths: Value = places.iter().map(|place| path(place)).collect();
                        json!({ "kind": "Flatten", "paths": paths, "node": node })
                    }
                }
            }),
            Step::Sequence(steps) => json!({ "kind": "Sequence", "nodes": nodes(steps) }),
            Step::Parallel(steps) => json!({ "kind": "Parallel", "nodes": nodes(steps) }),
            Step::Condition {
                variable,
                if_true,
                if_false,
            } => {
                let clause = |clause: &Option<Box<Step>>| {
                    clause.as_ref().map_or(Value::Null, |step| self.node(step))
                };
                json!({
                    "kind": "Condition",
                    "condition": self.checked.declared.get(*variable).map_or("", |it| &it.name),
                    "ifClause": clause(if_true),
                    "elseClause": clause(if_false),
                })
            }
        }
    }

    fn fetch_node(&self, fetch: &FetchPlan) -> Value {
        let variables = fetch.variables.iter();
        let variables: Vec<&str> = variables
            .filter_map(|(index, _)| Some(self.checked.declared.get(*index)?.name.as_str()))
            .collect();
        let node = json!({
            "kind": "Fetch",
            "serviceName": self.supergraph.subgraphs()[fetch.subgraph].name,
            "operationKind": fetch.kind.as_str(),
            "operationName": fetch.operation_name,
            "operation": fetch.operation,
            "variableUsages": variables,
        });
        match fetch.kind {
            OperationKind::Subscription => json!({ "kind": "Subscription", "primary": node }),
            OperationKind::Query | OperationKind::Mutation => node,
        }
    }
}

fn path(place: &Place) -> Value {
    place_path(place)
        .into_iter()
        .map(|segment| match segment {
            PathSegment::Key(key) => Value::from(key),
            PathSegment::Index(index) => Value::from(index),
        })
        .collect()
}
