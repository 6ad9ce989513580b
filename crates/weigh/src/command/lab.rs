//! `weigh lab`: the main command, from a lab's name to a table and a recording.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::summary::{Invalidity, VariantSummary};
use analysis::{Summary, Verdict};
use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::file_url::file_url;
use experiment::files::Unwritten;
use experiment::measure::Experiment;
use experiment::published::{Account, Published};
use experiment::record::{self, Unsaved};
use experiment::served::{Board, Served};
use experiment::stop::StopSignal;
use experiment::systems::Addresses;
use lab::{Lab, Variant};
use model::{Goal, InvalidKind, Order};
use recording::{Recording, Revisions};

use crate::cluster_args::ClusterArgs;
use crate::command::recording_file;
use crate::command::tare::Tare;
use crate::consent::ConsentArgs;
use crate::format::{Page, PageArgs};
use crate::gates::{self, GateArgs};
use crate::labs::{self, SettingArgs, Wishes};
use crate::publish::{PublishArgs, ServeArgs};

pub(super) mod in_cluster;
mod sweep;

pub(super) use sweep::curve_in;

/// Run labs: start, prove, measure in interleaved rounds, compare.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    #[command(flatten)]
    run: Args,
    /// Compare all variants with this one, instead of the comparisons in the lab.
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
}

/// Flags of a run of labs.
#[derive(Debug, clap::Args)]
// `weigh pr` and `weigh bisect` have these flags too, and their groups would have equal names.
#[group(skip)]
pub(crate) struct Args {
    /// Names of labs in `labs/`, lab files, or folders of them.
    #[arg(required = true, value_name = "LAB")]
    pub(super) labs: Vec<String>,
    /// Folder for the recordings.
    #[arg(long, value_name = "DIR", default_value = recording_file::FOLDER)]
    pub(super) out: PathBuf,
    /// Give a rough answer soon, with few and short rounds. Systems with a slow start stay up between
    /// rounds. With `order: in-turn`, all systems stay up. The report names these systems.
    #[arg(long)]
    quick: bool,
    /// Number of rounds, instead of the number in the lab.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Add rounds until the interval of the difference is narrow enough: "p99 ±2%" of the baseline's
    /// value, or "p99 ±0.1ms". Or until "gates" are decided.
    #[arg(long, value_name = "WISH", help_heading = "How many rounds", long_help = until_help())]
    until: Option<Goal>,
    /// Maximum time after the start of the first round [default: the lab's own, otherwise 1h].
    #[arg(long, value_name = "TIME", help_heading = "How many rounds", value_parser = lab::duration)]
    max_time: Option<Duration>,
    /// Measure only these variants and the baseline.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) variants: Vec<String>,
    #[command(flatten)]
    pub(super) settings: SettingArgs,
    #[command(flatten)]
    consent: ConsentArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Let idle cores sleep, like `awake: off` in a lab.
    #[arg(long)]
    no_awake: bool,
    /// Order of the variants in a round, instead of the order in the lab: side-by-side (each due time
    /// sends one request to each variant) or in-turn (one variant after the other).
    #[arg(long, value_name = "ORDER", value_parser = order)]
    order: Option<Order>,
    /// Seed of the random order of variants.
    #[arg(long)]
    seed: Option<u64>,
    /// Sample each system in extra rounds, and draw flamegraphs of its processor time.
    ///
    /// Needs `perf` (linux-perf) and programs with symbols. See docs/flamegraph.md.
    #[arg(long)]
    flamegraph: bool,
    /// Look for the cause of each difference in extra rounds: burn, sleep, lock, or extra connections.
    ///
    /// The report names the causes, the five functions that differ most, and the cost of the samplers.
    /// Functions need `perf` (linux-perf) and programs with symbols. Waits need the permission of a
    /// debugger, such as root. See docs/why.md.
    #[arg(long)]
    why: bool,
    #[command(flatten)]
    pub(super) publish: PublishArgs,
    #[command(flatten)]
    pub(super) serve: ServeArgs,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    pub(super) gates: GateArgs,
}

