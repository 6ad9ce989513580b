//! The life of a run against an API server in this process.

use std::sync::Arc;
use std::time::Duration;

use cluster::call::{Resource, Verb, needed};
use cluster::connection::Heed;
use cluster::manifests::{Copy, Manifests, Wish};
use cluster::{ClusterError, Run};
use serde_json::{Value, json};

#[path = "fake_api/server.rs"]
mod server;

use server::{Api, SILENT};

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})
}

/// The node without a kubelet, after this answer of the cluster to the question whether it is ready.
fn silent_node(ready: &str) -> Value {
    json!({"metadata": {"name": SILENT}, "status": {"conditions": [
        {"type": "Ready", "status": ready, "message": "Kubelet stopped posting node status."}]}})
}

#[test]
fn pods_of_a_silent_node_are_removed_when_the_cluster_counts_it_as_lost() {
    let api = Api::start();
    let connection = api.connection(false);
    let node = format!("/api/v1/nodes/{SILENT}");
    api.set(|state| {
        state.objects.insert(node.clone(), silent_node("True"));
    });
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    let round = run.round(1).expect("an owner");
    let mut kept = pod("p");
    kept["spec"]["nodeName"] = json!(SILENT);
    round.create(Resource::Pods, kept).expect("made");
    let state = Arc::clone(&api.state);
    let decision = std::thread::spawn(move || {
        std::thread::park_timeout(Duration::from_secs(7));
        let mut state = state.lock().expect("no panic");
        let pods = state.objects.keys().filter(|path| path.contains("/pods/"));
        assert_eq!(pods.count(), 1, "nothing says that the node is lost");
        state.objects.insert(node, silent_node("Unknown"));
    });
    round.end().expect("gone");
    decision.join().expect("the pod stayed until then");
    run.end().expect("gone");
    assert_eq!(api.left(), [format!("/api/v1/nodes/{SILENT}")]);
}

#[test]
fn a_round_takes_its_pods_along_and_a_run_leaves_nothing() {
    let api = Api::start();
    let connection = api.connection(false);
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    run.create(
        Resource::Services,
        json!({"kind": "Service", "metadata": {"name": "s"}}),
    )
    .expect("made");
    let round = run.round(1).expect("an owner");
    round.create(Resource::Pods, pod("p")).expect("made");
    let selector = round.selector();
    let found = connection
        .list(Resource::Pods, &selector, Heed::Stop)
        .expect("listed");
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0]["metadata"]["labels"]["app.kubernetes.io/managed-by"],
        "weighbridge"
    );
    run.live_on(Duration::from_secs(500)).expect("it goes on");
    let deadline = api.state.lock().expect("no panic").objects
        ["/apis/batch/v1/namespaces/space/jobs/weighbridge-x"]["spec"]["activeDeadlineSeconds"]
        .as_u64();
    assert!(
        deadline.is_some_and(|seconds| (500..520).contains(&seconds)),
        "{deadline:?}"
    );
    round.end().expect("gone");
    assert_eq!(api.left().len(), 2, "{:?}", api.left());
    run.end().expect("gone");
    assert_eq!(api.left(), Vec::<String>::new());
}

#[test]
fn manifests_of_two_variants_are_up_together_and_leave_nothing() {
    let api = Api::start();
    let connection = api.connection(false);
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    let text = "{apiVersion: v1, kind: Service, metadata: {name: s}, \
                 spec: {selector: {app: a}, ports: [{port: 80}]}}\n---\n\
                {apiVersion: v1, kind: Secret, metadata: {name: s}}\n---\n\
                {apiVersion: v1, kind: ConfigMap, metadata: {name: s}}\n---\n\
                {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, \
                 spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, \
                 spec: {containers: [{name: c}]}}}}\n";
    let wish = Wish {
        service: "s".to_owned(),
        ..Wish::default()
    };
    let files = [("f.yaml".to_owned(), text.to_owned())];
    let manifests = Manifests::read(&files, Some("space"), &wish).expect("allowed");
    let copies = [("wb-x-v0-s", "wb-x-v0-r1-0"), ("wb-x-v1-s", "wb-x-v1-r1-0")];
    let copies = copies.map(|(serves, stem)| Copy {
        serves,
        stem,
        part: "x-s",
        domain: "cluster.local",
    });
    for copy in copies {
        for (_, service) in manifests.services(copy) {
            run.create(Resource::Services, service).expect("made");
        }
    }
    let round = run.round(1).expect("an owner");
    for copy in copies {
        for (resource, object) in manifests.of_a_start(copy, "space", &[]) {
            round.create(resource, object).expect("made once");
        }
    }
    // The owners of run and round, and four objects of each variant.
    assert_eq!(api.left().len(), 10, "{:?}", api.left());
    for object in api.state.lock().expect("no panic").objects.values() {
        let labels = &object["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/managed-by"], "weighbridge");
        assert_eq!(labels["weighbridge/run"], "x");
    }
    round.end().expect("gone");
    assert_eq!(api.left().len(), 3, "Services stay: {:?}", api.left());
    run.end().expect("gone");
    assert_eq!(api.left(), Vec::<String>::new());
}

