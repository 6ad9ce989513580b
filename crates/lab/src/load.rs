//! The arrival of requests: exactly one kind of load, with an end.

use std::time::Duration;

use model::{Capacity, Load, Phase, Rate, Stop};
use schedule::OpenPlan;
use yaml_with_places::{At, Entry, Finding, Findings, Node};

use crate::capacity;
use crate::experiment::{Protocol, RateChoice};
use crate::formats::{Format, Written};
use crate::level::Level;
use crate::quantities::{LoadRate, LongerThanZero};
use crate::reading::Reading;
use crate::sweep;
use crate::ways::WAYS;
use crate::wire::{LoadFile, PhaseFile, Switch, default};

pub(crate) mod open_loop;
mod protocol;

use open_loop::{arrival, connections_max};
pub(crate) use protocol::{
    check_authorities, check_carried, check_certificate, check_versions, keeps_connections,
    resumption, version,
};

/// The `load` of a lab without its requests.
pub(crate) struct Sending {
    pub(crate) load: Load,
    pub(crate) rate_choice: Option<RateChoice>,
    pub(crate) capacity: Option<Capacity>,
    pub(crate) sweep: Vec<Level>,
    pub(crate) slice: Duration,
    pub(crate) timeout: Duration,
    pub(crate) keep_alive: bool,
    pub(crate) threads: u32,
    pub(crate) protocol: Protocol,
    pub(crate) spin_percent: u32,
    pub(crate) realtime: bool,
    pub(crate) awake: bool,
    pub(crate) precedence: bool,
}

/// Checks `load`. `entry` is the same key in the tree, which still shows keys with wrong values.
pub(crate) fn check(
    file: &LoadFile,
    entry: &Entry,
    seed: Option<u64>,
    reading: &mut Reading<'_>,
) -> Option<Sending> {
    // Read from the tree, because a misspelled rate is still the choice of a rate.
    let choice = choice(entry, reading)?;
    let rate_choice = rate_choice(file, reading);
    check_neighbors(choice, &entry.node, rate_choice.is_some(), reading);
    let (load, capacity, sweep) = if file.capacity.is_some() {
        let (load, capacity) = capacity::check(file, seed, reading)?;
        (load, Some(capacity), Vec::new())
    } else if file.sweep.is_some() {
        let (load, sweep) = sweep::check(file, choice, seed, reading)?;
        (load, None, sweep)
    } else {
        (load(file, seed)?, None, Vec::new())
    };
    let finds = &mut reading.findings;
    check_plan(choice, &load, finds);
    check_threads(file, &load, finds);
    check_slice(file, finds);
    let protocol = protocol::check(file, reading);
    Some(Sending {
        protocol,
        spin_percent: file
            .spin
            .as_ref()
            .map_or(default::SPIN_PERCENT, |spin| spin.value),
        realtime: file
            .realtime
            .as_ref()
            // On unless switched off, because both make an open loop more punctual.
            .is_none_or(|realtime| realtime.value == Switch::On),
        awake: file
            .awake
            .as_ref()
            .is_none_or(|awake| awake.value == Switch::On),
        precedence: file
            .precedence
            .as_ref()
            .is_none_or(|precedence| precedence.value == Switch::On),
        load,
        rate_choice,
        capacity,
        sweep,
        slice: time_span(
            file.slice.as_ref().map(|slice| &slice.value),
            default::SLICE,
        )
        .0,
        timeout: time_span(file.timeout.as_ref(), default::TIMEOUT).0,
        keep_alive: file.keep_alive != Some(Switch::Off),
        threads: file
            .threads
            .as_ref()
            .map_or(default::THREADS, |threads| threads.value),
    })
}

/// Checks that the plan is possible. The run builds it again for each round.
fn check_plan(choice: &Entry, load: &Load, findings: &mut Findings) {
    if let Load::Open {
        phases,
        arrival,
        requests_max,
        ..
    } = load
        && let Err(error) = OpenPlan::new(phases, *arrival, *requests_max)
    {
        findings.add(Finding::new(choice.key_place, error.to_string()));
    }
}

