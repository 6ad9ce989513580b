//! Responses of an engine, recorded from Docker 20.10. A server on a Unix socket of the test's own returns
//! them. So the tests include errors that a good engine does not produce on demand.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use engine::{
    ConnectError, ContainerError, ContainerSpec, Engine, Health, Host, ImageBuild, ImageError,
    Mount, Network, Removed, Resources,
};

/// Method and path of a request, and the response: status and body.
type Answers = &'static [(&'static str, u16, &'static str)];

/// The version response of Docker in Debian 12.
const VERSION: (&str, u16, &str) = (
    "GET /version",
    200,
    r#"{"Platform":{"Name":""},"Components":[{"Name":"Engine","Version":"20.10.24+dfsg1","Details":{}}],"Version":"20.10.24+dfsg1","ApiVersion":"1.41","MinAPIVersion":"1.12"}"#,
);

/// An engine that returns recorded responses.
struct Fake {
    folder: tempfile::TempDir,
    /// Received requests: the first line and the body.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn new(answers: Answers) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine.sock")).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                answer(socket, answers, &heard);
            }
        });
        Fake { folder, asked }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    fn engine(&self) -> Engine {
        Engine::connect(&Host::at(self.socket().to_str().unwrap())).unwrap()
    }

    /// All received requests that contain these words.
    fn asked(&self, words: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let matching = asked.iter().filter(|it| it.contains(words));
        matching.cloned().collect()
    }
}

