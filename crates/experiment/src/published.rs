//! Live metrics of a run: `--prometheus` and `--otlp`.
//!
//! The generator counts into its own cells ([`load::Live::with_jobs`]). Separate threads read the cells once
//! per scrape or once a second. This file keeps the totals of all measured loads of a run. Discarded warm-up
//! loads are not included.

mod families;
mod otlp;
mod scrape;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use load::{JobProgress, Live};
use model::Load;
use recording::RoundRecord;

use crate::console::Console;
use crate::environment::{instant, now};
use crate::exit::Failure;
use crate::http_server::HttpServer;
use families::{Family, families};
pub use otlp::{Collector, collector};
pub use scrape::{Bind, bind};

/// The places that a run publishes its counts to.
#[derive(Clone, Debug, Default)]
pub struct PublishTargets {
    /// The address of the endpoint for Prometheus.
    pub prometheus: Option<Bind>,
    /// The OpenTelemetry collector.
    pub otlp: Option<Collector>,
}

impl PublishTargets {
    /// Starts to publish. `None` without a target.
    ///
    /// # Errors
    /// When `weigh` cannot listen on the address.
    pub fn start(&self, console: Console) -> Result<Option<Published>, Failure> {
        if self.prometheus.is_none() && self.otlp.is_none() {
            return Ok(None);
        }
        let account = Account::new();
        let server = match &self.prometheus {
            Some(bind) => Some(scrape::start(*bind, account.clone(), console)?),
            None => None,
        };
        let pusher = self
            .otlp
            .as_ref()
            .map(|endpoint| otlp::Pusher::start(endpoint.clone(), account.clone(), console));
        Ok(Some(Published {
            account,
            _server: server,
            _pusher: pusher,
        }))
    }
}

/// Publishes a run until it is dropped. The drop takes at most 2 seconds.
pub struct Published {
    account: Account,
    _server: Option<HttpServer>,
    _pusher: Option<otlp::Pusher>,
}

impl Published {
    /// The account that receives the facts about the run.
    pub fn account(&self) -> Account {
        self.account.clone()
    }
}

/// A receiver of the measured load, in the order of the jobs.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The variant, or host and port.
    pub target: String,
    /// The load, for the planned rate.
    pub load: Load,
}

/// All published facts about a run, shared with their readers.
#[derive(Clone, Debug)]
pub struct Account(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    started: SystemTime,
    /// Totals of the loads that have ended, by target.
    totals: BTreeMap<String, Total>,
    now: Option<Sending>,
    /// The current round from 1, and the number of planned rounds. `None` outside of labs.
    round: Option<(usize, usize)>,
    systems: BTreeMap<(String, String), SystemTotal>,
}

/// The counts of a target.
#[derive(Clone, Debug, Default)]
struct Total {
    progress: JobProgress,
    is_planned: bool,
    /// Planned requests per second now. `None` between loads and in a closed loop.
    rate: Option<f64>,
}

/// The usage of a system of a target, over all its measurements.
#[derive(Clone, Copy, Debug, Default)]
struct SystemTotal {
    cpu_us: Option<u64>,
    memory_peak_bytes: Option<u64>,
}

/// The load that is currently sent.
#[derive(Debug)]
struct Sending {
    /// Empty for a discarded load.
    receivers: Vec<Receiver>,
    live: Arc<Live>,
    began: Instant,
}

impl Account {
    fn new() -> Account {
        Account(Arc::new(Mutex::new(State {
            started: now().into(),
            totals: BTreeMap::new(),
            now: None,
            round: None,
            systems: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The counts of a thread that panicked are still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a load. A load without receivers is discarded.
    pub fn begin(&self, receivers: Vec<Receiver>, live: &Arc<Live>) {
        self.state().now = Some(Sending {
            receivers,
            live: Arc::clone(live),
            began: instant(),
        });
    }

    /// Records the end of the load.
    pub fn end(&self) {
        let mut state = self.state();
        if let Some(sending) = state.now.take() {
            sending.add_to(&mut state.totals, None);
        }
    }

    /// Records the start of round `number` of `planned`, counted from 1.
    pub fn round(&self, number: usize, planned: usize) {
        self.state().round = Some((number, planned));
    }

    /// Adds the cost of the systems in a measurement.
    pub(crate) fn measured(&self, record: &RoundRecord) {
        let mut state = self.state();
        for system in &record.systems {
            let key = (record.variant.clone(), system.name.clone());
            let total = state.systems.entry(key).or_default();
            if let Some(cpu_us) = system.cpu_us {
                total.cpu_us = Some(total.cpu_us.unwrap_or(0) + cpu_us);
            }
            total.memory_peak_bytes = system.memory_peak_bytes.or(total.memory_peak_bytes);
        }
    }

    /// All current metrics, and the start time of their counts.
    fn read(&self) -> (Vec<Family>, SystemTime) {
        let state = self.state();
        let mut totals = state.totals.clone();
        let mut phase = "between";
        if let Some(sending) = &state.now {
            phase = match sending.receivers.is_empty() {
                true => "warm-up",
                false => "measuring",
            };
            sending.add_to(&mut totals, Some(sending.began.elapsed()));
        }
        (families(&totals, &state, phase), state.started)
    }
}

impl Sending {
    /// Adds the current counts. `elapsed` is the load's age while it lasts.
    fn add_to(&self, totals: &mut BTreeMap<String, Total>, elapsed: Option<Duration>) {
        for (receiver, progress) in self.receivers.iter().zip(self.live.read_jobs()) {
            let total = totals.entry(receiver.target.clone()).or_default();
            total.progress.counts.add_all(&progress.counts);
            total.progress.latency.add(&progress.latency);
            total.progress.lateness.add(&progress.lateness);
            total.is_planned = receiver.load.is_open();
            total.rate = elapsed.and_then(|elapsed| rate_at(&receiver.load, elapsed));
        }
        if elapsed.is_none() {
            // After the end of a load, no request is in flight.
            for receiver in &self.receivers {
                if let Some(total) = totals.get_mut(&receiver.target) {
                    total.progress.counts.ended = total.progress.counts.begun;
                }
            }
        }
    }
}

/// Planned requests per second of a load, `elapsed` after its start. `None` in a closed loop, and after the
/// end of the plan.
fn rate_at(load: &Load, elapsed: Duration) -> Option<f64> {
    let Load::Open { phases, .. } = load else {
        return None;
    };
    let mut left = elapsed;
    for phase in phases {
        if left < phase.duration {
            let share = left.as_secs_f64() / phase.duration.as_secs_f64();
            let (from, to) = (phase.from.per_second(), phase.to.per_second());
            return Some(from + (to - from) * share);
        }
        left -= phase.duration;
    }
    None
}

#[cfg(test)]
mod tests;