/// Reports more threads than connections. A thread drives its own connections, so the additional threads
/// would have no connection.
fn check_threads(file: &LoadFile, load: &Load, findings: &mut Findings) {
    let connections_max = load.connections();
    let threads = file.threads.as_ref();
    if let Some(threads) = threads.filter(|threads| threads.value > connections_max) {
        let message = format!(
            "{} threads for {connections_max} connections",
            threads.value
        );
        findings.add(Finding::new(threads.place, message).help(format!(
            "each thread needs a connection. Lower `threads` to {connections_max}"
        )));
    }
}

/// Returns a value as written, or the default.
pub(crate) fn time_span<F: Format + Copy>(written: Option<&Written<F>>, default: &str) -> F {
    match written {
        Some(Written(value)) => *value,
        None => F::read(default).expect("defaults are written as a person would"),
    }
}

/// A placeholder for a length that the run chooses.
const ROUND_GUESS: Duration = Duration::from_secs(2);

/// Returns the parts of the load that the run chooses, if the lab has `rate: auto`. Keys that the choice
/// cannot keep are reported.
fn rate_choice(file: &LoadFile, reading: &mut Reading<'_>) -> Option<RateChoice> {
    let rate = file.rate.as_ref()?;
    if rate.value.0 != LoadRate::Auto {
        return None;
    }
    let others = [
        ("count", file.count.as_ref().map(|it| it.place)),
        ("scenario", file.scenario.as_ref().map(|it| it.place)),
    ];
    for (key, place) in others {
        if let Some(place) = place {
            let help = match key {
                "count" => {
                    "`rate: auto` chooses a rate for a duration. Write `duration` instead of `count`, or write a rate"
                }
                _ => {
                    "`rate: auto` cannot choose a rate of iterations. Write a rate, such as `10/s`"
                }
            };
            reading.findings.add(
                Finding::new(place, format!("`{key}` cannot be used with `rate: auto`"))
                    .related(rate.place, "given here")
                    .help(help),
            );
        }
    }
    Some(RateChoice {
        keeps_duration: file.duration.is_some(),
    })
}

/// Returns the key that defines the arrival of requests.
fn choice<'a>(load: &'a Entry, reading: &mut Reading<'_>) -> Option<&'a Entry> {
    let mut given = WAYS.iter().filter_map(|way| load.node.entry(way.key));
    let findings = &mut reading.findings;
    let Some(first) = given.next() else {
        // It may be in a file that could not be read.
        if reading.has_gaps {
            return None;
        }
        findings.add(
            Finding::new(load.key_place, "the load has no rate and no number of connections").help(
                "give `connections: 100` (closed loop), `rate: 100/s` or `phases` (open loop), `capacity` (search for the highest rate), or `sweep` (several loads)",
            ),
        );
        return None;
    };
    // A misspelled key that was taken for this key already has its own mistake.
    for other in given.filter(|other| !other.is_guess && !first.is_guess) {
        findings.add(
            Finding::new(
                other.key_place,
                format!("`{}` and `{}` exclude each other", first.key, other.key),
            )
            .related(first.key_place, "given here")
            .help(
                "`connections` makes a closed loop, and `rate` and `phases` make an open loop. \
                 `connections-max` limits the connections of an open loop",
            ),
        );
    }
    Some(first)
}

/// The shortest slice. In a shorter slice, the effects of a scheduler, which last tens of milliseconds, would
/// dominate.
const SLICE_MIN: Duration = Duration::from_millis(50);

/// Checks that a slice is longer than its uncounted beginning, and not longer than the load.
fn check_slice(file: &LoadFile, findings: &mut Findings) {
    let Some(At { value, place }) = &file.slice else {
        return;
    };
    let (Written(LongerThanZero(slice)), place) = (*value, *place);
    if let Some(count) = &file.count {
        findings.add(
            Finding::new(place, "`slice` cannot be used with `count`")
                .related(count.place, "given here")
                .help(
                    "slices are planned by time. Remove `count` and end the load with `duration`",
                ),
        );
    }
    if slice < SLICE_MIN {
        findings.add(
            Finding::new(place, format!("a slice of {slice:?} is too short"))
                .help("the beginning of a slice does not count. Write at least `50ms`"),
        );
    }
    if let Some(duration) = &file.duration {
        let Written(LongerThanZero(whole)) = duration.value;
        if slice > whole {
            findings.add(
                Finding::new(
                    place,
                    format!("a slice of {slice:?} is longer than the load of {whole:?}"),
                )
                .related(duration.place, "given here")
                .help("write a shorter slice, so that variants take turns within a round"),
            );
        }
    }
}

