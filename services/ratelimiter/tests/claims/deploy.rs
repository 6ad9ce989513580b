//! Tests that the files of deploy/ratelimiter are readable and contain the options that the service needs.
//! `stack` starts the compose stack.

use std::fs;
use std::path::{Path, PathBuf};

use test_client::Yaml;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ratelimiter")
}

#[test]
fn compose_starts_four_instances_with_redis_behind_a_balancer() {
    let found = Yaml::read(&folder().join("compose.yaml"));
    for service in ["redis", "ratelimiter", "balancer"] {
        assert!(found.has(service), "{service}");
    }
    assert_eq!(found.after("replicas"), ["1", "4", "1"]);
    assert_eq!(found.after("REDIS_URL"), ["redis://redis:6379"]);
    let folder = folder();
    let balancer = fs::read_to_string(folder.join(found.after("file")[0])).unwrap();
    assert!(balancer.contains("balance leastconn"));
    assert!(balancer.contains("/.well-known/apollo/server-health"));
    let image = fs::read_to_string(folder.join("Dockerfile")).unwrap();
    let user = image.lines().find_map(|line| line.strip_prefix("USER "));
    assert!(user.is_some_and(|user| user != "0" && user != "root"));
    assert!(image.contains("HEALTHCHECK") && image.contains("--package ratelimiter"));
}

#[test]
fn kubernetes_has_every_part() {
    judged::absent("the manifests are parsed, and not applied to a cluster");
    let found = Yaml::read(&folder().join("kubernetes.yaml"));
    let expected = [
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    ];
    assert_eq!(found.kinds(), expected);
    assert!(
        found
            .after("runAsNonRoot")
            .iter()
            .all(|value| *value == "true")
    );
    assert_eq!(found.after("minReplicas"), ["4"]);
}
