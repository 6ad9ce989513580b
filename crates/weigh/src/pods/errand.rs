//! The keeper's cleanup task after a run in a cluster. It deletes the owner of all objects of the run, mainly
//! for the case that `weigh` was killed.

use cluster::{ApiConnection, ClusterContext};
use rig::keeper::OwnerEnd;
use serde::{Deserialize, Serialize};

/// Prefix that distinguishes this task from the tasks of containers.
const WORD: &str = "kubernetes ";

#[derive(Serialize, Deserialize)]
struct Errand {
    run: String,
    context: Option<String>,
    namespace: String,
}

/// The cleanup task for a run in a cluster.
pub(crate) fn of_run(run: &str, place: &ClusterContext, namespace: &str) -> String {
    let errand = Errand {
        run: run.to_owned(),
        context: place.context.clone(),
        namespace: namespace.to_owned(),
    };
    let text = serde_json::to_string(&errand).expect("texts are JSON");
    format!("{WORD}{text}")
}

/// Runs the task. `None` if it is not a task for a cluster.
pub(crate) fn run(errand: &str, owner: OwnerEnd) -> Option<Result<(), String>> {
    let text = errand.strip_prefix(WORD)?;
    Some(match owner {
        // `weigh` has deleted all objects itself, or reported the remaining ones.
        OwnerEnd::Finished => Ok(()),
        OwnerEnd::Gone => removed(text),
    })
}

fn removed(text: &str) -> Result<(), String> {
    let errand: Errand = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let place = ClusterContext {
        context: errand.context,
        namespace: Some(errand.namespace),
    };
    let connection = ApiConnection::open(&place, || false).map_err(|error| error.to_string())?;
    cluster::owner::end(&connection, &errand.run).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errand_of_others_is_left_to_them() {
        assert!(run("run /var/run/docker.sock", OwnerEnd::Finished).is_none());
        let errand = of_run("x", &ClusterContext::default(), "default");
        assert_eq!(run(&errand, OwnerEnd::Finished), Some(Ok(())));
    }
}
