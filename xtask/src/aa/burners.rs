//! Programs that keep every core busy, like a compiler started with `nice` in another terminal.

use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// Runs until its parent is gone, so that a killed task leaves no process behind.
const LOOP: &str = "while kill -0 \"$PPID\" 2>/dev/null; do :; done";

/// One such process for each core. They end when this is dropped.
pub(super) struct Burners(Vec<Child>);

impl Burners {
    pub(super) fn start() -> anyhow::Result<Burners> {
        let cores = std::thread::available_parallelism().context("the number of cores")?;
        let mut burners = Burners(Vec::new());
        for _ in 0..cores.get() {
            // In a session of its own, like another terminal. If the kernel groups processes by session
            // (sched(7), "autogroup"), priorities count within a session only.
            let burner = Command::new("setsid")
                .args(["nice", "-n", "19", "sh", "-c", LOOP])
                .stdin(Stdio::null())
                .spawn()
                .context("`setsid`, `nice` and `sh` start")?;
            burners.0.push(burner);
        }
        Ok(burners)
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            // The burner may have ended already.
            let _ = burner.kill();
            let _ = burner.wait();
        }
    }
}
