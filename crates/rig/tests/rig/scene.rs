//! A test's folder, its rig and its view of the process table.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rig::{KeeperCommand, ProcessLimits, Rig, System, SystemSpec};
use tempfile::TempDir;

/// Every step here should be faster than this, even on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_rig-fixture");
/// Names of all processes of a `family`.
pub(crate) const FAMILY: [&str; 5] = ["first", "child", "own-group", "daemon", "stubborn-daemon"];

/// A folder that appears on the command line of every process of the test.
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("rig-scene-")
            .tempdir()
            .unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn rig(&self) -> Rig {
        Rig::start(self.keeper_command(), &self.path().join("logs")).unwrap()
    }

    pub(crate) fn keeper_command(&self) -> KeeperCommand {
        let folder = self.path().to_str().unwrap().to_owned();
        KeeperCommand {
            program: PathBuf::from(FIXTURE),
            keeper: vec!["keeper".to_owned(), folder.clone()],
            launch: vec!["launch".to_owned(), folder],
        }
    }

    /// The fixture in one of its modes as a system.
    pub(crate) fn system(&self, mode: &str, rest: &[&str]) -> SystemSpec {
        let mut command = vec![
            FIXTURE.to_owned(),
            mode.to_owned(),
            self.path().to_str().unwrap().to_owned(),
        ];
        command.extend(rest.iter().map(|&word| word.to_owned()));
        SystemSpec {
            name: mode.to_owned(),
            command,
            folder: self.path().to_owned(),
            env: Vec::new(),
            limits: ProcessLimits::default(),
            cpus_allowed: None,
            log: self.path().join(format!("logs/{mode}.log")),
        }
    }

    /// Processes of this test: number and command line.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let folder = self.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| {
                let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
                let bytes = fs::read(entry.path().join("cmdline")).ok()?;
                let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
                (pid != std::process::id() && line.contains(folder)).then_some((pid, line))
            })
            .collect()
    }

    /// The fixture's processes in one of its modes.
    pub(crate) fn processes_in(&self, mode: &str) -> Vec<u32> {
        self.processes_with(&format!(" {mode} {}", self.path().display()))
    }

    pub(crate) fn shepherds(&self) -> Vec<u32> {
        self.processes_with(" shepherd ")
    }

    fn processes_with(&self, words: &str) -> Vec<u32> {
        let processes = self.processes().into_iter();
        processes
            .filter(|(_, line)| line.contains(words))
            .map(|(pid, _)| pid)
            .collect()
    }

    pub(crate) fn wait_for_family(&self) {
        until("the family is complete", || {
            FAMILY.iter().all(|name| self.path().join(name).exists())
        });
    }

    pub(crate) fn expect_nothing_left(&self) {
        until("no process is left", || self.processes().is_empty());
    }
}

impl Drop for Scene {
    /// A failed test must not leave processes either.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (pid, _) in self.processes() {
                kill(pid);
            }
        }
    }
}

/// Waits for a condition. Panics if it does not become true.
pub(crate) fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    #[expect(
        clippy::disallowed_methods,
        reason = "deadline of a wait for a condition"
    )]
    let deadline = Instant::now() + DEADLINE;
    while !is_true() {
        #[expect(
            clippy::disallowed_methods,
            reason = "deadline of a wait for a condition"
        )]
        let now = Instant::now();
        assert!(now < deadline, "{what}: not within {DEADLINE:?}");
        #[expect(
            clippy::disallowed_methods,
            reason = "the only pause, in a loop on a condition that has no event"
        )]
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the system has logged this line.
pub(crate) fn wait_for_line(rig: &mut Rig, system: &System, line: &str) {
    let mut probe = || match system.last_lines().iter().any(|found| found == line) {
        true => Ok(()),
        false => Err(format!("no line `{line}` yet")),
    };
    rig.wait_ready(system, DEADLINE, &mut probe, &AtomicBool::new(false))
        .unwrap();
}

/// Folders of cgroups with a name that satisfies a condition.
pub(crate) fn cgroups(is_meant: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if is_meant(&entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    found
}

/// The cgroups of a keeper's run.
pub(crate) fn cgroups_of_keeper(keeper_pid: u32) -> Vec<PathBuf> {
    let ending = format!("-{keeper_pid}");
    cgroups(|name| name.starts_with("weighbridge-") && name.ends_with(&ending))
}

pub(crate) fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
