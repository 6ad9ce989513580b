//! One round as seen by one of its generators. The systems run elsewhere, and this process sends its shard.
//!
//! The first generator proves the variants and reports the result to the other generators. A second proof
//! would be affected by data that the first has left behind. The first generator also settles the systems.
//! All generators warm up together and begin at one moment. Afterwards they exchange their disturbances, so
//! that the same cycles count for all.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use load::{Job, Measurement};
use model::InvalidKind;
use recording::{GeneratorRecord, Recording, RoundRecord};
use serde::{Deserialize, Serialize};
use stats::cycles::Cause;

use super::Experiment;
use super::counted_cycles::{disturbances, dues_of, has_every_slot};
use super::design::Design;
use super::group_round::GroupContext;
use super::groups::Group;
use super::host_watch::HostWatch;
use super::peers::{PeerReports, Peers, ShardReport};
use super::reused_systems::ReusedSystems;
use super::round::Round;
use super::running_variant::{RoundFailure, RunningVariant};
use super::variant_run::VariantRun;
use crate::build_cache::BuildCache;
use crate::environment::instant;
use crate::exit::Failure;
use crate::invalid::Invalid;
use crate::pods::barrier::{lead_of, policy_advice};
use crate::prove::{Proven, RequestCounts, ToldProof};

/// Least number of attempts to reach a system before the proof.
const REACH_TRIES: u32 = 3;
/// Least time of these attempts.
const REACH_LEAST: Duration = Duration::from_secs(3);
/// Time limit of one attempt.
const REACH_WITHIN: Duration = Duration::from_secs(2);
/// Pause between two attempts.
const REACH_AGAIN: Duration = Duration::from_millis(100);

/// The first generator's report of a variant's proof.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProofTold {
    variant: String,
    /// The required response body of each request, in base64.
    bodies: Vec<Option<String>>,
    /// The descriptors that the server gave for each request, in base64.
    descriptors: Vec<Option<String>>,
    /// The reason why the variant has no number, if there is one.
    invalid: Option<(InvalidKind, String)>,
}

/// The state of one generator after an attempt at a measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Attempt {
    pub(super) is_interrupted: bool,
    pub(super) is_disturbed: bool,
}

impl Attempt {
    /// The state according to the records of its candidates.
    pub(super) fn of(records: &[RoundRecord]) -> Attempt {
        Attempt {
            is_interrupted: records.iter().any(|record| record.interrupted),
            is_disturbed: records.iter().any(analysis::summary::is_disturbed),
        }
    }
}

