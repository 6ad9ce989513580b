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
            streamed => streamed.meaning_of_stream(),
        }
    }

    /// The meaning of a metric of first bytes or of streams.
    const fn meaning_of_stream(self) -> &'static str {
        match self {
            Self::FirstByte => {
                "The time from the due time of a request to the first byte of its response, over the fastest three quarters of a round's requests."
            }
            Self::FirstByteMean => {
                "The average time from the due time of a request to the first byte of its response."
            }
            Self::FirstByteP50 => "Half of the responses began within this time.",
            Self::FirstByteP99 => "99 of 100 responses began within this time.",
            Self::BodyBytes => "Bytes of the body of a response, without framing.",
            Self::BodyRate => "Bytes of the bodies of responses per second, in 10^6 bytes.",
            Self::FirstEvent => {
                "The time from the due time of a request to the first event of its stream, over the fastest three quarters of a round's streams."
            }
            Self::FirstEventMean => {
                "The average time from the due time of a request to the first event of its stream."
            }
            Self::FirstEventP50 => "Half of the streams had their first event within this time.",
            Self::FirstEventP99 => "99 of 100 streams had their first event within this time.",
            Self::EventTime => {
                "The average time from the due time of a stream to each of its events. It grows with each delay of an event."
            }
            Self::EventGap => "The average time between two consecutive events of a stream.",
            Self::EventGapP50 => "Half of the gaps between two events were shorter.",
            Self::EventGapP99 => "99 of 100 gaps between two events were shorter.",
            Self::EventGapP999 => "999 of 1,000 gaps between two events were shorter.",
            Self::Events => "The average number of events of a stream.",
            Self::Delivery => {
                "The average time from the sending of an event by its publisher to its arrival. The publisher writes the time into the event."
            }
            Self::DeliveryP50 => {
                "Half of the events arrived within this time after their publisher sent them."
            }
            Self::DeliveryP99 => {
                "99 of 100 events arrived within this time after their publisher sent them."
            }
            Self::RoundTrip => {
                "The average time from a message to its reply on the same connection."
            }
            Self::RoundTripP50 => "Half of the messages had their reply within this time.",
            Self::RoundTripP99 => "99 of 100 messages had their reply within this time.",
            _ => unreachable!(),
        }
    }
}
