//! Tests that the files of deploy/gateway fit the gateway's needs, and that the gateway accepts their
//! settings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_client::Yaml;
use test_client::chart::Chart;

use crate::gateway::Gateway;
use crate::stub::Stub;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/gateway")
}

fn read(name: &str) -> Yaml {
    Yaml::read(&folder().join(name))
}

fn seconds(time: &str) -> u32 {
    let number = time.strip_suffix('s').unwrap_or(time);
    number.parse().unwrap_or_else(|_| panic!("{time}"))
}

#[test]
fn every_key_of_the_configuration_works() {
    let mut check = Command::new(env!("CARGO_BIN_EXE_gateway"));
    let output = check
        .arg("check")
        .arg(folder().join("gateway.yaml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("nothing wrong found"), "{said}");
    assert!(
        !said.contains("without effect") && !said.contains("refused"),
        "{said}"
    );
}

#[test]
fn who_stops_it_waits_until_it_has_drained() {
    let config = read("gateway.yaml");
    let time = |key: &str| seconds(config.after(key)[0]);
    let needed = time("drain_delay") + time("connection_shutdown_timeout");
    let (compose, cluster) = (read("compose.yaml"), read("kubernetes.yaml"));
    assert!(seconds(compose.after("stop_grace_period")[0]) > needed);
    assert!(seconds(cluster.after("terminationGracePeriodSeconds")[0]) > needed);
    // The drain delay is longer than two failed readiness checks, which the cluster needs to notice it.
    let noticed = cluster.text.split("readinessProbe").nth(1).unwrap();
    assert!(noticed.contains("periodSeconds: 2") && noticed.contains("failureThreshold: 2"));
    assert!(time("drain_delay") > 2 * 2);
}

#[test]
fn the_cluster_has_every_part_and_gives_no_rights() {
    judged::absent("the manifests are parsed, and not applied to a cluster");
    let cluster = read("kubernetes.yaml");
    let expected = [
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    ];
    assert_eq!(cluster.kinds(), expected);
    for (key, value) in [
        ("runAsNonRoot", "true"),
        ("readOnlyRootFilesystem", "true"),
        ("allowPrivilegeEscalation", "false"),
        ("automountServiceAccountToken", "false"),
        ("drop", "ALL"),
    ] {
        let found = cluster.after(key);
        assert!(
            !found.is_empty() && found.iter().all(|it| *it == value),
            "{key}"
        );
    }
    // The gateway must listen on each port of the cluster.
    let config = read("gateway.yaml");
    for port in cluster.after("containerPort") {
        let listens = config.after("listen");
        assert!(
            listens.contains(&format!("0.0.0.0:{port}").as_str()),
            "{port}"
        );
    }
}

#[test]
fn the_chart_and_the_manifests_fit_the_gateway() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let mut help = Command::new(env!("CARGO_BIN_EXE_gateway"));
    let help = help.arg("--help").output().unwrap().stdout;
    Chart {
        name: "gateway",
        release: "gateway",
        namespace: "default",
        package: "gateway",
        files: &[("gateway/kubernetes.yaml", &[])],
        all_on: &[
            "tls.secret=a",
            "supergraphConfigMap=",
            "networkPolicy.from[0].podSelector.matchLabels.a=b",
        ],
        help: &String::from_utf8(help).unwrap(),
        status_of: &|path| gateway.ask_health(path).status,
    }
    .check();
}

#[test]
fn the_image_holds_one_program_and_no_rights() {
    let text = fs::read_to_string(folder().join("Dockerfile")).unwrap();
    let image = text.split("\nFROM scratch\n").nth(1).expect("a last stage");
    let lines: Vec<&str> = image.lines().collect();
    assert!(lines.contains(&"USER 65534:65534"));
    assert_eq!(lines.iter().filter(|it| it.starts_with("COPY ")).count(), 2);
    assert!(text.contains("--package gateway"));
}
