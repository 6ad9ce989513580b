//! Services that are slower than the gap to the next request. Their requests overlap, and the difference must
//! be found nevertheless. Null servers with a known delay are compared by `weigh ab`, as a user would do it.

use std::fmt::Display;

use e2e::{Run, Server, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

/// Number of runs of one comparison, so that a test ends within 40 s on undisturbed cores.
const RUNS: usize = 2;

/// Tolerated distance of the truth from the interval, as a share of the baseline. A response is some tens of
/// microseconds late if its server wakes late.
const TOLERANCE: f64 = 0.01;

/// Two null servers, each with a delay of its own.
struct Pair {
    a: Server,
    b: Server,
    /// Delays of both servers, in microseconds.
    delays_us: [f64; 2],
}

/// The true difference in the unit of the headline.
struct Truth {
    headline: &'static str,
    difference: f64,
    tolerance: f64,
    /// Bounds of the two figures. Responses take at least the delay, so a latency is no smaller and a rate no
    /// larger.
    bounds: [f64; 2],
}

impl Pair {
    fn of(a_us: u32, b_us: u32) -> Pair {
        let server = |us: u32| {
            let delay = format!("{us}us");
            Server::of(&weigh(), &["null-server", "--delay", &delay])
        };
        Pair {
            a: server(a_us),
            b: server(b_us),
            delays_us: [f64::from(a_us), f64::from(b_us)],
        }
    }

    /// Compares the two, and returns the JSON output.
    fn compare(&self, flags: &[&str]) -> Value {
        let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
        let url = |server: &Server| format!("http://{}/", server.address());
        let output = weigh_command()
            .current_dir(folder.path())
            .args(["ab", &url(&self.a), &url(&self.b)])
            .args(["-z", "3s", "--format", "json"])
            .args(flags)
            .output()
            .expect("weigh starts");
        let run = Run::of(output);
        serde_json::from_str(&run.answer()).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    /// The truth in an open loop: each request takes longer by the difference of the delays.
    fn open(&self, _: &Value) -> Truth {
        let [a, b] = self.delays_us;
        Truth {
            headline: "latency_us_typical",
            difference: b - a,
            tolerance: a * TOLERANCE,
            bounds: self.delays_us,
        }
    }

    /// The truth in a closed loop with one connection: the time from response to response grows by the
    /// difference of the delays. The rest of that time, which the generator needs, comes from the baseline.
    fn closed(&self, summary: &Value) -> Truth {
        let [a, b] = self.delays_us;
        let rate = summary["variants"][0]["metrics"]["requests_per_s"]["value"].as_f64();
        let rate = rate.unwrap_or(1e6 / a);
        Truth {
            headline: "requests_per_s",
            difference: 1e6 / (1e6 / rate + b - a) - rate,
            tolerance: rate * TOLERANCE,
            bounds: [1e6 / a, 1e6 / b],
        }
    }

    /// Returns the mistake in a summary, if there is one.
    fn mistake(summary: &Value, truth: &Truth) -> Option<String> {
        let [baseline, variant] = [0, 1].map(|index| &summary["variants"][index]);
        let metrics = [baseline, variant].map(|row| &row["metrics"][truth.headline]);
        let said = |why: &dyn Display| {
            let verdict = &variant["verdict_text"];
            Some(format!("{why}: {verdict}, {}", variant["in_words"]))
        };
        if summary["headline"] != truth.headline {
            return said(&format!("the headline is {}", summary["headline"]));
        }
        let state = &variant["verdict"]["state"];
        if state != "slower" {
            return said(&format!("the verdict is {state} and not slower"));
        }
        for (row, bound) in metrics.iter().zip(truth.bounds) {
            let Some(value) = row["value"].as_f64() else {
                return said(&"a variant has no figure");
            };
            let is_rate = truth.headline == "requests_per_s";
            let is_possible = if is_rate {
                value <= bound * (1.0 + TOLERANCE)
            } else {
                value >= bound * (1.0 - TOLERANCE)
            };
            if !is_possible {
                return said(&format!("{value} is impossible beside {bound}"));
            }
        }
        let overhead = &metrics[1]["overhead"];
        let end = |key: &str| overhead[key].as_f64();
        let interval = end("difference_low").zip(end("difference_high"));
        let Some((low, high)) = interval else {
            return said(&"there is no interval");
        };
        let (least, most) = (low - truth.tolerance, high + truth.tolerance);
        if (least..=most).contains(&truth.difference) {
            return None;
        }
        said(&format!(
            "the true {:.1} is not within {low:.1} to {high:.1}",
            truth.difference
        ))
    }

    /// Claims that at least one of a few runs finds the truth. A run that the machine disturbed is no
    /// evidence.
    #[track_caller]
    fn is_right(&self, flags: &[&str], truth: fn(&Pair, &Value) -> Truth) {
        let (mut mistakes, mut disturbed) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let answer = self.compare(flags);
            let summary = &answer["summary"];
            match Pair::mistake(summary, &truth(self, summary)) {
                None => return judged::ran(),
                Some(mistake) if is_disturbed(summary) => disturbed.push(mistake),
                Some(mistake) => mistakes.push(mistake),
            }
        }
        assert!(mistakes.is_empty(), "{mistakes:#?}");
        judged::not_run(format!("{}: {disturbed:?}", e2e::MACHINE_UNFIT));
    }
}

/// Share of the cores that other programs may use. With a larger share, they determine an interval of 3 s.
const OTHERS_MAX: f64 = 0.25;

/// True if the machine gave its processors to other programs. A verdict withheld by another check is a
/// mistake on any machine.
fn is_disturbed(summary: &Value) -> bool {
    let variants = summary["variants"].as_array().into_iter().flatten();
    let checks: Vec<&Value> = variants
        .flat_map(|row| row["checks"].as_array().into_iter().flatten())
        .collect();
    let failed = checks.iter().filter(|check| check["state"] == "failed");
    let mut failed = failed.map(|check| e2e::MACHINE_CHECKS.iter().any(|it| check["name"] == *it));
    if let Some(is_machine) = failed.next() {
        return is_machine && failed.all(|it| it);
    }
    checks.iter().any(|check| {
        let used = check["figure"].as_f64();
        check["name"] == "machine-load" && used.is_some_and(|share| share > OTHERS_MAX)
    })
}

const OPEN: [&str; 2] = ["-r", "100"];
const CLOSED: [&str; 2] = ["-c", "1"];

#[test]
fn three_milliseconds_against_a_tenth_more_in_an_open_loop() {
    Pair::of(3_000, 3_100).is_right(&OPEN, Pair::open);
}

#[test]
fn three_milliseconds_against_a_tenth_more_in_a_closed_loop() {
    Pair::of(3_000, 3_100).is_right(&CLOSED, Pair::closed);
}

#[test]
fn a_service_that_is_slower_than_the_gap_has_a_verdict_in_an_open_loop() {
    Pair::of(12_000, 15_000).is_right(&OPEN, Pair::open);
}

#[test]
fn a_service_that_is_slower_than_the_gap_has_a_verdict_in_a_closed_loop() {
    Pair::of(12_000, 15_000).is_right(&CLOSED, Pair::closed);
}

#[test]
fn a_service_of_several_gaps_has_a_verdict_in_an_open_loop() {
    Pair::of(45_000, 50_000).is_right(&OPEN, Pair::open);
}

#[test]
fn a_service_of_several_gaps_has_a_verdict_in_a_closed_loop() {
    Pair::of(45_000, 50_000).is_right(&CLOSED, Pair::closed);
}
