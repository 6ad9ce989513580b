use super::*;
use crate::sample::SampleRun;

fn changed(edit: impl FnOnce(&mut serde_json::Value)) -> Result<Recording, ReadError> {
    let recording = SampleRun::closed().rounds(1).variant("a", 500.0).build();
    let mut value = serde_json::to_value(&recording).unwrap();
    edit(&mut value);
    Recording::from_json(&value.to_string())
}

#[test]
fn a_recording_survives_writing_and_reading() {
    for recording in [SampleRun::graphql_server(), SampleRun::load_alone(true)] {
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
        @"expected `format` to be `weighbridge-recording`, found `k6`. Is it a `recording.json` of `weigh`?"
    );
    insta::assert_snapshot!(
        show(Recording::from_json("{}")),
        @"expected `format` to be `weighbridge-recording`, found none. Is it a `recording.json` of `weigh`?"
    );
    insta::assert_snapshot!(
        show(changed(|value| {
            value["method"] = 9.into();
            value["weigh"]["version"] = "7.1.0".into();
            value.as_object_mut().unwrap().remove("rounds");
        })),
        @"expected a recording of method 3 or older, found method 9. Read it with `weigh` 7.1.0 or newer"
    );
}

#[test]
fn a_hundred_rounds_take_little_room() {
    let one = SampleRun::closed()
        .rounds(1)
        .variant("a", 500.0)
        .build()
        .to_json()
        .len();
    let many = SampleRun::closed()
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
    generated::assert_schema("recording", &Recording::schema());
}

/// Checks that `new` contains all data of `old`. It may contain more.
fn assert_kept(old: &serde_json::Value, new: &serde_json::Value, at: &str) {
    use serde_json::Value;
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let at = format!("{at}/{key}");
                match new.get(key) {
                    Some(found) => assert_kept(value, found, &at),
                    None => assert!(value.is_null(), "{at} is lost: {value}"),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{at}");
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                assert_kept(old, new, &format!("{at}/{index}"));
            }
        }
        _ => assert_eq!(old, new, "{at}"),
    }
}

#[test]
fn committed_recordings_are_written_again_as_they_were() {
    let labs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    let folders = std::fs::read_dir(labs).unwrap();
    let mut files: Vec<std::path::PathBuf> = folders
        .map(|folder| folder.unwrap().path().join("records"))
        .filter(|folder| folder.is_dir())
        .collect();
    let mut recordings = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|it| it.unwrap().path()),
            );
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let old: serde_json::Value = serde_json::from_str(&text).unwrap();
        if old["format"] == "weighbridge-recording" {
            let recording = Recording::from_json(&text).unwrap();
            let new = serde_json::from_str(&recording.to_json()).unwrap();
            assert_kept(&old, &new, &path.display().to_string());
            recordings += 1;
        }
    }
    assert!(recordings > 0, "no recording is committed");
}
