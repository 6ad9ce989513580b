//! Tests of costs that few requests pay. The costs are planted into a recording of a lab.

use super::*;
use crate::sample::{ROW, batching, few, planted, planted_in};

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
    let recording = batching();
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
    assert_eq!(few.payment, Payment::SaveMore);
    assert_eq!(summary.variant(ROW).unwrap().remark, Some(Remark::FewPay));
}
