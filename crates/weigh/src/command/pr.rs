//! `weigh pr`: the cost of a change, from a lab of the repository in two revisions.

mod repository;
mod worktrees;

use std::fs;
use std::path::{Path, PathBuf};

use analysis::history::{Forecast, Plan, load_of, machine_of};
use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::files::Disk;
use experiment::published::Published;
use experiment::served::Served;
use experiment::stop::StopSignal;
use lab::{Lab, Setup, Variant};
use model::Goal;
use recording::Revisions;
use stats::sequential::LOOKS;

use super::{history, lab as labs_command};
use crate::gates::GateArgs;
use crate::labs::{self, Wishes};
pub(super) use repository::{Repository, State, git};
pub(super) use worktrees::{Worktrees, WorktreesArgs};

/// Measure the cost of a change: a lab of this repository in two revisions, side by side.
///
/// The older revision, `base`, is the commit where HEAD left its target branch. The newer revision,
/// `head`, is HEAD with all uncommitted changes. Each revision gets its own git worktree, and the lab's
/// `build` builds it there. Then `weigh` starts, proves, loads and compares both, like variants of a lab.
/// Load, expected responses and proofs of both come from `head`. `weigh` removes the worktrees at the end
/// of the run, however it ends.
///
/// Without --variants, `weigh` compares the lab's baseline, so the lab needs no `variants`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lab: labs_command::Args,
    /// The target of the change: a branch, tag or commit [default: the target in CI, otherwise origin/HEAD,
    /// main or master].
    #[arg(long, value_name = "REF", help_heading = "Revisions")]
    base: Option<String>,
    /// Compare each variant of the lab with itself in the older revision. --variants selects some.
    #[arg(long, help_heading = "Revisions", conflicts_with = "variants")]
    all_variants: bool,
    /// A history of this lab (`weigh history`). With it, `weigh` predicts the time of the run and the
    /// smallest difference that the run can show.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    #[command(flatten)]
    worktrees: WorktreesArgs,
}

const EXAMPLES: &str = "\
Examples:
  weigh pr api --gate 'typical overhead < 20us' --gate 'mean overhead < 60us'
  weigh pr labs/api.yaml --base origin/main --format comment > comment.md
  weigh pr api --base HEAD~1 --all-variants";

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    // First in the user's own tree, so that mistakes are reported in files that the user can fix.
    let own = labs::read(&args.lab.labs, args.lab.wishes(), console)?;
    let repository = Repository::here()?;
    let places: Vec<PathBuf> = own
        .iter()
        .map(|lab| repository.place_of(&lab.path))
        .collect::<Result<_, _>>()?;
    let base = repository.base(args.base.as_deref())?;
    let head = repository.head(&args.lab.out)?;
    let worktrees = Worktrees::of(&repository, &base, &head, &args.worktrees, console)?;
    let change = Change::new(&repository, &base, &head, &worktrees);
    let ended = change.weigh_all(&places, args, console, stop);
    worktrees.remove()?;
    ended
}

/// The two revisions, ready to be built.
pub(super) struct Change<'a> {
    base: &'a State,
    head: &'a State,
    worktrees: &'a Worktrees,
    /// True if both contain the same files.
    is_same: bool,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        repository: &Repository,
        base: &'a State,
        head: &'a State,
        worktrees: &'a Worktrees,
    ) -> Change<'a> {
        Change {
            base,
            head,
            worktrees,
            is_same: repository.is_same(base, head),
        }
    }

    fn weigh_all(
        &self,
        places: &[PathBuf],
        args: &Args,
        console: Console,
        stop: &StopSignal,
    ) -> Result<Exit, Failure> {
        let mut labs = Vec::new();
        for place in places {
            labs.push(self.both(place, &args.lab, args.all_variants, console)?);
        }
        let names: Vec<&str> = labs.iter().flat_map(Lab::names).collect();
        args.lab.gates.check(&names)?;
        if let Some(history) = &args.history {
            foretell(history, &labs, &args.lab.gates, console)?;
        }
        if labs.iter().any(|lab| lab.until == Some(Goal::Gates)) {
            console.say(format_args!(
                "weigh: measuring until the gates are decided, 6 to {} rounds. `--rounds` fixes their number",
                LOOKS.end()
            ));
        }
        let mut builds = BuildCache::default();
        let mut worst = Exit::Done;
        let describe = |lab: &Lab| self.revisions(lab);
        let published = args.lab.publish.start(console)?;
        let served = args.lab.serve.start(console)?;
        let running = labs_command::Run {
            revisions: Some(&describe),
            account: published.as_ref().map(Published::account),
            board: served.as_ref().map(Served::board),
            ..args.lab.running()
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

    /// The lab that compares the two revisions of the lab at this path. It contains all variants, or the
    /// variants of the flags, or by default the baseline.
    ///
    /// # Errors
    ///
    /// When the newer revision has no readable lab there, or no variant with a given name.
    pub(super) fn both(
        &self,
        place: &Path,
        flags: &labs_command::Args,
        all_variants: bool,
        console: Console,
    ) -> Result<Lab, Failure> {
        let head = self.of_head(place, flags, console)?;
        let known = head.names();
        if let Some(name) = flags
            .variants
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            return Err(labs::stranger(&head, name));
        }
        let names = if all_variants {
            known.into_iter().map(str::to_owned).collect()
        } else if flags.variants.is_empty() {
            vec![head.baseline.name.clone()]
        } else {
            flags.variants.clone()
        };
        let base = self.of_base(place, flags.wishes());
        let base = base.as_ref().map_err(String::as_str);
        let lab = Lab::of_revisions(base, head, &names);
        // The stopping rule is set first, because the flags allow `--max-time` only with such a rule.
        flags.adjusted(flags.deciding(lab.seen_from(&self.worktrees.head())))
    }

    /// The lab in the newer revision.
    fn of_head(
        &self,
        place: &Path,
        flags: &labs_command::Args,
        console: Console,
    ) -> Result<Lab, Failure> {
        let path = self.worktrees.head().join(place);
        flags.wishes().parse(&path, &Disk).map_err(|found| {
            console.say(found.render(console.color));
            Failure::bad_input(format!(
                "`{}` cannot be read in a worktree of {}. Does git ignore it, or a file that it needs?",
                place.display(),
                self.head.shown.in_short()
            ))
        })
    }

    /// The lab in the older revision, or the reason why it cannot be measured there.
    fn of_base(&self, place: &Path, wishes: Wishes<'_>) -> Result<Lab, String> {
        let path = self.worktrees.base().join(place);
        let base = &self.base.shown;
        if !path.is_file() {
            return Err(format!(
                "the lab is new: {} does not have it",
                base.in_short()
            ));
        }
        wishes.parse(&path, &Disk).map_err(|found| {
            let mistakes = match found.len() {
                1 => "a mistake".to_owned(),
                many => format!("{many} mistakes"),
            };
            format!("the lab has {mistakes} in {}", base.in_short())
        })
    }

    /// The revisions for the recording, after all builds.
    pub(super) fn revisions(&self, lab: &Lab) -> Revisions {
        Revisions {
            base: self.base.shown.clone(),
            head: self.head.shown.clone(),
            is_same: self.is_same,
            unchanged: if self.is_same {
                Vec::new()
            } else {
                unchanged(lab)
            },
        }
    }
}