impl Experiment<'_> {
    /// Takes part in round `number`, counted from 0, as one of its generators. Returns the recording of its
    /// part.
    ///
    /// # Errors
    /// When this fails, with the first reason.
    pub fn send_shard(mut self, number: usize, peers: Peers) -> Result<Recording, Failure> {
        self.session.peers = Some(peers);
        self.reused = ReusedSystems::on();
        self.design = Design::elsewhere(self.candidates.compared());
        let sent = self.shard_of(number);
        self.reused.stop_all(&mut self.rig);
        self.session.progress.finish();
        let recording = self.recording();
        let shut_down = self.rig.shut_down();
        sent.map_err(|invalid| Failure::not_ready(invalid.reason))?;
        shut_down.map_err(|error| Failure::bug(error.to_string()))?;
        Ok(recording)
    }

    fn shard_of(&mut self, number: usize) -> Result<(), Invalid> {
        self.reach_systems()?;
        self.prove_once_for_all()?;
        if self.candidates.is_hopeless() {
            // All generators have the same result, and each has its record.
            return Ok(());
        }
        let round = (0..=number).filter_map(|_| self.rounds.begin()).last();
        let round = round
            .ok_or_else(|| Invalid::new(InvalidKind::LoadFailed, "the lab has no such round"))?;
        let group = Group {
            number: None,
            variants: self.candidates.compared(),
        };
        let context = GroupContext {
            group: &group,
            shared: None,
            cores: None,
        };
        let mut up = self.bring_up(&round, &context);
        self.leave_needless(&mut up, &context);
        self.agree_on(&up)?;
        let loads = self
            .settle_once_for_all(&round, &mut up, &context)
            .and_then(|()| self.ready_together(&round, &mut up, &context));
        let loads = loads.and_then(|loads| {
            // A barrier: all warm-up responses must arrive before the counters of the systems are read.
            self.peers().exchange(&()).map(|_| loads)
        });
        let result = loads
            .map_err(RoundFailure::from)
            .and_then(|loads| self.attempts_together(&round, &up, &loads, &context));
        match result {
            Ok(result) => {
                self.take_down(up, result);
                Ok(())
            }
            Err(failure) => {
                let invalid = failure.invalid.clone();
                self.give_up(up, &failure);
                Err(invalid)
            }
        }
    }

    /// The states of all generators after an attempt. Only this generator's state if there is no other.
    pub(super) fn attempts_of_all(&self, own: Attempt) -> Result<Vec<Attempt>, Invalid> {
        match &self.session.peers {
            Some(peers) => peers.exchange(&own),
            None => Ok(vec![own]),
        }
    }

    fn peers(&self) -> &Peers {
        let peers = self.session.peers.as_ref();
        peers.expect("a shard is sent in peers")
    }

    /// Rejects the variants with a system that a generator does not reach. All pods are ready by now, but
    /// a kubelet makes this check from its own node. Rules for connections between pods may differ.
    fn reach_systems(&mut self) -> Result<(), Invalid> {
        let unreached = self.unreached();
        let all = self.peers().exchange(&unreached)?;
        let of = all.len();
        for (index, unreached) in all.into_iter().enumerate() {
            for (variant, reason) in unreached {
                let mut ids = self.candidates.ids();
                let id = ids.find(|id| self.candidates.get(*id).name() == variant);
                let Some(id) = id.filter(|id| self.candidates.get(*id).invalid().is_none()) else {
                    continue;
                };
                let reason = format!("generator {} of {of} does not reach {reason}", index + 1);
                self.reject(id, Invalid::new(InvalidKind::NotReady, reason));
            }
        }
        Ok(())
    }

    /// The variants with a system that this generator does not reach, with the reason.
    fn unreached(&self) -> Vec<(String, String)> {
        let mut tried: BTreeMap<SocketAddr, Option<String>> = BTreeMap::new();
        let mut unreached = Vec::new();
        for candidate in self.candidates.iter() {
            // The load goes to the target, which is the last to start. Other systems may be closed to generators.
            let Some(target) = candidate.variant.systems().last() else {
                continue;
            };
            let elsewhere = target.elsewhere();
            let Some(address) = elsewhere.and_then(|it| it.authority.parse().ok()) else {
                continue;
            };
            let found = tried
                .entry(address)
                .or_insert_with(|| why_unreached(address));
            if let Some(why) = found {
                let advice = policy_advice(address.port());
                let reason = format!("`{}` at {address}: {why}{advice}", target.system);
                unreached.push((candidate.name().to_owned(), reason));
            }
        }
        unreached
    }

    /// The first generator proves all variants. The other generators use its result.
    fn prove_once_for_all(&mut self) -> Result<(), Invalid> {
        let is_first = self.peers().shard().index() == 0;
        let mut told = Vec::new();
        if is_first {
            self.prepare(&mut BuildCache::default());
            let candidates = self.candidates.iter();
            told.extend(candidates.map(|candidate| ProofTold {
                variant: candidate.name().to_owned(),
                bodies: match candidate.is_proven() {
                    true => encoded(candidate.proven().bodies()),
                    false => Vec::new(),
                },
                descriptors: match candidate.is_proven() {
                    true => encoded(candidate.proven().given_descriptors(candidate.variant)),
                    false => Vec::new(),
                },
                invalid: candidate.invalid().map(|it| (it.kind, it.reason.clone())),
            }));
        }
        let mut all = self.peers().exchange(&told)?;
        if !is_first {
            self.believe(all.swap_remove(0))?;
        }
        Ok(())
    }

    /// Uses the first generator's proofs, and attaches to the systems.
    fn believe(&mut self, told: Vec<ProofTold>) -> Result<(), Invalid> {
        for id in self.candidates.ids() {
            // All generators have rejected it for the same reason.
            if self.candidates.get(id).invalid().is_some() {
                continue;
            }
            let name = self.candidates.get(id).name();
            let Some(told) = told.iter().find(|told| told.variant == name) else {
                let reason = format!("the first generator has no variant `{name}`");
                return Err(Invalid::new(InvalidKind::LoadFailed, reason));
            };
            if let Some((kind, reason)) = &told.invalid {
                self.reject(id, Invalid::new(*kind, reason.clone()));
                continue;
            }
            let told = ToldProof {
                bodies: decoded(&told.bodies)?,
                descriptors: decoded(&told.descriptors)?,
            };
            let variant = self.candidates.get(id).variant;
            let proven = Proven::told(self.session.lab, variant, self.session.seed, &told)?;
            self.candidates.get_mut(id).set_proven(proven);
            let run = VariantRun::of_proof(&self.session, self.candidates.get(id));
            let mut running = run.start(&mut self.rig)?;
            running.is_proven = true;
            running.is_prepared = true;
            self.reused.keep_or_stop(&mut self.rig, id, running, true);
        }
        Ok(())
    }

    /// Checks that all generators load the same variants.
    fn agree_on(&self, up: &[RunningVariant]) -> Result<(), Invalid> {
        let names = up
            .iter()
            .map(|one| self.candidates.get(one.position.candidate).name());
        let own: Vec<String> = names.map(str::to_owned).collect();
        let all = self.peers().exchange(&own)?;
        match all.iter().position(|other| *other != own) {
            None => Ok(()),
            Some(index) => Err(Invalid::new(
                InvalidKind::NotReady,
                format!(
                    "generator {} reaches {:?}, but this generator reaches {own:?}",
                    index + 1,
                    all[index]
                ),
            )),
        }
    }

    /// The first generator settles the systems, while the other generators wait.
    fn settle_once_for_all(
        &mut self,
        round: &Round,
        up: &mut [RunningVariant],
        context: &GroupContext<'_>,
    ) -> Result<(), Invalid> {
        if self.peers().shard().index() == 0 {
            self.settle_together(round, up, context)?;
        }
        for one in up {
            one.running.is_settled = true;
        }
        self.peers().exchange(&()).map(|_| ())
    }

    /// Adds the common start time to the loads. They stay unchanged if this is the only generator, because it need
    /// not wait for another one.
    pub(super) fn starting_together(&self, jobs: &[Job]) -> Result<Vec<Job>, RoundFailure> {
        let peers = self.session.peers.as_ref();
        let Some(peers) = peers.filter(|peers| !peers.shard().is_whole()) else {
            return Ok(jobs.to_vec());
        };
        let start_at = Some(peers.agree(lead_of(jobs))?);
        let starting = jobs.iter().map(|job| Job {
            start_at,
            ..job.clone()
        });
        Ok(starting.collect())
    }

    /// Exchanges the reports of all generators about a load.
    pub(super) fn exchange_reports(
        &self,
        jobs: &[Job],
        measurements: &[Measurement],
        host: &HostWatch,
    ) -> Result<PeerReports, RoundFailure> {
        let Some(peers) = &self.session.peers else {
            return Ok(PeerReports::none());
        };
        let own = report_of(jobs, measurements, host);
        Ok(PeerReports::exchange(peers, &own)?)
    }

    /// The generator of a measurement. Empty outside of a cluster.
    pub(super) fn generators(
        &self,
        jobs: &[Job],
        record: &RoundRecord,
        began: Option<Instant>,
    ) -> Vec<GeneratorRecord> {
        let Some(peers) = &self.session.peers else {
            return Vec::new();
        };
        let agreed = jobs.first().and_then(|job| job.start_at);
        let late = agreed
            .zip(began)
            .map(|(agreed, began)| began.saturating_duration_since(agreed));
        let clock = peers.clock();
        let quantile_us = |histogram: stats::Histogram, share: f64| {
            histogram.quantile_ns(share).map(|ns| ns as f64 / 1e3)
        };
        vec![GeneratorRecord {
            shard: peers.shard(),
            pod: peers.pod.clone(),
            node: peers.node.clone(),
            clock_ahead_us: clock.ahead_ns as f64 / 1e3,
            clock_error_us: clock.error_ns as f64 / 1e3,
            began_late_us: late.unwrap_or_default().as_secs_f64() * 1e6,
            planned: record.planned,
            completed: record.outcomes.completed(),
            latency_us_p50: quantile_us(record.latency_ns_hdr.histogram(), 0.5),
            lateness_us_p99: quantile_us(record.lateness_ns_hdr.histogram(), 0.99),
        }]
    }
}

