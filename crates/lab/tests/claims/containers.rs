//! Systems that are containers.

use std::path::PathBuf;

use insta::assert_snapshot;
use lab::{Network, Probe, Pull, Volume};

use crate::{check, lab};

const RUN: &str = "    run: serve {{stack}} --listen {{addr}}\n";

/// The example lab with a container as its server.
fn contained(keys: &str) -> [(&str, &str); 1] {
    [(RUN, keys)]
}

#[test]
fn a_system_may_be_a_container() {
    let lab = lab(&contained(
        "    image: api:{{stack}}
    command: serve --stack {{stack}}
    port: 8080
    volumes: [./conf:/etc/api:ro, /tmp]
    user: 1000:1000
    pull: always
    build: [make static, {context: ., dockerfile: \"{{stack}}.Dockerfile\", args: {STACK: \"{{stack}}\"}}]
    ready: {state: healthy, within: 1m}
    limits: {cpus: 0.5, memory: 64MiB}
",
    ));
    let [setup] = lab.variants[0].systems() else {
        panic!("one system");
    };
    let container = setup.container().expect("a container");
    assert_eq!(container.image, "api:b");
    assert_eq!(setup.command().len(), 3);
    assert_eq!(container.network, Network::Bridge { port: 8080 });
    assert_eq!(container.user.as_deref(), Some("1000:1000"));
    assert_eq!(container.pull, Pull::Always);
    let build = container.build.as_ref().expect("it is built");
    assert_eq!(build.context, PathBuf::from("labs"));
    assert_eq!(build.dockerfile, "b.Dockerfile");
    assert_eq!(build.args, [("STACK".to_owned(), "b".to_owned())]);
    // Commands before it are allowed, as for any system.
    assert_eq!(setup.build.len(), 1);
    let [Volume::Shown { source, .. }, Volume::Fresh { path }] = container.volumes.as_slice()
    else {
        panic!("{:?}", container.volumes);
    };
    assert_eq!(
        (source.as_path(), path.as_str()),
        (std::path::Path::new("labs/conf"), "/tmp")
    );
    assert_eq!(setup.ready.probe, Probe::Healthy);
    assert_eq!(setup.limits.cpus, Some(0.5));
}

#[test]
fn without_a_port_it_is_in_the_network_of_this_machine_and_told_where_to_listen() {
    let lab = lab(&contained("    image: api\n    command: serve {{addr}}\n"));
    let container = lab.baseline.systems()[0].container().expect("a container");
    assert_eq!(container.network, Network::Host);
    assert_eq!(container.pull, Pull::Missing);
    assert_snapshot!(check(&contained("    image: api\n")), @"
    error: `server` has no listen address
     --> labs/x.yaml:9:12
      |
    9 |     image: api
      |            ^^^
      |
      = help: write the `port` on which it listens in the container. Or add `{{addr}}`, `{{port}}` or `{{url}}` to `command` or `env`
    ");
}

#[test]
fn a_container_is_in_one_network() {
    assert_snapshot!(check(&contained("    image: api\n    port: 80\n    network: host\n")), @"
    error: `port` cannot be used with `network: host`
      --> labs/x.yaml:10:11
       |
    10 |     port: 80
       |           ^^
    11 |     network: host
       |              ---- this selects the network of this machine
       |
       = help: several containers cannot share a port on this machine. Pass `{{port}}` in `command` or `env`, or remove `network`
    ");
    assert_snapshot!(check(&contained("    image: api\n    network: bridge\n")), @"
    error: `network: bridge` without `port`
      --> labs/x.yaml:10:14
       |
    10 |     network: bridge
       |              ^^^^^^
       |
       = help: write the port on which it listens in the container: `port: 8080`
    ");
    assert_snapshot!(check(&contained("    image: api\n    port: 0\n")), @"
    error: `0` is not a port
      --> labs/x.yaml:10:11
       |
    10 |     port: 0
       |           ^
       |
       = help: write a whole number from 1 to 65535
    ");
}

#[test]
fn a_process_cannot_have_the_keys_of_a_container() {
    assert_snapshot!(check(&[(RUN, "    run: serve {{addr}}\n    user: me\n")]), @"
    error: `user` without `image`
      --> labs/x.yaml:10:5
       |
    10 |     user: me
       |     ^^^^
       |
       = help: only a container has this key. Add `image`, or remove this key
    ");
    assert_snapshot!(check(&[(RUN, "    run: serve {{addr}}\n    image: a\n    port: 1\n")]), @"
    error: `run` cannot be used with `image`
      --> labs/x.yaml:9:5
       |
     9 |     run: serve {{addr}}
       |     ^^^
    10 |     image: a
       |     ----- this key makes it a container
       |
       = help: a container runs its `command`. Remove `run` or `image`
    ");
    assert_snapshot!(check(&[(RUN, "    url: http://a\n    image: a\n    port: 1\n")]), @"
    error: `image` cannot be used with `url`
      --> labs/x.yaml:10:5
       |
     9 |     url: http://a
       |     --- this key means that it already runs
    10 |     image: a
       |     ^^^^^
       |
       = help: `weigh` does not build, start or limit a system that already runs. Remove one of the two
    ");
    assert_snapshot!(check(&[(RUN, "    run: serve {{addr}}\n    build: {context: .}\n")]), @"
    error: this step builds an image, but the system has no `image`
      --> labs/x.yaml:10:12
       |
    10 |     build: {context: .}
       |            ^^^^^^^^^^^^
       |
       = help: write the name of the image under `image`. A process is built by commands
    ");
    assert_snapshot!(check(&[(RUN, "    run: serve {{addr}}\n    ready: healthy\n")]), @"
    error: `healthy` without `image`
      --> labs/x.yaml:10:12
       |
    10 |     ready: healthy
       |            ^^^^^^^
       |
       = help: only an image has a health check. Give a `path` that must answer
    ");
}

#[test]
fn a_container_has_a_digest_and_no_version_of_its_own() {
    assert_snapshot!(check(&contained("    image: a\n    port: 1\n    version: a --version\n")), @"
    error: `version` cannot be used with `image`
      --> labs/x.yaml:11:5
       |
    11 |     version: a --version
       |     ^^^^^^^
       |
       = help: the recording already contains the digest of its image. Remove this key
    ");
}

#[test]
fn a_container_that_a_command_would_start_is_refused_with_what_to_write() {
    assert_snapshot!(check(&[(RUN, "    run: docker run --rm -p {{port}}:80 nginx\n")]), @"
    error: `run` contains `docker run`
     --> labs/x.yaml:9:10
      |
    9 |     run: docker run --rm -p {{port}}:80 nginx
      |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: `weigh` cannot limit, watch or stop a container that docker starts. Write `image: NAME` instead of `run`, with `command`, `env`, `port` and `volumes`
    ");
}

#[test]
fn an_image_is_built_last() {
    assert_snapshot!(check(&contained("    image: a\n    port: 1\n    build: [{context: .}, make]\n")), @"
    error: this step builds the image, but it is not the last step of `build`
      --> labs/x.yaml:11:13
       |
    11 |     build: [{context: .}, make]
       |             ^^^^^^^^^^^^
       |
       = help: `context` must come once, after the build commands
    ");
}

#[test]
fn values_of_a_container_are_what_an_engine_takes() {
    assert_snapshot!(check(&contained("    image: a b\n    port: 1\n    user: a b\n    volumes: [data:/data, x]\n")), @"
    error: `a b` is not the name of an image
     --> labs/x.yaml:9:12
      |
    9 |     image: a b
      |            ^^^
      |
      = help: write it as for a container engine, for example `nginx:1.29` or `registry.example.com/api@sha256:…`

    error: `a b` is not a container user
      --> labs/x.yaml:11:11
       |
    11 |     user: a b
       |           ^^^
       |
       = help: write `USER` or `USER:GROUP` with names or numbers

    error: `data:/data` is not a volume: the named volume `data` would keep its content between starts, so rounds would differ
      --> labs/x.yaml:12:15
       |
    12 |     volumes: [data:/data, x]
       |               ^^^^^^^^^^
       |
       = help: write `./folder:/path`, `./folder:/path:ro`, or `/path` for a volume that is empty at each start

    error: `x` is not a volume: `x` is not an absolute path in a container
      --> labs/x.yaml:12:27
       |
    12 |     volumes: [data:/data, x]
       |                           ^
       |
       = help: write `./folder:/path`, `./folder:/path:ro`, or `/path` for a volume that is empty at each start
    ");
    assert_snapshot!(check(&contained("    image: a\n    port: 1\n    volumes: [\"./{{port}}:/x\"]\n")), @r#"
    error: this text needs an address that is not known yet
      --> labs/x.yaml:11:15
       |
    11 |     volumes: ["./{{port}}:/x"]
       |               ^^^^^^^^^^^^^^^
       |
       = help: addresses are known only while systems run. Use them in `command` or `env`
    "#);
}

#[test]
fn a_container_in_its_own_network_cannot_reach_what_listens_on_this_machine() {
    assert_snapshot!(check(&contained("    image: a\n    port: 1\n    env: {DB: \"{{db.addr}}\"}\n  db: {run: \"db {{addr}}\"}\n")), @"
    error: `server` cannot reach `db` from its container network
     --> labs/x.yaml:9:12
      |
    9 |     image: a
      |            ^
      |
      = help: `db` listens at 127.0.0.1 of this machine. Give `server` `network: host` and no `port`, or make `db` a container with a `port`
    ");
    lab(&contained(
        "    image: a\n    port: 1\n    env: {DB: \"{{db.addr}}\"}\n  db: {image: db, port: 6379}\n",
    ));
    lab(&contained(
        "    run: serve {{addr}} {{db.addr}}\n  db: {image: db, port: 6379}\n",
    ));
}

#[test]
fn a_container_is_not_told_sockets() {
    assert_snapshot!(check(&contained("    image: a\n    command: serve {{socket}}\n")), @"
    error: the container `server` uses the address of a Unix socket
     --> labs/x.yaml:9:12
      |
    9 |     image: a
      |            ^
      |
      = help: containers cannot see the Unix sockets of systems. Use `{{addr}}`, `{{port}}` or `{{url}}`
    ");
}

#[test]
fn a_container_that_runs_already_can_be_attached_to() {
    let it = lab(&contained(
        "    url: http://127.0.0.1:8080\n    attach: {container: web-1}\n",
    ));
    let url = it.baseline.systems()[0]
        .elsewhere()
        .expect("it runs already");
    assert_eq!(url.attach, Some(lab::Attach::Container("web-1".to_owned())));
    assert_snapshot!(check(&contained("    url: http://127.0.0.1:8080\n    attach: {container: -f}\n")), @"
    error: `-f` is not the name of a container
      --> labs/x.yaml:10:25
       |
    10 |     attach: {container: -f}
       |                         ^^
       |
       = help: write its name or id, as shown by `docker ps`
    ");
}

#[test]
fn two_images_do_not_share_a_name() {
    let built = |image: &str| {
        format!(
            "    image: {image}\n    port: 1\n    build: {{context: ., args: {{STACK: \"{{{{stack}}}}\"}}}}\n"
        )
    };
    assert_snapshot!(check(&contained(&built("api"))), @"
    error: several images are named `api`
     --> labs/x.yaml:9:12
      |
    9 |     image: api
      |            ^^^
      |
      = help: they are built in different ways. Give each image its own name, such as `api:{{setting}}`
    ");
    lab(&contained(&built("api:{{stack}}")));
}
