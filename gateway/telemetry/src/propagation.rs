//! Reads and writes the trace of a request in the formats of several systems.
//!
//! Sources of the formats: W3C Trace Context, openzipkin/b3-propagation, Jaeger's "Propagation Format", the
//! headers of Datadog's tracers, and AWS X-Ray's "Tracing header". An invalid header counts as absent.

use gateway_config::{Propagation, TraceIdFormat};
use http::HeaderName;
use http::header::{HeaderMap, HeaderValue};

use crate::context::{self, Parent, SpanId, TRACEPARENT, TRACESTATE, TraceId};

const B3: HeaderName = HeaderName::from_static("b3");
const B3_TRACE: HeaderName = HeaderName::from_static("x-b3-traceid");
const B3_SPAN: HeaderName = HeaderName::from_static("x-b3-spanid");
const B3_PARENT: HeaderName = HeaderName::from_static("x-b3-parentspanid");
const B3_SAMPLED: HeaderName = HeaderName::from_static("x-b3-sampled");
const B3_FLAGS: HeaderName = HeaderName::from_static("x-b3-flags");
const JAEGER: HeaderName = HeaderName::from_static("uber-trace-id");
const DATADOG_TRACE: HeaderName = HeaderName::from_static("x-datadog-trace-id");
const DATADOG_SPAN: HeaderName = HeaderName::from_static("x-datadog-parent-id");
const DATADOG_PRIORITY: HeaderName = HeaderName::from_static("x-datadog-sampling-priority");
const DATADOG_TAGS: HeaderName = HeaderName::from_static("x-datadog-tags");
const XRAY: HeaderName = HeaderName::from_static("x-amzn-trace-id");
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// The tag of Datadog with the upper 64 bits of a trace id, in hexadecimal.
const DATADOG_UPPER: &str = "_dd.p.tid";
/// Longest `baggage` that is forwarded, in bytes: the limit of W3C Baggage.
const BAGGAGE_BYTES_MAX: usize = 8_192;

/// The formats of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Formats {
    w3c: bool,
    zipkin: bool,
    jaeger: bool,
    datadog: bool,
    aws_xray: bool,
    baggage: bool,
    /// The header with only the id of the trace.
    request: Option<(HeaderName, TraceIdFormat)>,
}

/// The part of a trace that passes from request to request.
#[derive(Debug)]
pub(crate) struct Passed<'a> {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    pub(crate) is_sampled: bool,
    pub(crate) state: Option<&'a HeaderValue>,
    pub(crate) baggage: Option<&'a HeaderValue>,
}

impl Formats {
    /// The formats of a configuration. `exports` is true if spans are exported.
    pub(crate) fn new(config: &Propagation, exports: bool) -> Self {
        let request = config.request.header_name.as_ref();
        let formats = Self {
            w3c: config.trace_context || exports,
            zipkin: config.zipkin,
            jaeger: config.jaeger,
            datadog: config.datadog,
            aws_xray: config.aws_xray,
            baggage: config.baggage,
            request: request.map(|name| (name.0.clone(), config.request.format)),
        };
        // Some format is needed, because a client may receive the id of its trace.
        let w3c = formats.w3c || !(formats.has_other() || formats.baggage);
        Self { w3c, ..formats }
    }

    fn has_other(&self) -> bool {
        self.zipkin || self.jaeger || self.datadog || self.aws_xray || self.request.is_some()
    }

    /// Reads the trace of a client's request. If it has several, the last format in the order of Apollo Router
    /// counts: W3C, Zipkin, Jaeger, Datadog, X-Ray, the request header.
    pub(crate) fn read(&self, headers: &HeaderMap) -> Option<Parent> {
        let w3c = || self.w3c.then(|| Parent::read(headers)).flatten();
        if !self.has_other() {
            return w3c();
        }
        let id_only = || {
            let (name, _) = self.request.as_ref()?;
            trace_only(one(headers, name)?)
        };
        let xray = || self.aws_xray.then(|| xray(one(headers, &XRAY)?)).flatten();
        let datadog = || self.datadog.then(|| datadog(headers)).flatten();
        let jaeger = || {
            self.jaeger
                .then(|| jaeger(one(headers, &JAEGER)?))
                .flatten()
        };
        let zipkin = || self.zipkin.then(|| zipkin(headers)).flatten();
        id_only()
            .or_else(xray)
            .or_else(datadog)
            .or_else(jaeger)
            .or_else(zipkin)
            .or_else(w3c)
    }

