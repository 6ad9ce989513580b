//! Creation of a recording from measurements, and of its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::Summary;
use lab::{Lab, Setup, Variant};
use load::{Job, Measurement};
pub(crate) use model::micros;
use model::{Load, Shard};
use recording::{
    self as wire, Environment, EventsRecord, FileText, Format, Hdr, Kind, LabText, LimitsText,
    LoadText, METHOD, MachineUse, Measured, PositionRecord, Profile, ProtocolText, Recording,
    RequestText, RoundRecord, SummedTimes, SystemRecord, SystemUsage, TimesRecord, VariantRecord,
    VariantStatus, WhyRecord, Windows,
};
use rig::{Moment, Usage};
use stats::Histogram;

use crate::digest::sha256;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::secrets::{self, Values};

mod factors;
mod sent;

pub(crate) use sent::{baseline_of, descriptors, own_protocol, own_requests, prepared};
use sent::{empty_request, headers_of, protocol, requests_of, with_content};

/// The systems that keep running from round to round.
#[derive(Clone, Debug)]
pub(crate) enum Reuse {
    Nothing,
    All,
    /// The systems with these names, of every candidate. Each round restarts all other systems.
    Only(BTreeSet<String>),
}

/// The parts of a lab's recording that only the run can supply.
pub(crate) struct Outline {
    pub(crate) order: Vec<Vec<String>>,
    /// The load as it was sent.
    pub(crate) load: Load,
    /// The run's choice of the rate, with its reason. `None` if the lab sets the rate.
    pub(crate) chosen: Option<wire::RateChosen>,
    pub(crate) measured: Measured,
    pub(crate) seed: u64,
    pub(crate) until: Option<wire::UntilText>,
    pub(crate) decided: Option<wire::DecidedText>,
    pub(crate) started_at: String,
    pub(crate) is_interrupted: bool,
    /// The reason why a cluster ended the run. `None` if the user stopped it, or it was complete.
    pub(crate) ended_because: Option<String>,
    pub(crate) environment: Environment,
    pub(crate) variants: Vec<VariantRecord>,
    pub(crate) rounds: Vec<RoundRecord>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) why: Option<WhyRecord>,
    pub(crate) reuse: Reuse,
    /// The longest time that kept systems took to settle again.
    pub(crate) resettle: Duration,
    /// The cluster of the run. `None` if the systems ran on this machine.
    pub(crate) cluster: Option<wire::ClusterText>,
}

/// Creates the recording of a lab.
pub(crate) fn of_lab(lab: &Lab, run: Outline) -> Recording {
    let credentials = Values::of(
        lab.all()
            .flat_map(|it| it.requests.iter().chain(&it.prepare))
            .flat_map(|it| &it.headers),
    );
    let files = files_of(lab, &credentials);
    let (kept_systems, settled_again_us) = match &run.reuse {
        Reuse::Nothing | Reuse::All => (Vec::new(), None),
        Reuse::Only(kept) => (
            kept.iter().cloned().collect(),
            lab.settle
                .map(|settle| micros(settle.within.min(run.resettle))),
        ),
    };
    let (keeps_systems, kept_systems) = with_elsewhere(lab, &run.reuse, kept_systems);
    Recording {
        format: Format::Recording,
        method: METHOD,
        weigh: environment::version(),
        kind: Kind::Lab,
        command: command_line(),
        lab: Some(LabText {
            name: lab.name.clone(),
            question: lab.question.clone(),
            path: lab.path.display().to_string(),
            // The first source is the lab file.
            sha256: files[0].sha256.clone(),
            files,
            ladder: lab.ladder.clone(),
            factors: lab.factors.as_ref().map(factors::text),
        }),
        started_at: run.started_at,
        ended_at: environment::now().to_string(),
        interrupted: run.is_interrupted,
        ended_because: run.ended_because,
        seed: run.seed,
        order: run.order,
        measured: Some(run.measured),
        until: run.until,
        decided: run.decided,
        gates: None,
        cluster: run.cluster,
        environment: run.environment,
        load: LoadText {
            model: run.load,
            capacity: lab.capacity,
            chosen: run.chosen,
            url: None,
            address: None,
            protocol: Some(protocol(lab, &lab.baseline)),
            warmup_us: micros(lab.warmup),
            settle: lab.settle,
            keeps_systems,
            kept_systems,
            settled_again_us,
            threads: lab.threads,
            shard: Shard::WHOLE,
            start_at: None,
            timeout_us: micros(lab.timeout),
            keep_alive: lab.keep_alive,
            requests: requests_of(lab, &lab.requests),
            is_scenario: !lab.steps.is_empty(),
        },
        baseline: lab.baseline.name.clone(),
        variants: run.variants,
        rounds: run.rounds,
        profiles: run.profiles,
        why: run.why,
        revisions: None,
    }
}

