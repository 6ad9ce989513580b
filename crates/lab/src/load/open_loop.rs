//! What every open loop has, whether its rate is given or searched.

use model::Arrival;

use crate::wire::{ArrivalFile, LoadFile, default};

/// The most connections of an open loop.
pub(crate) fn connections_max(file: &LoadFile) -> u32 {
    let most = file.connections_max.as_ref();
    most.map_or(default::CONNECTIONS_MAX, |most| most.value)
}

/// The law of the gaps of an open loop.
pub(crate) fn arrival(file: &LoadFile, seed: Option<u64>) -> Arrival {
    match file.arrival.as_ref().map(|arrival| arrival.value) {
        Some(ArrivalFile::Poisson) => Arrival::Poisson {
            // The run replaces it by a seed of its own; see `Lab::load`.
            seed: seed.unwrap_or(0),
        },
        Some(ArrivalFile::Uniform) | None => Arrival::Uniform,
    }
}
