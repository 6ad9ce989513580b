//! The process table: parents, descendants and CPU time of processes.
//!
//! Everything comes from `/proc/PID/stat` (proc(5)). A process may end between two readings, so every reader
//! returns an `Option` and a missing process is normal.

use std::collections::BTreeMap;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// True if the process has ended, but its parent has not read its exit status.
    pub(crate) is_zombie: bool,
    /// Start in clock ticks since boot. Together with `pid` it identifies a process uniquely.
    pub(crate) start: u64,
    /// CPU time of the process itself, in clock ticks.
    pub(crate) own_ticks: u64,
    /// CPU time of children it has waited for, in clock ticks.
    pub(crate) waited_ticks: u64,
    /// The part of `own_ticks` and `waited_ticks` in the kernel.
    pub(crate) kernel_ticks: u64,
    /// The part of `waited_ticks` in the kernel.
    pub(crate) waited_kernel_ticks: u64,
}

impl Process {
    /// CPU time of the process itself in the kernel, in clock ticks.
    pub(crate) fn own_kernel_ticks(&self) -> u64 {
        self.kernel_ticks - self.waited_kernel_ticks
    }
}

/// Reads one process, or `None` if it is gone.
pub(crate) fn read(pid: i32) -> Option<Process> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Process> {
    let pid = stat.split(' ').next()?.parse().ok()?;
    // The second field is the program's name in brackets and may itself contain spaces and brackets. So the
    // fields are counted from the last bracket.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // `number` is the field's number in proc(5), where the state is the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        start: field(22)?,
        own_ticks: field(14)? + field(15)?,
        // The kernel's type is signed, but the value is never negative.
        waited_ticks: field(16)? + field(17)?,
        kernel_ticks: field(15)? + field(17)?,
        waited_kernel_ticks: field(17)?,
    })
}

/// All processes that are visible to this process.
fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(read)
        .collect()
}

/// Children, grandchildren and so on of `ancestor`, without itself.
pub(crate) fn descendants(ancestor: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        // Removed, so that each process is found once even if the table changed during the reading.
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// True if the process with this `pid` and `start` still runs (a zombie does not).
pub(crate) fn is_alive(pid: i32, start: u64) -> bool {
    read(pid).is_some_and(|process| process.start == start && !process.is_zombie)
}

/// Sends a signal. If the process is gone or belongs to another user, that is no error.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // A process may end between the reading of the table and the signal.
        let _gone = kill_process(pid, signal);
    }
}

/// Process id of this process.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) Z 7 42 42 0 -1 4228364 100 0 0 0 11 22 33 44 20 0 1 0 9876 0 0";
        assert_eq!(
            parse(stat),
            Some(Process {
                pid: 42,
                parent: 7,
                is_zombie: true,
                start: 9876,
                own_ticks: 33,
                waited_ticks: 77,
                kernel_ticks: 66,
                waited_kernel_ticks: 44,
            })
        );
    }

    #[test]
    fn this_process_is_alive_and_another_with_its_number_is_not() {
        let me = read(own_pid()).unwrap();
        assert!(is_alive(me.pid, me.start));
        assert!(!is_alive(me.pid, me.start + 1));
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(descendants(own_pid()).iter().any(|p| p.pid == pid));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!descendants(own_pid()).iter().any(|p| p.pid == pid));
    }
}
