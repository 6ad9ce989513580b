//! `weigh generator`: one of the generators of a round, in a pod. Started by `weigh lab --on kubernetes`, not
//! by users.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::measure::{Experiment, Peers};
use experiment::pods::barrier::GeneratorBarrier;
use experiment::pods::cluster_domain;
use experiment::pods::generator_job::{self, GeneratorJob};
use experiment::pods::result;
use experiment::pods::round_spec::RoundSpec;
use experiment::stop::StopSignal;
use experiment::systems::Addresses;
use lab::Lab;
use recording::Recording;

use super::load::in_cluster;

/// Send one shard of a round, and write what was seen to stdout (started by weigh lab --on kubernetes).
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// What it is told.
    #[arg(value_name = "FILE")]
    told: PathBuf,
    /// Which generator it is, from 0.
    #[arg(long, env = "JOB_COMPLETION_INDEX")]
    index: u32,
    /// The address at which the first generator listens for the others. By default all addresses of its
    /// pod, in the family of the cluster.
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// The pod that it is.
    #[arg(long, env = "WEIGH_POD", default_value = "")]
    pod: String,
    /// The node that it is on.
    #[arg(long, env = "WEIGH_NODE", default_value = "")]
    node: String,
}

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let input = generator_job::read(&args.told).map_err(Failure::bad_input)?;
    let recording = match input.job {
        GeneratorJob::Round(spec) => {
            let shard = spec.meeting.shard(args.index).map_err(Failure::bad_input)?;
            let lab = spec.lab(input.files, shard).map_err(Failure::bad_input)?;
            of_round(args, &spec, &lab, console, stop)?
        }
        GeneratorJob::Load(spec) => {
            let shard = spec.meeting.shard(args.index).map_err(Failure::bad_input)?;
            let barrier = GeneratorBarrier::join(shard, &spec.meeting.barrier(args.listen));
            let barrier = barrier.map_err(Failure::not_ready)?;
            let files = input.files.into_iter().collect();
            in_cluster::sent_shard(&spec, files, barrier, console, stop)?
        }
    };
    if stop.is_asked() {
        // After a stop, its recording is incomplete.
        return Err(Failure::not_ready("it was stopped before it was done"));
    }
    let bytes = serde_json::to_vec(&recording)
        .map_err(|error| Failure::bug(format!("the recording cannot be written: {error}")))?;
    result::write(&mut io::stdout().lock(), &bytes).map_err(Failure::not_ready)?;
    Ok(Exit::Done)
}

/// The shard of a round of a lab.
fn of_round(
    args: &Args,
    spec: &RoundSpec,
    lab: &Lab,
    console: Console,
    stop: &StopSignal,
) -> Result<Recording, Failure> {
    let shard = spec.meeting.shard(args.index).map_err(Failure::bad_input)?;
    // Only a pod of the cluster knows its domain. The load has not begun yet.
    let resolver = fs::read_to_string(cluster_domain::RESOLVER).unwrap_or_default();
    spec.check_domain(&resolver).map_err(Failure::not_ready)?;
    let addresses = Addresses::unasked(lab)?;
    let barrier = GeneratorBarrier::join(shard, &spec.meeting.barrier(args.listen))
        .map_err(Failure::not_ready)?;
    let peers = Peers::of(barrier, args.pod.clone(), args.node.clone());
    let experiment = Experiment::new(lab, addresses, Path::new("."), console, stop)?;
    experiment.send_shard(spec.round, peers)
}
