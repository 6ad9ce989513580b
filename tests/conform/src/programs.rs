//! Programs of this workspace that are started for a proof and ended after it.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use crate::http::Address;

/// A program that prints its listen address. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    pub(crate) address: Address,
    /// Kept open, because the program writes more than its address.
    _output: BufReader<ChildStdout>,
    /// Working directory, and the output other than the address.
    folder: TempDir,
}

impl Program {
    /// Starts the program in a folder with this file and waits for its address.
    pub(crate) fn start(
        name: &str,
        arguments: &[&str],
        file: (&str, &str),
    ) -> anyhow::Result<Program> {
        let path = built()?.join(name);
        let folder = TempDir::with_prefix("weighbridge-conform-")?;
        std::fs::write(folder.path().join(file.0), file.1)?;
        let mut child = Command::new(path)
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(folder.path().join("log"))?)
            .spawn()
            .with_context(|| format!("`{name}` does not start"))?;
        let mut line = String::new();
        let output = child.stdout.take().context("its output is a pipe")?;
        let mut output = BufReader::new(output);
        let read = output.read_line(&mut line);
        let mut program = Program {
            child,
            address: Address::Port(0),
            _output: output,
            folder,
        };
        let port = line
            .split_once("http://127.0.0.1:")
            .and_then(|(_, rest)| rest.trim_end().split('/').next()?.parse().ok());
        match (read, port) {
            (Ok(_), Some(port)) => program.address = Address::Port(port),
            _ => bail!("`{name}` says {line:?} and {}", program.log()),
        }
        Ok(program)
    }

    /// The current log of the program.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder with the gateway and its origin, built once with the profile of this program.
fn built() -> anyhow::Result<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}"))) {
        Ok(folder) => Ok(folder),
        Err(error) => bail!("{error}"),
    }
}

fn build() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    // The path is target/PROFILE/conform or target/PROFILE/deps/languages-…
    let folder = own.parent().context("a program lies in a folder")?;
    let profile = match folder.ends_with("deps") {
        true => folder.parent().context("target/PROFILE")?,
        false => folder,
    };
    let mut cargo = Command::new(env!("CARGO"));
    // Cargo sets these variables for this package's tests. They would make build scripts run again.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
        cargo.env_remove(variable);
    }
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("CARGO_PKG_") {
            cargo.env_remove(variable);
        }
    }
    cargo.args(["build", "--quiet", "--locked", "--workspace"]);
    cargo.args(["--bin", "gateway", "--bin", "planets"]);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo
        .arg("--target-dir")
        .arg(profile.parent().context("target")?)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .context("cargo starts")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("the gateway and its origin do not build: {said}");
    }
    Ok(profile.to_path_buf())
}
