//! Addresses of systems that run already, and the consent to load them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;

use lab::{Elsewhere, Endpoint, Lab, Setup, Variant};
use model::{Goal, Load, Protocol, Trust};
use recording::VariantRecord;
use stats::sequential::LOOKS;

use crate::address;
use crate::exit::Failure;

/// The address of each host and port of a lab, resolved once. A measurement has one address, and a name must
/// not lead to another address after the consent.
#[derive(Debug, Default)]
pub struct Addresses(BTreeMap<(String, u16), SocketAddr>);

/// All addresses of each host and port.
type Found = BTreeMap<(String, u16), Vec<SocketAddr>>;

/// Consent to load of other machines than this one.
#[derive(Clone, Debug, Default)]
pub struct Consent {
    /// The hosts that may be loaded.
    pub hosts: Vec<String>,
    /// True if other machines may get unlimited load. Otherwise each variant gets at most 500 requests per
    /// second over 16 connections, for at most 15 minutes.
    pub is_unbounded: bool,
}

/// Maximum requests per second to each variant on another machine, without `--unbounded`.
const RATE_MAX: f64 = 500.0;
/// Maximum connections to each variant on another machine, without `--unbounded`.
const CONNECTIONS_MAX: u32 = 16;
/// Maximum total load of all rounds in seconds, without `--unbounded`.
const SECONDS_MAX: f64 = 15.0 * 60.0;

/// The protocol of a connection to a host and port that only shows if something listens.
fn protocol(lab: &Lab, key: &(String, u16)) -> Protocol {
    let systems = lab.all().flat_map(Variant::systems);
    let mut there = systems.filter(|setup| {
        let url = setup.elsewhere();
        url.is_some_and(|url| (&url.host, url.port) == (&key.0, key.1))
    });
    let version = |setup: &Setup| setup.http.is_http3().then_some(setup.http);
    match there.find_map(version) {
        None => Protocol::default(),
        Some(version) => Protocol {
            version,
            // The load verifies the certificate.
            tls: Some(Trust::SkipVerification),
            ..Protocol::default()
        },
    }
}

impl Addresses {
    /// Resolves every host of a lab.
    ///
    /// # Errors
    /// When a host has no address, is another machine without consent, or would get more load than the limits
    /// allow.
    pub fn of(lab: &Lab, consent: &Consent) -> Result<Addresses, Failure> {
        let found = Addresses::look_up(lab)?;
        for ((host, _), addresses) in &found {
            let mut others = addresses.iter();
            // Checked before the first connection.
            if let Some(other) = others.find(|it| !it.ip().to_canonical().is_loopback()) {
                consent.check(lab, host, &format!("another machine, {}", other.ip()))?;
            }
        }
        Addresses::accepting(lab, found)
    }

    /// Resolves every host without a check of consent, if no load will be sent.
    ///
    /// # Errors
    /// When a host has no address, or a system can only run in a cluster.
    pub fn unasked(lab: &Lab) -> Result<Addresses, Failure> {
        Addresses::accepting(lab, Addresses::look_up(lab)?)
    }

    /// The first address of each host that accepts a connection.
    fn accepting(lab: &Lab, found: Found) -> Result<Addresses, Failure> {
        let kept = found.into_iter().map(|(key, addresses)| {
            let protocol = protocol(lab, &key);
            let reach = |address: &SocketAddr| address::reach(*address, &key.0, &protocol);
            let address = address::first_accepting(&key.0, &addresses, reach)?;
            Ok((key, address))
        });
        kept.collect::<Result<_, Failure>>().map(Addresses)
    }

    /// Records the loaded address of systems with host names in their URLs.
    pub(crate) fn write_down(&self, lab: &Lab, variants: &mut [VariantRecord]) {
        for record in variants {
            let Some(variant) = lab.all().find(|it| it.name == record.name) else {
                continue;
            };
            for setup in variant.systems() {
                let Some(url) = setup.elsewhere() else {
                    continue;
                };
                if address::is_address(&url.host) {
                    continue;
                }
                let found = self.0.get(&(url.host.clone(), url.port));
                let mut systems = record.systems.iter_mut();
                if let Some(system) = systems.find(|it| it.name == setup.system) {
                    system.address = found.map(ToString::to_string);
                }
            }
        }
    }