/// The files of the lab without credentials, the lab file first.
fn files_of(lab: &Lab, credentials: &Values) -> Vec<FileText> {
    let sources = lab.sources.iter();
    sources
        .map(|source| FileText {
            path: source.path.display().to_string(),
            sha256: sha256(source.text.as_bytes()),
            text: Some(credentials.hidden_in(&source.text)),
        })
        .collect()
}

/// Returns true if all systems kept running from round to round, and otherwise the names of those systems.
/// Systems that `weigh` did not start always keep running.
fn with_elsewhere(lab: &Lab, reuse: &Reuse, kept: Vec<String>) -> (bool, Vec<String>) {
    let setups = || lab.all().flat_map(Variant::systems);
    let keeps_all =
        matches!(reuse, Reuse::All) || setups().all(|setup| setup.elsewhere().is_some());
    if keeps_all {
        return (true, Vec::new());
    }
    let elsewhere = setups().filter(|setup| setup.elsewhere().is_some());
    let all: BTreeSet<String> = elsewhere.map(|it| it.system.clone()).chain(kept).collect();
    (false, all.into_iter().collect())
}

/// The command line without secrets.
fn command_line() -> Vec<String> {
    secrets::words(&environment::command_line())
}

/// The differences between a variant and the lab: its settings, and its use of connections.
pub(crate) fn differences(lab: &Lab, variant: &Variant) -> BTreeMap<String, String> {
    let mut with = variant.with.clone();
    if variant.keep_alive != lab.keep_alive {
        let switch = if variant.keep_alive { "on" } else { "off" };
        with.insert(wire::KEEP_ALIVE.to_owned(), switch.to_owned());
    }
    with
}

/// Creates the recording of a single load. Its only variant is called `target`.
pub fn of_load(
    url: &str,
    job: &Job,
    measured: RoundRecord,
    environment: Environment,
    started_at: String,
    start_at: Option<String>,
    seed: u64,
) -> Recording {
    let target = "target".to_owned();
    Recording {
        format: Format::Recording,
        method: METHOD,
        weigh: environment::version(),
        kind: Kind::Load,
        command: command_line(),
        lab: None,
        started_at,
        ended_at: environment::now().to_string(),
        interrupted: measured.interrupted,
        ended_because: None,
        seed,
        // One round of one variant, so that a load can be read like a lab with one measurement.
        order: vec![vec![target.clone()]],
        measured: None,
        until: None,
        decided: None,
        gates: None,
        cluster: None,
        environment,
        load: LoadText {
            model: job.load.clone(),
            capacity: None,
            chosen: None,
            url: Some(secrets::url(url)),
            address: named_address(url, &job.target.address),
            protocol: Some(ProtocolText::from(&job.target.protocol)),
            warmup_us: 0,
            settle: None,
            keeps_systems: false,
            kept_systems: Vec::new(),
            settled_again_us: None,
            threads: job.threads,
            shard: job.shard,
            start_at,
            timeout_us: micros(job.timeout),
            keep_alive: job.keep_alive,
            requests: requests_of_load(job),
            is_scenario: !job.steps.is_empty(),
        },
        baseline: target.clone(),
        variants: vec![VariantRecord {
            name: target.clone(),
            baseline: None,
            with: Default::default(),
            requests: Vec::new(),
            prepared: Vec::new(),
            protocol: None,
            systems: Vec::new(),
            proof: None,
            status: VariantStatus::Measured,
        }],
        rounds: vec![RoundRecord {
            variant: target,
            ..measured
        }],
        profiles: Vec::new(),
        why: None,
        revisions: None,
    }
}

