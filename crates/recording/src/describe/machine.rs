//! Description of the machine on which a recording was made, and of the systems on it.

use super::plural;
use crate::digits;
use crate::{Environment, LimitsText, METHOD_OF_FIGURES, NoiseFloor, Recording, SystemRecord};

/// The environment, as label and value.
pub fn environment(recording: &Recording) -> Vec<(&'static str, String)> {
    let environment = &recording.environment;
    let mut facts = machine(environment);
    let average = |[one, five, fifteen]: [f64; 3]| format!("{one:.2} {five:.2} {fifteen:.2}");
    let before = environment.load_average_before.map(average);
    let after = environment.load_average_after.map(average);
    facts.push((
        "load average",
        match (before, after) {
            (Some(before), Some(after)) => format!("{before} before, {after} after"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => "not readable".to_owned(),
        },
    ));
    if let Some(steal_ms) = environment.steal_ms {
        facts.push((
            "steal time",
            format!("{} ms during the run", digits::count(steal_ms)),
        ));
    }
    let commit = recording
        .weigh
        .commit
        .as_ref()
        .map(|commit| format!(" ({commit})"));
    facts.push((
        "weigh",
        format!(
            "{}{}, method {}, figures by method {METHOD_OF_FIGURES}",
            recording.weigh.version,
            commit.unwrap_or_default(),
            recording.method
        ),
    ));
    facts.extend(cluster(recording));
    facts.extend(lost_rounds(recording).map(|lost| ("lost", lost)));
    facts.extend(network(recording).map(|way| ("network", way)));
    facts.push((
        "run",
        format!(
            "{} to {}",
            moment(&recording.started_at),
            moment(&recording.ended_at)
        ),
    ));
    facts
}

/// The cluster of the recording.
fn cluster(recording: &Recording) -> Vec<(&'static str, String)> {
    let Some(cluster) = &recording.cluster else {
        return Vec::new();
    };
    let mut facts = vec![(
        "cluster",
        format!(
            "Kubernetes {}, namespace `{}`, {}; processor time {}",
            cluster.version,
            cluster.namespace,
            plural(u64::from(cluster.generators), "generator"),
            cluster.processor_time
        ),
    )];
    facts.extend(cluster.nodes.iter().map(|node| {
        let text = format!(
            "{}: {} cores, {}, {}, {}, kubelet {}",
            node.name, node.cpu, node.os, node.kernel, node.runtime, node.kubelet
        );
        ("node", text)
    }));
    facts.extend(cluster.placed.iter().map(|placed| {
        let whose = placed.variant.as_ref();
        let whose = whose.map_or(String::new(), |variant| format!(" of {variant}"));
        let node = placed.node.as_deref().unwrap_or("no node");
        let quality = placed.quality.as_ref();
        let quality = quality.map_or(String::new(), |quality| format!(", {quality}"));
        (
            "pod",
            format!(
                "{}{whose}: `{}` on {node}{quality}",
                placed.system, placed.pod
            ),
        )
    }));
    facts
}

/// The rounds that the cluster took a pod from, in words.
pub fn lost_rounds(recording: &Recording) -> Option<String> {
    let lost = &recording.cluster.as_ref()?.lost_rounds;
    let last = lost.last()?;
    Some(format!(
        "the cluster took a pod away, or its result, in {}. Their figures do not count. The last: {last}",
        plural(lost.len() as u64, "attempt")
    ))
}

/// The network in words: `way there and back 45 us (p50), 120 us (p99)`. `None` unless targets were on other
/// machines or in pods.
pub fn network(recording: &Recording) -> Option<String> {
    let mut all = stats::Histogram::new();
    let (mut sent, mut again) = (0, 0);
    for network in recording
        .rounds
        .iter()
        .filter_map(|round| round.network.as_ref())
    {
        all.add(&network.round_trip_ns_hdr.histogram());
        sent += network.segments.unwrap_or(0);
        again += network.retransmitted.unwrap_or(0);
    }
    let shown = |share: f64| {
        let way = all.quantile_ns(share)?;
        Some(digits::duration_ns(crate::float::float(way)))
    };
    Some(format!(
        "a TCP handshake during the load took {} (p50), {} (p95), {} (p99). Every latency contains this round trip, but differences do not. {} of {} segments were sent again",
        shown(0.5)?,
        shown(0.95)?,
        shown(0.99)?,
        digits::count(again),
        digits::count(sent)
    ))
}

/// The environment, one line per fact: `kernel: Linux 6.1`.
pub fn facts(recording: &Recording) -> Vec<String> {
    let facts = environment(recording).into_iter();
    facts
        .map(|(label, value)| format!("{label}: {value}"))
        .collect()
}

/// The noise floor in words: `mean 12.1 µs, p50 …` by `weigh tare`.
fn floor(floor: &NoiseFloor) -> String {
    let shown = |us: f64| digits::duration_ns(us * 1e3);
    format!(
        "mean {}, p50 {}, p99 {} (`weigh tare` of {}: {} rounds at {}/s)",
        shown(floor.latency_us_mean),
        shown(floor.latency_us_p50),
        shown(floor.latency_us_p99),
        floor.made_at.get(..10).unwrap_or(&floor.made_at),
        floor.rounds,
        floor.requests_per_s,
    )
}

/// A time without the fraction of its second.
pub fn moment(rfc3339: &str) -> String {
    match rfc3339.split_once('.') {
        Some((whole, fraction)) => {
            let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{whole}{zone}")
        }
        None => rfc3339.to_owned(),
    }
}

fn machine(environment: &Environment) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |label, value: Option<String>| facts.extend(value.map(|value| (label, value)));
    let cores = environment
        .cores
        .map(|cores| plural(u64::from(cores), "core"));
    let model = environment.cpu_model.clone();
    add(
        "CPU",
        model
            .into_iter()
            .chain(cores)
            .reduce(|model, cores| format!("{model}, {cores}")),
    );
    add("governor", environment.governor.clone());
    add(
        "boost",
        environment
            .boost
            .map(|is_on| if is_on { "on" } else { "off" }.to_owned()),
    );
    add(
        "SMT",
        environment
            .smt
            .map(|is_on| if is_on { "on" } else { "off" }.to_owned()),
    );
    add(
        "idle cores",
        environment
            .cores_awake
            .map(|are_awake| if are_awake { "kept awake" } else { "asleep" }.to_owned()),
    );
    add(
        "other programs",
        environment.precedence.map(|is_taken| {
            if is_taken {
                "come after"
            } else {
                "as important"
            }
            .to_owned()
        }),
    );
    add(
        "memory",
        environment
            .memory_bytes
            .map(|bytes| digits::bytes(crate::float::float(bytes))),
    );
    add("huge pages", environment.transparent_huge_pages.clone());
    add("kernel", environment.kernel.clone());
    add("system", environment.os.clone());
    add("virtualization", environment.virtualization.clone());
    add("accounting", environment.accounting.clone());
    add(
        "generator pinned to",
        environment
            .generator_cpus
            .as_ref()
            .map(|cpus| numbers(cpus)),
    );
    add("noise floor", environment.noise_floor.as_ref().map(floor));
    for (name, value) in &environment.other {
        add("also", Some(format!("{name}: {value}")));
    }
    facts
}

