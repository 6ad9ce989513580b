//! The figures of checks in words.

use analysis::summary::{Check, CheckFacts, CheckName, CheckNote, GeneratorName, LongestStall};
use recording::describe::plural;
use recording::digits;

use super::outcomes::named;

/// The figure of a check in words. If the check is not in order, also its meaning.
pub fn text(check: &Check) -> String {
    let notes = check.notes.iter().copied().map(note);
    facts(check) + &notes.collect::<String>()
}

fn note(note: CheckNote) -> &'static str {
    match note {
        CheckNote::NoRealtime => ". The generator had no real-time priority",
        CheckNote::RealtimeLost => {
            ". The generator used too much of a shared core for real-time priority"
        }
        CheckNote::WithGenerator => ". The rate is valid for this machine with the generator on it",
        CheckNote::SameAsBaseline => ". The baseline had the same, so only the intervals are wider",
        CheckNote::BusyCores => ". Other programs kept the cores busy",
    }
}

fn facts(check: &Check) -> String {
    match &check.facts {
        CheckFacts::Figure => of_figure(check),
        CheckFacts::Failures { .. }
        | CheckFacts::Missed { .. }
        | CheckFacts::Silence { .. }
        | CheckFacts::Rate { .. }
        | CheckFacts::Lateness { .. }
        | CheckFacts::LatenessApart { .. }
        | CheckFacts::EqualGaps { .. }
        | CheckFacts::PoissonGaps { .. } => of_sends(check),
        CheckFacts::LeftOut { .. }
        | CheckFacts::Connections { .. }
        | CheckFacts::Stalls { .. }
        | CheckFacts::LastThird { .. }
        | CheckFacts::Trend { .. }
        | CheckFacts::SystemsWaited { .. } => of_answers(check),
        _ => of_machine(check),
    }
}

/// Checks with a figure and no other facts.
fn of_figure(check: &Check) -> String {
    let share = digits::percent(check.figure);
    let is_beyond = check.figure > check.weak_beyond;
    let (text, advice) = match check.name {
        CheckName::LeftOutSlower => (
            format!(
                "the mean latency would be {} {} with the requests that were left out because the generator did not run",
                digits::percent(check.figure.abs()),
                if check.figure < 0.0 {
                    "lower"
                } else {
                    "higher"
                }
            ),
            "",
        ),
        CheckName::GeneratorCpu => (
            format!("the generator was busy {share} of the time"),
            ". The target may be faster than the generator can measure",
        ),
        CheckName::GeneratorStarved => (
            format!("the generator waited {share} of the time for a free core"),
            ". End other programs, or give it its own core with `pin`",
        ),
        CheckName::GeneratorSpread => (
            format!("generators differ by {share} in their median latency"),
            ". They have different routes to the target, or busier nodes",
        ),
        other => (super::cause(other, check.figure), ""),
    };
    match is_beyond {
        true => text + advice,
        false => text,
    }
}

/// Checks of the requests that were sent, and of their times.
fn of_sends(check: &Check) -> String {
    let share = digits::percent(check.figure);
    match &check.facts {
        CheckFacts::Failures { kinds } => match named(kinds) {
            none if none.is_empty() => "every request had a complete answer".to_owned(),
            kinds => format!(
                "{share} of the requests had no complete answer ({kinds}), so they have no latency"
            ),
        },
        CheckFacts::Missed { requests: 0 } => "every planned request was sent".to_owned(),
        CheckFacts::Missed { .. } => format!(
            "{share} of the planned requests were never sent, because every connection was busy"
        ),
        CheckFacts::Silence {
            round,
            from_us,
            length_us,
            failed,
        } => {
            let place = round.map_or_else(String::new, |round| format!(" of round {}", round + 1));
            let from = digits::length_us(*from_us);
            let length = digits::length_us(*length_us);
            let failed = plural(*failed, "request");
            format!(
                "no answer came after {from}{place}, for the last {length} of the load, and {failed} failed"
            )
        }
        CheckFacts::Rate {
            achieved_per_s,
            planned_per_s,
        } => {
            let half = Some(planned_per_s * 0.0005);
            format!(
                "sent {} of {} planned requests/s",
                digits::value(*achieved_per_s, half),
                digits::value(*planned_per_s, half)
            )
        }
        CheckFacts::Lateness { waited } => {
            let late = digits::duration_ns(check.figure * 1e3);
            let waited = match waited {
                0 => String::new(),
                more => format!(
                    ". {} more waited for a free connection",
                    digits::count(*more)
                ),
            };
            format!("99 % of the sends left within {late} of their due{waited}")
        }
        CheckFacts::LatenessApart {
            mean_us,
            low_us,
            high_us,
        } => lateness_apart(*mean_us, *low_us, *high_us),
        CheckFacts::EqualGaps { slack_s, gap_s } => format!(
            "{share} of the gaps between sends are off by more than {} from the planned {}",
            digits::duration_ns(slack_s * 1e9),
            digits::duration_ns(gap_s * 1e9)
        ),
        CheckFacts::PoissonGaps { rate_per_s } => format!(
            "the gaps between sends differ by {share} from Poisson arrivals at {} requests/s",
            digits::value(*rate_per_s, Some(rate_per_s * 0.0005))
        ),
        _ => of_figure(check),
    }
}

