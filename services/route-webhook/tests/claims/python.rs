//! The webhook in Python: built once, and started on a free port.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use test_client::Process;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python")
}

/// Creates its environment with the commands of its README.
pub(crate) fn build() -> Result<(), String> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    BUILT.get_or_init(run_readme).clone()
}

fn run_readme() -> Result<(), String> {
    if Command::new("python3").arg("--version").output().is_err() {
        return Err("python3 is not installed".to_owned());
    }
    let readme = include_str!("../../python/README.md");
    let lines = readme
        .lines()
        .filter(|line| line.starts_with("python3 -m venv") || line.starts_with("build/bin/pip"));
    for line in lines {
        let mut words = line.split(' ');
        let program = words.next().unwrap();
        // A program in the folder is found there, not here.
        let program = match program.strip_prefix("build/") {
            Some(_) => folder().join(program),
            None => program.into(),
        };
        let output = Command::new(program)
            .args(words)
            .current_dir(folder())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {said}");
    }
    Ok(())
}

/// Starts the webhook after it is built.
pub(crate) fn start(format: &str) -> Process {
    let mut command = Command::new(folder().join("build/bin/python"));
    command
        .arg("main.py")
        .current_dir(folder())
        .env("HOST", "127.0.0.1")
        .env("PORT", "0")
        .env("WEBHOOK_COMPAT", format);
    Process::start(&mut command)
}
