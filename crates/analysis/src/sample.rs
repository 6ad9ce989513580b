//! Recordings with planted facts, and values made from them, for tests of this crate and of the crates that show
//! its conclusions.

use std::collections::BTreeMap;

use model::{Gate, Load, Metric, Order, Phase, Rate};
use recording::sample::SampleRun;
use recording::{FactorText, FactorsText, Hdr, Measured, Recording, RoundRecord};
use stats::Histogram;

use crate::compare::{Operand, OperandSource};
use crate::curve::{Curve, LoadLevel};
use crate::gate::Undecided;
use crate::history::{Entry, Figure, Format};
use crate::summary::{EffectSummary, FactorsSummary, FewPay, Summary};

fn operand(label: &str, variant: Option<&str>, source: OperandSource) -> Operand {
    Operand {
        label: label.to_owned(),
        variant: variant.map(str::to_owned),
        source,
    }
}

/// A recording as one side of a comparison. With a variant, only this variant is compared.
pub fn recorded(label: &str, variant: Option<&str>, recording: &Recording) -> Operand {
    operand(
        label,
        variant,
        OperandSource::Recording(Box::new(recording.clone())),
    )
}

/// The printed results of another tool as one side of a comparison, one text for each run.
pub fn foreign(label: &str, texts: &[&str]) -> Operand {
    let files: Vec<(String, String)> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| (format!("{index}.txt"), (*text).to_owned()))
        .collect();
    operand(label, None, OperandSource::read(&files).unwrap())
}

/// A lab at another time. Its variants have these mean latencies.
pub fn lab(latencies: [f64; 2], started_at: &str) -> Recording {
    let mut recording = SampleRun::open()
        .variant("baseline", latencies[0])
        .variant("rhai", latencies[1])
        .build();
    recording.started_at = started_at.to_owned();
    recording
}

/// The time of a run.
pub const MONDAY: &str = "2026-02-02T10:00:00Z";
/// The time of a run one day later.
pub const TUESDAY: &str = "2026-02-03T10:00:00Z";

/// Factors with the levels `off` and `on`, and their variants in standard order.
pub fn factors_text(names: &[&str], variants: &[&str]) -> FactorsText {
    let owned = |word: &&str| (*word).to_owned();
    FactorsText {
        factors: names
            .iter()
            .map(|name| FactorText {
                name: owned(name),
                setting: format!("server.{name}"),
                levels: ["off", "on"].map(str::to_owned),
            })
            .collect(),
        generators: Vec::new(),
        variants: variants.iter().map(owned).collect(),
    }
}

/// The variants of [`square`].
pub const SQUARE: [&str; 4] = ["plain", "log on", "tls on", "log on, tls on"];

/// Two factors with 20 us and 100 us, and 40 us more for both.
pub fn square(sample: SampleRun) -> Recording {
    let costs = [700.0, 720.0, 800.0, 860.0];
    let named = SQUARE.into_iter().zip(costs);
    let sample = named.fold(sample, |sample, (name, us)| sample.variant(name, us));
    let mut recording = sample.build();
    let lab = recording.lab.as_mut().unwrap();
    lab.factors = Some(factors_text(&["log", "tls"], &SQUARE));
    recording
}

/// Three factors: 20 us, 0 us and 100 us, without interactions.
pub fn cube() -> Recording {
    let names: Vec<String> = (0..8)
        .map(|run| match run {
            0 => "plain".to_owned(),
            _ => format!("run {run}"),
        })
        .collect();
    let mut sample = SampleRun::side_by_side().rounds(10);
    for (run, name) in names.iter().enumerate() {
        let on = |bit: usize| if run >> bit & 1 == 1 { 1.0 } else { 0.0 };
        sample = sample.variant(name, 700.0 + 20.0 * on(0) + 100.0 * on(2));
    }
    let mut recording = sample.build();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lab = recording.lab.as_mut().unwrap();
    lab.factors = Some(factors_text(&["log", "same", "tls"], &names));
    recording
}

