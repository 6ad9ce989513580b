//! Tests with files as users bring them: appended reports, older versions, names of requests, and files
//! without failures.
//!
//! The files of hey, ab, wrk, autocannon and h2load are real. The others were written after the documentation
//! of their tool.

use model::Metric;

use super::tests::{claims, is_noted, one};
use super::*;

macro_rules! brought {
    ($name:literal) => {
        include_str!(concat!("../../samples/more/", $name))
    };
}

use Metric::{Max, Mean, Min, P50, P75, P90, P95, P99, P999, Requests, Stdev};

/// The values of a metric in its shown unit, one per run.
fn values(run: &ForeignRun, metric: Metric) -> Vec<f64> {
    let values = run.figures.get(&metric).into_iter().flatten();
    values.map(|value| metric.unit().shown(*value)).collect()
}

#[track_caller]
fn has_runs(run: &ForeignRun, metric: Metric, expected: &[f64]) {
    let found = values(run, metric);
    let is_near = |(one, other): (&f64, &f64)| (one - other).abs() <= other.abs() * 1e-3;
    let is_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_near);
    assert!(is_equal, "{metric:?}: {found:?}, not {expected:?}");
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn reports_in_one_file_are_runs_and_never_a_sum() {
    let hey = one(brought!("hey-three-runs.txt"));
    has_runs(
        &hey,
        Requests,
        &[60.0 / 0.8914, 60.0 / 0.8470, 60.0 / 0.9039],
    );
    has_runs(&hey, Max, &[48.6, 48.6, 49.4]);
    assert_eq!((hey.succeeded, hey.failed), (Some(180), Some(0)));
    is_noted(&hey, "the file holds 3 reports, and each counts as a run");
    let ab = one(brought!("ab-two.txt"));
    has_runs(&ab, Requests, &[50.0 / 0.068, 50.0 / 0.096]);
    has_runs(&ab, P99, &[8.0, 8.0]);
    has_runs(&ab, P50, &[1.0, 4.0]);
    let wrk = one(brought!("wrk-ab.txt"));
    has_runs(&wrk, Requests, &[44.0, 92.0]);
    has_runs(&wrk, P99, &[48.05, 48.13]);
    is_noted(&wrk, "the runs differ in connections: 2 and 4");
    for (text, metric, value) in [
        (brought!("twice-ab.txt"), Mean, 5.995),
        (brought!("twice-hey.txt"), Mean, 4.2),
        (brought!("twice-k6-run.txt"), Mean, 3.98),
        (brought!("twice-vegeta.txt"), P50, 2.81),
    ] {
        has_runs(&one(text), metric, &[value, value]);
    }
    let rate = values(&one(brought!("twice-hey.txt")), Requests);
    assert!((rate[0] - 4697.0 / 2.0045).abs() < 0.1, "{rate:?}");
}

#[test]
fn every_kind_of_text_and_table_is_divided_into_its_reports() {
    let double = |text: &str| format!("{}\n{}\n", text.trim_end(), text.trim_end());
    for text in [
        brought!("../oha.txt"),
        brought!("../bombardier.txt"),
        brought!("../vegeta.txt"),
        brought!("../wrk2.txt"),
        brought!("../k6-points.csv"),
        brought!("../k6-points.json"),
        brought!("../vegeta-hits.json"),
        brought!("../vegeta-hits.csv"),
        brought!("../hey.csv"),
        brought!("../ab.csv"),
        brought!("../ab.tsv"),
        brought!("../table.hgrm"),
        brought!("h2load.txt"),
        brought!("oha.csv"),
        brought!("jmeter.jtl"),
        brought!("locust-new.csv"),
        brought!("ghz-csv.csv"),
        brought!("gatling-simulation.log"),
        brought!("../oha.json"),
        brought!("../vegeta.json"),
        brought!("bombardier-intro.json"),
        brought!("fortio.json"),
    ] {
        let (single, twice) = (one(text), one(&double(text)));
        for (metric, value) in &single.figures {
            let repeated: Vec<f64> = value.iter().chain(value).copied().collect();
            assert_eq!(
                twice.figures[metric], repeated,
                "{}: {metric:?}",
                single.shape
            );
        }
        is_noted(&twice, "holds 2 reports");
    }
}

