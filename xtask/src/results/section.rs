//! One recording as a section.
//!
//! The layout matches the table that the labs reproduce: a row a variant, with the difference from the
//! baseline in brackets. After it follow the same differences with their intervals, the circumstances, and
//! the profile of the processor time.

use std::fmt::Write as _;

use serde_json::Value;

const COLUMNS: [(&str, &str); 7] = [
    ("Min", "latency_us_min"),
    ("Mean", "latency_us_mean"),
    ("p50", "latency_us_p50"),
    ("p90", "latency_us_p90"),
    ("p95", "latency_us_p95"),
    ("p99", "latency_us_p99"),
    ("Max", "latency_us_max"),
];

/// Differences that are shown with their intervals, their divisors, and their decimals.
const INTERVALS: [(&str, &str, f64, usize); 5] = [
    ("Mean (ms)", "latency_us_mean", 1e3, 3),
    ("p50 (ms)", "latency_us_p50", 1e3, 3),
    ("p99 (ms)", "latency_us_p99", 1e3, 3),
    ("CPU (us/request)", "cpu_us_per_request", 1.0, 0),
    ("Memory (MiB)", "memory_peak_bytes", 1_048_576.0, 1),
];

/// Differences of streamed events, like those above. A recording without events has no columns for them.
const EVENTS: [(&str, &str, f64, usize); 3] = [
    ("First event (ms)", "first_event_us_mean", 1e3, 3),
    ("Gap (ms)", "event_gap_us_mean", 1e3, 3),
    ("Delivery (ms)", "delivery_us_mean", 1e3, 3),
];

/// Main metric of an open loop side by side: the mean of the fastest three quarters of the requests.
const TYPICAL: &str = "latency_us_typical";

/// Main metric of a closed loop and of a search.
const REQUESTS: &str = "requests_per_s";

/// Number of functions in the table of a profile.
const HOTTEST: usize = 10;

pub(super) fn rendered(name: &str, report: &Value, recording: &Value) -> String {
    let summary = &report["summary"];
    let rows = summary["variants"].as_array().into_iter().flatten();
    let rows: Vec<&Value> = rows.filter(|row| is_measured(row)).collect();
    let question = summary["question"].as_str().unwrap_or_default();
    let mut out = format!("## {name}\n\n**{question}**\n\n");
    // In a closed loop the server determines the rate. In an open loop the plan does.
    let counts = summary["headline"] == REQUESTS;
    // The latencies of a search belong to its last steps, so they have no meaning.
    let is_capacity = summary["is_capacity"] == true;
    let is_typical = summary["headline"] == TYPICAL;
    let columns: Vec<(&str, &str)> = if is_capacity {
        Vec::new()
    } else {
        let decides = is_typical.then_some(("Typical", TYPICAL));
        decides.into_iter().chain(COLUMNS).collect()
    };
    let mut titles: Vec<String> = counts
        .then(|| "Requests/s".to_owned())
        .into_iter()
        .collect();
    titles.extend(columns.iter().map(|(title, _)| format!("{title} (ms)")));
    out += &head("Type", &titles);
    for row in &rows {
        let requests = counts.then(|| rate(&row["metrics"][REQUESTS]));
        let times = columns.iter().map(|(_, metric)| figure(&rows, row, metric));
        out += &line(row, &requests.into_iter().chain(times).collect::<Vec<_>>());
    }
    let confidence = summary["confidence_each"].as_f64().unwrap_or_default() * 100.0;
    let _ = write!(
        out,
        "\nDifferences from the baseline, each with its {confidence:.2} % interval, so that all \
         verdicts hold together with {:.0} %:\n\n",
        summary["confidence"].as_f64().unwrap_or_default() * 100.0
    );
    let decides = is_typical.then_some(("Typical (ms)", TYPICAL, 1e3, 3));
    let intervals: Vec<_> = decides
        .iter()
        .chain(EVENTS.iter().filter(|(_, metric, ..)| has(&rows, metric)))
        .chain(&INTERVALS)
        .filter(|(_, metric, ..)| !(columns.is_empty() && metric.starts_with("latency")))
        .collect();
    let mut titles: Vec<String> = counts
        .then(|| "Requests/s (ratio)".to_owned())
        .into_iter()
        .collect();
    titles.extend(intervals.iter().map(|(title, ..)| (*title).to_owned()));
    titles.push("Verdict".to_owned());
    out += &head("Type", &titles);
    for row in rows.iter().filter(|row| row["is_baseline"] != true) {
        let requests = counts.then(|| ratio(&row["metrics"][REQUESTS]["overhead"]));
        let differences = intervals.iter().map(|(_, metric, unit, decimals)| {
            interval(&row["metrics"][metric]["overhead"], *unit, *decimals)
        });
        let mut cells: Vec<String> = requests.into_iter().chain(differences).collect();
        cells.push(row["verdict_text"].as_str().unwrap_or_default().to_owned());
        out += &line(row, &cells);
    }
    out + "\n" + &circumstances(name, report, recording) + &hottest(recording)
}

