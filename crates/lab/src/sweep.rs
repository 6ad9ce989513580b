//! Several loads of one kind. The lab is measured at each, one after the other.

use std::collections::BTreeSet;

use model::{Load, Phase};
use yaml_with_places::{At, Entry, Finding};

use crate::experiment::Lab;
use crate::formats::Verbatim;
use crate::level::Level;
use crate::load::open_loop::{arrival, connections_max};
use crate::reading::Reading;
use crate::ways::way;
use crate::wire::LoadFile;

/// Returns the levels of `sweep`, the lowest first, and the load of the lowest. `None` if it is wrong, which
/// is reported.
pub(crate) fn check(
    file: &LoadFile,
    entry: &Entry,
    seed: Option<u64>,
    reading: &mut Reading<'_>,
) -> Option<(Load, Vec<Level>)> {
    let written = &file.sweep.as_ref()?.value;
    let mut refuse = |place, message: String, help: &str| {
        reading
            .findings
            .add(Finding::new(place, message).help(help));
    };
    let levels: Vec<Level> = written.iter().map(|level| level.value.0).collect();
    // The schema limits their number, and has reported any other number.
    let first = *levels.first()?;
    let mut seen = BTreeSet::new();
    for At { value, place } in written {
        let Verbatim(level) = value;
        if matches!(level, Level::Rate(_)) != matches!(first, Level::Rate(_)) {
            let message = format!("`{level}` cannot be used with `{first}`");
            refuse(
                *place,
                message,
                "rates and connections are different kinds of load. Write only one kind",
            );
            return None;
        }
        // The bits of positive numbers have the order of the numbers.
        if !seen.insert(level.amount().to_bits()) {
            refuse(
                *place,
                format!("`{level}` is given twice"),
                "each level is measured once. Remove one of the two",
            );
            return None;
        }
    }
    check_neighbors(first, entry, file, reading);
    let mut levels = levels;
    levels.sort_by(|one, other| one.amount().total_cmp(&other.amount()));
    let duration = file.duration.as_ref()?.value.0.0;
    let load = match levels[0] {
        Level::Rate(rate) => Load::Open {
            phases: vec![Phase::constant(duration, rate)],
            arrival: arrival(file, seed),
            connections_max: connections_max(file),
            requests_max: None,
        },
        Level::Connections(connections) => Load::Closed {
            connections,
            stop: model::Stop {
                requests: None,
                duration: Some(duration),
            },
        },
    };
    Some((load, levels))
}

/// Reports keys that belong to the other kind of load.
fn check_neighbors(first: Level, entry: &Entry, file: &LoadFile, reading: &mut Reading<'_>) {
    let kind = match first {
        Level::Rate(_) => "rate",
        Level::Connections(_) => "connections",
    };
    let given = [
        ("slice", file.slice.as_ref().map(|it| it.place)),
        ("arrival", file.arrival.as_ref().map(|it| it.place)),
        (
            "connections-max",
            file.connections_max.as_ref().map(|it| it.place),
        ),
        ("spin", file.spin.as_ref().map(|it| it.place)),
        ("realtime", file.realtime.as_ref().map(|it| it.place)),
    ];
    for (key, place) in given {
        if let Some(place) = place.filter(|_| way(kind).misplaced.contains(&key)) {
            reading.findings.add(
                Finding::new(place, format!("`{key}` cannot be used with a `sweep` of {kind}"))
                    .related(entry.key_place, "given here")
                    .help(match kind {
                        "rate" => "only a closed loop moves from variant to variant in slices. Remove this key",
                        _ => "a closed loop has no due times and a fixed number of connections. Remove this key",
                    }),
            );
        }
    }
}

impl Lab {
    /// Returns the lab at each level of its sweep. Without a sweep, returns the lab itself.
    #[must_use]
    pub fn levels(&self) -> Vec<Lab> {
        match self.sweep.as_slice() {
            [] => vec![self.clone()],
            levels => levels.iter().map(|level| self.at(*level)).collect(),
        }
    }

    /// Returns the lab at one level of its sweep.
    ///
    /// # Panics
    ///
    /// If the level is of another kind of load, and so of no sweep of this lab.
    #[must_use]
    pub fn at(&self, level: Level) -> Lab {
        let mut lab = self.clone();
        lab.sweep = Vec::new();
        match (&mut lab.load, level) {
            (Load::Open { phases, .. }, Level::Rate(rate)) => {
                for phase in phases {
                    *phase = Phase::constant(phase.duration, rate);
                }
            }
            (Load::Closed { connections, .. }, Level::Connections(number)) => {
                *connections = number;
            }
            (load, level) => panic!("{level} is no level of {load:?}"),
        }
        lab
    }
}