/// Reports keys that belong to another kind of load, and a missing end.
fn check_neighbors(choice: &Entry, load: &Node, is_chosen: bool, reading: &mut Reading<'_>) {
    let findings = &mut reading.findings;
    let ends: &[&str] = match choice.key.as_str() {
        "capacity" | "sweep" => &["duration"],
        _ => &["duration", "count"],
    };
    // Read from the tree, because a misspelled `duration` is not a missing `duration`.
    let stops = is_chosen || ends.iter().any(|key| load.entry(key).is_some());
    if choice.key != "phases" && !stops && !reading.has_gaps {
        let help = match choice.key.as_str() {
            "capacity" => "give `duration: 5s`, the time that each rate is held",
            "sweep" => "give `duration: 5s`, the time that each level is held in a round",
            _ => {
                "give `duration: 5s`, `count: 10000`, or both. The load ends at the first of the two"
            }
        };
        findings.add(Finding::new(choice.key_place, "the load has no end").help(help));
    }
    let way = WAYS.iter().find(|way| way.key == choice.key);
    let misplaced = way.map_or(&[][..], |way| way.misplaced);
    let given = misplaced.iter().filter_map(|key| load.entry(key));
    for entry in given.filter(|entry| !entry.is_guess) {
        let (message, help) = match entry.key.as_str() {
            "duration" => (
                "`duration` cannot be used with `phases`",
                "each phase has its own duration. Remove this one",
            ),
            "count" if choice.key == "sweep" => (
                "`count` cannot be used with `sweep`",
                "each level is held for `duration`, so that all levels take the same time. Remove this key",
            ),
            "count" => (
                "`count` cannot be used with `capacity`",
                "a rate counts as sustained if it is held for `duration`. Remove this key",
            ),
            "slice" => (
                "`slice` cannot be used in an open loop",
                "only a closed loop (`connections`) moves from variant to variant in slices. An open loop side by side sends each request to all variants",
            ),
            "arrival" => (
                "`arrival` cannot be used with `connections`",
                "a closed loop sends when the previous answer is complete. Only `rate` and `phases` have arrivals",
            ),
            "realtime" => (
                "`realtime` cannot be used with `connections`",
                "a closed loop has no due times. Only `rate` and `phases` have them",
            ),
            "spin" => (
                "`spin` cannot be used with `connections`",
                "a closed loop has no due times. Only `rate` and `phases` have them",
            ),
            _ => (
                "`connections-max` cannot be used with `connections`",
                "a closed loop has exactly `connections`. Only `rate` and `phases` need a limit",
            ),
        };
        findings.add(
            Finding::new(entry.key_place, message)
                .related(choice.key_place, "given here")
                .help(help),
        );
    }
}

fn load(file: &LoadFile, seed: Option<u64>) -> Option<Load> {
    let duration = file.duration.as_ref().map(|At { value, .. }| value.0.0);
    let count = file.count.as_ref().map(|count| count.value);
    if let Some(connections) = &file.connections {
        return Some(Load::Closed {
            connections: connections.value,
            stop: Stop {
                requests: count,
                duration,
            },
        });
    }
    let phases: Vec<Phase> = if let Some(rate) = &file.rate {
        vec![match rate.value.0 {
            LoadRate::Given(rate) => Phase::constant(
                // Without a duration the count ends the load. `check_neighbors` requires one of the two.
                duration.unwrap_or(Duration::MAX),
                rate,
            ),
            LoadRate::Auto => {
                // The highest rate that the run may choose, until it has chosen.
                let highest = Rate::new(schedule::fit::RATE_MAX).expect("a positive number");
                Phase::constant(duration.unwrap_or(ROUND_GUESS), highest)
            }
        }]
    } else {
        // Missing only if it was wrong, which is reported.
        let phases = file.phases.as_ref()?;
        phases.value.iter().map(phase).collect::<Option<_>>()?
    };
    Some(Load::Open {
        phases,
        arrival: arrival(file, seed),
        connections_max: connections_max(file),
        requests_max: count,
    })
}

fn phase(file: &PhaseFile) -> Option<Phase> {
    let Written(LongerThanZero(duration)) = file.duration?;
    let Written(from) = file.rate?;
    let to: Rate = file.to.map_or(from, |Written(to)| to);
    Some(Phase { duration, from, to })
}