/// Prints the prediction from earlier runs of these labs.
///
/// # Errors
///
/// When a gate can never be decided with the noise of those runs.
fn foretell(file: &Path, labs: &[Lab], gates: &GateArgs, console: Console) -> Result<(), Failure> {
    let Some(entries) = history::entries(file)? else {
        // The first run of a branch has no history yet.
        console.say(format_args!(
            "weigh: no prediction, because `{}` does not exist yet. `weigh history add` creates it",
            file.display()
        ));
        return Ok(());
    };
    let here = environment::describe(&rig::machine::snapshot(), None, false);
    let machine = machine_of(&here);
    let levels = labs.iter().flat_map(|lab| {
        let is_sweep = !lab.sweep.is_empty();
        lab.levels().into_iter().map(move |level| (is_sweep, level))
    });
    for (is_sweep, lab) in levels {
        let load = load_of(&lab.load);
        let at = match is_sweep {
            true => format!("at {load}, "),
            false => String::new(),
        };
        let plan = Plan {
            lab: &lab.name,
            load: &load,
            machine: &machine,
            order: lab.order().0,
            rounds: lab.rounds as usize,
            until: lab.until_width(),
            is_for_gates: lab.until == Some(Goal::Gates),
        };
        let given = gates.with_those_of(&lab);
        let undecidable = given
            .all()
            .iter()
            .find_map(|gate| analysis::history::undecidable(&entries, plan, gate));
        if let Some(reason) = undecidable {
            return Err(Failure::bad_input(reason));
        }
        match Forecast::of(&entries, plan) {
            Some(forecast) => console.say(format_args!("weigh: {at}{forecast}")),
            None => console.say(format_args!(
                "weigh: {at}no prediction, because `{}` has no similar run of `{}`",
                file.display(),
                lab.name
            )),
        }
    }
    Ok(())
}

/// Systems with a program that is identical, byte for byte, in both revisions of every variant.
fn unchanged(lab: &Lab) -> Vec<String> {
    let pairs = || {
        let newer = lab.all().filter(|variant| variant.against.is_some());
        newer.filter_map(|newer| {
            let older = lab
                .all()
                .find(|it| Some(&it.name) == newer.against.as_ref())?;
            older.absent.is_none().then_some((older, newer))
        })
    };
    let is_same = |name: &str| {
        pairs().all(|(older, newer)| {
            let one = built(older, name).and_then(|path| fs::read(path).ok());
            let other = built(newer, name).and_then(|path| fs::read(path).ok());
            matches!((one, other), (Some(one), Some(other)) if one == other)
        })
    };
    let mut names: Vec<String> = Vec::new();
    for setup in pairs().flat_map(|(_, newer)| newer.systems()) {
        if !names.contains(&setup.system) && is_same(&setup.system) {
            names.push(setup.system.clone());
        }
    }
    names
}

/// The program that a build has created for a system. `None` if no program is built, or if the system uses an
/// installed program.
fn built(variant: &Variant, system: &str) -> Option<PathBuf> {
    let is_built = |setup: &&Setup| setup.system == system && !setup.build.is_empty();
    let setup = variant.systems().iter().find(is_built)?;
    let program = setup.command().first()?.render(&|_| None).ok()?;
    // A name without a folder is found through PATH, so the program was not built here.
    if !program.contains('/') {
        return None;
    }
    rig::find_program(&program, &setup.folder, &environment::search_path())
}
