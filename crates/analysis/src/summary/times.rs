//! The unit of the latencies of a report.

use model::{Metric, Unit};

use super::{Meaning, Summary, VariantSummary, Verdict};

/// The latencies of a usual request.
pub(crate) const USUAL: [Metric; 3] = [Metric::Typical, Metric::Mean, Metric::P50];

/// Returns the unit for rows that are shown together. The largest latency of a usual request decides, because a
/// single slow request does not make a report slow.
pub(super) fn of(variants: &[VariantSummary]) -> Unit {
    let levels = variants
        .iter()
        .flat_map(|row| USUAL.map(|metric| row.level(metric)));
    Unit::of_times(levels.flatten().fold(0.0, f64::max))
}

/// Sets the unit of the latencies in a verdict and in its meaning.
pub(crate) fn settle(times: Unit, verdict: Option<&mut Verdict>, meaning: Option<&mut Meaning>) {
    if let Some(verdict) = verdict {
        verdict.show_times_in(times);
    }
    if let Some(meaning) = meaning {
        meaning.times = times;
    }
}

impl Summary {
    /// The unit of a metric in the reports of this summary.
    #[must_use]
    pub fn unit(&self, metric: Metric) -> Unit {
        metric.unit().with_times(self.times)
    }

    /// Sets the unit of all latencies. Pages that show several summaries need one unit.
    pub fn show_times_in(&mut self, times: Unit) {
        self.times = times;
        for row in &mut self.variants {
            row.times = times;
            settle(times, Some(&mut row.verdict), row.meaning.as_mut());
        }
    }
}

impl VariantSummary {
    /// The unit of a metric in the reports of this row.
    #[must_use]
    pub fn unit(&self, metric: Metric) -> Unit {
        metric.unit().with_times(self.times)
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    fn unit_of(us: [f64; 2]) -> Unit {
        let [one, other] = us;
        let recording = SampleRun::side_by_side()
            .variant("one", one)
            .variant("other", other)
            .build();
        let summary = Summary::of(&recording);
        for row in &summary.variants {
            assert_eq!(row.unit(Metric::P99), summary.unit(Metric::P99));
            assert_eq!(row.unit(Metric::Cpu), Unit::Microseconds);
            let meaning = row.meaning.iter().map(|it| it.times);
            assert!(meaning.eq(row.meaning.iter().map(|_| summary.times)));
        }
        summary.unit(Metric::Typical)
    }

    #[test]
    fn the_slowest_usual_request_decides_the_unit_of_all_rows() {
        assert_eq!(unit_of([190.0, 9_000.0]), Unit::Microseconds);
        assert_eq!(unit_of([190.0, 11_000.0]), Unit::Milliseconds);
    }
}
