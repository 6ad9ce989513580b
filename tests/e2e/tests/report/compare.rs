//! `weigh compare`: paired and unpaired recordings, and results of other tools.

use std::path::{Path, PathBuf};

use e2e::{Run, Server, believed, weigh_command};
use serde_json::Value;

fn compare(arguments: &[&str]) -> Run {
    let output = weigh_command()
        .arg("compare")
        .args(arguments)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

fn json(arguments: &[&str]) -> Value {
    let run = compare(&[arguments, &["--format", "json"]].concat()).exits_with(0);
    serde_json::from_str(&run.answer()).unwrap_or_else(|error| panic!("{error}: {}", run.answer()))
}

/// A result file of another tool.
fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/recording/samples");
    path.join(name).display().to_string()
}

/// Copies a recording with another time.
fn at_another_time(recording: &Path, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).expect("a folder");
    let text = std::fs::read_to_string(recording.join("recording.json")).expect("a recording");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    value["started_at"] = "2001-01-01T00:00:00Z".into();
    let path = to.join("recording.json");
    std::fs::write(&path, value.to_string()).expect("a file");
    path
}

/// A recording in a folder of its own, with a variant that is 2 ms slower than its baseline.
fn lab_folder(world: &Path) -> PathBuf {
    let folder = world.join("lab");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::copy(sample("lab.json"), folder.join("recording.json")).expect("a copy");
    folder
}

#[test]
fn variants_of_one_run_are_paired_and_runs_are_not() {
    let world = tempfile::tempdir().expect("a temporary folder");
    let folder = lab_folder(world.path());
    let shown = folder.display().to_string();
    let of = |variant: &str| format!("{shown}#{variant}");

    let paired = json(&[&of("honest"), &of("slow")]);
    assert_eq!(paired["pairing"], "paired");
    let row = &paired["rows"][0];
    assert_eq!(row["verdict"]["state"], "slower");
    let output = weigh_command()
        .args(["report", &shown, "--format", "json"])
        .output()
        .expect("weigh starts");
    let own: Value = serde_json::from_str(&Run::of(output).exits_with(0).answer()).expect("JSON");
    let own = &own["summary"]["variants"][1]["metrics"]["latency_us_mean"]["overhead"];
    let found = &row["metrics"]["latency_us_mean"]["b"]["overhead"];
    assert!(own.is_object());
    assert_eq!(found["difference"], own["difference"], "as the lab said");

    let other = at_another_time(&folder, &world.path().join("other"));
    let other = other.display().to_string();
    let unpaired = json(&[&shown, &other]);
    assert_eq!(unpaired["pairing"], "unpaired");
    assert_eq!(unpaired["rows"][1]["name"], "slow");
    let change = &unpaired["rows"][1]["overheads"]["latency_us_mean"]["b"]["overhead"];
    assert_eq!(change["claim"], "no-difference-shown", "it is a copy");
    let text = compare(&[&shown, &other]).exits_with(0);
    text.shows("UNPAIRED");
}

#[test]
fn what_cannot_be_compared_says_what_to_give() {
    let world = tempfile::tempdir().expect("a temporary folder");
    let folder = lab_folder(world.path()).display().to_string();
    let around = world.path().display().to_string();
    let empty = world.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let (empty, wrk) = (empty.display().to_string(), sample("wrk.txt"));
    let unknown = format!("{folder}#nobody");
    for (pair, words) in [
        (
            [&*folder, &*folder],
            "found `lab` twice. Name two of its results",
        ),
        ([&wrk, &wrk], "Give the result of another run"),
        ([&folder, &unknown], "The variants are `honest`, `slow`"),
        (
            [&wrk, &around],
            "with 1 recordings. Name one of them, such as",
        ),
        ([&wrk, &empty], "found no file"),
    ] {
        let run = compare(&pair).exits_with(2);
        run.says(words);
    }
}

#[test]
fn an_answer_of_another_protocol_is_another_load() {
    let world = tempfile::tempdir().expect("a temporary folder");
    let folder = lab_folder(world.path());
    let other = at_another_time(&folder, &world.path().join("other"));
    let text = std::fs::read_to_string(&other).expect("a recording");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    value["load"]["protocol"] = serde_json::json!({"http": "2", "tls": "verified", "streams": 8});
    std::fs::write(&other, value.to_string()).expect("a file");
    let run = compare(&[&folder.display().to_string(), &other.display().to_string()]);
    let run = run.exits_with(7);
    let words = "protocol: HTTP/1.1 in A, HTTP/2 over TLS, 8 streams a connection in B";
    run.shows(words);
}