fn lateness_apart(mean_us: f64, low_us: f64, high_us: f64) -> String {
    let word = match mean_us < 0.0 {
        true => "earlier",
        false => "later",
    };
    let (low, high) = digits::interval_ends(low_us, high_us);
    format!(
        "its sends left {} {word} than the baseline's on average ({low} to {high} us). The \
         difference contains this",
        digits::duration_ns(mean_us.abs() * 1e3),
    )
}

/// Checks of the responses, and of the systems that gave them.
fn of_answers(check: &Check) -> String {
    let share = digits::percent(check.figure);
    match &check.facts {
        CheckFacts::LeftOut { cycles: 0, .. } => "every cycle counts".to_owned(),
        CheckFacts::LeftOut {
            host,
            generator,
            neighbor,
            overrun,
            is_sliced,
            ..
        } => {
            let kinds = named(&[
                ("the host took a core", *host),
                ("the generator stood still", *generator),
                ("another variant kept the cores busy", *neighbor),
                ("another variant overran", *overrun),
            ]);
            let (place, advice) = match is_sliced {
                true => ("figure", "Use a quieter machine or a shorter `slice`"),
                false => ("latency", "Use fewer variants or a lower rate"),
            };
            format!("{share} of the cycles are in no {place} ({kinds}). {advice}")
        }
        CheckFacts::Connections {
            low,
            high,
            connections,
        } => {
            let range = busy_connections(*low, *high);
            format!(
                "requests/s x mean latency = {range}, connections = {connections}, a difference of {share}"
            )
        }
        CheckFacts::Stalls { count, longest } => stalls(*count, longest.as_ref(), &share),
        CheckFacts::LastThird { factor, is_rising } => last_third(check, *factor, *is_rising),
        CheckFacts::Trend {
            relative_to,
            is_rising,
        } => {
            let subject = relative_to
                .as_ref()
                .map_or_else(String::new, |other| format!(" relative to `{other}`"));
            let word = if *is_rising { "rose" } else { "fell" };
            match check.figure > 0.0 {
                true => format!("mean latency{subject} {word} by {share} over the rounds"),
                false => format!("mean latency{subject} shows no trend over the rounds"),
            }
        }
        CheckFacts::SystemsWaited { each_us } => {
            let each = digits::duration_ns(each_us * 1e3);
            let advice = match check.figure > check.weak_beyond {
                true => format!(
                    ", {share} of its mean latency. Lower the rate, or give them their own cores with `pin`"
                ),
                false => String::new(),
            };
            format!("the systems waited {each} of each request for a free core{advice}")
        }
        _ => of_figure(check),
    }
}

