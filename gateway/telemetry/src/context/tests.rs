use proptest::prelude::*;

use super::*;

const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn read(parents: &[&str], states: &[&str]) -> Option<Parent> {
    let mut headers = HeaderMap::new();
    for parent in parents {
        headers.append(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
    }
    for state in states {
        headers.append(TRACESTATE, HeaderValue::from_str(state).unwrap());
    }
    Parent::read(&headers)
}

fn state_of(states: &[&str]) -> Option<String> {
    let state = read(&[GOOD], states).unwrap().state?;
    Some(state.to_str().unwrap().to_owned())
}

#[test]
fn a_traceparent_names_trace_span_and_decision() {
    let parent = read(&[GOOD], &[]).unwrap();
    assert_eq!(parent.trace.to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(
        parent.span.map(|span| span.0),
        Some([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31])
    );
    assert_eq!(parent.is_sampled, Some(true));
    let unsampled = GOOD.replace("-01", "-00");
    assert_eq!(read(&[&unsampled], &[]).unwrap().is_sampled, Some(false));
    // Only the lowest bit counts.
    let other_bits = GOOD.replace("-01", "-fe");
    assert_eq!(read(&[&other_bits], &[]).unwrap().is_sampled, Some(false));
}

#[test]
fn what_is_not_of_the_form_counts_as_not_sent() {
    for wrong in [
        "",
        "00",
        &GOOD[..54],
        &GOOD.to_uppercase(),
        &GOOD.replace("00-", "ff-"),
        &GOOD.replace("00-", "0g-"),
        &format!("{GOOD}-more"),
        &format!("{GOOD}0"),
        &GOOD.replace('-', "_"),
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319 -b7ad6b7169203331-01",
        &"0".repeat(10_000),
    ] {
        assert_eq!(read(&[wrong], &[]), None, "{wrong}");
    }
    assert_eq!(read(&[GOOD, GOOD], &[]), None);
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    let later = GOOD.replace("00-", "cc-");
    assert!(read(&[&later], &[]).is_some());
    assert!(read(&[&format!("{later}-what-the-future")], &[]).is_some());
    assert!(read(&[&format!("{later}.what")], &[]).is_none());
}

#[test]
fn a_tracestate_is_passed_on_joined_or_left_out() {
    let joined = state_of(&["congo=t61rcWkgMzE, rojo=1", "a@b=x y"]);
    assert_eq!(joined.as_deref(), Some("congo=t61rcWkgMzE, rojo=1,a@b=x y"));
    let many = |count: usize| {
        let members: Vec<String> = (0..count).map(|it| format!("k{it}=v")).collect();
        members.join(",")
    };
    assert!(state_of(&[&many(32)]).is_some());
    for wrong in [
        &many(33)[..],
        "A=b",
        "a",
        "a=",
        "=b",
        "a=b=c",
        " ",
        &format!("a={}", "x".repeat(257)),
        &format!("a={0},b={0}", "x".repeat(256)),
    ] {
        assert_eq!(state_of(&[wrong]), None, "{wrong}");
    }
    // Two lines that are too long together.
    let half = format!("a={}", "x".repeat(255));
    assert_eq!(state_of(&[&half, &half.replace("a=", "b=")]), None);
}

proptest! {
    #[test]
    fn what_is_written_is_read(trace: [u8; 16], span: [u8; 8], sampled: bool) {
        prop_assume!(trace != [0; 16] && span != [0; 8]);
        let text = traceparent(TraceId(trace), SpanId(span), sampled);
        let parent = parse(text.as_bytes()).unwrap();
        prop_assert_eq!(parent.trace.0, trace);
        prop_assert_eq!(parent.span, Some(SpanId(span)));
        prop_assert_eq!(parent.is_sampled, Some(sampled));
    }

    #[test]
    fn no_bytes_make_it_panic(parent: Vec<u8>, state: Vec<u8>) {
        let _ = parse(&parent);
        let _ = is_state(&state);
    }
}
