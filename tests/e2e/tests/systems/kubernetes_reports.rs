//! Clusters with known trouble for load generators, by public reports: tainted nodes, several architectures, private
//! registries, other domains, many generators. Each runs, or ends within 30 s with a reason that names the object
//! and the remedy. They run on the real node of `ci/cluster/cluster.sh`, or are NOT RUN.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use e2e::{wait_until, weigh, weigh_command};
use judged::is_installed;
use serde_json::Value;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, counted, node, recording, with_api, words};
use crate::node::Node;

/// The time limit of a reason.
const SOON: Duration = Duration::from_secs(30);

/// A run of a lab in a namespace of its own.
struct Run<'n> {
    node: &'n Node,
    namespace: String,
    generator_image: String,
    folder: TempDir,
}

/// The parts of a lab of two null servers that differ between the claims.
struct Parts<'a> {
    image: &'a str,
    pull: &'a str,
    generators: u32,
    /// The lines of `pods`.
    pods: &'a str,
}

const LOCAL: Parts<'_> = Parts {
    image: IMAGE,
    pull: "never",
    generators: 1,
    pods: "",
};

impl Parts<'_> {
    fn lab(&self) -> String {
        format!(
            "question: Are two milliseconds found?\nload: {{rate: 100/s, duration: 2s, path: /}}\n\
             generators: {}\ntarget: server\n{}systems:\n  server:\n    settings: {{delay: 1ms}}\n    \
             image: {}\n    pull: {}\n    port: 8080\n    \
             command: \"null-server --listen {{{{addr}}}} --delay {{{{delay}}}}\"\n    \
             limits: {{cpus: 0.2, memory: 64MiB}}\nbaseline: {{name: early}}\n\
             variants: [{{name: late, with: {{server.delay: 3ms}}}}]\n\
             expect: {{status: 200, same-as: baseline}}\n",
            self.generators, self.pods, self.image, self.pull
        )
    }
}

impl<'n> Run<'n> {
    fn of(node: &'n Node, namespace: &str, lab: &str) -> Run<'n> {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("two.yaml"), lab).expect("a file");
        node.kubectl(&["create", "namespace", namespace]);
        Run {
            node,
            namespace: namespace.to_owned(),
            generator_image: IMAGE.to_owned(),
            folder,
        }
    }

    fn with_generator(self, image: &str) -> Run<'n> {
        Run {
            generator_image: image.to_owned(),
            ..self
        }
    }

    fn output(&self) -> Output {
        weigh_command()
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.node.state.join("kubeconfig"))
            .args(["lab", "two.yaml", "--on", "kubernetes", "--rounds", "1"])
            .args(["--namespace", &self.namespace])
            .args(["--generator-image", &self.generator_image])
            .output()
            .expect("weigh ends")
    }

    /// Checks that both variants have all requests, and that no object is left.
    fn is_whole(&self) -> Value {
        let output = self.output();
        let said = words(&output);
        // Exit code 7: a check may withhold the verdict on a busy machine.
        assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
        let recording = recording(self.folder.path());
        let rounds = counted(&recording);
        assert_eq!(rounds.len(), 2, "each variant once: {said}");
        for round in rounds {
            assert_eq!(round["outcomes"]["passed"], 200, "{round}");
        }
        assert_eq!(self.node.left_in(&self.namespace), "");
        recording
    }

    /// Checks that the run ends soon with all of these texts, and that no object is left.
    #[expect(
        clippy::disallowed_methods,
        reason = "the length of the run is the claim"
    )]
    fn is_refused(&self, texts: &[&str]) {
        let began = Instant::now();
        let output = self.output();
        let took = began.elapsed();
        let said = words(&output);
        assert!(!output.status.success(), "{said}");
        for text in texts {
            assert!(said.contains(text), "{text}: {said}");
        }
        assert!(took < SOON, "{took:?}: {said}");
        assert_eq!(self.node.left_in(&self.namespace), "");
    }
}

/// Makes claims at the same time, because each mostly waits for the cluster.
fn together<'n>(claims: Vec<Box<dyn FnOnce() + Send + 'n>>) {
    thread::scope(|scope| {
        for claim in claims {
            scope.spawn(claim);
        }
    });
}