/// The address of the host name in a URL. `None` if the URL contains the address itself.
fn named_address(url: &str, address: &load::Address) -> Option<String> {
    let load::Address::Tcp(address) = address else {
        return None;
    };
    let url: http::Uri = url.parse().ok()?;
    (!crate::address::is_address(url.host()?)).then(|| address.to_string())
}

/// The requests of a load, without secrets.
fn requests_of_load(job: &Job) -> Vec<RequestText> {
    let text = |(index, request): (usize, &load::Request)| {
        let step = job.steps.get(index);
        let text = RequestText {
            name: step.map_or_else(
                || format!("{} {}", request.method, secrets::url(&request.path)),
                |step| step.name.clone(),
            ),
            pause_us: step.map_or(0, |step| micros(step.pause)),
            method: request.method.clone(),
            path: secrets::url(&request.path),
            weight: request.weight,
            descriptors_sha256: descriptors(request.grpc.as_ref()),
            ..empty_request()
        };
        let calls = request.grpc.as_ref().map(|call| call.text());
        let messages = calls.or_else(|| request.websocket.as_ref().map(|call| call.text()));
        let messages = messages.as_deref().map(str::as_bytes);
        let headers = headers_of(&request.headers, request.grpc.as_ref());
        with_content(text, &headers, messages.unwrap_or(&request.body))
    };
    job.requests.iter().enumerate().map(text).collect()
}

/// The result of a measurement. The caller fills in round, position, variant and systems.
pub fn measurement(seen: &Measurement) -> RoundRecord {
    RoundRecord {
        round: 0,
        position: 0,
        cores: BTreeMap::new(),
        variant: String::new(),
        search: None,
        interrupted: seen.interrupted,
        disturbed: false,
        started_offset_us: 0,
        elapsed_us: micros(seen.elapsed),
        planned: seen.planned,
        waited: seen.waited,
        sent_again: seen.sent_again,
        packets: seen.packets,
        handshakes: seen.handshakes,
        outcomes: seen.outcomes,
        statuses: seen.statuses.by_code.clone(),
        bytes_in: seen.bytes_in,
        bytes_in_bodies: Some(seen.bytes_in_bodies),
        encodings: Some(seen.encodings.clone()),
        coded: (seen.coded.total() > 0).then_some(seen.coded),
        latency_by_status_ns_hdr: seen
            .latency_by_status
            .iter()
            .map(|(status, latency)| (*status, Hdr::of(latency)))
            .collect(),
        bytes_out: seen.bytes_out,
        latency_ns_hdr: Hdr::of(&seen.latency),
        requests: Vec::new(),
        blocks_latency_ns_hdr: seen.blocks.iter().map(Hdr::of).collect(),
        service_ns_hdr: Hdr::of(&seen.service),
        lateness_ns_hdr: Hdr::of(&seen.lateness),
        gaps_ns_hdr: (!seen.gaps.is_empty()).then(|| Hdr::of(&seen.gaps)),
        connect_ns_hdr: Hdr::of(&seen.connect),
        first_byte_ns_hdr: Hdr::of(&seen.first_byte),
        first_byte: Some(TimesRecord::of(&seen.first_byte_from_due)),
        events: seen.events.as_deref().map(events),
        windows: Windows {
            width_us: micros(seen.window_width),
            completed: seen.windows.iter().map(|window| window.completed).collect(),
            errors: seen.windows.iter().map(|window| window.errors).collect(),
            latency_sum_ns: seen
                .windows
                .iter()
                .map(|window| window.latency_sum_ns)
                .collect(),
        },
        generator: seen.generator.clone(),
        machine: None,
        left_out: None,
        all_latency_ns_hdr: None,
        left_out_answers: None,
        latency_means: None,
        group: None,
        shared: Vec::new(),
        slices: None,
        systems: Vec::new(),
        steps: seen.steps.iter().map(step).collect(),
        iterations: (!seen.steps.is_empty()).then_some(seen.iterations),
        proofs: Vec::new(),
        network: None,
        generators: Vec::new(),
        failures: seen.failures.clone(),
    }
}

