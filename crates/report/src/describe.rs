//! How a recording was made, in words that every rendering shares.

mod machine;

use model::{Arrival, Capacity, Load, Order, Phase, micros};

use crate::company;
use crate::digits;
use crate::metric::Metric;
use crate::recording::{HttpText, Kind, LoadText, ProtocolText, Recording, TlsText};
use crate::summary::{CheckState, ClaimName, Summary, VariantSummary};
use crate::summary::{PAUSED_SHARE_MAX, STARVED_SHARE_MAX};

pub(crate) use machine::{
    environment, is_limit_unmet, limits, limits_in_force, moment, system_facts, systems,
};

/// `closed loop, 100 connections, 5 s a round after 1 s of warm-up, keep-alive, 1 generator thread`.
pub(crate) fn load(recording: &Recording) -> String {
    let load = &recording.load;
    let mut parts = vec![match &load.capacity {
        Some(capacity) => search(capacity, &load.model),
        None => model(&load.model),
    }];
    if load.is_scenario {
        let steps = plural(load.requests.len() as u64, "step");
        parts.push(format!("passes of {steps} each"));
    }
    parts.push(length(recording));
    parts.extend(load.protocol.as_ref().map(protocol));
    parts.push(
        if load.keep_alive {
            "keep-alive"
        } else {
            "one connection a request"
        }
        .to_owned(),
    );
    parts.push(plural(u64::from(load.threads), "generator thread"));
    parts.push(format!("timeout {}", digits::length_us(load.timeout_us)));
    parts.join(", ")
}

/// `HTTP/2 over TLS (certificate not verified), 8 streams a connection`.
pub(crate) fn protocol(protocol: &ProtocolText) -> String {
    let mut text = match protocol.http {
        HttpText::Http1 => "HTTP/1.1",
        HttpText::Http2 => "HTTP/2",
    }
    .to_owned();
    text += match protocol.tls {
        TlsText::Off => "",
        TlsText::Verified => " over TLS",
        TlsText::Unverified => " over TLS (certificate not verified)",
    };
    if protocol.streams > 1 {
        text += &format!(", {} streams a connection", protocol.streams);
    }
    text
}

fn model(model: &Load) -> String {
    match model {
        Load::Closed { connections, .. } => {
            format!(
                "closed loop, {}",
                plural(u64::from(*connections), "connection")
            )
        }
        Load::Open {
            phases,
            arrival,
            connections_max,
            ..
        } => {
            let gaps = match arrival {
                Arrival::Uniform => "equal gaps",
                Arrival::Poisson { .. } => "Poisson arrivals",
            };
            format!(
                "open loop, {}, {gaps}, at most {}",
                rates(phases),
                plural(u64::from(*connections_max), "connection")
            )
        }
    }
}

/// `open loop, the highest of 1,000 to 40,000 requests/s (in steps of 10 %) with p99 below 10 ms, …`.
fn search(capacity: &Capacity, load: &Load) -> String {
    // An expected half width of 0.05 % shows a rate to the digits that a user would type.
    let rate = |per_s: f64| digits::value(per_s, Some(per_s * 0.0005));
    let rest = model(load);
    // The rate of the first step says nothing here.
    // The model's text begins with the kind of loop and the first rate; both are said already.
    let rest: Vec<&str> = rest.split(", ").skip(2).collect();
    format!(
        "open loop, the highest of {} to {} requests/s (in steps of {} %) that is sustained with p99 \
         below {}, {}",
        rate(capacity.from().per_second()),
        rate(capacity.to().per_second()),
        digits::value(capacity.step_percent(), None),
        digits::length_us(micros(capacity.p99_below())),
        rest.join(", ")
    )
}

fn rates(phases: &[Phase]) -> String {
    let rate = |per_s: f64| digits::value(per_s, Some(per_s * 0.0005));
    let phase = |phase: &Phase| {
        // Compared as text: rates that look the same to the reader are the same to the reader.
        let (from, to) = (rate(phase.from.per_second()), rate(phase.to.per_second()));
        if from == to {
            format!("{from} requests/s")
        } else {
            format!("{from} to {to} requests/s")
        }
    };
    match phases {
        [only] => phase(only),
        several => {
            let timed = |one: &Phase| {
                format!(
                    "{} for {}",
                    phase(one),
                    digits::length_us(micros(one.duration))
                )
            };
            several
                .iter()
                .map(timed)
                .collect::<Vec<_>>()
                .join(", then ")
        }
    }
}

