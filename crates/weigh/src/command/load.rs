//! `weigh load`: the load generator alone.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use analysis::Summary;
use experiment::address;
use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::measure::{FAILURES_KEPT, LOOK_BEFORE};
use experiment::progress::Progress;
use experiment::published::{Published, Receiver};
use experiment::record;
use experiment::stop::StopSignal;
use http::Uri;
use lab::Table;
use load::{Bounds, Job, LoadError, Request};
use model::{
    Arrival, BodyRule, ClientIdentity, Data, Expectation, Outcomes, Phase, Protocol, Resumption,
    RowOrder, Shard, Stop as StopRule, Trust, Version,
};
use recording::{Environment, Recording, RoundRecord};

use crate::format::Format;
use crate::gates;

mod flags;
pub(super) mod in_cluster;
pub(super) mod phases;
mod scenario;
mod start;
mod targets;

pub(crate) use flags::Args;
pub(in crate::command) use flags::ArrivalName;
use flags::{OrderName, ResumptionName};
pub(crate) use phases::rate;
use start::StartAt;

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    args.gates.check_load()?;
    if let Some(cluster) = args.cluster.asked() {
        let sent = in_cluster::send(args, cluster, console, stop)?;
        return answer(args, sent.recording, sent.is_doubtful, console);
    }
    let published = args.publish.start(console)?;
    let account = published.as_ref().map(Published::account);
    let progress = Progress::new(console, 1).alone().published(account);
    let recording = recorded(args, &progress, stop, |_| Ok(None))?;
    progress.finish();
    drop(published);
    answer(args, recording, false, console)
}

/// Sends the load from this machine. `start` returns the time of the first request, if there is one, when all
/// else is ready.
fn recorded(
    args: &Args,
    progress: &Progress,
    stop: &StopSignal,
    start: impl FnOnce(&Job) -> Result<Option<Instant>, Failure>,
) -> Result<Recording, Failure> {
    let (url, mut job) = job(args)?;
    for request in &mut job.requests {
        load::resolve(request, &job.target, args.timeout).map_err(Failure::not_ready)?;
    }
    let url = url.to_string();
    if let Some(StartAt(at)) = args.start_at {
        start::check(at)?;
    }
    let began = environment::now().to_string();
    let machine = rig::machine::snapshot();
    let busy_share_before = rig::busy_share_for(LOOK_BEFORE);
    let awake = (!args.no_awake).then(load::keep_cores_awake).flatten();
    if let Some(StartAt(at)) = args.start_at {
        start::wait_until(at, stop);
    }
    job.start_at = start(&job)?;
    let receiver = Receiver {
        target: job.target.host.clone(),
        load: job.load.clone(),
    };
    // Right before and after the load, so that the machine's use contains little else.
    let moment = rig::moment();
    let measured = progress.measuring(&url, vec![receiver], |live| {
        load::run(&job, live, stop.flag())
    });
    let machine_use = record::machine(moment, rig::moment());
    let measurement = measured.map_err(|error| match error {
        LoadError::Runtime(_) | LoadError::Poll(_) => Failure::not_ready(error.to_string()),
        // The command line describes an impossible load.
        error => Failure::bad_input(error.to_string()),
    })?;
    let environment = Environment {
        busy_share_before,
        ..environment::describe(&machine, job.cpus.clone(), awake.is_some())
    };
    let measured = RoundRecord {
        machine: machine_use,
        ..record::measurement(&measurement)
    };
    let start_at = args.start_at.map(|StartAt(at)| at.to_string());
    Ok(record::of_load(
        &url,
        &job,
        measured,
        environment,
        began,
        start_at,
        args.seed,
    ))
}

/// Prints a recording and saves it. `is_doubtful` if a check of one of several generators failed.
fn answer(
    args: &Args,
    mut recording: Recording,
    is_doubtful: bool,
    console: Console,
) -> Result<Exit, Failure> {
    recording.gates = args.gates.recorded();
    let saved = save(args, &recording);
    let summary = args.gates.judge(Summary::of(&recording));
    match args
        .format
        .render(&recording, &summary, None, console.terminal())
    {
        Ok(answer) => console.answer(&answer),
        Err(error) => console.no_answer(error),
    }
    if let Format::Theirs(_) = args.format {
        gates::say(&summary.gates, console);
    }
    // Reported after the result, which must not be lost.
    saved?;
    let is_invalid = summary.variants.iter().any(|row| row.verdict.is_invalid());
    let withheld = match is_invalid || is_doubtful {
        true => Exit::Withheld,
        false => Exit::Done,
    };
    let sent = recording.rounds.iter();
    let sent = sent.map(|round| exit_of(recording.interrupted, &round.outcomes));
    let loaded = match sent.fold(withheld, Exit::max) {
        // A gate has already judged the failed requests.
        Exit::Mismatch | Exit::Withheld if summary.allows_failures() => Exit::Done,
        loaded => loaded,
    };
    Ok(loaded.max(gates::exit_of(&summary.gates)))
}