/// Total time of all measurements of a quick lab in turn.
const QUICK_TOTAL: Duration = Duration::from_secs(45);
/// Total time of all measurements of a quick lab side by side. It is shorter because each round also starts
/// systems. Nine variants should take 40 s.
const QUICK_TOGETHER: Duration = Duration::from_secs(14);
/// Shortest measurement of one variant in one round, for any number of variants.
const QUICK_LEAST: Duration = Duration::from_millis(500);
/// Longest measurement of one variant in one round of a quick lab.
const QUICK_CLOSED: Duration = Duration::from_secs(1);
/// The limit in an open loop. It is longer because an open loop sends fewer requests per time.
const QUICK_OPEN: Duration = Duration::from_secs(3);
/// Longest warm-up of a quick lab.
const QUICK_WARMUP: Duration = Duration::from_millis(500);
/// The limit of the warm-up side by side, because a load after each start has settled the systems.
const QUICK_WARMUP_TOGETHER: Duration = Duration::from_millis(200);
/// Longest settling load of a quick lab. It is sent once, because systems with a just-in-time compiler are
/// kept from round to round. If it were cut short, they would compile through the whole run, and the trend of
/// their rounds would withhold their verdicts. Other systems settle sooner.
const QUICK_SETTLE: Duration = Duration::from_secs(12);

pub(crate) fn run(args: &LabArgs, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let LabArgs { run: args, against } = args;
    let read = labs::read(&args.labs, args.wishes(), console)?;
    let mut labs = Vec::new();
    for mut lab in read {
        if lab.variants.is_empty() {
            return Err(Failure::bad_input(format!(
                "expected `variants` to compare with the baseline, found none in `{}`. `weigh pr` \
                 compares two revisions of a lab",
                lab.name
            )));
        }
        labs::only(&mut lab, &args.variants)?;
        if let Some(name) = against {
            labs::compare_with(&mut lab, name)?;
        }
        labs.push(args.adjusted(lab)?);
    }
    let names: Vec<&str> = labs.iter().flat_map(Lab::names).collect();
    args.gates.check(&names)?;
    let mut worst = Exit::Done;
    // Later labs reuse the builds of earlier labs.
    let mut builds = BuildCache::default();
    let published = args.publish.start(console)?;
    let served = args.serve.start(console)?;
    let running = Run {
        account: published.as_ref().map(Published::account),
        board: served.as_ref().map(Served::board),
        ..args.running()
    };
    for lab in &labs {
        worst = worst.max(running.of(lab, &mut builds, console, stop)?);
        if stop.is_asked() {
            break;
        }
    }
    if let Some(served) = served {
        served.end(stop);
    }
    Ok(worst)
}

impl Args {
    /// Applies these flags to a lab.
    ///
    /// # Errors
    ///
    /// When a flag is impossible with this lab.
    pub(super) fn adjusted(&self, mut lab: Lab) -> Result<Lab, Failure> {
        lab.order_asked = self.order.or(lab.order_asked);
        if self.order == Some(Order::InTurn) && lab.groups.is_some() {
            return Err(Failure::bad_input(format!(
                "expected `--order side-by-side` for the `groups` of `{}`, found `in-turn`. Remove the groups or `--order in-turn`",
                lab.name
            )));
        }
        if self.quick {
            self.leave_out_slow(&mut lab);
            hurry(&mut lab, self.cluster.asked().is_some());
        }
        lab.rounds = self.rounds.unwrap_or(lab.rounds);
        lab.until = self.until.clone().or(lab.until.take());
        lab.max_time = self.max_time.unwrap_or(lab.max_time);
        if lab.until == Some(Goal::Gates) && !self.gates.with_those_of(&lab).is_any() {
            return Err(Failure::bad_input(format!(
                "expected a gate for `until: gates`, found none in `{}` and no `--gate`. Add one, \
                 such as --gate 'mean overhead < 60us', or remove `until: gates`",
                lab.name
            )));
        }
        if self.max_time.is_some() && lab.until.is_none() && self.cluster.on.is_none() {
            return Err(Failure::bad_input(format!(
                "expected `until` with `--max-time`, found none in `{}` and no `--until`. A fixed \
                 number of rounds has a fixed length",
                lab.name
            )));
        }
        lab.seed = self.seed.or(lab.seed);
        lab.awake &= !self.no_awake;
        Ok(lab)
    }

