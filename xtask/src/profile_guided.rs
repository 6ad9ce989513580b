//! `cargo xtask profile-guided`: builds the gateway with a profile of a run of it.
//!
//! Main idea: at low rates a request spends its time on loading code from memory. With a profile, the
//! compiler places code that runs together in one place, and the rest elsewhere. So the gateway is built
//! twice. The first build counts the code that it runs, under a load like real use. The second build uses the
//! counts.
//!
//! Absent on purpose: a profile in the repository. It fits one version of the compiler and of the sources,
//! and would be wrong with the next commit.

mod toolchain;
mod training;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::bench::{self, say};
use crate::repository::root;
use toolchain::Toolchain;

/// Load of the gateway while the compiler's profile is recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of requests for each configuration.
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(500..=1_000_000))]
    requests: u64,
}

/// The folder for all files of this task.
const FOLDER: &str = "target/profile-guided";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let toolchain = Toolchain::find()?;
    let folder = root().join(FOLDER);
    // The speed of the origin does not matter here, and this origin has the shortest build.
    let planets = bench::programs("dev", &["planets"])?.join("planets");
    let profiles = folder.join("profiles");
    let counting = Build {
        toolchain: &toolchain,
        flag: format!("-Cprofile-generate={}", utf8(&profiles)?),
        target: folder.join("generate"),
    };
    let counting = counting.program()?;
    // An earlier run has left its own profiles.
    emptied(&profiles)?;
    fs::create_dir_all(&profiles)?;
    let stop = crate::attack::stop_signal()?;
    let training = training::Training {
        planets: &planets,
        requests: args.requests,
        stop: &stop,
    };
    let counted = training.counted(&counting, &profiles)?;
    let merged = folder.join("merged.profdata");
    toolchain.merge(&counted, &merged)?;
    say(&format!("profile: {}", told(&merged)?));
    let using = Build {
        toolchain: &toolchain,
        flag: format!("-Cprofile-use={}", utf8(&merged)?),
        target: folder.join("use"),
    };
    // Cargo does not check the profile, and would reuse the output of an older profile.
    emptied(&using.target)?;
    let built = using.program()?;
    training.answers_right(&built)?;
    let program = folder.join("gateway");
    fs::copy(&built, &program)?;
    say(&format!("gateway: {}", told(&program)?));
    Ok(())
}

/// One of the two builds.
struct Build<'a> {
    toolchain: &'a Toolchain,
    flag: String,
    /// A folder of its own, so that neither of the builds reuses the output of the other.
    target: PathBuf,
}

impl Build<'_> {
    fn program(&self) -> anyhow::Result<PathBuf> {
        let (encoded, plain) = flags_of_environment();
        let flags = flags(encoded.as_deref(), plain.as_deref(), &self.flag);
        say(&format!(
            "building the gateway with {}; some minutes",
            self.flag
        ));
        let status = self.command(&flags).status().context("cargo starts")?;
        ensure!(
            status.success(),
            "the gateway does not build with {}",
            self.flag
        );
        let folder = self.target.join(&self.toolchain.host).join("tuned");
        let program = folder.join("gateway");
        ensure!(program.is_file(), "cargo built no {}", program.display());
        Ok(program)
    }

    fn command(&self, flags: &str) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(["build", "--locked", "--profile", "tuned"])
            .args(["--package", "gateway", "--bin", "gateway"])
            // With an explicit target, the flags do not apply to build scripts.
            .args(["--target", &self.toolchain.host])
            .arg("--target-dir")
            .arg(&self.target)
            .env_remove("RUSTFLAGS")
            // Unlike RUSTFLAGS, it allows spaces in paths.
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            .current_dir(root());
        command
    }
}

/// Reads `CARGO_ENCODED_RUSTFLAGS` and `RUSTFLAGS`.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this chore that reads it"
)]
fn flags_of_environment() -> (Option<String>, Option<String>) {
    (
        env::var("CARGO_ENCODED_RUSTFLAGS").ok(),
        env::var("RUSTFLAGS").ok(),
    )
}

/// Combines the user's flags, read as cargo reads them, with one more flag, in the form that cargo accepts.
fn flags(encoded: Option<&str>, plain: Option<&str>, added: &str) -> String {
    let (given, separator) = match encoded {
        Some(encoded) => (encoded, '\x1f'),
        None => (plain.unwrap_or_default(), ' '),
    };
    let given = given.split(separator).map(str::trim);
    let given = given.filter(|flag| !flag.is_empty());
    given.chain([added]).collect::<Vec<_>>().join("\x1f")
}

fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Removes a folder and its contents, if it exists.
fn emptied(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Path and size of a file as text.
fn told(file: &Path) -> anyhow::Result<String> {
    let mib = fs::metadata(file)?.len() as f64 / f64::from(1 << 20);
    Ok(format!("{}, {mib:.1} MiB", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_environment_are_kept() {
        assert_eq!(flags(None, None, "-Cx=a b"), "-Cx=a b");
        assert_eq!(
            flags(None, Some("-Ctarget-cpu=native  -g"), "-Cx=a"),
            "-Ctarget-cpu=native\x1f-g\x1f-Cx=a"
        );
        // Cargo ignores the plain flags if there are encoded ones, even empty ones.
        assert_eq!(
            flags(Some("-L\x1fa b"), Some("-g"), "-Cx"),
            "-L\x1fa b\x1f-Cx"
        );
        assert_eq!(flags(Some(""), Some("-g"), "-Cx"), "-Cx");
    }

    #[test]
    fn a_build_has_flags_and_a_folder_of_its_own() {
        let toolchain = Toolchain {
            host: "x86_64-unknown-linux-gnu".to_owned(),
            profdata: PathBuf::new(),
        };
        let build = Build {
            toolchain: &toolchain,
            flag: "-Cprofile-use=/a b/merged.profdata".to_owned(),
            target: PathBuf::from("/a b/use"),
        };
        let command = build.command("-g\x1f-Cprofile-use=/a b/merged.profdata");
        let arguments: Vec<_> = command.get_args().filter_map(|it| it.to_str()).collect();
        assert_eq!(
            arguments.join(" "),
            "build --locked --profile tuned --package gateway --bin gateway \
             --target x86_64-unknown-linux-gnu --target-dir /a b/use"
        );
        let of = |name: &str| {
            let found = command.get_envs().find(|(found, _)| *found == name);
            found.map(|(_, value)| value.and_then(|it| it.to_str()))
        };
        assert_eq!(of("RUSTFLAGS"), Some(None));
        assert_eq!(
            of("CARGO_ENCODED_RUSTFLAGS"),
            Some(Some("-g\x1f-Cprofile-use=/a b/merged.profdata"))
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("use");
        emptied(&inner).unwrap();
        fs::create_dir_all(inner.join("tuned")).unwrap();
        fs::write(inner.join("tuned/gateway"), "").unwrap();
        emptied(&inner).unwrap();
        assert!(!inner.exists());
        // A file in the place of a folder is an error, and is not removed.
        fs::write(&inner, "").unwrap();
        assert!(emptied(&inner).is_err());
    }
}