#[test]
fn an_api_server_that_is_away_for_a_while_changes_nothing() {
    let api = Api::start();
    let connection = api.connection(false);
    api.set(|state| state.away = 3);
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    // Created, but the response was lost.
    api.set(|state| state.lost = 1);
    let round = run.round(1);
    let round = round.expect("it is looked for");
    round.create(Resource::Pods, pod("q")).expect("made");
    round.end().expect("gone with its owner");
    api.set(|state| state.lost = 1);
    run.create(Resource::Pods, pod("p")).expect("made once");
    run.end().expect("gone");
    assert_eq!(api.left(), Vec::<String>::new());
}

#[test]
fn what_a_killed_run_has_left_goes_with_its_owner() {
    let api = Api::start();
    let connection = api.connection(false);
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    let round = run.round(1).expect("an owner");
    round.create(Resource::Pods, pod("p")).expect("made");
    // Like a killed process, which removes no object.
    std::mem::forget(round);
    // The cleanup task only has the name, and ignores a stop request of the user.
    cluster::owner::end(&api.connection(true), "x").expect("gone");
    assert_eq!(api.left(), Vec::<String>::new());
    cluster::owner::end(&connection, "x").expect("nothing is no error");
}

#[test]
fn the_log_of_a_pod_is_read_from_its_end() {
    let api = Api::start();
    let connection = api.connection(false);
    let text: String = (1..=12).map(|line| format!("line {line}\n")).collect();
    let path = "/api/v1/namespaces/space/pods/p/log".to_owned();
    api.set(|state| {
        state.objects.insert(path, json!(text));
    });
    let lines = connection.last_log_lines("p", None, 10).expect("a log");
    assert_eq!(
        (lines.len(), lines[0].as_str(), lines[9].as_str()),
        (10, "line 3", "line 12")
    );
    let refused = connection.last_log_lines("unknown", None, 10);
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn a_followed_log_is_whole_with_its_last_line_and_not_without_it() {
    let api = Api::start();
    let connection = api.connection(false);
    let path = "/api/v1/namespaces/space/pods/p/log?generator".to_owned();
    let followed = |text: &str, last_line: &'static str| {
        api.set(|state| {
            state.objects.insert(path.clone(), json!(text));
        });
        let log = connection.follow_log("p", Some("generator"), last_line);
        connection.followed(log)
    };
    let whole = followed("one\ntwo\nend\nmore", "end");
    assert!(
        whole.is_some_and(|log| log.starts_with("one\ntwo\nend\n")),
        "all lines up to the last one"
    );
    assert_eq!(followed("one\nend", "end").as_deref(), Some("one\nend"));
    assert_eq!(followed("one\nthe end", "end"), None);
    let unknown = connection.follow_log("unknown", None, "end");
    assert_eq!(connection.followed(unknown), None);
}

#[test]
fn the_log_of_one_of_several_containers_is_asked_for_by_name() {
    let api = Api::start();
    let connection = api.connection(false);
    let path = "/api/v1/namespaces/space/pods/p/log?generator".to_owned();
    api.set(|state| {
        state.objects.insert(path, json!("one\ntwo"));
    });
    let log = connection.log("p", Some("generator"));
    assert_eq!(log.expect("a log"), "one\ntwo");
    let last = connection.last_log_lines("p", Some("generator"), 1);
    assert_eq!(last.expect("a log"), ["two"]);
    // Without a name, an API server refuses the log of a pod with several containers.
    assert!(connection.log("p", None).is_err());
}

const PODS: &str = "/api/v1/namespaces/space/pods";

#[test]
fn a_pod_that_would_be_refused_is_known_before_it_is_needed() {
    let api = Api::start();
    let connection = api.connection(false);
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    run.try_create(Resource::Pods, pod("p")).expect("allowed");
    assert_eq!(api.left().len(), 1, "only the owner: {:?}", api.left());
    let rule =
        "pods \"p\" is forbidden: failed quota: team: must specify limits.cpu for: generator";
    api.set(|state| {
        state
            .refused
            .insert(PODS.to_owned(), (403, rule.to_owned()));
    });
    let refused = run
        .try_create(Resource::Pods, pod("p"))
        .expect_err("a quota");
    assert!(refused.is_about_the_object());
    let said = refused.to_string();
    assert!(
        said.starts_with("a quota of the namespace does not allow weigh to create the pod `p`: "),
        "{said}"
    );
    assert!(
        said.contains("must specify limits.cpu") && said.contains("Give the pod `limits`"),
        "{said}"
    );
    assert!(!said.contains("rbac"), "{said}");
}