#[test]
fn mixtures_are_refused() {
    let two = [brought!("hey-one-run.txt"), brought!("wrk-one.txt")].concat();
    let found = refusal(&two);
    assert!(
        found.contains("reports of wrk and of hey, oha or ghz"),
        "{found}"
    );
    let two = [brought!("fortio.json"), brought!("ghz.json")].concat();
    let found = refusal(&two);
    assert!(
        found.contains("found fortio -json and ghz -O json"),
        "{found}"
    );
    // Without first lines, the reports have no visible beginning.
    let lost = brought!("twice-hey.txt").replacen("Summary:", "", 1);
    let found = refusal(&lost);
    assert!(
        found.contains("it holds 2 reports without their first lines"),
        "{found}"
    );
    // The hits of two attacks at the same time.
    let hits = brought!("../vegeta-hits.csv");
    let mut lines: Vec<&str> = hits.lines().collect();
    lines.insert(2, lines[0]);
    let found = refusal(&lines.join("\n"));
    assert!(
        found.contains("mixes the hits of several attacks"),
        "{found}"
    );
}

#[test]
fn several_targets_of_one_file_are_results_of_their_own() {
    let other =
        brought!("wrk-a.txt").replace("http://127.0.0.1:18080/", "http://127.0.0.1:18080/b");
    let runs = read(&[brought!("wrk-a.txt"), &other].concat()).unwrap();
    let subjects: Vec<_> = runs
        .iter()
        .map(|run| run.subject.as_deref().unwrap())
        .collect();
    assert_eq!(
        subjects,
        ["http://127.0.0.1:18080/", "http://127.0.0.1:18080/b"]
    );
}

#[test]
fn hey_without_an_answer_has_no_latencies() {
    for (text, failed) in [
        (brought!("hey-errors.txt"), 200),
        (brought!("hey-refused.txt"), 20),
    ] {
        let run = one(text);
        assert_eq!((run.succeeded, run.failed), (Some(0), Some(failed)));
        assert_eq!(run.figures.keys().collect::<Vec<_>>(), [&Requests]);
        has_runs(&run, Requests, &[0.0]);
    }
    let run = one(brought!("wrk-none.txt"));
    assert_eq!((run.succeeded, run.failed), (Some(0), Some(2)));
    assert_eq!(run.figures.keys().collect::<Vec<_>>(), [&Requests]);
    let run = one(brought!("oha-null.json"));
    assert_eq!((run.succeeded, run.failed), (Some(0), Some(100)));
    let run = one(brought!("hey-one-run.txt"));
    claims(
        &run,
        &[
            (Min, 1.4),
            (Mean, 42.2),
            (P50, 44.0),
            (P95, 48.0),
            (Max, 48.0),
            (Requests, 60.0 / 0.853),
        ],
        Some((60, 0)),
    );
    // hey prints `0% in 0.0000` if it has too few answers for p99.
    assert!(!run.figures.contains_key(&P99));
}

#[test]
fn texts_of_single_runs_keep_their_values() {
    claims(
        &one(brought!("ab-one.txt")),
        &[
            (Mean, 2.401),
            (Stdev, 2.8),
            (P99, 12.0),
            (Requests, 50.0 / 0.060),
        ],
        Some((50, 0)),
    );
    claims(
        &one(brought!("wrk-one.txt")),
        &[
            (Mean, 1.0),
            (P50, 0.9),
            (P99, 3.0),
            (Max, 12.0),
            (Requests, 10_000.0),
        ],
        Some((100_000, 0)),
    );
    claims(
        &one(brought!("autocannon-old.json")),
        &[
            (Mean, 0.9),
            (P99, 4.0),
            (Max, 20.0),
            (Requests, 10_000.0 / 10.02),
        ],
        Some((10_000, 5)),
    );
    for (text, rate, p99) in [
        (brought!("ac1.json"), 92.0 / 2.02, 46.0),
        (brought!("ac2.json"), 88.0 / 2.01, 56.0),
    ] {
        has_runs(&one(text), Requests, &[rate]);
        has_runs(&one(text), P99, &[p99]);
    }
    claims(
        &one(brought!("oha-trailing.json")),
        &[
            (P50, 410.0),
            (P95, 790.0),
            (P999, 1100.0),
            (Requests, 100.0),
        ],
        Some((500, 0)),
    );
    claims(
        &one(brought!("k6-handle-s.json")),
        // `summaryTimeUnit` concerns only the text of k6.
        &[
            (Mean, 4.1),
            (P50, 3.2),
            (P95, 9.0),
            (Max, 30.0),
            (Requests, 9.8),
        ],
        Some((98, 2)),
    );
}