#[test]
fn a_tainted_node_runs_pods_that_tolerate_the_taint_and_a_reason_names_the_key_for_others() {
    let Some(node) = node() else { return };
    node.kubectl(&["taint", "nodes", "node1", "pool=load:NoSchedule"]);
    let tolerate = "tolerations: [{key: pool, value: load}]";
    let both = format!("pods: {{generators: {{{tolerate}}}, systems: {{{tolerate}}}}}\n");
    let lab = Parts {
        generators: 2,
        pods: &both,
        ..LOCAL
    };
    Run::of(&node, "tolerated", &lab.lab()).is_whole();
    let taint = "untolerated taint";
    let of_generators = format!("pods: {{generators: {{{tolerate}}}}}\n");
    let of_systems = format!("pods: {{systems: {{{tolerate}}}}}\n");
    let refused = |namespace: &str, pods: &str, named: &[&str]| {
        let lab = Parts { pods, ..LOCAL };
        Run::of(&node, namespace, &lab.lab()).is_refused(named);
    };
    together(vec![
        Box::new(|| {
            let key = "`pods: {systems: {tolerations: …}}`";
            refused(
                "systems",
                &of_generators,
                &["-server-r1`", taint, key, "--pods-within"],
            );
        }),
        Box::new(|| {
            let key = "`pods: {generators: {tolerations: …}}`";
            let named = ["-generators-r1-0", taint, key, "--pods-within"];
            refused("generators", &of_systems, &named);
        }),
    ]);
}

/// The program of weigh for a machine that is neither of x86-64 nor of ARM.
fn of_another_architecture(folder: &Path) -> PathBuf {
    let mut program = fs::read(weigh()).expect("the program of weigh");
    // The field `e_machine` of ELF, and RISC-V.
    program[18..20].copy_from_slice(&243_u16.to_le_bytes());
    let path = folder.join("weigh");
    // With the rights of the program.
    fs::copy(weigh(), &path).expect("a copy");
    fs::write(&path, program).expect("a file");
    path
}

#[test]
fn an_image_that_no_node_can_run_or_pull_is_named_with_its_pod_and_the_remedy() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    let other = "localhost/other-architecture:test";
    node.image(other, &of_another_architecture(folder.path()));
    let architecture = node.kubectl(&[
        "get",
        "node",
        "node1",
        "-o",
        "jsonpath={.status.nodeInfo.architecture}",
    ]);
    let architecture = format!("the node `node1`, which is `{architecture}`");
    // No program listens at this port of the machine.
    let nowhere = "10.199.0.1:1/weigh:1";
    let system = |image: &'static str, pull: &'static str| Parts {
        image,
        pull,
        ..LOCAL
    };
    together(vec![
        Box::new(|| {
            let key = "`pods: {systems: {node-selector: …}}`";
            Run::of(&node, "format-system", &system(other, "never").lab()).is_refused(&[
                "-server-r1`",
                "exec format error",
                &architecture,
                key,
            ]);
        }),
        Box::new(|| {
            let key = "`pods: {generators: {node-selector: …}}`";
            Run::of(&node, "format-generator", &LOCAL.lab())
                .with_generator(other)
                .is_refused(&["-generators-r1-0", "exec format error", &architecture, key]);
        }),
        Box::new(|| {
            let key = "`pods: {systems: {image-pull-secrets: …}}`";
            Run::of(&node, "nowhere-system", &system(nowhere, "missing").lab()).is_refused(&[
                "-server-r1`",
                nowhere,
                "connection refused",
                key,
            ]);
        }),
        Box::new(|| {
            Run::of(&node, "nowhere-generator", &LOCAL.lab())
                .with_generator(nowhere)
                .is_refused(&["-generators-r1-0", nowhere, "`--generator-image`"]);
        }),
    ]);
}

/// The registry at the machine's end of the node's link, which the cluster reads without TLS.
const REGISTRY: &str = "10.199.0.1:5000";
/// The password `scales` of the user `weigh`.
const PASSWORDS: &str = "weigh:$2y$05$mwdjHzDGR1CtI8gojQXKWOtx5ASnayCK8u5ObEU3lBBHH9iChHYHy\n";

/// A registry of Debian's package `docker-registry` with a password.
struct Registry {
    server: Child,
    _folder: TempDir,
}

