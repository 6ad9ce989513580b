//! The launcher: the two processes between the keeper and a system.
//!
//! ```text
//! keeper ──► launch shepherd NAME ──► launch exec NAME  ═exec═►  the system
//! ```
//!
//! The *shepherd* stays: it watches one system, knows all its processes (see
//! `reaper`) and leaves when none is left. It ends everything when its socket
//! closes, that is when the keeper is gone. The *launcher* proper sets up its
//! own process (limits, CPUs, folder, death signal) and then turns into the
//! program; that way no code runs between `fork` and `exec`, and none of it
//! needs `unsafe`.
//!
//! What happens when a process is killed with SIGKILL:
//!
//! | killed | noticed by | what happens |
//! |---|---|---|
//! | owner (`weigh`) | keeper: its input closes | shepherds end their systems, keeper removes the cgroups |
//! | keeper | shepherds: their sockets close | each ends its system and removes its cgroups |
//! | owner and keeper | the same | the same |
//! | shepherd | kernel: the system has a parent-death signal; keeper: adopts what is left | both kill |
//! | owner, keeper and shepherd at once | kernel, by the parent-death signal | the system's first process dies; its descendants that have a cgroup are reported by the next run ([`crate::Rig::leftovers`]) |
//!
//! Out of reach: what a system asks another service to start (`dockerd`,
//! `systemd-run`, `cron`), and the death signal of a set-user-id program, which
//! the kernel clears (the keeper then does it).

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

/// The socket that is this process's standard input, as a handle that a program
/// executed later does not inherit.
fn own_socket() -> io::Result<UnixStream> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}
