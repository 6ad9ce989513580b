//! `weigh ab`: two URLs, compared by a lab that is written for them.

mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::address;
use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::served::Served;
use experiment::stop::StopSignal;
use http::Uri;
use model::{Rate, StatusPart, WebSocketCall};

use super::lab::Run;
use super::load::ArrivalName;
use super::recording_file;
use crate::cluster_args::ClusterArgs;
use crate::consent::ConsentArgs;
use crate::format::PageArgs;
use crate::gates::GateArgs;
use crate::grpc_args::{self, GrpcArgs};
use crate::publish::ServeArgs;
use crate::stream_args::StreamArgs;
use crate::websocket_args::WebSocketArgs;
use text::{Arrivals, AttachText, Comparison, FILE, Side};

/// Compare two URLs of running servers: what does B cost, compared with A?
///
/// First, both must give the same response. Then each due time sends one request to each, in a random
/// order. The load has several blocks of time, and the interval of the difference follows from the
/// blocks. `weigh` starts and stops no server, so the load shows no differences between starts. The
/// interval of a latency contains 0.5 us for them.
///
/// The comparison is a lab with two systems with `url`. --write-lab writes it to a folder, where you can
/// change it and run it with `weigh lab`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The baseline: http://HOST:PORT/PATH, or https, ws or wss.
    #[arg(value_name = "URL_A", value_parser = address::socket_url)]
    a: Uri,
    /// The URL to compare with the baseline.
    #[arg(value_name = "URL_B", value_parser = address::socket_url)]
    b: Uri,

    /// Requests per second to each URL, such as 100 or 0.5/s.
    ///
    /// Without this flag and -c, `weigh` sends two short loads to each URL to see latency and processor
    /// time. Then it chooses a rate of at most 100/s at which the servers use less than a fifth of the
    /// cores.
    #[arg(short, short_alias = 'R', long, help_heading = "Load", value_parser = super::load::phases::rate, conflicts_with = "connections")]
    rate: Option<Rate>,
    /// Gaps between requests [default: uniform].
    ///
    /// With uniform gaps, each gap has one request to each URL, at a random time of its share of the gap.
    /// With Poisson arrivals the gaps are random too, so requests come in bursts like those of
    /// independent users.
    #[arg(
        long,
        value_name = "LAW",
        help_heading = "Load",
        conflicts_with = "connections"
    )]
    arrival: Option<ArrivalName>,
    /// Closed loop with this number of connections. Each connection sends its next request when its last
    /// response is complete. The load alternates between the URLs in short slices.
    #[arg(short, long, value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u32).range(1..=65_000))]
    connections: Option<u32>,
    /// Total time of the load, such as 10s or 2m [default: 10s with -r or -c, otherwise the time that the
    /// chosen rate needs].
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Load", value_parser = lab::duration)]
    duration: Option<Duration>,
    /// Number of blocks of time. Fewer than 6 blocks cannot show a difference.
    #[arg(long, value_name = "N", help_heading = "Load", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Method [default: GET, or POST with a body].
    #[arg(short, long, help_heading = "Request")]
    method: Option<String>,
    /// A header, such as 'Accept: application/json'. Repeat the flag for several headers.
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        help_heading = "Request"
    )]
    headers: Vec<String>,
    /// The body. @FILE reads it from a file.
    #[arg(short, long = "data", value_name = "BODY", help_heading = "Request")]
    data: Option<String>,
    /// Time after which a request has failed.
    #[arg(long, value_name = "TIME", help_heading = "Request", default_value = "10s", value_parser = lab::duration)]
    timeout: Duration,
    /// Accept any certificate.
    #[arg(short = 'k', long, help_heading = "Request")]
    insecure: bool,
    /// Use HTTP/2: by ALPN with https, by prior knowledge with http.
    #[arg(long, help_heading = "Request", conflicts_with = "http3")]
    http2: bool,
    /// Use HTTP/3 over QUIC, with https URLs.
    #[arg(long, help_heading = "Request")]
    http3: bool,

    /// Expected statuses: 200, 2xx, 200,429 [default: any from 200 to 299].
    ///
    /// `weigh` compares bodies of one status only. With 429 or 503 in the list, the run continues if a
    /// server requests less load.
    #[arg(long, visible_alias = "expect", value_name = "STATUS", help_heading = "Answers", value_delimiter = ',', value_parser = StatusPart::read)]
    status: Vec<StatusPart>,
    /// A member that may differ between the two responses, as a JSON pointer such as /timing. Repeat the
    /// flag for several members.
    #[arg(long, value_name = "POINTER", help_heading = "Answers")]
    ignore: Vec<String>,
    /// Permit different responses.
    #[arg(long, help_heading = "Answers", conflicts_with = "ignore")]
    different: bool,
    #[command(flatten, next_help_heading = "Stream")]
    stream: StreamArgs,
    #[command(flatten, next_help_heading = "WebSocket")]
    websocket: WebSocketArgs,
    #[command(flatten, next_help_heading = "gRPC")]
    grpc: GrpcArgs,

    /// The process of URL_A, to measure its processor time and memory: its process id, the folder of its
    /// control group, or the name of its container. With --on kubernetes, the labels of its pods, such as
    /// app=web.
    #[arg(
        long,
        value_name = "PID|CGROUP|CONTAINER|LABELS",
        help_heading = "Cost"
    )]
    attach_a: Option<String>,
    /// The process of URL_B, or the labels of its pods.
    #[arg(
        long,
        value_name = "PID|CGROUP|CONTAINER|LABELS",
        help_heading = "Cost"
    )]
    attach_b: Option<String>,
    /// Look for the cause of the difference in extra loads: burn, sleep, lock, or extra connections.
    ///
    /// Give the processes with --attach-a and --attach-b. See docs/why.md.
    #[arg(long, help_heading = "Cost", requires_all = ["attach_a", "attach_b"], conflicts_with = "write_lab")]
    why: bool,

    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Seed of all random numbers.
    #[arg(long, value_name = "N", help_heading = "Output")]
    seed: Option<u64>,
    #[command(flatten, next_help_heading = "Output")]
    page: PageArgs,
    #[command(flatten)]
    serve: ServeArgs,
    /// Folder for the recording.
    #[arg(
        long,
        value_name = "DIR",
        default_value = recording_file::FOLDER,
        help_heading = "Output"
    )]
    out: PathBuf,
    /// Write the lab into this folder instead of running it.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    write_lab: Option<PathBuf>,
    #[command(flatten)]
    gates: GateArgs,
}

