//! Interprets the response of a collector.

use std::time::Duration;

use gateway_upstream::Reply;
use http::header::{HeaderName, RETRY_AFTER};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

use super::Signal;
use crate::span::kept;

/// Longest pause that a collector can request.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The result of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The collector accepted it, except for `rejected` spans or data points.
    Taken { rejected: usize, why: String },
    /// The collector did not accept it this time.
    Again {
        after: Option<Duration>,
        why: String,
    },
    /// The collector refused it permanently.
    Refused { why: String },
}

/// The outcome of an HTTP response.
pub(crate) fn of_http(signal: Signal, reply: &Reply) -> Outcome {
    match of_status(reply) {
        Outcome::Taken { .. } => taken(signal, &reply.body),
        other => other,
    }
}

/// The outcome of an HTTP response by its status alone.
pub(crate) fn of_status(reply: &Reply) -> Outcome {
    let status = reply.status.as_u16();
    let why = || format!("it answered {status}");
    match status {
        200..=299 => Outcome::Taken {
            rejected: 0,
            why: String::new(),
        },
        429 | 502..=504 => Outcome::Again {
            after: retry_after(reply),
            why: why(),
        },
        _ => Outcome::Refused { why: why() },
    }
}

fn retry_after(reply: &Reply) -> Option<Duration> {
    let values = reply.values(&RETRY_AFTER);
    let seconds: u64 = values.first()?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// The outcome of a gRPC response. Its status is in the trailers, or in the head if there is no message.
pub(crate) fn of_grpc(signal: Signal, reply: &Reply) -> Outcome {
    let one = |name: &HeaderName| {
        let value = reply
            .trailer(name)
            .or_else(|| reply.values(name).into_iter().next())?;
        Some(kept(&String::from_utf8_lossy(value.as_bytes())).to_owned())
    };
    let http = reply.status.as_u16();
    let Some(status) = one(&GRPC_STATUS) else {
        let why = format!("it answered {http} without `grpc-status`; is it gRPC?");
        return match http {
            429 | 502..=504 => Outcome::Again { after: None, why },
            _ => Outcome::Refused { why },
        };
    };
    let message = one(&GRPC_MESSAGE).unwrap_or_default();
    let why = format!("it answered with the status {status} of gRPC: {message}");
    match status.as_str() {
        "0" => taken(signal, reply.body.get(5..).unwrap_or_default()),
        // The OTLP specification lists these: cancelled, deadline exceeded, aborted, out of range,
        // unavailable, data loss. Resource exhausted requires retry information, which is not read.
        "1" | "4" | "10" | "11" | "14" | "15" => Outcome::Again { after: None, why },
        _ => Outcome::Refused { why },
    }
}

/// Reads the body of an accepting response. An unreadable body also means acceptance.
fn taken(signal: Signal, body: &[u8]) -> Outcome {
    let (rejected, why) = match signal {
        Signal::Traces => {
            let read = ExportTraceServiceResponse::decode(body).unwrap_or_default();
            let partial = read.partial_success.unwrap_or_default();
            (partial.rejected_spans, partial.error_message)
        }
        Signal::Metrics => {
            let read = ExportMetricsServiceResponse::decode(body).unwrap_or_default();
            let partial = read.partial_success.unwrap_or_default();
            (partial.rejected_data_points, partial.error_message)
        }
    };
    Outcome::Taken {
        rejected: usize::try_from(rejected).unwrap_or_default(),
        why: kept(&why).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn http(status: u16, body: &'static [u8]) -> Outcome {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        let status = StatusCode::from_u16(status).unwrap();
        of_http(Signal::Traces, &Reply::new(status, headers, body.into()))
    }

    fn grpc(status: Option<&str>) -> Outcome {
        let mut headers = HeaderMap::new();
        if let Some(status) = status {
            headers.insert(GRPC_STATUS, status.parse().unwrap());
        }
        let reply = Reply::new(StatusCode::OK, headers, (&b"\0\0\0\0\0"[..]).into());
        of_grpc(Signal::Metrics, &reply)
    }

    fn taken() -> Outcome {
        Outcome::Taken {
            rejected: 0,
            why: String::new(),
        }
    }

    #[test]
    fn an_answer_over_http_takes_refuses_or_asks_again() {
        assert_eq!(http(200, b""), taken());
        // Garbage in an accepting response has no effect.
        assert_eq!(http(202, b"<html>"), taken());
        // Field 1 with two fields: 1 is the number of rejected spans, and 2 is the reason.
        let partial = http(200, &[0x0a, 5, 0x08, 3, 0x12, 1, b'x']);
        let why = "x".to_owned();
        assert_eq!(partial, Outcome::Taken { rejected: 3, why });
        for status in [429, 502, 503, 504] {
            let Outcome::Again { after, .. } = http(status, b"") else {
                panic!("{status}");
            };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
        for status in [301, 400, 401, 404, 413, 500] {
            assert!(matches!(http(status, b""), Outcome::Refused { .. }));
        }
    }

    #[test]
    fn an_answer_over_grpc_is_judged_by_its_own_status() {
        assert_eq!(grpc(Some("0")), taken());
        for status in ["1", "4", "14"] {
            assert!(matches!(grpc(Some(status)), Outcome::Again { .. }));
        }
        for status in [Some("3"), Some("7"), Some("rubbish"), None] {
            assert!(matches!(grpc(status), Outcome::Refused { .. }));
        }
    }
}
