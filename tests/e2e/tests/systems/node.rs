//! The real nodes of `ci/cluster/cluster.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Guards the only cluster. The end of each test brings it down.
static IN_USE: Mutex<()> = Mutex::new(());

/// The cluster while a test needs it.
pub(crate) struct Node {
    pub(crate) state: PathBuf,
    script: PathBuf,
    /// Images that the test has made. They end with the cluster, because each start of a cluster reads all images.
    images: Mutex<Vec<String>>,
    _in_use: MutexGuard<'static, ()>,
}

impl Node {
    /// Starts a cluster of one node, or records why the calling test does not run.
    #[track_caller]
    pub(crate) fn up() -> Option<Node> {
        Node::with(1)
    }

    /// The folder with the programs and images of the cluster.
    #[expect(
        clippy::disallowed_methods,
        reason = "where its programs are is said to this test from outside"
    )]
    pub(crate) fn folder() -> PathBuf {
        let state = std::env::var("WEIGH_CLUSTER").ok();
        state.map_or_else(|| PathBuf::from("/var/tmp/weigh-cluster"), PathBuf::from)
    }

    /// Starts a cluster of this many nodes, or records why the calling test does not run.
    #[track_caller]
    pub(crate) fn with(nodes: u32) -> Option<Node> {
        Node::up_with(&[&nodes.to_string()])
    }

    /// Starts a cluster with these arguments of `cluster.sh up`, or records why the calling test does not run.
    #[track_caller]
    pub(crate) fn up_with(arguments: &[&str]) -> Option<Node> {
        let state = Node::folder();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/cluster/cluster.sh");
        if !state.join("bin/kubelet").exists() {
            judged::absent(
                "no programs of a cluster in $WEIGH_CLUSTER or /var/tmp/weigh-cluster: `./setup kubernetes`",
            );
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            judged::absent("a real node needs root");
            return None;
        }
        judged::ran();
        let node = Node {
            state,
            script,
            images: Mutex::default(),
            // A failed test has brought the cluster down nevertheless.
            _in_use: IN_USE.lock().unwrap_or_else(PoisonError::into_inner),
        };
        node.call(&[&["up"], arguments].concat());
        Some(node)
    }

    /// Calls the script of the cluster.
    pub(crate) fn call(&self, arguments: &[&str]) {
        if let ["image" | "program", name, ..] = arguments {
            self.images
                .lock()
                .expect("no test fails within")
                .push((*name).to_owned());
        }
        let ended = Command::new(&self.script)
            .args(arguments)
            .status()
            .expect("the script starts");
        assert!(ended.success(), "{arguments:?}");
    }

    /// Returns the output of kubectl.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = Command::new(self.state.join("bin/kubectl"))
            .env("KUBECONFIG", self.state.join("kubeconfig"))
            .args(arguments)
            .output()
            .expect("kubectl starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Pushes an image of the node to a registry without TLS. `user` is `NAME:PASSWORD`.
    pub(crate) fn push(&self, image: &str, to: &str, user: &str) {
        let ended = Command::new("ctr")
            .arg("--address")
            .arg(self.state.join("run/node1/containerd.sock"))
            .args(["--namespace", "k8s.io", "images", "push", "--plain-http"])
            .args(["--user", user, to, image])
            .status()
            .expect("ctr starts");
        assert!(ended.success(), "{image} is not pushed to {to}");
    }

    /// Makes an image of a program of this checkout.
    pub(crate) fn image(&self, name: &str, program: &Path) {
        self.call(&["program", name, &program.display().to_string()]);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ended = Command::new(&self.script).arg("down").status();
        for image in self
            .images
            .get_mut()
            .map(std::mem::take)
            .unwrap_or_default()
        {
            let file = image.replace(['/', ':'], "_") + ".tar";
            let _removed = fs::remove_file(self.state.join("images").join(file));
        }
    }
}
