//! Checks that every command of the README and of `docs/` works, if it can run here.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use e2e::{Server, weigh};

use crate::pr::Repository;

/// Beginnings of commands that are not run here, each with the reason.
const ELSEWHERE: [(&str, &str); 29] = [
    (
        "weigh ab http://web-a.shop.svc",
        "it needs a cluster; systems::kubernetes compares two Services",
    ),
    (
        "weigh load http://web-a.shop.svc",
        "it needs a cluster; systems::kubernetes loads a Service",
    ),
    (
        "weigh init --compose",
        "it needs compose; lab::compose has tests of it",
    ),
    (
        "weigh lab labs/nginx/nginx.yaml",
        "it needs an engine; lab::compose runs such a lab",
    ),
    ("labs/compose/images", "it needs an engine"),
    (
        "weigh lab labs/compose/",
        "it needs an engine and those images",
    ),
    (
        "weigh lab containers.yaml",
        "it needs an engine; lab::containers runs it as printed",
    ),
    (
        "weigh lab delay.yaml --on kubernetes",
        "it needs a cluster; systems::kubernetes runs such a lab",
    ),
    (
        "target/release/weigh lab ratelimiter/kubernetes",
        "it needs a cluster",
    ),
    (
        "target/release/weigh lab containers/manifests",
        "it needs a cluster; systems::kubernetes runs such a lab",
    ),
    (
        "target/release/weigh lab containers/mesh",
        "it needs a cluster and Envoy",
    ),
    (
        "target/release/weigh lab containers/istio",
        "it needs a cluster and Istio; systems::kubernetes_istio runs it",
    ),
    ("ci/cluster/istio.sh", "it builds or starts Istio"),
    (
        "labs/layers/certificates.sh",
        "it makes the certificates of that lab",
    ),
    (
        "target/release/weigh lab containers/ways",
        "it needs a cluster and an engine",
    ),
    ("kubectl ", "it needs a cluster"),
    ("cargo xtask engine", "it starts an engine"),
    ("cargo xtask cluster", "it starts a cluster"),
    (
        "cargo build --release -p weigh -p ratelimiter",
        "it builds what the images of the cluster are made of",
    ),
    (
        "cargo build --release -p weigh -p gateway",
        "it builds what the images of that lab are made of",
    ),
    ("make ", "it sets the machine up and runs these tests"),
    ("./setup ", "it sets the machine up"),
    ("cargo xtask dist", "report::dist has tests of it"),
    ("cargo bench", "it measures"),
    ("cargo xtask attack", "systems::attack has tests of it"),
    (
        "weigh lab graphql-server --flamegraph",
        "it needs perf; lab::flamegraph has tests of it",
    ),
    (
        "weigh bisect api --good v1.4.0",
        "lab::pr has tests of it, among 16 commits",
    ),
    (
        "weigh ab http://127.0.0.1:8080/ http://127.0.0.1:8081/ --attach-a PID",
        "it needs the ids of two servers; lab::why has a test of it",
    ),
    ("weigh pr api other", "two labs, of which lab::pr has tests"),
];

/// Replacements in commands: long durations, and names that differ on the reader's machine.
const SHORTER: [(&str, &str); 14] = [
    (
        "weigh lab labs/first/first.yaml",
        "weigh lab labs/first/first.yaml --rounds 2",
    ),
    (
        "weigh lab labs/tutorial/tutorial.yaml",
        "weigh lab labs/tutorial/tutorial.yaml --rounds 2",
    ),
    ("weigh ab http", "weigh ab --rounds 2 http"),
    ("--until \"typical ±2%\"", "--until \"typical ±50%\""),
    // Several pages begin with the same command, which replaces no file.
    (
        "weigh init --command 'my-server --listen {{addr}}'",
        "rm -rf labs/first labs/proxy; weigh init --command 'my-server --listen {{addr}}'",
    ),
    ("-n 1000000", "-n 2000"),
    ("-z 30s", "-z 1s"),
    ("-z 1m", "-z 1s"),
    ("-z 5s", "-z 1s"),
    ("-z 5m", "-z 1s"),
    ("--prometheus 9464", "--prometheus 0"),
    ("--serve 8090", "--serve 0"),
    ("lab my-lab.yaml", "lab labs/my-lab.yaml --rounds 2"),
    ("my-lab-…", "my-lab-monday"),
];

