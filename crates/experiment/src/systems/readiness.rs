//! Waits for systems that other programs start.

use std::thread;
use std::time::Duration;

use model::InvalidKind;

use crate::environment::instant;
use crate::invalid::Invalid;
use crate::stop::StopSignal;

/// Pause between two probes.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until `probe` succeeds, at most `within`.
///
/// # Errors
/// Fails if the user stops the run, or with the error of `look` if waiting has become useless. After `within`
/// it fails with the message of `overdue` for the last reason of the probe.
pub(super) fn wait_until_ready(
    within: Duration,
    stop: &StopSignal,
    probe: &mut dyn FnMut() -> Result<(), String>,
    look: impl Fn() -> Result<(), Invalid>,
    overdue: impl Fn(String) -> String,
) -> Result<(), Invalid> {
    let began = instant();
    loop {
        let Err(reason) = probe() else {
            return Ok(());
        };
        look()?;
        if stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        if instant().duration_since(began) >= within {
            return Err(Invalid::new(InvalidKind::NotReady, overdue(reason)));
        }
        thread::park_timeout(PAUSE);
    }
}
