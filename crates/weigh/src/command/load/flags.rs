//! The flags of `weigh load`.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use model::{Rate, Shard, StatusRule};

use super::phases;
use super::start::StartAt;
use crate::address;
use crate::format::Format;
use crate::gates::GateArgs;
use crate::published::PublishArgs;

/// Load one HTTP server and report latency, rate and outcomes.
///
/// Without --rate every connection sends its next request as soon as its last answer is complete
/// (closed loop, as wrk, ab, hey and bombardier do). With --rate or --phases requests leave by
/// plan, whether or not earlier ones were answered, and latency counts from the planned moment
/// (open loop, as wrk2 and vegeta do). Every answer is checked. Stops at -n or -z, whichever comes
/// first.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES)]
#[group(skip)]
pub(crate) struct Args {
    /// What to load: http://HOST:PORT/PATH, or https.
    ///
    /// Beside --targets it is where targets without a host go.
    #[arg(value_name = "URL", value_parser = address::url, required_unless_present = "targets")]
    pub(super) url: Option<Uri>,

    /// Connections (open loop: the most that may be open at once).
    #[arg(short, long, value_name = "N", help_heading = "Load", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    pub(super) connections: u32,
    /// Stop after this many requests.
    #[arg(short = 'n', long, value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) requests: Option<u64>,
    /// Stop after this long, such as 30s or 2m [default: 10s unless -n is given].
    #[arg(short = 'z', long, value_name = "TIME", help_heading = "Load", value_parser = lab::duration, conflicts_with = "phases")]
    pub(super) duration: Option<Duration>,
    /// Open loop: send this many requests a second, such as 500 or 0.5/s.
    #[arg(short, short_alias = 'R', long, help_heading = "Load", value_parser = phases::rate, group = "plan")]
    pub(super) rate: Option<Rate>,
    /// Open loop in steps and ramps: 10s@100/s,20s@100/s..500/s.
    ///
    /// Each phase is a length and a rate, or two rates to go from one to the other in a straight
    /// line. -n ends the load earlier.
    #[arg(long, help_heading = "Load", value_parser = phases::phases, group = "plan")]
    pub(super) phases: Option<phases::Phases>,
    /// Gaps of the open loop: uniform or poisson.
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
    /// Seed of everything random.
    #[arg(long, value_name = "N", help_heading = "Load", default_value_t = 1)]
    pub(super) seed: u64,
    /// Threads of the generator.
    #[arg(short, long, value_name = "N", help_heading = "Load", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: u32,
    /// Send one part of the load, such as 2/4: of four generators, this is the second.
    ///
    /// Every fourth request of the plan is its own, and every fourth connection. The shards need not
    /// know of each other; start all with the same flags but this one and --record, and put the
    /// recordings together with weigh merge.
    #[arg(
        long,
        value_name = "K/N",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(super) shard: Option<Shard>,
    /// Begin at this time: 2026-11-23T20:00:00Z, or seconds since 1970.
    ///
    /// It is at most an hour ahead. The clocks of machines that send shards should agree.
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Load",
        hide_short_help = true
    )]
    pub(super) start_at: Option<StartAt>,
    /// Pin the generator's threads to these cores, such as 1 or 2,3.
    #[arg(
        long,
        value_name = "CORE",
        help_heading = "Load",
        value_delimiter = ','
    )]
    pub(super) pin: Option<Vec<usize>>,
    /// Open loop: spin at most this share of the time to send on time, in percent.
    ///
    /// Sleeping threads are woken late, so a thread that has a slot to send wakes early and spins
    /// for the rest. More makes sends more punctual where the core is free; on a core that is
    /// shared, with a system under load or with other guests of the host, it makes them less so.
    /// 0 never spins, 100 never sleeps and takes the whole core.
    #[arg(long, value_name = "PERCENT", help_heading = "Load", hide_short_help = true, default_value_t = 25, value_parser = clap::value_parser!(u8).range(0..=100), requires = "plan")]
    pub(super) spin: u8,
    /// Open loop: do not ask for real-time priority.
    ///
    /// With it no ordinary program delays a send. It wants root, CAP_SYS_NICE or a limit for it
    /// (`ulimit -r`); without, the generator is an ordinary program, and the report does not say
    /// "real-time". Without --pin a thread has it only while it uses little of its core, which the
    /// target may need.
    #[arg(long, help_heading = "Load", hide_short_help = true, requires = "plan")]
    pub(super) no_realtime: bool,
    /// Let idle cores sleep.
    ///
    /// They are kept awake otherwise, where this user may (`/dev/cpu_dma_latency`, root): waking up,
    /// and on a virtual machine getting the core back from the host, is then no part of a latency.
    #[arg(long, help_heading = "Load", hide_short_help = true)]
    pub(super) no_awake: bool,

    /// Method [default: GET, or POST when there is a body].
    #[arg(short, long, help_heading = "Request")]
    pub(super) method: Option<String>,
    /// A header, `Name: value`; may be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Request", value_parser = header)]
    pub(super) headers: Vec<(String, String)>,
    /// Content type of requests that name none.
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = "Request", value_parser = content_type)]
    pub(super) content_type: Option<String>,
    /// Body; @FILE reads it from a file.
    #[arg(
        short = 'd',
        long,
        value_name = "TEXT",
        help_heading = "Request",
        conflicts_with = "data_file"
    )]
    pub(super) data: Option<String>,
    /// File with the body.
    #[arg(short = 'D', long, value_name = "FILE", help_heading = "Request")]
    pub(super) data_file: Option<PathBuf>,
    /// File of requests in vegeta's format, sent in rotation; - is stdin.
    ///
    /// HTTP: a line `METHOD URL`, header lines, and `@FILE` for the body; targets are separated by
    /// empty lines, and `#` begins a comment. JSON: one object a line with `method`, `url`,
    /// `header` (lists of values by name), `body` (base64), and for us `weight`. All targets name the same host and
    /// port. Paths of bodies are relative to the current folder.
    #[arg(long, value_name = "FILE", help_heading = "Request", conflicts_with_all = ["method", "data", "data_file"])]
    pub(super) targets: Option<PathBuf>,
    /// File of requests that follow one another, as one user's (YAML).
    ///
    /// Values captured from an answer go into the requests after it. Every connection carries out the
    /// `steps` again and again, one iteration after the other; with --rate or --phases an iteration
    /// begins at each planned moment. -n, -r and --phases count iterations. A step that does not pass
    /// ends its iteration. The first step's latency counts from the planned moment (open loop) or
    /// the send (closed loop), that of a later one from the moment the answer before it was complete
    /// plus its `pause`. docs/labs.md lists all keys.
    #[arg(long, value_name = "FILE", help_heading = "Request", requires = "url", conflicts_with_all = ["targets", "method", "data", "data_file", "data_set", "expect", "expect_graphql", "expect_body", "expect_headers"])]
    pub(super) scenario: Option<PathBuf>,
    /// File of values for {{column}} in requests: CSV or JSON lines.
    ///
    /// Columns stand in paths, header values and bodies. CSV has a header row; a line of JSON is one
    /// object. Every request takes one row. Values in the path are percent-encoded, elsewhere they
    /// stand as they are. Without a data set too, {{random:1..1000}} is a whole number from that
    /// range, and {{index}} the number of the request, from 0.
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    pub(super) data_set: Option<PathBuf>,
    /// Order of its rows: rotation or random.
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

    /// Expected status, or several: 200, 2xx, 200,429 [default: any 2xx].
    ///
    /// Where several are right, the report has the counts and the latency of each, and the other checks of
    /// the body are about answers of the first of them.
    #[arg(long, value_name = "STATUS", help_heading = "Check", value_parser = StatusRule::read)]
    pub(super) expect: Option<StatusRule>,
    /// Refuse answers with a top-level `errors` member (GraphQL).
    #[arg(long, help_heading = "Check")]
    pub(super) expect_graphql: bool,
    /// Refuse answers whose body is not exactly that of this file.
    #[arg(long, value_name = "FILE", help_heading = "Check")]
    pub(super) expect_body: Option<PathBuf>,
    /// JSON pointer to what --expect-body passes over: /extensions/timing.
    ///
    /// May be given several times. Bodies are then equal when they are the same bytes, or the same
    /// JSON without these members.
    #[arg(long, value_name = "POINTER", help_heading = "Check", requires = "expect_body", value_parser = pointer)]
    pub(super) ignore: Vec<String>,
    /// Refuse answers without this header, `Name: value`.
    #[arg(long = "expect-header", value_name = "HEADER", help_heading = "Check", value_parser = header)]
    pub(super) expect_headers: Vec<(String, String)>,

    /// Give up on an answer after this long.
    #[arg(long, value_name = "TIME", help_heading = "Connection", default_value = "10s", value_parser = lab::duration)]
    pub(super) timeout: Duration,
    /// Open a new connection for every request.
    #[arg(long, help_heading = "Connection")]
    pub(super) no_keep_alive: bool,
    /// Connect to this unix socket instead of the URL's host and port.
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    pub(super) unix_socket: Option<PathBuf>,
    /// Speak HTTP/2: agreed on by ALPN with https, by prior knowledge with http.
    ///
    /// Without it, HTTP/1.1 is spoken. A server that does not speak what was asked for gets no
    /// requests: nothing is negotiated down.
    #[arg(long, help_heading = "Connection")]
    pub(super) http2: bool,
    /// Requests under way at once on each HTTP/2 connection.
    ///
    /// Fewer where the server allows fewer. In a closed loop it is -c times --streams requests that
    /// are under way.
    #[arg(long, value_name = "N", help_heading = "Connection", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "http2", conflicts_with = "no_keep_alive")]
    pub(super) streams: u32,
    /// Accept any certificate of an https server.
    #[arg(long, help_heading = "Connection", conflicts_with = "ca")]
    pub(super) insecure: bool,
    /// Trust the authorities in this PEM file, and not those of the system.
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub(super) ca: Option<PathBuf>,

    /// Layout: text, json, csv, md, html, hgrm, ab, vegeta, vegeta-json, k6, bombardier,
    /// bombardier-json or artillery.
    ///
    /// From hgrm on, they are the layouts of HdrHistogram's plotter, ApacheBench, vegeta report, k6
    /// run --summary-export, bombardier -l and artillery run --output. `weigh report` prints a
    /// recording in any of them later.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        help_heading = "Output",
        default_value = "text",
        hide_possible_values = true
    )]
    pub(super) format: Format,
    /// Write the recording here as well, for weigh report.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) record: Option<PathBuf>,
    #[command(flatten)]
    pub(super) publish: PublishArgs,
    #[command(flatten, next_help_heading = "Gates")]
    pub(super) gates: GateArgs,
}

