//! Samples processes with `perf` (linux-perf), by the software clock. It works in virtual machines and
//! containers, unlike the processor's own counters.
//!
//! `perf` follows frame pointers, at almost no cost during sampling. Stacks of programs without frame
//! pointers end early, and the profile reports this.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

/// Samples per second of processor time. Not a divisor of the timers that programs use.
pub(crate) const RATE_HZ: u32 = 499;

/// The event that includes the kernel, and the event for users without that permission.
const EVENTS: [&str; 2] = ["cpu-clock", "cpu-clock:u"];

/// A working `perf` with a permitted event.
pub(crate) struct Perf {
    event: &'static str,
    scratch: PathBuf,
}

/// A `perf` process that samples, or is about to sample.
pub(crate) struct Sampling {
    child: Child,
    data: PathBuf,
    words: PathBuf,
    /// The pipe that receives a message when sampling begins. `None` if `perf` runs its own program.
    begun: Option<fs::File>,
    orders: Option<fs::File>,
}

/// Time limit for the start of sampling.
const BEGIN_WITHIN: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

impl Perf {
    /// Finds the event that this user may sample.
    ///
    /// # Errors
    ///
    /// The reason why sampling is impossible with a remedy, in one line.
    pub(crate) fn find(scratch: &Path) -> Result<Perf, String> {
        fs::create_dir_all(scratch).map_err(|error| {
            format!(
                "the folder `{}` cannot be created: {error}",
                scratch.display()
            )
        })?;
        let mut refused = String::new();
        let scratch = &std::path::absolute(scratch).unwrap_or_else(|_| scratch.to_owned());
        for event in EVENTS {
            let perf = Perf {
                event,
                scratch: scratch.to_owned(),
            };
            // A test run, because the permission depends on settings, capabilities and containers.
            let tried = perf.spawn(&perf.samples(), &["--", "true"], "probe")?;
            match tried.finish() {
                Ok(data) => {
                    // The trace of `true` has no use.
                    let _ = fs::remove_file(data);
                    return Ok(perf);
                }
                Err(reason) => refused = reason,
            }
        }
        Err(format!(
            "`perf` is not permitted to sample here ({refused}). Lower `kernel.perf_event_paranoid` \
             to 2 or less, or run as root"
        ))
    }

    /// The reason why it cannot trace the scheduler. `None` if it can.
    pub(crate) fn refuses_switches(&self) -> Option<String> {
        let tried = self.spawn(&switches(1), &["--", "true"], "probe");
        let data = tried.and_then(Sampling::finish);
        // The trace of `true` has no use.
        let data = data.map(fs::remove_file);
        data.err()
    }

    /// Begins to trace each `period`th switch of these processes and their children off a core, with its
    /// stack. Returns before the trace has begun.
    ///
    /// # Errors
    ///
    /// When `perf` does not start.
    pub(crate) fn trace_switches(
        &self,
        pids: &[i32],
        period: u64,
        name: &str,
    ) -> Result<Sampling, String> {
        self.attach_with(&switches(period), pids, name)
    }

