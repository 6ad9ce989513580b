//! Meaning of a verdict in words. It states the cost of a request and its share of the baseline. Without a
//! visible difference, it states the smallest difference that the run would have shown.

use analysis::summary::quantity::{amount, figure, minutes, with_ends};
use analysis::summary::{Aside, Extent, FewPay, Meaning, Reference, SizeShown};
use model::{Metric, Unit};
use recording::digits;

use super::few;

/// The sentence, such as `` `rhai` costs a typical request 80 us (75 to 88), some 40 % of the baseline's
/// typical 200 us ``.
pub(crate) fn sentence(name: &str, meaning: &Meaning) -> String {
    sentence_at(name, meaning, "")
}

/// Like [`sentence`], with the load after the first statement: `, at 100 requests/s`.
pub(crate) fn sentence_at(name: &str, meaning: &Meaning, at: &str) -> String {
    let subject = match meaning.against {
        Reference::OtherResult => "B".to_owned(),
        Reference::Baseline | Reference::Variant(_) => format!("`{name}`"),
    };
    let of_headline = match &meaning.size {
        SizeShown::Shown(extent) => size(meaning, extent),
        SizeShown::NotShown {
            detectable,
            rounds_for_half,
            half_takes_s,
        } => {
            let half = rounds_for_half.map_or_else(String::new, |rounds| {
                let time = half_takes_s.map_or_else(String::new, |seconds| {
                    format!(", some {}", minutes(seconds))
                });
                format!(". Half of that takes {rounds} rounds{time}")
            });
            would_have_shown(meaning, *detectable) + &half
        }
    };
    let otherwise = meaning.aside.as_ref();
    let otherwise = otherwise.map(|it| aside(it, meaning.times));
    format!(
        "{subject}{of_headline}{at}{}",
        otherwise.unwrap_or_default()
    )
}

/// Possessive of the other side: `the baseline's`.
fn whose(against: &Reference) -> String {
    match against {
        Reference::Baseline => "the baseline's".to_owned(),
        Reference::Variant(name) => format!("`{name}`'s"),
        Reference::OtherResult => "A's".to_owned(),
    }
}

/// The size without its sign: `80 us (75 to 88)`.
fn without_sign(extent: &Extent, times: Unit) -> String {
    let unit = extent.metric.unit().with_times(times);
    with_ends(unit, extent.value, extent.low, extent.high)
}

/// The size in words: ` costs a typical request 80 us (75 to 88), some 40 % of the baseline's typical 200 us`
fn size(meaning: &Meaning, extent: &Extent) -> String {
    let (metric, whose) = (meaning.headline, whose(&meaning.against));
    let share = share_in_all(extent, meaning.of_baseline);
    let baseline = figure(metric.unit().with_times(meaning.times), meaning.of_baseline);
    let size = without_sign(extent, meaning.times);
    if metric == Metric::Requests {
        let word = if extent.is_higher { "more" } else { "fewer" };
        let size = size.replacen(" requests", &format!(" requests a second {word}"), 1);
        // The size already contains this word.
        let baseline = baseline.trim_end_matches(" requests");
        return format!(" answers {size}, {share} {whose} {baseline}");
    }
    let (whom, which) = match metric {
        Metric::Typical => ("a typical request", "typical"),
        _ => ("a request on average", "mean"),
    };
    let word = cost(extent);
    format!(" {word} {whom} {size}, {share} {whose} {which} {baseline}")
}

fn cost(extent: &Extent) -> &'static str {
    match extent.is_higher {
        true => "costs",
        false => "saves",
    }
}

/// The smallest visible difference in words:
/// `: no difference shown. Four of five runs like this one would show a difference of 7.0 us, some 3 % of the
/// baseline's 200 us`
fn would_have_shown(meaning: &Meaning, detectable: f64) -> String {
    let unit = meaning.headline.unit().with_times(meaning.times);
    format!(
        ": no difference shown. Four of five runs like this one would show a difference of {}, {} {} {}",
        amount(unit, detectable),
        share_of_baseline(detectable, meaning.of_baseline),
        whose(&meaning.against),
        figure(unit, meaning.of_baseline),
    )
}

