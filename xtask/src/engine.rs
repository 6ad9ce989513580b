//! A private container engine for machines without an engine service. It is `dockerd` with its
//! data, socket and log in one folder. So the rest of the machine stays unchanged, and deleting the
//! folder removes everything.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::clock::{now, pause};

/// Start or stop a Docker engine in its own folder. `./setup containers` installs the engine.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Action on the engine.
    #[arg(value_enum)]
    act: Act,
    /// Folder for the engine's data, socket and log.
    #[arg(long, default_value = "/var/tmp/weighbridge-engine")]
    folder: PathBuf,
    /// Storage driver for images. `vfs` works on every file system, but it is slow.
    #[arg(long, default_value = "overlay2")]
    storage: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Act {
    /// Start the engine, and print the shell command that connects `weigh` and `docker` to it.
    Up,
    /// Stop the engine. Images stay.
    Down,
}

/// Time limit of a start, and of a stop.
const WITHIN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
/// Longest path of a socket that the kernel accepts, in bytes.
const LONGEST: usize = 107;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match args.act {
        Act::Up => up(&args.folder, &args.storage),
        Act::Down => down(&args.folder),
    }
}

#[expect(clippy::print_stdout, reason = "the answer: a line for a shell")]
fn up(folder: &Path, storage: &str) -> anyhow::Result<()> {
    let socket = folder.join("docker.sock");
    if socket.as_os_str().len() > LONGEST {
        bail!(
            "`{}` is too long for a socket; choose another --folder",
            socket.display()
        );
    }
    if pid_of(folder).is_none() {
        for part in ["data", "exec"] {
            fs::create_dir_all(folder.join(part))
                .with_context(|| format!("`{}` can be made", folder.display()))?;
        }
        let log = File::create(folder.join("dockerd.log"))?;
        // In a process group of its own, so that Ctrl-C in this terminal does not reach it.
        let mut engine = Command::new("dockerd")
            .arg(format!("--host=unix://{}", socket.display()))
            .arg(format!("--data-root={}", folder.join("data").display()))
            .arg(format!("--exec-root={}", folder.join("exec").display()))
            .arg(format!("--pidfile={}", folder.join("docker.pid").display()))
            .arg(format!("--storage-driver={storage}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .context("dockerd starts; `./setup containers` installs it, and it needs root")?;
        let began = now();
        while UnixStream::connect(&socket).is_err() {
            let has_ended = engine.try_wait()?.is_some();
            if has_ended || began.elapsed() > WITHIN {
                let log = folder.join("dockerd.log");
                let text = fs::read_to_string(&log).unwrap_or_default();
                let last = text.lines().last().unwrap_or_default();
                bail!(
                    "dockerd does not come up: {last}; its log is {}",
                    log.display()
                );
            }
            pause(LOOK);
        }
    }
    println!("export DOCKER_HOST=unix://{}", socket.display());
    Ok(())
}

fn down(folder: &Path) -> anyhow::Result<()> {
    let Some(pid) = pid_of(folder) else {
        return Ok(());
    };
    kill_process(pid, Signal::TERM)?;
    let began = now();
    while test_kill_process(pid).is_ok() {
        if began.elapsed() > WITHIN {
            bail!("dockerd (process {}) does not end", pid.as_raw_nonzero());
        }
        pause(LOOK);
    }
    Ok(())
}

/// The engine of this folder, if it runs. The process id alone may belong to another program by now.
fn pid_of(folder: &Path) -> Option<Pid> {
    let text = fs::read_to_string(folder.join("docker.pid")).ok()?;
    let pid = Pid::from_raw(text.trim().parse().ok()?)?;
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
    (name.trim() == "dockerd").then_some(pid)
}
