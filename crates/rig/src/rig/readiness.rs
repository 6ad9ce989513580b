//! Waiting until a system is ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Rig, System};
use crate::clock;
use crate::error::ReadyError;
use crate::outcome::{State, Status};

/// The first and the longest pause between two probes. Pauses grow from one to the other. They are short
/// compared with the start of a fast server, and long compared with the cost of a probe.
const PROBE_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

impl Rig {
    /// Calls `probe` until it returns `Ok`, with pauses that grow from 1 ms to 50 ms. Returns the time since
    /// the start of the system.
    ///
    /// # Errors
    /// At once if the system ends or `stop` is set. After `within` (counted from this call), with the last
    /// error of the probe.
    pub fn wait_ready(
        &mut self,
        system: &System,
        within: Duration,
        probe: &mut dyn FnMut() -> Result<(), String>,
        stop: &AtomicBool,
    ) -> Result<Duration, ReadyError> {
        let deadline = clock::now() + within;
        let (mut pause, longest) = PROBE_PAUSES;
        let mut attempts = Attempts::new(&system.name, within);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(ReadyError::Interrupted {
                    system: system.name.clone(),
                });
            }
            if let State::Exited { status, .. } = self.state(system) {
                return Err(exited(system, status));
            }
            let answer = probe();
            // Another process may have responded on the port of a system that has just ended.
            if let State::Exited { status, .. } = self.state(system) {
                return Err(exited(system, status));
            }
            let now = clock::now();
            match answer {
                Ok(()) => {
                    let took = now.duration_since(system.start);
                    tracing::debug!(
                        system = system.name,
                        attempts = attempts.count,
                        ?took,
                        "ready"
                    );
                    return Ok(took);
                }
                Err(last_reason) if now >= deadline => {
                    return Err(ReadyError::TimedOut {
                        system: system.name.clone(),
                        within,
                        last_reason,
                        log: system.log.clone(),
                        last_lines: system.last_lines(),
                    });
                }
                Err(reason) => attempts.note(&reason, now),
            }
            // Not a sleep, because the end of the system must end the pause.
            self.link.listen(pause.min(deadline - now));
            pause = longest.min(pause * 2);
        }
    }
}

/// The failed readiness probes of one system, for the log. Each is logged at trace. A changed result is
/// logged at debug, and an unchanged result once a second.
struct Attempts<'a> {
    system: &'a str,
    within: Duration,
    count: u32,
    said: Option<(String, Instant)>,
}

impl<'a> Attempts<'a> {
    fn new(system: &'a str, within: Duration) -> Attempts<'a> {
        Attempts {
            system,
            within,
            count: 0,
            said: None,
        }
    }

    fn note(&mut self, reason: &str, now: Instant) {
        const REPEAT: Duration = Duration::from_secs(1);
        self.count += 1;
        let (system, attempt) = (self.system, self.count);
        tracing::trace!(system, attempt, reason, "a readiness probe failed");
        let is_known = self
            .said
            .as_ref()
            .is_some_and(|(said, at)| said == reason && now.duration_since(*at) < REPEAT);
        if !is_known {
            tracing::debug!(system, attempt, within = ?self.within, reason, "not ready yet");
            self.said = Some((reason.to_owned(), now));
        }
    }
}

fn exited(system: &System, status: Status) -> ReadyError {
    ReadyError::Exited {
        system: system.name.clone(),
        status,
        log: system.log.clone(),
        last_lines: system.last_lines(),
    }
}
