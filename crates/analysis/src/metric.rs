//! Computation of each metric from one measurement.

use model::{Metric, micros};
use recording::{EventsRecord, Hdr, RoundRecord, SystemUsage, TimesRecord, float};
use stats::Histogram;

/// The figure of one measurement, or `None` if it was not measured. `latency` is the decoded histogram of
/// this measurement.
pub(crate) fn figure(metric: Metric, round: &RoundRecord, latency: &Histogram) -> Option<f64> {
    let elapsed_s = float(round.elapsed_us) / 1e6;
    let per_second = |amount: f64| (elapsed_s > 0.0).then(|| amount / elapsed_s);
    let answered = round.answered();
    let per_request = |amount: u64| (answered > 0).then(|| float(amount) / float(answered));
    // Bytes include all requests, and the time includes only counted requests.
    let counted_share = float(round.outcomes.completed()) / float(answered.max(1));
    let of_systems = |of: fn(&SystemUsage) -> Option<u64>| sum(round.systems.iter().map(of));
    let us = |nanoseconds: f64| nanoseconds / 1e3;
    let quantile = |share: f64| latency.quantile_ns(share).map(float).map(us);
    match metric {
        Metric::Requests => per_second(float(round.outcomes.passed)),
        Metric::Min => latency.min_ns().map(float).map(us),
        Metric::Mean => round.mean_ns(latency).map(us),
        Metric::Typical => round.typical_ns(latency).map(us),
        Metric::SlowQuarter => round.slow_quarter_ns(latency).map(us),
        Metric::Stdev => latency.stddev_ns().map(us),
        Metric::P50 => quantile(0.5),
        Metric::P75 => quantile(0.75),
        Metric::P90 => quantile(0.9),
        Metric::P95 => quantile(0.95),
        Metric::P99 => quantile(0.99),
        Metric::P999 => quantile(0.999),
        Metric::Max => latency.max_ns().map(float).map(us),
        Metric::Throughput => {
            per_second(float(round.bytes_in + round.bytes_out) * counted_share / 1e6)
        }
        Metric::Cpu => per_request(of_systems(|system| system.cpu_us)?),
        Metric::Memory => of_systems(|system| system.memory_peak_bytes).map(float),
        Metric::ContextSwitches => per_request(of_systems(|system| system.context_switches)?),
        Metric::ContextSwitchesInvoluntary => {
            per_request(of_systems(|system| system.context_switches_involuntary)?)
        }
        Metric::WaitedForCpu => per_request(of_systems(|system| system.waited_for_cpu_us)?),
        // With slices, the generator's cost cannot be separated by variant.
        Metric::GeneratorCpu if round.slices.is_some() => None,
        Metric::GeneratorCpu => per_request(micros(round.generator.cpu)),
        Metric::Failures => round.outcomes.failed_share(),
        Metric::BodyBytes => {
            let (bytes, responses) = (round.bytes_in_bodies?, round.outcomes.completed());
            (responses > 0).then(|| float(bytes) / float(responses))
        }
        Metric::BodyRate => per_second(float(round.bytes_in_bodies?) / 1e6),
        Metric::FirstByte | Metric::FirstByteMean | Metric::FirstByteP50 | Metric::FirstByteP99 => {
            of_times(metric, round.first_byte.as_ref()?)
        }
        Metric::FirstEvent
        | Metric::FirstEventMean
        | Metric::FirstEventP50
        | Metric::FirstEventP99 => of_times(metric, &round.events.as_ref()?.first),
        Metric::EventTime
        | Metric::EventGap
        | Metric::EventGapP50
        | Metric::EventGapP99
        | Metric::EventGapP999
        | Metric::Events
        | Metric::Delivery
        | Metric::DeliveryP50
        | Metric::DeliveryP99
        | Metric::RoundTrip
        | Metric::RoundTripP50
        | Metric::RoundTripP99 => of_events(metric, round.events.as_ref()?),
    }
}

