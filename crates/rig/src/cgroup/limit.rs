//! Creates a system's groups, limits them and reads the limits back.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Groups, Hierarchies, Hierarchy, read_number, words, write};
use crate::outcome::Enforced;
use crate::spec::ProcessLimits;

/// Period of CPU limits in microseconds. A limit is a quota per period. It is the kernel's default, and
/// container runtimes use it too.
const PERIOD_US: u32 = 100_000;

/// Puts the process `pid` (a launcher that still waits for its orders) into groups of its own,
/// `RUN/INSTANCE`, and limits them. A limit that the machine does not allow is skipped and reported.
pub(crate) fn settle(
    hierarchies: &Hierarchies,
    instance: &Path,
    limits: ProcessLimits,
    pid: i32,
) -> (Groups, Enforced) {
    let mut settling = Settling {
        instance,
        pid,
        groups: Groups::default(),
        enforced: Enforced::default(),
        reasons: Vec::new(),
    };
    if let Some(v2) = &hierarchies.v2 {
        settling.join_v2(v2, limits);
    }
    settling.join_v1(hierarchies, limits);
    let groups = std::mem::take(&mut settling.groups);
    (groups, settling.finish(limits))
}

/// The limits in force for groups that another program created.
pub(crate) fn limits_of(groups: &Groups) -> Enforced {
    let v2 = groups.v2.as_deref();
    // The text `max` is not a number and means no limit.
    let mut enforced = Enforced {
        cpus: v2.and_then(|dir| read_cpu_max(&dir.join("cpu.max"))),
        memory: v2.and_then(|dir| read_number(&dir.join("memory.max"))),
        ..Enforced::default()
    };
    let by_v2 = enforced.cpus.is_some() || enforced.memory.is_some();
    let v1 = Enforced {
        cpus: groups.v1_cpu.as_deref().and_then(read_v1_cpus),
        memory: groups.v1_memory.as_deref().and_then(read_v1_memory),
        ..Enforced::default()
    };
    let by_v1 = v1.cpus.is_some() || v1.memory.is_some();
    enforced.cpus = enforced.cpus.or(v1.cpus);
    enforced.memory = enforced.memory.or(v1.memory);
    enforced.by = match (by_v2, by_v1) {
        (true, true) => Some("cgroup v2 and cgroup v1".to_owned()),
        (true, false) => Some("cgroup v2".to_owned()),
        (false, true) => Some("cgroup v1".to_owned()),
        (false, false) => None,
    };
    enforced
}

struct Settling<'a> {
    instance: &'a Path,
    pid: i32,
    groups: Groups,
    enforced: Enforced,
    reasons: Vec<String>,
}

