//! The files of deploy/ratelimiter can be read and say what the service needs. `stack` starts the
//! compose stack.

use std::fs;
use std::path::Path;

use granit_parser::{Event, Parser};

/// Every scalar of a YAML file, in order; what is no YAML panics.
fn scalars(name: &str) -> (String, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ratelimiter");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let mut found = Vec::new();
    for event in Parser::new_from_str(&text) {
        let (event, _) = event.unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Event::Scalar(value, ..) = event {
            found.push(value.into_owned());
        }
    }
    (text, found)
}

/// The scalars that follow a key.
fn after<'a>(found: &'a [String], key: &str) -> Vec<&'a str> {
    let pairs = found.windows(2).filter(|pair| pair[0] == key);
    pairs.map(|pair| pair[1].as_str()).collect()
}

#[test]
fn compose_starts_four_instances_with_redis_behind_a_balancer() {
    let (_, found) = scalars("compose.yaml");
    for service in ["redis", "ratelimiter", "balancer"] {
        assert!(found.iter().any(|scalar| scalar == service), "{service}");
    }
    assert_eq!(after(&found, "replicas"), ["1", "4", "1"]);
    assert_eq!(after(&found, "REDIS_URL"), ["redis://redis:6379"]);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ratelimiter");
    let balancer = fs::read_to_string(folder.join(after(&found, "file")[0])).unwrap();
    assert!(balancer.contains("balance leastconn"));
    assert!(balancer.contains("/.well-known/apollo/server-health"));
    let image = fs::read_to_string(folder.join("Dockerfile")).unwrap();
    let user = image.lines().find_map(|line| line.strip_prefix("USER "));
    assert!(user.is_some_and(|user| user != "0" && user != "root"));
    assert!(image.contains("HEALTHCHECK") && image.contains("--package ratelimiter"));
}

#[test]
fn kubernetes_has_every_part() {
    judged::not_run("the manifests are parsed, and not applied to a cluster");
    let (text, found) = scalars("kubernetes.yaml");
    let mut kinds: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("kind: "))
        .collect();
    kinds.sort_unstable();
    let expected = [
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "NetworkPolicy",
        "Service",
        "Service",
        "StatefulSet",
    ];
    assert_eq!(kinds, expected);
    assert!(
        after(&found, "runAsNonRoot")
            .iter()
            .all(|value| *value == "true")
    );
    assert_eq!(after(&found, "minReplicas"), ["4"]);
}
