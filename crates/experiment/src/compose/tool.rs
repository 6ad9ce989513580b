//! The compose program: `docker compose`, otherwise `docker-compose`.
//!
//! It reads the user's file and starts a project. The engine (`engine`) inspects and removes containers. It
//! works without this program too.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use model::InvalidKind;

use crate::environment::search_path;
use crate::invalid::Invalid;

/// The command words of compose on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool(Vec<&'static str>);

/// In order of preference. The plugin is newer.
const TOOLS: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];

impl Tool {
    /// The first program that works.
    ///
    /// # Errors
    ///
    /// A reason for a row, with the program to install.
    pub fn find() -> Result<Tool, Invalid> {
        let works = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg("version");
            // `docker` may be installed without the plugin.
            let output = command.stdin(Stdio::null()).output();
            output.is_ok_and(|output| output.status.success())
        };
        let is_there = |words: &&[&str]| {
            let found = rig::find_program(words[0], Path::new("."), &search_path());
            found.is_some() && works(words)
        };
        let found = TOOLS.into_iter().find(is_there);
        found.map(|words| Tool(words.to_vec())).ok_or_else(|| {
            Invalid::new(
                InvalidKind::ProgramMissing,
                "compose files need `docker compose` or `docker-compose`, but neither is installed. Install Docker's compose plugin, or Debian's package `docker-compose`",
            )
        })
    }

    /// The name of the program, such as `docker compose`.
    pub fn name(&self) -> String {
        self.0.join(" ")
    }

    /// The command line for a file and a project.
    pub fn command(&self, project: &str, file: &Path, rest: &[&str]) -> Vec<String> {
        let words = self.0.iter().map(|word| (*word).to_owned());
        let file = file.display().to_string();
        let own = ["-p", project, "-f", &file].map(str::to_owned);
        let rest = rest.iter().map(|word| (*word).to_owned());
        words.chain(own).chain(rest).collect()
    }

    /// The resolved file: anchors, `extends`, `${…}` and files of variables are replaced.
    ///
    /// # Errors
    ///
    /// The error message of the program.
    pub(super) fn config(
        &self,
        file: &Path,
        profiles: &[String],
        env: &[(String, String)],
    ) -> Result<String, String> {
        let words = self.command("weighbridge", file, &["config"]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        // One program reads `.env` from its working folder, the other from the folder of the file.
        command.current_dir(file.parent().unwrap_or(Path::new("/")));
        // The shell may have set these variables for another project.
        for name in OF_OTHERS {
            command.env_remove(name);
        }
        if !profiles.is_empty() {
            command.env(OF_OTHERS[0], profiles.join(","));
        }
        command.envs(env.iter().map(|(name, value)| (OsStr::new(name), value)));
        let output = command
            .output()
            .map_err(|error| cannot(&words[0], &error))?;
        if output.status.success() {
            return String::from_utf8(output.stdout)
                .map_err(|_| format!("the output of `{}` is not UTF-8 text", self.name()));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let (name, status) = (self.name(), output.status);
        Err(format!(
            "`{name} config` ended with {status}{}{}",
            first_words(&said),
            too_old(&said)
        ))
    }
}

/// The beginning of an error message. Compose ends long messages with a hint for other mistakes.
fn first_words(said: &str) -> String {
    let lines = said.lines().map(str::trim);
    let is_warning = |line: &&str| line.contains("level=warning") || line.starts_with("WARN");
    let words: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !is_warning(line))
        .take(2)
        .collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(": {}", words.join(" ")),
    }
}

/// The remedy for a file with `include`, which older programs do not accept. They name the key as unknown.
fn too_old(said: &str) -> &'static str {
    let is_unknown = [
        "'include' does not match",
        "top-level property \"include\"",
        "Additional property include",
    ];
    match is_unknown.iter().any(|words| said.contains(words)) {
        true => {
            ". `include` needs Compose 2.20 or newer. Install it, or copy the included services into the file"
        }
        false => "",
    }
}

/// Variables of compose that this program sets by flags instead.
pub(crate) const OF_OTHERS: [&str; 3] =
    ["COMPOSE_PROFILES", "COMPOSE_FILE", "COMPOSE_PROJECT_NAME"];

fn cannot(program: &str, error: &io::Error) -> String {
    format!("`{program}` cannot be started: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_long_message_comes_first() {
        let said = "WARN[0000] the variable is not set\n\nThe Compose file is invalid because:\n\
                    Invalid top-level property \"include\".\n\nFor more, see the documentation";
        assert_eq!(
            first_words(said),
            ": The Compose file is invalid because: Invalid top-level property \"include\"."
        );
        assert_eq!(first_words("\n"), "");
        assert!(too_old(said).contains("Compose 2.20"));
        let of_1_29 = "is invalid because:\n'include' does not match any of the regexes: '^x-'";
        assert!(too_old(of_1_29).contains("Compose 2.20"));
        assert_eq!(too_old("service \"include\" has no image"), "");
    }
}
