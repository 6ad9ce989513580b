//! Prepares a job, runs its generator threads, and adds up what they saw.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use model::{Load, Stop};
use rustix::process::{Resource, Rlimit};
use rustix::thread::CpuSet;
use schedule::{OpenPlan, PlanError};

use crate::clock::{Clock, to_ns};
use crate::general::{self, Cargo, Crew, Route, TlsError};
use crate::generator::Generator;
use crate::job::{Data, Job, RowOrder, Version};
use crate::live::Live;
use crate::measurement::{GeneratorCost, Measurement};
use crate::poll::Poll;
use crate::priority::{Core, Priority};
use crate::recorder::Recorder;
use crate::rendered::{self, Rendered, RequestError, Rotation};
use crate::scenario;
use crate::socket::Peer;
use crate::supply::{Closed, Open, Supply};
use crate::template::{Places, Values};
use crate::worker::{Shared, Worker};

/// Files that the process may have open beside its connections.
const OTHER_FILES: u64 = 64;

/// Why a load could not be begun. What goes wrong later is an outcome.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is nothing to send.
    #[error("expected at least one request, found none")]
    NoRequests,
    /// A request cannot be sent.
    #[error("request {} (`{method} {path}`): {reason}", index + 1)]
    Request {
        /// Its position in the job, from 0.
        index: usize,
        /// Its method.
        method: String,
        /// Its path.
        path: String,
        /// What is wrong with it.
        reason: RequestError,
    },
    /// There are columns and nothing in them.
    #[error("expected at least one row of data, found none")]
    NoRows,
    /// A row of the data with too few or too many values.
    #[error("row {} of the data: expected {expected} values, found {found}", row + 1)]
    Row {
        /// Its position, from 0.
        row: usize,
        /// Number of columns.
        expected: usize,
        /// Number of values.
        found: usize,
    },
    /// The weights have no common turn of sensible length.
    #[error(
        "the weights need a turn of more than 65,536 requests; use smaller weights, or ones with a common divisor"
    )]
    Weights,
    /// Steps that are not those of the requests.
    #[error("expected a step for each of {requests} requests, found {steps}")]
    Steps {
        /// Number of requests.
        requests: usize,
        /// Number of steps.
        steps: usize,
    },
    /// Nobody to send.
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// A closed loop that never ends.
    #[error("expected a number of requests or a duration after which to stop, found neither")]
    Endless,
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system does not allow so many connections.
    #[error(
        "{connections} connections need {needed} open files and the system allows {allowed}; raise it with `ulimit -n`"
    )]
    OpenFiles {
        /// Connections asked for.
        connections: u32,
        /// Files they need.
        needed: u64,
        /// Files allowed.
        allowed: u64,
    },
    /// The path of a Unix socket.
    #[error("not an address: {0}")]
    Address(std::io::Error),
    /// TLS with the target.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The event loop of TLS and HTTP/2.
    #[error("cannot create an event loop: {0}")]
    Runtime(std::io::Error),
    /// The event loop.
    #[error("cannot create an epoll instance: {0}")]
    Poll(rustix::io::Errno),
    /// A pin to a CPU that is not there.
    #[error("cannot pin a generator thread to CPU {cpu}: {reason}")]
    Pin {
        /// The CPU asked for.
        cpu: usize,
        /// The system's words.
        reason: rustix::io::Errno,
    },
}

/// Runs a job until its end, or until `stop` is set, which ends it within a few milliseconds and
/// leaves the requests under way without an outcome.
///
/// In a closed loop with keep-alive all connections are opened before the first send, and their
/// connect times are recorded apart. Wherever else a request needs a new connection, connecting is
/// part of its latency and not of its service time.
///
/// # Errors
/// When the job cannot be begun. What happens to its requests is in the [`Measurement`].
pub fn run(job: &Job, live: &Live, stop: &AtomicBool) -> Result<Measurement, LoadError> {
    run_and_look(job, live, stop, || ()).map(|(measurement, ())| measurement)
}

