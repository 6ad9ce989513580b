//! The lab with the sidecars of Istio, on the real node of `ci/cluster/cluster.sh`. If Istio is not built
//! (`ci/cluster/istio.sh build`), the claim is NOT RUN.

use std::path::Path;
use std::process::Command;

use e2e::weigh_command;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, counted, node, recording, words};
use crate::node::Node;

#[test]
fn istio_injects_the_sidecars_of_its_lab_and_encrypts_between_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !Node::folder().join("bin/pilot-agent").exists() {
        judged::absent("no programs of Istio: `ci/cluster/istio.sh build`");
        return;
    }
    if !root.join("labs/layers/.programs/bin/envoy").exists() {
        judged::absent("no Envoy: `./setup layers`");
        return;
    }
    let Some(node) = node() else { return };
    node.image("docker.io/library/gateway:1", &e2e::gateway());
    node.image("docker.io/library/planets:1", &e2e::planets());
    let istio = Command::new(root.join("ci/cluster/istio.sh"))
        .arg("up")
        .status();
    assert!(istio.expect("the script starts").success());
    let supergraph = root.join("services/planets/supergraph.graphql");
    let supergraph = format!("--from-file={}", supergraph.display());
    node.kubectl(&["create", "configmap", "gateway-supergraph", &supergraph]);
    let folder = TempDir::new().expect("a folder");
    let output = weigh_command()
        .current_dir(folder.path())
        .env("KUBECONFIG", node.state.join("kubeconfig"))
        .arg("lab")
        .arg(root.join("labs/containers/istio.yaml"))
        .args(["--quick", "--rounds", "1", "--on", "kubernetes"])
        .args(["--generator-image", IMAGE])
        .args(["--out", "recordings"])
        .output()
        .expect("weigh starts");
    let said = words(&output);
    // Exit code 7: a check may withhold the verdict on a busy machine.
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder.path());
    for variant in recording["variants"].as_array().expect("variants") {
        assert_eq!(variant["status"]["state"], "measured", "{said}");
    }
    for round in counted(&recording) {
        assert_eq!(round["outcomes"]["passed"], round["planned"], "{round}");
    }
    assert_eq!(node.left(), "");
    let left = node.kubectl(&["get", "peerauthentications,envoyfilters", "-o", "name"]);
    assert_eq!(left, "");
}
