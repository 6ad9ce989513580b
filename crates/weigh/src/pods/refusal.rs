//! What of a lab a cluster cannot have: refused before anything is made there.

use lab::{Endpoint, Lab, Variant};
use model::Order;

use super::systems::Which;

/// Why this lab cannot be measured in a cluster, by so many generators; a sentence.
pub(crate) fn refusal(lab: &Lab, generators: u32) -> Option<String> {
    of_order(lab)
        .or_else(|| of_load(lab, generators))
        .or_else(|| of_systems(lab))
}

fn of_order(lab: &Lab) -> Option<String> {
    if lab.groups.is_some() {
        return Some(
            "`groups` are for variants that crowd each other on one machine; in a cluster all are up at once: leave them out".to_owned(),
        );
    }
    match lab.order() {
        (Order::SideBySide, _) => None,
        (Order::InTurn, because) => Some(format!(
            "in a cluster variants are measured side by side, and this lab cannot be: {}",
            because.unwrap_or("it asks for `order: in-turn`")
        )),
    }
}

fn of_load(lab: &Lab, generators: u32) -> Option<String> {
    if lab.capacity.is_some() {
        return Some(
            "a search for the highest rate decides after each step, which generators in pods do not do together; ask for a `rate`".to_owned(),
        );
    }
    if !lab.load.is_open() && generators > 1 {
        return Some(format!(
            "a closed loop moves from variant to variant as one generator finds it, and {generators} would move apart; ask for a `rate`, or for one generator"
        ));
    }
    if lab.load.connections() < generators {
        return Some(format!(
            "{generators} generators share {} connections, so one would have none",
            lab.load.connections()
        ));
    }
    None
}

fn of_systems(lab: &Lab) -> Option<String> {
    let nowhere = || std::net::SocketAddr::from(([192, 0, 2, 1], 1));
    for (variant, candidate) in lab.all().enumerate() {
        let setups = Variant::systems(candidate).iter();
        for setup in setups.filter(|setup| setup.balances.is_none()) {
            let which = Which {
                run: "check",
                variant: Some(variant),
                setup,
            };
            let anywhere = |_: &str| Some(Endpoint::from(nowhere()));
            let checked = which.workload(String::new(), std::time::Duration::ZERO, &anywhere);
            if let Err(reason) = checked {
                return Some(format!("`{}`: {reason}", candidate.name));
            }
        }
    }
    None
}