const EXAMPLES: &str = "\
Examples:
  weigh ab http://127.0.0.1:8080/ http://127.0.0.1:8081/
  weigh ab http://127.0.0.1:8080/graphql http://127.0.0.1:4000/graphql -r 200 -z 30s \\
      -H 'Content-Type: application/json' -d '{\"query\":\"{ __typename }\"}'
  weigh ab https://old.example.com/api https://new.example.com/api -r 20 \\
      --yes-load old.example.com --yes-load new.example.com";

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    check_cluster(args)?;
    let comparison = comparison(args)?;
    if let Some(folder) = &args.write_lab {
        return write(folder, &comparison, console);
    }
    let files = comparison.files();
    let lab = lab::parse(Path::new(FILE), &files).map_err(|found| {
        // The text contains values of flags, so its mistakes come from them.
        console.say(found.render(console.color));
        Failure::bad_input("the lab of these flags has mistakes. Nothing was started")
    })?;
    args.gates.check(&lab.names())?;
    let served = args.serve.start(console)?;
    let running = Run {
        cluster: args.cluster.asked(),
        unwritten: Some(&files),
        max_time: None,
        out: &args.out,
        consent: &args.consent,
        flamegraph: false,
        why: args.why,
        quick: false,
        format: args.page.page(),
        gates: &args.gates,
        revisions: None,
        account: None,
        board: served.as_ref().map(Served::board),
    };
    let exit = running.of(&lab, &mut BuildCache::default(), console, stop)?;
    if let Some(served) = served {
        served.end(stop);
    }
    Ok(exit)
}

/// The body of the request. `None` without `--data`.
fn body(args: &Args) -> Result<Option<Vec<u8>>, Failure> {
    let Some(data) = &args.data else {
        return Ok(None);
    };
    let body = match data.strip_prefix('@') {
        None => data.clone().into_bytes(),
        Some(path) => fs::read(path)
            .map_err(|error| Failure::bad_input(format!("`{path}` cannot be read: {error}")))?,
    };
    Ok(Some(body))
}

