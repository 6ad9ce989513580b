//! The Helm charts, installed on the real node. Without its programs, this claim is NOT RUN.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::{gateway, graphql_server, planets, ratelimiter, route_webhook, wait_until};
use test_client::{Connection, Request, get, post_json};

use crate::node::Node;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Node {
    fn helm(&self, arguments: &[&str]) {
        let output = Command::new("helm")
            .current_dir(root())
            .env("KUBECONFIG", self.state.join("kubeconfig"))
            .args(arguments)
            .output()
            .expect("helm starts");
        let said = String::from_utf8_lossy(&output.stderr);
        let pods = self.kubectl(&["describe", "pods"]);
        assert!(output.status.success(), "{arguments:?}: {said}\n{pods}");
    }

    /// Installs a chart with one pod of a quarter of a core, and waits until the pod is ready.
    fn install(&self, chart: &str, image: &str, settings: &str) {
        let (repository, tag) = image.rsplit_once(':').expect("an image with a tag");
        let settings = format!(
            "image.repository={repository},image.tag={tag},image.pullPolicy=Never,replicas=1,\
             autoscaling.enabled=false,resources.cpuRequest=50m{settings}"
        );
        let folder = format!("deploy/charts/{chart}");
        let common = ["--set", &settings, "--wait", "--timeout", "120s"];
        self.helm(&[&["install", chart, &folder][..], &common].concat());
    }

    /// The address of a Service, which this machine reaches.
    fn address(&self, service: &str) -> String {
        let path = "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}";
        self.kubectl(&["get", "service", service, "-o", path])
    }

    /// The body of the response of a Service. Its status must be 200.
    fn answer(&self, service: &str, request: &Request<'_>) -> String {
        let response = Connection::open(&self.address(service)).send(request);
        assert_eq!(response.status, 200, "{service}: {}", response.body);
        response.body
    }
}

/// Each chart becomes ready, which needs its probes, its rights and a read-only root. Its Service answers, and
/// nothing is left after `helm uninstall`.
#[test]
fn each_chart_without_a_store_serves_in_the_cluster() {
    let Some(node) = Node::up() else { return };
    for (name, program) in [
        // The names in the manifests.
        ("docker.io/library/planets:1", planets()),
        ("localhost/gateway:1", gateway()),
        ("localhost/ratelimiter:1", ratelimiter()),
        ("localhost/server:1", graphql_server()),
        ("localhost/webhook:1", route_webhook()),
    ] {
        node.image(name, &program);
    }
    let file = |path: &str| root().join(path).display().to_string();
    node.kubectl(&["apply", "-f", &file("deploy/gateway/planets.yaml")]);
    let config = format!("--from-file={}", file("deploy/gateway/gateway.yaml"));
    node.kubectl(&["create", "configmap", "gateway", &config]);
    let schema = format!(
        "--from-file={}",
        file("services/planets/supergraph.graphql")
    );
    node.kubectl(&["create", "configmap", "gateway-supergraph", &schema]);
    let key = "--from-literal=email-key=0123456789abcdef0123456789abcdef";
    node.kubectl(&["create", "secret", "generic", "ratelimiter", key]);
    node.kubectl(&["rollout", "status", "deployment/planets", "--timeout=120s"]);

    node.install("gateway", "localhost/gateway:1", "");
    let query = post_json("/", r#"{"query":"{ locations { id overallRating } }"}"#);
    let answer = node.answer("gateway", &query);
    assert!(
        answer.starts_with(r#"{"data":{"locations":[{"id":"#),
        "{answer}"
    );

    node.install(
        "ratelimiter",
        "localhost/ratelimiter:1",
        ",redis.enabled=false",
    );
    let health = get("/.well-known/apollo/server-health");
    assert!(node.answer("ratelimiter", &health).contains("pass"));

    node.install("graphql-server", "localhost/server:1", "");
    let typename = post_json("/graphql", r#"{"query":"{ __typename }"}"#);
    let answer = node.answer("graphql-server", &typename);
    assert!(answer.contains(r#""__typename":"Query""#), "{answer}");

    node.install(
        "route-webhook",
        "localhost/webhook:1",
        ",controllers.enabled=false",
    );
    for chart in ["gateway", "ratelimiter", "graphql-server", "route-webhook"] {
        node.helm(&["uninstall", chart, "--wait", "--timeout", "120s"]);
    }
    node.kubectl(&[
        "delete",
        "--wait",
        "-f",
        &file("deploy/gateway/planets.yaml"),
    ]);
    let kinds = "pods,deployments,services,networkpolicies,poddisruptionbudgets,serviceaccounts";
    let left = || {
        let left = node.kubectl(&["get", kinds, "-o", "name"]);
        let mut left: Vec<String> = left.lines().map(str::to_owned).collect();
        left.sort_unstable();
        left
    };
    // Pods end after their grace, and helm does not wait for them.
    wait_until(
        "only the cluster's own objects are left",
        Duration::from_secs(90),
        || left() == ["service/kubernetes", "serviceaccount/default"],
    );
}