/// The record of the events of streamed responses.
fn events(seen: &load::EventsMeasurement) -> EventsRecord {
    let summed = |times: &load::TimedSum| {
        (!times.times.is_empty()).then(|| SummedTimes::of(&times.times, times.sum_ns))
    };
    EventsRecord {
        streams: seen.streams,
        events_of_streams: seen.events_of_streams,
        events: seen.events,
        first: TimesRecord::of(&seen.first),
        event_sum_ns: seen.event_sum_ns,
        gaps_ns_hdr: Hdr::of(&seen.gaps.times),
        gaps_sum_ns: seen.gaps.sum_ns,
        positions: seen
            .positions
            .iter()
            .map(|it| PositionRecord {
                position: it.position,
                events: it.events,
                sum_ns: it.sum_ns,
            })
            .collect(),
        delivery: summed(&seen.delivery),
        round_trips: summed(&seen.round_trips),
    }
}

/// The usage of one system between two readings.
pub(crate) fn usage(name: &str, before: &Usage, after: &Usage) -> SystemUsage {
    let switches = before.context_switches.zip(after.context_switches);
    let waited = before.waited_for_cpu.zip(after.waited_for_cpu);
    let kernel = before.cpu_kernel.zip(after.cpu_kernel);
    SystemUsage {
        name: name.to_owned(),
        // Without a cgroup the time of ended processes may be lost, so a later total may be lower.
        cpu_us: Some(micros(after.cpu.saturating_sub(before.cpu))),
        cpu_kernel_us: kernel.map(|(before, after)| micros(after.saturating_sub(before))),
        memory_peak_bytes: after.memory_peak,
        throttled: before
            .throttled
            .zip(after.throttled)
            .map(|(before, after)| after.since(before)),
        // May be lower for the same reason as the time above.
        context_switches: switches.map(|(before, after)| {
            (after.voluntary + after.involuntary)
                .saturating_sub(before.voluntary + before.involuntary)
        }),
        context_switches_involuntary: switches
            .map(|(before, after)| after.involuntary.saturating_sub(before.involuntary)),
        waited_for_cpu_us: waited.map(|(before, after)| micros(after.saturating_sub(before))),
        source: after.source.to_string(),
        instances: Vec::new(),
    }
}

/// The activity of the whole machine between two moments.
pub fn machine(before: Option<Moment>, after: Option<Moment>) -> Option<MachineUse> {
    let (before, after) = before.zip(after)?;
    Some(MachineUse {
        cores: u32::try_from(after.cpus).ok()?,
        looked_us: micros(after.at.duration_since(before.at)),
        busy_us: micros(after.busy.saturating_sub(before.busy)),
        steal_us: micros(after.steal.saturating_sub(before.steal)),
        throttled: before
            .throttled
            .zip(after.throttled)
            .map(|(before, after)| after.since(before)),
    })
}

/// The facts about a system from the lab, before its first start.
pub fn system(setup: &Setup) -> SystemRecord {
    SystemRecord {
        name: setup.system.clone(),
        // With addresses open, because each start has others.
        files: setup
            .files
            .iter()
            .map(|file| (file.name.clone(), sha256(file.text.to_string().as_bytes())))
            .collect(),
        url: setup.elsewhere().map(|it| {
            let scheme = if setup.is_encrypted { "https" } else { "http" };
            format!("{scheme}://{}", it.authority)
        }),
        // Filled in after the address lookup.
        address: None,
        image: setup.container().map(|container| container.image.clone()),
        // Filled in after the manifests are read.
        manifests: None,
        network: setup.container().map(|container| {
            let network = match container.network {
                lab::Network::Host => "host",
                lab::Network::Bridge { .. } => "bridge",
            };
            network.to_owned()
        }),
        command: secrets::words(
            &setup
                .command()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        ),
        version: None,
        env: setup
            .env
            .iter()
            .map(|(name, value)| (name.clone(), secrets::named(name, &value.to_string())))
            .collect(),
        settings: setup
            .settings
            .iter()
            .map(|(name, value)| (name.clone(), secrets::named(name, &value.to_string())))
            .collect(),
        limits_asked: LimitsText {
            cpus: setup.limits.cpus,
            memory_bytes: setup.limits.memory,
        },
        limits_enforced: None,
        limits_by: None,
        cpus: setup.pin.clone(),
        replicas: setup.replicas,
        shared: false,
        build_ms: None,
    }
}

