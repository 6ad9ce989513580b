//! `weigh null-server`: the server that instruments are calibrated against.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use load::null::{Behavior, Jitter, Mix, NullEncoding, Pace, Slow, Stall, serve};

use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::stop::Stop;

/// Serve answers that do nothing, exactly as late as they are told to be.
///
/// One thread, HTTP/1.1. It is the known weight: hold any load generator against
/// it and see whether its figures are those that were set here. What it was asked
/// so far is at /seen, and is printed at the end.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("pace").args(["delay", "service", "mix"]))]
pub(crate) struct Args {
    /// Listen here; port 0 takes a free one, which is printed.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Answer each request so long after it arrived, in parallel [default: at once].
    #[arg(long, value_parser = lab::duration)]
    delay: Option<Duration>,
    /// Work on one request at a time, for so long, in order of arrival.
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
    /// How much longer the slow requests take.
    #[arg(long, value_name = "TIME", value_parser = lab::duration, requires = "slow_share")]
    slow_by: Option<Duration>,
    /// Spend so much processor time on each request, all handling included.
    #[arg(long, value_name = "TIME", value_parser = lab::duration)]
    burn: Option<Duration>,
    /// Spend it on every Nth request only.
    #[arg(long, value_name = "N", default_value_t = 1)]
    burn_every: u64,
    /// Spend it in the kernel, and not in the program.
    #[arg(long, requires = "burn")]
    burn_in_kernel: bool,
    /// Write to so much memory on each request, a byte in each cache line: 4MiB.
    #[arg(long, value_name = "SIZE", value_parser = lab::size)]
    thrash: Option<u64>,
    /// Seed of --mix, --jitter and --slow-share.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do nothing for a while, so long after the first request: 1s@10s.
    #[arg(long, value_name = "LENGTH@AFTER", value_parser = stall)]
    stall: Option<Stall>,
    /// Length of a body; 20 bytes and more are a GraphQL answer.
    #[arg(long, value_name = "BYTES", default_value_t = Behavior::JSON_BYTES_MIN)]
    body: usize,
    /// The body itself, the same for each request.
    #[arg(long, value_name = "TEXT", conflicts_with = "body")]
    answer: Option<String>,
    /// Encode bodies, whether asked for or not: gzip, deflate, br, zstd, or several with commas.
    #[arg(long, value_name = "CODING")]
    encoding: Option<String>,
    /// Encode each body with other bytes than the last one, as gzip with the time in its header.
    #[arg(long, requires = "encoding")]
    encoding_varies: bool,
    /// Change one byte of the body in every Nth answer.
    #[arg(long, value_name = "N")]
    wrong_every: Option<u64>,
    /// Close a connection after N answers; the last one says so.
    #[arg(long, value_name = "N")]
    close_after: Option<u64>,
    /// Reset the connection instead of every Nth answer.
    #[arg(long, value_name = "N")]
    reset_every: Option<u64>,
    /// Never answer every Nth request.
    #[arg(long, value_name = "N")]
    never_every: Option<u64>,
    /// Ask for real-time priority, so that no ordinary program delays an answer.
    #[arg(long)]
    realtime: bool,
}

pub(crate) fn run(args: &Args, console: Console, stop: &Stop) -> Result<Exit, Failure> {
    let behavior = Behavior {
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
        // Cut to what can be addressed, which is more than there is.
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
        seed: args.seed,
    };
    behavior
        .check()
        .map_err(|error| Failure::bad_input(error.to_string()))?;
    let listen = args.listen;
    let (listener, address) = TcpListener::bind(listen)
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .map_err(|error| {
            Failure::not_ready(format!("`{listen}` cannot be listened on: {error}"))
        })?;
    if args.realtime && !load::raise_priority() {
        return Err(Failure::bad_input(
            "expected leave for `--realtime`, found none; run as root or raise `ulimit -r`"
                .to_owned(),
        ));
    }
    // Before it serves: with port 0 the caller learns the port from this line.
    console.answer(&format!("http://{address}/"));
    let seen = serve(listener, &behavior, stop.flag())
        .map_err(|error| Failure::bug(format!("the null server cannot serve: {error}")))?;
    console.answer(&seen.to_string());
    // Being stopped is the only way to end, and no failure.
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

/// `20%` as 0.2.
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
