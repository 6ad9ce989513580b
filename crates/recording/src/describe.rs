//! Description of a recording's setup in words, for all report formats.

mod machine;

use std::collections::BTreeSet;

use model::{Arrival, Capacity, Load, Phase, micros};

use crate::digits;
use crate::{HttpText, Kind, ProtocolText, Recording, RequestText, ResumptionText, TlsText};

pub use machine::{
    environment, facts, is_limit_unmet, limits, limits_in_force, lost_rounds, moment, network,
    system_facts, systems,
};

/// The load:
/// `closed loop, 100 connections, 5 s a round after 1 s of warm-up, keep-alive, 1 generator thread`.
pub fn load(recording: &Recording) -> String {
    let load = &recording.load;
    let mut parts = vec![match &load.capacity {
        Some(capacity) => search(capacity, &load.model),
        None => model(&load.model),
    }];
    parts.extend(load.address.iter().map(|address| format!("to {address}")));
    if load.is_scenario {
        let steps = plural(load.requests.len() as u64, "step");
        parts.push(format!("iterations of {steps} each"));
    }
    if !load.shard.is_whole() {
        parts.push(format!(
            "shard {} of {}",
            load.shard.index() + 1,
            load.shard.of()
        ));
    }
    parts.push(length(recording));
    parts.extend(
        load.chosen
            .iter()
            .map(|chosen| format!("rate chosen by the run ({})", chosen.because)),
    );
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

/// The protocol: `HTTP/2 over TLS (certificate not verified), 8 streams a connection`.
pub fn protocol(protocol: &ProtocolText) -> String {
    let mut text = match protocol.http {
        HttpText::Http1 => "HTTP/1.1",
        HttpText::Http2 => "HTTP/2",
        HttpText::Http3 => "HTTP/3",
    }
    .to_owned();
    text += match protocol.tls {
        TlsText::Off => "",
        TlsText::Verified => " over TLS",
        TlsText::Unverified => " over TLS (certificate not verified)",
    };
    if protocol.client_certificate {
        text += " with a certificate of the client";
    }
    text += match protocol.resumption {
        None => "",
        Some(ResumptionText::On) => ", resumed connections",
        Some(ResumptionText::EarlyData) => ", resumed connections with 0-RTT",
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

/// The search:
/// `open loop, the highest sustained rate between 1,000 and 40,000 requests/s (in steps of 10 %) with p99
/// below 10 ms, …`.
fn search(capacity: &Capacity, load: &Load) -> String {
    // An expected half width of 0.05 % shows a rate to the digits that a user would type.
    let rate = |per_s: f64| digits::value(per_s, Some(per_s * 0.0005));
    let rest = model(load);
    // The model's text begins with the kind of loop and the rate of the first step. Both are left out,
    // because the sentence names the loop and the range of rates.
    let rest: Vec<&str> = rest.split(", ").skip(2).collect();
    format!(
        "open loop, the highest sustained rate between {} and {} requests/s (in steps of {} %) with \
         p99 below {}, {}",
        rate(capacity.from().per_second()),
        rate(capacity.to().per_second()),
        digits::value(capacity.step_percent(), None),
        digits::length_us(micros(capacity.p99_below())),
        rest.join(", ")
    )
}

/// The amount of load: `100 requests/s`, `8 connections`.
pub fn amount(model: &Load) -> String {
    match model {
        Load::Closed { connections, .. } => plural(u64::from(*connections), "connection"),
        Load::Open { phases, .. } => rates(phases),
    }
}

/// The rates: `100 requests/s`. If there are several phases, each has its length.
pub fn rates(phases: &[Phase]) -> String {
    let rate = digits::planned;
    let phase = |phase: &Phase| {
        // The texts are compared, because rates that look equal are equal for the reader.
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

/// The length: `5 s a round after 1 s of warm-up`.
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
            named(&recording.load.kept_systems)
        );
    }
    text
}

/// Names in backticks: `` `planets` and `gateway` ``
pub fn named(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Differences between starts that no interval contains, because systems were started once.
pub fn starts_omitted(recording: &Recording) -> Option<String> {
    let load = &recording.load;
    let elsewhere = systems_elsewhere(recording);
    let is_elsewhere = |name: &String| elsewhere.contains(name.as_str());
    let is_all = match load.keeps_systems {
        // A variant may have systems that other variants do not have, so this checks the systems of all
        // variants.
        true => {
            let mut all = recording.variants.iter().flat_map(|one| &one.systems);
            all.all(|system| system.url.is_some())
        }
        false => load.kept_systems.iter().all(is_elsewhere),
    };
    if !elsewhere.is_empty() && is_all {
        let names: Vec<String> = elsewhere.into_iter().map(str::to_owned).collect();
        return Some(format!(
            "{} ran before and kept running. An interval covers the differences between blocks of \
             time. It does not cover the difference of another start or another machine.",
            named(&names)
        ));
    }
    let (who, whose) = match (load.keeps_systems, &*load.kept_systems) {
        (false, []) => return None,
        (true, _) => (
            "All systems were".to_owned(),
            "another start of the systems",
        ),
        (false, [one]) => (format!("`{one}` was"), "another start of the system"),
        (false, many) => (
            format!("{} were", named(many)),
            "another start of the systems",
        ),
    };
    let others = if load.keeps_systems {
        String::new()
    } else {
        ", the other systems again in every round".to_owned()
    };
    Some(format!(
        "{who} started once{others}. An interval is valid for these processes, and {whose} can \
         differ by more. A lab without `--quick` starts every system again in every round."
    ))
}

/// Names of the systems that ran before the run.
fn systems_elsewhere(recording: &Recording) -> BTreeSet<&str> {
    let systems = recording.variants.iter().flat_map(|one| &one.systems);
    systems
        .filter(|system| system.url.is_some())
        .map(|system| system.name.as_str())
        .collect()
}

/// The requests, one per line: `test: POST /graphql, 57 B`.
pub fn requests(requests: &[RequestText]) -> Vec<String> {
    let line = |request: &RequestText| {
        let mut text = format!("{} {}", request.method, request.path);
        if request.name != text {
            text = format!("{}: {text}", request.name);
        }
        if request.body_bytes > 0 {
            text += &format!(
                ", {} body",
                digits::bytes(crate::float::float(request.body_bytes))
            );
        }
        if request.operations != 1 {
            let operations = plural(request.operations.into(), "operation");
            text += &format!(", {operations}");
        }
        if request.weight != 1 {
            text += &format!(", weight {}", request.weight);
        }
        text
    };
    requests.iter().map(line).collect()
}

/// The command line, quoted for a shell where needed.
pub fn command(recording: &Recording) -> String {
    quoted(&recording.command)
}

/// Words as a user would type them into a shell.
pub fn quoted(words: &[String]) -> String {
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

/// A confidence in the usual form: `95 %`, `98.33 %`.
pub fn percent(share: f64) -> String {
    // A corrected confidence such as 98.33 % needs two decimals. Zeros at the end are removed.
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A count with its noun: `1 connection`, `100 connections`.
pub fn plural(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", digits::count(count))
}