    /// Leaves out each variant with `quick: off`, unless `--variants` names it. The row of the variant stays,
    /// and names the command that measures it.
    fn leave_out_slow(&self, lab: &mut Lab) {
        let path = lab.path.display().to_string();
        let is_asked = |variant: &Variant| self.variants.contains(&variant.name);
        let variants = lab.variants.iter_mut();
        for variant in variants.filter(|one| !one.is_quick && !is_asked(one)) {
            variant.absent = Some(format!(
                "`--quick` omits it, because the lab has `quick: off`. `weigh lab {path} --quick \
                 --variants '{}'` measures it",
                variant.name
            ));
        }
    }

    /// Makes the gates of a lab its stopping rule, unless these flags or the lab set a number of rounds.
    pub(super) fn deciding(&self, mut lab: Lab) -> Lab {
        let is_open = self.rounds.is_none() && lab.until.is_none() && !self.quick;
        if is_open && self.gates.with_those_of(&lab).is_any() {
            lab.until = Some(Goal::Gates);
        }
        lab
    }

    /// The options for reading labs.
    pub(super) fn wishes(&self) -> Wishes<'_> {
        Wishes {
            settings: &self.settings.with,
            is_quick: self.quick,
        }
    }

    /// The options for running labs.
    pub(super) fn running(&self) -> Run<'_> {
        Run {
            out: &self.out,
            consent: &self.consent,
            cluster: self.cluster.asked(),
            unwritten: None,
            max_time: self.max_time,
            flamegraph: self.flamegraph,
            why: self.why,
            quick: self.quick,
            format: self.page.page(),
            gates: &self.gates,
            revisions: None,
            account: None,
            board: None,
        }
    }
}

/// The options for running labs and printing results.
pub(super) struct Run<'a> {
    pub(super) out: &'a Path,
    pub(super) consent: &'a ConsentArgs,
    /// The cluster, if the lab does not run on this machine.
    pub(super) cluster: Option<&'a ClusterArgs>,
    /// The files of a lab that is not on the disk. `None` if the lab is a file.
    pub(super) unwritten: Option<&'a Unwritten>,
    /// The time limit of the command line. `None` without it.
    pub(super) max_time: Option<Duration>,
    pub(super) flamegraph: bool,
    pub(super) why: bool,
    pub(super) quick: bool,
    pub(super) format: Page,
    pub(super) gates: &'a GateArgs,
    /// Returns the two revisions that a lab compares. Called after all builds. `None` if no revisions are
    /// compared.
    pub(super) revisions: Option<&'a dyn Fn(&Lab) -> Revisions>,
    /// The published account of the running labs.
    pub(super) account: Option<Account>,
    /// The served page of the running labs.
    pub(super) board: Option<Board>,
}