/// Versions, pinned cores and limits of the systems. Equal lines appear once.
pub fn systems(recording: &Recording) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for variant in &recording.variants {
        for system in &variant.systems {
            let line = format!(
                "{} of {}: {}",
                system.name,
                variant.name,
                system_facts(system)
            );
            lines.push(line);
        }
    }
    lines
}

/// The origin and the settings of a system, in one line.
pub fn system_facts(system: &SystemRecord) -> String {
    let origin = match (&system.url, &system.version) {
        (Some(url), _) => match &system.address {
            Some(address) => format!("ran already at {url} ({address})"),
            None => format!("ran already at {url}"),
        },
        (None, Some(version)) => version.clone(),
        (None, None) => "version unknown".to_owned(),
    };
    let mut facts = vec![origin];
    if let Some(image) = &system.image {
        facts.push(format!("image {image}"));
    }
    if let Some(digest) = &system.manifests {
        let short: String = digest.chars().take(12).collect();
        facts.push(format!("manifests of sha256 {short}"));
    }
    if let Some(network) = &system.network {
        facts.push(format!("network {network}"));
    }
    if let Some(replicas) = system.replicas {
        facts.push(plural(u64::from(replicas), "instance"));
    }
    if let Some(cpus) = &system.cpus {
        facts.push(format!("pinned to core {}", numbers(cpus)));
    }
    if system.limits_asked != LimitsText::default() {
        facts.push(limits_in_force(system));
    }
    facts.join(", ")
}