/// Throughput times mean latency: `99.5 to 100`
fn busy_connections(low: f64, high: f64) -> String {
    // An error of half a percent keeps the digits that readers need to compare with the limits of 1 % and 5 %.
    let [low, high] = [low, high].map(|busy| digits::value(busy, Some(busy * 0.005)));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

fn last_third(check: &Check, factor: f64, is_rising: bool) -> String {
    let meaning = match (check.figure > check.weak_beyond, is_rising) {
        (false, _) => "",
        (true, true) => {
            ". It slows down under load, so its figures depend on the length of the load"
        }
        (true, false) => ". It was still warming up. Give it a longer `warmup`",
    };
    format!(
        "mean latency in the last third of a round is {} times the latency of the first third{meaning}",
        digits::value(factor, Some(factor * 0.01))
    )
}

fn stalls(count: u64, longest: Option<&LongestStall>, share: &str) -> String {
    let Some(longest) = longest else {
        return "the target never stopped answering".to_owned();
    };
    format!(
        "the target did not answer although requests were in flight and the generator ran: {}, \
         {share} of the time, longest {} or more ({} into round {})",
        plural(count, "stall"),
        digits::length_us(longest.length_us),
        digits::length_us(longest.at_us),
        longest.round + 1
    )
}

/// Checks of the machine, the generators and the network.
fn of_machine(check: &Check) -> String {
    let share = digits::percent(check.figure);
    match &check.facts {
        CheckFacts::Pauses { count: 0, .. } => "the generator ran without a pause".to_owned(),
        CheckFacts::Pauses { count, longest_us } => format!(
            "the generator did not run although work was due: {}, {share} of the time, longest {}",
            plural(*count, "pause"),
            digits::duration_ns(recording::float(*longest_us) * 1e3),
        ),
        CheckFacts::LimitAround => {
            format!("a processor limit around weigh stopped everything in {share} of the periods")
        }
        CheckFacts::LimitOfSystem { system } if check.figure > 0.0 => format!(
            "`{system}` was stopped by its processor limit in {share} of the periods, so its latency \
             depends on the limit"
        ),
        CheckFacts::LimitOfSystem { .. } => "no processor limit stopped a system".to_owned(),
        CheckFacts::Steal { of_all } => format!(
            "other guests of the host took {share} of the requested processor time, {} of all processor time",
            digits::percent(*of_all)
        ),
        CheckFacts::NoiseFloor {
            overhead_us,
            floor_us,
            made_at,
        } => noise_floor(*overhead_us, *floor_us, made_at),
        CheckFacts::BusyCores { before, meanwhile } => busy_cores(*before, *meanwhile),
        _ => of_network(check),
    }
}

fn noise_floor(overhead_us: f64, floor_us: f64, made_at: &str) -> String {
    let found = digits::duration_ns(overhead_us * 1e3);
    let limit = digits::duration_ns(floor_us * 1e3);
    // The date of an RFC 3339 time. Another text is shown unchanged.
    let made_at = made_at.get(..10).unwrap_or(made_at);
    if overhead_us < floor_us {
        format!(
            "the mean latency differs by {found}, but two equal systems differ by up to {limit} on \
             this machine (`weigh tare` of {made_at}), so this difference shows nothing"
        )
    } else {
        format!(
            "the mean latency differs by {found}, two equal systems by at most {limit} (`weigh \
             tare` of {made_at})"
        )
    }
}

fn busy_cores(before: Option<f64>, meanwhile: Option<f64>) -> String {
    // The kernel counts in hundredths of a second, so whole percents are the useful precision.
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let of = match before {
        Some(_) => "of it",
        None => "of all cores' time",
    };
    let before = before.map(|share| {
        let used = percent(share);
        format!("{used} of all cores' time was used before the run")
    });
    let meanwhile = meanwhile.map(|share| {
        let used = percent(share);
        format!("other programs used {used} {of} during the measurements")
    });
    let parts: Vec<String> = [before, meanwhile].into_iter().flatten().collect();
    parts.join(", ")
}

/// Checks of several generators and of the network.
fn of_network(check: &Check) -> String {
    let share = digits::percent(check.figure);
    let long = digits::duration_ns(check.figure * 1e3);
    match &check.facts {
        CheckFacts::Starts {
            worst,
            clock_ahead_us,
        } => format!(
            "generators began within {long} of each other. The worst is {}, with a clock error of {}",
            generator(worst),
            digits::duration_ns(clock_ahead_us.abs() * 1e3)
        ),
        CheckFacts::Latest { generator: latest } => format!(
            "each generator sent 99 % of its requests within {long} of their due, as the mean of its rounds. The latest was {}",
            generator(latest)
        ),
        CheckFacts::Segments { again: 0, .. } => "no TCP segment was sent again".to_owned(),
        CheckFacts::Segments { again, sent } => format!(
            "{} of {} TCP segments were sent again ({share}). Each delays its request",
            digits::count(*again),
            digits::count(*sent),
        ),
        CheckFacts::RoundTrips {
            p50_us,
            p95_us,
            unanswered,
        } => {
            let unanswered = match unanswered {
                0 => String::new(),
                some => format!(". {} handshakes were not answered", digits::count(*some)),
            };
            format!(
                "the round trip to the target took {} (p50) to {} (p95), measured during the load{unanswered}",
                digits::duration_ns(p50_us * 1e3),
                digits::duration_ns(p95_us * 1e3)
            )
        }
        _ => of_figure(check),
    }
}

/// The generator in words: `generator 2/2 (pod x on node y)`
fn generator(one: &GeneratorName) -> String {
    format!(
        "generator {} (pod `{}` on node `{}`)",
        one.shard, one.pod, one.node
    )
}

#[cfg(test)]
mod tests;