#[test]
fn a_refusal_names_its_cause() {
    let api = Api::start();
    let connection = api.connection(false);
    for (code, message, is_object, advice) in [
        (
            403,
            "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\"",
            false,
            "weigh-rbac.yaml",
        ),
        (
            403,
            "pods \"p\" is forbidden: exceeded quota: q",
            true,
            "Raise the quota",
        ),
        (401, "Unauthorized", false, "They may have expired"),
        (
            422,
            "ValidatingAdmissionPolicy 'x' denied request: no",
            true,
            "an admission policy",
        ),
        (
            400,
            "admission webhook \"w\" denied the request: no",
            true,
            "an admission policy",
        ),
        (
            422,
            "Pod \"p\" is invalid: spec.containers",
            true,
            "refused to create the pod",
        ),
    ] {
        api.set(|state| {
            state
                .refused
                .insert(PODS.to_owned(), (code, message.to_owned()));
        });
        let refused = connection
            .create(Resource::Pods, &pod("p"))
            .expect_err(message);
        let said = refused.to_string();
        assert_eq!(refused.is_about_the_object(), is_object, "{said}");
        assert!(said.contains(advice) && said.contains(message), "{said}");
    }
}

#[test]
fn the_events_of_an_object_are_its_own() {
    let api = Api::start();
    let connection = api.connection(false);
    let event = |name: &str, of: &str, message: &str| {
        let path = format!("/api/v1/namespaces/space/events/{name}");
        let event = json!({"type": "Warning", "reason": "FailedCreate", "message": message,
            "involvedObject": {"kind": "Job", "name": of}, "lastTimestamp": "2026-01-01T00:00:00Z"});
        (path, event)
    };
    api.set(|state| {
        state
            .objects
            .extend([event("a", "generators", "no"), event("b", "other", "never")]);
    });
    let events = connection.events_of("Job", "generators").expect("listed");
    let messages: Vec<&str> = events.iter().map(|event| &*event.message).collect();
    assert_eq!(messages, ["no"]);
    assert_eq!(
        connection.events_of("Pod", "generators").expect("listed"),
        []
    );
}

#[test]
fn a_user_who_stops_is_not_kept_waiting() {
    let api = Api::start();
    let connection = api.connection(true);
    api.set(|state| state.away = 1_000);
    let stopped = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).err();
    assert!(
        matches!(stopped, Some(ClusterError::Stopped { .. })),
        "{stopped:?}"
    );
}

#[test]
fn every_request_is_among_those_that_permissions_are_for() {
    let api = Api::start();
    let connection = api.connection(false);
    let run = Run::begin(&connection, "x", "weigh:1", Duration::from_secs(60)).expect("an owner");
    let round = run.round(1).expect("an owner");
    round
        .create(
            Resource::Secrets,
            json!({"kind": "Secret", "metadata": {"name": "s"}}),
        )
        .expect("made");
    run.live_on(Duration::from_secs(5)).expect("it goes on");
    run.try_create(Resource::Pods, pod("p")).expect("allowed");
    connection.events_of("Job", "j").expect("listed");
    connection
        .list(Resource::Nodes, "", Heed::Stop)
        .expect("listed");
    round.end().expect("gone");
    run.end().expect("gone");
    let allowed = |method: &str, path: &str| {
        needed().any(|(resource, verbs)| {
            let plural = resource.rbac_name().split('/').next().unwrap_or_default();
            let group = match resource.group() {
                "" => "/api/v1/".to_owned(),
                group => format!("/apis/{group}/v1/"),
            };
            let is_one = !path.ends_with(plural);
            let verb = match (method, is_one) {
                ("POST", _) => Verb::Create,
                ("PATCH", _) => Verb::Patch,
                ("DELETE", _) => Verb::Delete,
                (_, true) => Verb::Get,
                (_, false) => Verb::List,
            };
            path.starts_with(&group)
                && path.contains(&format!("/{plural}"))
                && verbs.contains(&verb)
        })
    };
    let asked = api.state.lock().expect("no panic").asked.clone();
    assert!(asked.len() > 10);
    for (method, path) in asked {
        assert!(allowed(&method, &path), "{method} {path}");
    }
}