impl Settling<'_> {
    /// Joins one group for counting and killing. It is limited if version 2 has the controllers.
    fn join_v2(&mut self, v2: &Hierarchy, limits: ProcessLimits) {
        let mut wanted = Vec::new();
        if limits.cpus.is_some() && v2.offers("cpu") {
            wanted.push("cpu");
        }
        if limits.memory.is_some() && v2.offers("memory") {
            wanted.push("memory");
        }
        if !wanted.is_empty() {
            match self.join_v2_limited(v2, &wanted, limits) {
                Ok(()) => return,
                Err(reason) => self.reasons.push(reason),
            }
        }
        // No limit needs this group, so a failure is not reported. The usage then comes from another source,
        // and names it.
        if let Ok(dir) = self.make(&v2.own) {
            self.groups.v2 = self.join(dir).ok();
        }
    }

    fn join_v2_limited(
        &mut self,
        v2: &Hierarchy,
        wanted: &[&str],
        limits: ProcessLimits,
    ) -> Result<(), String> {
        let place = place_for(v2, wanted)?;
        let enable: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
        let dir = self.make_handing_on(&place, &enable.join(" "))?;
        let mut enforced = Enforced::default();
        // A closure, so that every failure reaches the single place that removes the group again.
        let limited = (|| {
            if let Some(cpus) = limits.cpus.filter(|_| wanted.contains(&"cpu")) {
                let max = format!("{} {PERIOD_US}", quota_us(cpus));
                set(&dir.join("cpu.max"), &max)?;
                // Read back, because the kernel may round and the report must show the limit in force.
                enforced.cpus = read_cpu_max(&dir.join("cpu.max"));
            }
            if let Some(bytes) = limits.memory.filter(|_| wanted.contains(&"memory")) {
                set(&dir.join("memory.max"), &bytes.to_string())?;
                // The file is absent if swap accounting is off. Then the group has no swap.
                let _no_swap = write(&dir.join("memory.swap.max"), "0");
                enforced.memory = read_number(&dir.join("memory.max"));
            }
            Ok(())
        })();
        if let Err(reason) = limited {
            let _left_to_the_run = fs::remove_dir(&dir);
            return Err(reason);
        }
        // Joined after the limits are set, so that the system never runs without them.
        self.groups.v2 = Some(self.join(dir)?);
        self.enforced.cpus = enforced.cpus;
        self.enforced.memory = enforced.memory;
        self.enforced.by = Some("cgroup v2".to_owned());
        Ok(())
    }

    fn join_v1(&mut self, hierarchies: &Hierarchies, limits: ProcessLimits) {
        // Version 1 sets only the limits that version 2 did not set. A machine may have both, with each
        // controller in either of them.
        let unmet_cpus = limits.cpus.filter(|_| self.enforced.cpus.is_none());
        if let (Some(cpus), Some(hierarchy)) = (unmet_cpus, hierarchies.v1("cpu")) {
            match self.join_v1_limited(hierarchy, |dir| limit_v1_cpu(dir, cpus)) {
                Ok((dir, cpus)) => {
                    self.enforced.cpus = cpus;
                    self.by_v1();
                    if hierarchy.offers("cpuacct") {
                        self.groups.v1_cpuacct = Some(dir.clone());
                    }
                    self.groups.v1_cpu = Some(dir);
                }
                Err(reason) => self.reasons.push(reason),
            }
        }
        let unmet_memory = limits.memory.filter(|_| self.enforced.memory.is_none());
        if let (Some(bytes), Some(hierarchy)) = (unmet_memory, hierarchies.v1("memory")) {
            match self.join_v1_limited(hierarchy, |dir| limit_v1_memory(dir, bytes)) {
                Ok((dir, memory)) => {
                    self.enforced.memory = memory;
                    self.by_v1();
                    self.groups.v1_memory = Some(dir);
                }
                Err(reason) => self.reasons.push(reason),
            }
        }
        // CPU time needs one group that counts it. A second group would only repeat the count.
        let is_counted = self.groups.v2.is_some() || self.groups.v1_cpuacct.is_some();
        if let (false, Some(hierarchy)) = (is_counted, hierarchies.v1("cpuacct"))
            && let Ok(dir) = self.make(&hierarchy.own)
        {
            self.groups.v1_cpuacct = self.join(dir).ok();
        }
    }

    fn join_v1_limited<T>(
        &self,
        hierarchy: &Hierarchy,
        limit: impl FnOnce(&Path) -> Result<T, String>,
    ) -> Result<(PathBuf, T), String> {
        let dir = self.make(&hierarchy.own)?;
        match limit(&dir) {
            Ok(limited) => Ok((self.join(dir)?, limited)),
            Err(reason) => {
                let _left_to_the_run = fs::remove_dir(&dir);
                Err(reason)
            }
        }
    }

    fn by_v1(&mut self) {
        self.enforced.by = Some(match self.enforced.by.as_deref() {
            Some("cgroup v2") => "cgroup v2 and cgroup v1".to_owned(),
            _ => "cgroup v1".to_owned(),
        });
    }

    /// Creates the group `PLACE/RUN/INSTANCE`.
    fn make(&self, place: &Path) -> Result<PathBuf, String> {
        let dir = place.join(self.instance);
        // Tried twice. Another run may take the run's folder for a stale one (it is empty between two
        // systems) and remove it in between.
        fs::create_dir_all(&dir)
            .or_else(|_| fs::create_dir_all(&dir))
            .map_err(|error| denied("make", &dir, &error))?;
        Ok(dir)
    }

    /// Like `make`, but also passes controllers from the run's group to the system's.
    fn make_handing_on(&self, place: &Path, enable: &str) -> Result<PathBuf, String> {
        let dir = place.join(self.instance);
        let run = dir
            .parent()
            .expect("an instance's group is below its run's");
        fs::create_dir_all(run).map_err(|error| denied("make", run, &error))?;
        set(&run.join("cgroup.subtree_control"), enable)?;
        self.make(place)
    }

    fn join(&self, dir: PathBuf) -> Result<PathBuf, String> {
        match write(&dir.join("cgroup.procs"), &self.pid.to_string()) {
            Ok(()) => Ok(dir),
            Err(error) => {
                let _left_to_the_run = fs::remove_dir(&dir);
                Err(denied("move a process into", &dir, &error))
            }
        }
    }

    /// Adds the reason why a requested limit is not in force.
    fn finish(self, limits: ProcessLimits) -> Enforced {
        let mut enforced = self.enforced;
        let mut unmet = Vec::new();
        if limits.cpus.is_some() && enforced.cpus.is_none() {
            unmet.push("cpus");
        }
        if limits.memory.is_some() && enforced.memory.is_none() {
            unmet.push("memory");
        }
        if !unmet.is_empty() {
            let reasons = if self.reasons.is_empty() {
                "this machine has no cgroup hierarchy with the controller".to_owned()
            } else {
                self.reasons.join("; ")
            };
            enforced.why_not = Some(format!("no limit on {}: {reasons}", unmet.join(" and ")));
        }
        enforced
    }
}

