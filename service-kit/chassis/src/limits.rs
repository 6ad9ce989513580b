//! Limits of a service for its clients: timeouts, streams and numbers of connections.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::command_line::{TimeError, time};

/// Maximum default number of connections, for any number of file descriptors. Each connection costs about 10
/// KiB.
const CONNECTIONS_MAX: usize = 16_384;
/// Range of the times that a flag accepts.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);

/// Limits of a service's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Timeouts of a connection.
    pub timeouts: Timeouts,
    /// Maximum of concurrent requests on one HTTP/2 connection.
    pub http2_streams: u32,
    /// Maximum time for open connections after a request to stop.
    pub stop_timeout: Duration,
}

/// Times that a client may let a connection wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time from the first byte of a request to the end of its head. For the first request, it starts with
    /// the connection.
    pub head: Duration,
    /// Maximum time without a request in progress.
    pub idle: Duration,
    /// Maximum time without progress while response bytes wait for the client.
    pub write: Duration,
    /// Bytes of unread responses that a worker keeps. Beyond this limit, the connections with the most bytes
    /// are closed before [`Timeouts::write`] ends.
    pub unsent_bytes: usize,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            // Similar to other servers: nginx has 75 seconds.
            idle: Duration::from_secs(60),
            write: Duration::from_secs(30),
            unsent_bytes: 128 << 20,
        }
    }
}

/// Default time between two pings of an HTTP/2 connection.
pub const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
/// Default time for the response to a ping.
pub const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Default maximum of concurrent requests on one HTTP/2 connection.
pub const HTTP2_STREAMS: u32 = 100;

/// Flags that every service has for its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct ConnectionFlags {
    /// Maximum number of open connections. Beyond it, the service closes idle connections first,
    /// then new connections [default: three quarters of the process's file descriptors].
    #[arg(long, env, value_name = "N")]
    pub max_connections: Option<NonZeroU32>,

    /// Maximum number of open connections per address, or per network of 64 bits for IPv6.
    /// Connections from this machine do not count [default: half of all].
    #[arg(long, env, value_name = "N")]
    pub max_connections_per_address: Option<NonZeroU32>,

    /// Time limit for a connection without a request, such as 60s.
    #[arg(long, env, value_name = "TIME", default_value = "60s", value_parser = wait)]
    pub idle_timeout: Duration,

    /// Time limit for a client to read the next part of a response, such as 30s.
    #[arg(long, env, value_name = "TIME", default_value = "30s", value_parser = wait)]
    pub write_timeout: Duration,
}

impl ConnectionFlags {
    /// The limits of a worker. `head_timeout` and `stop_timeout` are the service's own.
    #[must_use]
    pub fn limits(&self, head_timeout: Duration, stop_timeout: Duration) -> ServerLimits {
        ServerLimits {
            timeouts: Timeouts {
                head: head_timeout,
                idle: self.idle_timeout,
                write: self.write_timeout,
                ..Timeouts::default()
            },
            http2_streams: HTTP2_STREAMS,
            stop_timeout,
        }
    }

    /// Maximum number of connections.
    #[must_use]
    pub fn most(&self) -> Most {
        let count = |flag: Option<NonZeroU32>| flag.and_then(|it| usize::try_from(it.get()).ok());
        // A quarter is left for the log, databases and other services.
        Most::new(
            count(self.max_connections),
            count(self.max_connections_per_address),
            3.0 / 4.0,
        )
    }
}

fn wait(text: &str) -> Result<Duration, TimeError> {
    time(text, TIMES)
}

/// Maximum number of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Maximum over all addresses.
    pub total: usize,
    /// Maximum for one address.
    pub per_address: usize,
}

impl Most {
    /// The given maxima. The default total is this `share` of the process's file descriptors, and the default
    /// per address is half of the total.
    #[must_use]
    pub fn new(total: Option<usize>, per_address: Option<usize>, share: f64) -> Self {
        let total = total.unwrap_or_else(|| part(descriptors(), share).min(CONNECTIONS_MAX));
        Self {
            total,
            // Half: clients behind one proxy share an address, but one address must not use all places.
            per_address: per_address.unwrap_or(total.div_ceil(2)),
        }
    }
}

fn part(descriptors: usize, share: f64) -> usize {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "descriptors are far fewer than 2^52, and a share is between 0 and 1"
    )]
    let part = (descriptors as f64 * share) as usize;
    part.max(1)
}

/// Number of file descriptors of the process, after raising the soft limit to the hard limit.
///
/// The soft limit is low only for programs that use `select`. Our programs do not use it.
#[must_use]
pub fn descriptors() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        // Some systems refuse values that they report themselves.
        Err(_) => current,
    };
    current.map_or(usize::MAX >> 12, |count| {
        usize::try_from(count).unwrap_or(usize::MAX >> 12)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_all_connections_may_come_from_one_address_by_default() {
        let most = Most::new(Some(7), None, 0.5);
        assert_eq!((most.total, most.per_address), (7, 4));
        assert_eq!(Most::new(Some(7), Some(2), 0.5).per_address, 2);
    }

    #[test]
    fn the_default_leaves_descriptors_for_others() {
        assert_eq!(part(256, 0.75), 192);
        assert_eq!(part(1, 0.5), 1);
        assert!(Most::new(None, None, 0.5).total <= descriptors() / 2);
    }
}
