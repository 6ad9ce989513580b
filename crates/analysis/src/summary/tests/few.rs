//! Tests of costs that few requests pay. The costs are planted into a recording of a lab.

use recording::Hdr;
use stats::Histogram;

use super::*;

const LAB: &str = include_str!("../../../../../labs/router-extensibility/records/batching.json");
const ROW: &str = "one by one, batches allowed";

/// Changes the latency of every `each`th request of a variant by `of`. It does this in every round, also for
/// each request of the rotation.
fn planted_in(variant: &str, each: u64, of: impl Fn(u64) -> u64) -> Recording {
    let planted = |latency: &Hdr| {
        let mut planted = Histogram::new();
        let mut seen = 0;
        for (value_ns, count) in latency.histogram().recorded() {
            for _ in 0..count {
                seen += 1;
                let is_meant = seen % each == 0;
                planted.record_ns(if is_meant { of(value_ns) } else { value_ns });
            }
        }
        Hdr::of(&planted)
    };
    let mut recording: Recording = serde_json::from_str(LAB).unwrap();
    let rounds = recording.rounds.iter_mut();
    for round in rounds.filter(|it| it.variant == variant) {
        round.latency_ns_hdr = planted(&round.latency_ns_hdr);
        // The exact means are of the latencies without the planted cost.
        round.latency_means = None;
        round.all_latency_ns_hdr = round.all_latency_ns_hdr.as_ref().map(planted);
        for request in &mut round.requests {
            request.latency_ns_hdr = planted(&request.latency_ns_hdr);
        }
    }
    recording
}

fn planted(each: u64, more_ns: u64) -> Recording {
    planted_in(ROW, each, |value_ns| value_ns + more_ns)
}

fn few(recording: &Recording) -> (Summary, FewPay) {
    let summary = Summary::of(recording);
    let few = summary.variant(ROW).unwrap().few_pay.clone();
    let few = few.unwrap_or_else(|| panic!("{}", summary.variant(ROW).unwrap().verdict_text));
    (summary, few)
}

#[test]
fn the_mean_and_the_share_that_pays_are_those_that_were_planted() {
    for (each, more_us) in [(10, 20_000), (50, 5_000), (4, 400), (5, 5_000)] {
        let (_, few) = few(&planted(each, more_us * 1000));
        let share = few.share_of_requests.unwrap() * recording::float(each);
        assert!((0.85..1.15).contains(&share), "1 of {each}: {few:?}");
        let truth = recording::float(more_us) / recording::float(each);
        let mean = few.latency_us_mean / truth;
        assert!((0.9..1.15).contains(&mean), "{more_us} us: {few:?}");
    }
}

#[test]
fn without_such_requests_the_mean_has_no_place_in_the_verdict() {
    let recording: Recording = serde_json::from_str(LAB).unwrap();
    let summary = Summary::of(&recording);
    assert!(summary.variants.iter().all(|row| row.few_pay.is_none()));
}

#[test]
fn savings_of_few_requests_are_told_as_well() {
    // The baseline has a cost for a tenth of its requests that the variant does not have.
    let recording = planted_in("one by one", 10, |value_ns| value_ns + 20_000_000);
    let (summary, few) = few(&recording);
    let share = few.share_of_requests.unwrap();
    assert!((0.085..0.115).contains(&share), "{few:?}");
    insta::assert_snapshot!(summary.variant(ROW).unwrap().verdict_text, @"faster by 3.2 to 6.9 us; mean -2.0 ms (about a tenth of the requests save more)");
}
