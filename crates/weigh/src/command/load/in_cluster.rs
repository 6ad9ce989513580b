//! `weigh load --on kubernetes`: one load from the pods of a cluster. Each pod runs the same flags for its shard,
//! and this process merges the recordings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use cluster::ApiConnection;
use experiment::console::Console;
use experiment::digest::sha256;
use experiment::environment;
use experiment::exit::Failure;
use experiment::measure::start_rig;
use experiment::pods::barrier::{GeneratorBarrier, lead_of};
use experiment::pods::generator_job::GeneratorJob;
use experiment::pods::load_spec::LoadSpec;
use experiment::pods::manifests::OfSystems;
use experiment::pods::meeting::Meeting;
use experiment::pods::packed_files::PackedFiles;
use experiment::pods::stage::{BESIDE_LOAD, GeneratorPods, PodsSpec, Stage};
use experiment::pods::{cleanup_task, single_load};
use experiment::progress::Progress;
use experiment::stop::StopSignal;
use load::Job;
use recording::Recording;

use super::Args;
use crate::cluster_args::ClusterArgs;
use crate::command::lab::in_cluster::{no_cluster, run_id};
use crate::command::merge;

/// Flags with a value that only the sending process needs.
const OWN: [&str; 8] = [
    "--on",
    "--context",
    "--namespace",
    "--generator-image",
    "--pods-within",
    "--generators",
    "--record",
    "--format",
];
/// Flags without a value that only the sending process needs.
const OWN_SWITCHES: [&str; 3] = ["--no-color", "--no-tui", "--verbose"];

/// The flags of a generator.
#[derive(Parser)]
#[command(name = "weigh load")]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A load that the generators of a cluster have sent.
pub(super) struct Sent {
    pub(super) recording: Recording,
    /// True if a check of a generator failed.
    pub(super) is_doubtful: bool,
}

/// Sends the load from pods, and merges the recordings.
///
/// # Errors
/// When the flags need this machine, or the cluster refuses or loses a generator.
pub(super) fn send(
    args: &Args,
    cluster_args: &ClusterArgs,
    console: Console,
    stop: &StopSignal,
) -> Result<Sent, Failure> {
    check(args)?;
    let flags = flags_of_generators(&environment::command_line())?;
    let files = PackedFiles::of(&files(args)?).map_err(Failure::bad_input)?;
    let list = files.list().clone();
    let place = cluster_args.place();
    let asked = stop.clone();
    let connection = ApiConnection::open(&place, move || asked.is_asked());
    let connection = connection.map_err(|error| no_cluster(&error))?;
    let version = connection.version().map_err(|error| no_cluster(&error))?;
    let id = run_id("load");
    let logs = tempfile::tempdir().map_err(|error| {
        Failure::not_ready(format!("cannot create a temporary folder: {error}"))
    })?;
    let mut rig = start_rig(logs.path(), console)?;
    // Registered before the first object is created, because this process may be killed at any moment.
    let kept = rig.run_at_end(&cleanup_task::of_run(&id, &place, connection.namespace()));
    kept.map_err(|error| Failure::bug(error.to_string()))?;
    console.say(format_args!(
        "weigh: run `{id}` in the namespace `{}` of Kubernetes {version}",
        connection.namespace()
    ));
    let generators = args.generators.unwrap_or(1);
    let waits = cluster_args.waits();
    let deadline = deadline(args) + waits.given.unwrap_or_default() * 2;
    let image = cluster_args.image()?;
    let run = cluster::Run::begin(&connection, &id, &image, deadline);
    let stage = Stage::begin(
        run.map_err(|error| no_cluster(&error))?,
        &[],
        OfSystems::default(),
        GeneratorPods {
            image,
            count: generators,
            deadline,
            waits,
            spec: PodsSpec::of_load(args.threads),
            files,
        },
    );
    let stage = stage.map_err(|error| no_cluster(&error))?;
    let job = |barrier| {
        let token = sha256(format!("{id} {:?}", environment::now()).as_bytes());
        let meeting = Meeting::of(generators, barrier, token, waits.met());
        GeneratorJob::Load(LoadSpec::of(flags.clone(), &list, meeting))
    };
    let note = |line: &str| console.say(format_args!("weigh: {line}"));
    let sent = single_load::send(stage, &version, connection.namespace(), job, note)?;
    rig.shut_down()
        .map_err(|error| Failure::bug(error.to_string()))?;
    let mut is_doubtful = false;
    for (pod, shard) in &sent.shards {
        is_doubtful |= merge::report_troubles(shard, &format!("pod `{pod}`"), console);
    }
    let whole = recording::merge(sent.shards);
    let mut recording = whole.map_err(|error| Failure::not_ready(error.to_string()))?;
    recording.command = environment::command_line();
    recording.cluster = Some(sent.cluster);
    Ok(Sent {
        recording,
        is_doubtful,
    })
}

