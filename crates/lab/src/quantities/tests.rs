use super::*;
use insta::assert_snapshot;
use proptest::prelude::*;

/// Returns the value that was read, or the mistake with its advice.
fn check<F: Format + std::fmt::Debug>(text: &str) -> String {
    match F::read(text) {
        Ok(value) => format!("{value:?}"),
        Err(wrong) => format!("{}; {}", wrong.message, wrong.help.unwrap()),
    }
}

fn per_second(rate: f64) -> Rate {
    Rate::new(rate).unwrap()
}

#[test]
fn durations_have_units() {
    assert_eq!(Duration::read("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(Duration::read("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(Duration::read("7us"), Duration::read("7µs"));
    assert_eq!(Duration::read("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(Duration::read("1 h"), Ok(Duration::from_secs(3600)));
    assert_eq!(Duration::read("0s"), Ok(Duration::ZERO));
}

#[test]
fn a_wrong_duration_is_told_what_to_write() {
    assert_snapshot!(check::<Duration>("5"), @"`5` is not a length of time: the unit is missing; write `5s` or `5ms`");
    assert_snapshot!(check::<Duration>("-5s"), @"`-5s` is not a length of time: it is negative; write `5s`");
    assert_snapshot!(check::<Duration>("5 sec"), @"`5 sec` is not a length of time: `sec` is not a unit of time; the units are ns, us, ms, s, m and h");
    assert_snapshot!(check::<Duration>("soon"), @"`soon` is not a length of time: expected a number and a unit; write for example `500ms`, `5s` or `2m`");
    assert_snapshot!(check::<Duration>("9999h"), @"`9999h` is not a length of time: it is longer than 1000h; the units are ns, us, ms, s, m and h");
    assert_snapshot!(check::<LongerThanZero>("0s"), @"`0s` is too short: it must be above 0; write for example `5s`");
}

#[test]
fn sizes_tell_thousands_from_1024s() {
    assert_eq!(Bytes::read("1MB"), Ok(Bytes(1_000_000)));
    assert_eq!(Bytes::read("1MiB"), Ok(Bytes(1_048_576)));
    assert_eq!(Bytes::read("0.5GiB"), Ok(Bytes(536_870_912)));
}

#[test]
fn a_wrong_size_is_told_what_to_write() {
    assert_snapshot!(check::<Bytes>("128"), @"`128` is not a size: the unit is missing; write `128MiB` or `128B`");
    assert_snapshot!(check::<Bytes>("128M"), @"`128M` is not a size: `M` is not a unit of size; the units are B, KB, MB, GB, KiB, MiB and GiB");
    assert_snapshot!(check::<Bytes>("0B"), @"`0B` is not a size: it must be above 0; write for example `128MiB`");
    assert_snapshot!(check::<Bytes>("much"), @"`much` is not a size: expected a number and a unit; write for example `128MiB` or `1GiB`");
}

#[test]
fn rates_are_per_second_minute_or_hour() {
    assert_eq!(
        PositiveRate::read("100/s"),
        Ok(PositiveRate(per_second(100.0)))
    );
    assert_eq!(
        PositiveRate::read("6000/min"),
        Ok(PositiveRate(per_second(100.0)))
    );
    assert_eq!(
        PositiveRate::read("0.5 / s"),
        Ok(PositiveRate(per_second(0.5)))
    );
    assert_eq!(Rate::read("0/s"), Ok(Rate::ZERO));
}

#[test]
fn a_wrong_rate_is_told_what_to_write() {
    assert_snapshot!(check::<PositiveRate>("100"), @"`100` is not a rate: the unit is missing; write `100/s`");
    assert_snapshot!(check::<PositiveRate>("-5/s"), @"`-5/s` is not a rate: it is negative; write `5/s`");
    assert_snapshot!(check::<PositiveRate>("0/s"), @"`0/s` is not a rate: it must be above 0; write for example `100/s`");
    assert_snapshot!(check::<PositiveRate>("100rps"), @"`100rps` is not a rate: `rps` is not a unit of rate; the units are /s, /m and /h");
    assert_snapshot!(check::<PositiveRate>("fast"), @"`fast` is not a rate: expected a number and `/s`; write for example `100/s`");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,20}") {
        for (value, refused) in [
            (check::<Duration>(&text), Duration::read(&text).is_err()),
            (check::<Bytes>(&text), Bytes::read(&text).is_err()),
            (check::<PositiveRate>(&text), PositiveRate::read(&text).is_err()),
        ] {
            prop_assert_eq!(value.contains("; "), refused);
        }
    }

    #[test]
    fn a_written_duration_is_read_as_it_was_meant(ms in 0_u64..3_600_000_000) {
        prop_assert_eq!(Duration::read(&format!("{ms}ms")), Ok(Duration::from_millis(ms)));
    }
}
