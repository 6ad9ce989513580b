//! A job that was checked, and the share of each thread.

use std::sync::Arc;

use model::{Load, Shard, Stop};
use schedule::OpenPlan;

use crate::clock::{Clock, to_ns};
use crate::error::LoadError;
use crate::error::RequestError;
use crate::general::{self, Messages, Outlet, Route};
use crate::job::{Data, Job, Request, RowOrder, StatusRule};
use crate::lane::Workload;
use crate::recorder::{Blocks, Recorder};
use crate::rendered::{self, Rendered, Rotation};
use crate::scenario;
use crate::script::Script;
use crate::slices::{Slices, are_in_order};
use crate::socket::Peer;
use crate::supply::{Closed, Open, PlanSlots, PlanTimes, Supply};
use crate::template::{Places, Values};

/// One job, ready to run on any number of threads.
pub(crate) struct Prepared<'a> {
    pub(crate) job: &'a Job,
    rotation: Rotation,
    script: Script,
    peer: Peer,
    /// The protocol of the target, for the general carrier.
    route: Route,
    messages: Messages,
    plan: Option<OpenPlan>,
    /// The end of a closed loop. An open loop stops with its plan.
    stop: Stop,
    pub(crate) connections: u32,
    /// Number of slots, if fixed beforehand. `None` for a closed loop without a number of requests.
    slots: Option<u64>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(job: &'a Job) -> Result<Prepared<'a>, LoadError> {
        let rotation = rotation(job)?;
        let captures = scenario::names(&job.steps).len();
        let script = Script::new(&job.steps, captures);
        let route = Route::new(&job.target)?;
        let (connections, stop, plan) = match &job.load {
            Load::Closed { connections, stop } => {
                if stop.requests.is_none() && stop.duration.is_none() {
                    return Err(LoadError::Endless);
                }
                let stop = Stop {
                    requests: stop.requests.map(|all| job.shard.part_of(all)),
                    ..*stop
                };
                (*connections, stop, None)
            }
            Load::Open {
                phases,
                arrival,
                connections_max,
                requests_max,
            } => {
                let plan = OpenPlan::new(phases, *arrival, *requests_max)?;
                // A plan ends by itself.
                let never = Stop {
                    requests: None,
                    duration: None,
                };
                (*connections_max, never, Some(plan))
            }
        };
        let connections = u32::try_from(job.shard.part_of(u64::from(connections)))
            .expect("a part of 32 bits is no more");
        if connections == 0 {
            return Err(LoadError::Zero(match job.shard.is_whole() {
                true => "connection",
                false => "connection for each shard",
            }));
        }
        if job.threads == 0 {
            return Err(LoadError::Zero("generator thread"));
        }
        if job.target.protocol.version.streams() == 0 {
            return Err(LoadError::Zero("stream"));
        }
        let planned = plan.as_ref().map(|plan| job.shard.part_of(plan.len()));
        let slots = planned.or(stop.requests);
        verify_kept(job, slots)?;
        let may_have_slices = plan.is_none() && job.steps.is_empty() && are_in_order(&job.slices);
        if !may_have_slices && !job.slices.is_empty() {
            return Err(LoadError::Slices);
        }
        Ok(Prepared {
            job,
            peer: Peer::new(&job.target.address).map_err(LoadError::Address)?,
            // Before the rotation is moved. Built once, and not for each thread.
            messages: messages(job, &rotation, &script, &route)?,
            rotation,
            script,
            route,
            plan,
            stop,
            connections,
            slots,
        })
    }

    fn has_several_statuses(&self) -> bool {
        let is_several = |request: &Request| matches!(request.expect.status, StatusRule::Among(_));
        self.job.requests.iter().any(is_several)
    }

    fn has_streams(&self) -> bool {
        let mut requests = self.job.requests.iter();
        requests.any(|request| request.expect.stream.is_some() || request.websocket.is_some())
    }

    pub(crate) fn is_open_loop(&self) -> bool {
        self.plan.is_some()
    }

    /// True if all connections are opened before the first send.
    pub(crate) fn opens_before(&self) -> bool {
        !self.is_open_loop() && self.job.keep_alive
    }

    /// Number of requests, if fixed beforehand, for a display of progress.
    pub(crate) fn planned(&self) -> u64 {
        let slots = self.slots.unwrap_or(0);
        slots.saturating_mul(self.job.steps.len().max(1) as u64)
    }

    /// Number of slots that must have an outcome at the end of an uninterrupted load. `None` if only time
    /// ends the load.
    pub(crate) fn slots_due(&self) -> Option<u64> {
        let ends_by_time = self.stop.duration.is_some() || !self.job.slices.is_empty();
        self.slots.filter(|_| !ends_by_time)
    }

    /// Returns the planned end of a load that began at `start_ns`, after `ended` of its slots. `None` if
    /// slices or a number of slots ended the load.
    pub(crate) fn planned_end_ns(&self, start_ns: u64, ended: u64) -> Option<u64> {
        let length = match &self.plan {
            Some(plan) => plan.duration(),
            None if self.stop.requests.is_some_and(|all| ended >= all) => return None,
            // The last slice ends it, and the time of slices is summed in another place.
            None if !self.job.slices.is_empty() => return None,
            None => self.stop.duration?,
        };
        Some(start_ns.saturating_add(to_ns(length)))
    }

    pub(crate) fn connections_of(&self, thread: u32, threads: u32) -> usize {
        let own = Shard::WHOLE.thread(thread, threads);
        let connections = own.connections(self.connections);
        usize::try_from(connections).expect("32 bits fit into an address")
    }

    /// Returns the requests of a thread with their own rules, because rules learn from responses.
    pub(crate) fn workload(&self) -> Workload {
        Workload {
            peer: self.peer.clone(),
            timeout_ns: self.timeout_ns(),
            keep_alive: self.job.keep_alive,
            rotation: self.rotation.clone(),
            script: self.script.clone(),
            as_evidence: None,
        }
    }

    /// Returns the timeout, limited to 146 years so that no sum of times overflows.
    fn timeout_ns(&self) -> u64 {
        to_ns(self.job.timeout).min(u64::MAX / 4)
    }

    pub(crate) fn outlet(&self, connections: usize) -> Outlet {
        Outlet {
            route: self.route.clone(),
            messages: self.messages.clone(),
            connections,
            bounds: self.job.bound,
        }
    }

    /// Returns the slots of one thread: every `threads`th slot of the load, or of its shard.
    pub(crate) fn supply(&self, thread: u32, threads: u32, start_ns: u64) -> Supply {
        let shard = self.job.shard.thread(thread, threads);
        // A load that ends after a number of requests counts the requests of this generator.
        let own = Shard::WHOLE.thread(thread, threads);
        let (first, step) = (u64::from(shard.index()), u64::from(shard.of()));
        match &self.plan {
            Some(plan) => {
                let times = PlanTimes {
                    start_ns,
                    end_ns: start_ns.saturating_add(to_ns(plan.duration())),
                    grace_ns: self.timeout_ns(),
                };
                let slots = match self.job.seat {
                    None => PlanSlots::Alone(plan.shard(first, step)),
                    Some(seat) => PlanSlots::Seated(plan.seated(seat, first, step)),
                };
                Supply::Open(Open::new(slots, times))
            }
            None => Supply::Closed(Closed {
                next: first,
                step,
                left: self.stop.requests.map(|requests| own.part_of(requests)),
                end_ns: self
                    .stop
                    .duration
                    .map(|duration| start_ns.saturating_add(to_ns(duration))),
                slices: Slices::new(&self.job.slices, start_ns),
            }),
        }
    }

    /// Returns the empty account of one thread.
    pub(crate) fn recorder(&self, threads: u32, start_ns: u64, clock: Clock) -> Recorder {
        let names = self.job.steps.iter().map(|step| step.name.clone());
        let kept = self.job.keep_slots.map(|most| match self.slots {
            // Threads take turns, so a thread has at most one slot more than another thread.
            Some(slots) => usize::try_from(slots.div_ceil(u64::from(threads)))
                .expect("the number of slots was compared with what is kept"),
            None => most / threads as usize,
        });
        let blocks = self
            .job
            .keep_blocks
            .then(|| Blocks::new(&self.job.load, self.job.shard, threads, start_ns));
        Recorder::new(start_ns, self.job.failures_kept)
            .for_steps(names)
            .with_slots(kept)
            .with_blocks(blocks)
            .with_statuses_apart(self.has_several_statuses())
            .with_events(self.has_streams().then_some(clock))
    }
}