    fn look_up(lab: &Lab) -> Result<Found, Failure> {
        let mut setups = lab.all().flat_map(Variant::systems);
        if let Some(setup) = setups.find(|setup| setup.manifests().is_some()) {
            return Err(Failure::bad_input(format!(
                "`{}` has manifests, which need a cluster. Add `--on kubernetes` to `weigh lab` or `weigh check`, or give it an `image`",
                setup.system
            )));
        }
        let mut addresses = BTreeMap::new();
        for url in lab
            .all()
            .flat_map(Variant::systems)
            .filter_map(Setup::elsewhere)
        {
            let key = (url.host.clone(), url.port);
            if let Entry::Vacant(place) = addresses.entry(key) {
                place.insert(address::resolve(&url.host, url.port)?);
            }
        }
        Ok(addresses)
    }

    /// The address of a system that runs already.
    pub(super) fn endpoint(&self, url: &Elsewhere) -> Endpoint {
        let key = (url.host.clone(), url.port);
        Endpoint {
            files: None,
            address: *self
                .0
                .get(&key)
                .expect("all hosts of the lab were looked up"),
            socket: None,
            authority: Some(url.authority.clone()),
        }
    }
}

impl Consent {
    /// Checks the consent for each system of a lab that already runs in a cluster or beyond it.
    ///
    /// # Errors
    /// When a host is not named, or would get more load than the limits allow.
    pub fn check_in_cluster(&self, lab: &Lab) -> Result<(), Failure> {
        let systems = lab.all().flat_map(Variant::systems);
        for url in systems.filter_map(Setup::elsewhere) {
            self.check(lab, &url.host, "a host that this run does not start")?;
        }
        Ok(())
    }

    /// `meaning` describes the host.
    fn check(&self, lab: &Lab, host: &str, meaning: &str) -> Result<(), Failure> {
        let is_named = |named: &String| named.eq_ignore_ascii_case(host);
        if !self.hosts.iter().any(is_named) {
            return Err(Failure::bad_input(format!(
                "`{host}` is {meaning}. If it is yours, or its owners agree, add `--yes-load {host}`"
            )));
        }
        if self.is_unbounded {
            return Ok(());
        }
        let too_much = |what: String| {
            Err(Failure::bad_input(format!(
                "{what} for the other machine `{host}`. Lower the load, or add `--unbounded` if the machine can take it"
            )))
        };
        match &lab.load {
            Load::Open { phases, .. } => {
                let rates = phases.iter().flat_map(|phase| [phase.from, phase.to]);
                let most = rates.map(model::Rate::per_second).fold(0.0, f64::max);
                if most > RATE_MAX {
                    return too_much(format!(
                        "expected at most {RATE_MAX} requests a second, found {most}"
                    ));
                }
            }
            Load::Closed { connections, .. } if *connections > CONNECTIONS_MAX => {
                return too_much(format!(
                    "expected at most {CONNECTIONS_MAX} connections, found {connections}"
                ));
            }
            Load::Closed { .. } => {}
        }
        if lab.settle.is_some() {
            return too_much(
                "expected no `settle`, because it sends without a limit, found one".to_owned(),
            );
        }
        if lab.capacity.is_some() {
            return too_much(
                "expected a bounded rate, found a search for the highest rate".to_owned(),
            );
        }
        let rounds = match lab.until {
            Some(Goal::Gates) => *LOOKS.end() as f64,
            Some(Goal::Width(_)) | None => f64::from(lab.rounds),
        };
        let is_short = match (lab.load.requests(), lab.load.duration()) {
            // The maximum number in the allowed time.
            (Some(requests), _) => requests as f64 * rounds <= RATE_MAX * SECONDS_MAX,
            (None, long) => long.is_some_and(|it| it.as_secs_f64() * rounds <= SECONDS_MAX),
        };
        if lab.until_width().is_some() || !is_short {
            return too_much(format!(
                "expected a load of at most {} minutes in all rounds, found a longer load",
                SECONDS_MAX / 60.0
            ));
        }
        Ok(())
    }
}
