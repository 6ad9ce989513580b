//! `weigh bisect`: the first commit that breaks a gate, by binary search.

use std::path::Path;

use analysis::Summary;
use analysis::gate::Ruling;
use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::published::Published;
use experiment::served::{Board, Served};
use experiment::stop::StopSignal;
use lab::Lab;

use super::lab as labs_command;
use super::pr::{Change, Repository, State, Worktrees, WorktreesArgs, git};
use crate::labs;

/// Find the first commit that breaks a gate, by binary search.
///
/// `weigh` compares each commit with the good commit, side by side, like `weigh pr`. A commit is bad if a
/// gate is broken, and good if all gates hold. It is skipped if it cannot be built or started, or if a gate
/// stays undecided. git bisect selects the next commit, in its own worktree. Your working tree stays
/// unchanged.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    lab: labs_command::Args,
    /// A commit, branch or tag at which the gates hold.
    #[arg(long, value_name = "REF", help_heading = "Revisions")]
    good: String,
    /// A later commit, branch or tag that breaks a gate.
    #[arg(
        long,
        value_name = "REF",
        help_heading = "Revisions",
        default_value = "HEAD"
    )]
    bad: String,
    #[command(flatten)]
    worktrees: WorktreesArgs,
}

const EXAMPLES: &str = "\
Examples:
  weigh bisect api --good v1.4.0 --gate 'typical overhead < 20us' --gate 'mean overhead < 60us'
  weigh bisect api --good HEAD~30 --bad HEAD~2 --rounds 12";

/// Maximum number of measured commits. Binary search needs 64 steps for 2^64 commits.
const STEPS_MAX: usize = 64;

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let own = labs::read(&args.lab.labs, args.lab.wishes(), console)?;
    let [lab] = own.as_slice() else {
        return Err(Failure::bad_input(format!(
            "expected one lab, because a commit has one verdict, found {}",
            own.len()
        )));
    };
    if !args.lab.gates.is_any() && lab.gates.is_empty() {
        return Err(Failure::bad_input(format!(
            "expected a gate to separate good from bad, found none in `{}`. Add one, such as --gate \
             'typical overhead < 20us' --gate 'mean overhead < 60us'",
            lab.name
        )));
    }
    if !lab.sweep.is_empty() {
        return Err(Failure::bad_input(format!(
            "expected a lab with one load, because a commit has one verdict, found the sweep `{}`. \
             Give the lab one `rate` or one number of `connections`",
            lab.name
        )));
    }
    let repository = Repository::here()?;
    let place = repository.place_of(&lab.path)?;
    let good = repository.state(&args.good)?;
    let bad = repository.state(&args.bad)?;
    let worktrees = Worktrees::of(&repository, &good, &bad, &args.worktrees, console)?;
    // One address for all commits, so that a browser stays on the page.
    let served = args.lab.serve.start(console)?;
    let search = Search {
        board: served.as_ref().map(Served::board),
        args,
        repository: &repository,
        worktrees: &worktrees,
        good: &good,
        place: &place,
    };
    let ended = search.find(&bad, console, stop);
    if let Some(served) = served {
        served.end(stop);
    }
    worktrees.remove()?;
    ended
}

/// The judgement of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Good,
    Bad,
    /// The commit cannot be judged.
    Skipped,
}

impl Found {
    /// The argument for `git bisect`.
    fn word(self) -> &'static str {
        match self {
            Found::Good => "good",
            Found::Bad => "bad",
            Found::Skipped => "skip",
        }
    }

    /// The judgement according to the gates.
    fn of(summary: &Summary) -> Found {
        let mut rulings = summary.gates.iter().map(|judgement| judgement.ruling);
        let has_number = summary.variants.iter().all(|row| row.has_number());
        if !has_number || summary.gates.is_empty() {
            return Found::Skipped;
        }
        if rulings.clone().any(|ruling| ruling == Ruling::Broken) {
            return Found::Bad;
        }
        match rulings.all(|ruling| ruling == Ruling::Holds) {
            true => Found::Good,
            false => Found::Skipped,
        }
    }
}

/// A search between a good and a bad commit.
struct Search<'a> {
    args: &'a Args,
    repository: &'a Repository,
    worktrees: &'a Worktrees,
    good: &'a State,
    /// Path of the lab within the repository.
    place: &'a Path,
    /// The served page. `None` without `--serve`.
    board: Option<Board>,
}