#[test]
fn texts_of_h2load_keep_their_values() {
    let h2load = one(brought!("h2load.txt"));
    claims(
        &h2load,
        &[
            (Min, 0.097),
            (Max, 3.21),
            (Mean, 0.412),
            (Stdev, 0.2),
            (Requests, 1000.0 / 0.05211),
        ],
        Some((1000, 0)),
    );
    is_noted(&h2load, "h2c");
    claims(
        &one(brought!("h2load-real.txt")),
        &[
            (Min, 1.3),
            (Max, 47.99),
            (Mean, 39.99),
            (Requests, 20.0 / 0.40072),
        ],
        Some((20, 0)),
    );
}

#[test]
fn the_summary_of_bombardier_below_its_first_line_is_read() {
    claims(
        &one(brought!("bombardier-intro.json")),
        &[
            (Mean, 0.9005),
            (P50, 0.8),
            (P99, 3.0),
            (Max, 9.0),
            (Requests, 500.0),
        ],
        Some((1000, 0)),
    );
}

#[test]
fn the_versions_of_artillery_agree_in_meaning() {
    for text in [
        brought!("artillery-v15.json"),
        brought!("artillery-v17.json"),
    ] {
        claims(
            &one(text),
            &[
                (Min, 76.2),
                (P50, 106.2),
                (P95, 308.5),
                (P99, 363.3),
                (Requests, 1.01 * 32.0 / 60.0),
            ],
            Some((32, 28)),
        );
    }
    claims(
        &one(brought!("artillery-v2-beta.json")),
        &[
            (Min, 1.0),
            (P50, 2.0),
            (P75, 3.0),
            (P99, 5.0),
            (Requests, 5.0),
        ],
        Some((10, 0)),
    );
    // Four of ten answers missed their expectation. They are not four more requests.
    claims(
        &one(brought!("artillery-expect.json")),
        &[(Mean, 2.5), (P99, 5.0), (Requests, 3.0)],
        Some((6, 4)),
    );
}

#[test]
fn locust_has_rows_by_name() {
    let run = one(brought!("locust-new.csv"));
    claims(
        &run,
        &[
            (Mean, 15.2),
            (P50, 12.0),
            (P90, 25.0),
            (P999, 190.0),
            (Max, 200.0),
            (Requests, 99.099),
        ],
        Some((990, 10)),
    );
    // The file of one request has no rows by name, because they would repeat the total.
    assert!(run.parts.is_empty());
    let more = brought!("locust-new.csv").replace(
        "\n,Aggregated",
        "\nPOST,/b,500,0,22,25.2,6,300,120,50.0,0.0,22,24,26,28,35,50,90,110,290,300,300\n,Aggregated",
    );
    let run = one(&more);
    let names: Vec<&str> = run.parts.keys().map(String::as_str).collect();
    assert_eq!(names, ["GET /a", "POST /b"]);
    claims(
        &run.parts["POST /b"],
        &[(Mean, 25.2), (P99, 110.0), (Requests, 50.0)],
        Some((500, 0)),
    );
    claims(
        &one(brought!("locust-old.csv")),
        &[(Mean, 15.0), (P50, 12.0), (Max, 200.0), (Requests, 99.099)],
        Some((990, 10)),
    );
    let history = brought!("locust-history.csv");
    let run = one(history);
    claims(&run, &[(Mean, 1.0), (P50, 1.0), (Max, 1.0)], Some((10, 0)));
    assert!(
        !run.figures.contains_key(&P95),
        "those are of the last seconds"
    );
    let later = "1700000010,10,,Aggregated,10,0,1,1,1,1,1,1,1,1,1,1,1,90,9,2,3,1,7,120\n";
    let run = one(&format!("{}\n{later}", history.trim_end()));
    claims(
        &run,
        &[(Mean, 3.0), (Max, 7.0), (Requests, 8.1)],
        Some((81, 9)),
    );
    let restarted = later
        .replace(",90,9,", ",5,0,")
        .replace("1700000010", "1700000020");
    let found = refusal(&format!("{}\n{later}{restarted}", history.trim_end()));
    assert!(found.contains("the file holds two runs"), "{found}");
}

