//! The job of the generators of a round: the lab, its files, and the addresses of its systems.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use lab::{Elsewhere, Lab, Variant};
use model::{Load, Settle, Shard};
use serde::{Deserialize, Serialize};

use super::cluster_domain;
use super::meeting::Meeting;
use super::packed_files::{self, FileOfLab, PackedFiles, PackingList, SECRET_BYTES_MOST};
use crate::files::Unwritten;

/// Port of the barrier on the first generator.
pub const BARRIER_PORT: u16 = 7100;

/// The job of the generators of a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundSpec {
    pub meeting: Meeting,
    /// Path of the lab file.
    lab: PathBuf,
    /// The files of the lab, which come separately.
    pub(super) files: PackingList,
    /// Settings of the command line.
    settings: Vec<(String, String)>,
    /// The remaining variants. The generators leave out all other variants.
    variants: Vec<String>,
    /// The load, with the changes of the command line.
    load: Load,
    warmup_us: u64,
    settle: Option<Settle>,
    pub seed: u64,
    /// Number of the round, from 0.
    pub round: usize,
    rounds: u32,
    /// The address of each system of each variant.
    places: Vec<Place>,
    /// The DNS domain in the host names of manifests. `None` for a lab without manifests.
    domain: Option<String>,
}

/// The address of a system of a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) variant: String,
    pub(crate) system: String,
    pub(crate) address: SocketAddr,
    /// The addresses of the instances, for proofs by counting. Empty for a single instance.
    pub(crate) instances: Vec<SocketAddr>,
}

/// The values that change from round to round.
pub(crate) struct ThisRound {
    pub(crate) number: usize,
    pub(crate) variants: Vec<String>,
    pub(crate) places: Vec<Place>,
    pub(crate) meeting: Meeting,
    /// The DNS domain of the cluster.
    pub(crate) domain: String,
}

/// Refuses a lab with files, or with other input of its generators, that are too large for a cluster.
///
/// # Errors
/// The reason as a sentence.
pub fn check_files(
    lab: &Lab,
    files: &[(PathBuf, Vec<u8>)],
    settings: &[(String, String)],
) -> Result<(), String> {
    packed_files::check_files(files.iter().map(|(path, content)| (path, content)))?;
    let nowhere = SocketAddr::from(([192, 0, 2, 255], BARRIER_PORT));
    let variants: Vec<String> = lab.names().into_iter().map(str::to_owned).collect();
    let systems = |variant: &String| {
        let mut all = lab.all();
        let systems = all.find(|it| it.name == *variant).map(Variant::systems);
        systems
            .unwrap_or_default()
            .iter()
            .map(|it| it.system.clone())
    };
    let places = variants.iter().flat_map(|variant| {
        systems(variant).map(|system| Place {
            variant: variant.clone(),
            system,
            address: nowhere,
            instances: Vec::new(),
        })
    });
    let round = ThisRound {
        number: lab.rounds as usize,
        places: places.collect(),
        variants: variants.clone(),
        meeting: Meeting::of(
            lab.generators,
            nowhere,
            // As long as a SHA-256.
            "0".repeat(64),
            Duration::from_secs(999),
        ),
        domain: lab.pods.cluster_domain.clone().unwrap_or_default(),
    };
    // The list has the same length for all files.
    let list = PackedFiles::of([])?.list().clone();
    let spec = RoundSpec::of(lab, u64::MAX, &list, settings, round);
    let text = serde_json::to_vec(&spec).map_err(|error| error.to_string())?;
    check_size(text.len())
}

/// Refuses a job that is too large for a Secret.
///
/// # Errors
/// The reason as a sentence.
pub fn check_size(bytes: usize) -> Result<(), String> {
    match bytes > SECRET_BYTES_MOST {
        true => Err(format!(
            "the job of the generators has {bytes} bytes without its files, but a Secret holds only {SECRET_BYTES_MOST}. Use fewer variants, or put long settings into a file"
        )),
        false => Ok(()),
    }
}