/// A figure of first bytes or first events, in microseconds.
fn of_times(metric: Metric, times: &TimesRecord) -> Option<f64> {
    let histogram = times.ns_hdr.histogram();
    let quantile = |share: f64| histogram.quantile_ns(share).map(float);
    let ns = match metric {
        Metric::FirstByteP50 | Metric::FirstEventP50 => quantile(0.5),
        Metric::FirstByteP99 | Metric::FirstEventP99 => quantile(0.99),
        Metric::FirstByteMean | Metric::FirstEventMean => {
            let exact = times.means.map(|means| means.mean_ns);
            exact.or_else(|| histogram.mean_ns())
        }
        _ => {
            let exact = times.means.map(|means| means.typical_ns);
            exact.or_else(|| histogram.trimmed_mean_ns(Histogram::TYPICAL_SHARE))
        }
    };
    ns.map(|ns| ns / 1e3)
}

/// A figure of the events of streams: microseconds, or events per stream.
fn of_events(metric: Metric, events: &EventsRecord) -> Option<f64> {
    let quantile = |hdr: &Hdr, share: f64| hdr.histogram().quantile_ns(share).map(float);
    let delivery = || events.delivery.as_ref();
    let round_trips = || events.round_trips.as_ref();
    let ns = match metric {
        Metric::EventTime => events.mean_event_ns(),
        Metric::EventGap => events.mean_gap_ns(),
        Metric::EventGapP50 => quantile(&events.gaps_ns_hdr, 0.5),
        Metric::EventGapP99 => quantile(&events.gaps_ns_hdr, 0.99),
        Metric::EventGapP999 => quantile(&events.gaps_ns_hdr, 0.999),
        Metric::Delivery => delivery()?.mean_ns(),
        Metric::DeliveryP50 => quantile(&delivery()?.ns_hdr, 0.5),
        Metric::DeliveryP99 => quantile(&delivery()?.ns_hdr, 0.99),
        Metric::RoundTrip => round_trips()?.mean_ns(),
        Metric::RoundTripP50 => quantile(&round_trips()?.ns_hdr, 0.5),
        Metric::RoundTripP99 => quantile(&round_trips()?.ns_hdr, 0.99),
        _ => return events.events_per_stream(),
    };
    ns.map(|ns| ns / 1e3)
}

/// A sum over systems. `None` if one part is unknown, and without systems.
pub(crate) fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let parts: Vec<u64> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.iter().sum())
}

#[cfg(test)]
mod tests {
    use model::Outcomes;
    use recording::sample::SampleRun;
    use recording::{Hdr, LatencyMeans, RequestRecord, SlicesRecord};

    use super::*;

    /// A round of one variant.
    fn round_of(sample: SampleRun) -> RoundRecord {
        let sample = sample.rounds(1).variant("a", 700.0);
        sample.build().rounds.remove(0)
    }

    #[test]
    fn the_typical_latency_is_the_mean_of_the_fastest_three_quarters() {
        let mut round = round_of(SampleRun::closed());
        let mut latency = Histogram::new();
        // 10.5 of 14 requests: five of 1 us, five of 2 us, and half of one of 1.2 ms.
        latency.record_n_ns(1_000, 5);
        latency.record_n_ns(2_000, 5);
        latency.record_n_ns(1_200_000, 4);
        // Failed requests have no latency.
        round.outcomes.failed.timeout = 7;
        let found = figure(Metric::Typical, &round, &latency).unwrap();
        let expected = (5.0 + 10.0 + 0.5 * 1_200.0) / 10.5;
        assert!((found / expected - 1.0).abs() < 5e-4, "{found}");
        assert_eq!(figure(Metric::Typical, &round, &Histogram::new()), None);
    }