/// Writes the recording into the file of `--record`.
fn save(args: &Args, recording: &Recording) -> Result<(), Failure> {
    let Some(path) = &args.record else {
        return Ok(());
    };
    fs::write(path, recording.to_json()).map_err(|error| {
        Failure::not_ready(format!("`{}` cannot be written: {error}", path.display()))
    })
}

/// The exit code of a load. Wrong or missing responses come before missed slots.
pub(super) fn exit_of(interrupted: bool, outcomes: &Outcomes) -> Exit {
    if interrupted {
        Exit::Interrupted
    } else if outcomes.mismatched.total() + outcomes.failed.total() > 0 {
        Exit::Mismatch
    } else if outcomes.missed > 0 {
        Exit::Withheld
    } else {
        Exit::Done
    }
}

/// The job that the flags describe, and its URL in reports.
fn job(args: &Args) -> Result<(Uri, Job), Failure> {
    check_websocket(args)?;
    if let (Some(path), Some(url)) = (&args.scenario, &args.url) {
        return scenario::job(args, path, url);
    }
    let (url, requests) = requests(args)?;
    let job = Job {
        requests,
        data: Some(data(args)?),
        ..empty_job(args, &url)?
    };
    Ok((url, job))
}

/// The requests that the flags describe, with their checks, and the URL.
fn requests(args: &Args) -> Result<(Uri, Vec<Request>), Failure> {
    let (url, requests) = match (&args.targets, &args.url) {
        (Some(path), base) => targets::read(path, base.as_ref(), &args.headers)?,
        (None, Some(url)) => (
            url.clone(),
            vec![with_credentials(request(args, url)?, args, url)?],
        ),
        (None, None) => unreachable!("the command line asks for one of the two"),
    };
    let expect = expectation(args)?;
    let requests = requests
        .into_iter()
        .map(|request| Request {
            headers: with_headers(request.headers, args),
            // A call of gRPC has its own stream, and then no flag has one.
            expect: Expectation {
                stream: request.expect.stream.or_else(|| expect.stream.clone()),
                grpc: request.expect.grpc,
                ..expect.clone()
            },
            ..request
        })
        .collect();
    Ok((url, requests))
}

/// Refuses WebSocket with a file of requests. Its requests are of HTTP.
fn check_websocket(args: &Args) -> Result<(), Failure> {
    let file = args.scenario.as_ref().or(args.targets.as_ref());
    let is_socket = args.url.as_ref().is_some_and(address::is_websocket);
    match file.filter(|_| is_socket) {
        None => Ok(()),
        Some(file) => Err(Failure::bad_input(format!(
            "expected a URL of http or https with the requests of `{}`, found ws or wss",
            file.display()
        ))),
    }
}

/// The job that the flags describe, without its requests.
fn empty_job(args: &Args, url: &Uri) -> Result<Job, Failure> {
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let connections = shard.connections(connections(args));
    if connections == 0 {
        return Err(Failure::bad_input(format!(
            "expected at least one connection for each shard, found {} in all. Give more with -c",
            args.connections
        )));
    }
    Ok(Job {
        target: address::target(url, args.unix_socket.as_deref(), protocol(args, url)?)?,
        requests: Vec::new(),
        steps: Vec::new(),
        data: None,
        load: loop_of(args),
        // A thread without a connection would be idle.
        threads: args.threads.min(connections),
        timeout: args.timeout,
        keep_alive: !args.no_keep_alive,
        failures_kept: FAILURES_KEPT,
        spin_share: f64::from(args.spin) / 100.0,
        realtime: !args.no_realtime,
        bound: Bounds::default(),
        cpus: args.pin.clone(),
        seat: None,
        keep_slots: None,
        keep_blocks: args.record.is_some() || args.gates.is_any() || args.sent_files.is_some(),
        slices: Vec::new(),
        shard: args.shard.unwrap_or(Shard::WHOLE),
        start_at: None,
        yields: false,
    })
}

