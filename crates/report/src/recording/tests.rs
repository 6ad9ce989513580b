use super::*;
use crate::sample::Sample;

fn changed(edit: impl FnOnce(&mut serde_json::Value)) -> Result<Recording, ReadError> {
    let recording = Sample::closed().rounds(1).variant("a", 500.0).build();
    let mut value = serde_json::to_value(&recording).unwrap();
    edit(&mut value);
    Recording::from_json(&value.to_string())
}

#[test]
fn a_recording_survives_writing_and_reading() {
    for recording in [Sample::graphql_server(), Sample::load_alone(true)] {
        assert_eq!(
            Recording::from_json(&recording.to_json()).unwrap(),
            recording
        );
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let read = changed(|value| {
        value["invented_later"] = 1.into();
        value["rounds"][0]["invented_later"] = 1.into();
    });
    assert!(read.is_ok());
}

#[test]
fn a_missing_field_is_named() {
    let read = changed(|value| {
        value["rounds"][0]
            .as_object_mut()
            .unwrap()
            .remove("elapsed_us");
    });
    let message = read.unwrap_err().to_string();
    assert!(message.contains("missing field `elapsed_us`"), "{message}");
}

#[test]
fn a_histogram_that_does_not_decode_is_refused_on_reading() {
    let read = changed(|value| value["rounds"][0]["latency_ns_hdr"] = "HISTFAAA".into());
    let message = read.unwrap_err().to_string();
    assert!(message.contains("HdrHistogram"), "{message}");
}

#[test]
fn other_formats_and_newer_methods_are_refused_with_what_to_do() {
    let show = |read: Result<Recording, ReadError>| read.unwrap_err().to_string();
    insta::assert_snapshot!(
        show(changed(|value| value["format"] = "k6".into())),
        @"expected `format` to be `weighbridge-recording`, found `k6`; is it a `recording.json` of `weigh`?"
    );
    insta::assert_snapshot!(
        show(Recording::from_json("{}")),
        @"expected `format` to be `weighbridge-recording`, found none; is it a `recording.json` of `weigh`?"
    );
    insta::assert_snapshot!(
        show(changed(|value| {
            value["method"] = 9.into();
            value["weigh"]["version"] = "7.1.0".into();
            value.as_object_mut().unwrap().remove("rounds");
        })),
        @"the recording was made by method 9 and this `weigh` knows methods up to 1; read it with `weigh` 7.1.0 or newer"
    );
}

#[test]
fn a_hundred_rounds_take_little_room() {
    let one = Sample::closed()
        .rounds(1)
        .variant("a", 500.0)
        .build()
        .to_json()
        .len();
    let many = Sample::closed()
        .rounds(101)
        .variant("a", 500.0)
        .build()
        .to_json()
        .len();
    assert!(
        (many - one) / 100 < 40_000,
        "{} bytes a round",
        (many - one) / 100
    );
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    crate::schema_tests::assert_schema("recording", &Recording::schema());
}
