//! Control groups: detection, and the places that allow this process to create its own.
//!
//! The rig creates groups only *below the group that the run itself was put in*. A limit that was set on the
//! run therefore holds for its systems as well. (Version 2 forbids processes in a group that has limited
//! subgroups. The rig then takes the nearest ancestor that already passes the controllers to its subgroups,
//! but never a group above a limit.)
//!
//! A system joins as few groups as possible. One group counts its CPU time and is used to kill it. It joins
//! the `cpu` or `memory` controller only for a limit. In a group of the `cpu` controller the scheduler weighs
//! the whole system against the load generator as one unit, and that would change the measurement.
//!
//! Names: `weighbridge-OWNERPID-OWNERSTART-KEEPERPID/ID-NAME`. The start (clock ticks since boot)
//! distinguishes an owner from a later process with the same process id. So the folder of a killed run can be
//! distinguished from a folder in use.
//!
//! Absent on purpose: mounting hierarchies, enabling controllers in groups that do not belong to the run, and
//! weights of one system against another. [`crate::precedence`] sets the weight of the whole run against
//! other programs.

mod limit;
mod run;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use limit::{limits_of, settle};
pub(crate) use run::{kill_run, leftovers, remove_instance, remove_run, run_name};

/// The hierarchies that allow this process to create groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    v2: Option<Hierarchy>,
    v1: Vec<Hierarchy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    mount: PathBuf,
    /// The group that this process is in.
    own: PathBuf,
    /// Version 1: its controllers. Version 2: the controllers that it can pass to subgroups.
    controllers: Vec<String>,
}

impl Hierarchy {
    fn offers(&self, controller: &str) -> bool {
        self.controllers.iter().any(|offered| offered == controller)
    }
}

/// The groups of one system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Groups {
    pub(crate) v2: Option<PathBuf>,
    pub(crate) v1_cpu: Option<PathBuf>,
    pub(crate) v1_cpuacct: Option<PathBuf>,
    pub(crate) v1_memory: Option<PathBuf>,
}

impl Groups {
    /// Returns, for each hierarchy, the nearest ancestor that has `word` in its name, because a program may
    /// have created groups below its own. `None` if no name contains it.
    pub(crate) fn up_to(&self, word: &str) -> Groups {
        let up_to = |dir: &Option<PathBuf>| {
            let has_word = |dir: &&Path| {
                let name = dir.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.contains(word))
            };
            Some(dir.as_ref()?.ancestors().find(has_word)?.to_owned())
        };
        Groups {
            v2: up_to(&self.v2),
            v1_cpu: up_to(&self.v1_cpu),
            v1_cpuacct: up_to(&self.v1_cpuacct),
            v1_memory: up_to(&self.v1_memory),
        }
    }

    /// Kills every process in the groups at once, if the kernel supports that.
    pub(crate) fn kill(&self) {
        if let Some(dir) = &self.v2 {
            // Since Linux 5.14. On older kernels the caller kills the processes one by one, and it does so in
            // any case.
            let _older_kernel = write(&dir.join("cgroup.kill"), "1");
        }
    }

    /// Unused part of the memory limit in bytes, with page cache counted as free. `None` without a limit.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        let left = |dir: &Path, limit: &str, used: &str, cache: &str| {
            // The text `max` is not a number and means no limit.
            let limit = read_number(&dir.join(limit))?;
            let used = read_number(&dir.join(used))?;
            let cache = read_key(&dir.join("memory.stat"), cache).unwrap_or(0);
            Some(limit.saturating_sub(used.saturating_sub(cache)))
        };
        let v2 = self.v2.as_deref();
        let v1 = self.v1_memory.as_deref();
        v2.and_then(|dir| left(dir, "memory.max", "memory.current", "inactive_file"))
            .or_else(|| {
                let (limit, used) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
                left(v1?, limit, used, "total_inactive_file")
            })
    }

    /// Number of processes that the kernel killed because of the memory limit.
    pub(crate) fn out_of_memory_kills(&self) -> u64 {
        let v2 = self.v2.as_ref().map(|dir| dir.join("memory.events"));
        let v1 = self
            .v1_memory
            .as_ref()
            .map(|dir| dir.join("memory.oom_control"));
        [v2, v1]
            .into_iter()
            .flatten()
            .find_map(|file| read_key(&file, "oom_kill"))
            // Without a memory controller no limit can have killed anything.
            .unwrap_or(0)
    }
}

