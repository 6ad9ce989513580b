//! `weigh lab --on kubernetes`: runs a lab with pods instead of processes.

use std::path::PathBuf;
use std::time::Duration;

use cluster::workload::dns_label;
use cluster::{ApiConnection, ClusterError};
use experiment::console::Console;
use experiment::environment;
use experiment::exit::Failure;
use experiment::files::{Disk, Kept, Unwritten};
use experiment::measure::{ATTEMPTS, Experiment, Source, wanted};
use experiment::pods::packed_files::PackedFiles;
use experiment::pods::stage::{BESIDE_LOAD, GeneratorPods, PodsSpec, Stage};
use experiment::pods::waits::PodWaits;
use experiment::pods::{cleanup_task, manifests, refusal, round_spec};
use experiment::stop::StopSignal;
use experiment::systems::Addresses;
use lab::Lab;

use super::{Recorded, Run};
use crate::cluster_args::ClusterArgs;

impl Run<'_> {
    /// Refuses a lab or a flag that a cluster cannot have, before the connection to a cluster. Returns the files
    /// of the lab.
    fn checked(&self, lab: &Lab) -> Result<PackedFiles, Failure> {
        if let Some(reason) = refusal::refusal(lab, lab.generators) {
            return Err(Failure::bad_input(format!(
                "`{}` in a cluster: {reason}",
                lab.name
            )));
        }
        manifests::read(lab, &Disk, None).map_err(Failure::bad_input)?;
        let flags = [(self.flamegraph, "--flamegraph"), (self.why, "--why")];
        if let Some((_, flag)) = flags.into_iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::bad_input(format!(
                "`{flag}` samples processes of this machine, not processes of a cluster"
            )));
        }
        // A private key must not become an object of the cluster.
        if lab.protocol.client.is_some() {
            return Err(Failure::bad_input(format!(
                "expected a lab without `load.tls` for `--on kubernetes`, found `{}`, whose key is a file of this machine. Measure it on this machine",
                lab.name
            )));
        }
        self.consent.given().check_in_cluster(lab)?;
        let files = files_of(lab, self.unwritten)?;
        let packed = PackedFiles::of(files.iter().map(|(path, content)| (path, content)));
        packed.map_err(Failure::bad_input)
    }

    /// Runs one lab in a cluster and records it in a folder. The folder is created after all checks have
    /// passed.
    pub(super) fn recorded_in_cluster(
        &self,
        args: &ClusterArgs,
        folder: impl FnOnce() -> Result<PathBuf, Failure>,
        lab: &Lab,
        console: Console,
        stop: &StopSignal,
    ) -> Result<Recorded, Failure> {
        let files = self.checked(lab)?;
        let image = args.image()?;
        let place = args.place();
        let asked = stop.clone();
        let connection = ApiConnection::open(&place, move || asked.is_asked())
            .map_err(|error| no_cluster(&error))?;
        let manifests = manifests::read(lab, &Disk, Some(connection.namespace()));
        let manifests = manifests.map_err(Failure::bad_input)?;
        let source = Source {
            settings: lab.asked.clone(),
            version: connection.version().map_err(|error| no_cluster(&error))?,
            namespace: connection.namespace().to_owned(),
            max_time: self
                .max_time
                .or_else(|| lab.until.is_some().then_some(lab.max_time)),
        };
        let folder = folder()?;
        let mut experiment = Experiment::new(lab, Addresses::default(), &folder, console, stop)?
            .published(self.account.clone())
            .served(self.board.clone())
            .deciding(self.gates.with_those_of(lab).to_gates());
        let id = run_id(&lab.name);
        // Registered before the first object is created, because this process may be killed at any moment.
        experiment.keep(&cleanup_task::of_run(&id, &place, connection.namespace()))?;
        let waits = args.waits();
        let deadline = deadline(lab, waits);
        console.say(format_args!(
            "weigh: run `{id}` in the namespace `{}` of Kubernetes {}",
            connection.namespace(),
            source.version
        ));
        let run = cluster::Run::begin(&connection, &id, &image, deadline)
            .map_err(|error| no_cluster(&error))?;
        let all: Vec<usize> = (0..lab.all().count()).collect();
        let stage = Stage::begin(
            run,
            &wanted(lab, &all),
            manifests,
            GeneratorPods {
                image,
                count: lab.generators,
                deadline,
                waits,
                spec: PodsSpec::of(lab),
                files,
            },
        );
        let stage = stage.map_err(|error| no_cluster(&error))?;
        let ran = experiment.run_in_pods(stage, &source)?;
        Ok(Recorded {
            failed_end: ran.failure,
            ..self.saved(folder, lab, ran.recording)?
        })
    }
}

/// All files of the lab, for its generators.
///
/// # Errors
/// When they are too large for a cluster, or changed meanwhile.
pub(in crate::command) fn files_of(
    lab: &Lab,
    unwritten: Option<&Unwritten>,
) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
    let kept = Kept::default();
    let files = match unwritten {
        Some(Unwritten(files)) => files.clone(),
        None if lab::parse_with(&lab.path, &kept, &lab.asked).is_ok() => kept.files(),
        None => {
            return Err(Failure::bad_input(format!(
                "`{}` changed while weigh read it. Start again",
                lab.path.display()
            )));
        }
    };
    let fit = round_spec::check_files(lab, &files, &lab.asked);
    fit.map_err(|reason| Failure::bad_input(format!("`{}` in a cluster: {reason}", lab.name)))?;
    Ok(files)
}

/// The failure of a call to a cluster.
pub(in crate::command) fn no_cluster(error: &ClusterError) -> Failure {
    Failure::not_ready(error.to_string())
}

/// Time limit of a round. The cluster then ends its pods.
fn deadline(lab: &Lab, waits: PodWaits) -> Duration {
    let load = lab.load.duration().unwrap_or(Duration::from_secs(3_600));
    let settle = lab.settle.map_or(Duration::ZERO, |settle| settle.within);
    // The load is counted several times, because disturbed measurements are repeated.
    load * (ATTEMPTS + 1)
        + lab.warmup * 2
        + settle * 2
        + lab.timeout
        + waits.given.unwrap_or_default() * 2
        + BESIDE_LOAD
}

/// A unique name of a run, from the lab's name and the current time.
pub(in crate::command) fn run_id(lab: &str) -> String {
    let now = environment::now().as_microsecond();
    // Only the last digits, because they differ between runs and a Service's name has little room.
    let moment = format!("{:07x}", now & 0xfff_ffff);
    format!("{}-{moment}", dns_label(lab, 12))
}
