//! `weigh null-server`: a server for the calibration of instruments.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::stop::StopSignal;
use load::null::{
    Behavior, GrpcBehavior, Jitter, Mix, NullCertificate, NullEarlyData, NullEncoding, NullStream,
    Pace, Slow, SocketBehavior, Stall, serve, serve_grpc, serve_http3, serve_websocket,
};

/// Serve responses after an exact delay, to calibrate load generators.
///
/// The server has one thread and speaks HTTP/1.1, or HTTP/3 with --http3. Load it with any load generator and compare the
/// results with the delays that you set here. It counts its requests at /seen, and prints the counts at
/// the end.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("pace").args(["delay", "service", "mix"]))]
pub(crate) struct Args {
    /// Listen on this address. Port 0 selects a free port. The server prints it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Answer each request after this time, in parallel [default: at once].
    #[arg(long, value_parser = lab::duration)]
    delay: Option<Duration>,
    /// Work on one request at a time, for this time, in order of arrival.
    #[arg(long, value_name = "TIME", value_parser = lab::duration)]
    service: Option<Duration>,
    /// Draw each delay from these, with weights: 90:1ms,10:20ms.
    #[arg(long, value_name = "WEIGHT:DELAY,…", value_parser = mix)]
    mix: Option<Mix>,
    /// Multiply each delay by a random log-normal factor of mean 1 with this standard deviation: 20%.
    ///
    /// The factor is exp(s Z - s² / 2) with a standard normal Z and s² = ln(1 + jitter²),
    /// so the mean delay stays as given. Servers that are compared need different seeds.
    #[arg(long, value_name = "SHARE", value_parser = jitter)]
    jitter: Option<Jitter>,
    /// This share of the requests, drawn at random, takes longer by --slow-by: 20%.
    #[arg(long, value_name = "SHARE", value_parser = slow_share, requires = "slow_by")]
    slow_share: Option<f64>,
    /// Additional time of the slow requests.
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "slow_share")]
    slow_by: Option<Duration>,
    /// Use this processor time for each request, including all handling.
    #[arg(long, value_name = "TIME", value_parser = lab::duration)]
    burn: Option<Duration>,
    /// Use it for every Nth request only.
    #[arg(long, value_name = "N", default_value_t = 1)]
    burn_every: u64,
    /// Use it in the kernel instead of the program.
    #[arg(long, requires = "burn")]
    burn_in_kernel: bool,
    /// Sleep for this time before each response. The server has one thread, so other requests wait.
    #[arg(long, value_name = "TIME", value_parser = lab::duration)]
    sleep: Option<Duration>,
    /// Wait before each response for a lock that another thread holds for this time.
    #[arg(long, value_name = "TIME", value_parser = lab::duration)]
    lock: Option<Duration>,
    /// Open and close a connection to itself before each response.
    #[arg(long)]
    extra_connection: bool,
    /// Write to this amount of memory on each request, one byte in each cache line: 4MiB.
    #[arg(long, value_name = "SIZE", value_parser = lab::size)]
    thrash: Option<u64>,
    /// Seed of --mix, --jitter and --slow-share.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop for a time, at a time after the first request: 1s@10s.
    #[arg(long, value_name = "LENGTH@AFTER", value_parser = stall)]
    stall: Option<Stall>,
    /// Length of a body in bytes. Bodies of 20 bytes and more are GraphQL responses.
    #[arg(long, value_name = "BYTES", default_value_t = Behavior::JSON_BYTES_MIN)]
    body: usize,
    /// The body itself, the same for each request.
    #[arg(long, value_name = "TEXT", conflicts_with = "body")]
    answer: Option<String>,
    /// Encode bodies, even if the request does not accept it: gzip, deflate, br, zstd, or a list with commas.
    #[arg(long, value_name = "CODING")]
    encoding: Option<String>,
    /// Encode each body with different bytes, like gzip with the time in its header.
    #[arg(long, requires = "encoding")]
    encoding_varies: bool,
    /// Change one byte of the body in every Nth response.
    #[arg(long, value_name = "N")]
    wrong_every: Option<u64>,
    /// Close a connection after N responses. The last response announces it.
    #[arg(long, value_name = "N")]
    close_after: Option<u64>,
    /// Reset the connection instead of every Nth response.
    #[arg(long, value_name = "N")]
    reset_every: Option<u64>,
    /// Never answer every Nth request.
    #[arg(long, value_name = "N")]
    never_every: Option<u64>,
    /// Answer with this number of events instead of a body.
    #[arg(long, value_name = "N", conflicts_with_all = ["body", "answer", "encoding"])]
    events: Option<u64>,
    /// Time from the head of a response to its first event [default: at once].
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "events")]
    first: Option<Duration>,
    /// Time between two events [default: none].
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "events")]
    gap: Option<Duration>,
    /// Send events as lines instead of server-sent events.
    #[arg(long, requires = "events")]
    lines: bool,
    /// The data of one more event at the end: [DONE].
    #[arg(long, value_name = "TEXT", requires = "events")]
    marker: Option<String>,
    /// Keep a response open after its last event, until the client leaves.
    #[arg(long, requires = "events")]
    stays_open: bool,
    /// Speak WebSocket. Send each message back after --delay, or publish --events to all clients at the same
    /// times, also as GraphQL subscriptions. The data of events is {"price":…,"at":…}, with the time since
    /// 1970 in nanoseconds.
    #[arg(long, conflicts_with_all = [
        "service", "mix", "jitter", "slow_share", "burn", "sleep", "lock", "extra_connection", "thrash",
        "stall", "body", "answer", "encoding", "wrong_every", "close_after", "reset_every", "never_every",
        "lines", "marker", "stays_open",
    ])]
    websocket: bool,
    /// Time from the time stamp in an event to its send [default: none].
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires_all = ["websocket", "events"])]
    deliver_after: Option<Duration>,
    /// Serve gRPC, gRPC-Web and Connect: each message of a call of any method is answered by the same message
    /// after --delay.
    ///
    /// With --events, a call gets its first message that often, with --gap in between. Clients that ask by
    /// reflection find the methods Say, Watch and Chat of null.Echo, with a message {"text": "…"}.
    #[arg(long, conflicts_with_all = ["service", "mix", "jitter", "slow_share", "burn", "sleep", "lock", "extra_connection", "thrash", "stall", "body", "answer", "encoding", "wrong_every", "close_after", "reset_every", "never_every", "lines", "marker", "stays_open", "first", "realtime", "websocket"])]
    grpc: bool,
    /// End each gRPC call with this status: 0 to 16.
    #[arg(long, value_name = "STATUS", requires = "grpc", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=16))]
    grpc_status: u32,
    /// Serve HTTP/3, with a new certificate that the server signs itself.
    ///
    /// A load accepts the certificate with --insecure, or with --ca and the file of --certificate. With
    /// --reset-every, the server resets the stream of a request.
    #[arg(long, conflicts_with_all = ["burn", "thrash", "encoding_varies", "websocket", "grpc"])]
    http3: bool,
    /// Write the certificate of --http3 to this file.
    #[arg(long, value_name = "FILE", requires = "http3")]
    certificate: Option<PathBuf>,
    /// Accept requests of --http3 before the handshake is complete (0-RTT).
    #[arg(long, requires = "http3")]
    early_data: bool,
    /// Reject the 0-RTT of every Nth connection, from 2.
    #[arg(long, value_name = "N", requires = "early_data", value_parser = clap::value_parser!(u64).range(2..))]
    early_rejected_every: Option<u64>,
    /// Use real-time priority, so that no ordinary program delays a response.
    #[arg(long)]
    realtime: bool,
}