    /// The part of the processor time that it cannot sample.
    pub(crate) fn blind_spot(&self) -> Option<&'static str> {
        self.event.ends_with(":u").then_some(
            "the kernel's part is missing, because `kernel.perf_event_paranoid` does not permit it",
        )
    }

    /// Begins to sample these processes and their children. Returns before sampling has begun, which takes a
    /// while on a busy machine. See [`Sampling::wait`].
    ///
    /// # Errors
    ///
    /// When `perf` does not start.
    pub(crate) fn attach(&self, pids: &[i32], name: &str) -> Result<Sampling, String> {
        self.attach_with(&self.samples(), pids, name)
    }

    /// The flags for samples of processor time.
    fn samples(&self) -> Vec<String> {
        let rate = RATE_HZ.to_string();
        ["--event", self.event, "--freq", &rate]
            .map(str::to_owned)
            .into()
    }

    fn attach_with(&self, events: &[String], pids: &[i32], name: &str) -> Result<Sampling, String> {
        let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
        let pids = pids.join(",");
        let (orders_path, orders) = self.fifo(&format!("{name}-orders.fifo"))?;
        let (begun_path, begun) = self.fifo(&format!("{name}-begun.fifo"))?;
        // The first command. Sampling starts with it.
        (&orders)
            .write_all(b"enable\n")
            .map_err(|error| format!("`{orders_path}` cannot be written: {error}"))?;
        let control = format!("fifo:{orders_path},{begun_path}");
        // A negative delay: `perf` attaches, but samples only after the command. Its own start is not
        // sampled.
        let what = ["--delay", "-1", "--control", &control];
        let what = [&what[..], &["--pid", &pids]].concat();
        let mut sampling = self.spawn(events, &what, name)?;
        sampling.begun = Some(begun);
        // Kept open until `perf` has opened it. A pipe that no process holds open loses its content.
        sampling.orders = Some(orders);
        Ok(sampling)
    }

    /// Creates a named pipe, opened in both directions, so that opening it does not wait for `perf`.
    fn fifo(&self, name: &str) -> Result<(String, fs::File), String> {
        let path = self.scratch.join(name);
        let failed = |error: std::io::Error| format!("`{}`: {error}", path.display());
        // An earlier attempt may have left it.
        let _ = fs::remove_file(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(|error| failed(error.into()))?;
        // Opened in both directions. With one direction, `open` would wait until `perf` opens the other end.
        let both = fs::OpenOptions::new().read(true).write(true).open(&path);
        Ok((path.display().to_string(), both.map_err(failed)?))
    }

    fn spawn(&self, events: &[String], what: &[&str], name: &str) -> Result<Sampling, String> {
        let (data, words) = (
            self.scratch.join(format!("{name}.data")),
            self.scratch.join(format!("{name}.log")),
        );
        let log = fs::File::create(&words)
            .map_err(|error| format!("`{}` cannot be written: {error}", words.display()))?;
        let child = Command::new("perf")
            .arg("record")
            .args(events)
            .args(["--call-graph", "fp"])
            .arg("--output")
            .arg(&data)
            .args(what)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| {
                format!(
                    "`perf` does not start ({error}). Install it (Debian: linux-perf, Ubuntu: \
                     linux-tools-generic)"
                )
            })?;
        Ok(Sampling {
            child,
            data,
            words,
            begun: None,
            orders: None,
        })
    }

    /// The samples as text, with the names of functions. Just-in-time compilers write their names into
    /// `/tmp/perf-PID.map`, some only at exit.
    ///
    /// # Errors
    ///
    /// The error message of `perf`.
    pub(crate) fn script(data: &Path) -> Result<String, String> {
        Perf::script_with(data, &["--fields", "comm,tid,ip,sym,dso"])
    }

    /// The traces of the scheduler as text, for [`report::flame::blocked`].
    ///
    /// # Errors
    ///
    /// The error message of `perf`.
    pub(crate) fn script_of_switches(data: &Path) -> Result<String, String> {
        let fields = "comm,tid,time,event,ip,sym,dso";
        let flags = ["--ns", "--show-switch-events", "--fields", fields];
        Perf::script_with(data, &flags)
    }

    fn script_with(data: &Path, flags: &[&str]) -> Result<String, String> {
        let output = Command::new("perf")
            // Inlined frames would be resolved one address at a time by addr2line, which takes
            // minutes for a large program.
            .args(["script", "--no-inline"])
            .args(flags)
            .arg("--input")
            .arg(data)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("`perf script` does not start: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("`perf script`: {}", last_line(&output.stderr)))
        }
    }
}

impl Sampling {
    /// Waits until sampling begins, for at most ten seconds. `finish` reports any failure.
    pub(crate) fn wait(&mut self) {
        if let Some(begun) = self.begun.take() {
            let mut ready = [PollFd::new(&begun, PollFlags::IN)];
            // A late or dead `perf` has no samples, which `finish` reports.
            let _ = poll(&mut ready, Some(&BEGIN_WITHIN));
        }
        // `perf` has opened the pipe, so this end can be closed.
        self.orders = None;
    }

    /// Ends sampling. Returns the file with the samples.
    ///
    /// # Errors
    ///
    /// The error message of `perf` if it has no samples.
    pub(crate) fn finish(mut self) -> Result<PathBuf, String> {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // The probe ends together with `true`. An interrupted probe might have no samples.
            let has_own_end = self.data.file_stem().is_some_and(|name| name == "probe");
            if !has_own_end {
                // It may end by itself at the same moment.
                let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
            }
        }
        let status = self
            .child
            .wait()
            .map_err(|error| format!("`perf` cannot be waited for: {error}"))?;
        let said = fs::read(&self.words).unwrap_or_default();
        let is_there = fs::metadata(&self.data).is_ok_and(|data| data.len() > 0);
        // An interrupted `perf` has no exit code.
        if is_there && (status.success() || status.code().is_none()) {
            Ok(self.data)
        } else {
            Err(last_line(&said))
        }
    }
}

/// The flags for traces of each `period`th switch off a core.
fn switches(period: u64) -> Vec<String> {
    let period = period.to_string();
    let flags = [
        "--event",
        "sched:sched_switch",
        "--switch-events",
        "--count",
        &period,
    ];
    flags.map(str::to_owned).into()
}

/// The last line of a program's output.
fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or("it has no output").to_owned()
}
