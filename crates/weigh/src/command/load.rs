//! `weigh load`: the load generator alone.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use load::{Address, BodyRule, Bounds, Expectation, Job, Measurement, Request, StatusRule, Target};
use schedule::{Arrival, Phase, Rate, Stop as StopRule};

use crate::cli::Failure;
use crate::console::Console;
use crate::environment;
use crate::exit::Exit;
use crate::measure::FAILURES_KEPT;
use crate::progress::Progress;
use crate::record;
use crate::stop::Stop;

/// Load one URL and report latency, rate and outcomes.
///
/// Without --rate every connection sends its next request as soon as its last
/// answer is complete (closed loop). With --rate requests leave by plan, whether
/// or not earlier ones were answered, and latency counts from the planned moment
/// (open loop). Every answer is checked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to load: http://HOST:PORT/PATH.
    #[arg(value_name = "URL", value_parser = url)]
    url: Uri,
    /// Connections. In an open loop: the most that may be open at once.
    #[arg(short, long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    connections: u32,
    /// Stop after this many requests.
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Stop after this long, such as 30s or 2m [default: 10s unless -n is given].
    #[arg(short = 'z', long, value_parser = lab::duration)]
    duration: Option<Duration>,
    /// Open loop: send at this rate, such as 500/s.
    #[arg(short, long, value_parser = lab::rate)]
    rate: Option<Rate>,
    /// Gaps of the open loop: uniform, or poisson with a seed of its own.
    #[arg(long, value_enum, default_value = "uniform", requires = "rate")]
    arrival: ArrivalName,
    /// Seed of poisson gaps.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads of the generator.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Pin the generator's threads to these cores, such as 1 or 2,3.
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    pin: Option<Vec<usize>>,
    /// Request method [default: GET, or POST when there is a body].
    #[arg(short, long)]
    method: Option<String>,
    /// A header, `Name: value`; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Request body.
    #[arg(short = 'd', long, conflicts_with = "data_file")]
    data: Option<String>,
    /// File with the request body.
    #[arg(short = 'D', long, value_name = "FILE")]
    data_file: Option<PathBuf>,
    /// Expected status; 2xx when not given.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599))]
    expect: Option<u16>,
    /// Refuse answers with a top-level `errors` member (GraphQL).
    #[arg(long)]
    expect_graphql: bool,
    /// Refuse answers whose body is not exactly that of this file.
    #[arg(long, value_name = "FILE")]
    expect_body: Option<PathBuf>,
    /// Give up on an answer after this long.
    #[arg(long, default_value = "10s", value_parser = lab::duration)]
    timeout: Duration,
    /// Open a new connection for every request.
    #[arg(long)]
    no_keep_alive: bool,
    /// Connect to this unix socket instead of the URL's host and port.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ArrivalName {
    Uniform,
    Poisson,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A page for people.
    Text,
    /// Every figure, with its unit in its name.
    Json,
}

pub(crate) fn run(args: &Args, console: Console, stop: &Stop) -> Result<Exit, Failure> {
    let job = job(args)?;
    let url = args.url.to_string();
    let started_at = environment::now().to_string();
    let machine = rig::machine::snapshot();
    let progress = Progress::new(console, 1);
    let measured = progress.during(&url, |live| load::run(&job, live, stop.flag()));
    progress.finish();
    let measurement = measured.map_err(|error| Failure::not_ready(error.to_string()))?;
    let environment = environment::describe(&machine, job.cpus.clone());
    let recording = record::of_load(
        &url,
        &job,
        &measurement,
        environment,
        (started_at, args.seed),
    );
    console.answer(&match args.format {
        Format::Text => report::load_text(&recording),
        Format::Json => report::load_json(&recording),
    });
    Ok(exit_of(&measurement))
}

/// Wrong or missing answers come before a plan that was not kept.
fn exit_of(measurement: &Measurement) -> Exit {
    let outcomes = &measurement.outcomes;
    if measurement.interrupted {
        Exit::Interrupted
    } else if outcomes.mismatched.total() + outcomes.failed.total() > 0 {
        Exit::Mismatch
    } else if outcomes.missed > 0 {
        Exit::Withheld
    } else {
        Exit::Done
    }
}