#[test]
fn jmeter_is_read_from_its_samples_and_its_reports() {
    for text in [
        brought!("jmeter.jtl").to_owned(),
        brought!("jmeter.jtl").replace(',', ";"),
    ] {
        let run = one(&text);
        claims(
            &run,
            &[
                (Min, 12.0),
                (Mean, 13.5),
                (Max, 15.0),
                (Requests, 1.0 / 0.115),
            ],
            Some((1, 1)),
        );
    }
    claims(
        &one(brought!("jmeter.xml.jtl")),
        &[(Mean, 12.0)],
        Some((1, 0)),
    );
    for text in [
        brought!("jmeter-statistics.json"),
        brought!("jmeter-aggregate.csv"),
    ] {
        let run = one(text);
        claims(
            &run,
            &[
                (P50, 12.0),
                (P90, 25.0),
                (P95, 40.0),
                (P99, 100.0),
                (Max, 200.0),
                (Requests, 99.099),
            ],
            Some((990, 10)),
        );
    }
    has_runs(&one(brought!("jmeter-aggregate.csv")), Mean, &[15.0]);
}

#[test]
fn labels_of_jmeter_are_rows_and_transactions_do_not_count_twice() {
    let text = "timeStamp,elapsed,label,responseCode,responseMessage,success\n\
        1700000000000,10,\"list, all\",200,OK,true\n\
        1700000000010,20,item,200,OK,true\n\
        1700000000030,30,item,500,Error,false\n\
        1700000000000,60,page,200,\"Number of samples in transaction : 3, number of failing samples : 1\",false\n";
    let run = one(text);
    claims(
        &run,
        &[(Mean, 20.0), (Max, 30.0), (Requests, 2.0 / 0.060)],
        Some((2, 1)),
    );
    let names: Vec<&str> = run.parts.keys().map(String::as_str).collect();
    assert_eq!(names, ["item", "list, all", "page"]);
    claims(&run.parts["item"], &[(Mean, 25.0)], Some((1, 1)));
    claims(&run.parts["page"], &[(Mean, 60.0)], Some((0, 1)));
    is_noted(&run, "1 samples of transactions repeat other samples");
    let xml = r#"<?xml version="1.0"?><testResults version="1.2">
        <httpSample t="10" ts="1700000000000" s="true" lb="a &amp; b" rc="200" rm="OK">
          <httpSample t="4" ts="1700000000000" s="true" lb="part" rc="302"/><responseData class="x">&lt;p></responseData>
        </httpSample>
        <sample t="30" ts="1700000000070" s="false" lb="c" rc="500" rm="Error"/></testResults>"#;
    let run = one(xml);
    claims(&run, &[(Mean, 20.0), (Requests, 10.0)], Some((1, 1)));
    assert_eq!(run.parts.keys().collect::<Vec<_>>(), ["a & b", "c"]);
    let cut = refusal(&xml[..xml.len() - 20]);
    assert!(cut.contains("this is XML results of JMeter, but"), "{cut}");
    let appended =
        "timeStamp,elapsed,label,success\n1700000000000,10,a,true\n1700000000020,10,a,true\n\
        1700000060000,10,a,true\n1700000060020,10,a,true\n"
            .to_owned()
            + &"1700000060040,10,a,true\n".repeat(40);
    is_noted(&one(&appended), "no request was on its way for 60 s");
    let without_result = one("timeStamp,elapsed,label\n1700000000000,10,a\n1700000000500,500,a\n");
    assert_eq!(
        (without_result.succeeded, without_result.failed),
        (None, None)
    );
    has_runs(&without_result, Requests, &[2.0]);
    is_noted(&without_result, "does not contain failures");
}

