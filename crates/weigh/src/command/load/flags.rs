//! The flags of `weigh load`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::address;
use experiment::exit::Failure;
use http::Uri;
use model::{Rate, Resumption, Shard, StatusRule};

use super::phases;
use super::start::StartAt;
use crate::cluster_args::ClusterArgs;
use crate::format::Format;
use crate::gates::GateArgs;
use crate::grpc_args::GrpcArgs;
use crate::publish::PublishArgs;
use crate::stream_args::{StreamArgs, pointer};
use crate::websocket_args::WebSocketArgs;

/// Load one HTTP server and report latency, rate and outcomes.
///
/// Without --rate, each connection sends its next request when its last response is complete (closed
/// loop, like wrk, ab, hey and bombardier). With --rate or --phases, requests leave on a plan, and
/// latency counts from the planned moment (open loop, like wrk2 and vegeta). Every response is
/// checked. The load ends at -n or -z, whichever comes first.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
// The short help of a load fits on a screen.
#[command(mut_args(|arg| match arg.get_help_heading() {
    Some("In a cluster") => arg.hide_short_help(true),
    _ => arg,
}))]
#[group(skip)]
pub(crate) struct Args {
    /// The URL to load: http://HOST:PORT/PATH, or https, ws or wss.
    ///
    /// With --targets, it is the server of the targets without a host.
    #[arg(value_name = "URL", value_parser = address::socket_url, required_unless_present = "targets")]
    pub(super) url: Option<Uri>,