/// Responds to one request and closes the connection.
fn answer(socket: UnixStream, answers: Answers, heard: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(&socket);
    let mut line = String::new();
    let mut length = 0;
    let mut is_chunked = false;
    let mut first = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let lower = line.to_lowercase();
        if first.is_empty() {
            first = line.trim().to_owned();
        }
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        is_chunked |= lower.starts_with("transfer-encoding: chunked");
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    // Only the end of a chunked body matters.
    while is_chunked && line != "0\r\n" {
        line.clear();
        let mut piece = Vec::new();
        reader.read_until(b'\n', &mut piece).unwrap();
        line = String::from_utf8_lossy(&piece).into_owned();
    }
    let asked = format!("{first}\n{}", String::from_utf8_lossy(&body));
    heard.lock().unwrap().push(asked);
    let (method, path) = first.split_once(' ').unwrap();
    // A client may add the version: `/v1.41/containers/json`.
    let versioned = path
        .strip_prefix("/v")
        .filter(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
    let path = versioned
        .and_then(|rest| rest.split_once('/'))
        .map_or(path.trim_start_matches('/'), |(_, rest)| rest);
    let asked = format!("{method} /{path}");
    let found = answers
        .iter()
        .chain([&VERSION])
        .find(|(what, ..)| asked.starts_with(what));
    let (status, body) = found.map_or(
        (500, r#"{"message":"not expected"}"#),
        |(_, status, body)| (*status, *body),
    );
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut socket = &socket;
    let _gone = socket.write_all(head.as_bytes());
    let _gone = socket.write_all(body.as_bytes());
}

fn spec() -> ContainerSpec {
    ContainerSpec {
        name: "run-api-1".to_owned(),
        run: "run".to_owned(),
        image: "api:1".to_owned(),
        command: vec!["serve".to_owned(), "--fast".to_owned()],
        env: vec![("A".to_owned(), "b=c".to_owned())],
        user: None,
        mounts: vec![Mount::Fresh {
            path: "/data".to_owned(),
        }],
        network: Network::Bridge {
            network: "run".to_owned(),
            port: 80,
            published: "127.0.0.1:10000".parse().unwrap(),
            is_over_udp: true,
        },
        resources: Resources {
            cpus: Some(0.25),
            memory: Some(64 << 20),
            cores: Some(vec![0, 2]),
        },
        checks_health: false,
    }
}

#[test]
fn an_older_engine_is_known_by_its_version() {
    let fake = Fake::new(&[(
        "GET /images/a/json",
        404,
        r#"{"message":"No such image: a:latest"}"#,
    )]);
    let engine = fake.engine();
    assert_eq!(engine.version().to_string(), "Docker Engine 20.10.24+dfsg1");
    assert_eq!(engine.version().api, "1.41");
    assert_eq!(engine.image("a"), Ok(None));
    assert_eq!(fake.asked("GET /images/a/json").len(), 1);
}

#[test]
fn an_engine_that_does_not_answer_is_said_with_its_socket_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.sock");
    let error = Engine::connect(&Host::at(path.to_str().unwrap())).unwrap_err();
    assert!(matches!(error, ConnectError::Silent { .. }));
    let text = error.to_string();
    assert!(
        text.contains("nothing.sock") && text.contains("DOCKER_HOST"),
        "{text}"
    );
    // A plain file where the socket should be, as a killed program leaves it.
    std::fs::write(&path, "").unwrap();
    let text = Engine::connect(&Host::at(path.to_str().unwrap()))
        .unwrap_err()
        .to_string();
    assert!(text.contains("refused"), "{text}");
}

#[test]
fn a_container_is_made_as_it_was_said_and_carries_its_run() {
    let fake = Fake::new(&[(
        "POST /containers/create",
        201,
        r#"{"Id":"4f","Warnings":[]}"#,
    )]);
    assert_eq!(fake.engine().create(&spec()), Ok("4f".to_owned()));
    let asked = fake
        .asked("POST /containers/create?name=run-api-1")
        .remove(0);
    for words in [
        r#""Image":"api:1""#,
        r#""Cmd":["serve","--fast"]"#,
        r#""Env":["A=b=c"]"#,
        r#""weighbridge.run":"run""#,
        r#""app.kubernetes.io/managed-by":"weighbridge""#,
        r#""NanoCpus":250000000"#,
        r#""Memory":67108864"#,
        r#""MemorySwap":67108864"#,
        r#""CpusetCpus":"0,2""#,
        r#""80/tcp":[{"HostIp":"127.0.0.1","HostPort":"10000"}]"#,
        r#""80/udp":[{"HostIp":"127.0.0.1","HostPort":"10000"}]"#,
        r#""Test":["NONE"]"#,
    ] {
        assert!(asked.contains(words), "{words} in {asked}");
    }
    // The volume can be found, too.
    assert_eq!(
        asked.matches(r#""weighbridge.run":"run""#).count(),
        2,
        "{asked}"
    );
}

#[test]
fn what_is_wrong_with_a_container_is_told_apart_by_status() {
    let fake = Fake::new(&[
        (
            "POST /containers/create",
            404,
            r#"{"message":"No such image: api:1"}"#,
        ),
        (
            "POST /containers/taken/start",
            409,
            r#"{"message":"name is in use."}"#,
        ),
        (
            "POST /containers/port/start",
            500,
            r#"{"message":"driver failed programming external connectivity on endpoint a: Bind for 127.0.0.1:10000 failed: port is already allocated"}"#,
        ),
        (
            "GET /containers/gone/json",
            404,
            r#"{"message":"No such container: gone"}"#,
        ),
        (
            "DELETE /containers/gone",
            404,
            r#"{"message":"No such container: gone"}"#,
        ),
        ("POST /containers/ended/stop", 304, ""),
    ]);
    let engine = fake.engine();
    assert!(matches!(
        engine.create(&spec()),
        Err(ContainerError::NoImage { .. })
    ));
    let taken = engine.start("taken").unwrap_err();
    assert_eq!(
        taken.to_string(),
        "the container `taken` conflicts with another: name is in use"
    );
    let port = engine.start("port").unwrap_err().to_string();
    assert!(
        port.contains("cannot start the container `port`") && port.contains("already allocated")
    );
    assert!(matches!(
        engine.inspect("gone"),
        Err(ContainerError::Missing { .. })
    ));
    assert_eq!(engine.remove("gone"), Ok(()));
    assert_eq!(engine.stop("ended", Duration::from_secs(5)), Ok(()));
}

#[test]
fn a_container_is_read_with_its_end_its_health_and_its_address() {
    let fake = Fake::new(&[
        (
            "GET /containers/dead/json",
            200,
            r#"{"Id":"dead","Image":"sha256:0a","State":{"Status":"exited","Running":false,"OOMKilled":true,"Pid":0,"ExitCode":137,"Error":""},"NetworkSettings":{"Networks":{}}}"#,
        ),
        (
            "GET /containers/up/json",
            200,
            r#"{"Id":"up","Image":"sha256:0a","State":{"Status":"running","Running":true,"OOMKilled":false,"Pid":4711,"ExitCode":0,"Health":{"Status":"starting","FailingStreak":0,"Log":[]}},"NetworkSettings":{"Networks":{"run":{"IPAddress":"172.18.0.2"}}}}"#,
        ),
    ]);
    let engine = fake.engine();
    let dead = engine.inspect("dead").unwrap();
    assert_eq!(
        (dead.exit_code, dead.is_out_of_memory, dead.pid),
        (Some(137), true, None)
    );
    assert_eq!(dead.error, None);
    let up = engine.inspect("up").unwrap();
    assert_eq!((up.exit_code, up.pid), (None, Some(4711)));
    assert_eq!(up.health, Some(Health::Starting));
    let address: std::net::IpAddr = "172.18.0.2".parse().unwrap();
    assert_eq!(up.addresses, [address]);
}

#[test]
fn an_image_that_cannot_be_fetched_or_built_is_said_in_the_words_of_the_engine() {
    let fake = Fake::new(&[
        (
            "POST /images/create",
            404,
            r#"{"message":"pull access denied for api, repository does not exist or may require 'docker login'"}"#,
        ),
        (
            "POST /build",
            200,
            "{\"stream\":\"Step 1/2 : FROM scratch\\n\"}\r\n{\"errorDetail\":{\"message\":\"COPY failed: no such file\"},\"error\":\"COPY failed: no such file\"}\r\n",
        ),
    ]);
    let (engine, stop) = (fake.engine(), AtomicBool::new(false));
    let mut log = Vec::new();
    let error = engine.pull("api:1", &mut log, &stop).unwrap_err();
    assert!(
        matches!(&error, ImageError::NotPulled { reason, .. } if reason.contains("access denied")),
        "{error}"
    );
    assert_eq!(
        fake.asked("fromImage=api&").len() + fake.asked("fromImage=api ").len(),
        1
    );
    let folder = tempfile::tempdir().unwrap();
    let build = ImageBuild {
        image: "api:1".to_owned(),
        context: folder.path().to_owned(),
        dockerfile: "Dockerfile".to_owned(),
        args: Vec::new(),
    };
    let absent = engine
        .build(&build, &mut log, &stop)
        .unwrap_err()
        .to_string();
    assert!(absent.contains("there is no `Dockerfile`"), "{absent}");
    std::fs::write(folder.path().join("Dockerfile"), "FROM scratch\nCOPY a /\n").unwrap();
    let failed = engine
        .build(&build, &mut log, &stop)
        .unwrap_err()
        .to_string();
    assert!(failed.contains("COPY failed: no such file"), "{failed}");
    let log = String::from_utf8(log).unwrap();
    assert!(log.contains("Step 1/2"), "{log}");
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let stopped = engine.build(&build, &mut Vec::new(), &stop);
    assert!(matches!(stopped, Err(ImageError::Interrupted { .. })));
}

#[test]
fn what_a_run_has_left_is_found_by_its_label_and_removed_in_order() {
    let fake = Fake::new(&[
        ("GET /containers/json", 200, r#"[{"Id":"c1"},{"Id":"c2"}]"#),
        ("DELETE /containers/c1", 204, ""),
        // Another client is just removing it.
        (
            "DELETE /containers/c2",
            409,
            r#"{"message":"removal of container c2 is already in progress"}"#,
        ),
        ("GET /networks", 200, r#"[{"Id":"n1","Name":"run"}]"#),
        ("DELETE /networks/n1", 204, ""),
        (
            "GET /volumes",
            200,
            r#"{"Volumes":[{"Name":"v1","Driver":"local","Mountpoint":"/x","Labels":{},"Options":{},"Scope":"local"}],"Warnings":null}"#,
        ),
        ("DELETE /volumes/v1", 204, ""),
    ]);
    let removed = fake.engine().sweep("run-1").unwrap();
    let expected = Removed {
        containers: 2,
        networks: 1,
        volumes: 1,
    };
    assert_eq!(removed, expected);
    let listed = fake.asked("weighbridge.run%3Drun-1");
    assert_eq!(
        listed.len(),
        3,
        "each list is filtered by the label: {listed:?}"
    );
    assert_eq!(
        fake.asked("DELETE /containers/c1?v=true&force=true").len(),
        1
    );
}

#[test]
fn what_cannot_be_removed_is_said_and_the_rest_is_removed() {
    let fake = Fake::new(&[
        ("GET /containers/json", 200, r#"[{"Id":"c1"},{"Id":"c2"}]"#),
        (
            "DELETE /containers/c1",
            500,
            r#"{"message":"device or resource busy"}"#,
        ),
        ("DELETE /containers/c2", 204, ""),
        ("GET /networks", 200, "[]"),
        ("GET /volumes", 200, r#"{"Volumes":null,"Warnings":null}"#),
    ]);
    let error = fake.engine().sweep("run-1").unwrap_err().to_string();
    assert!(error.contains("busy") && error.contains("run-1"), "{error}");
    assert_eq!(fake.asked("DELETE /containers/c2").len(), 1);
}
