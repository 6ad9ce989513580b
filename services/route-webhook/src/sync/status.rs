//! The status of a route: the number of its pods, and if they are all ready.

use crate::json::Writer;
use crate::key;
use crate::request::{BodyNode, Refusal};

/// The pods of a route, from the status of its Deployment.
pub(super) struct Pods<'a> {
    pub(super) ready: &'a str,
    pub(super) running: &'a str,
    /// The Deployment's own conditions of this type. `None` if its state is unknown.
    pub(super) available: Option<Vec<&'a str>>,
}

impl<'a> Pods<'a> {
    pub(super) fn of(deployment: Option<BodyNode<'a, '_>>) -> Result<Self, Refusal> {
        let mut pods = Pods {
            ready: "0",
            running: "0",
            available: None,
        };
        let Some(deployment) = deployment.and_then(BodyNode::unless_empty) else {
            return Ok(pods);
        };
        let Some(status) = deployment
            .member("status")?
            .and_then(BodyNode::unless_empty)
        else {
            return Ok(pods);
        };
        let names = ["readyReplicas", "replicas", "conditions"];
        let [ready, running, conditions] = status.members(names)?;
        let or_zero = |count: Option<BodyNode<'a, '_>>| {
            let count = count.and_then(BodyNode::unless_empty);
            count.map_or("0", |count| count.json())
        };
        pods.ready = or_zero(ready);
        pods.running = or_zero(running);
        let mut available = Vec::new();
        if let Some(conditions) = conditions {
            // Availability conditions of the Deployment are passed on unchanged. Other conditions are not
            // part of a route's status.
            for condition in conditions.items()? {
                if is_of_type(condition, "Available")? {
                    available.push(condition.passed_on()?);
                }
            }
        }
        pods.available = Some(available);
        Ok(pods)
    }
}

/// The condition of a route that reports if all pods are ready.
pub(super) struct Ready<'a, 'p> {
    pub(super) is_ready: bool,
    /// The generation of the route.
    pub(super) generation: BodyNode<'a, 'p>,
}

impl<'a> Ready<'a, '_> {
    fn status(&self) -> &'static str {
        if self.is_ready { "True" } else { "False" }
    }

    /// The route's existing condition if its content is the same, so that its time stays.
    pub(super) fn unchanged(
        &self,
        status: Option<BodyNode<'a, '_>>,
    ) -> Result<Option<&'a str>, Refusal> {
        let Some(status) = status.and_then(BodyNode::unless_null) else {
            return Ok(None);
        };
        let Some(conditions) = status.member("conditions")?.and_then(BodyNode::unless_null) else {
            return Ok(None);
        };
        for condition in conditions.items()? {
            if !is_of_type(condition, "Ready")? {
                continue;
            }
            let [status, generation] = condition.members(["status", "observedGeneration"])?;
            let is_same = match (status, generation) {
                (Some(status), Some(generation)) => {
                    is_text(status, self.status()) && generation.is_same_as(self.generation.json())
                }
                _ => false,
            };
            // The first condition of this type decides. A second one would be invalid.
            return is_same.then(|| condition.passed_on()).transpose();
        }
        Ok(None)
    }

    pub(super) fn write(&self, now: &str, answer: &mut Writer) {
        let said = if self.is_ready {
            concat!(
                r#""status":"True","type":"Ready","#,
                r#""message":"All IntegrationRoute pod replicas are ready","#,
                r#""reason":"ReplicasReady""#,
            )
        } else {
            concat!(
                r#""status":"False","type":"Ready","#,
                r#""message":"Some IntegrationRoute pod replicas are not ready","#,
                r#""reason":"ReplicasNotReady""#,
            )
        };
        answer.object(|answer| {
            answer.member(key!("lastTransitionTime"), now);
            answer
                .key(key!("observedGeneration"))
                .json(self.generation.json());
            answer.constant(said);
        });
    }
}

fn is_of_type(condition: BodyNode<'_, '_>, wanted: &str) -> Result<bool, Refusal> {
    let [kind] = condition.required(["type"])?;
    Ok(is_text(kind, wanted))
}

fn is_text(node: BodyNode<'_, '_>, wanted: &str) -> bool {
    node.text().is_ok_and(|text| text == wanted)
}
