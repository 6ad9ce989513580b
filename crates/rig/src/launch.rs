//! The launcher: the two processes between the keeper and a system.
//!
//! ```text
//! keeper ──► launch shepherd NAME ──► launch exec NAME  ═exec═►  the system
//! ```
//!
//! The *shepherd* stays. It watches one system, finds all its processes (see `reaper`) and exits when all of
//! them have ended. When its socket closes, the keeper is gone, and the shepherd ends everything. The
//! *launcher* proper sets up its own process (limits, CPUs, folder, death signal) and then turns into the
//! program. So no code runs between `fork` and `exec`, and the crate needs no `unsafe`.
//!
//! Effects of a process being killed with SIGKILL:
//!
//! | killed | noticed by | effect |
//! |---|---|---|
//! | owner (`weigh`) | keeper: its input closes | shepherds end their systems, keeper removes the cgroups |
//! | keeper | shepherds: their sockets close | each ends its system and removes its cgroups |
//! | owner and keeper | shepherds: their sockets close | each ends its system and removes its cgroups |
//! | shepherd | kernel: the system has a parent-death signal. Keeper: adopts the orphans | both kill |
//! | owner, keeper and shepherd at once | kernel, by the parent-death signal | the system's first process dies. The next run reports its descendants that have a cgroup ([`crate::Rig::leftovers`]) |
//!
//! Out of reach: processes that a system starts through another service (`dockerd`, `systemd-run`, `cron`).
//! The kernel clears the death signal of a set-user-id program (the keeper then kills it).

mod exec;
mod shepherd;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Exit code of a launcher that could not become the program.
const NOT_LAUNCHED: u8 = 125;

/// Runs the launcher with the arguments that the rig appended to
/// [`crate::KeeperCommand::launch`].
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let role = args.into_iter().next();
    let result = match role.as_ref().and_then(|role| role.to_str()) {
        Some("shepherd") => shepherd::run(),
        Some("exec") => exec::run(),
        _ => Err(io::Error::other(
            "expected `shepherd` or `exec`. Only the keeper starts this command",
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::console::complain("launch", &error);
            ExitCode::from(NOT_LAUNCHED)
        }
    }
}

/// Returns the socket on standard input, as a handle that a program executed later does not inherit.
fn own_socket() -> io::Result<UnixStream> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}