#[test]
fn another_load_withholds_the_verdict_and_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&[]);
    let record = |name: &str, connections: &str| {
        let path = folder.path().join(name);
        let shown = path.display().to_string();
        let flags = ["-n", "200", "-c", connections, "--record", &shown];
        believed(|_| (server.load(&flags), path.clone())).map(|_| shown)
    };
    let (Some(few), Some(many)) = (record("few.json", "2"), record("many.json", "8")) else {
        return;
    };
    let run = compare(&[&few, &many]).exits_with(7);
    run.shows("2 connections");
    run.shows("NOT COMPARABLE");
    let run = compare(&[&few, &many, "--despite-differences"]).ran();
    run.shows("compared in spite of this");
    run.shows("single run has no interval");
}

#[test]
fn every_sample_is_recognized_and_has_no_verdict_of_its_own() {
    for (name, shape) in [
        ("k6-export.json", "k6 --summary-export"),
        ("k6-handle.json", "k6 handleSummary"),
        ("k6-machine.json", "k6 --new-machine-readable-summary"),
        ("k6-points.json", "k6 --out json"),
        ("vegeta.json", "vegeta report -type=json"),
        ("vegeta.txt", "vegeta report"),
        ("vegeta.hdrplot", "vegeta report -type=hdrplot"),
        ("wrk.txt", "wrk"),
        ("wrk2.txt", "wrk2"),
        ("table.hgrm", "HdrHistogram's percentile table"),
        ("oha.json", "oha --output-format json"),
        ("bombardier.json", "bombardier -o json"),
        ("bombardier.txt", "bombardier"),
        ("ab.txt", "ab"),
        ("ab.csv", "ab -e"),
        ("hey.txt", "hey"),
        ("autocannon.json", "autocannon --json"),
        ("artillery.json", "artillery run --output"),
        ("k6-run.txt", "k6 run"),
        ("k6-points.csv", "k6 --out csv"),
        ("vegeta-hits.json", "vegeta encode"),
        ("vegeta-hits.csv", "vegeta encode -to=csv"),
        ("oha.txt", "oha"),
        ("hey.csv", "hey -o csv"),
        ("ab.tsv", "ab -g"),
    ] {
        let flags = ["--despite-differences", "--format", "text"];
        let run = compare(&[&[&*sample("wrk.txt"), &*sample(name)][..], &flags].concat());
        if name == "wrk.txt" {
            run.exits_with(2).says("expected two different results");
            continue;
        }
        let run = run.exits_with(0);
        run.shows(&format!("{name} ({shape})"));
        run.shows("single run has no interval");
    }
}

#[test]
fn commands_of_hyperfine_and_folders_of_runs_have_an_interval() {
    let (first, second) = (
        sample("hyperfine.json#1"),
        sample("hyperfine.json#sleep 0.012"),
    );
    let found = json(&[&first, &second]);
    assert_eq!(found["pairing"], "unpaired");
    assert!(found["rows"][0]["verdict"].is_object(), "{found:#}");

    let world = tempfile::tempdir().expect("a temporary folder");
    let text = std::fs::read_to_string(sample("wrk.txt")).expect("a sample");
    let folder = |name: &str, from: u32| {
        let folder = world.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        for run in 0..6 {
            let text = text.replace("9013 requests", &format!("{} requests", from + run));
            std::fs::write(folder.join(format!("{run}.txt")), text).expect("a file");
        }
        folder.display().to_string()
    };
    let (before, after) = (folder("before", 9000), folder("after", 8000));
    let found = json(&[&before, &after]);
    assert_eq!(found["rows"][0]["verdict"]["state"], "slower");
}