#[test]
fn tools_of_gateways_are_read() {
    let fortio = one(brought!("fortio.json"));
    claims(
        &fortio,
        &[
            (Min, 1.0),
            (Mean, 2.4),
            (Stdev, 1.0),
            (P50, 2.0),
            (P99, 10.0),
            (Max, 20.0),
            (Requests, 100.0),
        ],
        Some((500, 0)),
    );
    assert_eq!(fortio.offered_per_s, Some(100.0));
    assert_eq!(fortio.conditions[&Condition::Connections], "4");
    let flat_out =
        brought!("fortio.json").replace("\"RequestedQPS\":\"100\"", "\"RequestedQPS\":\"max\"");
    assert!(one(&flat_out).is_closed_loop);
    let failed =
        brought!("fortio.json").replace("{\"200\":500}", "{\"200\":490,\"503\":7,\"-1\":3}");
    assert_eq!(one(&failed).failed, Some(10));
    let nighthawk = one(brought!("nighthawk.json"));
    claims(
        &nighthawk,
        &[
            (Min, 0.1),
            (Mean, 0.25),
            (Stdev, 0.1),
            (P50, 0.2),
            (Max, 5.0),
            (Requests, 100.0),
        ],
        Some((500, 0)),
    );
    assert_eq!(nighthawk.offered_per_s, Some(100.0));
    let ghz = one(brought!("ghz.json"));
    claims(
        &ghz,
        &[
            (Min, 0.5),
            (Mean, 1.5),
            (P50, 1.4),
            (P95, 3.0),
            (P99, 8.0),
            (Max, 9.0),
            (Requests, 200.0 / 0.305),
        ],
        Some((200, 0)),
    );
    assert_eq!(ghz.subject.as_deref(), Some("shop.Items.List"));
    let csv = one(brought!("ghz-csv.csv"));
    claims(&csv, &[(Min, 1.5), (Mean, 2.0), (Max, 2.5)], Some((2, 0)));
    assert!(!csv.figures.contains_key(&Requests));
    claims(
        &one(brought!("hyperfoil.json")),
        &[(Min, 0.1), (Mean, 0.2), (P50, 0.18), (P99, 0.5), (Max, 0.9)],
        // It has no counts by status.
        None,
    );
    let siege = one(brought!("siege.json"));
    claims(&siege, &[(Max, 20.0), (Requests, 500.0)], Some((1000, 0)));
    assert!(
        !siege.figures.contains_key(&Mean),
        "0.00 s is not a mean of zero"
    );
    is_noted(&siege, "rounds to 10 ms");
}

#[test]
fn the_text_of_ghz_is_not_that_of_hey() {
    let text = "\nSummary:\n  Count:\t200\n  Total:\t181.57 ms\n  Slowest:\t69.60 ms\n  Fastest:\t26.09 ms\n  \
        Average:\t32.01 ms\n  Requests/sec:\t1101.53\n\nResponse time histogram:\n  26.093 [1]\t|\n\n\
        Latency distribution:\n  10 % in 28.48 ms \n  50 % in 31.33 ms \n  99 % in 40.02 ms \n\n\
        Status code distribution:\n  [OK]         195 responses   \n  [Internal]   5 responses   \n\n\
        Error distribution:\n  [5]   rpc error: code = Internal\n";
    let run = one(text);
    assert_eq!(run.shape, "ghz");
    claims(
        &run,
        &[
            (Min, 26.09),
            (Mean, 32.01),
            (P50, 31.33),
            (P99, 40.02),
            (Max, 69.6),
            (Requests, 195.0 / 0.18157),
        ],
        Some((195, 5)),
    );
}

