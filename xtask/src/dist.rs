//! `cargo xtask dist` builds the installable files: archives and Debian packages of a static `weigh`. They
//! contain completions, manual pages and the licences of all linked code. Checksums are written next to them.

mod licences;
mod package;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::chores;
use crate::repository::root;
use package::Contents;

/// Targets and folder of the files.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Target to build. The flag can be repeated. The default is all targets.
    #[arg(long, value_name = "TRIPLE", value_parser = clap::builder::PossibleValuesParser::new(TARGETS.map(|it| it.triple)))]
    target: Vec<String>,
    /// Folder for the files.
    #[arg(long, value_name = "FOLDER", default_value = "target/dist/files")]
    out: PathBuf,
    /// Use this static program of the first target instead of building it.
    #[arg(long, value_name = "FILE", hide = true)]
    program: Option<PathBuf>,
}

impl Args {
    /// The folder for the files.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }
}

/// A target platform.
struct Target {
    triple: &'static str,
    /// Name of the architecture in Debian.
    debian: &'static str,
    /// The compiler for the C code of a dependency, and its Debian package.
    compiler: (&'static str, &'static str),
}

const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        compiler: ("musl-gcc", "musl-tools"),
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        debian: "arm64",
        compiler: ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    },
];

/// Builds and packs each target.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let out = root().join(&args.out);
    fs::create_dir_all(&out)?;
    let version = version()?;
    let wanted = TARGETS.iter().filter(|target| match &args.program {
        Some(_) => target.triple == TARGETS[0].triple,
        None => args.target.is_empty() || args.target.iter().any(|it| it == target.triple),
    });
    let work = tempfile::tempdir()?;
    // All targets contain the same pages.
    let book = work.path().join("book");
    chores::book(&book)?;
    let mut files = Vec::new();
    let mut said = Vec::new();
    // A program for this machine prints the descriptions, regardless of the targets.
    let mut described: Option<PathBuf> = None;
    for target in wanted {
        let program = match &args.program {
            Some(program) => program.clone(),
            None => build(target)?,
        };
        let runs = runs(&program);
        if described.is_none() {
            ensure!(
                runs,
                "{} does not run here, and nothing else describes its flags; build the target of this machine first",
                program.display()
            );
            described = Some(program.clone());
        }
        let contents = Contents {
            version: &version,
            target: target.triple,
            debian: target.debian,
            program: &program,
            describer: described.as_deref().expect("set above"),
            book: &book,
            licences: licences::of(target.triple)?,
        };
        let folder = contents.gather(work.path())?;
        files.push(package::archive(&folder, &out)?);
        files.push(package::debian(&contents, &folder, work.path(), &out)?);
        said.push(format!(
            "{}: {}",
            target.triple,
            if runs {
                "built, and it runs here"
            } else {
                "built; it was not run, since this machine is another"
            }
        ));
    }
    files.push(recipe(&out, &version)?);
    sums(&out, &files)?;
    said.push(format!("{} files in {}", files.len() + 1, out.display()));
    say(&said);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "what was built is this chore's result")]
fn say(lines: &[String]) {
    for line in lines {
        println!("{line}");
    }
}

/// The version of the workspace.
pub(crate) fn version() -> anyhow::Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    Ok(version.context("the workspace has a version")?.to_owned())
}

/// Builds the program of a target. It is static, so that it runs on every Linux.
fn build(target: &Target) -> anyhow::Result<PathBuf> {
    let (compiler, package) = target.compiler;
    let is_there = Command::new(compiler).arg("--version").output().is_ok();
    ensure!(
        is_there,
        "{} needs `{compiler}`: ./setup dist, or install the package {package}",
        target.triple
    );
    let added = Command::new("rustup")
        .args(["target", "add", target.triple])
        .status();
    ensure!(
        added.is_ok_and(|status| status.success()),
        "rustup cannot add {}; see whether `rustup` is installed and can reach its server",
        target.triple
    );
    let variable = target.triple.replace('-', "_");
    let status = Command::new("cargo")
        .args(["build", "--locked", "--release", "--package", "weigh"])
        .args(["--target", target.triple, "--target-dir", "target/dist"])
        .env(format!("CC_{variable}"), compiler)
        // The linker of Rust links for all targets. The C library comes from the target's component.
        .env(
            format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
            "rust-lld",
        )
        .current_dir(root())
        .status()?;
    ensure!(status.success(), "{} does not build", target.triple);
    Ok(root()
        .join("target/dist")
        .join(target.triple)
        .join("release/weigh"))
}

fn runs(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// The recipe of a container image that contains only the files of the archive. Building it needs no other
/// image.
fn recipe(out: &Path, version: &str) -> anyhow::Result<PathBuf> {
    let path = out.join("Containerfile");
    let archive = format!("weigh-{version}-{}", TARGETS[0].triple);
    fs::write(
        &path,
        format!(
            "# podman build -t weigh . && podman run --rm weigh demo\n\
             FROM scratch\n\
             ADD {archive}.tar.gz /\n\
             # Programs expect a folder for temporary files.\n\
             WORKDIR /tmp\n\
             WORKDIR /work\n\
             ENTRYPOINT [\"/{archive}/weigh\"]\n"
        ),
    )?;
    Ok(path)
}

/// Writes `SHA256SUMS` in the format of `sha256sum --check`.
fn sums(out: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let mut text = String::new();
    for file in files {
        let digest = HEXLOWER.encode(&Sha256::digest(fs::read(file)?));
        let name = file.file_name().and_then(|name| name.to_str());
        text += &format!("{digest}  {}\n", name.context("a name of ours")?);
    }
    fs::write(out.join("SHA256SUMS"), text)?;
    Ok(())
}