/// `5 s a round after 1 s of warm-up`.
fn length(recording: &Recording) -> String {
    let model = &recording.load.model;
    let count = model.requests().map(|count| plural(count, "request"));
    let time = model.duration().map(|time| digits::length_us(micros(time)));
    let mut text = match (count, time) {
        (Some(count), Some(time)) => format!("{count} or {time}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "without an end".to_owned(),
    };
    if recording.load.capacity.is_some() {
        text += " at each rate";
    } else if recording.kind == Kind::Lab {
        text += " a round";
    }
    if recording.load.warmup_us > 0 {
        text += &format!(
            " after {} of warm-up",
            digits::length_us(recording.load.warmup_us)
        );
    }
    if let Some(settle) = &recording.load.settle {
        text += &format!(
            ", settled after each start by {} until no faster, {} at most",
            plural(settle.connections.into(), "connection"),
            digits::length_us(micros(settle.within))
        );
        if let Some(again_us) = recording.load.settled_again_us {
            text += &format!(", from round 2 on for {}", digits::length_us(again_us));
        }
    }
    if recording.load.keeps_systems {
        text += ", systems kept running from round to round";
    }
    if !recording.load.kept_systems.is_empty() {
        text += &format!(
            ", {} kept running from round to round",
            named_systems(&recording.load.kept_systems)
        );
    }
    text
}

/// `` `planets` and `gateway` ``
fn named_systems(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// What differs from start to start and is in no interval, because systems were started once.
pub(crate) fn starts_omitted(recording: &Recording) -> Option<String> {
    let load = &recording.load;
    let (who, whose) = match (load.keeps_systems, &*load.kept_systems) {
        (false, []) => return None,
        (true, _) => ("All systems were".to_owned(), "another start of them"),
        (false, [one]) => (format!("`{one}` was"), "another start of it"),
        (false, many) => (
            format!("{} were", named_systems(many)),
            "another start of them",
        ),
    };
    let others = if load.keeps_systems {
        String::new()
    } else {
        ", the other systems anew in every round".to_owned()
    };
    Some(format!(
        "{who} started once{others}: an interval says what these processes cost, and {whose} can \
         differ from it by more; a lab without `--quick` starts everything anew in every round."
    ))
}

/// `8 rounds, every variant once a round in shuffled order, seed 7`.
// What was planned is only said where it differs from what was measured.
pub(crate) fn rounds(summary: &Summary) -> String {
    let planned = summary.rounds_planned;
    let rounds = if summary.rounds_measured == planned {
        plural(planned as u64, "round")
    } else {
        format!(
            "{} of {}",
            summary.rounds_measured,
            plural(planned as u64, "round")
        )
    };
    let until = summary.until.as_ref();
    let until = until.map_or(String::new(), |until| format!("; {}", until.sentence));
    let all = if summary.groups.is_empty() {
        "all variants side by side in each"
    } else {
        "variants of a group side by side"
    };
    let order = match (summary.order, summary.slice_us) {
        (Order::SideBySide, _) if summary.is_capacity => {
            format!("{all}, whose searches advance rate by rate in shuffled order")
        }
        (Order::SideBySide, Some(slice_us)) => format!(
            "{all}, in slices of {} in shuffled order",
            // Slices are fitted into the load, so microseconds of them mean nothing.
            digits::length_us((slice_us + 500).max(1_000) / 1_000 * 1_000)
        ),
        (Order::SideBySide, None) => {
            format!("{all}, every due time one request to each")
        }
        (Order::InTurn, _) => "every variant once a round in shuffled order".to_owned(),
    };
    let because = summary.in_turn_because.as_ref();
    let because = because.map_or(String::new(), |because| {
        format!(", in turn and not side by side: {because}")
    });
    let groups = company::in_words(summary);
    format!(
        "{rounds}, {order}{groups}{because}, seed {}{until}",
        summary.seed
    )
}

/// Said at the top of every rendering when the user stopped the run.
pub(crate) fn interruption(summary: &Summary) -> Option<String> {
    summary.interrupted.then(|| match summary.kind {
        Kind::Lab => format!(
            "INTERRUPTED: {} of {} were measured before the run was stopped",
            summary.rounds_measured,
            plural(summary.rounds_planned as u64, "round"),
        ),
        Kind::Load => "INTERRUPTED: the run was stopped before its end".to_owned(),
    })
}

/// How to read the figures, a sentence each.
pub(crate) fn statistics(summary: &Summary) -> Vec<String> {
    let mut sentences = vec![
        "A figure is computed per round; what is shown is the Hodges-Lehmann estimate over rounds, \
         with as many digits as its interval supports."
            .to_owned(),
    ];
    if summary.measurements_repeated > 0 {
        sentences.push(format!(
            "{} made again, since the generator stood still for more than {} of the time or was without \
             a core for more than {}; the disturbed ones are in the recording and count for nothing.",
            match summary.measurements_repeated {
                1 => "1 measurement was".to_owned(),
                many => format!("{many} measurements were"),
            },
            percent(PAUSED_SHARE_MAX),
            percent(STARVED_SHARE_MAX)
        ));
    }
    if summary.comparisons > 0 {
        let confidence = percent(summary.confidence_each);
        sentences.push(format!(
            "A difference from {} is paired by round; ± is half of its {confidence} Wilcoxon \
             interval, whose ends stand there instead where ± would misstate whether it contains 0.",
            summary.against()
        ));
        let decides = match summary.headline {
            Metric::Requests if summary.is_capacity => {
                "The highest rate sustained decides the verdict; all other figures are those at that rate"
            }
            Metric::Requests => "Requests per second decide the verdict (closed loop)",
            Metric::Typical => {
                "Typical latency, the mean of the fastest nine tenths of a round's requests, decides \
                 the verdict (open loop, side by side)"
            }
            _ => "Mean latency decides the verdict (open loop)",
        };
        sentences.push(if summary.comparisons > 1 {
            format!(
                "{decides}; {confidence} for each of {} comparisons makes all verdicts hold together \
                 at {} (Bonferroni).",
                summary.comparisons,
                percent(summary.confidence)
            )
        } else {
            format!("{decides}, at {}.", percent(summary.confidence))
        });
    }
    sentences.extend(company::sentences(summary));
    sentences.extend(summary.starts_omitted.clone());
    sentences.extend(sparse(summary));
    sentences.push(latency(summary).to_owned());
    sentences
}

/// What each verdict means, a sentence a variant.
pub(crate) fn in_words(summary: &Summary) -> Vec<String> {
    let rows = summary.variants.iter();
    rows.filter_map(|row| row.in_words.clone()).collect()
}

/// What stands in the tables for percentiles beyond which a round has too few requests; nothing where
/// each round has enough.
fn sparse(summary: &Summary) -> Option<String> {
    let with_number = || summary.variants.iter().filter(|row| row.has_number());
    let is_sparse = |metric: &Metric| {
        with_number().any(|row| row.metric(*metric).is_some_and(|it| it.is_sparse))
    };
    let sparse: Vec<&str> = Metric::ALL
        .into_iter()
        .filter(is_sparse)
        .map(Metric::label)
        .collect();
    (!sparse.is_empty()).then(|| {
        format!(
            "{}: fewer than ten requests of a round lie beyond, so the tables have the percentile of \
             the requests of all rounds together, and nothing where fewer than ten of those lie \
             beyond. Its difference has a bootstrap interval over rounds, from ten rounds and twenty \
             requests beyond on.",
            sparse.join(", ")
        )
    })
}

/// What the differences of this recording have: an interval, or too few rounds for one.
pub(crate) fn difference(summary: &Summary) -> String {
    let overheads = summary
        .variants
        .iter()
        .filter_map(|row| row.metric(summary.headline));
    let mut overheads = overheads.filter_map(|metric| metric.overhead.as_ref());
    match overheads.find(|overhead| overhead.claim == ClaimName::TooFewRounds) {
        Some(overhead) => format!(
            "difference; an interval needs {} of both, {} measured",
            plural(overhead.rounds_needed as u64, "round"),
            overhead.rounds
        ),
        None => {
            format!(
                "difference ± half of the {} interval",
                percent(summary.confidence_each)
            )
        }
    }
}

/// What latency means in this load.
pub(crate) fn latency(summary: &Summary) -> &'static str {
    if summary.is_open_loop {
        "Latency counts from the planned send to the last byte, so waiting is part of it."
    } else {
        "Latency counts from the send to the last byte; a closed loop sends less when answers are \
         late, so it shows what is sustained, not what a user would wait."
    }
}

/// What stdev and max of requests per second refer to: `over 100 ms windows`.
pub(crate) fn windows(summary: &Summary) -> Option<String> {
    let mut widths = summary
        .variants
        .iter()
        .filter_map(|row| row.rate_windows.as_ref());
    let width = widths.next()?.width_us;
    Some(format!("over {} windows", digits::length_us(width)))
}

/// The requests, one a line: `test: POST /graphql, 57 B`.
pub(crate) fn requests(load: &LoadText) -> Vec<String> {
    let line = |request: &crate::recording::RequestText| {
        let mut text = format!("{} {}", request.method, request.path);
        if request.name != text {
            text = format!("{}: {text}", request.name);
        }
        if request.body_bytes > 0 {
            text += &format!(
                ", {} body",
                digits::bytes(crate::metric::float(request.body_bytes))
            );
        }
        if request.weight != 1 {
            text += &format!(", weight {}", request.weight);
        }
        text
    };
    load.requests.iter().map(line).collect()
}

/// Every check that is not in order: `variant: state, name: text`.
pub(crate) fn troubles(summary: &Summary) -> Vec<String> {
    let of_row = |row: &VariantSummary| -> Vec<String> {
        let bad = row
            .checks
            .iter()
            .filter(|check| check.state != CheckState::Ok);
        bad.map(|check| {
            format!(
                "{}: {} ({}): {}",
                row.name, check.name, check.state, check.text
            )
        })
        .collect()
    };
    summary.variants.iter().flat_map(of_row).collect()
}

/// The command line, quoted for a shell where needed.
pub(crate) fn command(recording: &Recording) -> String {
    quoted(&recording.command)
}

/// Words as one would type them into a shell.
pub(crate) fn quoted(words: &[String]) -> String {
    // The characters that no shell treats in a special way.
    let quoted = |word: &String| {
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A confidence as people write it: `95 %`, `98.33 %`.
pub(crate) fn percent(share: f64) -> String {
    // Two decimals, because a corrected confidence such as 98.33 % needs them; zeros at the end go.
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `1 connection`, `100 connections`.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", digits::count(count))
}