/// A sample of the given number of factors. Factor `i` costs `10 (i + 1)` us.
pub fn many(factors: usize) -> Recording {
    let runs = 0..1_usize << factors;
    let names: Vec<String> = runs.map(|run| format!("run {run}")).collect();
    let mut sample = SampleRun::side_by_side().rounds(8);
    for (run, name) in names.iter().enumerate() {
        let on = (0..factors).filter(|factor| run >> factor & 1 == 1);
        let cost: f64 = on
            .map(|factor| 10.0 * recording::float(factor as u64 + 1))
            .sum();
        sample = sample.variant(name, 700.0 + cost);
    }
    let mut recording = sample.build();
    let variants: Vec<&str> = names.iter().map(String::as_str).collect();
    let words: Vec<String> = (0..factors).map(|factor| format!("f{factor}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    recording.lab.as_mut().unwrap().factors = Some(factors_text(&words, &variants));
    recording
}

/// The effects of a recording with factors.
pub fn factors(recording: &Recording) -> FactorsSummary {
    Summary::of(recording).factors.unwrap()
}

/// True if the interval of an effect contains this difference.
pub fn contains(effect: &EffectSummary, metric: Metric, planted: f64) -> bool {
    let figure = &effect.metrics[&metric];
    let (low, high) = figure.low.zip(figure.high).unwrap();
    low < planted && planted < high
}

const BATCHING: &str = include_str!("../../../labs/router-extensibility/records/batching.json");
/// The variant with the costs of [`planted`].
pub const ROW: &str = "one by one, batches allowed";

/// The recording of the lab `batching`, without a planted cost.
pub fn batching() -> Recording {
    serde_json::from_str(BATCHING).unwrap()
}

/// Changes the latency of every `each`th request of a variant by `of`. It does this in every round, also for
/// each request of the rotation.
pub fn planted_in(variant: &str, each: u64, of: impl Fn(u64) -> u64) -> Recording {
    let planted = |latency: &Hdr| {
        let mut planted = Histogram::new();
        let mut seen = 0;
        for (value_ns, count) in latency.histogram().recorded() {
            for _ in 0..count {
                seen += 1;
                let is_meant = seen % each == 0;
                planted.record_ns(if is_meant { of(value_ns) } else { value_ns });
            }
        }
        Hdr::of(&planted)
    };
    let mut recording = batching();
    let rounds = recording.rounds.iter_mut();
    for round in rounds.filter(|it| it.variant == variant) {
        round.latency_ns_hdr = planted(&round.latency_ns_hdr);
        // The exact means are of the latencies without the planted cost.
        round.latency_means = None;
        round.all_latency_ns_hdr = round.all_latency_ns_hdr.as_ref().map(planted);
        for request in &mut round.requests {
            request.latency_ns_hdr = planted(&request.latency_ns_hdr);
        }
    }
    recording
}

/// Every `each`th request of [`ROW`] takes `more_ns` longer.
pub fn planted(each: u64, more_ns: u64) -> Recording {
    planted_in(ROW, each, |value_ns| value_ns + more_ns)
}

/// Two equal variants, but the slowest 8 % of the requests of `stalls` take 2 ms more.
pub fn stalls() -> Recording {
    let mut recording = beside(&[("plain", 700.0), ("stalls", 700.0)]);
    let rounds = recording.rounds.iter_mut();
    for round in rounds.filter(|it| it.variant == "stalls") {
        round.latency_ns_hdr = Hdr::of(&slowed(&round.latency_ns_hdr.histogram()));
    }
    recording
}

/// The slowest 8 % of the requests take 2 ms more.
fn slowed(latency: &Histogram) -> Histogram {
    let border = latency.quantile_ns(0.92).unwrap();
    let mut slowed = Histogram::new();
    for (value_ns, count) in latency.recorded() {
        let more_ns = if value_ns > border { 2_000_000 } else { 0 };
        slowed.record_n_ns(value_ns + more_ns, count);
    }
    slowed
}

/// The costs that few requests of [`ROW`] pay.
pub fn few(recording: &Recording) -> (Summary, FewPay) {
    let summary = Summary::of(recording);
    let few = summary.variant(ROW).unwrap().few_pay.clone();
    let few = few.unwrap_or_else(|| panic!("{:?}", summary.variant(ROW).unwrap().verdict));
    (summary, few)
}

/// A light variant with a light baseline, and a heavy variant that slows the baseline down by 1 ms. Each
/// costs 100 us.
pub fn in_groups() -> Recording {
    let mut recording = SampleRun::open()
        .variant("plain", 700.0)
        .variant("light", 800.0)
        .variant("plain beside heavy", 1700.0)
        .variant("heavy", 1800.0)
        .build();
    recording.variants.remove(2);
    for round in &mut recording.rounds {
        let is_second = matches!(round.variant.as_str(), "plain beside heavy" | "heavy");
        round.group = Some(u32::from(is_second));
        if round.variant == "plain beside heavy" {
            "plain".clone_into(&mut round.variant);
        }
    }
    let group = |variant: &str| vec!["plain".to_owned(), variant.to_owned()];
    recording.measured = Some(Measured {
        order: Order::SideBySide,
        because: None,
        groups: vec![group("light"), group("heavy")],
        groups_because: Some("`heavy` uses 0.50 of 2 cores, the median of all is 0.01".to_owned()),
        leaves_at_any_time: false,
    });
    recording
}

/// Moves the lateness of every send by `by_us` microseconds.
pub fn later(round: &mut RoundRecord, by_us: u64) {
    let mut late = Histogram::new();
    for (value_ns, count) in round.lateness_ns_hdr.histogram().recorded() {
        late.record_n_ns(value_ns + by_us * 1000, count);
    }
    round.lateness_ns_hdr = Hdr::of(&late);
}

/// A baseline `a`, and a variant `b` that takes 90 us longer.
pub fn two(sample: SampleRun) -> Recording {
    sample.variant("a", 700.0).variant("b", 790.0).build()
}

/// A run in turn. `b` was late while other programs used most of the machine.
pub fn late_on_a_busy_machine() -> Recording {
    let mut recording = two(SampleRun::open());
    for round in &mut recording.rounds {
        if round.variant == "b" {
            later(round, 2_240);
            round.machine.as_mut().unwrap().busy_us += round.elapsed_us * 148 / 100;
        }
    }
    recording
}

/// A gate that every sample passes, if it is decided.
pub fn gates_on_the_mean() -> Vec<Gate> {
    vec!["mean overhead < 1s".parse().unwrap()]
}

/// A lab at one rate. The variant `late` takes `late_us` longer than the baseline.
pub fn level(per_s: f64, late_us: f64) -> LoadLevel {
    let mut recording = SampleRun::side_by_side()
        .variant("baseline", 200.0)
        .variant("late", 200.0 + late_us)
        .build();
    if let Load::Open { phases, .. } = &mut recording.load.model {
        let duration = phases[0].duration;
        *phases = vec![Phase::constant(duration, Rate::new(per_s).unwrap())];
    }
    let gates = ["typical overhead < 100us".parse().unwrap()];
    LoadLevel {
        folder: format!("at-{per_s}-per-s"),
        summary: Summary::of(&recording).judged(&gates, Undecided::Fails),
        recording,
    }
}

/// Three levels, not in the order of their loads.
pub fn curve() -> Curve {
    let levels = [(1_600.0, 180.0), (100.0, 30.0), (400.0, 45.0)];
    Curve::new(levels.map(|(rate, late)| level(rate, late)).to_vec()).unwrap()
}

/// The overhead of one variant in the run of day `number`, with an interval of 4 us on both sides.
pub fn entry(number: usize, value: f64) -> Entry {
    Entry {
        format: Format::History,
        lab: "api".to_owned(),
        variant: "head".to_owned(),
        baseline: "base".to_owned(),
        load: "100 requests/s".to_owned(),
        metric: Metric::Typical,
        overhead: Figure {
            value,
            low: value - 4.0,
            high: value + 4.0,
            confidence: Some(0.95),
        },
        cpu_us: None,
        widths: BTreeMap::new(),
        value: 200.0 + value,
        started_at: format!("2026-11-{:02}T10:00:00Z", number + 1),
        commit: Some(format!("{number:02}3456789012")),
        machine: "AMD EPYC, 2 cores".to_owned(),
        method: 2,
        method_of_figures: Some(recording::METHOD_OF_FIGURES),
        order: Order::SideBySide,
        rounds: 8,
        round_s: None,
        recording: format!("recordings/{number}"),
        sha256: format!("{number:064}"),
    }
}

/// `log` is compared with `proxy`, and `proxy` with the baseline.
pub fn chain() -> Recording {
    let mut recording = SampleRun::side_by_side()
        .variant("direct", 700.0)
        .variant("proxy", 840.0)
        .variant("log", 861.0)
        .build();
    recording.variants[2].baseline = Some("proxy".to_owned());
    recording
}

/// Variants side by side, with their mean latencies in microseconds.
pub fn beside(variants: &[(&str, f64)]) -> Recording {
    let sample = variants
        .iter()
        .fold(SampleRun::side_by_side(), |sample, (name, us)| {
            sample.variant(name, *us)
        });
    sample.build()
}
