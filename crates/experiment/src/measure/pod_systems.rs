//! The systems of a lab in a cluster, and their addresses for the generators.

use std::net::SocketAddr;

use cluster::state::PodState;

use crate::pods::round_spec::Place;
use crate::pods::stage::Stage;
use crate::pods::wanted::Wanted;

/// The systems of these variants. Shared systems appear once, at the beginning.
pub fn wanted<'a>(lab: &'a lab::Lab, variants: &[usize]) -> Vec<Wanted<'a>> {
    let mut all: Vec<Wanted<'a>> = Vec::new();
    for one in wanted_each(lab, variants) {
        let is_known = |other: &Wanted<'_>| {
            other.variant == one.variant && other.setup.system == one.setup.system
        };
        if !all.iter().any(is_known) {
            all.push(one);
        }
    }
    // The sort is stable, so that each system stays behind its dependencies.
    all.sort_by_key(|one| one.variant.is_some());
    all
}

/// The systems of each of these variants.
pub(super) fn wanted_each<'a>(lab: &'a lab::Lab, variants: &[usize]) -> Vec<Wanted<'a>> {
    let mut all = Vec::new();
    for &variant in variants {
        let Some(candidate) = lab.all().nth(variant) else {
            continue;
        };
        let own = candidate
            .systems()
            .iter()
            .filter(|setup| setup.balances.is_none() && setup.elsewhere().is_none());
        all.extend(own.map(|setup| Wanted {
            variant: (!setup.is_shared).then_some(variant),
            setup,
        }));
    }
    all
}

/// The addresses of each variant's systems for the generators.
pub(super) fn places(
    stage: &Stage<'_>,
    wanted: &[Wanted<'_>],
    pods: &[PodState],
    lab: &lab::Lab,
) -> Vec<Place> {
    let mut places = Vec::new();
    for one in wanted {
        let port = stage.port_of(one);
        let loaded = stage.loaded_of(one, pods);
        // Behind a Service, any of several instances may respond.
        let are_several = match one.setup.manifests() {
            Some(_) => loaded.len() > 1,
            None => one.setup.replicas.is_some(),
        };
        let instances = loaded.into_iter().filter_map(|pod| {
            let ip = pod.ip.as_ref()?.parse().ok()?;
            Some(SocketAddr::new(ip, port))
        });
        let instances: Vec<SocketAddr> = match are_several {
            true => instances.collect(),
            false => Vec::new(),
        };
        let address = stage.address(one);
        let variants = lab.all().enumerate().filter(|(position, variant)| {
            let is_own = one.variant.is_none_or(|own| own == *position);
            is_own
                && variant
                    .systems()
                    .iter()
                    .any(|setup| setup.system == one.setup.system)
        });
        places.extend(variants.map(|(_, variant)| Place {
            variant: variant.name.clone(),
            system: one.setup.system.clone(),
            address,
            instances: instances.clone(),
        }));
    }
    places
}
