use gateway_config::{RequestTraceId, Written};
use proptest::prelude::*;

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, text) in pairs {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_str(text).unwrap(),
        );
    }
    headers
}

fn all() -> Formats {
    let config = Propagation {
        trace_context: true,
        zipkin: true,
        jaeger: true,
        datadog: true,
        aws_xray: true,
        baggage: true,
        request: RequestTraceId::default(),
    };
    Formats::new(&config, false)
}

/// The ids and the decision, as texts.
fn read(pairs: &[(&'static str, &str)]) -> Option<(String, Option<String>, Option<bool>)> {
    let parent = all().read(&headers(pairs))?;
    let span = parent.span.map(|span| span.to_string());
    Some((parent.trace.to_string(), span, parent.is_sampled))
}

fn found_with(
    trace: &str,
    is_sampled: Option<bool>,
) -> Option<(String, Option<String>, Option<bool>)> {
    Some((trace.to_owned(), Some(SPAN.to_owned()), is_sampled))
}

/// Headers of a request, one on each line, with the decision about recording. `None` if there is no trace.
const READ: [(&str, Option<Option<bool>>); 12] = [
    (
        "x-b3-traceid: TRACE\nx-b3-spanid: SPAN\nx-b3-sampled: 0",
        Some(Some(false)),
    ),
    (
        "x-b3-traceid: TRACE\nx-b3-spanid: SPAN\nx-b3-flags: 1",
        Some(Some(true)),
    ),
    ("b3: TRACE-SPAN-1-05e3ac9a4f6e3b90", Some(Some(true))),
    ("b3: TRACE-SPAN", Some(None)),
    ("b3: 0", None),
    ("uber-trace-id: TRACE:SPAN:0:1", Some(Some(true))),
    ("uber-trace-id: TRACE%3ASPAN%3A0%3A0", Some(Some(false))),
    (
        "x-datadog-trace-id: 9532127138774266268\nx-datadog-parent-id: 13235353014750950193\n\
         x-datadog-sampling-priority: 2\nx-datadog-tags: a=b,_dd.p.tid=0af7651916cd43dd",
        Some(Some(true)),
    ),
    (
        "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=SPAN;Sampled=?",
        Some(None),
    ),
    ("traceparent: 00-TRACE-SPAN-01", Some(Some(true))),
    // Jaeger comes after W3C in the order of the original.
    (
        "traceparent: 00-11111111111111111111111111111111-1111111111111111-00\n\
         uber-trace-id: TRACE:SPAN:0:1",
        Some(Some(true)),
    ),
    ("x-b3-sampled: 1", None),
];

#[test]
fn each_format_is_read() {
    for (lines, decision) in READ {
        let lines = lines.replace("TRACE", TRACE).replace("SPAN", SPAN);
        let mut headers = HeaderMap::new();
        for line in lines.lines() {
            let (name, text) = line.split_once(": ").unwrap();
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(text).unwrap());
        }
        let parent = all().read(&headers);
        let found = parent.map(|parent| {
            let span = parent.span.map(|span| span.to_string());
            (parent.trace.to_string(), span, parent.is_sampled)
        });
        assert_eq!(
            found,
            decision.and_then(|it| found_with(TRACE, it)),
            "{lines}"
        );
    }
}

/// Some clients have ids of 64 bits, or no span.
#[test]
fn parts_of_a_trace_may_be_absent() {
    let short = "00000000000000008448eb211c80319c";
    let b3 = [("x-b3-traceid", "8448eb211c80319c"), ("x-b3-spanid", SPAN)];
    assert_eq!(read(&b3), found_with(short, None));
    let datadog = [
        ("x-datadog-trace-id", "9532127138774266268"),
        ("x-datadog-parent-id", "13235353014750950193"),
        ("x-datadog-sampling-priority", "-1"),
    ];
    assert_eq!(read(&datadog), found_with(short, Some(false)));
    let xray = [(
        "x-amzn-trace-id",
        "Root=1-0af76519-16cd43dd8448eb211c80319c",
    )];
    assert_eq!(read(&xray), Some((TRACE.to_owned(), None, None)));
}

#[test]
fn invalid_headers_count_as_absent() {
    let long = format!("{TRACE}0");
    let cases: [&[(&'static str, &str)]; 10] = [
        &[("x-b3-traceid", TRACE)],
        &[("x-b3-traceid", "0af7"), ("x-b3-spanid", SPAN)],
        &[("x-b3-traceid", &long), ("x-b3-spanid", SPAN)],
        &[("uber-trace-id", &format!("{TRACE}:{SPAN}:0"))],
        &[("uber-trace-id", &format!("{TRACE}:0:0:1"))],
        &[("uber-trace-id", &format!("{TRACE}:{SPAN}:0:1:2"))],
        &[("x-datadog-trace-id", "0")],
        &[("x-datadog-trace-id", "-1")],
        &[(
            "x-amzn-trace-id",
            "Root=2-0af76519-16cd43dd8448eb211c80319c",
        )],
        // Two values are ambiguous.
        &[
            ("b3", &format!("{TRACE}-{SPAN}-1")),
            ("b3", &format!("{TRACE}-{SPAN}-0")),
        ],
    ];
    for pairs in cases {
        assert_eq!(read(pairs), None, "{pairs:?}");
    }
}

#[test]
fn a_header_of_its_own_has_the_id_alone() {
    let config = Propagation {
        request: RequestTraceId {
            header_name: Some(Written(HeaderName::from_static("x-request-id"))),
            format: TraceIdFormat::Uuid,
        },
        ..Propagation::default()
    };
    let formats = Formats::new(&config, true);
    let uuid = "0af76519-16cd-43dd-8448-eb211c80319c";
    let parent = formats.read(&headers(&[("x-request-id", uuid)])).unwrap();
    assert_eq!(
        (parent.trace.to_string().as_str(), parent.span),
        (TRACE, None)
    );
    let mut out = HeaderMap::new();
    formats.write(&passed(parent.trace), &mut out);
    assert_eq!(out["x-request-id"], uuid);
    assert!(out.contains_key("traceparent"));
    assert_eq!(
        formats.read(&headers(&[("x-request-id", "not an id")])),
        None
    );
}

fn passed(trace: TraceId) -> Passed<'static> {
    Passed {
        trace,
        span: SpanId([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]),
        is_sampled: true,
        state: None,
        baggage: None,
    }
}

#[test]
fn baggage_is_forwarded_up_to_its_limit() {
    let formats = all();
    let baggage = |text: &str| formats.read_baggage(&headers(&[("baggage", text)]));
    assert_eq!(baggage("a=1,b=2").unwrap(), "a=1,b=2");
    assert_eq!(baggage(&"a".repeat(8_193)), None);
    assert_eq!(
        Formats::new(&Propagation::default(), true).read_baggage(&headers(&[("baggage", "a=1")])),
        None
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(id in 1_u128.., is_sampled: bool, format in 0_usize..5) {
        let mut config = Propagation::default();
        let flags = [
            &mut config.trace_context,
            &mut config.zipkin,
            &mut config.jaeger,
            &mut config.datadog,
            &mut config.aws_xray,
        ];
        *flags.into_iter().nth(format).unwrap() = true;
        // Datadog has no trace id with a lower half of zero.
        prop_assume!(id % (1 << 64) > 0);
        let formats = Formats::new(&config, false);
        let passed = Passed { is_sampled, ..passed(TraceId(id.to_be_bytes())) };
        let mut headers = HeaderMap::new();
        formats.write(&passed, &mut headers);
        let parent = formats.read(&headers).unwrap();
        prop_assert_eq!((parent.trace, parent.span, parent.is_sampled), (passed.trace, Some(passed.span), Some(is_sampled)));
        formats.clear(&mut headers);
        prop_assert!(headers.is_empty(), "{:?}", headers);
    }

    #[test]
    fn no_text_breaks_a_format(text in "[ -~]{0,80}") {
        for name in ["b3", "x-b3-traceid", "uber-trace-id", "x-datadog-trace-id", "x-amzn-trace-id", "traceparent"] {
            let _ = read(&[(name, &text)]);
        }
    }
}
