//! The settings of every open loop, for a given and for a searched rate.

use model::Arrival;

use crate::wire::{ArrivalFile, LoadFile, default};

/// Returns the largest number of connections of an open loop.
pub(crate) fn connections_max(file: &LoadFile) -> u32 {
    let most = file.connections_max.as_ref();
    most.map_or(default::CONNECTIONS_MAX, |most| most.value)
}

/// Returns the distribution of the gaps of an open loop.
pub(crate) fn arrival(file: &LoadFile, seed: Option<u64>) -> Arrival {
    match file.arrival.as_ref().map(|arrival| arrival.value) {
        Some(ArrivalFile::Poisson) => Arrival::Poisson {
            // The run replaces it by its own seed, see `Lab::load`.
            seed: seed.unwrap_or(0),
        },
        Some(ArrivalFile::Uniform) | None => Arrival::Uniform,
    }
}
