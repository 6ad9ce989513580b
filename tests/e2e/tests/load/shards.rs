//! One load from several generators, and the merge of their recordings.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use e2e::{Run, Server, weigh_command};
use serde_json::Value;

const SHARDS: u32 = 8;

/// Starts one generator for each shard of a load. They begin together.
fn shards(folder: &Path, url: &str, flags: &[&str]) -> Vec<PathBuf> {
    let since = SystemTime::UNIX_EPOCH
        .elapsed()
        .expect("a clock after 1970");
    let start = (since + Duration::from_secs(2)).as_secs().to_string();
    let paths: Vec<PathBuf> = (1..=SHARDS)
        .map(|number| folder.join(format!("{number}.json")))
        .collect();
    let generators: Vec<Child> = (1..=SHARDS)
        .zip(&paths)
        .map(|(number, path)| {
            weigh_command()
                .args(["load", url, "--shard", &format!("{number}/{SHARDS}")])
                .args(["--start-at", &start, "--record"])
                .arg(path)
                .args(flags)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("weigh starts")
        })
        .collect();
    for generator in generators {
        let output = generator.wait_with_output().expect("it can be waited for");
        Run::of(output).ran();
    }
    paths
}

fn merged(paths: &[PathBuf], record: &Path) -> Run {
    let output = weigh_command()
        .args(["merge", "--record"])
        .arg(record)
        .args(paths)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

/// The only measurement of a recording.
fn round(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a recording was written");
    let recording: Value = serde_json::from_str(&text).expect("recordings are JSON");
    recording["rounds"][0].clone()
}

fn url(server: &Server) -> String {
    format!("http://{}/graphql", server.address())
}

#[test]
fn eight_shards_count_what_one_generator_counts() {
    for flags in [
        &["--rate", "403", "-z", "1s", "-c", "16"][..],
        &[
            "--rate",
            "403",
            "-z",
            "1s",
            "-c",
            "16",
            "--arrival",
            "poisson",
        ],
        &["-n", "397", "-c", "19"],
    ] {
        let server = Server::start(&[]);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let one = folder.path().join("one.json");
        let record = one.to_str().expect("a path of ours");
        server.load(&[flags, &["--record", record]].concat()).ran();
        let paths = shards(folder.path(), &url(&server), flags);
        let all = folder.path().join("all.json");
        let run = merged(&paths, &all);
        // A check may fail for a generator on a busy machine. This test does not depend on that.
        assert!(matches!(run.status().code(), Some(0 | 7)), "{}", run.talk());
        let (one, all) = (round(&one), round(&all));
        for key in ["planned", "outcomes", "statuses", "bytes_in", "bytes_out"] {
            assert_eq!(all[key], one[key], "{key} of {flags:?}");
        }
    }
}

#[test]
fn shards_that_are_not_all_there_are_refused() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = shards(folder.path(), &url(&server), &["-n", "80", "-c", "8"]);
    let record = folder.path().join("all.json");
    let run = merged(&paths[1..], &record).exits_with(2);
    run.says("shard 1/8 is missing");
    let twice = [&paths[..], &paths[3..4]].concat();
    merged(&twice, &record).exits_with(2).says("appears twice");
    assert!(!record.exists(), "nothing was put together");
}

#[test]
fn a_shard_or_a_start_that_cannot_be_is_refused_before_anything_is_sent() {
    let server = Server::start(&[]);
    for (flags, words) in [
        (&["--shard", "5/4"][..], "expected a shard such as 2/4"),
        (
            &["--shard", "2/4", "-c", "1"],
            "one connection for each shard",
        ),
        (&["--start-at", "soon"], "expected a time with its zone"),
        (
            &["--start-at", "2020-01-01T00:00:00Z"],
            "a start in the future",
        ),
    ] {
        server.load(flags).exits_with(2).says(words);
    }
}

#[test]
fn shards_of_a_call_have_the_same_descriptors_or_do_not_merge() {
    let server = Server::of(&e2e::weigh(), &["null-server", "--grpc"]);
    let url = format!("http://{}/", server.address());
    let message = r#"{"text":"hi"}"#;
    let flags = [
        "--grpc",
        "null.Echo/Say",
        "--grpc-message",
        message,
        "--grpc-contains",
        "hi",
        "-n",
        "80",
        "-c",
        "8",
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = shards(folder.path(), &url, &flags);
    let whole = folder.path().join("whole.json");
    let run = merged(&paths, &whole);
    // A check may fail for a generator on a busy machine. This test does not depend on that.
    assert!(matches!(run.status().code(), Some(0 | 7)), "{}", run.talk());
    assert_eq!(round(&whole)["outcomes"]["passed"], 80);
    let text = fs::read_to_string(&paths[1]).expect("a recording");
    let recording: Value = serde_json::from_str(&text).expect("JSON");
    let digest = recording["load"]["requests"][0]["descriptors_sha256"].clone();
    let digest = digest.as_str().expect("the server gave descriptors");
    fs::write(&paths[1], text.replace(digest, &"0".repeat(64))).expect("it can be written");
    let other = merged(&paths, &folder.path().join("other.json")).exits_with(2);
    other.says("requests");
}
