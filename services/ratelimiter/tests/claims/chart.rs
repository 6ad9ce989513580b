//! Tests the chart of the rate limiter, and the manifests that are made from it.

use test_client::chart::Chart;

use crate::server::{command, start};

#[test]
fn the_chart_and_the_manifests_fit_the_service() {
    let server = start(&[]);
    let help = command(&["--help"]).output().unwrap().stdout;
    Chart {
        name: "ratelimiter",
        release: "ratelimiter",
        namespace: "default",
        package: "ratelimiter",
        files: &[("ratelimiter/kubernetes.yaml", &[])],
        all_on: &["tls.secret=a", "tls.clientCa=b", "redis.enabled=false"],
        help: &String::from_utf8(help).unwrap(),
        status_of: &|path| server.client().get(path).status,
    }
    .check();
}