/// Marks the systems that variants shared.
pub(crate) fn mark_shared(lab: &Lab, variants: &mut [VariantRecord]) {
    let mut setups = lab.all().flat_map(Variant::systems);
    let names: Vec<&str> = setups
        .by_ref()
        .filter(|setup| setup.is_shared)
        .map(|setup| setup.system.as_str())
        .collect();
    for system in variants.iter_mut().flat_map(|one| &mut one.systems) {
        system.shared = names.contains(&system.name.as_str());
    }
}

/// One line about one measurement, for the progress output.
pub fn line(record: &RoundRecord, rounds: usize) -> String {
    let latencies = latencies(&record.latency_ns_hdr.histogram());
    // A load without an answer took no time, and its rate is 0.
    let seconds = (record.elapsed_us as f64 / 1e6).max(1e-6);
    let rate = record.outcomes.completed() as f64 / seconds;
    let wrong = record.outcomes.total() - record.outcomes.passed;
    let mark = match wrong {
        _ if record.interrupted => ", interrupted".to_owned(),
        _ if record.disturbed => ", disturbed: measured again".to_owned(),
        0 => String::new(),
        wrong => format!(", {wrong} not passed"),
    };
    format!(
        "round {}/{rounds}  {}: {rate:.0}/s, {latencies}{mark}",
        record.round + 1,
        record.variant,
    )
}

/// The median and the 99th percentile in words.
fn latencies(histogram: &Histogram) -> String {
    let milliseconds = |share| histogram.quantile_ns(share).map(|ns| ns as f64 / 1e6);
    match (milliseconds(0.5), milliseconds(0.99)) {
        (Some(p50), Some(p99)) => format!("p50 {p50:.3} ms, p99 {p99:.3} ms"),
        // There was no response, or every request was left out.
        _ => "no request counts".to_owned(),
    }
}

/// Why the answers of a recorded measurement disqualify its variant, if they do.
pub(crate) fn wrong_answers(record: &RoundRecord) -> Option<String> {
    // Includes requests that appear in no other figure, because a variant must always respond correctly.
    let discarded = record.slices.map(|slices| slices.discarded);
    let discarded = discarded.unwrap_or_default();
    let mismatched = record.outcomes.mismatched.total() + discarded.mismatched.total();
    let all = record.outcomes.total() + discarded.total();
    let example = record
        .failures
        .iter()
        .find(|failure| failure.kind.is_mismatch())
        .map(|failure| failure.reason.as_str());
    wrong_sentence(mismatched, all, example)
        .map(|sentence| format!("in round {}, {sentence}", record.round + 1))
}

/// The reason why the responses of an unrecorded measurement disqualify its variant, if they do.
pub(crate) fn wrong_in(seen: &Measurement) -> Option<String> {
    let example = seen
        .failures
        .iter()
        .find(|failure| failure.kind.is_mismatch())
        .map(|failure| failure.reason.as_str());
    wrong_sentence(
        seen.outcomes.mismatched.total(),
        seen.outcomes.total(),
        example,
    )
}

fn wrong_sentence(wrong: u64, all: u64, example: Option<&str>) -> Option<String> {
    let example = example
        .map(|reason| format!(". The first: {reason}"))
        .unwrap_or_default();
    (wrong > 0).then(|| format!("{wrong} of {all} answers were wrong{example}"))
}

/// Creates the folder of a new recording: `DIR/NAME-20261121-094012Z`, with a number if it exists.
///
/// # Errors
///
/// When it cannot be created.
pub fn new_folder(out: &Path, name: &str) -> Result<PathBuf, Failure> {
    let stamp = environment::now().strftime("%Y%m%d-%H%M%SZ").to_string();
    let refuse = |path: &Path, error: std::io::Error| {
        Failure::not_ready(format!(
            "the recording folder `{}` cannot be created: {error}. Choose another folder with --out",
            path.display()
        ))
    };
    // Before the loop, because otherwise a failure would be repeated for every number.
    fs::create_dir_all(out).map_err(|error| refuse(out, error))?;
    // `create_dir` decides, because two runs may begin in the same second.
    for attempt in 1.. {
        let suffix = if attempt == 1 {
            String::new()
        } else {
            format!("-{attempt}")
        };
        let folder = out.join(format!("{}-{stamp}{suffix}", wire::file_name(name)));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refuse(&folder, error)),
        }
    }
    unreachable!("attempts are counted without end")
}

