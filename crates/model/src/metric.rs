//! List of the metrics: name, unit, direction and every word that a user may write for one.
//!
//! This is the only list. Tables, JSON, CSV, gates, `--until` and their help texts come from it.

mod meaning;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One kind of figure. Its serialized name contains the unit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Metric {
    /// Complete responses that met the expectation, per second of the measurement.
    #[serde(rename = "requests_per_s")]
    Requests,
    /// Shortest latency of a round.
    #[serde(rename = "latency_us_min")]
    Min,
    /// Mean latency over requests.
    #[serde(rename = "latency_us_mean")]
    Mean,
    /// Typical latency: the mean of the fastest three quarters of the requests of a round (a trimmed mean,
    /// cut on one side). If a round side by side sends several requests in turn, each request has its own
    /// fastest three quarters.
    #[serde(rename = "latency_us_typical")]
    Typical,
    /// Mean latency of the slowest quarter of the requests of a round, which [`Metric::Typical`] excludes.
    /// The mean of all requests is three quarters of the typical latency plus a quarter of this mean.
    #[serde(rename = "latency_us_slow_quarter")]
    SlowQuarter,
    /// Standard deviation of latency over the requests of a round.
    #[serde(rename = "latency_us_stdev")]
    Stdev,
    /// Latency that half of the requests do not exceed.
    #[serde(rename = "latency_us_p50")]
    P50,
    /// Latency that 75 % of the requests do not exceed.
    #[serde(rename = "latency_us_p75")]
    P75,
    /// Latency that 90 % of the requests do not exceed.
    #[serde(rename = "latency_us_p90")]
    P90,
    /// Latency that 95 % of the requests do not exceed.
    #[serde(rename = "latency_us_p95")]
    P95,
    /// Latency that 99 % of the requests do not exceed.
    #[serde(rename = "latency_us_p99")]
    P99,
    /// Latency that 99.9 % of the requests do not exceed.
    #[serde(rename = "latency_us_p999")]
    P999,
    /// Longest latency of a round.
    #[serde(rename = "latency_us_max")]
    Max,
    /// Bytes received and sent, in 10^6 bytes per second.
    #[serde(rename = "throughput_mb_per_s")]
    Throughput,
    /// Processor time of all systems per complete response.
    #[serde(rename = "cpu_us_per_request")]
    Cpu,
    /// Sum of the peak memory of the systems.
    #[serde(rename = "memory_peak_bytes")]
    Memory,
    /// Context switches of all systems per complete response, voluntary and involuntary.
    #[serde(rename = "context_switches_per_request")]
    ContextSwitches,
    /// Involuntary context switches of all systems per complete response: another thread took the core
    /// although this thread could have continued.
    #[serde(rename = "context_switches_involuntary_per_request")]
    ContextSwitchesInvoluntary,
    /// Time per complete response during which the systems' threads were ready to run while other threads had
    /// the cores.
    #[serde(rename = "waited_for_cpu_us_per_request")]
    WaitedForCpu,
    /// Processor time of the generator per complete response.
    #[serde(rename = "generator_cpu_us_per_request")]
    GeneratorCpu,
    /// Share of the intended sends that did not pass, 0 to 1: a wrong response, no response, or never sent.
    #[serde(rename = "failures_share")]
    Failures,
    /// Typical time to the first byte of a response, from due: the mean of the fastest three quarters.
    #[serde(rename = "first_byte_us_typical")]
    FirstByte,
    /// Mean time from due to the first byte of a response.
    #[serde(rename = "first_byte_us_mean")]
    FirstByteMean,
    /// Time to the first byte that half of the responses do not exceed.
    #[serde(rename = "first_byte_us_p50")]
    FirstByteP50,
    /// Time to the first byte that 99 % of the responses do not exceed.
    #[serde(rename = "first_byte_us_p99")]
    FirstByteP99,
    /// Bytes of bodies per complete response, without framing.
    #[serde(rename = "body_bytes_per_response")]
    BodyBytes,
    /// Bytes of bodies received, in 10^6 bytes per second.
    #[serde(rename = "body_mb_per_s")]
    BodyRate,
    /// Typical time to the first event of a stream, from due: the mean of the fastest three quarters.
    #[serde(rename = "first_event_us_typical")]
    FirstEvent,
    /// Mean time from due to the first event of a stream.
    #[serde(rename = "first_event_us_mean")]
    FirstEventMean,
    /// Time to the first event that half of the streams do not exceed.
    #[serde(rename = "first_event_us_p50")]
    FirstEventP50,
    /// Time to the first event that 99 % of the streams do not exceed.
    #[serde(rename = "first_event_us_p99")]
    FirstEventP99,
    /// Mean time from the due time of a stream to an event, over all events.
    #[serde(rename = "event_us_mean")]
    EventTime,
    /// Mean time between two consecutive events of a stream.
    #[serde(rename = "event_gap_us_mean")]
    EventGap,
    /// Time between two events that half of the gaps do not exceed.
    #[serde(rename = "event_gap_us_p50")]
    EventGapP50,
    /// Time between two events that 99 % of the gaps do not exceed.
    #[serde(rename = "event_gap_us_p99")]
    EventGapP99,
    /// Time between two events that 99.9 % of the gaps do not exceed.
    #[serde(rename = "event_gap_us_p999")]
    EventGapP999,
    /// Events per complete stream.
    #[serde(rename = "events_per_stream")]
    Events,
    /// Mean time from the publisher's time stamp in an event to its arrival.
    #[serde(rename = "delivery_us_mean")]
    Delivery,
    /// Delivery time that half of the events do not exceed.
    #[serde(rename = "delivery_us_p50")]
    DeliveryP50,
    /// Delivery time that 99 % of the events do not exceed.
    #[serde(rename = "delivery_us_p99")]
    DeliveryP99,
    /// Mean time from a message to its reply on the same connection.
    #[serde(rename = "round_trip_us_mean")]
    RoundTrip,
    /// Time to a reply that half of the messages do not exceed.
    #[serde(rename = "round_trip_us_p50")]
    RoundTripP50,
    /// Time to a reply that 99 % of the messages do not exceed.
    #[serde(rename = "round_trip_us_p99")]
    RoundTripP99,
}