impl Run<'_> {
    /// Runs one lab, records it, and prints the result.
    pub(super) fn of(
        &self,
        lab: &Lab,
        builds: &mut BuildCache,
        console: Console,
        stop: &StopSignal,
    ) -> Result<Exit, Failure> {
        if !lab.sweep.is_empty() {
            return self.swept(lab, builds, console, stop);
        }
        let run = self.recorded(lab, builds, console, stop)?;
        if run.recording.revisions.is_some() {
            summarize(&report::comment(&run.recording, &run.summary))?;
        }
        let terminal = console.terminal();
        console.answer(&self.format.render(&run.recording, &run.summary, terminal));
        run.check_saved()?;
        console.say(format_args!(
            "weigh: recorded in {}. `weigh report --full` prints the full report",
            run.folder.display()
        ));
        // A line of its own, because terminals and readers open an address at the end of a line.
        let page = file_url(&run.folder.join("report.html"));
        console.say(format_args!("weigh: the report for a browser is {page}"));
        Ok(run.exit())
    }

    /// Runs one lab and records it.
    pub(super) fn recorded(
        &self,
        lab: &Lab,
        builds: &mut BuildCache,
        console: Console,
        stop: &StopSignal,
    ) -> Result<Recorded, Failure> {
        let folder = || record::new_folder(self.out, &lab.name);
        self.recorded_in(folder, lab, builds, console, stop)
    }

    /// Runs one lab and records it in a folder. The folder is created after the consent to load the
    /// addresses.
    fn recorded_in(
        &self,
        folder: impl FnOnce() -> Result<PathBuf, Failure>,
        lab: &Lab,
        builds: &mut BuildCache,
        console: Console,
        stop: &StopSignal,
    ) -> Result<Recorded, Failure> {
        if let Some(args) = self.cluster {
            return self.recorded_in_cluster(args, folder, lab, console, stop);
        }
        let addresses = Addresses::of(lab, &self.consent.given())?;
        let folder = folder()?;
        let tare = Tare::stored(&rig::machine::snapshot());
        let mut experiment = Experiment::new(lab, addresses, &folder, console, stop)?
            .published(self.account.clone())
            .served(self.board.clone());
        if self.flamegraph {
            experiment = experiment.with_flamegraphs(&folder);
        }
        if self.why {
            experiment = experiment.asking_why(&folder);
        }
        if self.quick {
            experiment = experiment.reusing_systems();
        }
        experiment = experiment.deciding(self.gates.with_those_of(lab).to_gates());
        let mut recording = experiment.run(builds)?;
        recording.environment.noise_floor = tare.as_ref().and_then(Tare::noise_floor);
        self.saved(folder, lab, recording)
    }

    /// Judges a recording and saves it in its folder.
    fn saved(
        &self,
        folder: PathBuf,
        lab: &Lab,
        mut recording: Recording,
    ) -> Result<Recorded, Failure> {
        recording.revisions = self.revisions.map(|revisions| revisions(lab));
        let gates = self.gates.with_those_of(lab);
        recording.gates = gates.recorded();
        let summary = gates.judge(Summary::of(&recording));
        let saved = record::save(&folder, &recording, &summary).and_then(|()| {
            if summary.gates.is_empty() {
                return Ok(());
            }
            record::write(&folder, "junit.xml", &report::junit(&recording, &summary))
        });
        if let Some(board) = &self.board {
            board.finish(&recording, &summary);
        }
        Ok(Recorded {
            unsaved: saved.err(),
            failed_end: None,
            folder,
            recording,
            summary,
        })
    }
}

/// A finished run of a lab, with the folder of its recording.
pub(super) struct Recorded {
    pub(super) folder: PathBuf,
    pub(super) recording: Recording,
    pub(super) summary: Summary,
    /// The reason why a file of the recording is missing. `None` if all files are there.
    unsaved: Option<Unsaved>,
    /// The failure of the run's end. The rounds before it are recorded. `None` if the run ended well.
    failed_end: Option<Failure>,
}

impl Recorded {
    /// Reports a missing file, or the failure that ended the run. The caller has printed the result before.
    ///
    /// # Errors
    ///
    /// When a file of the recording could not be written, or the run ended with a failure.
    pub(super) fn check_saved(&self) -> Result<(), Failure> {
        if let Some(unsaved) = &self.unsaved {
            return Err(unsaved.failure(&self.folder, self.exit()));
        }
        match &self.failed_end {
            Some(failure) => Err(Failure {
                exit: failure.exit.max(self.exit()),
                message: format!(
                    "{}. The recording is in {}",
                    failure.message.trim_end_matches('.'),
                    self.folder.display()
                ),
            }),
            None => Ok(()),
        }
    }

    /// The exit code for this run.
    pub(super) fn exit(&self) -> Exit {
        exit_of(&self.recording, &self.summary)
    }
}

/// Appends to the summary page of a GitHub job, if there is one.
fn summarize(comment: &str) -> Result<(), Failure> {
    let Some(page) = environment::inherited("GITHUB_STEP_SUMMARY").filter(|it| !it.is_empty())
    else {
        return Ok(());
    };
    let file = fs::File::options().create(true).append(true).open(&page);
    file.and_then(|mut file| writeln!(file, "{comment}"))
        .map_err(|error| {
            Failure::not_ready(format!(
                "GITHUB_STEP_SUMMARY, `{page}`, cannot be written: {error}"
            ))
        })
}

fn until_help() -> String {
    format!(
        "Add rounds until the interval of the difference is narrow enough. The lab's own rounds, at \
         least 8, are the pilot. From them `weigh` predicts the rounds and minutes of the run. With \
         `gates`, add rounds until each gate holds or one is broken, 6 to 24 rounds in all. `weigh pr` \
         and `weigh bisect` do so by default, unless you give `--rounds`.\n\n{}",
        model::until_grammar()
    )
}