impl Hierarchies {
    /// Returns the hierarchies that this process can see.
    pub(crate) fn detect() -> Self {
        // Without `/proc` no groups are visible, and the usage comes from another source.
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    /// Returns the hierarchies that this process can see, with the groups of another process. `membership` is
    /// the `cgroup` file of that process.
    pub(crate) fn of(membership: &str) -> Self {
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::parse(&mountinfo, membership)
    }

    /// Parses the text of `mountinfo` (proc(5)) and `cgroup` (cgroups(7)).
    fn parse(mountinfo: &str, membership: &str) -> Self {
        let mut found = Self::default();
        for line in mountinfo.lines() {
            let Some(mount) = Mount::parse(line) else {
                continue;
            };
            let own = membership.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':');
                let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
                // The line of version 2 has no names. Version 1 lists its controllers in any order.
                let is_here = if mount.is_v2 {
                    names.is_empty()
                } else {
                    names
                        .split(',')
                        .any(|name| mount.options.iter().any(|option| option == name))
                };
                is_here.then(|| mount.folder_of(path)).flatten()
            });
            // The mount does not show this process's group, so no group can be created in this hierarchy.
            let Some(own) = own else { continue };
            let controllers = if mount.is_v2 {
                words(&mount.folder.join("cgroup.controllers"))
            } else {
                mount.options
            };
            let hierarchy = Hierarchy {
                mount: mount.folder,
                own,
                controllers,
            };
            if mount.is_v2 {
                // The hierarchy may be mounted twice. Both mounts show the same groups.
                found.v2.get_or_insert(hierarchy);
            } else {
                found.v1.push(hierarchy);
            }
        }
        found
    }

    fn v1(&self, controller: &str) -> Option<&Hierarchy> {
        self.v1.iter().find(|h| h.offers(controller))
    }

    /// Returns the group of a run in the version 1 hierarchy with the `cpu` controller, if that hierarchy
    /// exists. The outer `None` means that this process is itself in a group of the `cpu` controller (either
    /// version).
    pub(crate) fn cpu_below_root(&self, run: &str) -> Option<Option<PathBuf>> {
        if self.v2.as_ref().is_some_and(|v2| v2.offers("cpu")) {
            return None;
        }
        match self.v1("cpu") {
            None => Some(None),
            Some(v1) if v1.own == v1.mount => Some(Some(v1.own.join(run))),
            Some(_) => None,
        }
    }

    /// The groups of this process, in the hierarchies that it can see.
    pub(crate) fn own_groups(&self) -> Groups {
        let own = |hierarchy: &Hierarchy| hierarchy.own.clone();
        Groups {
            v2: self.v2.as_ref().map(own),
            v1_cpu: self.v1("cpu").map(own),
            v1_cpuacct: self.v1("cpuacct").map(own),
            v1_memory: self.v1("memory").map(own),
        }
    }

    /// The available versions, as text for people.
    pub(crate) fn describe(&self) -> &'static str {
        let has_v1 = ["cpu", "cpuacct", "memory"]
            .iter()
            .any(|controller| self.v1(controller).is_some());
        let v2_controls = self
            .v2
            .as_ref()
            .is_some_and(|v2| v2.offers("cpu") || v2.offers("memory"));
        match (has_v1, self.v2.is_some(), v2_controls) {
            (false, true, true) => "v2",
            (false, true, false) => "v2 without controllers",
            (true, true, true) => "v1 and v2",
            (true, true, false) => "v1 and v2 without controllers",
            (true, false, _) => "v1",
            (false, false, _) => "none",
        }
    }

    /// Every group below which a run's group may have been created.
    fn places(&self) -> Vec<&Path> {
        let v2 = self.v2.iter().flat_map(|v2| {
            v2.own
                .ancestors()
                .take_while(|ancestor| ancestor.starts_with(&v2.mount))
        });
        let mut places: Vec<&Path> = v2.collect();
        for hierarchy in &self.v1 {
            let is_used = ["cpu", "cpuacct", "memory"]
                .iter()
                .any(|controller| hierarchy.offers(controller));
            // `cpu` and `cpuacct` are often one hierarchy.
            if is_used && !places.contains(&hierarchy.own.as_path()) {
                places.push(&hierarchy.own);
            }
        }
        places
    }
}

/// A line of `mountinfo` that mounts a cgroup hierarchy.
struct Mount {
    is_v2: bool,
    /// The group that appears at the mount point.
    root: String,
    folder: PathBuf,
    options: Vec<String>,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let is_v2 = match kind.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let options = kind.nth(1)?.split(',').map(str::to_owned).collect();
        // Mount id, parent id and device come before the root and the mount point.
        let mut place = place.split(' ').skip(3);
        Some(Self {
            is_v2,
            root: place.next()?.to_owned(),
            // The kernel writes a space in a path as `\040`.
            folder: place.next()?.replace("\\040", " ").into(),
            options,
        })
    }

    /// Returns the folder of the group `path`, or `None` if the mount does not show it.
    fn folder_of(&self, path: &str) -> Option<PathBuf> {
        let inside = Path::new(path).strip_prefix(&self.root).ok()?;
        // A path with `..` is above the root of this namespace.
        let is_shown = inside
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        is_shown.then(|| {
            if inside.as_os_str().is_empty() {
                self.folder.clone()
            } else {
                self.folder.join(inside)
            }
        })
    }
}

/// Writes to a control file. `fs::write` would also try to create and truncate it.
fn write(file: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(file)?
        .write_all(value.as_bytes())
}

fn words(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The number after `key` in a file of `key number` lines.
pub(crate) fn read_key(file: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// The number in a file that contains only a number.
pub(crate) fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