    #[test]
    fn the_slow_quarter_is_the_mean_of_the_slowest_requests() {
        let mut round = round_of(SampleRun::closed());
        round.latency_means = Some(LatencyMeans {
            mean_ns: 3_000_000.0,
            typical_ns: 1_000_000.0,
        });
        // A quarter of 9 ms, and three quarters of 1 ms: 3 ms on average.
        let latency = round.latency_ns_hdr.histogram();
        let found = figure(Metric::SlowQuarter, &round, &latency).unwrap();
        assert!((found - 9_000.0).abs() < 1e-9, "{found}");
        round.latency_means = None;
        let mut latency = Histogram::new();
        latency.record_n_ns(1_000_000, 75);
        latency.record_n_ns(9_000_000, 25);
        let found = figure(Metric::SlowQuarter, &round, &latency).unwrap();
        assert!((found / 9_000.0 - 1.0).abs() < 1e-3, "{found}");
        assert_eq!(figure(Metric::SlowQuarter, &round, &Histogram::new()), None);
    }

    #[test]
    fn of_several_requests_each_has_its_own_typical_latency() {
        let mut round = round_of(SampleRun::side_by_side());
        let mut apart = |planned: u64, us: u64, slow: u64| {
            let mut own = Histogram::new();
            own.record_n_ns(us * 1_000, 3);
            own.record_n_ns(us * 1_000_000, slow);
            round.requests.push(RequestRecord {
                planned,
                latency_ns_hdr: Hdr::of(&own),
            });
            own
        };
        // The heavy request is a quarter of all requests. Over all requests, the typical latency would cut
        // only this request.
        let mut all = apart(3, 100, 1);
        all.add(&apart(1, 900, 1));
        let found = figure(Metric::Typical, &round, &all).unwrap();
        let expected = (3.0 * 100.0 + 900.0) / 4.0;
        assert!((found / expected - 1.0).abs() < 5e-4, "{found}");
        // If no response of one request counts, the figure comes from the remaining requests.
        round.requests[1].latency_ns_hdr = Hdr::of(&Histogram::new());
        let found = figure(Metric::Typical, &round, &all).unwrap();
        assert!((found / 100.0 - 1.0).abs() < 5e-4, "{found}");
    }

    #[test]
    fn means_from_the_times_of_requests_win_over_those_of_buckets() {
        let mut round = round_of(SampleRun::side_by_side());
        let latency = round.latency_ns_hdr.histogram();
        let of = |round: &RoundRecord| {
            [Metric::Mean, Metric::Typical].map(|metric| figure(metric, round, &latency))
        };
        let rounded = of(&round);
        assert!(rounded.iter().all(Option::is_some));
        round.latency_means = Some(LatencyMeans {
            mean_ns: 400_060_000.0,
            typical_ns: 400_030_500.0,
        });
        assert_eq!(of(&round), [Some(400_060.0), Some(400_030.5)]);
    }

    #[test]
    fn in_slices_cost_is_for_all_requests_and_rates_are_for_those_that_count() {
        let mut round = round_of(SampleRun::closed());
        let of = |metric, round: &RoundRecord| {
            figure(metric, round, &round.latency_ns_hdr.histogram()).unwrap_or(f64::NAN)
        };
        let whole =
            [Metric::Requests, Metric::Cpu, Metric::Throughput].map(|metric| of(metric, &round));
        // An equal number of requests is discarded, and two variants had the load in turns.
        let discarded = Outcomes {
            passed: round.outcomes.passed,
            ..Outcomes::default()
        };
        round.slices = Some(SlicesRecord {
            length_us: 300_000,
            uncounted_us: 150_000,
            gap_us: 10_000,
            took_us: round.elapsed_us * 4,
            discarded,
        });
        let [requests, cpu, throughput] = whole;
        assert!((of(Metric::Requests, &round) - requests).abs() < 1e-9);
        assert!((of(Metric::Cpu, &round) - cpu / 2.0).abs() < 1e-9);
        assert!((of(Metric::Throughput, &round) - throughput / 2.0).abs() < 1e-9);
        assert!(of(Metric::GeneratorCpu, &round).is_nan(), "not told apart");
        // The generator's work covers the whole load.
        let starved = |round: &RoundRecord| round.starved_share().unwrap_or(f64::NAN);
        let in_slices = starved(&round);
        round.slices = None;
        assert!((in_slices - starved(&round) / 4.0).abs() < 1e-9);
    }
}