#[test]
fn reports_in_one_file_have_an_interval_and_are_never_added_up() {
    let world = tempfile::tempdir().expect("a temporary folder");
    let text = std::fs::read_to_string(sample("hey.txt")).expect("a sample");
    let file = |folder: &str, count: u32| {
        let reports = (0..6).map(|run| {
            let answers = format!("[200]\t{} responses", count + run);
            text.replace("[200]\t4697 responses", &answers)
                .replace("[500]\t96 responses", "")
        });
        let folder = world.path().join(folder);
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("hey.txt");
        std::fs::write(&path, reports.collect::<String>()).expect("a file");
        path.display().to_string()
    };
    let (before, after) = (file("before", 4000), file("after", 3000));
    let found = json(&[&before, &after]);
    assert_eq!(found["pairing"], "unpaired");
    let row = &found["rows"][0];
    assert_eq!(row["verdict"]["state"], "slower");
    assert_eq!(row["name_a"], "before/hey.txt", "two files have one name");
    let rate = row["metrics"]["requests_per_s"]["a"]["value"]
        .as_f64()
        .expect("a rate");
    assert!((rate - 4002.5 / 2.0045).abs() < 0.1, "{rate}");
    assert_eq!(row["failures"]["b"]["failed"], 0);
}

#[test]
fn named_requests_are_rows_that_gates_name() {
    let world = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, slow: u32| {
        let header = "timeStamp,elapsed,label,responseCode,success\n";
        let rows = (0..40_u32).map(|row| {
            let (label, elapsed) = if row % 2 == 0 {
                ("list items", 5)
            } else {
                ("item", slow)
            };
            format!(
                "{},{elapsed},{label},200,true\n",
                1_700_000_000_000_u64 + u64::from(row) * 10
            )
        });
        let path = world.path().join(name);
        std::fs::write(&path, header.to_owned() + &rows.collect::<String>()).expect("a file");
        path.display().to_string()
    };
    let (a, b) = (write("a.jtl", 10), write("b.jtl", 30));
    let found = json(&[&a, &b]);
    let rows = found["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["b.jtl", "item", "list items"]);
    let only = json(&[&format!("{a}#item"), &format!("{b}#item")]);
    assert_eq!(
        only["rows"][0]["metrics"]["latency_us_mean"]["b"]["value"],
        30_000.0
    );
    let run = compare(&[&a, &b, "--gate", "list items failures value < 1%"]).exits_with(0);
    run.shows("`list items failures value < 1%`: holds: 0 % (0 of 20)");
}

#[test]
fn units_and_files_of_other_tools_are_explained() {
    let run = compare(&[&sample("wrk.txt"), &sample("hey.txt"), "--unit", "us"]).exits_with(2);
    run.says("Both files name it");
    let micros = sample("more/hdr-us.hgrm");
    let found = json(&[&micros, &sample("table.hgrm"), "--unit", "us"]);
    assert_eq!(
        found["rows"][0]["metrics"]["latency_us_p50"]["a"]["value"],
        310.0
    );
    compare(&[&micros, &sample("table.hgrm")])
        .exits_with(0)
        .shows("is read in milliseconds");
    let output = weigh_command()
        .args(["report", &sample("k6-handle.json")])
        .output()
        .expect("weigh starts");
    Run::of(output)
        .exits_with(2)
        .says("found k6 handleSummary in");
}

#[test]
fn files_that_are_no_results_are_refused_with_what_was_tried() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.display().to_string()
    };
    let good = sample("wrk.txt");
    for (path, words) in [
        (
            write("diary.txt", b"Dear diary,\n"),
            "text that begins with `Dear diary,`",
        ),
        (write("cut.json", b"{\"metrics\": {"), "cut short at line 1"),
        (write("empty.txt", b""), "an empty file (did the tool fail"),
        (
            write("points.json.gz", &[0x1f, 0x8b, 8]),
            "its gzip is cut short or broken",
        ),
        (write("other.json", b"{\"a\": 1}"), "JSON with the keys `a`"),
        (
            write("gob.bin", b"\x1d\xffResult\0Attack\0Latency"),
            "`vegeta report -type=json`",
        ),
        (
            folder.path().join("gone.json").display().to_string(),
            "cannot be read",
        ),
    ] {
        let run = compare(&[&good, &path]).exits_with(2);
        run.says(words);
        assert_eq!(run.answer(), "");
    }
    let run = compare(&[&good, &write("diary.txt", b"Dear diary,\n")]);
    for tool in [
        "k6",
        "vegeta",
        "wrk2",
        "oha",
        "bombardier",
        "autocannon",
        "Artillery",
        "hyperfine",
        "ab",
    ] {
        run.says(tool);
    }
}
