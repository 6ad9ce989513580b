//! The repository of the current folder, read with the `git` program.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use experiment::environment;
use experiment::exit::Failure;
use recording::Revision;

/// A revision, with its commit and its display form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) struct State {
    /// The commit with the files of the revision.
    pub(in crate::command) commit: String,
    /// The form of the revision in reports.
    pub(in crate::command) shown: Revision,
}

/// A repository with a working tree.
pub(in crate::command) struct Repository {
    /// The top folder of the working tree, with symbolic links resolved.
    top: PathBuf,
}

impl Repository {
    /// The repository of the current folder.
    ///
    /// # Errors
    ///
    /// When the current folder is in no repository, or `git` is not installed.
    pub(in crate::command) fn here() -> Result<Repository, Failure> {
        let top = git(Path::new("."), &["rev-parse", "--show-toplevel"])?;
        let top = fs::canonicalize(&top)
            .map_err(|error| Failure::not_ready(format!("`{top}` cannot be read: {error}")))?;
        Ok(Repository { top })
    }

    /// The path of a file within the repository.
    ///
    /// # Errors
    ///
    /// When it is outside.
    pub(in crate::command) fn place_of(&self, path: &Path) -> Result<PathBuf, Failure> {
        let outside = || {
            Failure::bad_input(format!(
                "expected a lab of the repository in `{}`, found `{}` outside of it",
                self.top.display(),
                path.display()
            ))
        };
        let path = fs::canonicalize(path).map_err(|_| outside())?;
        let place = path.strip_prefix(&self.top).map_err(|_| outside())?;
        Ok(place.to_owned())
    }

    /// The older revision: the merge base of HEAD and `asked`, or of HEAD and the branch that CI or the
    /// remote names.
    ///
    /// # Errors
    ///
    /// When there is no such branch, or no common commit.
    pub(in crate::command) fn base(&self, asked: Option<&str>) -> Result<State, Failure> {
        let name = match asked {
            Some(name) => name.to_owned(),
            None => self.usual_base()?,
        };
        let Some(asked) = self.commit_of(&name) else {
            return Err(Failure::bad_input(format!(
                "expected a branch, tag or commit as base, found `{name}`, which this repository \
                 does not have. Fetch it (a CI job often has only one commit), or choose another \
                 base with --base"
            )));
        };
        let parted = self.git(&["merge-base", &asked, "HEAD"]).map_err(|_| {
            Failure::bad_input(format!(
                "expected a common commit of `{name}` and HEAD, found none here. In a shallow clone \
                 fetch more (`git fetch --unshallow`, `fetch-depth: 0` of actions/checkout)"
            ))
        })?;
        let name = if parted == asked {
            name
        } else {
            format!("where HEAD left {name}")
        };
        Ok(State {
            shown: self.shown(name, &parted, false)?,
            commit: parted,
        })
    }

    /// The newer revision: HEAD with the uncommitted changes. Excludes ignored files and `out`, the folder of
    /// recordings.
    ///
    /// # Errors
    ///
    /// When git cannot save the uncommitted changes.
    pub(in crate::command) fn head(&self, out: &Path) -> Result<State, Failure> {
        let commit = self.commit_of("HEAD").ok_or_else(|| {
            Failure::bad_input("expected a repository with a commit, found none. Commit first")
        })?;
        let everything = self.with_uncommitted(&commit, out)?;
        let tree = format!("{commit}^{{tree}}");
        let is_uncommitted = self.git(&["rev-parse", &tree])? != everything;
        let shown = self.shown("HEAD".to_owned(), &commit, is_uncommitted)?;
        if !is_uncommitted {
            return Ok(State { commit, shown });
        }
        // The commit belongs to no branch, so git deletes it some weeks later.
        let snapshot = self.git(&[
            "-c",
            "user.name=weigh",
            "-c",
            "user.email=weigh@localhost",
            "commit-tree",
            &everything,
            "-p",
            &commit,
            "-m",
            "uncommitted changes, saved by weigh pr",
        ])?;
        Ok(State {
            commit: snapshot,
            shown,
        })
    }