/// The name of the file with the recording, in its folder.
const RECORDING: &str = "recording.json";

/// Writes the recording and its renderings. The recording comes first, because the renderings can be made from
/// it again.
///
/// # Errors
///
/// When a file cannot be written.
pub fn save(folder: &Path, recording: &Recording, summary: &Summary) -> Result<(), Unsaved> {
    write(folder, RECORDING, &recording.to_json())?;
    write(folder, "report.md", &report::markdown(recording, summary))?;
    write(folder, "report.html", &report::html(recording, summary))
}

/// Writes one file of a recording folder. A failed write leaves no file, because a part of a file would be
/// mistaken for the whole.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(folder: &Path, name: &str, text: &str) -> Result<(), Unsaved> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| {
        let _gone = fs::remove_file(&path);
        Unsaved {
            has_recording: name != RECORDING,
            problem: format!("`{}` cannot be written: {error}", path.display()),
        }
    })
}

/// A file of a recording folder that could not be written.
#[derive(Debug)]
pub struct Unsaved {
    problem: String,
    /// True if the recording itself was written.
    has_recording: bool,
}

impl Unsaved {
    /// The failure of a run in this folder, with the more serious of the two exit codes. It names the command
    /// that renders the recording again.
    pub fn failure(&self, folder: &Path, exit: Exit) -> Failure {
        let remedy = match self.has_recording {
            true => format!(
                ". The recording is complete: `weigh report {}` makes every report from it",
                folder.display()
            ),
            false => ", so the recording is lost. Free space, or give another folder with --out"
                .to_owned(),
        };
        Failure {
            exit: exit.max(Exit::NotReady),
            message: format!("{}{remedy}", self.problem),
        }
    }
}

impl From<Unsaved> for Failure {
    fn from(unsaved: Unsaved) -> Failure {
        Failure::not_ready(unsaved.problem)
    }
}

fn step(seen: &load::StepMeasurement) -> wire::StepRecord {
    wire::StepRecord {
        name: seen.name.clone(),
        latency_ns_hdr: Hdr::of(&seen.latency),
        service_ns_hdr: Hdr::of(&seen.service),
        outcomes: seen.outcomes,
        skipped: seen.skipped,
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_report_that_cannot_be_written_leaves_the_recording_and_names_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let recording = SampleRun::graphql_server();
        let summary = Summary::of(&recording);
        // A folder of that name stands in for a full disk.
        fs::create_dir(folder.path().join("report.md")).unwrap();
        let unsaved = save(folder.path(), &recording, &summary).unwrap_err();
        assert!(folder.path().join(RECORDING).exists());
        let failure = unsaved.failure(Path::new("small/x"), Exit::Done);
        assert_eq!(failure.exit, Exit::NotReady);
        assert!(
            failure.message.contains("report.md` cannot be written")
                && failure.message.contains("`weigh report small/x`"),
            "{}",
            failure.message
        );
        // The more serious exit code of the run stays.
        assert_eq!(
            unsaved.failure(Path::new("x"), Exit::GateNotPassed).exit,
            Exit::GateNotPassed
        );
        let gone = write(Path::new("/nowhere"), RECORDING, "").unwrap_err();
        let message = gone.failure(Path::new("/nowhere"), Exit::Done).message;
        assert!(message.contains("the recording is lost"), "{message}");
    }

    #[test]
    fn a_round_without_counted_requests_has_no_latency() {
        let mut histogram = Histogram::new();
        assert_eq!(latencies(&histogram), "no request counts");
        histogram.record_n_ns(1_000_000, 10);
        assert_eq!(latencies(&histogram), "p50 1.000 ms, p99 1.000 ms");
    }
}
