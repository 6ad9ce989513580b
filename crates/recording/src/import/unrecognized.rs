//! Description of a file that no reader recognizes, with advice on the right file if possible.

use serde_json::Value;
use serde_json::error::Category;

use super::Document;

/// A kind of file that users pass by mistake: a test that recognizes it, and its description with advice.
struct Mistake {
    is_it: fn(&Document<'_>) -> bool,
    what: &'static str,
}

const MISTAKES: [Mistake; 20] = [
    Mistake {
        is_it: |document| starts(document, &["<!doctype html", "<html"]),
        what: "a page in HTML (for a report of `weigh`, give the folder or its recording.json)",
    },
    Mistake {
        is_it: |document| starts(document, &["# "]) && document.text.contains("## How to read"),
        what: "a report in Markdown (give the recording folder or its recording.json)",
    },
    Mistake {
        is_it: |document| has_text(document, &["│ Latency │", "│ Req/Sec"]),
        what: "the table of autocannon (run autocannon with --json)",
    },
    Mistake {
        is_it: |document| has_text(document, &["Summary report @", "http.response_time:"]),
        what: "the text of Artillery (run it with --output FILE)",
    },
    Mistake {
        is_it: |document| has_text(document, &["Time (mean ± σ):", "Range (min … max):"]),
        what: "the text of hyperfine (run it with --export-json FILE)",
    },
    Mistake {
        is_it: |document| starts(document, &["command,mean,stddev", "| Command | Mean"]),
        what: "a table of hyperfine (run it with --export-json FILE)",
    },
    Mistake {
        is_it: |document| document.has(&["rawData"]) && document.has(&["frameworks"]),
        what: "results of TechEmpower's toolset, which have no percentiles and are not supported",
    },
    Mistake {
        is_it: |document| has_text(document, &["This is ApacheBench", "<table"]),
        what: "the page of ab in HTML (run ab without -w)",
    },
    Mistake {
        is_it: |document| has_text(document, &["Bucket ", " Histogram"]),
        what: "the histogram of vegeta, which has no percentiles (run `vegeta report -type=json`)",
    },
    Mistake {
        is_it: |document| {
            let is_figure = |one: &Value| {
                ["name", "unit", "value"]
                    .iter()
                    .all(|key| one.get(key).is_some())
            };
            let list = document.json.as_ref().ok().and_then(Value::as_array);
            list.is_some_and(|list| !list.is_empty() && list.iter().all(is_figure))
        },
        what: "figures for github-action-benchmark, which have no failures and no load (give the file of the \
               load tool that they come from)",
    },
    Mistake {
        is_it: |document| starts(document, &["window.BENCHMARK_DATA"]),
        what: "the data of github-action-benchmark, which have no failures and no load (give the file of the \
               load tool that they come from)",
    },
    Mistake {
        is_it: |document| has_text(document, &["Histogram log format version"]),
        what: "a log of HdrHistogram (give its percentile table, which HistogramLogProcessor writes)",
    },
    Mistake {
        is_it: |document| {
            starts(document, &["test_suite,test_name,scenario"])
                || document.has(&["ScenarioStats"])
                || has_text(document, &["NBomber"])
        },
        what: "a report of NBomber, which is not supported",
    },
    Mistake {
        is_it: |document| has_text(document, &["Aggregated Function Time", "# target"]),
        what: "the text of Fortio (run it with -json FILE)",
    },
    Mistake {
        is_it: |document| has_text(document, &["Nighthawk - A layer 7"]),
        what: "the text of Nighthawk (run it with --output-format json)",
    },
    Mistake {
        is_it: |document| {
            starts(document, &["var stats = "]) || has_text(document, &["charting.gatling"])
        },
        what: "a page or a script of Gatling's report (give the stats.json beside it)",
    },
    Mistake {
        is_it: |document| {
            starts(document, &["<jmeterTestPlan"]) || has_text(document, &["<jmeterTestPlan"])
        },
        what: "a plan of JMeter (give its results: `jmeter -n -t PLAN -l results.jtl`)",
    },
    Mistake {
        is_it: |document| {
            starts(
                document,
                &[
                    "Method,Name,Error,",
                    "Count,Message,Traceback",
                    "\"Method\",\"Name\",\"Error\"",
                ],
            )
        },
        what: "Locust's table of errors (give its stats.csv)",
    },
    Mistake {
        is_it: |document| {
            document.text.contains("locust") && starts(document, &["import", "from", "#!"])
        },
        what: "a script of Locust (give its results: `locust --csv NAME` writes NAME_stats.csv)",
    },
    Mistake {
        is_it: |document| {
            document.json.is_err() && document.text.contains("\"weighbridge-recording\"")
        },
        what: "a recording of `weigh` that is cut short or broken",
    },
];

fn starts(document: &Document<'_>, starts: &[&str]) -> bool {
    let text = document.text.trim_start();
    starts.iter().any(|start| {
        text.get(..start.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(start))
    })
}

fn has_text(document: &Document<'_>, parts: &[&str]) -> bool {
    parts.iter().all(|part| document.text.contains(part))
}

/// The kind of the file, in few words.
pub(super) fn description(document: &Document<'_>) -> String {
    if let Some(mistake) = MISTAKES.iter().find(|mistake| (mistake.is_it)(document)) {
        return mistake.what.to_owned();
    }
    match &document.json {
        Ok(Value::Object(fields)) if fields.is_empty() => "an empty JSON object".to_owned(),
        Ok(Value::Object(fields)) => {
            let keys: Vec<String> = fields
                .keys()
                .take(5)
                .map(|key| format!("`{key}`"))
                .collect();
            format!("JSON with the keys {}", keys.join(", "))
        }
        Ok(_) => "JSON that is not an object".to_owned(),
        Err(error) => text(document.text, error),
    }
}

fn text(text: &str, error: &serde_json::Error) -> String {
    let Some(line) = text.lines().find(|line| !line.trim().is_empty()) else {
        return "an empty file (did the tool fail, or print to another place?)".to_owned();
    };
    if !["{", "["]
        .iter()
        .any(|start| line.trim_start().starts_with(start))
    {
        let start: String = line.trim().chars().take(40).collect();
        return format!("text that begins with `{start}`");
    }
    let (line, column) = (error.line(), error.column());
    if error.classify() == Category::Eof {
        format!("JSON that is cut short at line {line} (was the tool stopped?)")
    } else {
        format!("JSON that is broken at line {line}, column {column}")
    }
}

#[cfg(test)]
mod tests {
    use crate::import::read;

