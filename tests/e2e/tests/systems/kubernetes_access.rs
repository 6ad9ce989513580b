//! The way to the API server: plugins for credentials, a proxy, an account with the rights of `weigh-rbac.yaml` alone,
//! and credentials that end during a run. They run on the real node of `ci/cluster/cluster.sh`, or are NOT RUN.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use e2e::{wait_until, weigh_command};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, node, recording, words};
use crate::node::Node;

/// A namespace with the rights of `weigh-rbac.yaml`, and a folder with the lab.
struct Access {
    node: Node,
    namespace: &'static str,
    folder: TempDir,
}

impl Access {
    #[track_caller]
    fn of(namespace: &'static str) -> Option<Access> {
        let node = node()?;
        let rights =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/weigh-rbac.yaml");
        let rights = rights.display().to_string();
        node.kubectl(&["create", "namespace", namespace]);
        node.kubectl(&["apply", "-n", namespace, "-f", &rights]);
        let folder = TempDir::new().expect("a folder");
        let lab = format!(
            "question: Are two milliseconds found?\nload: {{rate: 100/s, duration: 2s, path: /}}\n\
             target: server\nsystems:\n  server:\n    settings: {{delay: 1ms}}\n    \
             image: {IMAGE}\n    pull: never\n    port: 8080\n    \
             command: \"null-server --listen {{{{addr}}}} --delay {{{{delay}}}}\"\n    \
             limits: {{cpus: 0.2, memory: 64MiB}}\nbaseline: {{name: early}}\n\
             variants: [{{name: late, with: {{server.delay: 3ms}}}}]\n\
             expect: {{status: 200, same-as: baseline}}\n"
        );
        fs::write(folder.path().join("two.yaml"), lab).expect("a file");
        Some(Access {
            node,
            namespace,
            folder,
        })
    }

    /// Writes a kubeconfig with another user, and returns its path.
    fn kubeconfig(&self, user: &Value) -> PathBuf {
        let admin = self
            .node
            .kubectl(&["config", "view", "--raw", "-o", "json"]);
        let mut config: Value = serde_json::from_str(&admin).expect("a kubeconfig");
        config["users"] = json!([{"name": "admin", "user": user}]);
        let path = self.folder.path().join("kubeconfig");
        fs::write(&path, config.to_string()).expect("a file");
        path
    }

    /// A kubeconfig with a token of the account of `weigh-rbac.yaml`.
    fn token(&self) -> PathBuf {
        let token = self
            .node
            .kubectl(&["create", "token", "weigh", "-n", self.namespace]);
        self.kubeconfig(&json!({"token": token.trim()}))
    }

    fn weigh(&self, kubeconfig: &Path, rounds: u32) -> Command {
        let mut command = weigh_command();
        command
            .current_dir(self.folder.path())
            .env("KUBECONFIG", kubeconfig)
            .args(["lab", "two.yaml", "--on", "kubernetes"])
            .args(["--namespace", self.namespace, "--generator-image", IMAGE])
            .args(["--rounds", &rounds.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Checks that a run has all rounds of both variants, and has removed its objects.
    fn check_whole(&self, output: &Output, rounds: usize) {
        let said = words(output);
        // Exit code 7: a check may withhold the verdict on a busy machine.
        assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
        let recording = recording(self.folder.path());
        let counted = recording["rounds"].as_array().expect("rounds").iter();
        let counted = counted.filter(|round| round["disturbed"] != true);
        assert_eq!(counted.count(), 2 * rounds, "{said}");
        assert_eq!(self.node.left_in(self.namespace), "");
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        self.node.kubectl(&["delete", "namespace", self.namespace]);
    }
}

/// An HTTP proxy on loopback that only tunnels. Returns its address and the number of tunnels.
fn proxy() -> io::Result<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let tunnels = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tunnels);
    // It ends with the process of the tests.
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            thread::spawn(move || tunnel(client, &counted));
        }
    });
    Ok((address, tunnels))
}

fn tunnel(mut client: TcpStream, counted: &AtomicUsize) -> io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head
        .strip_prefix("CONNECT ")
        .and_then(|rest| rest.split(' ').next())
        .ok_or_else(|| io::Error::other("not a tunnel"))?;
    let mut server = TcpStream::connect(target)?;
    counted.fetch_add(1, Ordering::Relaxed);
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || io::copy(&mut from_server, &mut to_client));
    io::copy(&mut client, &mut server).map(|_| ())
}

#[test]
fn a_plugin_for_credentials_and_a_proxy_lead_to_the_cluster() {
    let Some(access) = Access::of("access-plugin") else {
        return;
    };
    let pki = access.node.state.join("pki");
    let pem = |name: &str| fs::read_to_string(pki.join(name)).expect("a certificate and its key");
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "clientCertificateData": pem("admin.crt"),
            "clientKeyData": pem("admin.key"),
        },
    });
    let file = access.folder.path().join("credential.json");
    fs::write(&file, credential.to_string()).expect("a file");
    let kubeconfig = access.kubeconfig(&json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [file],
        "interactiveMode": "Never",
    }}));
    let (address, tunnels) = proxy().expect("a port");
    let output = access
        .weigh(&kubeconfig, 2)
        .env("HTTPS_PROXY", format!("http://{address}"))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .expect("it ends");
    access.check_whole(&output, 2);
    assert!(tunnels.load(Ordering::Relaxed) > 0);
}

#[test]
fn an_account_with_the_documented_rights_runs_a_lab() {
    let Some(access) = Access::of("access-rights") else {
        return;
    };
    let kubeconfig = access.token();
    let output = access.weigh(&kubeconfig, 2).output().expect("it ends");
    access.check_whole(&output, 2);
}

#[test]
fn credentials_that_end_during_a_run_leave_the_whole_rounds() {
    let Some(access) = Access::of("access-ended") else {
        return;
    };
    let kubeconfig = access.token();
    let mut weigh = access.weigh(&kubeconfig, 20).spawn().expect("weigh starts");
    let pods = || {
        let names = ["get", "pods", "-n", access.namespace, "-o", "name"];
        access.node.kubectl(&names)
    };
    wait_until(
        "the second round has begun",
        Duration::from_secs(90),
        || pods().contains("-r2"),
    );
    // A token ends with its account.
    access
        .node
        .kubectl(&["delete", "serviceaccount", "weigh", "-n", access.namespace]);
    wait_until("weigh has ended", Duration::from_secs(120), || {
        weigh.try_wait().is_ok_and(|ended| ended.is_some())
    });
    let output = weigh.wait_with_output().expect("it has ended");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("does not accept the credentials"), "{said}");
    let recording = recording(access.folder.path());
    let rounds = recording["rounds"].as_array().expect("rounds");
    assert!(rounds.len() >= 2, "the first round is whole: {said}");
}