/// The difference that the headline metric does not show.
fn aside(aside: &Aside, times: Unit) -> String {
    match aside {
        Aside::Mean {
            mean,
            few,
            slow_quarter,
        } => {
            let payers = few.as_ref().and_then(payers).unwrap_or_default();
            let slow = slow_quarter.as_ref();
            let slow = slow.map(|it| of_slow_quarter(it, times));
            format!(
                ". On average, slow requests included, it {} {}{payers}{}",
                cost(mean),
                without_sign(mean, times),
                slow.unwrap_or_default()
            )
        }
        Aside::ProcessorTime(extent) => format!(
            ". Processor time rises by {} a request, so some requests pay more, or work continues \
             after the response",
            without_sign(extent, times)
        ),
    }
}

fn payers(few: &FewPay) -> Option<String> {
    few::payers(few).map(|payers| format!(": {payers}"))
}

/// The cost for the slowest quarter: `. The slowest quarter of the requests takes 3.9 ms (3.1 to 4.8) longer`.
fn of_slow_quarter(extent: &Extent, times: Unit) -> String {
    let word = match extent.is_higher {
        true => "longer",
        false => "less",
    };
    format!(
        ". The slowest quarter of the requests takes {} {word}",
        without_sign(extent, times)
    )
}

/// The size relative to the baseline: `some 40 % of`. A value of at least twice the baseline is compared as a
/// whole, because "2.5 times" could mean either: `which makes it 3.5 times as long as`.
fn share_in_all(extent: &Extent, baseline: f64) -> String {
    let whole = 1.0 + (extent.value / baseline).abs();
    if !extent.is_higher || !whole.is_finite() || whole < 2.0 {
        return share_of_baseline(extent.value, baseline);
    }
    let words = match extent.metric {
        Metric::Requests => "as many as",
        _ => "as long as",
    };
    let times = digits::value(whole, Some(whole * 0.2));
    format!("which makes it {times} times {words}")
}

/// The size relative to the baseline: `some 40 % of`, `some 3 times`
fn share_of_baseline(value: f64, baseline: f64) -> String {
    let share = (value / baseline).abs();
    match share {
        // A share of a baseline of 0 does not exist.
        share if !share.is_finite() => "much more than".to_owned(),
        share if share >= 2.0 => format!("some {} times", digits::value(share, Some(share * 0.2))),
        share if share < 0.001 => "less than 0.1 % of".to_owned(),
        share => {
            let percent = share * 100.0;
            format!("some {} % of", digits::value(percent, Some(percent * 0.2)))
        }
    }
}

#[cfg(test)]
mod tests {
    use analysis::Summary;
    use recording::sample::SampleRun;

    use super::*;

    fn extent(metric: Metric, value: f64, half: f64) -> Extent {
        Extent {
            metric,
            is_higher: value > 0.0,
            value,
            low: value - half,
            high: value + half,
        }
    }

    /// The sentence on a variant with a typical latency that differs by this from a baseline of 200 us.
    fn words(size: SizeShown, aside: Option<Aside>) -> String {
        let meaning = Meaning {
            against: Reference::Baseline,
            headline: Metric::Typical,
            of_baseline: 200.0,
            size,
            aside,
            times: Unit::Microseconds,
        };
        sentence("rhai", &meaning)
    }

    fn shown(us: f64) -> SizeShown {
        SizeShown::Shown(extent(Metric::Typical, us, 6.0))
    }

    fn not_shown() -> SizeShown {
        SizeShown::NotShown {
            detectable: 7.8,
            rounds_for_half: Some(41),
            half_takes_s: Some(369.0),
        }
    }

    fn mean(us: f64, slow_quarter: Option<Extent>) -> Option<Aside> {
        Some(Aside::Mean {
            mean: extent(Metric::Mean, us, 12.0),
            few: None,
            slow_quarter,
        })
    }

