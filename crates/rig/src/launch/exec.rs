//! The launcher proper: sets up its own process, then becomes the program.

use std::env;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::own_socket;
use crate::lines::{Lines, write_value};
use crate::protocol::{Launch, Program, Refusal, Step};

/// Turns into the program. Returns only if the program could not be executed, after it sent the reason to the
/// shepherd. On success the kernel closes the socket, and the shepherd sees that too.
pub(super) fn run() -> io::Result<()> {
    let mut socket = own_socket()?;
    // When this line arrives, the shepherd has already moved this process into its cgroups.
    let launch: Launch = Lines::default().wait_value(&mut socket)?;
    let refusal = become_program(&launch, &socket);
    write_value(&mut socket, &refusal)?;
    Err(io::Error::other(refusal.reason))
}

fn become_program(launch: &Launch, _held_until_exec: &UnixStream) -> Refusal {
    if let Err(refusal) = prepare(launch) {
        return refusal;
    }
    let Program {
        path,
        arg0,
        args,
        env,
        ..
    } = &launch.program;
    // `exec` returns only if it fails.
    let error = Command::new(path)
        .arg0(arg0)
        .args(args)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .exec();
    if error.kind() == io::ErrorKind::NotFound && path.exists() {
        return Step::Exec.refused("the interpreter or loader that it names does not exist");
    }
    Step::Exec.refused(error)
}

fn prepare(launch: &Launch) -> Result<(), Refusal> {
    let die_with_parent = || -> io::Result<()> {
        // Set here, because the signal applies to this process and survives `exec`.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the shepherd has already died, no signal will arrive.
        let parent = getppid().map(|pid| pid.as_raw_nonzero().get());
        if parent != Some(launch.parent) {
            return Err(io::Error::other("its shepherd has died"));
        }
        Ok(())
    };
    die_with_parent().map_err(|error| Step::Watch.refused(error))?;
    if let Some(cpus) = &launch.cpus_allowed {
        let mut set = CpuSet::new();
        for &cpu in cpus {
            if cpu >= CpuSet::MAX_CPU {
                return Err(Step::Pin.refused(format!("there is no CPU {cpu}")));
            }
            set.set(cpu);
        }
        sched_setaffinity(None, &set).map_err(|error| Step::Pin.refused(error))?;
    }
    env::set_current_dir(&launch.program.folder).map_err(|error| Step::Folder.refused(error))
}