impl Registry {
    fn start() -> Registry {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path();
        fs::write(path.join("passwords"), PASSWORDS).expect("a file");
        let config = format!(
            "version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {0}/images}}}}\n\
             http: {{addr: '{REGISTRY}'}}\nauth: {{htpasswd: {{realm: test, path: {0}/passwords}}}}\n",
            path.display()
        );
        let file = path.join("config.yml");
        fs::write(&file, config).expect("a file");
        let server = Command::new("docker-registry")
            .arg("serve")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the registry starts");
        wait_until("the registry listens", Duration::from_secs(20), || {
            std::net::TcpStream::connect(REGISTRY).is_ok()
        });
        Registry {
            server,
            _folder: folder,
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ended = self.server.kill();
        let _code = self.server.wait();
    }
}

#[test]
fn a_private_registry_needs_a_secret_under_pods_and_a_reason_says_so_without_it() {
    // `./setup kubernetes` installs it.
    if !is_installed("docker-registry") {
        return;
    }
    let Some(node) = node() else { return };
    let _registry = Registry::start();
    let private = "10.199.0.1:5000/weigh:1";
    node.push(IMAGE, private, "weigh:scales");
    let secret = [
        "create",
        "secret",
        "docker-registry",
        "registry",
        "--docker-server=10.199.0.1:5000",
        "--docker-username=weigh",
        "--docker-password=scales",
    ];
    let key = "image-pull-secrets: [registry]";
    let pods = format!("pods: {{generators: {{{key}}}, systems: {{{key}}}}}\n");
    let parts = |pods| Parts {
        image: private,
        pull: "missing",
        pods,
        ..LOCAL
    };
    // Before a pod with the password has brought the image to the node.
    together(vec![
        Box::new(|| {
            let key = "`pods: {systems: {image-pull-secrets: …}}`";
            Run::of(&node, "no-secret-system", &parts("").lab()).is_refused(&[
                "-server-r1`",
                private,
                key,
            ]);
        }),
        Box::new(|| {
            let key = "`pods: {generators: {image-pull-secrets: …}}`";
            Run::of(&node, "no-secret-generator", &LOCAL.lab())
                .with_generator(private)
                .is_refused(&["-generators-r1-0", private, key]);
        }),
    ]);
    let run = Run::of(&node, "with-secret", &parts(&pods).lab()).with_generator(private);
    node.kubectl(&[&["-n", "with-secret"], &secret[..]].concat());
    run.is_whole();
}

/// The Service that is in the namespace already, without pods at first.
const OUTSIDE: &str = "
apiVersion: v1
kind: Service
metadata: {name: db, namespace: domain}
spec: {selector: {app: outside}, ports: [{port: 8080}]}
";
/// The Services of an API and its database.
const LIST: &str = "
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}}
  - {apiVersion: v1, kind: Service, metadata: {name: db}, spec: {selector: {app: db}, ports: [{port: 8080}]}}
  - apiVersion: v1
    kind: Pod
    metadata: {name: db, labels: {app: db}}
    spec: {containers: [{name: db, image: IMAGE, imagePullPolicy: Never, args: [null-server, --listen, '0.0.0.0:8080']}]}
";

#[test]
fn names_of_another_cluster_domain_stay_within_their_copy_and_eight_generators_begin_together() {
    let Some(node) = Node::up_with(&["1", "--domain", "corp.internal"]) else {
        return;
    };
    node.image(IMAGE, &weigh());
    let lab = |pods: &str| {
        format!(
            "question: Is nothing found?\nload: {{rate: 100/s, duration: 2s, path: /}}\ntarget: api\n{pods}\
             systems: {{api: {{manifests: {{files: api.yaml, service: api, workload: api}}, ready: {{within: 60s}}}}}}\n\
             baseline: {{name: one}}\nvariants: [{{name: other}}]\nexpect: {{status: 200}}\n"
        )
    };
    let mut run = Run::of(
        &node,
        "domain",
        &lab("pods: {cluster-domain: corp.internal}\n"),
    );
    let written = |name: &str, text: &str| {
        let file = run.folder.path().join(name);
        fs::write(&file, text).expect("a file");
        file.display().to_string()
    };
    let database = "http://db.domain.svc.corp.internal:8080/";
    let manifests = with_api(LIST, "0.0.0.0:8080", "default", database);
    written("api.yaml", &manifests);
    // Without pods, so that a name that leaves the copy reaches no server.
    let outside = written("outside.yaml", OUTSIDE);
    node.kubectl(&["apply", "--filename", &outside]);
    run.is_whole();

    // Without the key, the names would reach this pod.
    let labels = "--labels=app=outside";
    let image = format!("--image={IMAGE}");
    node.kubectl(&[
        "-n",
        "domain",
        "run",
        "outside",
        labels,
        &image,
        "--image-pull-policy=Never",
        "--",
        "null-server",
        "--listen",
        "0.0.0.0:8080",
    ]);
    node.kubectl(&[
        "-n",
        "domain",
        "wait",
        "--for=condition=Ready",
        "pod/outside",
        "--timeout=30s",
    ]);
    fs::write(run.folder.path().join("two.yaml"), lab("")).expect("a file");
    run.is_refused(&["`cluster.local`", "`pods: {cluster-domain: corp.internal}`"]);

    let eight = Parts {
        generators: 8,
        ..LOCAL
    };
    run = Run::of(&node, "eight", &eight.lab());
    let recording = run.is_whole();
    for round in counted(&recording) {
        let generators = round["generators"].as_array().expect("generators");
        assert_eq!(generators.len(), 8, "{round}");
        for generator in generators {
            assert_eq!(generator["planned"], 25, "{generator}");
            assert!(generator["began_late_us"].is_f64(), "{generator}");
            assert!(generator["lateness_us_p99"].is_f64(), "{generator}");
        }
    }
}
