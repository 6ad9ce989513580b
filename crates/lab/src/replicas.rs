//! Several instances of a system, and the balancer in front of them.

use std::collections::BTreeMap;

use model::{Resumption, Version};
use yaml_with_places::{At, Finding, Place};

use crate::experiment::{Balance, Balances, Limits, Origin, Probe, Ready, Setup};
use crate::formats::{Name, Verbatim};
use crate::reading::Reading;
use crate::scope::Scope;
use crate::systems::Systems;
use crate::template::Template;
use crate::text::Text;
use crate::wire::SystemFile;

/// The largest number of instances of one system. A larger number is a mistake.
const COUNT_MAX: u32 = 64;

/// Command of the balancer.
const PROGRAM: &str = "haproxy";

/// Several instances of one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    /// Number of instances. At least 1.
    pub(crate) count: u32,
    pub(crate) balance: Balance,
}

/// Returns the instances of a system in a variant. `None` for a system without a balancer.
pub(crate) fn of(
    scope: &Scope<'_>,
    name: &At<Name>,
    file: &SystemFile,
    reading: &mut Reading<'_>,
) -> Option<Replicas> {
    let system = &name.value.0;
    let text = |written: &At<Verbatim<Template>>, reading: &mut Reading<'_>| {
        scope
            .text(system, &written.value.0, written.place, reading)
            .to_string()
    };
    let balance_at = file.balance.as_ref();
    // Filled in before other checks, so that its own mistakes are reported in every case.
    let balance = balance_at.map(|it| text(it, reading));
    let Some(replicas_at) = &file.replicas else {
        if let Some(at) = balance_at {
            reading.findings.add(
                Finding::new(at.place, "`balance` without `replicas`")
                    .help("give the number of instances: `replicas: 4`"),
            );
        }
        return None;
    };
    let replicas = text(replicas_at, reading);
    let count = count(&replicas, replicas_at.place, reading)?;
    let balance = match balance.as_deref() {
        None | Some("leastconn") => Balance::LeastConn,
        Some("roundrobin") => Balance::RoundRobin,
        // A template may choose it, so that a variant with one instance is measured without a
        // balancer.
        Some("none") => {
            if count > 1 {
                reading.findings.add(
                    Finding::new(
                        replicas_at.place,
                        format!("{count} instances need a balancer, found `balance: none`"),
                    )
                    .help("write `balance: leastconn` or `roundrobin`. `none` needs `replicas: 1`"),
                );
            }
            return None;
        }
        Some(other) => {
            let place = balance_at.map_or(replicas_at.place, |at| at.place);
            reading.findings.add(
                Finding::new(
                    place,
                    format!("expected `leastconn`, `roundrobin` or `none`, found `{other}`"),
                )
                .help("write `none` only for one instance"),
            );
            return None;
        }
    };
    if scope.is_encrypted(system) {
        reading.findings.add(
            Finding::new(replicas_at.place, "`replicas` cannot be used with `scheme: https`")
                .help("the balancer uses plain HTTP with the load and with the instances. Remove one of the two"),
        );
        return None;
    }
    Some(Replicas { count, balance })
}

fn count(text: &str, place: Place, reading: &mut Reading<'_>) -> Option<u32> {
    let number = text.trim().parse().ok();
    let count = number.filter(|count| (1..=COUNT_MAX).contains(count));
    if count.is_none() {
        let advice =
            format!("write a whole number from 1 to {COUNT_MAX}, or a setting with such a value");
        reading.findings.add(
            Finding::new(place, format!("`{text}` is not a number of instances")).help(advice),
        );
    }
    count
}

/// Returns the balancer in front of the instances of a setup.
pub(crate) fn balancer(setup: &Setup, balance: Balance) -> Setup {
    let plain = |word: &str| Text::default().followed_by(word);
    Setup {
        system: balancer_name(&setup.system),
        folder: setup.folder.clone(),
        build: Vec::new(),
        // The configuration is added when the addresses exist. `-db` keeps the balancer in the foreground, so
        // that `weigh` notices its end.
        origin: Origin::Run([PROGRAM, "-db", "-f"].map(plain).to_vec()),
        version: Some([PROGRAM, "-v"].map(plain).to_vec()),
        env: Vec::new(),
        env_of_run: Vec::new(),
        files: Vec::new(),
        ready: Ready {
            probe: match &setup.ready.probe {
                // Instances are healthy before it starts, and it has no health check itself.
                Probe::Healthy => Probe::Listening,
                other => other.clone(),
            },
            within: setup.ready.within,
        },
        // `replicas` with `https` is refused, so all its traffic is without TLS.
        is_encrypted: false,
        http: Version::Http1,
        resumption: Resumption::Off,
        // The limits apply to an instance. A limited balancer would be measured instead of the system.
        limits: Limits::default(),
        pin: setup.pin.clone(),
        needs: vec![PROGRAM.to_owned()],
        // After the instances are ready, so that its own readiness means that requests get responses.
        after: vec![setup.system.clone()],
        settings: BTreeMap::from([("balance".to_owned(), plain(balance.word()))]),
        replicas: None,
        balances: Some(Balances {
            system: setup.system.clone(),
            balance,
        }),
        // A system with instances cannot be shared.
        is_shared: false,
    }
}

fn balancer_name(system: &str) -> String {
    format!("{system}-balancer")
}

/// Reports systems with the name of an instance or a balancer.
pub(crate) fn check_names(systems: &Systems<'_>, reading: &mut Reading<'_>) {
    for (name, file) in systems.declared {
        let Some(replicas) = &file.replicas else {
            continue;
        };
        let system = &name.value.0;
        let prefix = format!("{system}-");
        let is_taken = |other: &&(At<Name>, SystemFile)| {
            let other = &other.0.value.0;
            let number = other.strip_prefix(&prefix);
            *other == balancer_name(system)
                || number.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()))
        };
        for (other, _) in systems.declared.iter().filter(is_taken) {
            reading.findings.add(
                Finding::new(
                    other.place,
                    format!("`replicas` of `{system}` already uses the name `{}`", other.value.0),
                )
                .related(replicas.place, "given here")
                .help("instances are named `NAME-1`, `NAME-2` and so on, and their balancer `NAME-balancer`. Choose another name"),
            );
        }
    }
}