    /// Number of connections. The maximum in an open loop.
    ///
    /// There are never more connections than requests (-n).
    #[arg(short, long, value_name = "N", help_heading = "Load", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    pub(super) connections: u32,
    /// Stop after this many requests.
    #[arg(short = 'n', long, value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) requests: Option<u64>,
    /// Stop after this time, such as 30s or 2m [default: 10s without -n].
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Load", value_parser = lab::duration, conflicts_with = "phases")]
    pub(super) duration: Option<Duration>,
    /// Open loop: requests per second, such as 500 or 0.5/s.
    #[arg(short, short_alias = 'R', long, help_heading = "Load", value_parser = phases::rate, group = "plan")]
    pub(super) rate: Option<Rate>,
    /// Open loop with steps and ramps: 10s@100/s,20s@100/s..500/s.
    ///
    /// A phase has a length and a rate. With two rates, the rate changes evenly from the first to the
    /// second. -n ends the load earlier.
    #[arg(long, help_heading = "Load", value_parser = phases::phases, group = "plan")]
    pub(super) phases: Option<phases::Phases>,
    /// Gaps between open-loop requests: uniform or poisson.
    #[arg(
        long,
        value_enum,
        value_name = "LAW",
        help_heading = "Load",
        default_value = "uniform",
        hide_possible_values = true,
        requires = "plan"
    )]
    pub(super) arrival: ArrivalName,
    /// Seed of all random numbers.
    #[arg(
        long,
        value_name = "N",
        help_heading = "Load",
        default_value_t = 1,
        hide_short_help = true
    )]
    pub(super) seed: u64,
    /// Threads of the generator.
    #[arg(short, long, value_name = "N", help_heading = "Load", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: u32,
    /// Send one part of the load: 2/4 is the part of the second of four generators.
    ///
    /// It sends every fourth request of the plan, over every fourth connection. Start all generators
    /// with the same flags except this one and --record. Then merge the recordings with `weigh merge`.
    /// The generators do not communicate.
    #[arg(
        long,
        value_name = "K/N",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(super) shard: Option<Shard>,
    /// Start at this time: 2026-11-23T20:00:00Z, or seconds since 1970.
    ///
    /// The time is at most one hour ahead. Machines that send shards need synchronized clocks.
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(super) start_at: Option<StartAt>,
    /// Pin the threads of the generator to these cores, such as 1 or 2,3.
    #[arg(
        long,
        value_name = "CORE",
        help_heading = "Load",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub(super) pin: Option<Vec<usize>>,
    /// Open loop: the largest share of time that a thread may spin to send on time, in percent.
    ///
    /// The kernel wakes sleeping threads late. So a thread wakes early and spins until the request is
    /// due. A higher share makes requests more punctual on a free core, and less punctual on a core
    /// that other programs or guests use. 0 never spins. 100 never sleeps and uses a whole core.
    #[arg(long, value_name = "PERCENT", help_heading = "Load", hide_short_help = true, default_value_t = 25, value_parser = clap::value_parser!(u8).range(0..=100), requires = "plan")]
    pub(super) spin: u8,
    /// Open loop: do not use real-time priority.
    ///
    /// With real-time priority, no ordinary program delays a request. It needs root, CAP_SYS_NICE or a
    /// limit (`ulimit -r`). The report contains "real-time" if the generator had it. Without --pin, a
    /// thread loses it while it uses much of its core, because the target may need that core.
    #[arg(long, help_heading = "Load", hide_short_help = true, requires = "plan")]
    pub(super) no_realtime: bool,
    /// Let idle cores sleep.
    ///
    /// By default `weigh` keeps them awake, if the user may do so (`/dev/cpu_dma_latency`, root). Then
    /// latencies do not contain the time in which a core wakes up or returns from the host.
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub(super) no_awake: bool,

    /// Method [default: GET, or POST with a body].
    #[arg(short, long, help_heading = "Request")]
    pub(super) method: Option<String>,
    /// A header, `Name: value`. Repeat the flag for several headers.
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Request", value_parser = header)]
    pub(super) headers: Vec<(String, String)>,
    /// Content type of requests without this header.
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = "Request", value_parser = content_type)]
    pub(super) content_type: Option<String>,
    /// The body. @FILE reads it from a file.
    #[arg(
        short = 'd',
        long,
        value_name = "TEXT",
        help_heading = "Request",
        conflicts_with = "data_file"
    )]
    pub(super) data: Option<String>,
    /// File with the body.
    #[arg(
        short = 'D',
        long,
        value_name = "FILE",
        help_heading = "Request",
        conflicts_with = "grpc"
    )]
    pub(super) data_file: Option<PathBuf>,
    /// File of requests in vegeta's format, sent in rotation. - is stdin.
    ///
    /// HTTP format: a line `METHOD URL`, header lines, and `@FILE` for the body. Empty lines separate
    /// targets, and `#` starts a comment. JSON format: one object per line with `method`, `url`,
    /// `header` (lists of values by name), `body` (base64) and our own key `weight`. All targets have
    /// the same host and port. Paths of bodies are relative to the current folder.
    #[arg(long, value_name = "FILE", help_heading = "Request", conflicts_with_all = ["method", "data", "data_file", "grpc"])]
    pub(super) targets: Option<PathBuf>,
    /// File with the requests of one user in their order (YAML).
    ///
    /// Later requests can use values from earlier responses. Each connection repeats the `steps`. One
    /// pass through them is an iteration. With --rate or --phases, an iteration starts at each planned
    /// moment. -n, -r and --phases count iterations. A step that does not pass ends its iteration. The
    /// latency of the first step counts from the planned moment (open loop) or from the send (closed
    /// loop). The latency of a later step counts from the end of the response before it plus its
    /// `pause`. docs/labs.md lists all keys.
    #[arg(long, value_name = "FILE", help_heading = "Request", requires = "url", conflicts_with_all = ["targets", "method", "data", "data_file", "data_set", "grpc", "expect", "expect_graphql", "expect_body", "expect_headers"])]
    pub(super) scenario: Option<PathBuf>,
    /// File of values for {{column}} in requests: CSV or JSON lines.
    ///
    /// Columns can be used in paths, header values and bodies. CSV has a header row. A line of JSON is
    /// one object. Each request takes one row. `weigh` percent-encodes values in paths and leaves other
    /// values unchanged. {{random:1..1000}} is a whole number from that range, and {{index}} is the
    /// number of the request, from 0. Both work without this file.
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    pub(super) data_set: Option<PathBuf>,
    /// Order of the rows of --data-set: rotation or random.
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        help_heading = "Request",
        default_value = "rotation",
        hide_possible_values = true,
        hide_short_help = true,
        requires = "data_set"
    )]
    pub(super) data_order: OrderName,

    /// Expected statuses: 200, 2xx, 200,429 [default: any 2xx].
    ///
    /// With several statuses, the report contains the count and the latency of each. Checks of the body
    /// then apply to responses with the first status only.
    #[arg(long, value_name = "STATUS", help_heading = "Check", value_parser = StatusRule::read)]
    pub(super) expect: Option<StatusRule>,
    /// Reject responses with a top-level `errors` member (GraphQL).
    #[arg(long, help_heading = "Check")]
    pub(super) expect_graphql: bool,
    /// Reject responses with another body than this file.
    #[arg(long, value_name = "FILE", help_heading = "Check")]
    pub(super) expect_body: Option<PathBuf>,
    /// JSON pointer that --expect-body ignores: /extensions/timing.
    ///
    /// Repeat the flag for several members. Bodies are equal if their bytes are equal, or if their JSON
    /// is equal without these members.
    #[arg(long, value_name = "POINTER", help_heading = "Check", requires = "expect_body", value_parser = pointer)]
    pub(super) ignore: Vec<String>,
    /// Reject responses without this header, `Name: value`.
    #[arg(long = "expect-header", value_name = "HEADER", help_heading = "Check", value_parser = header)]
    pub(super) expect_headers: Vec<(String, String)>,
    #[command(flatten, next_help_heading = "Check")]
    pub(super) stream: StreamArgs,
    #[command(flatten, next_help_heading = "Request")]
    pub(super) grpc: GrpcArgs,
    #[command(flatten, next_help_heading = "WebSocket")]
    pub(super) websocket: WebSocketArgs,

    /// Time after which a request has failed.
    #[arg(long, value_name = "TIME", help_heading = "Connection", default_value = "10s", value_parser = lab::duration)]
    pub(super) timeout: Duration,
    /// Open a new connection for each request.
    #[arg(long, help_heading = "Connection")]
    pub(super) no_keep_alive: bool,
    /// Connect to this Unix socket instead of the host and port of the URL.
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    pub(super) unix_socket: Option<PathBuf>,
    /// Use HTTP/2: by ALPN with https, by prior knowledge with http.
    ///
    /// The default is HTTP/1.1. If the server does not speak the chosen protocol, the requests fail.
    /// `weigh` never falls back to the other protocol.
    #[arg(long, help_heading = "Connection", group = "shared")]
    pub(super) http2: bool,
    /// Use HTTP/3 over QUIC, with an https URL.
    ///
    /// The server must listen on the UDP port with the number of the URL's port.
    #[arg(
        long,
        help_heading = "Connection",
        group = "shared",
        conflicts_with = "unix_socket",
        hide_short_help = true
    )]
    pub(super) http3: bool,
    /// Resume TLS with tickets of earlier connections, which matters with --no-keep-alive.
    ///
    /// With `0-rtt`, requests with a safe method, such as GET, leave before the handshake is complete. It needs
    /// --http3. Requests with other methods wait for the handshake.
    #[arg(
        long,
        value_name = "on|0-rtt",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) resumption: Option<ResumptionName>,
    /// Most requests in flight on an HTTP/2 or HTTP/3 connection.
    ///
    /// The server may lower it. A closed loop has -c times --streams requests in flight.
    #[arg(long, value_name = "N", help_heading = "Connection", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "shared", conflicts_with = "no_keep_alive")]
    pub(super) streams: u32,
    /// Accept any certificate of an https server.
    #[arg(long, help_heading = "Connection", conflicts_with = "ca")]
    pub(super) insecure: bool,
    /// Trust the authorities in this PEM file, not the system's.
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub(super) ca: Option<PathBuf>,
    /// The client's own certificate, a PEM file, for an https server that requests one.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        requires = "key",
        hide_short_help = true
    )]
    pub(super) cert: Option<PathBuf>,
    /// The private key of --cert, a PEM file without a password.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        requires = "cert",
        hide_short_help = true
    )]
    pub(super) key: Option<PathBuf>,

    /// Layout: text, json, csv, md, html, hgrm, ab, vegeta, vegeta-json, k6, bombardier,
    /// bombardier-json or artillery.
    ///
    /// The layouts from hgrm on are the layouts of HdrHistogram's plotter, ApacheBench, vegeta report,
    /// k6 run --summary-export, bombardier -l and artillery run --output. `weigh report` can print a
    /// recording in any layout later.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        help_heading = "Output",
        default_value = "text",
        hide_possible_values = true
    )]
    pub(super) format: Format,
    /// Also write the recording to this file, for `weigh report`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) record: Option<PathBuf>,
    #[command(flatten)]
    pub(super) publish: PublishArgs,
    #[command(flatten, next_help_heading = "Gates")]
    pub(super) gates: GateArgs,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
    /// The number of pods that send the load. Each sends its share of the plan.
    #[arg(long, value_name = "N", help_heading = "In a cluster", hide_short_help = true, requires = "on", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) generators: Option<u32>,
    /// The files that the flags name, in a generator of a cluster. `None` if they are files of this machine.
    #[arg(skip)]
    pub(super) sent_files: Option<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Args {
    /// Reads a file that a flag names.
    ///
    /// # Errors
    /// When it cannot be read, or has not come with the flags into the cluster.
    pub(super) fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, Failure> {
        let path = path.as_ref();
        match &self.sent_files {
            None => super::read(path),
            Some(files) => files.get(path).cloned().ok_or_else(|| {
                Failure::bad_input(format!("`{}` has not come with the flags", path.display()))
            }),
        }
    }
}