/// The behavior of the server that the flags select.
enum Selected {
    Http(Box<Behavior>),
    WebSocket(SocketBehavior),
}

impl Selected {
    fn of(args: &Args) -> Result<Selected, Failure> {
        if args.websocket {
            return websocket(args).map(Selected::WebSocket);
        }
        let behavior = behavior(args)?;
        behavior
            .check()
            .map_err(|error| Failure::bad_input(error.to_string()))?;
        Ok(Selected::Http(Box::new(behavior)))
    }

    fn scheme(&self) -> &'static str {
        match self {
            Selected::Http(_) => "http",
            Selected::WebSocket(_) => "ws",
        }
    }
}

fn websocket(args: &Args) -> Result<SocketBehavior, Failure> {
    let delay = args.delay.unwrap_or_default();
    let Some(events) = args.events else {
        return Ok(SocketBehavior::Echo { delay });
    };
    if args.delay.is_some() {
        return Err(Failure::bad_input(
            "`--delay` is for replies, and a server with `--events` sends no replies. Use `--first` or \
             `--deliver-after`",
        ));
    }
    let Some(gap) = args.gap.filter(|gap| !gap.is_zero()) else {
        return Err(Failure::bad_input(
            "expected the time between two events, found none. Give it with `--gap 10ms`",
        ));
    };
    Ok(SocketBehavior::Publish {
        events,
        first: args.first.unwrap_or_default(),
        gap,
        deliver_after: args.deliver_after.unwrap_or_default(),
    })
}

