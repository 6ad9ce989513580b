//! `weigh check`: checks lab files and proofs, without measuring.

use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::files::Disk;
use experiment::invalid::Invalid;
use experiment::measure::Experiment;
use experiment::pods::{manifests, refusal};
use experiment::stop::StopSignal;
use experiment::systems::Addresses;
use lab::Factors;

use crate::cluster_args::ClusterKind;
use crate::command::lab::in_cluster::files_of;
use crate::consent::ConsentArgs;
use crate::labs::{self, SettingArgs};

/// Validate lab files and prove their variants without measuring.
///
/// Each variant gets two short loads. They predict the requests in flight, the length of a run, and the
/// smallest difference that it would probably show.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Names of labs in `labs/`, lab files, or folders of them.
    #[arg(required = true, value_name = "LAB")]
    labs: Vec<String>,
    /// Only read the files, without builds and starts.
    #[arg(long)]
    files_only: bool,
    /// Prove only these variants and the baseline.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    variants: Vec<String>,
    /// Check whether a cluster can run these labs. This builds, starts and proves nothing, because each
    /// round does so in the cluster.
    #[arg(long, value_enum, value_name = "CLUSTER")]
    on: Option<ClusterKind>,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// Describes the design of a lab with factors: its size, and the effects that it confounds.
fn design(factors: &Factors) -> Vec<String> {
    let design = &factors.design;
    let names = factors.names();
    let variants = factors.variants.len();
    let share = match 1_u64 << design.generators().len() {
        1 => "all combinations".to_owned(),
        of => format!("1/{of} of all combinations"),
    };
    let mut lines = vec![format!(
        "{variants} variants are {share} of {}. Each effect uses the requests of all {variants}",
        names.join(", ")
    )];
    let Some(resolution) = design.resolution() else {
        return lines;
    };
    let effects = design.effects(2).into_iter();
    let sums: Vec<String> = effects
        .filter_map(|effect| design.confounded(effect, &names))
        .collect();
    lines.push(match sums.as_slice() {
        [] => format!(
            "resolution {resolution}: effects of one and two factors are not confounded with each other"
        ),
        sums => format!(
            "resolution {resolution}: only these sums are known: {}. Interactions of three or more factors are taken as zero",
            sums.join(", ")
        ),
    });
    lines
}

/// Prints each variant: proven, or the reason why it would have no number. Variants that share a reason are
/// one line. Returns the most serious exit code of the failed variants.
fn answer_verdicts(verdicts: &[(String, Option<Invalid>)], console: Console) -> Option<Exit> {
    let mut shared: Vec<(Vec<String>, &str)> = Vec::new();
    for (name, invalid) in verdicts {
        let reason = invalid.as_ref().map_or("proven", |it| it.reason.as_str());
        let is_proven = invalid.is_none();
        match shared
            .iter_mut()
            .find(|(_, known)| !is_proven && *known == reason)
        {
            Some((names, _)) => names.push(format!("`{name}`")),
            None => shared.push((vec![format!("`{name}`")], reason)),
        }
    }
    for (names, reason) in shared {
        console.answer(&format!("- {}: {reason}", names.join(", ")));
    }
    let failed = verdicts.iter().filter_map(|(_, invalid)| invalid.as_ref());
    failed.map(Invalid::exit).max()
}

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let mut labs = labs::read(&args.labs, args.settings.wishes(), console)?;
    let mut worst = Exit::Done;
    let mut builds = BuildCache::default();
    for lab in &mut labs {
        labs::only(lab, &args.variants)?;
        console.answer(&format!("{}: {}", lab.name, lab.question));
        for line in lab.factors.iter().flat_map(design) {
            console.answer(&format!("- {line}"));
        }
        if args.files_only {
            console.answer(&format!(
                "- {} variants, no mistakes",
                lab.variants.len() + 1
            ));
            continue;
        }
        if args.on.is_some() {
            if let Some(reason) = refusal::refusal(lab, lab.generators) {
                return Err(Failure::bad_input(format!("in a cluster: {reason}")));
            }
            manifests::read(lab, &Disk, None).map_err(Failure::bad_input)?;
            files_of(lab, None)?;
            console.answer(&format!(
                "- {} variants, possible in a cluster",
                lab.variants.len() + 1
            ));
            continue;
        }
        let logs = tempfile::tempdir().map_err(|error| {
            Failure::not_ready(format!("cannot create a temporary folder: {error}"))
        })?;
        let addresses = Addresses::of(lab, &args.consent.given())?;
        let experiment = Experiment::new(lab, addresses, logs.path(), console, stop)?;
        let checked = experiment.check(&mut builds)?;
        let failed = answer_verdicts(&checked.verdicts, console);
        let has_log = |(_, invalid): &(String, Option<Invalid>)| {
            invalid.as_ref().is_some_and(Invalid::is_logged)
        };
        if checked.verdicts.iter().any(has_log) {
            console.say(format_args!(
                "weigh: these logs are kept in `{}`",
                logs.keep().display()
            ));
        }
        // Exit codes are ordered by severity.
        worst = worst.max(failed.unwrap_or(Exit::Done));
        if stop.is_asked() {
            return Ok(Exit::Interrupted);
        }
        for line in checked.prediction {
            console.answer(&format!("- {line}"));
        }
    }
    Ok(worst)
}
