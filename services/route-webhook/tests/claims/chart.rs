//! Tests the chart of the webhook, and the manifests that are made from it.

use test_client::chart::Chart;

use crate::server::{command, start};

#[test]
fn the_chart_and_the_manifests_fit_the_service() {
    let server = start(&[]);
    let help = command(&["--help"]).output().unwrap().stdout;
    let file = |name: &str| format!("kubernetes/route-webhook/{name}.yaml");
    let template = |name: &str| format!("templates/{name}.yaml");
    let names = [
        "availability",
        "controllers",
        "deployment",
        "rbac",
        "service",
    ];
    let files = names.map(|name| (file(name), [template(name)]));
    let files = files.each_ref().map(|(file, [it])| (&**file, [&**it]));
    let files = files.each_ref().map(|(file, it)| (*file, &it[..]));
    Chart {
        name: "route-webhook",
        release: "integrationroute-webhook",
        namespace: "keip",
        package: "route-webhook",
        files: &files,
        all_on: &[
            "tls.secret=a",
            "tls.clientCa=b",
            "route.tokenSecret=c",
            "controllers.tokenSecret=d",
            "controllers.webhook.etag.enabled=true",
            "autoscaling.enabled=true",
            "resources.cpuLimit=250m",
        ],
        help: &String::from_utf8(help).unwrap(),
        status_of: &|path| server.client().get(path).status,
    }
    .check();
}