    #[test]
    fn a_verdict_names_its_size_as_a_person_would() {
        insta::assert_snapshot!(words(shown(80.0), None), @"`rhai` costs a typical request 80 us (74 to 86), some 40 % of the baseline's typical 200 us");
        insta::assert_snapshot!(words(shown(-80.0), None), @"`rhai` saves a typical request 80 us (74 to 86), some 40 % of the baseline's typical 200 us");
    }

    #[test]
    fn a_large_difference_is_compared_as_a_whole() {
        insta::assert_snapshot!(words(shown(500.0), None), @"`rhai` costs a typical request 500 us (494 to 506), which makes it 3.5 times as long as the baseline's typical 200 us");
        insta::assert_snapshot!(words(shown(150.0), None), @"`rhai` costs a typical request 150 us (144 to 156), some 75 % of the baseline's typical 200 us");
        insta::assert_snapshot!(words(shown(201.0), None), @"`rhai` costs a typical request 201 us (195 to 207), which makes it 2.0 times as long as the baseline's typical 200 us");
    }

    #[test]
    fn a_sentence_has_one_unit() {
        let slow = Meaning {
            against: Reference::Baseline,
            headline: Metric::Typical,
            of_baseline: 12_100.0,
            size: SizeShown::Shown(extent(Metric::Typical, 3_000.0, 20.0)),
            aside: None,
            times: Unit::Milliseconds,
        };
        assert_eq!(
            sentence("rhai", &slow),
            "`rhai` costs a typical request 3.00 ms (2.98 to 3.02), some 25 % of the baseline's typical 12.1 ms"
        );
    }

    #[test]
    fn nothing_shown_says_what_would_have_been_and_what_half_of_it_takes() {
        insta::assert_snapshot!(words(not_shown(), None), @"`rhai`: no difference shown. Four of five runs like this one would show a difference of 7.8 us, some 3.9 % of the baseline's 200 us. Half of that takes 41 rounds, some 6.2 minutes");
    }

    #[test]
    fn the_mean_is_named_where_it_says_something_else() {
        insta::assert_snapshot!(words(not_shown(), mean(400.0, None)), @"`rhai`: no difference shown. Four of five runs like this one would show a difference of 7.8 us, some 3.9 % of the baseline's 200 us. Half of that takes 41 rounds, some 6.2 minutes. On average, slow requests included, it costs 400 us (388 to 412)");
        insta::assert_snapshot!(words(shown(80.0), mean(-40.0, None)), @"`rhai` costs a typical request 80 us (74 to 86), some 40 % of the baseline's typical 200 us. On average, slow requests included, it saves 40 us (28 to 52)");
    }

    #[test]
    fn processor_time_is_named_where_latency_does_not_show_it() {
        let more = Aside::ProcessorTime(extent(Metric::Cpu, 60.0, 4.0));
        let more = words(not_shown(), Some(more));
        assert!(
            more.ends_with(
                ". Processor time rises by 60 us (56 to 64) a request, so some requests pay more, or work \
                 continues after the response"
            ),
            "{more}"
        );
    }

    #[test]
    fn the_slow_quarter_is_named_with_the_mean() {
        let slow = extent(Metric::SlowQuarter, 1_600.0, 90.0);
        let words = words(not_shown(), mean(400.0, Some(slow)));
        assert!(
            words.ends_with(
                ". The slowest quarter of the requests takes 1,600 us (1,510 to 1,690) longer"
            ),
            "{words}"
        );
    }

    #[test]
    fn a_rate_is_in_requests_a_second() {
        let recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let summary = Summary::of(&recording);
        let words = |row: usize| crate::in_words(&summary.variants[row]);
        assert_eq!(words(0), None);
        insta::assert_snapshot!(words(1).unwrap(), @r##"
        `b` answers 17,800 requests a second fewer (17,100 to 18,500), some 12 % of the baseline's 144,000
        "##);
    }
}
