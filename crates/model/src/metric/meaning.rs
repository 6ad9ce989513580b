//! The meaning of each metric, as reports and the reference explain it.

use super::Metric;

impl Metric {
    /// The meaning in one to three sentences.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Requests => "Passed answers per second.",
            Self::Min => "The fastest request of a round.",
            Self::Mean => {
                "The average over the requests of a round. A few very slow requests move it."
            }
            Self::Typical => {
                "The mean of the fastest three quarters of a round's requests. It is the latency of \
                 a request without disturbance."
            }
            Self::SlowQuarter => {
                "The mean of the slowest quarter of a round's requests. It shows a cost that few \
                 requests pay."
            }
            Self::Stdev => "Standard deviation: the typical distance of values from their mean.",
            Self::P50 => "The median: half of the requests were faster.",
            Self::P75 => "Three of four requests were faster.",
            Self::P90 => "Nine of ten requests were faster.",
            Self::P95 => "19 of 20 requests were faster.",
            Self::P99 => "99 of 100 requests were faster.",
            Self::P999 => "999 of 1,000 requests were faster.",
            Self::Max => {
                "The slowest request of a typical round, or of all rounds if p99 is of all rounds."
            }
            Self::Throughput => "Bytes of requests and responses per second, in 10^6 bytes.",
            Self::Cpu => "Processor time of all systems of the variant for each answer.",
            Self::Memory => "The sum of the peaks of all systems of the variant.",
            Self::ContextSwitches => {
                "Times that a thread of the systems gave up its core to wait, for each answer."
            }
            Self::ContextSwitchesInvoluntary => {
                "Times that the kernel took the core from a thread of the systems, for each answer."
            }
            Self::WaitedForCpu => {
                "Time that threads of the systems were ready and waited for a core, for each answer."
            }
            Self::GeneratorCpu => {
                "Processor time of the program that sends the requests, for each answer."
            }
            Self::Failures => "Share of the requests that failed.",
        }
    }
}