/// The protocol of the requests. The URL decides if they are encrypted.
fn protocol(args: &Args, url: &Uri) -> Result<Protocol, Failure> {
    let trust = match &args.ca {
        _ if args.insecure => Trust::SkipVerification,
        Some(path) => Trust::Authorities(args.read(path)?),
        None => Trust::System,
    };
    let is_encrypted = address::is_encrypted(url);
    if !is_encrypted && trust != Trust::System {
        return Err(Failure::bad_input(format!(
            "expected an https URL with --insecure or --ca, found `{url}`"
        )));
    }
    let identity = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => Some(ClientIdentity {
            certificate: args.read(certificate)?,
            key: args.read(key)?,
        }),
        _ => None,
    };
    if !is_encrypted && identity.is_some() {
        return Err(Failure::bad_input(format!(
            "expected an https URL with --cert, found `{url}`"
        )));
    }
    if !is_encrypted && args.http3 {
        return Err(Failure::bad_input(format!(
            "expected an https URL with --http3, found `{url}`. HTTP/3 is always encrypted"
        )));
    }
    if args.http3 && args.grpc.needs_http2() {
        return Err(Failure::bad_input(
            "expected --http2 with a call of gRPC, found --http3. Remove --http3, or add \
             `--grpc-protocol connect` or `--grpc-protocol grpc-web`",
        ));
    }
    let streams = args.streams;
    Ok(Protocol {
        version: match (args.http3, args.http2 || args.grpc.needs_http2()) {
            (true, _) => Version::Http3 { streams },
            (false, true) => Version::Http2 { streams },
            (false, false) => Version::Http1,
        },
        tls: is_encrypted.then_some(trust),
        identity,
        resumption: resumption(args, is_encrypted)?,
    })
}

/// The use of tickets of earlier connections.
fn resumption(args: &Args, is_encrypted: bool) -> Result<Resumption, Failure> {
    let Some(chosen) = args.resumption else {
        return Ok(Resumption::Off);
    };
    if !is_encrypted {
        return Err(Failure::bad_input(
            "expected an https URL with --resumption, found one without TLS".to_owned(),
        ));
    }
    if chosen == ResumptionName::EarlyData && !args.http3 {
        return Err(Failure::bad_input(
            "expected --http3 with `--resumption 0-rtt`, found another version of HTTP. Add --http3, or use \
             `--resumption on`"
                .to_owned(),
        ));
    }
    Ok(chosen.meaning())
}

/// The values of the placeholders `{{…}}` in requests.
fn data(args: &Args) -> Result<Data, Failure> {
    let table = match &args.data_set {
        Some(path) => {
            let refuse = |why: String| Failure::bad_input(format!("`{}`: {why}", path.display()));
            Table::read(&args.read(path)?).map_err(refuse)?
        }
        None => Table::default(),
    };
    Ok(Data {
        columns: table.columns,
        rows: table.rows,
        ranges: Vec::new(),
        order: match args.data_order {
            OrderName::Rotation => RowOrder::Rotation,
            OrderName::Random => RowOrder::Random,
        },
        seed: args.seed,
    })
}

/// The single request that the flags describe.
fn request(args: &Args, url: &Uri) -> Result<Request, Failure> {
    if let Some(call) = args.grpc.request().map_err(Failure::bad_input)? {
        return Ok(call);
    }
    // In wrk and bombardier, `-d` is the duration. Their users would otherwise send it as a body.
    if let Some(text) = args.data.as_deref().filter(|it| lab::duration(it).is_ok()) {
        return Err(Failure::bad_input(format!(
            "expected a body after -d, found the length `{text}`. For a load of that length write \
             -z {text}. To send this text as a body, use a file with -D"
        )));
    }
    let body = match (&args.data, &args.data_file) {
        (Some(text), _) => match text.strip_prefix('@') {
            Some(path) => args.read(path)?,
            None => text.clone().into_bytes(),
        },
        (None, Some(path)) => args.read(path)?,
        (None, None) => Vec::new(),
    };
    let method = args.method.clone().unwrap_or_else(|| {
        let inferred = if body.is_empty() { "GET" } else { "POST" };
        inferred.to_owned()
    });
    Ok(Request {
        method,
        path: address::path(url),
        headers: Vec::new(),
        body,
        expect: Expectation::default(),
        websocket: args.websocket.call(url).map_err(Failure::bad_input)?,
        grpc: None,
        weight: 1,
    })
}

/// Adds the credentials of the URL to the request. Fails if the flags also contain credentials.
fn with_credentials(mut request: Request, args: &Args, url: &Uri) -> Result<Request, Failure> {
    address::with_authorization(url, &mut request.headers, &args.headers)
        .map_err(Failure::bad_input)?;
    Ok(request)
}

/// A request's own headers, then the headers of the flags that it lacks: first `--header`, then
/// `--content-type`.
fn with_headers(own: Vec<(String, String)>, args: &Args) -> Vec<(String, String)> {
    let is_of = |headers: &[(String, String)], name: &str| {
        let mut names = headers.iter().map(|(known, _)| known);
        names.any(|known| known.eq_ignore_ascii_case(name))
    };
    let missing = args.headers.iter().filter(|(name, _)| !is_of(&own, name));
    let missing: Vec<_> = missing.cloned().collect();
    let mut headers: Vec<_> = own.into_iter().chain(missing).collect();
    if let Some(media) = &args.content_type
        && !is_of(&headers, "content-type")
    {
        headers.push(("Content-Type".to_owned(), media.clone()));
    }
    headers
}