/// A server for the examples. It accepts any flags after its address.
const MY_SERVER: &str = "#!/bin/sh\nexec weigh null-server --listen \"$2\"\n";

/// A block of commands on a page.
struct Block {
    page: PathBuf,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folders of the pages with commands for `weigh`. The gateway's pages have a test of their own.
const FOLDERS: [&str; 3] = ["docs", "docs/start", "docs/guides"];

/// The blocks of commands of the README, of the pages of `docs/`, of the tutorial and of the guides.
fn blocks() -> Vec<Block> {
    let mut pages: Vec<PathBuf> = FOLDERS
        .iter()
        .flat_map(|folder| fs::read_dir(repository().join(folder)).expect("the pages"))
        .map(|entry| entry.expect("a page").path())
        .collect();
    pages.retain(|page| page.extension().is_some_and(|it| it == "md"));
    pages.push(repository().join("README.md"));
    pages.sort();
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for block in text.split("\n```").skip(1) {
            let Some((language, body)) = block.split_once('\n') else {
                continue;
            };
            let text = match language {
                "sh" => body.to_owned(),
                "console" => {
                    let typed = body.lines().filter_map(|line| line.strip_prefix("$ "));
                    typed.collect::<Vec<_>>().join("\n")
                }
                _ => continue,
            };
            let page = page.clone();
            found.push(Block { page, text });
        }
    }
    found
}

/// The first block of YAML of a page, which is a lab.
fn first_yaml(page: &str) -> String {
    let (_, lab) = page.split_once("```yaml\n").expect("a lab");
    let (lab, _) = lab.split_once("```").expect("the end of the lab");
    lab.to_owned()
}

impl Block {
    /// The commands of the block: the whole block if its lines belong together, else a command per line.
    fn commands(&self) -> Vec<String> {
        let whole = self.text.replace("\\\n", " ");
        match whole.contains(" &\n") {
            true => vec![whole],
            false => whole
                .lines()
                .map(|line| line.trim().to_owned())
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .collect(),
        }
    }
}

/// The repository of a reader with a lab, recordings, results of another tool, and a running server.
struct Stage {
    home: Repository,
    server: Server,
}

impl Stage {
    fn new() -> Stage {
        let home = Repository::new();
        home.write("delay", "150us");
        home.commit("a server that waits longer");
        let server = Server::of(&weigh(), &["null-server"]);
        fs::create_dir_all(home.path("bin")).expect("a folder");
        symlink(weigh(), home.path("bin/weigh")).expect("a link");
        home.write("bin/my-server", MY_SERVER);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(home.path("bin/my-server"), executable).expect("it is ours");
        for folder in [
            ".local/share/bash-completion/completions",
            ".zfunc",
            ".config/fish/completions",
        ] {
            fs::create_dir_all(home.path(folder)).expect("a folder");
        }
        home.write(
            "labs/graphql-server.yaml",
            "question: What does another server cost?\nload: {rate: 200/s, duration: 300ms, path: /}\n\
             warmup: 50ms\nrounds: 6\ntarget: server\nsystems:\n  server: {run: \"my-server --listen {{addr}}\"}\n\
             baseline: {name: first}\nvariants:\n  - {name: juniper-ntex-tuned}\n",
        );
        let linked = [
            // Not the whole gallery, because it contains installed programs.
            "labs/layers/records",
            "labs/router-extensibility",
            "labs/containers",
            "deploy",
        ];
        fs::create_dir_all(home.path("labs/layers")).expect("a folder");
        for folder in linked {
            symlink(repository().join(folder), home.path(folder)).expect("a link");
        }
        let tutorial = fs::read_to_string(repository().join("docs/start/tutorial.md"));
        home.write(
            "labs/tutorial/tutorial.yaml",
            &first_yaml(&tutorial.expect("the tutorial")),
        );
        let stage = Stage { home, server };
        stage.record();
        stage
    }