/// Better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A lower value is better.
    LowerIsBetter,
    /// A higher value is better.
    HigherIsBetter,
}

/// From this level on, a report shows its latencies in milliseconds.
const MILLISECONDS_FROM_US: f64 = 1e4;

/// Unit of a metric in recordings and reports. It also defines the units that users may write for an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Recorded in microseconds, shown in milliseconds unless the report has shorter times ([`Unit::of_times`]).
    Milliseconds,
    /// Recorded and shown in microseconds.
    Microseconds,
    /// Recorded in bytes, shown in MiB.
    Mebibytes,
    /// Requests per second, shown as recorded.
    PerSecond,
    /// 10^6 bytes per second, shown as recorded.
    MegabytesPerSecond,
    /// A count per request, shown as recorded and written without a unit.
    PerRequest,
    /// A share, recorded as 0 to 1, shown and written in percent.
    Share,
}

/// A row of the list.
struct Entry {
    key: &'static str,
    /// Words that a user may write, in lower case. The first is the name.
    names: &'static [&'static str],
    label: &'static str,
    unit: Unit,
    direction: Direction,
}

impl Metric {
    /// All metrics, in the order of tables.
    pub const ALL: [Self; 43] = [
        Self::Requests,
        Self::Min,
        Self::Mean,
        Self::Typical,
        Self::SlowQuarter,
        Self::Stdev,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Throughput,
        Self::Cpu,
        Self::Memory,
        Self::ContextSwitches,
        Self::ContextSwitchesInvoluntary,
        Self::WaitedForCpu,
        Self::GeneratorCpu,
        Self::Failures,
        Self::FirstByte,
        Self::FirstByteMean,
        Self::FirstByteP50,
        Self::FirstByteP99,
        Self::BodyBytes,
        Self::BodyRate,
        Self::FirstEvent,
        Self::FirstEventMean,
        Self::FirstEventP50,
        Self::FirstEventP99,
        Self::EventTime,
        Self::EventGap,
        Self::EventGapP50,
        Self::EventGapP99,
        Self::EventGapP999,
        Self::Events,
        Self::Delivery,
        Self::DeliveryP50,
        Self::DeliveryP99,
        Self::RoundTrip,
        Self::RoundTripP50,
        Self::RoundTripP99,
    ];