#[test]
fn gatling_is_read_from_its_log_and_its_statistics() {
    let log = one(brought!("gatling-simulation.log"));
    claims(&log, &[(Mean, 12.0), (Requests, 1.0 / 0.012)], Some((1, 0)));
    let more = "RUN\tsim.Basic\tbasic\t1700000000000\t \t3.9.5\n\
        REQUEST\t\tlist\t1700000000000\t1700000000010\tOK\t \n\
        REQUEST\tgroup\titem\t1700000000010\t1700000000100\tKO\tstatus 500\n";
    let run = one(more);
    claims(&run, &[(Mean, 50.0), (Requests, 10.0)], Some((1, 1)));
    assert_eq!(run.parts.keys().collect::<Vec<_>>(), ["item", "list"]);
    let stats = |name: &str, mean: u32| {
        format!(
            r#"{{"name":"{name}","numberOfRequests":{{"total":"100","ok":"98","ko":"2"}},
            "minResponseTime":{{"total":"1","ok":"1","ko":"-"}},"maxResponseTime":{{"total":90,"ok":90,"ko":9}},
            "meanResponseTime":{{"total":{mean},"ok":10,"ko":9}},"standardDeviation":{{"total":3,"ok":3,"ko":0}},
            "percentiles1":{{"total":8,"ok":8,"ko":9}},"percentiles2":{{"total":12,"ok":12,"ko":9}},
            "percentiles3":{{"total":40,"ok":40,"ko":9}},"percentiles4":{{"total":80,"ok":80,"ko":9}},
            "meanNumberOfRequestsPerSecond":{{"total":10,"ok":9.8,"ko":0.2}}}}"#
        )
    };
    let expected = [
        (Min, 1.0),
        (Mean, 11.0),
        (P50, 8.0),
        (P75, 12.0),
        (P95, 40.0),
        (P99, 80.0),
        (Requests, 9.8),
    ];
    claims(&one(&stats("All Requests", 11)), &expected, Some((98, 2)));
    let part = |name: &str, mean| {
        format!(
            r#""{name}":{{"type":"REQUEST","name":"{name}","stats":{}}}"#,
            stats(name, mean)
        )
    };
    let tree = format!(
        r#"{{"type":"GROUP","name":"All Requests","stats":{},"contents":{{{},
        "g":{{"type":"GROUP","name":"g","stats":{},"contents":{{{}}}}}}}}}"#,
        stats("All Requests", 11),
        part("a", 7),
        stats("g", 5),
        part("b", 9),
    );
    let run = one(&tree);
    claims(&run, &expected, Some((98, 2)));
    assert_eq!(run.parts.keys().collect::<Vec<_>>(), ["a", "g / b"]);
    has_runs(&run.parts["g / b"], Mean, &[9.0]);
}

#[test]
fn the_table_of_oha_has_exact_percentiles() {
    claims(
        &one(brought!("oha.csv")),
        &[
            (Min, 2.2),
            (P50, 3.2),
            (Max, 4.2),
            (Mean, 3.2),
            (Requests, 2.0 / 0.00832),
        ],
        Some((2, 1)),
    );
}

#[test]
fn a_test_of_grpc_has_unknown_failures() {
    let run = one(brought!("k6-grpc.json"));
    claims(
        &run,
        &[(Mean, 2.0), (P50, 1.8), (P95, 4.0), (Max, 9.0)],
        None,
    );
    assert_eq!(run.failed, None);
    is_noted(&run, "rate and failures are unknown");
    // Without the metric of failures, they are unknown and not 0.
    let text = brought!("../k6-export.json");
    let mut tree: Value = serde_json::from_str(text).unwrap();
    tree["metrics"]
        .as_object_mut()
        .unwrap()
        .remove("http_req_failed");
    let run = one(&tree.to_string());
    assert_eq!((run.succeeded, run.failed), (None, None));
    is_noted(&run, "does not contain failures");
}