/// The job that the flags describe.
fn job(args: &Args) -> Result<Job, Failure> {
    let target = target(args)?;
    let body = match (&args.data, &args.data_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => read(path)?,
        (None, None) => Vec::new(),
    };
    let method = args.method.clone().unwrap_or_else(|| {
        let inferred = if body.is_empty() { "GET" } else { "POST" };
        inferred.to_owned()
    });
    let golden = args.expect_body.as_ref().map(read).transpose()?;
    let request = Request {
        method,
        path: args
            .url
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned(),
        headers: args.headers.clone(),
        body,
        expect: Expectation {
            status: args.expect.map_or(StatusRule::Success, StatusRule::Exactly),
            graphql: args.expect_graphql,
            body: golden.map_or(BodyRule::Any, |bytes| BodyRule::Equals(bytes.into())),
            headers: Vec::new(),
        },
        weight: 1,
    };
    Ok(Job {
        target,
        requests: vec![request],
        load: loop_of(args),
        connections_max: args.connections,
        threads: args.threads.min(args.connections),
        timeout: args.timeout,
        keep_alive: !args.no_keep_alive,
        failures_kept: FAILURES_KEPT,
        bound: Bounds::default(),
        cpus: args.pin.clone(),
    })
}

fn loop_of(args: &Args) -> schedule::Load {
    let unless_counted = args.requests.is_none().then_some(Duration::from_secs(10));
    let duration = args.duration.or(unless_counted);
    let Some(rate) = args.rate else {
        return schedule::Load::Closed {
            connections: args.connections,
            stop: StopRule {
                requests: args.requests,
                duration,
            },
        };
    };
    schedule::Load::Open {
        phases: vec![Phase {
            // A count alone goes on until it is reached.
            duration: duration.unwrap_or(Duration::MAX),
            from: rate,
            to: rate,
        }],
        arrival: match args.arrival {
            ArrivalName::Uniform => Arrival::Uniform,
            ArrivalName::Poisson => Arrival::Poisson { seed: args.seed },
        },
        requests_max: args.requests,
    }
}

/// Resolves the URL once: what is measured is one address, not the resolver.
fn target(args: &Args) -> Result<Target, Failure> {
    let url = &args.url;
    let host = url
        .host()
        .ok_or_else(|| Failure::bad_input(format!("`{url}` names no host; {URL_HELP}")))?;
    let authority = url.authority().map_or(host, |authority| authority.as_str());
    if let Some(path) = &args.unix_socket {
        return Ok(Target {
            address: Address::Unix(path.clone()),
            host: authority.to_owned(),
        });
    }
    let port = url.port_u16().unwrap_or(80);
    let address = resolve(host, port)?;
    Ok(Target {
        address: Address::Tcp(address),
        host: authority.to_owned(),
    })
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port).to_socket_addrs().map_err(|error| {
        Failure::not_ready(format!("the host `{host}` has no address: {error}"))
    })?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| Failure::not_ready(format!("the host `{host}` has no address")))
}

/// How a URL is written.
const URL_HELP: &str = "write it as http://127.0.0.1:8080/path";

fn url(text: &str) -> Result<Uri, String> {
    let url: Uri = text
        .parse()
        .map_err(|error| format!("{error}; {URL_HELP}"))?;
    match url.scheme_str() {
        Some("http") => Ok(url),
        Some(other) => Err(format!(
            "`{other}` is not a protocol that weigh load speaks; {URL_HELP}"
        )),
        None => Err(format!("it names no protocol; {URL_HELP}")),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| "expected `Name: value`".to_owned())?;
    let (name, value) = (name.trim(), value.trim());
    http::HeaderName::try_from(name).map_err(|_| format!("`{name}` is not a header name"))?;
    http::HeaderValue::from_str(value).map_err(|_| format!("`{value}` is not a header value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn read(path: impl AsRef<std::path::Path>) -> Result<Vec<u8>, Failure> {
    let path = path.as_ref();
    fs::read(path).map_err(|error| {
        Failure::bad_input(format!("`{}` cannot be read: {error}", path.display()))
    })
}