    fn entry(self) -> Entry {
        use Unit::{Mebibytes, MegabytesPerSecond, Microseconds, PerRequest, PerSecond};
        match self {
            Self::Requests => Entry {
                direction: Direction::HigherIsBetter,
                ..cost(
                    "requests_per_s",
                    &["requests/s", "req/s", "requests", "rps"],
                    "requests/s",
                    PerSecond,
                )
            },
            Self::Min => latency("latency_us_min", &["min"]),
            Self::Mean => latency("latency_us_mean", &["mean"]),
            Self::Typical => latency("latency_us_typical", &["typical", "trimmed"]),
            Self::SlowQuarter => latency("latency_us_slow_quarter", &["slow-quarter"]),
            Self::Stdev => latency("latency_us_stdev", &["stdev"]),
            Self::P50 => latency("latency_us_p50", &["p50", "median"]),
            Self::P75 => latency("latency_us_p75", &["p75"]),
            Self::P90 => latency("latency_us_p90", &["p90"]),
            Self::P95 => latency("latency_us_p95", &["p95"]),
            Self::P99 => latency("latency_us_p99", &["p99"]),
            Self::P999 => latency("latency_us_p999", &["p99.9", "p999"]),
            Self::Max => latency("latency_us_max", &["max"]),
            Self::Throughput => Entry {
                direction: Direction::HigherIsBetter,
                ..cost(
                    "throughput_mb_per_s",
                    &["throughput", "mb/s"],
                    "MB/s",
                    MegabytesPerSecond,
                )
            },
            Self::Cpu => cost(
                "cpu_us_per_request",
                &["cpu"],
                "CPU us/request",
                Microseconds,
            ),
            Self::Memory => cost(
                "memory_peak_bytes",
                &["memory"],
                "peak memory MiB",
                Mebibytes,
            ),
            Self::ContextSwitches => cost(
                "context_switches_per_request",
                &["switches"],
                "context switches/request",
                PerRequest,
            ),
            Self::ContextSwitchesInvoluntary => cost(
                "context_switches_involuntary_per_request",
                &["involuntary-switches"],
                "involuntary switches/request",
                PerRequest,
            ),
            Self::WaitedForCpu => cost(
                "waited_for_cpu_us_per_request",
                &["waited-for-cpu"],
                "waited for CPU us/request",
                Microseconds,
            ),
            Self::GeneratorCpu => cost(
                "generator_cpu_us_per_request",
                &["generator-cpu"],
                "generator CPU us/request",
                Microseconds,
            ),
            other => other.entry_of_stream(),
        }
    }

    /// The row of a metric of failures, first bytes or streams.
    fn entry_of_stream(self) -> Entry {
        match self {
            Self::Failures => cost("failures_share", &["failures"], "failures %", Unit::Share),
            Self::FirstByte => time(
                "first_byte_us_typical",
                &["first-byte", "ttfb"],
                "first byte",
            ),
            Self::FirstByteMean => time(
                "first_byte_us_mean",
                &["first-byte-mean"],
                "first byte mean",
            ),
            Self::FirstByteP50 => time("first_byte_us_p50", &["first-byte-p50"], "first byte p50"),
            Self::FirstByteP99 => time("first_byte_us_p99", &["first-byte-p99"], "first byte p99"),
            Self::BodyBytes => cost(
                "body_bytes_per_response",
                &["body-bytes"],
                "body bytes/response",
                Unit::PerRequest,
            ),
            Self::BodyRate => Entry {
                direction: Direction::HigherIsBetter,
                ..cost(
                    "body_mb_per_s",
                    &["body-mb/s"],
                    "body MB/s",
                    Unit::MegabytesPerSecond,
                )
            },
            Self::FirstEvent => time("first_event_us_typical", &["first-event"], "first event"),
            Self::FirstEventMean => time(
                "first_event_us_mean",
                &["first-event-mean"],
                "first event mean",
            ),
            Self::FirstEventP50 => time(
                "first_event_us_p50",
                &["first-event-p50"],
                "first event p50",
            ),
            Self::FirstEventP99 => time(
                "first_event_us_p99",
                &["first-event-p99"],
                "first event p99",
            ),
            Self::EventTime => time("event_us_mean", &["event-time"], "event"),
            Self::EventGap => time("event_gap_us_mean", &["event-gap"], "event gap"),
            Self::EventGapP50 => time("event_gap_us_p50", &["event-gap-p50"], "event gap p50"),
            Self::EventGapP99 => time("event_gap_us_p99", &["event-gap-p99"], "event gap p99"),
            Self::EventGapP999 => time(
                "event_gap_us_p999",
                &["event-gap-p99.9", "event-gap-p999"],
                "event gap p99.9",
            ),
            Self::Events => cost(
                "events_per_stream",
                &["events"],
                "events/stream",
                Unit::PerRequest,
            ),
            Self::Delivery => time("delivery_us_mean", &["delivery"], "delivery"),
            Self::DeliveryP50 => time("delivery_us_p50", &["delivery-p50"], "delivery p50"),
            Self::DeliveryP99 => time("delivery_us_p99", &["delivery-p99"], "delivery p99"),
            Self::RoundTrip => time("round_trip_us_mean", &["round-trip"], "round trip"),
            Self::RoundTripP50 => time("round_trip_us_p50", &["round-trip-p50"], "round trip p50"),
            Self::RoundTripP99 => time("round_trip_us_p99", &["round-trip-p99"], "round trip p99"),
            _ => unreachable!("every other metric has a row in `entry`"),
        }
    }