impl Search<'_> {
    fn find(&self, bad: &State, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
        // Checks the gates with the lab of the bad commit. A later commit without the variant of a gate is
        // skipped.
        let change = Change::new(self.repository, self.good, bad, self.worktrees);
        if let Ok(lab) = change.both(self.place, &self.args.lab, false, console) {
            self.args.lab.gates.check(&lab.names())?;
        }
        let found = self.judge(bad, console, stop)?;
        if stop.is_asked() {
            return Ok(Exit::Interrupted);
        }
        if found != Found::Bad {
            return Err(Failure {
                exit: Exit::Withheld,
                message: format!(
                    "expected a bad commit to start the search, found that {} is {}. Choose another \
                     commit with --bad, another gate, or more rounds",
                    bad.shown.in_short(),
                    found.word()
                ),
            });
        }
        let head = self.worktrees.head();
        let start = ["bisect", "start", &bad.commit, &self.good.commit];
        let mut said = git(&head, &start)?;
        for _ in 0..STEPS_MAX {
            if let Some(first) = first_bad(&said) {
                return self.answer(first, console);
            }
            let state = self
                .repository
                .state(&git(&head, &["rev-parse", "HEAD"])?)?;
            let found = self.judge(&state, console, stop)?;
            if stop.is_asked() {
                return Ok(Exit::Interrupted);
            }
            // If only skipped commits are left, git fails and lists them.
            said = git(&head, &["bisect", found.word()]).map_err(|failure| Failure {
                exit: Exit::Withheld,
                message: format!(
                    "the first bad commit cannot be determined: {}",
                    failure.message
                ),
            })?;
        }
        Err(Failure::bug(format!(
            "git bisect does not end within {STEPS_MAX} commits"
        )))
    }

    fn answer(&self, first: &str, console: Console) -> Result<Exit, Failure> {
        let first = self.repository.state(first)?;
        console.answer(&format!(
            "first bad commit: {} {}",
            first.commit, first.shown.subject
        ));
        Ok(Exit::Done)
    }

    /// Compares the commit in the worktree of the newer revision with the good commit.
    fn judge(&self, state: &State, console: Console, stop: &StopSignal) -> Result<Found, Failure> {
        let change = Change::new(self.repository, self.good, state, self.worktrees);
        let shown = format!("{} ({})", state.shown.in_short(), state.shown.subject);
        let lab = match change.both(self.place, &self.args.lab, false, console) {
            Ok(lab) => lab,
            Err(failure) => {
                console.answer(&format!("skip {shown}: {}", failure.message));
                return Ok(Found::Skipped);
            }
        };
        let describe = |lab: &Lab| change.revisions(lab);
        let published = self.args.lab.publish.start(console)?;
        let running = labs_command::Run {
            revisions: Some(&describe),
            account: published.as_ref().map(Published::account),
            board: self.board.clone(),
            ..self.args.lab.running()
        };
        // The files in the folders change from commit to commit, so no build can be reused.
        let mut builds = BuildCache::default();
        let run = running.recorded(&lab, &mut builds, console, stop)?;
        let found = Found::of(&run.summary);
        console.answer(&format!("{} {shown}: {}", found.word(), told(&run.summary)));
        run.check_saved()?;
        Ok(found)
    }
}

/// The judgement of a commit as a sentence.
fn told(summary: &Summary) -> String {
    let mut rows = summary.variants.iter();
    let row = rows.find(|row| row.verdict.is_invalid());
    let row = row.or(summary.variants.last());
    row.map_or_else(String::new, |row| {
        report::in_words(row).unwrap_or_else(|| report::verdict_text(row))
    })
}

/// The commit that `git bisect` reports as the first bad one.
fn first_bad(said: &str) -> Option<&str> {
    let line = said
        .lines()
        .find(|line| line.contains(" is the first bad commit"))?;
    line.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_commit_is_read_from_what_git_says() {
        let said = "0123abc is the first bad commit\ncommit 0123abc\nAuthor: a";
        assert_eq!(first_bad(said), Some("0123abc"));
        assert_eq!(
            first_bad("Bisecting: 3 revisions left to test after this"),
            None
        );
    }
}
