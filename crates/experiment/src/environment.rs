//! Inputs from outside, read in one place: the wall clock, PATH, and the program's own location.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use engine::Surroundings;
use jiff::Timestamp;
use recording::{Environment, Version};
use rig::machine::{self, Machine};

/// The version of `weigh`, with the commit of its source code if it is known.
pub const VERSION: &str = env!("WEIGH_VERSION");

/// The current monotonic time, for durations.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place in weigh that reads the monotonic clock"
)]
pub fn instant() -> Instant {
    Instant::now()
}

/// The current time in UTC, for users and file names.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A seed from the clock: the nanosecond within the current second, below 1,000,000,000. Two runs hardly ever
/// get equal seeds. The recording contains it, so that the run can be repeated.
pub fn fresh_seed() -> u64 {
    // Short enough to type, and exact in every JSON reader.
    now().subsec_nanosecond().unsigned_abs().into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place in weigh that reads the environment beside clap"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The folders that contain programs.
pub fn search_path() -> OsString {
    // Without PATH, no program is found by its name alone.
    variable("PATH").unwrap_or_default()
}

/// The current folder. `None` if it was removed.
pub(crate) fn current_folder() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// The variables that locate container engines.
pub(crate) fn engines() -> Surroundings {
    Surroundings {
        docker_host: inherited("DOCKER_HOST"),
        runtime_dir: variable("XDG_RUNTIME_DIR").map(PathBuf::from),
    }
}

/// A variable that systems inherit.
pub fn inherited(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}

/// The parent folder of Unix sockets: the folder for temporary files, or `/tmp` if that path is too long for
/// a socket name. The kernel allows 107 bytes for the whole path.
pub(crate) fn socket_parent() -> PathBuf {
    const LONGEST: usize = 50;
    let usual = std::env::temp_dir();
    if usual.as_os_str().len() > LONGEST {
        return PathBuf::from("/tmp");
    }
    usual
}

/// The folder for the state of this user's programs (XDG Base Directory Specification). `None` without a
/// home.
pub fn state_folder() -> Option<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from);
    folder("XDG_STATE_HOME")
        // The specification requires programs to ignore relative paths.
        .filter(|path| path.is_absolute())
        .or_else(|| Some(folder("HOME")?.join(".local/state")))
}

/// The command line as typed.
pub fn command_line() -> Vec<String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The running program, for the start of the keeper. A normal path could lead to another program, because a
/// build step of the lab may have replaced it.
pub(crate) fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// The path of the program, for a lab that a user may read and run again.
pub fn own_path() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// The version of this `weigh`.
pub fn version() -> Version {
    // Empty if the build had no access to git.
    let commit = env!("WEIGH_COMMIT");
    Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: (!commit.is_empty()).then(|| commit.to_owned()),
    }
}

/// The fingerprints of the source code that measures, as `cargo xtask method` writes them.
const METHODS: &str = include_str!("../../recording/method.toml");

/// The fingerprint of the source code that sends load and records it.
pub(crate) fn method_fingerprint() -> &'static str {
    let mut lines = METHODS.lines();
    let quoted = lines.find_map(|line| line.strip_prefix("fingerprint = "));
    quoted.unwrap_or_default().trim_matches('"')
}

/// The machine before and after a run, for the recording.
pub fn describe(
    before: &Machine,
    generator_cpus: Option<Vec<usize>>,
    cores_awake: bool,
) -> Environment {
    let after = machine::snapshot();
    let steal = before.steal_ms.zip(after.steal_ms);
    Environment {
        cpu_model: before.cpu_model.clone(),
        cores: u32::try_from(before.cpus_online).ok(),
        generator_cpus,
        kernel: Some(before.kernel.clone()),
        os: before.os.clone(),
        virtualization: before.virtualization.clone(),
        memory_bytes: before.memory_bytes,
        governor: before.governor.clone(),
        boost: before.boost,
        accounting: Some(before.cgroups.clone()),
        smt: before.smt,
        cores_awake: Some(cores_awake),
        precedence: None,
        transparent_huge_pages: before.transparent_huge_pages.clone(),
        busy_share_before: None,
        load_average_before: before.load_average,
        load_average_after: after.load_average,
        steal_ms: steal.map(|(before, after)| after.saturating_sub(before)),
        noise_floor: None,
        other: BTreeMap::new(),
    }
}