/// Returns the group that can contain limited groups in version 2.
fn place_for(v2: &Hierarchy, wanted: &[&str]) -> Result<PathBuf, String> {
    let has_all = |file: PathBuf| {
        let listed = words(&file);
        wanted.iter().all(|name| listed.iter().any(|l| l == name))
    };
    for place in v2.own.ancestors() {
        if has_all(place.join("cgroup.subtree_control")) {
            return Ok(place.to_owned());
        }
        // Only the run's own group may be changed. The kernel allows it when
        // the group is the root or holds no process.
        if place == v2.own && has_all(place.join("cgroup.controllers")) {
            let enable: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
            let control = place.join("cgroup.subtree_control");
            if write(&control, &enable.join(" ")).is_ok() {
                return Ok(place.to_owned());
            }
        }
        // Above the mount there are no groups, only folders.
        if place == v2.mount {
            break;
        }
        if let Some(file) = limiting_file(place) {
            return Err(format!(
                "`{}` limits the run itself, and its systems cannot leave that group",
                file.display()
            ));
        }
    }
    Err(format!(
        "no group above `{}` delegates the controllers {}. Start the run with `systemd-run --scope \
         --property=Delegate=yes` or in its own container",
        v2.own.display(),
        wanted.join(" and ")
    ))
}

/// The file that limits a group, if there is one.
fn limiting_file(group: &Path) -> Option<PathBuf> {
    ["cpu.max", "memory.max", "memory.high", "cpuset.cpus"]
        .into_iter()
        .map(|name| group.join(name))
        .find(|file| words(file).first().is_some_and(|word| word != "max"))
}

fn limit_v1_cpu(dir: &Path, cpus: f64) -> Result<Option<f64>, String> {
    let quota_file = dir.join("cpu.cfs_quota_us");
    let period_file = dir.join("cpu.cfs_period_us");
    set(&period_file, &PERIOD_US.to_string())?;
    set(&quota_file, &quota_us(cpus).to_string())?;
    Ok(read_v1_cpus(dir))
}

/// The limit of a version 1 group. `None` if its quota is -1.
fn read_v1_cpus(dir: &Path) -> Option<f64> {
    let read = |name: &str| u32::try_from(read_number(&dir.join(name))?).ok();
    let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
    Some(f64::from(quota) / f64::from(period))
}

/// The limit of a version 1 group. Without a limit its file contains the largest possible number, in whole
/// pages.
fn read_v1_memory(dir: &Path) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 62;
    read_number(&dir.join("memory.limit_in_bytes")).filter(|bytes| *bytes < NO_LIMIT)
}

fn limit_v1_memory(dir: &Path, bytes: u64) -> Result<Option<u64>, String> {
    set(&dir.join("memory.limit_in_bytes"), &bytes.to_string())?;
    // Limits memory and swap together. The file is absent if swap accounting is off.
    let _no_swap = write(&dir.join("memory.memsw.limit_in_bytes"), &bytes.to_string());
    Ok(read_number(&dir.join("memory.limit_in_bytes")))
}

/// CPU time per period, in microseconds.
fn quota_us(cpus: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and a machine with 2^40 CPUs would still fit"
    )]
    let quota = (cpus * f64::from(PERIOD_US)).round() as u64;
    quota
}

/// Parses `QUOTA PERIOD` as a number of CPUs.
fn read_cpu_max(file: &Path) -> Option<f64> {
    let words = words(file);
    let quota: u32 = words.first()?.parse().ok()?;
    let period: u32 = words.get(1)?.parse().ok()?;
    Some(f64::from(quota) / f64::from(period))
}

fn set(file: &Path, value: &str) -> Result<(), String> {
    write(file, value)
        .map_err(|error| format!("cannot write `{value}` to `{}`: {error}", file.display()))
}

fn denied(what: impl Display, dir: &Path, error: &io::Error) -> String {
    format!("cannot {what} cgroup `{}`: {error}", dir.display())
}
