//! What a run shows of itself to others while it runs: `--prometheus` and `--otlp`.
//!
//! The one idea: the generator counts into cells that it owns ([`load::Live::with_jobs`]), and these
//! are read here, by threads of their own, once a scrape or once a second. Totals over all measured
//! loads of a run are kept here. Loads that are thrown away, to warm a system up, are in none of them.

mod families;
mod otlp;
mod scrape;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use load::{JobProgress, Live};
use model::Load;
use report::recording::RoundRecord;

use crate::console::Console;
use crate::environment::{instant, now};
use crate::exit::Failure;
use families::{Family, families};
use otlp::Endpoint;
use scrape::Bind;

/// To whom a run is shown.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PublishArgs {
    /// Serve the counts for Prometheus at http://ADDR/metrics during the run.
    ///
    /// ADDR is a port of 127.0.0.1, or an address with a port. Everyone who reaches the address can read
    /// the counts. See docs/telemetry.md.
    #[arg(long, value_name = "ADDR", help_heading = "Output", hide_short_help = true, value_parser = scrape::bind)]
    prometheus: Option<Bind>,
    /// Push the counts to an OpenTelemetry collector each second: http://127.0.0.1:4318.
    ///
    /// The format is OTLP over HTTP, in protobuf. A URL without a path gets /v1/metrics. If the collector
    /// is not reachable, `weigh` warns once and continues.
    #[arg(long, value_name = "URL", help_heading = "Output", hide_short_help = true, value_parser = otlp::endpoint)]
    otlp: Option<Endpoint>,
}

impl PublishArgs {
    /// Starts to publish; nothing where nothing was asked for.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub(crate) fn start(&self, console: Console) -> Result<Option<Published>, Failure> {
        if self.prometheus.is_none() && self.otlp.is_none() {
            return Ok(None);
        }
        let account = Account::new();
        let server = match &self.prometheus {
            Some(bind) => Some(scrape::Server::start(*bind, account.clone(), console)?),
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

/// A run that is published until this is dropped, which takes 2 seconds at the most.
pub(crate) struct Published {
    account: Account,
    _server: Option<scrape::Server>,
    _pusher: Option<otlp::Pusher>,
}

impl Published {
    /// What is to be told of the run.
    pub(crate) fn account(&self) -> Account {
        self.account.clone()
    }
}

/// Who is sent to while a load is measured, in the order of its jobs.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The variant, or host and port.
    pub(crate) target: String,
    /// What is sent, for the planned rate.
    pub(crate) load: Load,
}

/// All that is told of a run, shared with those who read it.
#[derive(Clone, Debug)]
pub(crate) struct Account(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    started: SystemTime,
    /// Of loads that have ended, by target.
    totals: BTreeMap<String, Total>,
    now: Option<Sending>,
    /// The round being measured, from 1, and how many are planned; none outside of labs.
    round: Option<(usize, usize)>,
    systems: BTreeMap<(String, String), SystemTotal>,
}

/// What was counted of a target.
#[derive(Clone, Debug, Default)]
struct Total {
    progress: JobProgress,
    is_planned: bool,
    /// Requests a second that are planned now; none between loads and in a closed loop.
    rate: Option<f64>,
}

/// What was seen of a system of a target, in all its measurements.
#[derive(Clone, Copy, Debug, Default)]
struct SystemTotal {
    cpu_us: Option<u64>,
    memory_peak_bytes: Option<u64>,
}

/// A load that is being sent.
#[derive(Debug)]
struct Sending {
    /// Empty for one that is thrown away.
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
        // What a thread has counted before it panicked is still true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A load begins; without receivers it is thrown away.
    pub(crate) fn begin(&self, receivers: Vec<Receiver>, live: &Arc<Live>) {
        self.state().now = Some(Sending {
            receivers,
            live: Arc::clone(live),
            began: instant(),
        });
    }

    /// The load has ended.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        if let Some(sending) = state.now.take() {
            sending.add_to(&mut state.totals, None);
        }
    }

    /// A round of so many begins; they count from 1.
    pub(crate) fn round(&self, number: usize, planned: usize) {
        self.state().round = Some((number, planned));
    }

    /// What systems cost in a measurement.
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

    /// All metrics as they are now, and since when they count.
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
    /// Adds what was counted so far; `elapsed` while it lasts.
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
            // What was under way at the end of a load is nothing that is under way later.
            for receiver in &self.receivers {
                if let Some(total) = totals.get_mut(&receiver.target) {
                    total.progress.counts.ended = total.progress.counts.begun;
                }
            }
        }
    }
}

/// Requests a second that a load plans so long after its begin; `None` in a closed loop, and when the
/// plan is over.
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
