//! Worktrees of two revisions of a repository, removed at the end of the run.

use std::fs;
use std::path::{Path, PathBuf};

use experiment::console::Console;
use experiment::environment;
use experiment::exit::Failure;
use experiment::measure::start_rig;
use rig::Rig;

use super::repository::{Repository, State};

/// Where worktrees are made.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct WorktreesArgs {
    /// Folder for the two worktrees during the run [default: XDG_STATE_HOME/weighbridge/worktrees].
    #[arg(long, value_name = "DIR", help_heading = "Revisions")]
    worktrees: Option<PathBuf>,
}

impl WorktreesArgs {
    /// The parent folder of the worktrees. By default it is not next to the repository, because a build could
    /// find files of one revision in the folders above the other. It is also not the folder for temporary
    /// files, which may be in memory.
    fn parent(&self) -> PathBuf {
        let usual = || match environment::state_folder() {
            Some(state) => state.join("weighbridge/worktrees"),
            None => std::env::temp_dir(),
        };
        self.worktrees.clone().unwrap_or_else(usual)
    }
}

/// A worktree of each revision.
pub(in crate::command) struct Worktrees {
    /// The keeper of this rig removes the folders, even if this process is killed.
    rig: Rig,
    folder: PathBuf,
}

impl Worktrees {
    /// Creates both worktrees in a new folder.
    ///
    /// # Errors
    ///
    /// When git or the file system refuses.
    pub(in crate::command) fn of(
        repository: &Repository,
        base: &State,
        head: &State,
        args: &WorktreesArgs,
        console: Console,
    ) -> Result<Worktrees, Failure> {
        let parent = args.parent();
        let refused = |error: std::io::Error| {
            Failure::not_ready(format!(
                "cannot create a folder for two revisions in `{}`: {error}. Choose another folder with --worktrees",
                parent.display()
            ))
        };
        fs::create_dir_all(&parent).map_err(refused)?;
        let folder = tempfile::Builder::new()
            .prefix("pr-")
            .tempdir_in(&parent)
            .map_err(refused)?;
        // From here on the keeper removes the folder.
        let folder = folder.keep();
        let folder = fs::canonicalize(&folder).map_err(refused)?;
        let rig = start_rig(&folder.join("logs"), console)?;
        let mut worktrees = Worktrees { rig, folder };
        worktrees.remove_at_end(&worktrees.folder.clone())?;
        for (path, state) in [(worktrees.base(), base), (worktrees.head(), head)] {
            let known = repository.add_worktree(&path, &state.commit)?;
            worktrees.remove_at_end(&known)?;
        }
        Ok(worktrees)
    }

    /// The folder of the older revision. Both paths have equal lengths, because compilers write paths into
    /// programs and a different length would move their code.
    pub(in crate::command) fn base(&self) -> PathBuf {
        self.folder.join("base")
    }

    /// The folder of the newer revision.
    pub(in crate::command) fn head(&self) -> PathBuf {
        self.folder.join("head")
    }

    /// Removes both worktrees with all builds in them.
    ///
    /// # Errors
    ///
    /// When the keeper fails.
    pub(in crate::command) fn remove(self) -> Result<(), Failure> {
        self.rig
            .shut_down()
            .map_err(|error| Failure::bug(error.to_string()))
    }

    fn remove_at_end(&mut self, folder: &Path) -> Result<(), Failure> {
        self.rig
            .remove_at_end(folder)
            .map_err(|error| Failure::bug(error.to_string()))
    }
}
