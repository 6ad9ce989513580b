//! The origin's configuration, by flags or environment variables.

use std::time::Duration;

use chassis::{ConnectionFlags, TimeError};
use clap::Parser;
use graphql_document::DocumentLimits;
use hyper::header::{HeaderName, HeaderValue};

/// Longest delay. A longer delay is more likely a wrong unit than the response time of a subgraph.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// Origin of the router labs, with two federation subgraphs at /locations and /reviews.
///
/// Paths: /locations and /reviews (GraphQL), /seen (received requests), /seen/reset (POST),
/// /v1/traces and /v1/metrics (OTLP), /collected (received OTLP data), /health, /metrics.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "planets",
    version,
    after_help = "Exit codes: 0 normal stop, 1 cannot serve, 2 wrong flag or variable."
)]
pub(crate) struct Config {
    /// Address and port to listen on. With port 0, the service uses a free port and prints it.
    #[arg(long, env, value_name = "HOST:PORT", default_value = "127.0.0.1:4001")]
    pub(crate) listen: String,

    /// Number of threads that serve requests [default: one per processor].
    #[arg(long, env, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    workers: Option<u16>,

    /// Delay of every subgraph response, in whole milliseconds, such as 5ms or 1s.
    #[arg(long, env, value_name = "TIME", default_value = "0ms", value_parser = delay)]
    pub(crate) delay: Duration,

    /// Value of the header `Cache-Control` in GraphQL responses, such as max-age=60. Without this
    /// flag, responses lack the header.
    #[arg(long, env, value_name = "TEXT")]
    pub(crate) cache_control: Option<HeaderValue>,

    /// Names of request headers with values that /seen counts, separated by commas. The flag can be
    /// repeated.
    #[arg(long, env, value_name = "NAME", value_delimiter = ',')]
    pub(crate) count_headers: Vec<HeaderName>,

    /// Maximum size of a request body, in bytes. A larger body receives status 413.
    #[arg(long, env, value_name = "BYTES", default_value_t = 1 << 20)]
    pub(crate) body_limit: u64,

    /// Time limit for requests in flight after SIGTERM or SIGINT, such as 10s.
    #[arg(long, env, value_name = "TIME", default_value = "10s", value_parser = delay)]
    pub(crate) stop_timeout: Duration,

    #[command(flatten)]
    pub(crate) limits: DocumentLimits,

    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,
}

impl Config {
    /// Number of threads that serve requests.
    pub(crate) fn workers(&self) -> u16 {
        chassis::workers(self.workers)
    }
}

fn delay(text: &str) -> Result<Duration, TimeError> {
    // Zero is allowed and means no delay.
    chassis::time(text, Duration::ZERO..=DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_may_be_zero_and_has_a_bound() {
        assert_eq!(delay("0ms"), Ok(Duration::ZERO));
        assert_eq!(delay("60s"), Ok(DELAY_MAX));
        assert!(delay("61s").is_err());
    }

    #[test]
    fn header_names_may_be_joined_by_commas() {
        let words = ["planets", "--count-headers", "source,X-Client"];
        let config = Config::try_parse_from(words).unwrap();
        assert_eq!(config.count_headers, ["source", "x-client"]);
        let wrong = ["planets", "--count-headers", "not a name"];
        assert!(Config::try_parse_from(wrong).is_err());
    }
}