impl RoundSpec {
    /// The job for a lab that was read from the files of this list.
    pub(crate) fn of(
        lab: &Lab,
        seed: u64,
        files: &PackingList,
        settings: &[(String, String)],
        round: ThisRound,
    ) -> RoundSpec {
        RoundSpec {
            meeting: round.meeting,
            lab: lab.path.clone(),
            files: files.clone(),
            settings: settings.to_vec(),
            variants: round.variants,
            load: lab.load.clone(),
            warmup_us: model::micros(lab.warmup),
            settle: lab.settle,
            seed,
            round: round.number,
            rounds: lab.rounds,
            places: round.places,
            domain: cluster_domain::matters_to(lab).then_some(round.domain),
        }
    }

    /// Refuses a run that expected another DNS domain than the cluster of this pod has. `resolver` is the text of
    /// [`cluster_domain::RESOLVER`].
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn check_domain(&self, resolver: &str) -> Result<(), String> {
        match &self.domain {
            Some(domain) => cluster_domain::check(domain, resolver),
            None => Ok(()),
        }
    }

    /// The lab as a generator runs it, read from its files. Only the first generator compares counters of systems with the
    /// requests of all generators.
    ///
    /// # Errors
    /// When the job is damaged.
    pub fn lab(&self, files: Vec<FileOfLab>, shard: Shard) -> Result<Lab, String> {
        let mut lab = lab::parse_with(&self.lab, &Unwritten(files), &self.settings)
            .map_err(|mistakes| mistakes.render(false))?;
        lab.load = self.load.clone();
        lab.sweep.clear();
        lab.warmup = Duration::from_micros(self.warmup_us);
        lab.settle = self.settle;
        lab.rounds = self.rounds;
        lab.until = None;
        lab.seed = Some(self.seed);
        self.leave_out(&mut lab)?;
        if shard.index() > 0 {
            for variant in std::iter::once(&mut lab.baseline).chain(&mut lab.variants) {
                variant.proofs.clear();
            }
        }
        lab.relocated(&|variant, system| self.place(variant, system))
    }

    fn leave_out(&self, lab: &mut Lab) -> Result<(), String> {
        let is_in = |variant: &Variant| self.variants.contains(&variant.name);
        lab.variants.retain(is_in);
        let has_baseline = is_in(&lab.baseline);
        for variant in &mut lab.variants {
            // A variant without its baseline is a baseline of this run.
            let is_left = |name: &String| self.variants.contains(name);
            variant.against = variant.against.take().filter(is_left);
        }
        if has_baseline {
            return Ok(());
        }
        let first = lab.variants.iter().position(|it| it.against.is_none());
        let first =
            first.ok_or_else(|| format!("the baseline `{}` is missing", lab.baseline.name))?;
        let baseline = lab.variants.remove(first);
        lab.set_baseline(baseline);
        Ok(())
    }

