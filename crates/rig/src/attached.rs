//! Programs that the rig did not start, and their use of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use thiserror::Error;

use crate::cgroup::{self, Groups, Hierarchies};
use crate::outcome::Enforced;
use crate::processes::{self, Process};
use crate::usage::{CpuTime, Usage, UsageSource, cpu_of_cgroup, duration_of, of_tree};

/// A program that the rig did not start. The rig only reads its usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A process by its id and its start, because a later process may get the same id.
    Process { pid: i32, start: u64 },
    /// The folder of a control group.
    Group { folder: PathBuf, groups: Groups },
}

/// The reason why the usage of a program cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AttachError {
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The process id.
        pid: i32,
    },
    /// The process has no group with the word in its path that counts processor time.
    #[error(
        "no control group of process {pid} has `{word}` in its path and counts processor time. See /proc/{pid}/cgroup"
    )]
    NotInGroup {
        /// The process id.
        pid: i32,
        /// The word that the path of the group must contain.
        word: String,
    },
    /// The folder does not count processor time.
    #[error(
        "expected the folder of a control group with `cpu.stat` (version 2) or `cpuacct.usage` (version 1), found neither in `{}`", folder.display()
    )]
    NoGroup {
        /// Path of the folder.
        folder: PathBuf,
    },
}

impl Attached {
    /// Attaches to a process of this machine. Its descendants count too while they live.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn process(pid: i32) -> Result<Attached, AttachError> {
        let found = processes::read(pid).filter(|process| !process.is_zombie);
        let process = found.ok_or(AttachError::NoProcess { pid })?;
        Ok(Attached(Kind::Process {
            pid,
            start: process.start,
        }))
    }

    /// Attaches to a control group of version 1 or 2.
    ///
    /// # Errors
    /// If the folder is not a group that counts processor time.
    pub fn group(folder: &Path) -> Result<Attached, AttachError> {
        // The folder is tried as either version, because only one version has the file that is read.
        let groups = Groups {
            v2: Some(folder.to_owned()),
            v1_cpu: Some(folder.to_owned()),
            v1_cpuacct: Some(folder.to_owned()),
            v1_memory: None,
        };
        if cpu_of_cgroup(&groups).is_none() {
            let folder = folder.to_owned();
            return Err(AttachError::NoGroup { folder });
        }
        Ok(Attached(Kind::Group {
            folder: folder.to_owned(),
            groups,
        }))
    }

    /// Attaches to the control groups of a process, of version 1 and 2. From each path it takes the nearest
    /// group with `word` in its name. Groups below it count. A group above it could count other programs as
    /// well.
    ///
    /// # Errors
    /// If there is no such process, or its groups do not count processor time.
    pub fn groups_of(pid: i32, word: &str) -> Result<Attached, AttachError> {
        let membership = fs::read_to_string(format!("/proc/{pid}/cgroup"));
        let membership = membership.map_err(|_| AttachError::NoProcess { pid })?;
        let groups = Hierarchies::of(&membership).own_groups().up_to(word);
        let folder = groups.v2.as_ref().or(groups.v1_cpuacct.as_ref());
        let (Some(folder), true) = (folder.cloned(), cpu_of_cgroup(&groups).is_some()) else {
            return Err(AttachError::NotInGroup {
                pid,
                word: word.to_owned(),
            });
        };
        Ok(Attached(Kind::Group { folder, groups }))
    }

    /// The limits that are in force for its groups. Other limits are `None`.
    #[must_use]
    pub fn limits(&self) -> Enforced {
        match &self.0 {
            Kind::Process { .. } => Enforced::default(),
            Kind::Group { groups, .. } => cgroup::limits_of(groups),
        }
    }

    /// Ids of its living processes.
    #[must_use]
    pub fn pids(&self) -> Vec<i32> {
        let tree = self.tree();
        let living = tree.iter().filter(|process| !process.is_zombie);
        living.map(|process| process.pid).collect()
    }

    /// Resource usage since the start. `None` if the program has ended. The processor time of a process includes its
    /// ended threads, but not its ended child processes.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        let tree = self.tree();
        match &self.0 {
            Kind::Process { .. } if tree.is_empty() => None,
            Kind::Process { .. } => {
                let cpu = tree.iter().map(|process| processor_time(process.pid));
                let cpu = cpu.sum::<Option<Duration>>()?;
                let kernel: u64 = tree.iter().map(|process| process.own_kernel_ticks()).sum();
                let cpu = CpuTime {
                    total: cpu,
                    kernel: Some(duration_of(kernel)),
                    source: UsageSource::Clock,
                };
                Some(of_tree(&tree, &Groups::default(), cpu))
            }
            Kind::Group { groups, .. } => Some(of_tree(&tree, groups, cpu_of_cgroup(groups)?)),
        }
    }

    /// The living processes of the program. Empty if its first process has ended, even if other processes
    /// survive.
    fn tree(&self) -> Vec<Process> {
        match &self.0 {
            Kind::Process { pid, start } => {
                let first = processes::read(*pid);
                let Some(first) = first.filter(|it| it.start == *start && !it.is_zombie) else {
                    return Vec::new();
                };
                let mut tree = processes::descendants(*pid);
                // A process that has ended has no clock any more.
                tree.retain(|process| !process.is_zombie);
                tree.push(first);
                tree
            }
            Kind::Group { folder, .. } => members(folder),
        }
    }
}