    /// Records the lab of the README, under the names that the pages use for its recordings.
    fn record(&self) {
        let readme = fs::read_to_string(repository().join("README.md")).expect("the README");
        self.home.write("labs/my-lab.yaml", &first_yaml(&readme));
        for day in ["monday", "tuesday"] {
            let run = self.output("weigh lab labs/my-lab.yaml --rounds 6 --out recordings");
            // Checks may withhold the verdict here, but the recording exists nevertheless.
            assert!([Some(0), Some(7)].contains(&run.status.code()), "{run:?}");
            self.runs(&format!("mv recordings/my-lab-2* recordings/my-lab-{day}"));
        }
        self.runs("cp -r recordings/my-lab-monday recordings/api-monday");
        let samples = repository().join("crates/recording/samples/more");
        self.runs(&format!(
            "cp '{0}/hey-three-runs.txt' hey-before.txt; cp '{0}/jmeter.jtl' before.jtl; \
             sed 's/Slowest:.0/Slowest: 1/' hey-before.txt > hey-after.txt; sed 's/,12,/,13,/' before.jtl > after.jtl",
            samples.display()
        ));
        let url = format!("http://{}/", self.server.address());
        // The numbers differ, because results in whole milliseconds could be the same and make identical
        // files.
        self.runs(&format!(
            "mkdir before after; for run in 1 2 3 4 5 6; do for side in before after; do \
             weigh load -n $((500 + ${{#side}})) -c 2 --format artillery {url} > $side/$run.json; done; done; \
             cp before/1.json before.json; cp after/1.json after.json"
        ));
    }

    fn runs(&self, command: &str) {
        let output = self.output(command);
        assert!(output.status.success(), "{command}: {output:?}");
    }

    /// Runs a command in bash.
    fn output(&self, command: &str) -> Output {
        Command::new("bash")
            .args(["-c", &format!("PATH=\"$BIN:$PATH\"; {command}")])
            .current_dir(self.home.folder())
            .env("BIN", self.home.path("bin"))
            .env("HOME", self.home.folder())
            .env("XDG_STATE_HOME", self.home.path("state"))
            .env_remove("GITHUB_STEP_SUMMARY")
            .output()
            .expect("bash starts")
    }

    /// The command with free ports and short durations.
    fn fitted(&self, command: &str) -> String {
        let mut fitted = command.to_owned();
        for (long, short) in SHORTER {
            fitted = fitted.replace(long, short);
        }
        if !fitted.contains("null-server") {
            return fitted.replace("127.0.0.1:8080", self.server.address());
        }
        let free = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        for (typed, listener) in ["127.0.0.1:8080", "127.0.0.1:8081"].iter().zip(&free) {
            let address = listener.local_addr().expect("an address");
            fitted = fitted.replace(typed, &address.to_string());
        }
        fitted
    }
}

#[test]
fn every_command_of_the_documents_that_can_run_here_does() {
    let stage = Stage::new();
    let (mut ran, mut elsewhere, mut failed) = (0, BTreeSet::new(), Vec::new());
    for block in blocks() {
        for command in block.commands() {
            let why = ELSEWHERE
                .iter()
                .find(|(begin, _)| command.starts_with(begin));
            if let Some((begin, _)) = why {
                elsewhere.insert(*begin);
                continue;
            }
            ran += 1;
            let output = stage.output(&stage.fitted(&command));
            let code = output.status.code();
            // A gate may be broken here, because its limit is meant for the reader's server.
            let is_right = code == Some(0) || command.contains("--gate") && code == Some(4);
            // Checks withhold verdicts if the machine is too busy for them.
            if !is_right && code != Some(7) {
                let page = block.page.display();
                failed.push(format!("{page}: {command}: {output:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(ran >= 20, "{ran}");
    let known: BTreeSet<&str> = ELSEWHERE.iter().map(|(begin, _)| *begin).collect();
    assert_eq!(elsewhere, known, "commands that are on no page any more");
}
