//! The keeper's cleanup task after a run in a cluster. It deletes the owner of all objects of the run, mainly
//! for the case that `weigh` was killed.

use cluster::{ApiConnection, ClusterContext};
use rig::keeper::OwnerEnd;
use serde::{Deserialize, Serialize};

/// Prefix that distinguishes this task from the tasks of containers.
const WORD: &str = "kubernetes ";

#[derive(Serialize, Deserialize)]
struct CleanupTask {
    run: String,
    context: Option<String>,
    namespace: String,
}

/// The cleanup task for a run in a cluster.
pub fn of_run(run: &str, place: &ClusterContext, namespace: &str) -> String {
    let cleanup_task = CleanupTask {
        run: run.to_owned(),
        context: place.context.clone(),
        namespace: namespace.to_owned(),
    };
    let text = serde_json::to_string(&cleanup_task).expect("texts are JSON");
    format!("{WORD}{text}")
}

/// Runs the task. `None` if it is not a task for a cluster.
pub fn run(cleanup_task: &str, owner: OwnerEnd) -> Option<Result<(), String>> {
    let text = cleanup_task.strip_prefix(WORD)?;
    Some(match owner {
        // `weigh` has deleted all objects itself, or reported the remaining ones.
        OwnerEnd::Finished => Ok(()),
        OwnerEnd::Gone => removed(text),
    })
}

fn removed(text: &str) -> Result<(), String> {
    let cleanup_task: CleanupTask =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let place = ClusterContext {
        context: cleanup_task.context,
        namespace: Some(cleanup_task.namespace),
    };
    let connection = ApiConnection::open(&place, || false).map_err(|error| error.to_string())?;
    cluster::owner::end(&connection, &cleanup_task.run).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleanup_task_of_another_service_is_ignored() {
        assert!(run("run /var/run/docker.sock", OwnerEnd::Finished).is_none());
        let cleanup_task = of_run("x", &ClusterContext::default(), "default");
        assert_eq!(run(&cleanup_task, OwnerEnd::Finished), Some(Ok(())));
    }
}
