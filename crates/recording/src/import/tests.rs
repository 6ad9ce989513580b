//! Tests with result files of every tool, and with their pitfalls.
//!
//! The tools wrote the files of ab, wrk, hey, autocannon, Artillery, hyperfine and k6 (k6 1.8.1, ab 2.3, wrk
//! 4.1, hyperfine 1.15). The tests of each tool state this. The files of vegeta, wrk2, oha and bombardier,
//! and `ab-length.txt`, were written by hand after their documentation.

use super::*;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../samples/", $name))
    };
}

/// Reads a file that contains one run.
pub(super) fn one(text: &str) -> ForeignRun {
    let mut runs = read(text).unwrap();
    assert_eq!(runs.len(), 1, "{runs:#?}");
    runs.remove(0)
}

/// Checks figures, in milliseconds or in the metric's unit, and counts.
pub(super) fn claims(run: &ForeignRun, figures: &[(Metric, f64)], counts: Option<(u64, u64)>) {
    for (metric, expected) in figures {
        let values = run.figures.get(metric);
        let found = values.map(|values| metric.unit().shown(values[0]));
        let is_near = found.is_some_and(|found| (found - expected).abs() <= expected.abs() * 1e-4);
        assert!(
            is_near,
            "{}: {metric:?} {found:?}, not {expected}",
            run.shape
        );
    }
    assert_eq!(run.succeeded.zip(run.failed), counts, "{}", run.shape);
}

pub(super) fn is_noted(run: &ForeignRun, words: &str) {
    let notes = run.notes.join("\n");
    assert!(notes.contains(words), "no `{words}` in\n{notes}");
}

use Metric::{Cpu, Max, Mean, Min, P50, P75, P90, P95, P99, P999, Requests, Stdev};

#[test]
fn the_three_summaries_of_k6_agree_in_meaning() {
    let run = one(sample!("k6-export.json"));
    assert_eq!(run.shape, "k6 --summary-export");
    claims(
        &run,
        &[
            (Mean, 4.013),
            (P50, 3.8298),
            (P99, 11.4383),
            (P999, 29.4539),
            (Requests, 2403.576),
        ],
        Some((7224, 0)),
    );
    let run = one(sample!("k6-handle.json"));
    assert_eq!(run.shape, "k6 handleSummary");
    claims(
        &run,
        &[(Mean, 3.95393), (P95, 6.98378), (Requests, 2441.653)],
        Some((7342, 0)),
    );
    let run = one(sample!("k6-machine.json"));
    assert_eq!(run.shape, "k6 --new-machine-readable-summary");
    // The 144 refused requests of 7,219 are not successes, and this kind of file has no rate of successes.
    claims(
        &run,
        &[
            (Mean, 4.02233),
            (P90, 6.21581),
            (P95, 7.51883),
            (Requests, 7075.0 / 3.002_97),
        ],
        Some((7075, 144)),
    );
    assert!(!run.figures.contains_key(&P99));
    is_noted(&run, "drops p99");
    is_noted(&run, "144 k6 checks failed");
}

#[test]
fn a_crossed_threshold_of_k6_is_named_whichever_way_it_is_written() {
    // `true` in one file means `ok: false` in the other. p(95)<2000 held in both.
    for text in [sample!("k6-export.json"), sample!("k6-handle.json")] {
        let run = one(text);
        is_noted(&run, "crossed threshold: http_req_duration: p(99)<1");
        assert!(
            !run.notes.join("\n").contains("p(95)<2000"),
            "{:?}",
            run.notes
        );
    }
}

#[test]
fn arrivals_that_k6_dropped_are_noted() {
    let text = sample!("k6-export.json").replacen(
        "\"vus_max\"",
        "\"dropped_iterations\": {\"count\": 1200, \"rate\": 40}, \"vus_max\"",
        1,
    );
    is_noted(&one(&text), "k6 dropped 1,200 arrivals");
}

#[test]
fn points_of_k6_give_exact_quantiles() {
    let run = one(sample!("k6-points.json"));
    assert_eq!(run.shape, "k6 --out json");
    let durations: Vec<f64> = sample!("k6-points.json")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["metric"] == "http_req_duration")
        .filter_map(|line| line["data"]["value"].as_f64())
        .collect();
    assert!(durations.len() > 20);
    let max = durations.iter().copied().fold(0.0, f64::max);
    let mean = durations.iter().sum::<f64>() / durations.len() as f64;
    claims(
        &run,
        &[(Max, max), (Mean, mean)],
        Some((durations.len() as u64, 0)),
    );
    assert!(run.figures[&Requests][0] > 100.0, "{run:#?}");
}