    /// The `baggage` of a client's request, if it is forwarded.
    pub(crate) fn read_baggage(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if !self.baggage {
            return None;
        }
        let lines: Vec<&[u8]> = headers
            .get_all(BAGGAGE)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let joined = lines.join(&b","[..]);
        let fits = !joined.is_empty() && joined.len() <= BAGGAGE_BYTES_MAX;
        fits.then(|| HeaderValue::from_bytes(&joined).ok())
            .flatten()
    }

    /// Writes a trace into the headers of a request, and replaces earlier headers of its formats.
    pub(crate) fn write(&self, passed: &Passed<'_>, headers: &mut HeaderMap) {
        self.clear(headers);
        let Passed {
            trace,
            span,
            is_sampled,
            ..
        } = *passed;
        let flag = if is_sampled { "1" } else { "0" };
        if self.w3c {
            headers.insert(TRACEPARENT, context::traceparent(trace, span, is_sampled));
            if let Some(state) = passed.state {
                headers.insert(TRACESTATE, state.clone());
            }
        }
        if self.zipkin {
            headers.insert(B3_TRACE, value(&trace.to_string()));
            headers.insert(B3_SPAN, value(&span.to_string()));
            headers.insert(B3_SAMPLED, HeaderValue::from_static(flag));
        }
        if self.jaeger {
            headers.insert(JAEGER, value(&format!("{trace}:{span}:0:{flag}")));
        }
        if self.datadog {
            let [upper, lower] = halves(trace);
            headers.insert(DATADOG_TRACE, lower.into());
            headers.insert(DATADOG_SPAN, u64::from_be_bytes(span.0).into());
            headers.insert(DATADOG_PRIORITY, HeaderValue::from_static(flag));
            if upper > 0 {
                let tag = format!("{DATADOG_UPPER}={upper:016x}");
                headers.insert(DATADOG_TAGS, value(&tag));
            }
        }
        if self.aws_xray {
            let id = trace.to_string();
            let (time, rest) = id.split_at(8);
            let text = format!("Root=1-{time}-{rest};Parent={span};Sampled={flag}");
            headers.insert(XRAY, value(&text));
        }
        if let Some((name, format)) = &self.request {
            headers.insert(name.clone(), value(&trace.shown(*format)));
        }
        if let Some(baggage) = passed.baggage {
            headers.insert(BAGGAGE, baggage.clone());
        }
    }

    /// Removes the headers that [`Formats::write`] writes.
    pub(crate) fn clear(&self, headers: &mut HeaderMap) {
        let mut remove = |names: &[HeaderName]| {
            for name in names {
                headers.remove(name);
            }
        };
        if self.w3c {
            remove(&[TRACEPARENT, TRACESTATE]);
        }
        if self.zipkin {
            remove(&[B3, B3_TRACE, B3_SPAN, B3_PARENT, B3_SAMPLED, B3_FLAGS]);
        }
        if self.jaeger {
            remove(&[JAEGER]);
        }
        if self.datadog {
            remove(&[DATADOG_TRACE, DATADOG_SPAN, DATADOG_PRIORITY, DATADOG_TAGS]);
        }
        if self.aws_xray {
            remove(&[XRAY]);
        }
        if self.baggage {
            remove(&[BAGGAGE]);
        }
        if let Some((name, _)) = &self.request {
            headers.remove(name);
        }
    }
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and punctuation are a header value")
}

/// The value of a header that occurs once. Two values are ambiguous.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.trim();
    values.next().is_none().then_some(value)
}

/// The upper and the lower 64 bits.
fn halves(trace: TraceId) -> [u64; 2] {
    let number = u128::from_be_bytes(trace.0);
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
    [(number >> 64) as u64, number as u64]
}

/// Reads hexadecimal digits, at most `most`. Leading zeros may be absent.
fn hex(digits: &str, most: usize) -> Option<u128> {
    let is_hex = !digits.is_empty()
        && digits.len() <= most
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex
        .then(|| u128::from_str_radix(digits, 16).ok())
        .flatten()
}

fn trace_id(digits: &str) -> Option<TraceId> {
    let id = hex(digits, 32).filter(|id| *id > 0)?;
    Some(TraceId(id.to_be_bytes()))
}