/// Reduces a lab to few short rounds. They still suffice for an interval for every variant.
fn hurry(lab: &mut Lab, is_in_cluster: bool) {
    let is_together = lab.is_loaded_at_once();
    let compared = lab.variants.iter().filter(|it| it.against.is_some());
    let fewest = stats::multiple::rounds_by_ranks(analysis::CONFIDENCE, compared.count());
    // With the fewest rounds, the ends of an interval are the extreme rounds, so one odd round decides. One
    // more round makes the interval a quarter narrower. In a cluster it would take about three times as long as its
    // load, because each round starts pods.
    let rounds = fewest + usize::from(is_together && !is_in_cluster);
    lab.rounds = u32::try_from(rounds).expect("the rounds grow with the logarithm of the variants");
    lab.until = None;
    if let Some(choice) = &mut lab.rate_choice {
        // The duration set below is the length of a quick round.
        choice.keeps_duration = true;
    }
    if let Some(settle) = &mut lab.settle {
        settle.within = settle.within.min(QUICK_SETTLE);
    }
    let variants = u32::try_from(lab.all().count()).expect("a lab fits into memory");
    let (total, turns, warmup) = if is_together {
        (QUICK_TOGETHER, lab.rounds, QUICK_WARMUP_TOGETHER)
    } else {
        let turns = lab.rounds.saturating_mul(variants);
        (QUICK_TOTAL, turns, QUICK_WARMUP)
    };
    let turn = (total / turns.max(1)).max(QUICK_LEAST);
    lab.warmup = lab.warmup.min(warmup).min(turn / 4);
    match &mut lab.load {
        model::Load::Closed { stop, .. } => {
            let most = QUICK_CLOSED.min(turn);
            stop.duration = Some(stop.duration.map_or(most, |long| long.min(most)));
        }
        model::Load::Open { phases, .. } => {
            let most = QUICK_OPEN.min(turn);
            let planned: Duration = phases.iter().map(|phase| phase.duration).sum();
            if planned > most {
                let share = most.as_secs_f64() / planned.as_secs_f64();
                for phase in phases {
                    phase.duration = phase.duration.mul_f64(share);
                }
            }
        }
    }
}

fn order(text: &str) -> Result<Order, String> {
    let known = [Order::SideBySide, Order::InTurn];
    let named = known.into_iter().find(|order| order.word() == text);
    named.ok_or_else(|| format!("expected `side-by-side` or `in-turn`, found `{text}`"))
}

/// The most serious event of a run, as its exit code.
fn exit_of(recording: &Recording, summary: &Summary) -> Exit {
    let ending = match recording.ended_because {
        Some(_) => Exit::NotReady,
        None => Exit::Interrupted,
    };
    let interrupted = recording.interrupted.then_some(ending);
    let rows = summary.variants.iter().map(|row| match &row.verdict {
        Verdict::Invalid { kind, .. } => Exit::from(*kind),
        Verdict::Withheld { .. } => Exit::Withheld,
        _ => Exit::Done,
    });
    let gates = gates::exit_of(&summary.gates);
    let until = summary.until.as_ref();
    let lacking = until.filter(|until| !until.is_reached());
    rows.chain(interrupted)
        .chain([gates])
        .chain(lacking.map(|_| Exit::Withheld))
        .chain([of_absent(recording, summary)])
        .max()
        .unwrap_or(Exit::Done)
}

/// The exit code if every variant was left out of the run. Between two revisions it is no fault of the change
/// that all variants are new.
fn of_absent(recording: &Recording, summary: &Summary) -> Exit {
    let mut compared = summary.variants.iter().filter(|row| !row.is_baseline);
    let is_absent = |row: &VariantSummary| {
        matches!(
            row.verdict,
            Verdict::Invalid {
                kind: Invalidity::Recorded(InvalidKind::Absent | InvalidKind::NotNeeded),
                ..
            }
        )
    };
    match recording.revisions.is_none() && compared.all(is_absent) {
        true => Exit::NotReady,
        false => Exit::Done,
    }
}