fn behavior(args: &Args) -> Result<Behavior, Failure> {
    Ok(Behavior {
        pace: match (args.service, &args.mix) {
            (Some(time), _) => Pace::Service(time),
            (None, Some(mix)) => Pace::Mix(mix.clone()),
            (None, None) => Pace::Delay(args.delay.unwrap_or_default()),
        },
        jitter: args.jitter.unwrap_or_default(),
        slow: match (args.slow_share, args.slow_by) {
            (Some(share), Some(by)) => {
                Slow::new(share, by).map_err(|error| Failure::bad_input(error.to_string()))?
            }
            _ => Slow::default(),
        },
        burn: args.burn.unwrap_or_default(),
        burn_every: args.burn_every,
        burn_in_kernel: args.burn_in_kernel,
        sleep: args.sleep.unwrap_or_default(),
        lock: args.lock.unwrap_or_default(),
        extra_connection: args.extra_connection,
        // Limited to the address space, which is larger than the memory.
        thrash_bytes: usize::try_from(args.thrash.unwrap_or_default()).unwrap_or(usize::MAX),
        stall: args.stall,
        body_bytes: args.body,
        answer: args.answer.clone(),
        encoding: args.encoding.clone().map(|coding| NullEncoding {
            coding,
            is_varying: args.encoding_varies,
        }),
        wrong_every: args.wrong_every,
        reset_every: args.reset_every,
        never_every: args.never_every,
        close_after: args.close_after,
        stream: args.events.map(|events| NullStream {
            is_server_sent: !args.lines,
            events,
            first: args.first.unwrap_or_default(),
            gap: args.gap.unwrap_or_default(),
            marker: args.marker.clone(),
            stays_open: args.stays_open,
        }),
        seed: args.seed,
    })
}

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    if args.grpc {
        return run_grpc(args, console, stop);
    }
    if args.http3 {
        return run_http3(args, console, stop);
    }
    let selected = Selected::of(args)?;
    let (listener, address) = listener(args.listen)?;
    raise_priority(args)?;
    // Printed before it serves, because with port 0 the caller needs the port from this line.
    console.answer(&format!("{}://{address}/", selected.scheme()));
    let seen = match &selected {
        Selected::Http(behavior) => serve(listener, behavior, stop.flag()),
        Selected::WebSocket(behavior) => serve_websocket(listener, *behavior, stop.flag()),
    };
    let seen =
        seen.map_err(|error| Failure::bug(format!("the null server cannot serve: {error}")))?;
    console.answer(&seen.to_string());
    // A stop is the only way to end, so it is not a failure.
    Ok(Exit::Done)
}

fn raise_priority(args: &Args) -> Result<(), Failure> {
    if args.realtime && !load::raise_priority() {
        return Err(Failure::bad_input(
            "expected the permission for `--realtime`, found none. Run as root or raise `ulimit -r`"
                .to_owned(),
        ));
    }
    Ok(())
}

fn run_http3(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let behavior = behavior(args)?;
    behavior
        .check()
        .map_err(|error| Failure::bad_input(error.to_string()))?;
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let names = names.into_iter().chain([args.listen.ip().to_string()]);
    let certificate = NullCertificate::new(names.collect())
        .map_err(|error| Failure::bug(format!("cannot make a certificate: {error}")))?;
    if let Some(path) = &args.certificate {
        std::fs::write(path, certificate.pem()).map_err(|error| {
            Failure::not_ready(format!("cannot write `{}`: {error}", path.display()))
        })?;
    }
    let (socket, address) = UdpSocket::bind(args.listen)
        .and_then(|socket| socket.local_addr().map(|address| (socket, address)))
        .map_err(|error| {
            Failure::not_ready(format!("cannot listen on `{}`: {error}", args.listen))
        })?;
    raise_priority(args)?;
    console.answer(&format!("https://{address}/"));
    let early = args.early_data.then_some(NullEarlyData {
        rejected_every: args.early_rejected_every,
    });
    let seen = serve_http3(socket, &certificate, &behavior, early, stop.flag())
        .map_err(|error| Failure::bug(format!("the null server cannot serve: {error}")))?;
    console.answer(&seen.to_string());
    Ok(Exit::Done)
}

