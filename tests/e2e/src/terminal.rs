//! Runs programs on a real terminal, provided by `script`.

use std::process::{Command, Stdio};

/// The complete output of `weigh` with these arguments on a terminal of 100 columns, with its control
/// sequences, and its exit code.
///
/// # Panics
/// If `script` (util-linux) is missing.
#[must_use]
pub fn on_a_terminal(arguments: &[&str], folder: &std::path::Path) -> (String, Option<i32>) {
    on_a_terminal_of(100, arguments, folder)
}

/// Like [`on_a_terminal`], on a terminal with this number of columns.
///
/// # Panics
/// If `script` (util-linux) is missing.
#[must_use]
pub fn on_a_terminal_of(
    columns: u32,
    arguments: &[&str],
    folder: &std::path::Path,
) -> (String, Option<i32>) {
    let weigh = crate::weigh();
    let words = std::iter::once(weigh.display().to_string())
        .chain(arguments.iter().map(|word| (*word).to_owned()))
        .map(|word| format!("'{word}'"));
    let line = format!(
        "stty cols {columns} rows 40; {}",
        words.collect::<Vec<_>>().join(" ")
    );
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .env("XDG_STATE_HOME", "/nowhere")
        .env_remove("NO_COLOR")
        .env_remove("WEIGH_LOG")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.code())
}
