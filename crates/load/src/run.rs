//! Runs the generator threads of one or several jobs, and adds up their accounts.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use rustix::thread::CpuSet;

use crate::clock::{Clock, to_ns};
use crate::error::LoadError;
use crate::fast::EpollEngine;
use crate::general::TokioEngine;
use crate::generator::Generator;
use crate::job::Job;
use crate::live::Live;
use crate::measurement::{GeneratorCost, Measurement};
use crate::pacing::Controls;
use crate::poll::Poll;
use crate::prepared::Prepared;
use crate::priority::{Core, Priority};
use crate::recorder::Recorder;

/// Number of files, other than connections, that the process may have open.
const OTHER_FILES: u64 = 64;

/// Runs a job until its end, or until `stop` is set. `stop` ends it within a few milliseconds, and requests
/// under way then have no outcome.
///
/// In a closed loop with keep-alive, all connections are opened before the first send, and their connect
/// times are recorded separately. If a request needs a new connection in any other case, connecting is part
/// of its latency and not of its service time.
///
/// # Errors
/// If the job cannot begin. Failures of its requests are in the [`Measurement`].
pub fn run(job: &Job, live: &Live, stop: &AtomicBool) -> Result<Measurement, LoadError> {
    run_and_look(job, live, stop, || ()).map(|(measurement, ())| measurement)
}

/// Runs a job like [`run`], and calls `look` before its connections are closed. Many servers end a thread
/// with its connection, and the kernel's counters of the thread end with it. With TLS or HTTP/2 the
/// connections are closed before the call.
///
/// # Errors
/// See [`run`].
pub fn run_and_look<T>(
    job: &Job,
    live: &Live,
    stop: &AtomicBool,
    look: impl FnOnce() -> T,
) -> Result<(Measurement, T), LoadError> {
    let (mut measurements, seen) = run_together(std::slice::from_ref(job), live, stop, look)?;
    let only = measurements.pop().expect("one job has one measurement");
    Ok((only, seen))
}