/// The processes of a group and of the groups below it.
fn members(folder: &Path) -> Vec<Process> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let own = text.lines().filter_map(|line| line.trim().parse().ok());
    let mut found: Vec<Process> = own.filter_map(processes::read).collect();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        found.extend(members(&entry.path()));
    }
    found
}

/// Processor time of all living and ended threads of a process. `None` if the process has ended. One call
/// takes about a microsecond.
#[must_use]
pub fn processor_time(pid: i32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid)).ok()?;
    Some(Duration::from(clock_gettime(clock).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_charged_for_what_it_and_its_ended_threads_have_done() {
        let own = Attached::process(processes::own_pid()).expect("this process runs");
        let before = own.usage().expect("it can be read");
        let spin = || {
            let begin = processor_time(processes::own_pid()).expect("its clock");
            while processor_time(processes::own_pid()).expect("its clock") < begin + SPUN {}
        };
        std::thread::spawn(spin).join().expect("no panic");
        let after = own.usage().expect("it can be read");
        assert!(after.cpu >= before.cpu + SPUN, "{before:?} {after:?}");
        assert!(after.memory_now.is_some_and(|bytes| bytes > 0));
        assert_eq!(after.source, UsageSource::Clock);
    }

    const SPUN: Duration = Duration::from_millis(20);

    #[test]
    fn what_is_not_there_is_refused() {
        // Beyond the largest process id of Linux, 2^22.
        let error = Attached::process(i32::MAX).unwrap_err();
        assert_eq!(error, AttachError::NoProcess { pid: i32::MAX });
        let folder = tempfile::tempdir().expect("a folder");
        let error = Attached::group(folder.path()).unwrap_err().to_string();
        assert!(error.contains("found neither in"), "{error}");
    }

    #[test]
    fn groups_that_are_not_a_program_s_own_are_not_taken_for_it() {
        let pid = processes::own_pid();
        let error = Attached::groups_of(pid, "no group has this name").unwrap_err();
        assert!(matches!(error, AttachError::NotInGroup { .. }), "{error}");
        let error = Attached::groups_of(i32::MAX, "docker").unwrap_err();
        assert_eq!(error, AttachError::NoProcess { pid: i32::MAX });
    }

    #[test]
    fn a_group_counts_in_the_unit_of_its_version() {
        for (file, text, source) in [
            (
                "cpu.stat",
                "usage_usec 1500\nuser_usec 1000\n",
                UsageSource::CgroupV2,
            ),
            ("cpuacct.usage", "1500000\n", UsageSource::CgroupV1),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join(file), text).expect("a file");
            let usage = Attached::group(folder.path()).expect(file).usage();
            let usage = usage.expect("it can be read");
            assert_eq!(
                (usage.cpu, usage.source),
                (Duration::from_micros(1500), source)
            );
        }
    }
}