/// True if a variant has this metric.
fn has(rows: &[&Value], metric: &str) -> bool {
    rows.iter().any(|row| row["metrics"][metric].is_object())
}

/// A rate with its ratio, such as `4,321<br>(x 10.2)`.
fn rate(metric: &Value) -> String {
    let Some(value) = metric["value"].as_f64() else {
        return "–".to_owned();
    };
    let value = format!("{value:.0}");
    match metric["overhead"]["ratio"].as_f64() {
        Some(ratio) => format!("{value}<br>(x {ratio:.2})"),
        None => value,
    }
}

/// A ratio with its interval, such as `10.2 (9.8 to 10.6)`.
fn ratio(overhead: &Value) -> String {
    let figure = |key: &str| overhead[key].as_f64().map(|value| format!("{value:.2}"));
    let Some(ratio) = figure("ratio") else {
        return "–".to_owned();
    };
    match (figure("ratio_low"), figure("ratio_high")) {
        (Some(low), Some(high)) => format!("{ratio} ({low} to {high})"),
        _ => ratio,
    }
}

/// The hottest functions, if the run was sampled, as shares of the samples of each system.
fn hottest(recording: &Value) -> String {
    let mut out = String::new();
    for profile in recording["profiles"].as_array().into_iter().flatten() {
        let samples = profile["samples"].as_f64().unwrap_or_default();
        let functions = profile["hottest"].as_array().map_or(&[][..], Vec::as_slice);
        if samples <= 0.0 || functions.is_empty() {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let _ = write!(
            out,
            "\n`{}` of {}, {samples} samples: functions by the share of samples in which they were \
             at work themselves, and with what they had called:\n\n\
             | Function | own % | total % |\n| --- | ---: | ---: |\n",
            text(&profile["system"]),
            text(&profile["variant"]),
        );
        for function in functions.iter().take(HOTTEST) {
            let share = |key: &str| function[key].as_f64().unwrap_or_default() / samples * 100.0;
            let _ = writeln!(
                out,
                "| `{}` | {:.1} | {:.1} |",
                text(&function["function"]).replace('|', "\\|"),
                share("own_samples"),
                share("total_samples")
            );
        }
    }
    out
}

fn head(first: &str, titles: &[String]) -> String {
    let rule = vec!["---"; titles.len() + 1].join(" | ");
    format!("| {first} | {} |\n| {rule} |\n", titles.join(" | "))
}

fn line(row: &Value, cells: &[String]) -> String {
    let name = row["name"].as_str().unwrap_or_default();
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// A latency with its difference, in milliseconds, such as `0.69<br>(+0.21)`.
fn figure(rows: &[&Value], row: &Value, metric: &str) -> String {
    let Some(value) = level(rows, row, metric, rows.len()) else {
        return "–".to_owned();
    };
    let value = format!("{:.2}", value / 1e3);
    match row["metrics"][metric]["overhead"]["difference"].as_f64() {
        Some(difference) => format!("{value}<br>({:+.2})", difference / 1e3),
        None => value,
    }
}

/// The level that a reader gets by adding the baseline's level and the difference, like in the report. `steps`
/// limits the length of a chain of baselines.
fn level(rows: &[&Value], row: &Value, metric: &str, steps: usize) -> Option<f64> {
    let own = &row["metrics"][metric];
    let sum = || {
        let difference = own["overhead"]["difference"].as_f64()?;
        let mut others = rows.iter().filter(|other| other["name"] != row["name"]);
        let baseline = others.find(|other| other["name"] == row["baseline"])?;
        Some(level(rows, baseline, metric, steps.checked_sub(1)?)? + difference)
    };
    let sum = sum().filter(|sum| *sum > 0.0);
    sum.or_else(|| own["value"].as_f64())
}

/// A difference with its interval, such as `+0.212 (+0.190 to +0.240)`.
fn interval(overhead: &Value, unit: f64, decimals: usize) -> String {
    let figure = |key: &str| {
        let value = overhead[key].as_f64()?;
        Some(format!("{:+.decimals$}", value / unit))
    };
    let Some(difference) = figure("difference") else {
        return "–".to_owned();
    };
    match (figure("difference_low"), figure("difference_high")) {
        (Some(low), Some(high)) => format!("{difference} ({low} to {high})"),
        _ => difference,
    }
}

/// The date, the machine, the duration and the limits.
fn circumstances(name: &str, report: &Value, recording: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let environment = &report["environment"];
    let command: Vec<&str> = recording["command"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let command = command.get(1..).unwrap_or_default().join(" ");
    let mut out = format!(
        "- {} rounds, recorded {} by `weigh {command}`: `records/{name}.json`\n\
         - {}, {} cores, {}, {}\n",
        report["summary"]["rounds_measured"],
        text(&report["started_at"]),
        text(&environment["cpu_model"]),
        environment["cores"],
        text(&environment["os"]),
        text(&environment["kernel"]),
    );
    for (system, limits) in limits(recording) {
        let _ = writeln!(out, "- limits of `{system}`, as read back: {limits}");
    }
    let rows = report["summary"]["variants"].as_array();
    out + &remarks(rows.map_or(&[][..], Vec::as_slice))
}

/// Remarks on single rows, one line for each sentence: the reason for a missing figure, and checks that are
/// not in order. Rows side by side often share a sentence.
fn remarks(rows: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let mut remarks: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let unmeasured = (!is_measured(row)).then(|| format!(": {}", text(&row["verdict_text"])));
        let checks = row["checks"].as_array().into_iter().flatten();
        let findings = checks.filter(|check| check["state"] != "ok").map(|check| {
            let [name, state, finding] = ["name", "state", "text"].map(|key| text(&check[key]));
            format!(", check {name} {state}: {finding}")
        });
        for sentence in unmeasured.into_iter().chain(findings) {
            let name = format!("`{}`", text(&row["name"]));
            match remarks.iter_mut().find(|(known, _)| *known == sentence) {
                Some((_, names)) => names.push(name),
                None => remarks.push((sentence, vec![name])),
            }
        }
    }
    let of = |names: &[String]| match names.len() {
        2 if rows.len() == 2 => "both".to_owned(),
        count if count > 2 && count == rows.len() => format!("all {count}"),
        _ => names.join(", "),
    };
    let lines = remarks
        .iter()
        .map(|(sentence, names)| format!("- {}{sentence}\n", of(names)));
    lines.collect()
}

/// True if a row has a figure at all. If not, the reason is printed below the tables.
fn is_measured(row: &Value) -> bool {
    let metrics = row["metrics"].as_object();
    metrics.is_some_and(|metrics| metrics.values().any(|metric| metric["value"].is_number()))
}

/// The limits of each system. Every variant has the same limits.
fn limits(recording: &Value) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let variants = recording["variants"].as_array().into_iter().flatten();
    let systems = variants.filter_map(|variant| variant["systems"].as_array());
    for system in systems
        .flatten()
        .filter(|system| system["limits_by"].is_string())
    {
        let name = system["name"].as_str().unwrap_or_default();
        let enforced = &system["limits_enforced"];
        let by = system["limits_by"].as_str().unwrap_or_default();
        let words = match (enforced["cpus"].as_f64(), enforced["memory_bytes"].as_f64()) {
            (None, None) => format!("none: {by}"),
            (cpus, memory) => {
                let cpus = cpus.map(|cpus| format!("{cpus} CPU"));
                let memory = memory.map(|bytes| format!("{:.0} MiB", bytes / 1_048_576.0));
                let both: Vec<String> = cpus.into_iter().chain(memory).collect();
                format!("{} ({by})", both.join(", "))
            }
        };
        if !found
            .iter()
            .any(|known| *known == (name.to_owned(), words.clone()))
        {
            found.push((name.to_owned(), words));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_has_the_table_of_the_seed_then_intervals_then_circumstances() {
        let metric = |value: f64| json!({"value": value});
        let compared = json!({
            "value": 917.0,
            "overhead": {"difference": 220.0, "difference_low": 190.0, "difference_high": 251.0},
        });
        let stolen = json!({"name": "steal", "state": "weak", "text": "stolen"});
        let report = json!({
            "started_at": "2026-11-21T10:00:00Z",
            "environment": {"cpu_model": "C", "cores": 2, "os": "O", "kernel": "K"},
            "summary": {
                "question": "What does it cost?", "confidence": 0.95, "confidence_each": 0.975,
                "rounds_measured": 12, "headline": "latency_us_mean",
                "variants": [
                    {"name": "baseline", "is_baseline": true, "metrics": {"latency_us_mean": metric(680.0)}, "checks": [stolen]},
                    {"name": "go", "baseline": "baseline", "metrics": {"latency_us_mean": compared}, "verdict_text": "0.22 ms slower",
                     "checks": [{"name": "lateness", "state": "weak", "text": "late"}, stolen]},
                    {"name": "java", "metrics": {}, "verdict_text": "NOT RUN: not installed", "checks": [stolen]},
                    {"name": "python", "metrics": {}, "verdict_text": "NOT RUN: not installed", "checks": [stolen]},
                ],
            },
        });
        let recording = json!({
            "command": ["target/release/weigh", "lab", "x"],
            "variants": [{"systems": [
                {"name": "gateway", "limits_by": "cgroup v1", "limits_enforced": {"cpus": 1.0, "memory_bytes": 1_073_741_824_u64}},
                {"name": "planets", "limits_by": null},
            ]}],
        });
        let text = rendered("x", &report, &recording);
        for part in [
            "| go | – | 0.90<br>(+0.22) | – | – | – | – | – |\n",
            "| baseline | – | 0.68 | – | – | – | – | – |\n",
            "each with its 97.50 % interval",
            "| go | +0.220 (+0.190 to +0.251) | – | – | – | – | 0.22 ms slower |\n",
            "- `java`, `python`: NOT RUN: not installed\n",
            "- 12 rounds, recorded 2026-11-21T10:00:00Z by `weigh lab x`: `records/x.json`\n",
            "- limits of `gateway`, as read back: 1 CPU, 1024 MiB (cgroup v1)\n",
            "- `go`, check lateness weak: late\n",
            "- all 4, check steal weak: stolen\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(
            !text.contains("planets") && !text.contains("| java"),
            "{text}"
        );
    }

    #[test]
    fn side_by_side_the_latency_that_decides_comes_first() {
        let compared = json!({
            "value": 312.0,
            "overhead": {"difference": 12.0, "difference_low": 10.4, "difference_high": 13.6},
        });
        let report = json!({"summary": {
            "headline": "latency_us_typical",
            "variants": [{"name": "go", "metrics": {"latency_us_typical": compared},
                          "verdict_text": "slower"}],
        }});
        let text = rendered("x", &report, &json!({}));
        assert!(
            text.contains("| Type | Typical (ms) | Min (ms) |"),
            "{text}"
        );
        assert!(
            text.contains("| go | +0.012 (+0.010 to +0.014) | – |"),
            "{text}"
        );
    }

    #[test]
    fn a_closed_loop_is_told_in_requests_and_ratios_and_a_search_in_nothing_else() {
        let requests = json!({
            "value": 4200.4,
            "overhead": {"difference": 3800.0, "ratio": 10.5, "ratio_low": 9.75, "ratio_high": 11.0},
        });
        let report = |is_capacity: bool| {
            json!({"summary": {
                "headline": "requests_per_s", "is_capacity": is_capacity,
                "variants": [{"name": "rust", "metrics": {"requests_per_s": requests}, "verdict_text": "faster"}],
            }})
        };
        let closed = rendered("x", &report(false), &json!({}));
        assert!(
            closed.contains("| Type | Requests/s | Min (ms) |"),
            "{closed}"
        );
        assert!(
            closed.contains("| rust | 4200<br>(x 10.50) | – |"),
            "{closed}"
        );
        assert!(
            closed.contains("| rust | 10.50 (9.75 to 11.00) | – |"),
            "{closed}"
        );
        let search = rendered("x", &report(true), &json!({}));
        assert!(search.contains("| Type | Requests/s |\n"), "{search}");
        assert!(!search.contains("p99"), "{search}");
    }

    #[test]
    fn a_profile_is_a_table_of_the_hottest_functions() {
        let profile = json!({"profiles": [
            {"variant": "one", "system": "limiter", "samples": 200, "hottest": [
                {"function": "a|b", "own_samples": 20, "total_samples": 150},
            ]},
            {"variant": "two", "system": "limiter", "samples": 0, "hottest": []},
        ]});
        let text = hottest(&profile);
        assert!(text.contains("`limiter` of one, 200 samples"), "{text}");
        assert!(text.contains("| `a\\|b` | 10.0 | 75.0 |\n"), "{text}");
        assert!(!text.contains("two"), "{text}");
    }
}
