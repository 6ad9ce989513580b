//! Tests the chart of the catalog, and the manifests that are made from it.

use test_client::chart::Chart;

use crate::databases::Database;
use crate::server::{command, start};

#[test]
fn the_chart_and_the_manifests_fit_the_service() {
    let database = Database::sqlite();
    let server = start(&database, &[]);
    let help = command(&database, &["--help"]).output().unwrap().stdout;
    Chart {
        name: "catalog",
        release: "catalog",
        namespace: "default",
        package: "catalog",
        files: &[("catalog/kubernetes.yaml", &[])],
        all_on: &["tls.secret=a", "tls.clientCa=b", "autoscaling.enabled=true"],
        help: &String::from_utf8(help).unwrap(),
        status_of: &|path| server.client().get(path).status,
    }
    .check();
}
