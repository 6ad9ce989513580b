use super::{Evidence, Recorder, Times};
use crate::measurement::{FailureKind, GeneratorCost, Measurement};

const S: u64 = 1_000_000_000;
const START: u64 = 5 * S;

/// Returns a load with one response in its first tenth of a second, and a timeout at this time if it is
/// `Some`.
fn load(timeout_ns: Option<u64>, end_ns: Option<u64>) -> Measurement {
    let mut recorder = Recorder::new(START, 1);
    let sent_ns = START + S / 100;
    recorder.sent(sent_ns, None);
    let times = Times {
        due_ns: sent_ns,
        sent_ns,
        first_byte_ns: sent_ns + 10,
        first_event_ns: 0,
        done_ns: START + S / 20,
    };
    recorder.answered(times, 200, true);
    if let Some(at_ns) = timeout_ns {
        let evidence = Evidence {
            request: &[],
            answer: [&[], &[]],
        };
        recorder.failed(FailureKind::Timeout, at_ns, evidence, || "late".to_owned());
    }
    recorder.into_measurement(GeneratorCost::default(), end_ns)
}

#[test]
fn a_load_lasts_to_its_planned_end_although_answers_ended_before() {
    let found = load(None, Some(START + 3 * S));
    assert_eq!(found.elapsed, std::time::Duration::from_secs(3));
    // Windows without a response are a part of the load.
    assert_eq!(found.windows.len(), 30);
    assert_eq!(found.windows.iter().map(|it| it.completed).sum::<u64>(), 1);
}

#[test]
fn a_timeout_is_an_outcome_at_its_own_time() {
    let found = load(Some(START + 4 * S), Some(START + 3 * S));
    assert_eq!(found.elapsed, std::time::Duration::from_secs(4));
    assert_eq!(
        load(Some(START + 2 * S), None).elapsed,
        std::time::Duration::from_millis(1_990)
    );
}

#[test]
fn a_load_that_a_number_ends_lasts_to_its_last_outcome() {
    assert_eq!(
        load(None, None).elapsed,
        std::time::Duration::from_millis(40)
    );
}

#[test]
fn names_without_end_are_counted_together() {
    let mut all = super::encodings::Encodings::default();
    for index in 0..100 {
        all.count(&std::borrow::Cow::Owned(format!("x{index:02}")));
    }
    let mut twice = super::encodings::Encodings::default();
    twice.absorb(&all);
    twice.absorb(&all);
    let counts = twice.into_counts();
    assert_eq!(counts.len(), 17);
    assert_eq!(counts["x00"], 2);
    assert_eq!(counts["other"], 2 * (100 - 16));
}

#[test]
fn a_long_name_is_counted_with_the_rest() {
    let mut all = super::encodings::Encodings::default();
    all.count(&std::borrow::Cow::Owned("x".repeat(40)));
    all.count(&std::borrow::Cow::Owned("x".repeat(41)));
    let counts = all.into_counts();
    assert_eq!(counts.len(), 2);
    assert_eq!(counts["other"], 1);
}