#[test]
fn vegeta_counts_nanoseconds_and_its_text_has_units() {
    let run = one(sample!("vegeta.json"));
    claims(
        &run,
        &[
            (Min, 0.40211),
            (Mean, 3.004_115),
            (P50, 2.810_332),
            (P99, 12.030_99),
            (Requests, 98.0229),
        ],
        Some((2940, 60)),
    );
    is_noted(&run, "t-digest");
    is_noted(&run, "503 Service Unavailable");
    let run = one(sample!("vegeta.txt"));
    // A maximum of 1.02 s must not become 1.02 ms.
    claims(
        &run,
        &[
            (Min, 0.40211),
            (P95, 6.12),
            (Max, 1020.0),
            (Requests, 98.0229),
        ],
        Some((2940, 60)),
    );
    let run = one(sample!("vegeta.hdrplot"));
    // If there is no row at 99 %, the next higher row is used, never a lower one.
    claims(
        &run,
        &[
            (P50, 2.810_332),
            (P99, 12.030_99),
            (P999, 30.1),
            (Max, 31.220_101),
        ],
        None,
    );
}

#[test]
fn wrk_has_units_and_counts_errors_apart() {
    let run = one(sample!("wrk.txt"));
    claims(
        &run,
        &[
            (Mean, 3.39),
            (Stdev, 1.68),
            (Max, 17.5),
            (P50, 3.13),
            (P99, 8.71),
            (Requests, 9013.0 / 3.01),
        ],
        Some((9013, 0)),
    );
    assert!(run.is_closed_loop);
    is_noted(&run, "did not measure");
    let run = one(sample!("wrk-bad.txt"));
    claims(
        &run,
        &[(Mean, 3.35), (Requests, 5905.0 / 2.0)],
        Some((5905, 120)),
    );
    is_noted(&run, "--latency");
}

#[test]
fn wrk2_means_its_first_list_and_throws_away_its_first_seconds() {
    let run = one(sample!("wrk2.txt"));
    assert_eq!(run.shape, "wrk2");
    claims(
        &run,
        &[
            (P50, 1.09),
            (P90, 1.81),
            (P99, 2.77),
            (P999, 5.10),
            (Max, 1020.0),
            (Requests, 2000.0 * 0.999_70 / 1.000_333 * 1.000_3),
        ],
        Some((60_000, 26)),
    );
    is_noted(&run, "wrk2 discards its first 10 s");
    let table = one(sample!("table.hgrm"));
    claims(
        &table,
        &[(P50, 1.09), (Max, 1020.0), (Mean, 1.14), (Stdev, 0.52)],
        None,
    );
}

#[test]
fn every_answer_is_a_success_to_oha_and_not_to_us() {
    let run = one(sample!("oha.json"));
    claims(
        &run,
        &[
            (P50, 2.8),
            (P99, 12.0),
            (P999, 30.1),
            (Mean, 3.01),
            (Requests, 3290.0),
        ],
        Some((32_900, 300)),
    );
    is_noted(&run, "whatever its status");
    is_noted(&run, "10 requests that were in flight");
}

#[test]
fn the_text_is_not_taken_for_that_of_hey_and_has_its_own_units() {
    for text in [
        sample!("oha.txt").to_owned(),
        // Newer versions choose a unit for each time.
        sample!("oha.txt")
            .replace("0.0028 sec", "2.8000 ms")
            .replace("0.0004 sec", "400.0000 us"),
    ] {
        let run = one(&text);
        assert_eq!(run.shape, "oha");
        claims(
            &run,
            &[
                (Min, 0.4),
                (Mean, 3.0),
                (P50, 2.8),
                (P99, 12.0),
                (P999, 30.1),
                (Max, 1020.0),
                (Requests, 32_900.0 / 10.0021),
            ],
            Some((32_900, 300)),
        );
        is_noted(&run, "10 requests that were in flight");
        is_noted(&run, "whatever its status");
    }
}

#[test]
fn bombardier_counts_microseconds_and_its_deviation_is_left_out() {
    let run = one(sample!("bombardier.json"));
    claims(
        &run,
        &[
            (Mean, 3.3305),
            (P50, 3.1),
            (P99, 9.1),
            (Max, 102.0),
            (Requests, 2900.0),
        ],
        Some((29_000, 1000)),
    );
    let text = one(sample!("bombardier.txt"));
    claims(
        &text,
        &[
            (Mean, 3.33),
            (P50, 3.1),
            (P99, 9.1),
            (Max, 1020.0),
            (Requests, 2900.0),
        ],
        Some((29_000, 1000)),
    );
    for run in [run, text] {
        assert!(!run.figures.contains_key(&Stdev));
        is_noted(&run, "standard deviations wrongly");
    }
}