    /// The key in JSON and CSV: the name with its unit last.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.entry().key
    }

    /// The name in help texts, which is one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().names[0]
    }

    /// Every word that a user may write for the metric, in lower case, except its [`key`](Metric::key). The
    /// first is the name.
    #[must_use]
    pub fn names(self) -> &'static [&'static str] {
        self.entry().names
    }

    /// The heading of the metric's column, without the unit.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.entry().label
    }

    /// The unit, which also decides how values are shown.
    #[must_use]
    pub fn unit(self) -> Unit {
        self.entry().unit
    }

    /// The better direction of the metric.
    #[must_use]
    pub fn direction(self) -> Direction {
        self.entry().direction
    }

    /// True for a time, a rate or processor time of the systems. If the machine is slow for a while, these
    /// change by the same factor for all variants.
    #[must_use]
    pub fn is_of_speed(self) -> bool {
        match self {
            Self::Requests
            | Self::Min
            | Self::Mean
            | Self::Typical
            | Self::SlowQuarter
            | Self::P50
            | Self::P75
            | Self::P90
            | Self::P95
            | Self::P99
            | Self::P999
            | Self::Max
            | Self::Cpu
            | Self::FirstByte
            | Self::FirstByteMean
            | Self::FirstByteP50
            | Self::FirstByteP99
            | Self::FirstEvent
            | Self::FirstEventMean
            | Self::FirstEventP50
            | Self::FirstEventP99
            | Self::Delivery
            | Self::DeliveryP50
            | Self::DeliveryP99
            | Self::RoundTrip
            | Self::RoundTripP50
            | Self::RoundTripP99 => true,
            Self::Stdev
            | Self::EventTime
            | Self::EventGap
            | Self::EventGapP50
            | Self::EventGapP99
            | Self::EventGapP999
            | Self::Throughput
            | Self::Memory
            | Self::ContextSwitches
            | Self::ContextSwitchesInvoluntary
            | Self::WaitedForCpu
            | Self::GeneratorCpu
            | Self::Failures
            | Self::BodyBytes
            | Self::BodyRate
            | Self::Events => false,
        }
    }

    /// True if a lower value is better.
    #[must_use]
    pub fn is_better_low(self) -> bool {
        self.direction() == Direction::LowerIsBetter
    }

    /// The metric with this name or key, in any case. `None` if there is no such metric.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        // All names are ASCII. A tool may write `P99` or `RPS`.
        let word = word.to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|metric| metric.key() == word || metric.names().contains(&word.as_str()))
    }

    /// The names of all metrics with commas between them, for a help text. A line has at most `width`
    /// characters. Every line but the first begins with `indent` spaces.
    #[must_use]
    pub fn list(indent: usize, width: usize) -> String {
        let mut text = String::new();
        let mut column = indent;
        for (index, metric) in Self::ALL.into_iter().enumerate() {
            let name = metric.name();
            let is_last = index + 1 == Self::ALL.len();
            let needed = name.len() + usize::from(!is_last);
            // A name that is longer than a line stands alone in it, so no line is empty.
            if column > indent && column + 1 + needed > width {
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                column = indent;
            } else if column > indent {
                text.push(' ');
                column += 1;
            }
            text.push_str(name);
            text.push_str(if is_last { "" } else { "," });
            column += needed;
        }
        text
    }
}