/// Runs several jobs at once, each with its own plan and target, in the same threads and from one start.
/// Calls `look` like [`run_and_look`]. Returns a measurement for each job, in order.
///
/// A thread has one clock and one wait for all jobs, so a delay affects all jobs equally. Slots that are
/// overdue at the same time leave in the order of their due times, independent of the job.
///
/// `threads`, `spin_share`, `realtime` and `cpus` must be equal in all jobs. A thread takes part in all jobs,
/// so there are at most as many threads as the job with the fewest connections has. One job with TLS or
/// HTTP/2 makes all jobs use the general carrier, so that they are comparable. [`Measurement::generator`] is
/// the cost of all jobs together, in each job. A pause is in each job that had work to do during it.
///
/// # Errors
/// See [`run`], for the first job that cannot begin. Also if there is no job, and if jobs request different
/// threads.
pub fn run_together<T>(
    jobs: &[Job],
    live: &Live,
    stop: &AtomicBool,
    look: impl FnOnce() -> T,
) -> Result<(Vec<Measurement>, T), LoadError> {
    let group = Group::new(jobs)?;
    let planned = group.lanes.iter().map(Prepared::planned).sum();
    live.planned.fetch_add(planned, Ordering::Relaxed);
    let controls = Controls {
        clock: Clock::start(),
        live,
        stop,
        yields: jobs.iter().any(|job| job.yields),
    };
    let start = Start::new(group.threads);
    let parts: Vec<Result<Part, LoadError>> = std::thread::scope(|scope| {
        let (group, start) = (&group, &start);
        let threads: Vec<_> = (0..group.threads)
            .map(|thread| scope.spawn(move || group.generate(thread, controls, start)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    // A panic in a thread is a defect, and must not become an error of the load.
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let parts = parts
        .into_iter()
        .collect::<Result<Vec<Part>, LoadError>>()?;
    // The parts keep the sockets open until here.
    let seen = look();
    let mut measurements = sum(parts, &group);
    let began = start
        .start_ns
        .get()
        .map(|at_ns| controls.clock.moment(*at_ns));
    for measurement in &mut measurements {
        measurement.began = began;
    }
    Ok((measurements, seen))
}

/// The result of one thread.
struct Part {
    /// One recorder for each lane.
    recorders: Vec<Recorder>,
    cpu: Duration,
    waited_for_cpu: Option<Duration>,
    /// Time over which `cpu` and `waited_for_cpu` were counted.
    counted_ns: u64,
    /// True if it had real-time priority, and the duration of that priority.
    realtime: (bool, Duration),
    was_interrupted: bool,
    /// The time at which it had no more work.
    ended_ns: u64,
    /// Sockets that are still open.
    _sockets: Vec<OwnedFd>,
}

fn sum(parts: Vec<Part>, group: &Group<'_>) -> Vec<Measurement> {
    let realtime = parts.iter().all(|part| part.realtime.0);
    let generator = GeneratorCost {
        cpu: parts.iter().map(|part| part.cpu).sum(),
        threads: group.threads,
        // `None` if one thread has no value: a part must not look like the total.
        waited_for_cpu: parts.iter().map(|part| part.waited_for_cpu).sum(),
        counted: Some(Duration::from_nanos(
            parts.iter().map(|part| part.counted_ns).sum(),
        )),
        realtime,
        realtime_for: realtime.then(|| parts.iter().map(|part| part.realtime.1).sum()),
        ..GeneratorCost::default()
    };
    let interrupted = parts.iter().any(|part| part.was_interrupted);
    let ended_ns = parts.iter().map(|part| part.ended_ns).max();
    let mut threads = parts.into_iter().map(|part| part.recorders);
    let mut totals = threads.next().expect("there is at least one thread");
    for recorders in threads {
        for (total, part) in totals.iter_mut().zip(recorders) {
            total.absorb(part);
        }
    }
    let measurement = |(total, lane): (Recorder, &Prepared<'_>)| {
        let ended = total.slots_ended();
        if let Some(planned) = lane.slots_due().filter(|_| !interrupted) {
            assert_eq!(planned, ended, "every planned slot ends in one outcome");
        }
        let end_ns = match interrupted {
            true => ended_ns,
            false => lane.planned_end_ns(total.start_ns(), ended),
        };
        let mut measurement = total.into_measurement(generator.clone(), end_ns);
        measurement.interrupted = interrupted;
        measurement
    };
    totals
        .into_iter()
        .zip(&group.lanes)
        .map(measurement)
        .collect()
}

/// Time between the common start of an open loop's threads and the first slot. In it the histograms are
/// created, and their memory is touched for the first time (2 ms where measured).
const LEAD: Duration = Duration::from_millis(10);

/// The common start of the threads. No thread sends while another still connects.
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

    /// Waits for all threads. Returns the start of the load, which is `lead` from now, but not before
    /// `at_ns`. `None` if a thread cannot take part.
    fn wait(&self, clock: Clock, lead: Duration, at_ns: u64) -> Option<u64> {
        self.barrier.wait();
        let start = || clock.now_ns().saturating_add(to_ns(lead)).max(at_ns);
        // The first thread after the barrier sets the time, and the other threads use it.
        let start_ns = *self.start_ns.get_or_init(start);
        // Relaxed, because the flag is set before the barrier, which orders both.
        (!self.is_cancelled.load(Ordering::Relaxed)).then_some(start_ns)
    }
}

/// Jobs that run at once, each a lane of every thread.
struct Group<'a> {
    lanes: Vec<Prepared<'a>>,
    /// The job with the settings that all jobs share.
    first: &'a Job,
    threads: u32,
    /// True if the fast carrier supports the protocol of all targets.
    is_plain: bool,
}

impl Group<'_> {
    fn new(jobs: &[Job]) -> Result<Group<'_>, LoadError> {
        let first = jobs.first().ok_or(LoadError::Zero("job"))?;
        for job in jobs {
            verify_alike(first, job)?;
        }
        let lanes = jobs
            .iter()
            .map(Prepared::new)
            .collect::<Result<Vec<_>, _>>()?;
        let connections = lanes.iter().map(|lane| lane.connections);
        // A sum beyond 32 bits exceeds any limit of open files.
        allow_open_files(connections.clone().fold(0, u32::saturating_add))?;
        // A thread without a connection could not send its part of the slots.
        let fewest = connections.min().expect("there is a first job");
        Ok(Group {
            lanes,
            first,
            threads: first.threads.min(fewest),
            is_plain: jobs.iter().all(|job| job.is_plain()),
        })
    }

    fn has_plan(&self) -> bool {
        self.lanes.iter().any(Prepared::is_open_loop)
    }

    /// Runs one generator thread from start to end.
    fn generate(
        &self,
        thread: u32,
        controls: Controls<'_>,
        start: &Start,
    ) -> Result<Part, LoadError> {
        let generator = self
            .settle(thread)
            .and_then(|()| self.generator(thread, controls));
        let mut priority = self.priority();
        let mut generator = match generator {
            Ok(generator) => generator,
            Err(error) => {
                // The other threads wait at the barrier, and must learn of the error.
                start.is_cancelled.store(true, Ordering::Relaxed);
                start.wait(controls.clock, Duration::ZERO, 0);
                return Err(error);
            }
        };
        for (lane, prepared) in self.lanes.iter().enumerate() {
            if prepared.opens_before() {
                generator.open_all(lane);
            }
        }
        let lead = if self.has_plan() {
            LEAD
        } else {
            Duration::ZERO
        };
        let at_ns = self.first.start_at.map_or(0, |at| controls.clock.at(at));
        let begin = start.wait(controls.clock, lead, at_ns);
        // Counted from here on: opening connections before the load is no cost of the load.
        // The generator sleeps until a common start, which is no time for work.
        let before_load_ns = begin.map_or(0, |start_ns| start_ns.saturating_sub(to_ns(LEAD)));
        let counted_from_ns = controls.clock.now_ns().max(before_load_ns);
        let (cpu, waited) = (cpu_time(), waited_for_cpu());
        if let Some(start_ns) = begin {
            let load = |(job, lane): (usize, &Prepared<'_>)| {
                let supply = lane.supply(thread, self.threads, start_ns);
                let recorder = lane.recorder(self.threads, start_ns, controls.clock);
                (supply, recorder.with_live(controls.live.wants(job)))
            };
            let loads = self.lanes.iter().enumerate().map(load).collect();
            generator.run(loads, &mut priority);
        }
        let ended_ns = controls.clock.now_ns();
        let realtime = priority.end(ended_ns);
        let cpu = cpu_time().saturating_sub(cpu);
        let waited = waited.zip(waited_for_cpu());
        let counted_ns = controls.clock.now_ns().saturating_sub(counted_from_ns);
        // They stay open until all threads have ended and `look` has returned.
        let sockets = generator.take_sockets();
        let (recorders, was_interrupted) = generator.finish();
        Ok(Part {
            recorders,
            cpu,
            waited_for_cpu: waited.map(|(before, after)| after.saturating_sub(before)),
            counted_ns,
            realtime,
            was_interrupted,
            ended_ns,
            _sockets: sockets,
        })
    }

    fn generator<'b>(
        &self,
        thread: u32,
        controls: Controls<'b>,
    ) -> Result<Generator<'b>, LoadError> {
        let spin_share = self.first.spin_share.clamp(0.0, 1.0);
        let connections = |lane: &Prepared<'_>| lane.connections_of(thread, self.threads);
        if self.is_plain {
            let epoll = Poll::create().map_err(LoadError::Poll)?;
            let mut engine = EpollEngine::new(controls, Poll::new(epoll, spin_share));
            for lane in &self.lanes {
                engine.add_lane(lane.workload(), connections(lane), lane.job.bound);
            }
            return Ok(Generator::Fast(Box::new(engine)));
        }
        let load = |lane: &Prepared<'_>| (lane.workload(), lane.outlet(connections(lane)));
        let loads = self.lanes.iter().map(load).collect();
        TokioEngine::new(controls, spin_share, loads)
            .map(Generator::General)
            .map_err(LoadError::Runtime)
    }

    /// Pins the thread and makes its sleeps punctual.
    fn settle(&self, thread: u32) -> Result<(), LoadError> {
        // Refused only if the kernel does not support the call. Sleeps are then up to 50 microseconds longer,
        // and the event loop adapts.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let Some(cpus) = self.first.cpus.as_deref().filter(|cpus| !cpus.is_empty()) else {
            return Ok(());
        };
        let cpu = cpus[thread as usize % cpus.len()];
        let pin = |reason| LoadError::Pin { cpu, reason };
        // A larger number would make `set` panic.
        if cpu >= CpuSet::MAX_CPU {
            return Err(pin(rustix::io::Errno::INVAL));
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set).map_err(pin)
    }

    /// Returns the priority of a thread. A closed loop has no due times. A thread that never sleeps would
    /// starve other programs on its core.
    fn priority(&self) -> Priority {
        if !self.has_plan() || !self.first.realtime || self.first.spin_share >= 1.0 {
            return Priority::ordinary();
        }
        let is_pinned = self
            .first
            .cpus
            .as_ref()
            .is_some_and(|cpus| !cpus.is_empty());
        Priority::realtime(if is_pinned { Core::Own } else { Core::Shared })
    }
}