#[test]
fn names_of_k6_are_rows() {
    let point = |metric: &str, value: f64, name: &str, second: u32| {
        format!(
            r#"{{"metric":"{metric}","type":"Point","data":{{"time":"2026-11-21T14:21:{second}Z","value":{value},"tags":{{"name":"{name}","method":"GET"}}}}}}"#
        )
    };
    let request = |took: f64, name: &str, failed: f64, second: u32| {
        [
            point("http_reqs", 1.0, name, second),
            point("http_req_duration", took, name, second),
            point("http_req_failed", failed, name, second),
        ]
        .join("\n")
    };
    let text = [
        request(10.0, "list", 0.0, 10),
        request(30.0, "list", 1.0, 12),
        request(50.0, "http://x/items", 0.0, 14),
    ]
    .join("\n");
    let run = one(&text);
    claims(&run, &[(Mean, 30.0), (Requests, 0.5)], Some((2, 1)));
    assert_eq!(
        run.parts.keys().collect::<Vec<_>>(),
        ["GET http://x/items", "list"]
    );
    claims(
        &run.parts["list"],
        &[(Mean, 20.0), (Requests, 0.25)],
        Some((1, 1)),
    );
    let summary = r#"{"metrics":{"http_reqs":{"count":10,"rate":1},"http_req_failed":{"value":0},
        "http_req_duration":{"avg":2.0},"http_req_duration{name:list}":{"avg":3.0},
        "http_req_duration{expected_response:true}":{"avg":2.0}}}"#;
    let run = one(summary);
    assert_eq!(run.parts.keys().collect::<Vec<_>>(), ["list"]);
    has_runs(&run.parts["list"], Mean, &[3.0]);
}

#[test]
fn too_many_names_are_ids_and_no_rows() {
    let rows = (0..300).map(|id| format!("170000000{id:04},10,GET /{id},200,true\n"));
    let text = format!(
        "timeStamp,elapsed,label,responseCode,success\n{}",
        rows.collect::<String>()
    );
    let run = one(&text);
    assert_eq!((run.succeeded, run.parts.len()), (Some(300), 0));
    is_noted(&run, "more than 200 names");
}

#[test]
fn a_unit_that_the_file_does_not_name_comes_from_the_user() {
    let assumed = one(brought!("hdr-us.hgrm"));
    has_runs(&assumed, P50, &[310.0]);
    is_noted(&assumed, "names no unit and is read in milliseconds");
    let named = read_in(brought!("hdr-us.hgrm"), Some(1.0))
        .unwrap()
        .remove(0);
    claims(
        &named,
        &[
            (P50, 0.31),
            (P99, 0.9),
            (Mean, 0.33),
            (Stdev, 0.12),
            (Max, 1.5),
        ],
        None,
    );
    assert!(named.is_unit_open && !named.notes.join(" ").contains("milliseconds"));
    let found = refusal(brought!("wrk2-json.json"));
    assert!(
        found.contains("its latencies have no unit. Name it with `--unit us`"),
        "{found}"
    );
    let script = read_in(brought!("wrk2-json.json"), Some(1e3))
        .unwrap()
        .remove(0);
    claims(&script, &[(P50, 1.1), (P99, 5.0), (Requests, 1000.0)], None);
    // A file with a unit ignores the unit of the user.
    let vegeta = read_in(brought!("../vegeta.hdrplot"), Some(1.0))
        .unwrap()
        .remove(0);
    assert!(!vegeta.is_unit_open);
    has_runs(&vegeta, P50, &[2.810_332]);
}

#[test]
fn files_that_are_no_result_are_named() {
    for (text, advice) in [
        (brought!("ab.html"), "run ab without -w"),
        (
            brought!("github-action-benchmark.json"),
            "github-action-benchmark",
        ),
        (brought!("vegeta-hist.txt"), "vegeta report -type=json"),
    ] {
        let found = refusal(text);
        assert!(found.contains(advice), "{found}");
    }
}
