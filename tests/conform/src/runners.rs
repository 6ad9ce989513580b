//! The list of languages in `runners.yaml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use granit_parser::{Event, Parser};

/// A language of the list.
#[derive(Debug)]
pub struct Runner {
    /// Name of the folder of the coprocessor.
    pub name: String,
    /// Display name of the language.
    pub language: String,
    /// The command that prints the version of the language.
    pub version: String,
    /// Programs on PATH that it requires. Either program satisfies `a|b`.
    pub needs: Vec<String>,
    /// Commands that build the coprocessor.
    pub build: Vec<String>,
    /// The command that starts the server.
    pub run: String,
    /// Reason why it cannot listen on a Unix socket. `None` if it can.
    pub no_socket: Option<String>,
}

impl Runner {
    /// The first required program that is missing on this machine.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        let is_there = |program: &&String| {
            #[expect(clippy::disallowed_methods, reason = "the one place that reads PATH")]
            let path = std::env::var("PATH").unwrap_or_default();
            let is_found =
                |one: &str| std::env::split_paths(&path).any(|folder| folder.join(one).is_file());
            program.split('|').any(is_found)
        };
        self.needs
            .iter()
            .find(|program| !is_there(program))
            .map(String::as_str)
    }

    /// Runs its build commands.
    ///
    /// # Errors
    ///
    /// If a command cannot be started or fails. The error contains its output.
    pub fn build(&self) -> anyhow::Result<()> {
        for line in &self.build {
            let output = self
                .command(line)
                .output()
                .with_context(|| format!("`{line}` does not start"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let more = String::from_utf8_lossy(&output.stdout);
                bail!("`{line}` ended with {}: {said}{more}", output.status);
            }
        }
        Ok(())
    }

    /// A command that runs this line in the language's folder.
    #[must_use]
    pub fn command(&self, line: &str) -> Command {
        let folder = home().join(&self.name);
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        // A path is relative to the folder. A bare name is searched on PATH.
        let program = if program.contains('/') {
            folder.join(program)
        } else {
            PathBuf::from(program)
        };
        let mut command = Command::new(program);
        command.args(words).current_dir(folder);
        command
    }
}

/// The folder of the coprocessors.
pub(crate) fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services/coprocessors")
}

/// Every language of the list, in its order.
pub(crate) fn all() -> anyhow::Result<Vec<Runner>> {
    let text = std::fs::read_to_string(home().join("runners.yaml")).context("runners.yaml")?;
    parse(&text)
}

/// Parses two levels of mapping. The values are texts or lists of texts.
fn parse(text: &str) -> anyhow::Result<Vec<Runner>> {
    let mut runners = Vec::new();
    let mut depth = 0;
    let (mut name, mut key) = (String::new(), None);
    let mut is_list = false;
    let mut entry: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in Parser::new_from_str(text) {
        match event.context("runners.yaml")?.0 {
            Event::MappingStart(..) => depth += 1,
            Event::MappingEnd => {
                depth -= 1;
                if depth == 1 {
                    runners.push(runner(&name, std::mem::take(&mut entry))?);
                }
            }
            Event::SequenceStart(..) => is_list = true,
            Event::SequenceEnd => (is_list, key) = (false, None),
            Event::Scalar(text, ..) if depth == 1 => name = text.into_owned(),
            Event::Scalar(text, ..) => match (&key, is_list) {
                (None, _) => key = Some(text.into_owned()),
                (Some(of), true) => entry.entry(of.clone()).or_default().push(text.into_owned()),
                (Some(of), false) => {
                    entry.insert(of.clone(), vec![text.into_owned()]);
                    key = None;
                }
            },
            _ => {}
        }
    }
    Ok(runners)
}

fn runner(name: &str, mut entry: BTreeMap<String, Vec<String>>) -> anyhow::Result<Runner> {
    let mut texts = |key: &str| {
        entry
            .remove(key)
            .with_context(|| format!("runners.yaml: `{name}` has no `{key}`"))
    };
    let runner = Runner {
        name: name.to_owned(),
        language: texts("language")?.concat(),
        version: texts("version")?.concat(),
        needs: texts("needs")?,
        build: texts("build")?,
        run: texts("run")?.concat(),
        no_socket: texts("socket").ok().map(|why| why.concat()),
    };
    // The tidy test reads this key.
    texts("lock")?;
    if let Some(key) = entry.keys().next() {
        bail!("runners.yaml: `{name}` has the unknown key `{key}`");
    }
    Ok(runner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "go:\n  language: Go\n  version: go version\n  needs: [go, cc]\n  \
                         lock: go.sum\n  build: [go build .]\n  run: build/x --flag\n";

    #[test]
    fn an_entry_has_lists_and_texts() {
        let runners = parse(ENTRY).unwrap();
        assert_eq!(runners.len(), 1);
        assert_eq!(runners[0].needs, ["go", "cc"]);
        assert_eq!(runners[0].run, "build/x --flag");
        assert_eq!(runners[0].no_socket, None);
    }

    #[test]
    fn a_key_that_nobody_reads_is_refused() {
        let error = parse(&format!("{ENTRY}  soket: x\n")).unwrap_err();
        assert!(error.to_string().contains("`soket`"), "{error}");
    }

    #[test]
    fn a_language_whose_program_is_not_there_says_which() {
        let text = ENTRY.replace("cc", "no-such-program");
        let text = text.replace("[go,", "[sh,");
        assert_eq!(parse(&text).unwrap()[0].missing(), Some("no-such-program"));
        let either = text.replace("no-such-program", "no-such-program|sh");
        assert_eq!(parse(&either).unwrap()[0].missing(), None);
    }
}