/// Refuses a load with more slots than times may be kept.
fn verify_kept(job: &Job, slots: Option<u64>) -> Result<(), LoadError> {
    let (Some(kept), Some(planned)) = (job.keep_slots, slots) else {
        return Ok(());
    };
    // Indices are kept in 32 bits. A limit beyond 64 bits is enough for all slots.
    let most = u64::try_from(kept).map_or(1 << 32, |kept| kept.min(1 << 32));
    if planned > most {
        return Err(LoadError::SlotsKept { planned, kept });
    }
    Ok(())
}

fn messages(
    job: &Job,
    rotation: &Rotation,
    script: &Script,
    route: &Route,
) -> Result<Messages, LoadError> {
    let messages = general::messages(rotation, script, route);
    messages.map_err(|(index, reason)| {
        let request = &job.requests[index];
        LoadError::Request {
            index,
            method: request.method.clone(),
            path: request.path.clone(),
            reason,
        }
    })
}

fn rotation(job: &Job) -> Result<Rotation, LoadError> {
    if !job.steps.is_empty() {
        return Ok(Rotation::new(rendered(job, 1)?, vec![0]));
    }
    let weights: Vec<u32> = job.requests.iter().map(|request| request.weight).collect();
    // A weight of 0 is a mistake of its own request, which `rendered` reports by its place.
    let turns = rendered::turns(&weights).filter(|_| !weights.contains(&0));
    let requests = rendered(job, turns.as_ref().map_or(1, Vec::len))?;
    Ok(Rotation::new(requests, turns.ok_or(LoadError::Weights)?))
}