fn comparison(args: &Args) -> Result<Comparison, Failure> {
    let headers = args
        .headers
        .iter()
        .map(|header| match header.split_once(':') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(Failure::bad_input(format!(
                "expected a header as `NAME: VALUE`, found `{header}`"
            ))),
        });
    let mut headers: Vec<(String, String)> = headers.collect::<Result<_, _>>()?;
    if address::authorization(&args.a) != address::authorization(&args.b) {
        return Err(Failure::bad_input(
            "expected the same name and password in both URLs, found different credentials. Write \
             the lab with --write-lab and without credentials, and give each variant its own \
             `headers`",
        ));
    }
    address::with_authorization(&args.a, &mut headers, &[]).map_err(Failure::bad_input)?;
    let arrivals = match (args.connections, args.rate) {
        (Some(connections), _) => Arrivals::Connections(connections),
        (None, Some(rate)) => Arrivals::Rate(rate.per_second()),
        (None, None) => Arrivals::Auto,
    };
    let stream = args.stream.rule().map_err(Failure::bad_input)?;
    let websocket = websocket(args)?;
    let grpc = args.grpc.call().map_err(Failure::bad_input)?;
    let is_stream = match &grpc {
        None => stream.is_some() || websocket.is_some(),
        Some(call) => grpc_args::answers_several(call).map_err(Failure::bad_input)?,
    };
    check_http3(args)?;
    let is_in_cluster = args.cluster.asked().is_some();
    let attach = |given: &Option<String>| {
        let given = given.clone();
        given.map(|given| AttachText::of(given, is_in_cluster))
    };
    let is_chosen = arrivals == Arrivals::Auto;
    let length = args.duration.or((!is_chosen).then_some(DURATION));
    Ok(Comparison {
        a: Side {
            url: address::over_http(&address::without_credentials(&args.a)),
            attach: attach(&args.attach_a),
        },
        b: Side {
            url: address::over_http(&address::without_credentials(&args.b)),
            attach: attach(&args.attach_b),
        },
        arrivals,
        is_random: args.arrival == Some(ArrivalName::Poisson),
        block: length.map(|length| length / args.rounds),
        rounds: args.rounds,
        method: args.method.clone(),
        headers,
        body: body(args)?,
        timeout: args.timeout,
        insecure: args.insecure,
        is_http2: args.http2 || args.grpc.needs_http2(),
        is_http3: args.http3,
        status: args.status.clone(),
        ignore: args.ignore.clone(),
        // A stream is checked event by event, and its events may contain times.
        is_same: !args.different && !is_stream,
        stream,
        websocket,
        grpc,
        seed: args.seed,
    })
}

/// Refuses a load without a rate in a cluster.
fn check_cluster(args: &Args) -> Result<(), Failure> {
    let is_chosen = args.rate.is_none() && args.connections.is_none();
    match args.cluster.asked() {
        Some(_) if is_chosen => Err(Failure::bad_input(
            "expected `--rate` or `--connections` with `--on kubernetes`, found neither. A run in a cluster \
             does not choose its rate. Add a rate, such as `--rate 100`",
        )),
        _ => Ok(()),
    }
}

/// Refuses URLs that HTTP/3 cannot reach.
fn check_http3(args: &Args) -> Result<(), Failure> {
    let mut urls = [&args.a, &args.b].into_iter();
    let other = urls.find(|url| url.scheme_str() != Some("https"));
    match other.filter(|_| args.http3) {
        None => Ok(()),
        Some(url) => Err(Failure::bad_input(format!(
            "expected https URLs with `--http3`, found `{}`",
            address::without_credentials(url)
        ))),
    }
}

/// The conversation with both servers.
fn websocket(args: &Args) -> Result<Option<WebSocketCall>, Failure> {
    if address::is_websocket(&args.a) != address::is_websocket(&args.b) {
        return Err(Failure::bad_input(format!(
            "expected two URLs of one kind, found `{}` and `{}`",
            address::without_credentials(&args.a),
            address::without_credentials(&args.b)
        )));
    }
    let call = args.websocket.call(&args.a).map_err(Failure::bad_input)?;
    if call.is_some() && (args.method.is_some() || args.data.is_some()) {
        return Err(Failure::bad_input(
            "expected no method and no body with a URL of ws or wss, found one. Give messages with \
             `--message`",
        ));
    }
    Ok(call)
}

/// Length of the load, if the load is given without a length.
const DURATION: Duration = Duration::from_secs(10);

fn write(folder: &Path, comparison: &Comparison, console: Console) -> Result<Exit, Failure> {
    let written = fs::create_dir_all(folder).and_then(|()| {
        let mut files = comparison.files().0.into_iter();
        files.try_for_each(|(name, content)| fs::write(folder.join(name), content))
    });
    written.map_err(|error| {
        Failure::not_ready(format!("`{}` cannot be written: {error}", folder.display()))
    })?;
    let file = folder.join(FILE);
    console.say(format_args!(
        "weigh: run it with `weigh lab {}`",
        file.display()
    ));
    Ok(Exit::Done)
}