/// Returns the report of this generator about its part of a load.
fn report_of(jobs: &[Job], measurements: &[Measurement], host: &HostWatch) -> ShardReport {
    let counts = measurements.iter().map(|seen| match seen.interrupted {
        // The counts of an interrupted load are not used in any proof.
        true => RequestCounts::default(),
        false => RequestCounts::of(seen),
    });
    let mut report = ShardReport {
        counts: counts.collect(),
        is_whole: false,
        disturbances: Vec::new(),
    };
    let (Some(dues_ns), Some(job)) = (dues_of(jobs), jobs.first()) else {
        return report;
    };
    let mut each = measurements.iter();
    let has_all = each.all(|seen| has_every_slot(seen, &dues_ns, job.shard));
    let Some(disturbed) = disturbances(measurements, host).filter(|_| has_all) else {
        return report;
    };
    report.is_whole = true;
    report.disturbances = disturbed
        .iter()
        .map(|it| (it.from_ns, it.to_ns, it.cause == Cause::Host))
        .collect();
    report
}

/// The reason why an address accepts no connection. `None` if it does.
fn why_unreached(address: SocketAddr) -> Option<String> {
    let began = instant();
    let mut tries = 0;
    loop {
        let error = match TcpStream::connect_timeout(&address, REACH_WITHIN) {
            Ok(_) => return None,
            Err(error) => error,
        };
        tries += 1;
        if tries >= REACH_TRIES && began.elapsed() >= REACH_LEAST {
            return Some(error.to_string());
        }
        // The rules of a Service reach the nodes a moment after its pods are ready.
        std::thread::park_timeout(REACH_AGAIN);
    }
}

fn encoded(parts: Vec<Option<Vec<u8>>>) -> Vec<Option<String>> {
    let parts = parts.into_iter();
    parts
        .map(|part| part.map(|bytes| STANDARD.encode(bytes)))
        .collect()
}

fn decoded(parts: &[Option<String>]) -> Result<Vec<Option<Vec<u8>>>, Invalid> {
    let decode = |part: &Option<String>| match part {
        None => Ok(None),
        Some(text) => STANDARD.decode(text).map(Some).map_err(|error| {
            let reason = format!("the first generator's proof cannot be read: {error}");
            Invalid::new(InvalidKind::LoadFailed, reason)
        }),
    };
    parts.iter().map(decode).collect()
}
