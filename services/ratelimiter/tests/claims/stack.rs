//! Starts the real compose stack: Redis, four rate limiters, HAProxy.
//!
//! Its images come from a registry or are built from images of a registry. To avoid downloads, this test
//! builds its own images from the programs of this machine. An override file puts them into the stack. The
//! rest of the stack is unchanged.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use test_client::{Connection, TestClient, now, post_json};

use crate::server::is_limited;

/// Maximum time for the containers to start.
const UP_WITHIN: Duration = Duration::from_secs(120);

/// A running stack. Dropping it removes its containers, volumes and images.
struct Stack {
    compose: Vec<String>,
    images: Vec<String>,
    folder: TempDir,
    port: u16,
}

fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn must(command: &mut Command) -> String {
    let output = run(command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn works(words: &[&str]) -> bool {
    let output = Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| output.status.success())
}

/// The command line of compose, or the reason why the stack cannot be started here.
fn compose() -> Result<Vec<&'static str>, &'static str> {
    if !works(&["docker", "info"]) {
        return Err("no Docker engine answers");
    }
    for words in [&["docker", "compose"][..], &["docker-compose"]] {
        if works(&[words, &["version"]].concat()) {
            return Ok(words.to_vec());
        }
    }
    Err("neither `docker compose` nor `docker-compose` is installed")
}

/// The path of a program on this machine.
#[expect(clippy::disallowed_methods, reason = "the one look for programs")]
fn find(program: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let aside = [PathBuf::from("/usr/sbin")];
    std::env::split_paths(&path)
        .chain(aside)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("`{program}` is not installed"))
}

/// Copies a program and its linked libraries to their own paths below `root`.
fn copy(program: &Path, to: &str, root: &Path) {
    let place = |file: &str| {
        let place = root.join(file.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    };
    fs::copy(program, place(to)).unwrap();
    for word in must(Command::new("ldd").arg(program)).split_whitespace() {
        if word.starts_with('/') && Path::new(word).is_file() {
            fs::copy(word, place(word)).unwrap();
        }
    }
}

/// Builds an image that contains only these programs.
fn image(name: &str, programs: &[PathBuf], changes: &[&str]) {
    let root = tempfile::tempdir().unwrap();
    for program in programs {
        let file = program.file_name().unwrap().to_string_lossy();
        copy(program, &format!("/usr/local/bin/{file}"), root.path());
    }
    for folder in ["data", "tmp"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    let archive = tempfile::NamedTempFile::new().unwrap();
    must(
        Command::new("tar")
            .args(["--create", "--file"])
            .arg(archive.path())
            .arg("--directory")
            .arg(root.path())
            .arg("."),
    );
    let mut import = Command::new("docker");
    import.arg("import");
    for change in changes {
        import.args(["--change", change]);
    }
    must(import.arg(archive.path()).arg(name));
}

impl Stack {
    /// Builds the images and starts the stack. The error is the reason why this machine cannot do it.
    fn start() -> Result<Self, String> {
        let compose = compose()?;
        let is_old = compose[0] == "docker-compose";
        let (redis, cli) = (find("redis-server")?, find("redis-cli")?);
        let haproxy = find("haproxy")?;
        let ratelimiter = PathBuf::from(env!("CARGO_BIN_EXE_ratelimiter"));
        let project = format!("weighbridge-test-{}", std::process::id());
        let name = |part: &str| format!("{project}-{part}");
        image(&name("redis"), &[redis, cli], &["WORKDIR /data"]);
        let command = r#"CMD ["haproxy", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]"#;
        image(&name("balancer"), &[haproxy], &[command]);
        let entry = r#"ENTRYPOINT ["/usr/local/bin/ratelimiter"]"#;
        image(
            &name("ratelimiter"),
            &[ratelimiter],
            &[entry, "USER 65534:65534"],
        );
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ratelimiter");
        let files = fs::canonicalize(files).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // The old compose supports configs only in a swarm.
        let mount = match is_old {
            true => format!(
                "    volumes: ['{}/haproxy.cfg:/usr/local/etc/haproxy/haproxy.cfg:ro']\n",
                files.display()
            ),
            false => String::new(),
        };
        let text = format!(
            "services:\n  redis:\n    image: {}\n    \
             command: [redis-server, --appendonly, 'yes', --protected-mode, 'no']\n  \
             ratelimiter:\n    image: {}\n    environment: {{RATELIMIT_STORE_DEADLINE_MS: '30000', \
             RATELIMIT_FAILED_REQ_PER_OBSERVED_SECONDS: '3600'}}\n  balancer:\n    image: {}\n{mount}",
            name("redis"),
            name("ratelimiter"),
            name("balancer"),
        );
        let own = folder.path().join("images.yaml");
        fs::write(&own, text).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut words: Vec<String> = compose.into_iter().map(str::to_owned).collect();
        if is_old {
            words.push("--compatibility".to_owned());
        }
        for file in [files.join("compose.yaml"), own] {
            words.extend(["--file".to_owned(), file.display().to_string()]);
        }
        words.extend(["--project-name".to_owned(), project.clone()]);
        let images = ["redis", "balancer", "ratelimiter"].map(name).to_vec();
        let stack = Self {
            compose: words,
            images,
            folder,
            port,
        };
        must(stack.command().args(["up", "--detach", "--no-build"]));
        Ok(stack)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.compose[0]);
        command
            .args(&self.compose[1..])
            .current_dir(self.folder.path())
            .env("RATELIMIT_EMAIL_KEY", "secret")
            .env("PUBLISHED_PORT", self.port.to_string());
        command
    }

    /// The name of the instance that serves a new connection. `None` while the stack starts.
    fn hostname(&self) -> Option<String> {
        let mut connection = Connection::try_open(&format!("127.0.0.1:{}", self.port)).ok()?;
        let query = r#"{"query": "{ serverinfo { hostname } }"}"#;
        connection.begin(&post_json("/graphql", query));
        // The proxy accepts connections before an instance does. Its response is then not JSON.
        let answer = connection.try_read(false).ok()?;
        let answer: Value = serde_json::from_slice(&answer.bytes).ok()?;
        let name = &answer["data"]["serverinfo"]["hostname"];
        name.as_str().map(str::to_owned)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // If this fails, the remaining containers show it.
        let _ = run(self.command().args(["down", "--volumes", "--timeout", "2"]));
        for image in &self.images {
            let _ = run(Command::new("docker").args(["image", "rm", "--force", image]));
        }
    }
}

#[test]
fn four_instances_of_the_compose_stack_serve_and_share_their_counts() {
    let stack = match Stack::start() {
        Ok(stack) => stack,
        Err(reason) => {
            judged::absent(format_args!("the compose stack: {reason}"));
            return;
        }
    };
    judged::ran();
    let deadline = now() + UP_WITHIN;
    let mut seen = BTreeSet::new();
    while seen.len() < 4 {
        assert!(now() < deadline, "only {seen:?} serve");
        match stack.hostname() {
            Some(name) => {
                seen.insert(name);
            }
            None => thread::park_timeout(Duration::from_millis(100)),
        }
    }
    let address = format!("127.0.0.1:{}", stack.port);
    let limited = (0..6).map(|number| {
        // Each on a new connection, so that different instances decide.
        let email = format!("user{}@example.com", number % 2);
        is_limited(
            &mut TestClient::new(&address),
            "LOGIN_FAILED",
            "192.0.2.9",
            &email,
        )
    });
    let limited: Vec<bool> = limited.collect();
    assert_eq!(limited, [false, false, false, false, false, true]);
}