fn expectation(args: &Args) -> Result<Expectation, Failure> {
    let golden = args.expect_body.as_ref();
    let golden = golden.map(|path| args.read(path)).transpose()?;
    Ok(Expectation {
        status: args.expect.unwrap_or_default(),
        graphql: args.expect_graphql,
        body: golden.map_or(BodyRule::Any, |bytes| BodyRule::known(&bytes, &args.ignore)),
        headers: args.expect_headers.clone(),
        stream: args.stream.rule().map_err(Failure::bad_input)?,
        ..Expectation::default()
    })
}

/// The connections of all shards: not more than requests, because a request needs one at most. Each shard has at
/// least one.
fn connections(args: &Args) -> u32 {
    let shards = args.shard.unwrap_or(Shard::WHOLE).of();
    let requests = args.requests.unwrap_or(u64::MAX);
    let needed = u32::try_from(requests).unwrap_or(u32::MAX).max(shards);
    args.connections.min(needed)
}

fn loop_of(args: &Args) -> model::Load {
    // Ten seconds unless a number of requests ends the load, so that no load is endless by mistake.
    let unless_counted = args.requests.is_none().then_some(Duration::from_secs(10));
    let duration = args.duration.or(unless_counted);
    let phases = match (&args.phases, args.rate) {
        (Some(phases), _) => phases.0.clone(),
        // With only a count, the load continues until the count is reached.
        (None, Some(rate)) => vec![Phase::constant(duration.unwrap_or(Duration::MAX), rate)],
        (None, None) => {
            return model::Load::Closed {
                connections: connections(args),
                stop: StopRule {
                    requests: args.requests,
                    duration,
                },
            };
        }
    };
    model::Load::Open {
        phases,
        arrival: match args.arrival {
            ArrivalName::Uniform => Arrival::Uniform,
            ArrivalName::Poisson => Arrival::Poisson { seed: args.seed },
        },
        connections_max: connections(args),
        requests_max: args.requests,
    }
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, Failure> {
    let path = path.as_ref();
    fs::read(path).map_err(|error| {
        Failure::bad_input(format!("`{}` cannot be read: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// The headers of a request with `own` headers, with these flags.
    fn headers(own: &[(&str, &str)], flags: &[&str]) -> Vec<String> {
        let line = ["load", "http://127.0.0.1:1/"].iter().chain(flags);
        let args = Line::try_parse_from(line).unwrap().args;
        let own = own.iter();
        let own = own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers = with_headers(own.collect(), &args);
        let lines = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        lines.collect()
    }

    #[test]
    fn a_load_has_no_more_connections_than_requests() {
        let opened = |flags: &[&str]| {
            let line = ["load", "http://127.0.0.1:1/"].iter().chain(flags);
            let args = Line::try_parse_from(line).unwrap().args;
            (
                loop_of(&args).connections(),
                empty_job(&args, args.url.as_ref().unwrap()).is_ok(),
            )
        };
        assert_eq!(opened(&["-n", "1"]), (1, true));
        assert_eq!(opened(&["-n", "7", "-c", "3"]), (3, true));
        assert_eq!(opened(&["-n", "2", "-r", "10"]), (2, true));
        assert_eq!(opened(&["-z", "1s"]), (50, true));
        // Each shard needs a connection, although one of them has no request.
        assert_eq!(opened(&["-n", "1", "--shard", "2/4"]), (4, true));
        assert_eq!(
            opened(&["-n", "1", "-c", "2", "--shard", "3/4"]),
            (2, false)
        );
    }

    #[test]
    fn what_is_nearer_to_a_request_wins() {
        let json = ["-T", "application/json"];
        let text = ["-T", "application/json", "-H", "content-type: text/plain"];
        let own = [("Content-Type", "image/png")];
        assert_eq!(headers(&[], &json), ["Content-Type: application/json"]);
        assert_eq!(headers(&[], &text), ["content-type: text/plain"]);
        assert_eq!(headers(&own, &text), ["Content-Type: image/png"]);
        assert_eq!(headers(&own, &json), ["Content-Type: image/png"]);
        let twice = ["-H", "A: 1", "-H", "A: 2"];
        assert_eq!(headers(&[("B", "3")], &twice), ["B: 3", "A: 1", "A: 2"]);
    }

    #[test]
    fn a_timeout_is_no_content_type() {
        let Err(error) = Line::try_parse_from(["load", "http://127.0.0.1:1/", "-T", "2s"]) else {
            panic!("`-T 2s` is accepted");
        };
        assert!(
            error.to_string().contains("expected a media type"),
            "{error}"
        );
    }
}
