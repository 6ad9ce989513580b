//! A running coprocessor that is ended when it is dropped.

use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use crate::http::{Address, Connection};
use crate::runners::Runner;

/// Time limit of a start or a stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The transport that a coprocessor listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A port on loopback.
    Tcp,
    /// A Unix socket in a temporary folder.
    Unix,
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Transport::Tcp => "TCP",
            Transport::Unix => "a Unix socket",
        })
    }
}

/// A coprocessor that runs. Dropping it kills it with all its children.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pub(crate) address: Address,
    /// Contains the socket and the output of the process.
    folder: TempDir,
}

impl Running {
    /// Starts the coprocessor and waits until it is healthy.
    ///
    /// # Errors
    ///
    /// If it does not start, ends, or is not healthy within a minute.
    pub fn start(runner: &Runner, transport: Transport) -> anyhow::Result<Running> {
        // The path of a socket has at most 107 bytes, and TMPDIR may be longer.
        let folder = TempDir::with_prefix_in("weighbridge-conform-", "/tmp")?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut command = runner.command(&runner.run);
        command
            .env("JWT_SECRET", "apollo")
            .env_remove("PORT")
            .env_remove("SOCKET")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        let address = match transport {
            Transport::Tcp => Address::Port(free_port()?),
            Transport::Unix => Address::Socket(folder.path().join("socket")),
        };
        match &address {
            Address::Port(port) => command.env("PORT", port.to_string()),
            Address::Socket(path) => {
                // A socket file as a killed predecessor leaves it.
                drop(std::os::unix::net::UnixListener::bind(path)?);
                command.env("SOCKET", path)
            }
        };
        let child = command
            .spawn()
            .with_context(|| format!("`{}` does not start", runner.run))?;
        let mut running = Running {
            child,
            address,
            folder,
        };
        let ended = running
            .wait_until(|running| Ok(running.child.try_wait()?.is_some() || running.is_healthy()));
        match ended {
            Ok(()) if running.is_healthy() => Ok(running),
            _ => bail!("it does not become healthy; it says: {}", running.log()),
        }
    }

    /// Opens a new connection to it.
    pub(crate) fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(&self.address).context("it takes no connection")
    }

    /// Sends SIGTERM, as the lab and every container do.
    pub(crate) fn tell_to_stop(&self) -> anyhow::Result<()> {
        Ok(kill_process(self.id(), Signal::TERM)?)
    }

    /// Waits for the end of the process and returns its exit status.
    pub(crate) fn end(&mut self) -> anyhow::Result<ExitStatus> {
        self.wait_until(|running| Ok(running.child.try_wait()?.is_some()))
            .context("it does not end")?;
        Ok(self.child.wait()?)
    }

    /// The current output of the process.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Waits for a condition, at most a minute.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place in these tests that waits"
    )]
    pub(crate) fn wait_until(
        &mut self,
        mut condition: impl FnMut(&mut Running) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        while !condition(self)? {
            if start.elapsed() > PATIENCE {
                bail!("not within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn is_healthy(&self) -> bool {
        Connection::open(&self.address)
            .map_err(anyhow::Error::from)
            .and_then(|mut connection| connection.ask("GET", "/health", b""))
            .is_ok_and(|answer| answer.status == 200)
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may be empty already. In both cases no process is left after this.
        let _ = kill_process_group(self.id(), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port())
}