/// Listens on an address. Returns the listener with its actual address.
fn listener(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    TcpListener::bind(listen)
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .map_err(|error| Failure::not_ready(format!("cannot listen on `{listen}`: {error}")))
}

fn run_grpc(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let behavior = GrpcBehavior {
        delay: args.delay.unwrap_or_default(),
        events: args.events,
        gap: args.gap.unwrap_or_default(),
        status: args.grpc_status,
    };
    let (listener, address) = listener(args.listen)?;
    console.answer(&format!("http://{address}/"));
    let calls = serve_grpc(listener, &behavior, stop.flag())
        .map_err(|error| Failure::bug(format!("the null server cannot serve: {error}")))?;
    console.answer(&format!("{{\"calls\":{calls}}}"));
    Ok(Exit::Done)
}

fn mix(text: &str) -> Result<Mix, String> {
    let parts = text
        .split(',')
        .map(|part| {
            let (weight, delay) = part
                .split_once(':')
                .ok_or_else(|| format!("expected WEIGHT:DELAY such as 90:1ms, found `{part}`"))?;
            let weight = weight
                .parse()
                .map_err(|_| format!("expected a whole number as weight, found `{weight}`"))?;
            Ok((weight, lab::duration(delay)?))
        })
        .collect::<Result<Vec<_>, String>>()?;
    Mix::new(&parts).map_err(|error| error.to_string())
}

fn jitter(text: &str) -> Result<Jitter, String> {
    let variation = share(text)?;
    Jitter::of_variation(variation).map_err(|error| format!("{error}, found `{text}`"))
}

fn slow_share(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    let checked = Slow::new(share, Duration::ZERO);
    checked
        .map(|_| share)
        .map_err(|error| format!("{error}, found `{text}`"))
}

/// Reads `20%` as 0.2.
fn share(text: &str) -> Result<f64, String> {
    text.strip_suffix('%')
        .and_then(|number| number.trim_end().parse::<f64>().ok())
        .filter(|percent| percent.is_finite())
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("expected a share such as 20%, found `{text}`"))
}

fn stall(text: &str) -> Result<Stall, String> {
    let (length, after) = text
        .split_once('@')
        .ok_or_else(|| format!("expected LENGTH@AFTER such as 1s@10s, found `{text}`"))?;
    Ok(Stall {
        length: lab::duration(length)?,
        after: lab::duration(after)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_within_their_range() {
        assert_eq!(share("20%"), Ok(0.2));
        assert_eq!(share("2.5 %"), Ok(0.025));
        assert_eq!(jitter("20%"), Ok(Jitter::of_variation(0.2).unwrap()));
        for wrong in ["20", "0.2", "%", "x%", "inf%", ""] {
            assert!(share(wrong).unwrap_err().contains("such as 20%"), "{wrong}");
        }
        assert!(jitter("-1%").unwrap_err().contains("0 to 500 %"));
        assert!(slow_share("101%").unwrap_err().contains("found `101%`"));
        assert!(jitter("501%").unwrap_err().contains("found `501%`"));
    }

    #[test]
    fn a_mix_and_a_stall_are_read_as_written() {
        assert_eq!(
            mix("90:1ms,10:20ms"),
            Ok(Mix::new(&[
                (90, Duration::from_millis(1)),
                (10, Duration::from_millis(20))
            ])
            .unwrap())
        );
        assert!(mix("1ms").unwrap_err().contains("WEIGHT:DELAY"));
        assert!(mix("0:1ms").unwrap_err().contains("above 0"));
        assert_eq!(
            stall("1s@10s"),
            Ok(Stall {
                length: Duration::from_secs(1),
                after: Duration::from_secs(10)
            })
        );
        assert!(stall("1s").unwrap_err().contains("LENGTH@AFTER"));
    }
}
