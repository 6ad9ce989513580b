//! Tests the chart of the servers, and the manifests that are made from it.

use test_client::chart::Chart;

use crate::server::{PROGRAMS, command, start};

#[test]
fn the_chart_and_the_manifests_fit_both_servers() {
    for program in PROGRAMS {
        let server = start(program, &[]);
        let help = command(program, &["--help"]).output().unwrap().stdout;
        Chart {
            name: "graphql-server",
            release: "graphql-server",
            namespace: "default",
            package: "graphql-server",
            files: &[("graphql-server/kubernetes.yaml", &[])],
            all_on: &[
                "tls.secret=a",
                "tls.clientCa=b",
                "stack=async-graphql-actix-web",
                "autoscaling.enabled=true",
            ],
            help: &String::from_utf8(help).unwrap(),
            status_of: &|path| server.client().get(path).status,
        }
        .check();
    }
}