    #[test]
    fn a_file_of_no_tool_says_what_it_looks_like_and_which_tools_are_known() {
        for (text, looks) in [
            ("{\"a\": 1, \"b\": 2}", "found JSON with the keys `a`, `b`."),
            ("{}", "found an empty JSON object."),
            ("[1, 2]", "found JSON that is not an object."),
            (
                "{\n\"latencies\": {\"50th\":",
                "found JSON that is cut short at line 2 (was the tool stopped?).",
            ),
            (
                "{\"a\": 1,}",
                "found JSON that is broken at line 1, column 9",
            ),
            (
                "Dear diary,\n",
                "found text that begins with `Dear diary,`.",
            ),
            ("  \n", "found an empty file (did the tool fail"),
            ("", "found an empty file (did the tool fail"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(looks), "{text}: {message}");
            assert!(
                message.contains("Nighthawk, oha, siege, vegeta"),
                "{message}"
            );
            assert!(message.contains("`weigh compare --help`"), "{message}");
        }
    }

    #[test]
    fn a_file_that_people_give_by_mistake_says_what_to_give_instead() {
        for (text, advice) in [
            (
                "<!DOCTYPE html>\n<html>",
                "give the folder or its recording.json",
            ),
            ("# lab\n\n## How to read it\n", "a report in Markdown"),
            (
                "┌─┐\n│ Stat    │\n│ Latency │ 2 ms │\n│ Req/Sec   │ 245 │\n",
                "run autocannon with --json",
            ),
            (
                "Summary report @ 10:00:00\nhttp.response_time:\n  min: ... 1\n",
                "run it with --output FILE",
            ),
            (
                "Benchmark 1: sleep 0.01\n  Time (mean ± σ): 26.0 ms\n  Range (min … max): 11.8 ms\n",
                "run it with --export-json FILE",
            ),
            ("command,mean,stddev,median\n", "--export-json FILE"),
            (
                "Bucket           #   %       Histogram\n[0s,     2ms]    10  20.00%  ###\n",
                "run `vegeta report -type=json`",
            ),
            (
                "<p>\n This is ApacheBench, Version 2.3\n</p><table >",
                "run ab without -w",
            ),
            (
                r#"[{"name":"p99","unit":"ms","value":3.2}]"#,
                "github-action-benchmark",
            ),
            (
                "test_suite,test_name,scenario,duration\n",
                "NBomber, which is not supported",
            ),
            (
                "Fortio 1.60 running\nAggregated Function Time : count 40\n# target 50% 0.0012\n",
                "run it with -json FILE",
            ),
            (
                "Nighthawk - A layer 7 protocol benchmarking tool.\n",
                "--output-format json",
            ),
            ("var stats = {\n", "give the stats.json"),
            (
                "<?xml version=\"1.0\"?>\n<jmeterTestPlan version=\"1.2\">",
                "-l results.jtl",
            ),
            ("Method,Name,Error,Occurrences\n", "stats.csv"),
            ("window.BENCHMARK_DATA = {\n", "github-action-benchmark"),
            (
                "#[Histogram log format version 1.3]\n",
                "HistogramLogProcessor",
            ),
            ("from locust import HttpUser\n", "NAME_stats.csv"),
            (
                "{\"format\": \"weighbridge-recording\", \"method\":",
                "a recording of `weigh` that is cut short",
            ),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(advice), "{text}: {message}");
        }
    }
}