#[test]
fn refused_requests_are_complete_to_ab_and_no_success_to_us() {
    let run = one(sample!("ab.txt"));
    claims(
        &run,
        &[(P50, 5.0), (P75, 7.0), (Max, 20.0)],
        Some((2000, 0)),
    );
    is_noted(&run, "whole milliseconds");
    let run = one(sample!("ab-bad.txt"));
    claims(
        &run,
        &[(Mean, 4.054), (Max, 11.0), (Requests, 980.0 / 0.405)],
        Some((980, 20)),
    );
    let run = one(sample!("ab-length.txt"));
    // 300 responses of another length are responses. 10 broken ones and 40 of another status are not
    // successes.
    claims(&run, &[(P99, 15.0), (Requests, 1975.0)], Some((3950, 50)));
    is_noted(&run, "300 answers differed in length");
    let csv = one(sample!("ab.csv"));
    claims(
        &csv,
        &[(Min, 0.412), (P50, 3.902), (P99, 9.002), (Max, 12.53)],
        None,
    );
}

#[test]
fn hey_and_autocannon_count_by_status() {
    let run = one(sample!("hey.txt"));
    claims(
        &run,
        &[
            (Mean, 4.2),
            (P50, 3.9),
            (P99, 10.2),
            (Requests, 4697.0 / 2.0045),
        ],
        Some((4697, 96)),
    );
    let run = one(sample!("autocannon-bad.json"));
    claims(
        &run,
        &[
            (P50, 3.0),
            (P99, 7.0),
            (P999, 32.0),
            (Requests, 5577.0 / 2.02),
        ],
        Some((5577, 114)),
    );
    assert!(!run.figures.contains_key(&P95), "97.5 % is not 95 %");
    assert!(
        one(sample!("autocannon.json"))
            .notes
            .join(" ")
            .contains("whole milliseconds")
    );
}

#[test]
fn the_response_time_of_artillery_ends_with_the_first_byte() {
    let run = one(sample!("artillery.json"));
    claims(
        &run,
        &[
            (Mean, 3.6),
            (P50, 3.0),
            (P99, 7.9),
            (Requests, 80.0 / 3.959),
        ],
        Some((80, 0)),
    );
    is_noted(&run, "first byte");
    let run = one(sample!("artillery-extended.json"));
    claims(&run, &[(Mean, 4.9), (P50, 5.0), (P99, 10.1)], Some((80, 0)));
    is_noted(&run, "`http.total`");
}

#[test]
fn hyperfine_keeps_every_run_of_every_command() {
    let runs = read(sample!("hyperfine.json")).unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].subject.as_deref(), Some("sleep 0.012"));
    assert_eq!(runs[0].figures[&Mean].len(), 12);
    claims(
        &runs[0],
        &[(Mean, 12.077_859), (P50, 12.187_278), (Cpu, 1686.08)],
        None,
    );
}

#[test]
fn a_file_that_lacks_something_names_it() {
    for (text, missing) in [
        (
            r#"{"metrics": {"http_reqs": {"count": 1}}}"#,
            "this is k6 --summary-export, but it has no `http_req_duration`",
        ),
        (
            r#"{"latencies": {"99th": 1}, "status_codes": {}}"#,
            "`requests` is not a number",
        ),
        (
            "Thread Stats\n  Latency  1ms 1ms 2ms\nRequests/sec: 3\n",
            "it has no `requests in`",
        ),
        (
            r#"{"type":"Metric","data":{"name":"x"},"metric":"x"}"#,
            "no point of `http_req_duration`",
        ),
        (
            r#"{"results": [{"command": "true"}]}"#,
            "`true` has no `mean`",
        ),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains(missing), "{text}: {message}");
    }
}

mod robustness {
    use proptest::prelude::*;

    const ALL: [&str; 15] = [
        sample!("k6-run.txt"),
        sample!("k6-points.csv"),
        sample!("vegeta-hits.json"),
        sample!("vegeta-hits.csv"),
        sample!("hey.csv"),
        sample!("ab.tsv"),
        sample!("oha.txt"),
        sample!("k6-export.json"),
        sample!("vegeta.txt"),
        sample!("wrk2.txt"),
        sample!("ab-length.txt"),
        sample!("bombardier.txt"),
        sample!("hey.txt"),
        sample!("table.hgrm"),
        sample!("hyperfine.json"),
    ];

    proptest! {
        #[test]
        fn a_cut_or_mutilated_file_never_breaks_a_reader(
            index in 0..ALL.len(),
            cut in 0.0..1.0f64,
            word in "[0-9a-z.:,%\\[\\] -]{0,8}",
        ) {
            let text = ALL[index];
            let at = (0..=text.len())
                .rev()
                .find(|at| *at as f64 <= cut * text.len() as f64 && text.is_char_boundary(*at))
                .unwrap();
            let _ = super::read(&text[..at]);
            let _ = super::read(&format!("{}{word}{}", &text[..at], &text[at..]));
        }
    }
}
