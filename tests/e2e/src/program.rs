//! Paths of the programs under test.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The `weigh` of this checkout, built once per test run.
#[must_use]
pub fn weigh() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "weigh")).clone()
}

/// A `weigh` without the settings of the person who runs the tests. It does not inherit the width of the
/// terminal, colors, locale, the tare of this machine or the log level.
#[must_use]
pub fn weigh_command() -> Command {
    let mut command = Command::new(weigh());
    for variable in ["COLUMNS", "LINES", "NO_COLOR", "WEIGH_LOG"] {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C.UTF-8");
    command.env("XDG_STATE_HOME", "/nowhere");
    command
}

/// The [fixture server](../fixture/index.html), built once per test run.
#[must_use]
pub fn fixture() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "fixture")).clone()
}

/// The server with a memory, built once per test run.
#[must_use]
pub fn shop() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "shop")).clone()
}

/// The [coprocessor](../runner/index.html) of the router labs, built once per test run.
#[must_use]
pub fn runner() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "runner")).clone()
}

/// The gateway of this checkout, built once per test run.
#[must_use]
pub fn gateway() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "gateway")).clone()
}

/// The origin of the router labs, built once per test run.
#[must_use]
pub fn planets() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "planets")).clone()
}

/// The catalog of this checkout, built once per test run.
#[must_use]
pub fn catalog() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "catalog")).clone()
}

/// The server with TLS and HTTP/2, built once per test run.
#[must_use]
pub fn modern() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("example", "modern")).clone()
}

/// A GraphQL server on juniper and ntex, built once per test run.
#[must_use]
pub fn graphql_server() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| built("bin", "graphql-server-juniper-ntex"))
        .clone()
}

/// The webhook of this checkout, built once per test run.
#[must_use]
pub fn route_webhook() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "route-webhook")).clone()
}

/// The rate limiter, built once per test run.
#[must_use]
pub fn ratelimiter() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "ratelimiter")).clone()
}

/// The `xtask` program of this checkout, built once per test run.
#[must_use]
pub fn xtask() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built("bin", "xtask")).clone()
}

/// Cargo's variables about the test's own package. Build scripts that read them would take them as their own.
/// Their crates and all dependent crates would then be built again, once for the test and once for the next
/// build.
pub(crate) const OF_THE_TEST: [&str; 8] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// Builds a `bin` or `example` (a no-op if it is current) into the target folder of this test. It uses the
/// features of the whole workspace. With a package's own features, shared dependencies would be built twice.
fn built(kind: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("tests lie in target/PROFILE/deps")
        .to_path_buf();
    let target = profile.parent().expect("target/PROFILE lies in target");
    let mut cargo = Command::new(env!("CARGO"));
    for variable in OF_THE_TEST {
        cargo.env_remove(variable);
    }
    let status = cargo
        .args(["build", "--quiet", "--workspace"])
        .args([&format!("--{kind}"), name])
        .arg("--target-dir")
        .arg(target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .status()
        .expect("cargo starts");
    assert!(status.success(), "`{name}` does not build");
    match kind {
        "bin" => profile.join(name),
        _ => profile.join("examples").join(name),
    }
}