/// The recording of one generator in a pod.
///
/// # Errors
/// When the flags are impossible, or another generator is gone.
pub(in crate::command) fn sent_shard(
    spec: &LoadSpec,
    files: BTreeMap<PathBuf, Vec<u8>>,
    mut barrier: GeneratorBarrier,
    console: Console,
    stop: &StopSignal,
) -> Result<Recording, Failure> {
    let mut args = parsed(&spec.flags).map_err(Failure::bad_input)?;
    args.shard = Some(barrier.shard());
    args.sent_files = Some(files);
    let progress = Progress::new(console, 1).alone();
    let start = |job: &Job| {
        let agreed = barrier.agree(lead_of(std::slice::from_ref(job)));
        agreed.map(Some).map_err(Failure::not_ready)
    };
    let recording = super::recorded(&args, &progress, stop, start);
    progress.finish();
    recording
}

fn parsed(flags: &[String]) -> Result<Args, String> {
    let line = ["weigh load".to_owned()]
        .into_iter()
        .chain(flags.iter().cloned());
    let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
    Ok(line.args)
}

/// The flags of `weigh load` in a command line, without the flags that only this process needs.
fn flags_of_generators(command: &[String]) -> Result<Vec<String>, Failure> {
    let is_verbose = |word: &str| {
        let letters = word.strip_prefix('-');
        letters.is_some_and(|it| !it.is_empty() && it.chars().all(|letter| letter == 'v'))
    };
    let has_own_value = |word: &str| {
        let mut values = OWN.iter().filter_map(|own| word.strip_prefix(own));
        values.any(|rest| rest.starts_with('='))
    };
    let mut words = command.iter().skip(1);
    let mut flags = Vec::new();
    let mut is_named = false;
    while let Some(word) = words.next() {
        let is_switch = OWN_SWITCHES.contains(&word.as_str()) || is_verbose(word);
        if OWN.contains(&word.as_str()) {
            words.next();
        } else if !is_named && word == "load" {
            is_named = true;
        } else if !is_switch && !has_own_value(word) {
            flags.push(word.clone());
        }
    }
    // Read here too, so that a flag that a pod cannot read fails before the first object.
    parsed(&flags).map_err(Failure::bug)?;
    Ok(flags)
}