/// The law of gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::command) enum ArrivalName {
    Uniform,
    Poisson,
}

/// The use of tickets of earlier connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ResumptionName {
    On,
    #[value(name = "0-rtt")]
    EarlyData,
}

impl ResumptionName {
    pub(super) fn meaning(self) -> Resumption {
        match self {
            ResumptionName::On => Resumption::On,
            ResumptionName::EarlyData => Resumption::EarlyData,
        }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum OrderName {
    Rotation,
    Random,
}

const SHORT_EXAMPLES: &str = "\
Examples:
  weigh load -c 100 -z 30s http://127.0.0.1:8080/
  weigh load -r 500 -z 1m -D query.json http://127.0.0.1:4000/graphql
--help explains each flag in detail.";

const EXAMPLES: &str = "\
Examples:
  Send as fast as 100 connections allow, for 30 seconds:
    weigh load -c 100 -z 30s http://127.0.0.1:8080/
  Send 10,000 requests with a body, and check the responses:
    weigh load -n 10000 -D query.json -H 'Content-Type: application/json' \\
      --expect 200 --expect-body answer.json http://127.0.0.1:4000/graphql
  Send at a rate. Latency counts from the planned moment of each request:
    weigh load --rate 500 -z 1m http://127.0.0.1:8080/
  Raise the rate, hold it, and use random gaps:
    weigh load --phases 30s@10/s..200/s,1m@200/s --arrival poisson http://127.0.0.1:8080/
  Use vegeta's targets and its report:
    echo 'GET http://127.0.0.1:8080/' | weigh load --targets - --rate 50 -z 5s --format vegeta
  Send another user each time, and a random page:
    weigh load --data-set users.csv -H 'X-User: {{id}}' 'http://127.0.0.1:8080/list?page={{random:1..9}}'
  Log in, then use the token of the response, with one row of data for each iteration:
    weigh load -c 20 -z 30s --scenario shopping.yaml http://127.0.0.1:8080/
  Use HTTPS with your own certificate, or HTTP/2 with 20 connections of 10 requests each:
    weigh load --ca ca.pem https://127.0.0.1:8443/
    weigh load --http2 -c 20 --streams 10 http://127.0.0.1:8080/
  Use HTTP/3:
    weigh load --http3 --ca ca.pem https://127.0.0.1:8443/
  Fail (exit code 4) unless the load shows that the limits hold:
    weigh load -r 500 -z 1m --gate 'p99 value < 20ms' --gate 'failures value < 0.1%' http://127.0.0.1:8080/
  Keep the recording, and print it again in another layout:
    weigh load -z 10s --record run.json http://127.0.0.1:8080/
    weigh report --format k6 run.json

Flags of other tools:
  wrk, wrk2    same: -c -t -R. Others: -d is -z, -s is --scenario
  ab           same: -n -c -H -T. Others: -p is -D, -t is -z, -k is always on
  hey          same: -n -c -z -m -H -T -d -D. Others: -q is -r, for all connections together
  bombardier   same: -c -n -m -H -r. Others: -d is -z, -b is -d, -f is -D, -l is always on
  h2load       same: -c -n -t -H. Others: -m is --streams, -D is -z, and add --http2
  vegeta       -rate is -r, -duration is -z, -targets is --targets, -max-connections is -c";

/// Reads a media type.
fn content_type(text: &str) -> Result<String, String> {
    let text = text.trim();
    if !text.contains('/') || http::HeaderValue::from_str(text).is_err() {
        return Err(
            "expected a media type, such as application/json. A time limit is --timeout".to_owned(),
        );
    }
    Ok(text.to_owned())
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