fn span_id(digits: &str) -> Option<SpanId> {
    let id = u64::try_from(hex(digits, 16)?).ok().filter(|id| *id > 0)?;
    Some(SpanId(id.to_be_bytes()))
}

fn parent(trace: TraceId, span: Option<SpanId>, is_sampled: Option<bool>) -> Parent {
    Parent {
        trace,
        span,
        is_sampled,
        state: None,
    }
}

/// A header with the id of the trace alone: hexadecimal digits, with or without hyphens.
fn trace_only(text: &str) -> Option<Parent> {
    trace_id(&text.replace('-', "")).map(|trace| parent(trace, None, None))
}

/// `x-b3-…`, or `b3: TRACE-SPAN-SAMPLED-PARENT`.
fn zipkin(headers: &HeaderMap) -> Option<Parent> {
    let sampled = |text: &str| match text {
        "1" | "d" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    };
    if let Some(single) = one(headers, &B3) {
        let mut parts = single.split('-');
        let trace = b3_trace(parts.next()?)?;
        let span = span_id(parts.next()?)?;
        return Some(parent(trace, Some(span), parts.next().and_then(sampled)));
    }
    let trace = b3_trace(one(headers, &B3_TRACE)?)?;
    let span = span_id(one(headers, &B3_SPAN)?)?;
    let is_debug = one(headers, &B3_FLAGS) == Some("1");
    let is_sampled = match is_debug {
        true => Some(true),
        false => one(headers, &B3_SAMPLED).and_then(sampled),
    };
    Some(parent(trace, Some(span), is_sampled))
}

/// A trace id of B3 has 64 or 128 bits, with all digits.
fn b3_trace(digits: &str) -> Option<TraceId> {
    matches!(digits.len(), 16 | 32)
        .then(|| trace_id(digits))
        .flatten()
}

/// `TRACE:SPAN:PARENT:FLAGS`. Some clients encode the colons.
fn jaeger(text: &str) -> Option<Parent> {
    let text = text.replace("%3A", ":").replace("%3a", ":");
    let mut parts = text.split(':');
    let (trace, span) = (parts.next()?, parts.next()?);
    let (_parent, flags) = (parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    // The lowest bit says that the trace is sampled, and the next that it must be.
    let is_sampled = hex(flags, 2)? & 3 != 0;
    Some(parent(
        trace_id(trace)?,
        Some(span_id(span)?),
        Some(is_sampled),
    ))
}

fn datadog(headers: &HeaderMap) -> Option<Parent> {
    let lower: u64 = one(headers, &DATADOG_TRACE)?.parse().ok()?;
    let tags = one(headers, &DATADOG_TAGS).unwrap_or_default();
    let upper = tags.split(',').find_map(|tag| {
        let (name, digits) = tag.trim().split_once('=')?;
        (name == DATADOG_UPPER).then(|| hex(digits, 16)).flatten()
    });
    let id = upper.unwrap_or_default() << 64 | u128::from(lower);
    let span = one(headers, &DATADOG_SPAN).and_then(|span| span.parse::<u64>().ok());
    let span = span.filter(|span| *span > 0);
    let priority = one(headers, &DATADOG_PRIORITY).and_then(|it| it.parse::<i64>().ok());
    (lower > 0).then(|| {
        parent(
            TraceId(id.to_be_bytes()),
            span.map(|span| SpanId(span.to_be_bytes())),
            priority.map(|priority| priority > 0),
        )
    })
}

/// `Root=1-TIME-REST;Parent=SPAN;Sampled=1`.
fn xray(text: &str) -> Option<Parent> {
    let (mut root, mut span, mut is_sampled) = (None, None, None);
    for part in text.split(';') {
        match part.trim().split_once('=')? {
            ("Root", id) => root = Some(id),
            ("Parent", id) => span = Some(span_id(id)?),
            ("Sampled", flag) => {
                is_sampled = match flag {
                    "1" => Some(true),
                    "0" => Some(false),
                    // `?` leaves the decision to the receiver.
                    _ => None,
                }
            }
            _ => {}
        }
    }
    let (time, rest) = root?.strip_prefix("1-")?.split_once('-')?;
    if time.len() != 8 || rest.len() != 24 {
        return None;
    }
    let trace = trace_id(&format!("{time}{rest}"))?;
    Some(parent(trace, span, is_sampled))
}

#[cfg(test)]
mod tests;
