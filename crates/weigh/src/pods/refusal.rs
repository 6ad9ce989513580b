//! What of a lab a cluster cannot have: refused before anything is made there.

use std::net::SocketAddr;
use std::time::Duration;

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
    if lab.rate_choice.is_some() {
        return Some(
            "`rate: auto` is chosen by short loads from this machine, which a cluster does not get; write a rate, such as `rate: 100/s`".to_owned(),
        );
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
    for (variant, candidate) in lab.all().enumerate() {
        let setups = Variant::systems(candidate).iter();
        // What manifests may hold is found when they are read.
        let ours = setups.filter(|setup| setup.balances.is_none() && setup.manifests().is_none());
        for setup in ours {
            let which = Which {
                run: "check",
                variant: Some(variant),
                setup,
            };
            // Any address will do: none is connected to.
            let anywhere = |_: &str| Some(Endpoint::from(SocketAddr::from(([192, 0, 2, 1], 1))));
            let checked = which.workload(String::new(), Duration::ZERO, &anywhere);
            if let Err(reason) = checked {
                return Some(format!("`{}`: {reason}", candidate.name));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::files::Unwritten;

    /// A lab with these lines of its own, and these keys of its system.
    fn lab(lines: &str, system: &str) -> Lab {
        let text = format!(
            "question: Why?\n{lines}\ntarget: server\nsystems:\n  server: {system}\n\
             baseline: {{name: a}}\nvariants: [{{name: b}}]\nexpect: {{status: 200}}\n"
        );
        let files = Unwritten(vec![(PathBuf::from("lab.yaml"), text.clone().into_bytes())]);
        lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{text}{}", mistakes.render(false)))
    }

    const RATE: &str = "load: {rate: 10/s, duration: 1s}";
    const SYSTEM: &str = "{image: 'a:1', port: 80}";

    #[test]
    fn what_a_cluster_can_have_is_not_refused() {
        assert_eq!(refusal(&lab(RATE, SYSTEM), 2), None);
        let closed = lab("load: {connections: 4, duration: 1s}", SYSTEM);
        assert_eq!(refusal(&closed, 4), None);
        let replicas = "{image: 'a:1', port: 80, replicas: 4, limits: {cpus: 1, memory: 64MiB}}";
        assert_eq!(refusal(&lab(RATE, replicas), 2), None);
    }

    #[test]
    fn loads_that_generators_would_have_to_decide_about_are_refused() {
        let refused = |lines: &str, generators: u32| {
            refusal(&lab(lines, SYSTEM), generators).unwrap_or_default()
        };
        let search = "load: {capacity: {from: 10/s, to: 20/s, p99-below: 1ms}, duration: 1s}";
        assert!(refused(search, 1).contains("a search for the highest rate"));
        let closed = "load: {connections: 4, duration: 1s}";
        assert!(refused(closed, 5).contains("5 generators share 4 connections"));
        let in_turn = format!("{RATE}\norder: in-turn");
        assert!(refused(&in_turn, 1).contains("side by side"));
        let few = "load: {rate: 10/s, duration: 1s, connections-max: 1}";
        assert!(refused(few, 2).contains("share 1 connections"));
    }

    #[test]
    fn systems_that_are_of_this_machine_are_refused_by_name_with_advice() {
        for (system, said) in [
            (
                "{run: 'server --listen {{addr}}'}",
                "`server` has no `image`",
            ),
            ("{image: 'a:1', port: 80, pin: 0}", "static CPU manager"),
            (
                "{image: 'a:1', port: 80, limits: {cpus: 1}}",
                "add `limits.memory`",
            ),
            (
                "{image: 'a:1', port: 80, limits: {memory: 64MiB}}",
                "add `limits.cpus`",
            ),
            (
                "{image: 'a:1', port: 80, volumes: './x:/x'}",
                "put it into the image",
            ),
            ("{image: 'a:1', port: 80, user: app}", "by its number"),
            (
                "{image: 'a:1', port: 80, ready: healthy}",
                "give it `ready: {path: …}`",
            ),
            (
                "{image: 'a:1', port: 80, ready: {path: /, status: 404}}",
                "from 200 to 399",
            ),
            (
                "{image: 'a:1', port: 80, replicas: 2, env: {A: 'n-{{instance}}'}}",
                "all told the same",
            ),
            ("{url: 'http://192.0.2.1/'}", "has a `url`"),
        ] {
            let refused = refusal(&lab(RATE, system), 1).unwrap_or_default();
            assert!(
                refused.contains(said) && refused.starts_with("`a`"),
                "{system}: {refused}"
            );
        }
    }
}
