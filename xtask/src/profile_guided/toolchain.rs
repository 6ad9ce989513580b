//! The compiler in use, and the program that merges its profiles.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::repository::root;

/// The parts of the compiler that this task needs.
#[derive(Debug)]
pub(super) struct Toolchain {
    /// The default target of the compiler.
    pub(super) host: String,
    /// `llvm-profdata` of the compiler's own LLVM, because another version may not read its profiles.
    pub(super) profdata: PathBuf,
}

impl Toolchain {
    /// The toolchain of `rustc` in the repository. An error if it lacks `llvm-profdata`.
    pub(super) fn find() -> anyhow::Result<Self> {
        let sysroot = asked_of_rustc(&["--print", "sysroot"])?;
        let version = asked_of_rustc(&["--version", "--verbose"])?;
        let host = host(&version).context("rustc does not say its host")?;
        Self::in_folder(Path::new(sysroot.trim()), host)
    }

    fn in_folder(sysroot: &Path, host: &str) -> anyhow::Result<Self> {
        let folder = sysroot.join("lib/rustlib").join(host).join("bin");
        let profdata = folder.join("llvm-profdata");
        ensure!(
            profdata.is_file(),
            "this toolchain has no `llvm-profdata` ({} is missing); \
             `rustup component add llvm-tools` installs it",
            profdata.display()
        );
        Ok(Toolchain {
            host: host.to_owned(),
            profdata,
        })
    }

    /// Merges all counts into one profile.
    pub(super) fn merge(&self, counted: &[PathBuf], merged: &Path) -> anyhow::Result<()> {
        let output = self.merging(counted, merged).output();
        let output = output.with_context(|| format!("{} starts", self.profdata.display()))?;
        ensure!(
            output.status.success(),
            "the profiles cannot be merged: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(())
    }

    fn merging(&self, counted: &[PathBuf], merged: &Path) -> Command {
        let mut command = Command::new(&self.profdata);
        command
            .args(["merge", "--output"])
            .arg(merged)
            .args(counted);
        command
    }
}

fn asked_of_rustc(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(root())
        .output()
        .context("rustc starts")?;
    ensure!(
        output.status.success(),
        "rustc {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).context("rustc writes UTF-8")
}

/// The line of the host in `rustc --version --verbose`.
fn host(version: &str) -> Option<&str> {
    let mut lines = version.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "))?.trim();
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HOST: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn the_host_is_a_line_of_the_version() {
        let version =
            "rustc 1.95.0\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        assert_eq!(host(version), Some(HOST));
        assert_eq!(host("rustc 1.95.0\nhost: \n"), None);
        assert_eq!(host("rustc 1.95.0\n"), None);
    }

    #[test]
    fn a_toolchain_without_the_program_says_how_to_get_it() {
        let sysroot = tempfile::tempdir().unwrap();
        let error = Toolchain::in_folder(sysroot.path(), HOST).unwrap_err();
        let missing = sysroot
            .path()
            .join("lib/rustlib/x86_64-unknown-linux-gnu/bin/llvm-profdata");
        assert_eq!(
            error.to_string(),
            format!(
                "this toolchain has no `llvm-profdata` ({} is missing); \
                 `rustup component add llvm-tools` installs it",
                missing.display()
            )
        );
        fs::create_dir_all(missing.parent().unwrap()).unwrap();
        fs::write(&missing, "").unwrap();
        let found = Toolchain::in_folder(sysroot.path(), HOST).unwrap();
        assert_eq!((found.host.as_str(), found.profdata), (HOST, missing));
    }

    #[test]
    fn all_profiles_are_merged_or_it_is_said_that_they_are_not() {
        let by = |program: &str| Toolchain {
            host: HOST.to_owned(),
            profdata: PathBuf::from(program),
        };
        let counted = ["a", "b"].map(PathBuf::from);
        let command = by("llvm-profdata").merging(&counted, Path::new("merged"));
        assert_eq!(
            format!("{command:?}"),
            r#""llvm-profdata" "merge" "--output" "merged" "a" "b""#
        );
        by("true").merge(&counted, Path::new("merged")).unwrap();
        let error = by("false").merge(&counted, Path::new("merged"));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("the profiles cannot be merged"),
            "{error}"
        );
    }
}