/// Runs a job as [`run`] does, and takes a last look before its connections are closed: many a server
/// ends a thread with its connection, and with the thread goes what the kernel counted of it. With
/// TLS or HTTP/2 they are closed before.
///
/// # Errors
/// As of [`run`].
pub fn run_and_look<T>(
    job: &Job,
    live: &Live,
    stop: &AtomicBool,
    look: impl FnOnce() -> T,
) -> Result<(Measurement, T), LoadError> {
    let prepared = Prepared::new(job)?;
    live.planned
        .fetch_add(prepared.planned(), Ordering::Relaxed);
    let peer = Peer::new(&job.target.address).map_err(LoadError::Address)?;
    let shared = Shared {
        clock: Clock::start(),
        peer: &peer,
        timeout_ns: to_ns(job.timeout).min(u64::MAX / 4),
        keep_alive: job.keep_alive,
        live,
        stop,
    };
    let epolls = (0..prepared.threads)
        .map(|_| Poll::create().map_err(LoadError::Poll))
        .collect::<Result<Vec<_>, _>>()?;
    let start = Start::new(prepared.threads);
    let parts: Vec<Result<Part, LoadError>> = std::thread::scope(|scope| {
        let (prepared, start) = (&prepared, &start);
        let threads: Vec<_> = (0..)
            .zip(epolls)
            .map(|(thread, epoll)| {
                scope.spawn(move || prepared.generate(thread, epoll, shared, start))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let parts = parts
        .into_iter()
        .collect::<Result<Vec<Part>, LoadError>>()?;
    let seen = look();
    Ok((sum(parts, prepared.threads), seen))
}

/// What one thread brought back.
struct Part {
    recorder: Recorder,
    cpu: Duration,
    waited_for_cpu: Option<Duration>,
    /// Whether it could have real-time priority, and for how long it had it.
    realtime: (bool, Duration),
    was_interrupted: bool,
    /// Not yet closed.
    _sockets: Vec<OwnedFd>,
}

fn sum(parts: Vec<Part>, threads: u32) -> Measurement {
    let cpu = parts.iter().map(|part| part.cpu).sum();
    let waited_for_cpu = parts.iter().map(|part| part.waited_for_cpu).sum();
    let realtime = parts.iter().all(|part| part.realtime.0);
    let realtime_for = parts.iter().map(|part| part.realtime.1).sum();
    let interrupted = parts.iter().any(|part| part.was_interrupted);
    let recorder = parts
        .into_iter()
        .map(|part| part.recorder)
        .reduce(|mut total, part| {
            total.absorb(part);
            total
        })
        .expect("there is at least one thread");
    let generator = GeneratorCost {
        cpu,
        threads,
        waited_for_cpu,
        realtime,
        realtime_for: realtime.then_some(realtime_for),
        ..GeneratorCost::default()
    };
    let mut measurement = recorder.into_measurement(generator);
    measurement.interrupted = interrupted;
    measurement
}

/// What an open loop's threads get between the moment that they begin together and the first slot: the
/// histograms are made in it, and their memory is touched for the first time (2 ms where measured).
const LEAD: Duration = Duration::from_millis(10);

/// The threads begin together: none sends while another still connects.
struct Start {
    barrier: Barrier,
    start_ns: OnceLock<u64>,
    is_cancelled: AtomicBool,
}

impl Start {
    fn new(threads: u32) -> Start {
        Start {
            barrier: Barrier::new(threads as usize),
            start_ns: OnceLock::new(),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// Waits for all others. Returns the start of the load, so long from now, or `None` when one of
    /// them cannot take part.
    fn wait(&self, clock: Clock, lead: Duration) -> Option<u64> {
        self.barrier.wait();
        let start = || clock.now_ns().saturating_add(to_ns(lead));
        let start_ns = *self.start_ns.get_or_init(start);
        (!self.is_cancelled.load(Ordering::Relaxed)).then_some(start_ns)
    }
}

/// A job that was found to be possible.
struct Prepared<'a> {
    job: &'a Job,
    rotation: Rotation,
    /// How to speak with the target where the fast path cannot.
    route: Option<Route>,
    plan: Option<OpenPlan>,
    stop: Stop,
    connections: u32,
    threads: u32,
}

impl Prepared<'_> {
    fn new(job: &Job) -> Result<Prepared<'_>, LoadError> {
        let rotation = rotation(job)?;
        let route = match job.target.protocol.is_plain() {
            true => None,
            false => Some(Route::new(&job.target)?),
        };
        let (connections, stop, plan) = match &job.load {
            Load::Closed { connections, stop } => {
                if stop.requests.is_none() && stop.duration.is_none() {
                    return Err(LoadError::Endless);
                }
                (*connections, *stop, None)
            }
            Load::Open {
                phases,
                arrival,
                connections_max,
                requests_max,
            } => {
                let plan = OpenPlan::new(phases, *arrival, *requests_max)?;
                let never = Stop {
                    requests: None,
                    duration: None,
                };
                (*connections_max, never, Some(plan))
            }
        };
        if connections == 0 {
            return Err(LoadError::Zero("connection"));
        }
        if job.threads == 0 {
            return Err(LoadError::Zero("generator thread"));
        }
        if job.target.protocol.version.streams() == 0 {
            return Err(LoadError::Zero("stream"));
        }
        allow_open_files(connections)?;
        Ok(Prepared {
            job,
            rotation,
            route,
            plan,
            stop,
            connections,
            threads: job.threads.min(connections),
        })
    }

    /// Slots known beforehand.
    fn planned(&self) -> u64 {
        let slots = match &self.plan {
            Some(plan) => plan.len(),
            None => self.stop.requests.unwrap_or(0),
        };
        slots.saturating_mul(self.job.steps.len().max(1) as u64)
    }

    /// The whole life of one generator thread.
    fn generate(
        &self,
        thread: u32,
        epoll: OwnedFd,
        shared: Shared<'_>,
        start: &Start,
    ) -> Result<Part, LoadError> {
        let generator = self.settle(thread).and_then(|()| match &self.route {
            None => Ok(Generator::Fast(self.worker(thread, epoll, shared))),
            Some(route) => self.crew(thread, route, shared).map(Generator::General),
        });
        let mut priority = self.priority();
        let mut generator = match generator {
            Ok(generator) => generator,
            Err(error) => {
                start.is_cancelled.store(true, Ordering::Relaxed);
                start.wait(shared.clock, Duration::ZERO);
                return Err(error);
            }
        };
        if self.plan.is_none() && shared.keep_alive {
            generator.open_all();
        }
        let lead = self.plan.as_ref().map_or(Duration::ZERO, |_| LEAD);
        let begin = start.wait(shared.clock, lead);
        let (cpu, waited) = (cpu_time(), waited_for_cpu());
        if let Some(start_ns) = begin {
            let steps = self.job.steps.iter().map(|step| step.name.clone());
            let recorder = Recorder::new(start_ns, self.job.failures_kept).for_steps(steps);
            let supply = self.supply(thread, start_ns);
            generator.run(supply, recorder, &mut priority);
        }
        let realtime = priority.end(shared.clock.now_ns());
        let cpu = cpu_time().saturating_sub(cpu);
        let waited = waited.zip(waited_for_cpu());
        let sockets = generator.take_sockets();
        let (recorder, was_interrupted) = generator.finish();
        Ok(Part {
            recorder,
            cpu,
            waited_for_cpu: waited.map(|(before, after)| after.saturating_sub(before)),
            realtime,
            was_interrupted,
            _sockets: sockets,
        })
    }

    fn worker<'b>(&self, thread: u32, epoll: OwnedFd, shared: Shared<'b>) -> Box<Worker<'b>> {
        let mut worker = Worker::new(
            shared,
            Poll::new(epoll, self.job.spin_share.clamp(0.0, 1.0)),
            self.rotation.clone(),
            self.connections_of(thread),
            self.job.bound,
        );
        let captures = scenario::names(&self.job.steps).len();
        worker.follow(&self.job.steps, captures);
        Box::new(worker)
    }

    fn script(&self) -> general::Script {
        let captures = scenario::names(&self.job.steps).len();
        general::Script::new(&self.job.steps, captures)
    }

    fn crew<'b>(
        &self,
        thread: u32,
        route: &Route,
        shared: Shared<'b>,
    ) -> Result<Crew<'b>, LoadError> {
        let cargo = Cargo {
            route: route.clone(),
            rotation: self.rotation.clone(),
            script: self.script(),
            messages: self.messages(route)?,
        };
        Crew::new(shared, cargo, self.connections_of(thread), self.job.bound)
            .map_err(LoadError::Runtime)
    }

    /// The requests as HTTP/2 carries them; none for HTTP/1.1.
    fn messages(&self, route: &Route) -> Result<general::Messages, LoadError> {
        if self.job.target.protocol.version == Version::Http1 {
            return Ok(Vec::new());
        }
        general::messages(&self.rotation, &self.script(), route).map_err(|(index, reason)| {
            let request = &self.job.requests[index];
            LoadError::Request {
                index,
                method: request.method.clone(),
                path: request.path.clone(),
                reason: RequestError::Http2(reason),
            }
        })
    }

    fn connections_of(&self, thread: u32) -> usize {
        let connections = share(u64::from(self.connections), thread, self.threads);
        usize::try_from(connections).expect("a part of 32 bits fits into an address")
    }

    /// Pins the thread and makes its sleeps punctual.
    fn settle(&self, thread: u32) -> Result<(), LoadError> {
        // Refused only where the call is unknown: sleeps are then up to 50 microseconds longer,
        // and the event loop adapts.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let Some(cpus) = self.job.cpus.as_deref().filter(|cpus| !cpus.is_empty()) else {
            return Ok(());
        };
        let cpu = cpus[thread as usize % cpus.len()];
        let pin = |reason| LoadError::Pin { cpu, reason };
        if cpu >= CpuSet::MAX_CPU {
            return Err(pin(rustix::io::Errno::INVAL));
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set).map_err(pin)
    }

    /// A closed loop has no times to keep, and whoever never sleeps would starve a core's others.
    fn priority(&self) -> Priority {
        if self.plan.is_none() || !self.job.realtime || self.job.spin_share >= 1.0 {
            return Priority::ordinary();
        }
        let is_pinned = self.job.cpus.as_ref().is_some_and(|cpus| !cpus.is_empty());
        Priority::realtime(if is_pinned { Core::Own } else { Core::Shared })
    }

    /// The slots of one thread: every `threads`th of the load.
    fn supply(&self, thread: u32, start_ns: u64) -> Supply {
        let step = u64::from(self.threads);
        match &self.plan {
            Some(plan) => {
                let end_ns = start_ns.saturating_add(to_ns(plan.duration()));
                let give_up_ns = end_ns.saturating_add(to_ns(self.job.timeout));
                let slots = plan.shard(u64::from(thread), step);
                Supply::Open(Open::new(slots, start_ns, give_up_ns))
            }
            None => Supply::Closed(Closed {
                next: u64::from(thread),
                step,
                left: self
                    .stop
                    .requests
                    .map(|requests| share(requests, thread, self.threads)),
                end_ns: self
                    .stop
                    .duration
                    .map(|duration| start_ns.saturating_add(to_ns(duration))),
            }),
        }
    }
}

