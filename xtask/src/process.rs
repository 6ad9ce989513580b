//! Programs that a task starts: their reliable end, and their usage from the kernel.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::{now, pause};

/// A running program. Dropping it ends the program.
pub(crate) struct Process(Child);

/// Resources of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Bytes of resident memory.
    pub(crate) memory: u64,
    /// Number of open file descriptors.
    pub(crate) descriptors: u64,
}

impl Process {
    /// Starts a program and discards its output.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Process> {
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let started = command.stdout(Stdio::null()).spawn();
        started
            .map(Process)
            .with_context(|| format!("{command:?} starts"))
    }

    /// Starts a program that prints a URL such as `listening on http://ADDRESS` first. Returns that address. The command
    /// sets the destination of standard error.
    pub(crate) fn listening(command: &mut Command) -> anyhow::Result<(Process, String)> {
        command.stdin(Stdio::null());
        let started = command.stdout(Stdio::piped()).spawn();
        let mut process = started
            .map(Process)
            .with_context(|| format!("{command:?} starts"))?;
        let output = process.0.stdout.take().context("its output is read")?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        // The output must be read, because a program with a full pipe blocks.
        thread::spawn(move || output.lines().map_while(Result::ok).for_each(drop));
        let address = line.split_once("://").map(|(_, rest)| rest.trim());
        let Some(address) = address.and_then(|rest| rest.split('/').next()) else {
            bail!("{command:?} does not say where it listens: {line:?}");
        };
        Ok((process, address.to_owned()))
    }

    /// Sends SIGTERM and waits for the end. Returns an error if it takes longer, or the exit status is a
    /// failure.
    pub(crate) fn stop(mut self, patience: Duration) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::TERM).context("it has ended before")?;
        let end = now() + patience;
        loop {
            match self.0.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("it ended with {status}"),
                None if now() > end => bail!("it did not end within {patience:?}"),
                None => pause(Duration::from_millis(20)),
            }
        }
    }

    /// Resident memory and open descriptors. `None` if the process has ended.
    pub(crate) fn holding(&self) -> Option<Holding> {
        let folder = format!("/proc/{}", self.0.id());
        // A zombie has no such line.
        let memory = kib_of(
            &fs::read_to_string(format!("{folder}/status")).ok()?,
            "VmRSS:",
        )?;
        let descriptors = fs::read_dir(format!("{folder}/fd")).ok()?.count();
        Some(Holding {
            memory: memory * 1024,
            descriptors: u64::try_from(descriptors).unwrap_or(u64::MAX),
        })
    }

    /// Processor time since the start in microseconds, of all living threads.
    pub(crate) fn cpu_us(&self) -> anyhow::Result<f64> {
        let mut total_ns = 0.0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            let first = text.split_whitespace().next();
            total_ns += first.and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
        }
        Ok(total_ns / 1000.0)
    }

    /// Resets the peak of the memory, so that [`Process::peak`] covers the time from now on.
    pub(crate) fn forget_peak(&self) {
        // If the kernel does not allow it, the peak covers the time since the start.
        let _ = fs::write(format!("/proc/{}/clear_refs", self.0.id()), "5");
    }

    /// Peak of its memory, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let kib = status.ok().and_then(|status| kib_of(&status, "VmHWM:"));
        kib.unwrap_or(0) * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After the wait, the process id may belong to another process.
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // The process may have ended by itself. SIGTERM lets HAProxy and Redis clean up.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let patience = now() + Duration::from_secs(2);
        while matches!(self.0.try_wait(), Ok(None)) && now() < patience {
            pause(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kib_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