    fn place(&self, variant: &str, system: &str) -> Option<Elsewhere> {
        let mut places = self.places.iter();
        let place = places.find(|place| place.variant == variant && place.system == system)?;
        let authority = place.address.to_string();
        Some(Elsewhere {
            // An IPv6 address has brackets.
            host: match place.address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            },
            port: place.address.port(),
            authority,
            attach: None,
            instances: place.instances.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const LAB: &str = "question: Why?\nload: {rate: 10/s, duration: 1s, requests: r.json}\n\
        target: server\nsystems:\n  server: {image: 'a:1', port: 80, replicas: 2}\n\
        baseline: {name: a}\nvariants: [{name: b}, {name: c}]\nexpect: {status: 200}\n\
        proof: [{name: seen, ask: '{{server.url}}/seen', json: /n, at-least-per-request: 1}]\n";

    fn files() -> Vec<FileOfLab> {
        vec![
            (PathBuf::from("l/lab.yaml"), LAB.as_bytes().to_vec()),
            (PathBuf::from("l/r.json"), br#"{"query": "{ a }"}"#.to_vec()),
        ]
    }

    fn spec() -> RoundSpec {
        spec_at(&|last| IpAddr::from([10, 0, 0, last]))
    }

    /// The job of a cluster that gives these addresses to its Services.
    fn spec_at(ip: &dyn Fn(u8) -> IpAddr) -> RoundSpec {
        let lab = lab::parse(Path::new("l/lab.yaml"), &Unwritten(files()))
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
        let place = |variant: &str, last: u8| Place {
            variant: variant.to_owned(),
            system: "server".to_owned(),
            address: SocketAddr::new(ip(last), 80),
            instances: vec![SocketAddr::from(([10, 1, 0, last], 80))],
        };
        let round = ThisRound {
            number: 3,
            variants: vec!["a".to_owned(), "c".to_owned()],
            places: vec![place("a", 1), place("c", 3)],
            meeting: Meeting::of(
                2,
                SocketAddr::new(ip(9), BARRIER_PORT),
                "t".to_owned(),
                Duration::from_secs(60),
            ),
            domain: "cluster.local".to_owned(),
        };
        let packed = PackedFiles::of(files().iter().map(|(path, content)| (path, content)));
        let packed = packed.expect("they fit");
        let spec = RoundSpec::of(&lab, 7, packed.list(), &[], round);
        let text = serde_json::to_string(&spec).expect("JSON");
        serde_json::from_str(&text).expect("the same")
    }

    #[test]
    fn a_generator_reads_the_same_lab_with_the_addresses_of_its_systems() {
        let spec = spec();
        let lab = spec
            .lab(files(), spec.meeting.shard(0).expect("a shard"))
            .expect("a lab");
        assert_eq!(lab.names(), ["a", "c"]);
        assert_eq!(lab.seed, Some(7));
        let places: Vec<&str> = lab
            .all()
            .map(|variant| {
                assert_eq!(variant.systems().len(), 1, "no balancer of ours");
                let elsewhere = variant.systems()[0].elsewhere().expect("it runs already");
                assert_eq!(elsewhere.instances.len(), 1);
                elsewhere.host.as_str()
            })
            .collect();
        assert_eq!(places, ["10.0.0.1", "10.0.0.3"]);
        assert_eq!(lab.baseline.proofs.len(), 1);
        // Only the first generator compares the counters of systems with all requests.
        let other = spec
            .lab(files(), spec.meeting.shard(1).expect("a shard"))
            .expect("a lab");
        assert!(other.baseline.proofs.is_empty());
        assert!(spec.meeting.shard(2).is_err());
    }

    #[test]
    fn what_does_not_fit_into_a_cluster_is_refused_before_a_pod_starts() {
        let with = |bytes: usize| {
            let mut files = files();
            files.push((PathBuf::from("l/data.csv"), vec![b'x'; bytes]));
            files
        };
        let lab = lab::parse(Path::new("l/lab.yaml"), &Unwritten(files()))
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
        assert_eq!(check_files(&lab, &with(20 << 20), &[]), Ok(()));
        let refused = check_files(&lab, &with(33 << 20), &[]).unwrap_err();
        assert!(
            refused.contains("at most 32 MiB") && refused.contains("`l/data.csv`"),
            "{refused}"
        );
        let long = [("name".to_owned(), "x".repeat(1 << 20))];
        let refused = check_files(&lab, &files(), &long).unwrap_err();
        assert!(refused.contains("a Secret holds only 921600"), "{refused}");
    }

    #[test]
    fn a_cluster_with_ipv6_has_its_addresses_everywhere() {
        let spec = spec_at(&|last| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)]));
        assert_eq!(spec.meeting.barrier(None).listen.to_string(), "[::]:7100");
        let lab = spec
            .lab(files(), spec.meeting.shard(0).expect("a shard"))
            .expect("a lab");
        let setup = &lab.baseline.systems()[0];
        let elsewhere = setup.elsewhere().expect("it runs already");
        assert_eq!(
            (elsewhere.host.as_str(), elsewhere.authority.as_str()),
            ("[fd00::1]", "[fd00::1]:80")
        );
        assert_eq!(
            super::tests::spec()
                .meeting
                .barrier(None)
                .listen
                .to_string(),
            "0.0.0.0:7100"
        );
    }
}