/// Returns the requests of a job, ready to be sent. `turn` is the length of the rotation.
pub(crate) fn rendered(job: &Job, turn: usize) -> Result<Vec<Rendered>, LoadError> {
    if job.requests.is_empty() {
        return Err(LoadError::NoRequests);
    }
    let (requests, steps) = (job.requests.len(), job.steps.len());
    if steps > 0 && steps != requests {
        return Err(LoadError::Steps { requests, steps });
    }
    verify_carriers(job)?;
    let captures = scenario::names(&job.steps);
    let values = values(job, turn, &captures)?;
    let mut captures_known = 0;
    let mut rendered = Vec::new();
    for (index, request) in job.requests.iter().enumerate() {
        let wrong = |reason| LoadError::Request {
            index,
            method: request.method.clone(),
            path: request.path.clone(),
            reason,
        };
        let places = values.as_ref().map(|values| Places {
            values: Arc::clone(values),
            captures_known,
            request: index,
        });
        let made = Rendered::new(&job.target, request, job.keep_alive, places.as_ref())
            .and_then(|made| made.verify_rows().map(|()| made));
        rendered.push(made.map_err(wrong)?);
        // Captures of this step are available to later steps, and not to the step itself.
        captures_known = scenario::names(&job.steps[..steps.min(index + 1)]).len();
    }
    capturing(job, rendered, &captures)
}

/// Returns the requests with the captures of their steps.
fn capturing(
    job: &Job,
    rendered: Vec<Rendered>,
    names: &[String],
) -> Result<Vec<Rendered>, LoadError> {
    // A later path decides which characters a value can have.
    let raw = rendered.iter().flat_map(Rendered::raw_captures);
    let raw: Vec<_> = raw.copied().collect();
    let with_captures = |(index, made): (usize, Rendered)| {
        let own = job.steps.get(index).map_or(&[][..], |step| &step.captures);
        let request = &job.requests[index];
        made.capturing(own, names, &raw)
            .map_err(|reason| LoadError::Request {
                index,
                method: request.method.clone(),
                path: request.path.clone(),
                reason,
            })
    };
    rendered
        .into_iter()
        .enumerate()
        .map(with_captures)
        .collect()
}

/// Refuses a job whose requests are partly of HTTP and partly of WebSocket, unless they are the steps of a
/// scenario.
fn verify_carriers(job: &Job) -> Result<(), LoadError> {
    if !job.steps.is_empty() {
        return Ok(());
    }
    let is_socket = |request: &Request| request.websocket.is_some();
    let first = is_socket(&job.requests[0]);
    let other = job.requests.iter().position(|it| is_socket(it) != first);
    let Some(index) = other else {
        return Ok(());
    };
    let request = &job.requests[index];
    Err(LoadError::Request {
        index,
        method: request.method.clone(),
        path: request.path.clone(),
        reason: RequestError::WebSocket(
            "expected requests of one kind, found HTTP and WebSocket in one load. Send them in two \
             loads, or as the steps of a scenario"
                .to_owned(),
        ),
    })
}

/// Returns the values of places. `None` without places.
fn values(job: &Job, turn: usize, captures: &[String]) -> Result<Option<Arc<Values>>, LoadError> {
    let nothing = Data {
        columns: Vec::new(),
        rows: Vec::new(),
        ranges: Vec::new(),
        order: RowOrder::Rotation,
        seed: 0,
    };
    let data = match &job.data {
        Some(data) => data,
        None if captures.is_empty() => return Ok(None),
        None => &nothing,
    };
    let expected = data.columns.len();
    if expected > 0 && data.rows.is_empty() {
        return Err(LoadError::NoRows);
    }
    let wrong = data.rows.iter().position(|row| row.len() != expected);
    if let Some(row) = wrong {
        let found = data.rows[row].len();
        return Err(LoadError::Row {
            row,
            expected,
            found,
        });
    }
    Ok(Some(Arc::new(Values::new(data, turn, captures.to_vec()))))
}