    /// A revision by its name, unchanged.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub(in crate::command) fn state(&self, name: &str) -> Result<State, Failure> {
        let commit = self.commit_of(name).ok_or_else(|| {
            Failure::bad_input(format!(
                "expected a branch, tag or commit, found `{name}`, which this repository does not have"
            ))
        })?;
        Ok(State {
            shown: self.shown(name.to_owned(), &commit, false)?,
            commit,
        })
    }

    /// True if two revisions contain the same files.
    pub(in crate::command) fn is_same(&self, one: &State, other: &State) -> bool {
        let tree = |state: &State| self.git(&["rev-parse", &format!("{}^{{tree}}", state.commit)]);
        matches!((tree(one), tree(other)), (Ok(one), Ok(other)) if one == other)
    }

    /// Adds a worktree of a commit. Returns the folder of git's metadata about it.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub(in crate::command) fn add_worktree(
        &self,
        folder: &Path,
        commit: &str,
    ) -> Result<PathBuf, Failure> {
        let path = folder.to_string_lossy();
        self.git(&["worktree", "add", "--quiet", "--detach", &path, commit])?;
        if folder.join(".gitmodules").is_file() {
            git(
                folder,
                &["submodule", "--quiet", "update", "--init", "--recursive"],
            )?;
        }
        git(folder, &["rev-parse", "--absolute-git-dir"]).map(PathBuf::from)
    }

    /// The tree of all current files.
    fn with_uncommitted(&self, commit: &str, out: &Path) -> Result<String, Failure> {
        let folder = tempfile::tempdir().map_err(|error| {
            Failure::not_ready(format!("cannot create a temporary folder: {error}"))
        })?;
        let index = folder.path().join("index");
        // The existing index lists unchanged files, so that git need not read them again.
        let known = self.git(&["rev-parse", "--git-path", "index"])?;
        if fs::copy(self.top.join(known), &index).is_err() {
            self.with_index(&index, &["read-tree", commit])?;
        }
        let mut add = vec!["add", "--all", "--", ":/"];
        let recordings = self.recordings(out);
        let excluded = recordings.map(|place| format!(":(exclude,top,literal){place}"));
        add.extend(excluded.as_deref());
        self.with_index(&index, &add)?;
        self.with_index(&index, &["write-tree"])
    }

    /// The folder of recordings, if it is in the repository and not ignored by git.
    fn recordings(&self, out: &Path) -> Option<String> {
        let out = fs::canonicalize(out).ok()?;
        let place = out.strip_prefix(&self.top).ok()?.to_str()?.to_owned();
        // Git refuses an exclusion of an ignored folder.
        let is_ignored = self.git(&["check-ignore", "--quiet", "--", &place]).is_ok();
        (!is_ignored && !place.is_empty()).then_some(place)
    }

    fn with_index(&self, index: &Path, words: &[&str]) -> Result<String, Failure> {
        run(&self.top, words, Some(index))
    }

    /// The branch that a change usually targets.
    fn usual_base(&self) -> Result<String, Failure> {
        let of_github = environment::inherited("GITHUB_BASE_REF").filter(|name| !name.is_empty());
        let of_gitlab = environment::inherited("CI_MERGE_REQUEST_DIFF_BASE_SHA");
        let said = of_github.map(|name| format!("origin/{name}")).or(of_gitlab);
        if let Some(said) = said.filter(|name| !name.is_empty()) {
            return Ok(said);
        }
        let usual = ["origin/HEAD", "main", "master"];
        let found = usual
            .into_iter()
            .find(|name| self.commit_of(name).is_some());
        found.map(str::to_owned).ok_or_else(|| {
            Failure::bad_input(format!(
                "expected a base to compare with, found none of {}. Name one with --base",
                usual.join(", ")
            ))
        })
    }

    fn commit_of(&self, name: &str) -> Option<String> {
        let commit = format!("{name}^{{commit}}");
        self.git(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ])
        .ok()
    }

    fn shown(&self, name: String, commit: &str, uncommitted: bool) -> Result<Revision, Failure> {
        let subject = self.git(&["show", "--no-patch", "--format=%s", commit])?;
        Ok(Revision {
            name,
            commit: commit.to_owned(),
            // The subject is untrusted text and is printed on terminals.
            subject: subject
                .chars()
                .filter(|letter| !letter.is_control())
                .collect(),
            uncommitted,
        })
    }

    fn git(&self, words: &[&str]) -> Result<String, Failure> {
        git(&self.top, words)
    }
}

/// The output of `git` in a folder, without the line break at its end.
///
/// # Errors
///
/// When it fails, or is not installed.
pub(in crate::command) fn git(folder: &Path, words: &[&str]) -> Result<String, Failure> {
    run(folder, words, None)
}

fn run(folder: &Path, words: &[&str], index: Option<&Path>) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(words);
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    tracing::debug!(?words, ?folder, "asking git");
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::not_ready("`git` is not installed, but `weigh pr` needs it")
        }
        _ => Failure::bug(format!("`git` cannot be started: {error}")),
    })?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        return Ok(said(&output.stdout));
    }
    Err(Failure::not_ready(format!(
        "`git {}` failed: {}",
        words.join(" "),
        said(&output.stderr)
    )))
}