/// Refuses flags that name something of this machine.
fn check(args: &Args) -> Result<(), Failure> {
    let refused = [
        (args.shard.is_some(), "--shard", "Use --generators"),
        (
            args.start_at.is_some(),
            "--start-at",
            "All generators begin together",
        ),
        (
            args.pin.is_some(),
            "--pin",
            "It names cores of this machine",
        ),
        (
            args.unix_socket.is_some(),
            "--unix-socket",
            "It is a file of this machine",
        ),
        (
            args.targets.is_some(),
            "--targets",
            "Write a lab with `requests`, and use `weigh lab --on kubernetes`",
        ),
        (
            args.scenario.is_some(),
            "--scenario",
            "A cluster has no scenarios yet. Use `weigh load --shard` on several machines",
        ),
        (
            args.cert.is_some(),
            "--cert",
            "A private key must not become an object of the cluster",
        ),
        (
            args.grpc.has_files(),
            "--proto or --descriptors",
            "Leave it out, so that the server sends its descriptors",
        ),
        (
            args.publish.is_given(),
            "--prometheus or --otlp",
            "The counts are in the pods",
        ),
    ];
    if let Some((_, flag, help)) = refused.into_iter().find(|(is_given, ..)| *is_given) {
        return Err(Failure::bad_input(format!(
            "expected no {flag} with `--on kubernetes`, found it. {help}"
        )));
    }
    super::check_websocket(args)?;
    let (url, _) = super::requests(args)?;
    super::data(args)?;
    super::protocol(args, &url)?;
    let generators = args.generators.unwrap_or(1);
    if super::connections(args) < generators {
        return Err(Failure::bad_input(format!(
            "expected at least one connection for each of {generators} generators, found {}. Give more with -c",
            args.connections
        )));
    }
    Ok(())
}

/// The files that the flags name.
fn files(args: &Args) -> Result<BTreeMap<PathBuf, Vec<u8>>, Failure> {
    let body = args.data.as_deref().and_then(|it| it.strip_prefix('@'));
    let named = [&args.data_file, &args.data_set, &args.expect_body, &args.ca];
    let named = named.into_iter().flatten().cloned();
    let all = named.chain(body.map(PathBuf::from));
    all.map(|path| args.read(&path).map(|content| (path, content)))
        .collect()
}

/// Time limit of the load. The cluster then ends its pods.
fn deadline(args: &Args) -> Duration {
    let planned = super::loop_of(args).duration();
    planned.unwrap_or(Duration::from_secs(3_600)) * 2 + args.timeout + BESIDE_LOAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_generator_gets_the_flags_of_the_load_only() {
        let line = "weigh -vv --no-color load http://web/ -r 100 --on kubernetes --record=r.json \
            --generators 2 -H load:on --namespace load --format json -z 5s --no-tui";
        let flags = flags_of_generators(&words(line)).expect("flags");
        assert_eq!(
            flags,
            words("http://web/ -r 100 -H load:on -z 5s"),
            "{flags:?}"
        );
    }

    #[test]
    fn a_flag_about_this_machine_is_refused_by_name() {
        for (flags, said) in [
            ("--shard 1/2", "--generators"),
            ("--start-at 2026-11-23T20:00:00Z", "--start-at"),
            ("--pin 1", "cores of this machine"),
            ("--unix-socket /s", "--unix-socket"),
            ("--scenario s.yaml", "--scenario"),
            ("--prometheus 9090", "the pods"),
            (
                "-c 2 --on kubernetes --generators 3",
                "each of 3 generators, found 2",
            ),
            ("-d @absent.json", "absent.json"),
        ] {
            let args = parsed(&words(&format!("http://web/ {flags}"))).expect("flags");
            let refused = check(&args).expect_err(flags);
            assert!(refused.message.contains(said), "{}", refused.message);
        }
    }

    #[test]
    fn the_files_of_flags_travel_and_others_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("q.json");
        std::fs::write(&path, "{\"a\": 1}").expect("a file");
        let flags = words(&format!("http://web/ -D {}", path.display()));
        let args = parsed(&flags).expect("flags");
        let files = files(&args).expect("files");
        std::fs::remove_file(&path).expect("removed");
        let mut generator = parsed(&flags).expect("flags");
        generator.sent_files = Some(files);
        let (_, requests) = super::super::requests(&generator).expect("requests");
        assert_eq!(requests[0].body, b"{\"a\": 1}");
        generator.sent_files = Some(BTreeMap::new());
        assert!(super::super::requests(&generator).is_err());
    }
}