/// Refuses jobs that cannot share threads.
#[expect(
    clippy::float_cmp,
    reason = "shares that were written alike are the same bits"
)]
fn verify_alike(first: &Job, job: &Job) -> Result<(), LoadError> {
    let unlike = if first.threads != job.threads {
        "number of generator threads"
    } else if first.spin_share != job.spin_share {
        "spin share"
    } else if first.realtime != job.realtime {
        "setting of real-time priority"
    } else if first.cpus != job.cpus {
        "CPUs"
    } else {
        return Ok(());
    };
    Err(LoadError::Unlike(unlike))
}

/// Raises the limit of open files as needed, up to the limit of the system.
fn allow_open_files(connections: u32) -> Result<(), LoadError> {
    let needed = u64::from(connections) + OTHER_FILES;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // `None` means no limit.
    let Some(current) = limit.current.filter(|current| *current < needed) else {
        return Ok(());
    };
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, raised).map_err(|_| LoadError::OpenFiles {
        connections,
        needed,
        allowed: current,
    })
}

/// Returns user and system time of the calling thread.
fn cpu_time() -> Duration {
    Duration::from_nanos(crate::clock::thread_cpu_ns())
}

/// Returns the time that the calling thread has waited for a CPU: the second number of its `schedstat`, in
/// nanoseconds (Documentation/scheduler/sched-stats.rst).
fn waited_for_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited_ns = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited_ns))
}