/// A latency. Its column has its name as the heading.
fn latency(key: &'static str, names: &'static [&'static str]) -> Entry {
    cost(key, names, names[0], Unit::Milliseconds)
}

/// A time of first bytes or of streams.
fn time(key: &'static str, names: &'static [&'static str], label: &'static str) -> Entry {
    cost(key, names, label, Unit::Milliseconds)
}

/// A metric that is better when lower.
fn cost(
    key: &'static str,
    names: &'static [&'static str],
    label: &'static str,
    unit: Unit,
) -> Entry {
    Entry {
        key,
        names,
        label,
        unit,
        direction: Direction::LowerIsBetter,
    }
}

impl Unit {
    /// Converts a recorded value to the shown unit: 1500 (us) is 1.5 (ms).
    #[must_use]
    pub fn shown(self, value: f64) -> f64 {
        match self {
            Self::Milliseconds => value / 1e3,
            Self::Mebibytes => value / (1024.0 * 1024.0),
            Self::Share => value * 100.0,
            Self::Microseconds | Self::PerSecond | Self::MegabytesPerSecond | Self::PerRequest => {
                value
            }
        }
    }

    /// The unit of all latencies of one report, from its largest level in microseconds. A report has one unit, so
    /// that its words, tables and pictures can be compared.
    #[must_use]
    pub fn of_times(level_us: f64) -> Self {
        match level_us.abs() {
            level if level >= MILLISECONDS_FROM_US => Self::Milliseconds,
            _ => Self::Microseconds,
        }
    }

    /// This unit, or `times` for a latency.
    #[must_use]
    pub fn with_times(self, times: Self) -> Self {
        match self {
            Self::Milliseconds => times,
            other => other,
        }
    }

    /// The sign after a shown value, such as `ms` or `requests/s`.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Mebibytes => "MiB",
            Self::PerSecond => "requests/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::PerRequest => "a request",
            Self::Share => "%",
        }
    }

    /// The signs that reports may show, such as `us or ms`.
    #[must_use]
    pub fn signs(self) -> &'static str {
        match self {
            Self::Milliseconds => "us or ms",
            other => other.sign(),
        }
    }

    /// The units that users may write, each with its size in the unit of the recording.
    #[must_use]
    pub fn written(self) -> &'static [(&'static str, f64)] {
        match self {
            // Both accept the same units. They differ only in how values are shown.
            Self::Milliseconds | Self::Microseconds => &[
                ("ns", 1e-3),
                ("us", 1.0),
                ("µs", 1.0),
                ("ms", 1e3),
                ("s", 1e6),
            ],
            Self::Mebibytes => &[
                ("B", 1.0),
                ("kB", 1e3),
                ("KiB", 1024.0),
                ("MB", 1e6),
                ("MiB", 1_048_576.0),
                ("GB", 1e9),
                ("GiB", 1_073_741_824.0),
            ],
            Self::PerSecond => &[("/s", 1.0), ("k/s", 1e3)],
            Self::MegabytesPerSecond => &[("MB/s", 1.0), ("kB/s", 1e-3)],
            Self::PerRequest => &[("", 1.0)],
            Self::Share => &[("%", 0.01)],
        }
    }

    /// The size of a written unit, in the unit of the recording.
    ///
    /// # Errors
    /// When the metric does not accept the unit. The error contains the expected and the found unit: ``a unit
    /// of `/s`, `k/s` after 3, found none``.
    pub fn size_of(self, written: &str, number: f64) -> Result<f64, String> {
        let units = self.written();
        let size = units.iter().find(|(name, _)| *name == written);
        size.map(|(_, size)| *size).ok_or_else(|| {
            // An empty pair of backticks would not show that the unit is missing.
            let found = if written.is_empty() { "none" } else { written };
            let known: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            match known[..] {
                [""] => format!("no unit after {number}, found {found}"),
                _ => format!(
                    "a unit of `{}` after {number}, found {found}",
                    known.join("`, `")
                ),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_serialized_name_is_the_key() {
        for metric in Metric::ALL {
            let serialized = serde_json::to_value(metric).unwrap();
            assert_eq!(serialized, metric.key());
            assert_eq!(
                serde_json::from_value::<Metric>(serialized).unwrap(),
                metric
            );
        }
    }

    #[test]
    fn every_word_means_one_metric() {
        let mut words = BTreeSet::new();
        for metric in Metric::ALL {
            for word in metric.names().iter().chain([&metric.key()]) {
                assert!(words.insert(*word), "`{word}` is the name of two metrics");
                assert_eq!(Metric::named(word), Some(metric));
                assert_eq!(Metric::named(&word.to_uppercase()), Some(metric));
            }
        }
        assert_eq!(Metric::named("p98"), None);
    }

    #[test]
    fn the_list_of_a_help_text_names_all_within_its_width() {
        let text = Metric::list(10, 60);
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        assert_eq!(names, Metric::ALL.map(Metric::name));
        for line in text.lines().skip(1) {
            assert!(line.starts_with("          ") && line.len() <= 60, "{line}");
        }
    }
}