/// A thread's part of a total that need not be divisible.
fn share(total: u64, thread: u32, threads: u32) -> u64 {
    total / u64::from(threads) + u64::from(u64::from(thread) < total % u64::from(threads))
}

fn rotation(job: &Job) -> Result<Rotation, LoadError> {
    if !job.steps.is_empty() {
        return Ok(Rotation::new(rendered(job, 1)?, vec![0]));
    }
    let weights: Vec<u32> = job.requests.iter().map(|request| request.weight).collect();
    let turns = rendered::turns(&weights).filter(|_| !weights.contains(&0));
    let requests = rendered(job, turns.as_ref().map_or(1, Vec::len))?;
    Ok(Rotation::new(requests, turns.ok_or(LoadError::Weights)?))
}

/// The requests of a job, ready to be sent. `turn` is the length of the rotation.
pub(crate) fn rendered(job: &Job, turn: usize) -> Result<Vec<Rendered>, LoadError> {
    if job.requests.is_empty() {
        return Err(LoadError::NoRequests);
    }
    let (requests, steps) = (job.requests.len(), job.steps.len());
    if steps > 0 && steps != requests {
        return Err(LoadError::Steps { requests, steps });
    }
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
        let own = job.steps.get(index).map_or(&[][..], |step| &step.captures);
        let made = Rendered::new(&job.target, request, job.keep_alive, places.as_ref())
            .and_then(|made| made.capturing(own, &captures));
        rendered.push(made.map_err(wrong)?);
        captures_known = scenario::names(&job.steps[..steps.min(index + 1)]).len();
    }
    Ok(rendered)
}

/// What places stand for; none when there are none.
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

/// Raises the limit of open files as far as it takes and the system lets us.
fn allow_open_files(connections: u32) -> Result<(), LoadError> {
    let needed = u64::from(connections) + OTHER_FILES;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(needed.max(limit.current.unwrap_or(0))),
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, raised).map_err(|_| LoadError::OpenFiles {
        connections,
        needed,
        allowed: limit.current.unwrap_or(u64::MAX),
    })
}

/// User and system time of the calling thread.
fn cpu_time() -> Duration {
    Duration::from_nanos(crate::clock::thread_cpu_ns())
}

/// How long the calling thread has waited for a CPU: the second number of its `schedstat`, in
/// nanoseconds (Documentation/scheduler/sched-stats.rst).
fn waited_for_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited_ns = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited_ns))
}