/// True if a requested limit is not in force, or not as requested. False for a system that never started.
pub fn is_limit_unmet(system: &SystemRecord) -> bool {
    if was_not_started(system) {
        return false;
    }
    let asked = &system.limits_asked;
    let enforced = system.limits_enforced.unwrap_or_default();
    // The kernel rounds memory to pages and processor time to microseconds of a period. A tolerance of 1 % is
    // larger than this rounding and smaller than any limit that was set by mistake.
    let differs = |asked: Option<f64>, found: Option<f64>| match (asked, found) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(asked), Some(found)) => (found / asked - 1.0).abs() > 0.01,
    };
    let bytes = |bytes: Option<u64>| bytes.map(crate::float::float);
    differs(asked.cpus, enforced.cpus)
        || differs(bytes(asked.memory_bytes), bytes(enforced.memory_bytes))
}

/// True if the recording contains no data on the limits. This happens if the run ended before the system
/// started.
fn was_not_started(system: &SystemRecord) -> bool {
    system.limits_enforced.is_none() && system.limits_by.is_none()
}

/// The limits in words: `limited to 0.25 CPU (cgroup v2)`, `LIMITS NOT ENFORCED: 0.25 CPU (reason)`,
/// `no limit`.
pub fn limits_in_force(system: &SystemRecord) -> String {
    if system.limits_asked == LimitsText::default() {
        return "no limit".to_owned();
    }
    let asked = limits(&system.limits_asked);
    if was_not_started(system) {
        return format!("a limit of {asked}, not started");
    }
    let by = system.limits_by.as_deref().unwrap_or("reason unknown");
    match &system.limits_enforced {
        Some(_) if !is_limit_unmet(system) => format!("limited to {asked} ({by})"),
        Some(enforced) => format!(
            "LIMITS NOT AS ASKED: {asked} asked, {} in force ({by})",
            limits(enforced)
        ),
        None => format!("LIMITS NOT ENFORCED: {asked} ({by})"),
    }
}

/// The limits that a lab asked for.
pub fn limits(limits: &LimitsText) -> String {
    let cpus = limits.cpus.map(|cpus| format!("{cpus} CPU"));
    let memory = limits
        .memory_bytes
        .map(|bytes| digits::bytes(crate::float::float(bytes)));
    let both: Vec<String> = cpus.into_iter().chain(memory).collect();
    if both.is_empty() {
        "nothing".to_owned()
    } else {
        both.join(" and ")
    }
}

fn numbers(cpus: &[usize]) -> String {
    cpus.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleRun;

    #[test]
    fn limits_of_a_system_that_never_started_are_not_called_unmet() {
        let mut system = SampleRun::graphql_server().variants[0].systems[0].clone();
        system.limits_asked.cpus = Some(0.5);
        assert_eq!(limits_in_force(&system), "a limit of 0.5 CPU, not started");
        assert!(!is_limit_unmet(&system));

        system.limits_by = Some("no control groups".to_owned());
        assert_eq!(
            limits_in_force(&system),
            "LIMITS NOT ENFORCED: 0.5 CPU (no control groups)"
        );
        assert!(is_limit_unmet(&system));
    }
}
