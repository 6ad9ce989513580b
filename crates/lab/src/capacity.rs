//! The search for the highest rate: bounds in order, and not too many rates between them.

use std::time::Duration;

use model::{Capacity, CapacityError, Load, Phase};
use yaml_with_places::Finding;

use crate::formats::Written;
use crate::load::open_loop::{arrival, connections_max};
use crate::quantities::{LongerThanZero, PositiveRate};
use crate::reading::Reading;
use crate::wire::{LoadFile, default};

/// Returns the search of `capacity`, with the load of its first step. `None` if it is incomplete or wrong,
/// which is reported.
pub(crate) fn check(
    file: &LoadFile,
    seed: Option<u64>,
    reading: &mut Reading<'_>,
) -> Option<(Load, Capacity)> {
    let capacity = &file.capacity.as_ref()?.value;
    let from = capacity.from.as_ref()?;
    let to = capacity.to.as_ref()?;
    let (Written(PositiveRate(lowest)), Written(PositiveRate(highest))) = (from.value, to.value);
    let Written(LongerThanZero(p99_below)) = capacity.p99_below.as_ref()?.value;
    let step = capacity.step_percent.as_ref();
    let percent = step.map_or(default::STEP_PERCENT, |step| step.value);
    let capacity = match Capacity::new(lowest, highest, percent, p99_below) {
        Ok(capacity) => capacity,
        Err(error @ CapacityError::Order { .. }) => {
            reading.findings.add(
                Finding::new(to.place, error.to_string())
                    .related(from.place, "the lowest rate")
                    .help("the search increases the rate. Write the higher rate under `to`"),
            );
            return None;
        }
        Err(error) => {
            let place = step.map_or(to.place, |step| step.place);
            reading
                .findings
                .add(Finding::new(place, error.to_string()).help("write 1 to 100"));
            return None;
        }
    };
    let duration: Duration = file.duration.as_ref()?.value.0.0;
    let load = Load::Open {
        phases: vec![Phase::constant(duration, lowest)],
        arrival: arrival(file, seed),
        connections_max: connections_max(file),
        requests_max: None,
    };
    Some((load, capacity))
}