/// The law of gaps.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum ArrivalName {
    Uniform,
    Poisson,
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
--help says more about each flag.";

const EXAMPLES: &str = "\
Examples:
  As fast as 100 connections allow, for 30 seconds:
    weigh load -c 100 -z 30s http://127.0.0.1:8080/
  10,000 requests with a body, checked against a known answer:
    weigh load -n 10000 -D query.json -H 'Content-Type: application/json' \\
      --expect 200 --expect-body answer.json http://127.0.0.1:4000/graphql
  At a rate, latency counted from the moment each request was due:
    weigh load --rate 500 -z 1m http://127.0.0.1:8080/
  Up, hold, and random gaps:
    weigh load --phases 30s@10/s..200/s,1m@200/s --arrival poisson http://127.0.0.1:8080/
  vegeta's targets, and its report:
    echo 'GET http://127.0.0.1:8080/' | weigh load --targets - --rate 50 -z 5s --format vegeta
  Another user each time, and a random page:
    weigh load --data-set users.csv -H 'X-User: {{id}}' 'http://127.0.0.1:8080/list?page={{random:1..9}}'
  Log in, then list with the token of the answer, one row of the data for each iteration:
    weigh load -c 20 -z 30s --scenario shopping.yaml http://127.0.0.1:8080/
  HTTPS with a certificate of one's own; HTTP/2 with 20 connections of 10 requests each:
    weigh load --ca ca.pem https://127.0.0.1:8443/
    weigh load --http2 -c 20 --streams 10 http://127.0.0.1:8080/
  Fail (exit code 4) unless the load shows that limits are kept:
    weigh load -r 500 -z 1m --gate 'p99 value < 20ms' --gate 'failures value < 0.1%' http://127.0.0.1:8080/
  Keep the recording, and read it again in another layout:
    weigh load -z 10s --record run.json http://127.0.0.1:8080/
    weigh report --format k6 run.json

Coming from another tool:
  wrk, wrk2    -c, -t and -R are the same; -d is -z here, -s is --scenario
  ab           -n, -c, -H and -T are the same; -k is always on, -p is -D, -t is -z
  hey          -n, -c, -z, -m, -H, -T, -d and -D are the same; -q is -r, for all connections
  bombardier   -c, -n, -m, -H and -r are the same; -d is -z, -b is -d, -f is -D, -l is always on
  h2load       -c, -n, -t and -H are the same; --http2 is not implied, -m is --streams, -D is -z
  vegeta       -rate is -r, -duration is -z, -targets is --targets, -max-connections is -c";

/// Reads `Name: value`.
fn content_type(text: &str) -> Result<String, String> {
    let text = text.trim();
    if !text.contains('/') || http::HeaderValue::from_str(text).is_err() {
        return Err(
            "expected a media type, such as application/json; a time limit is --timeout".to_owned(),
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

/// Reads a JSON pointer.
fn pointer(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(format!("a JSON pointer begins with `/`: write `/{text}`"))
    }
}
