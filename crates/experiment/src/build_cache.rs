//! Preparation of systems before their start: programs, builds and versions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Setup, Text};
use model::InvalidKind;
use rig::{BuildError, BuildSpec, Rig, Status};

use crate::command_text::render_all;
use crate::compose::Projects;
use crate::containers;
use crate::environment::{instant, search_path};
use crate::invalid::Invalid;
use crate::invalid::invalid_spawn;
use crate::invalid::last_words;
use crate::stop::StopSignal;

/// The exit code of shells for a command that does not exist.
const NOT_THERE: i32 = 127;

/// Time limit of a version command. Runtimes start within seconds, even on a busy machine.
const VERSION_WITHIN: Duration = Duration::from_secs(60);

/// Returns a reason if a variant needs a program that this machine lacks.
pub fn missing_program(setups: &[Setup]) -> Option<Invalid> {
    let path = search_path();
    setups.iter().find_map(|setup| {
        let missing = setup
            .needs
            .iter()
            .find(|program| rig::find_program(program, &setup.folder, &path).is_none())?;
        // Debian installs some programs into folders that are only in root's PATH.
        let aside = rig::find_program(missing, &setup.folder, OsStr::new("/usr/sbin:/sbin"));
        let is_missing = match aside {
            Some(found) => format!("`{}` is not in any folder of PATH", found.display()),
            None => format!("`{missing}` is not installed"),
        };
        Some(Invalid::new(
            InvalidKind::ProgramMissing,
            format!("{is_missing}, but `{}` needs it", setup.system),
        ))
    })
}

/// Builds and versions that several variants share. Each is done once.
#[derive(Default)]
pub struct BuildCache {
    /// The results of builds: the time, or the failure.
    built: BTreeMap<Vec<String>, Result<Duration, Invalid>>,
    versions: BTreeMap<Vec<String>, Result<Option<String>, Invalid>>,
    /// The results for images: the digest, or the reason why the image is missing.
    images: BTreeMap<String, Result<String, Invalid>>,
}

impl BuildCache {
    /// The log of the build that [`BuildCache::build`] would run now. `None` if it has no work.
    pub(crate) fn will_build(&self, setup: &Setup, logs: &Path) -> Option<PathBuf> {
        if let Some(container) = setup.container()
            && !self.images.contains_key(&containers::key(container))
            && containers::is_to_be_made(container)
        {
            return Some(image_log(setup, logs));
        }
        setup.build.iter().find_map(|command| {
            let spec = step(setup, command, logs, "build").ok()?;
            (!self.built.contains_key(&key_of(&spec))).then_some(spec.log)
        })
    }

    /// Builds one system. A command that has run before is skipped.
    pub fn build(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        logs: &Path,
        stop: &StopSignal,
    ) -> Result<Option<Duration>, Invalid> {
        let mut took = None;
        for command in &setup.build {
            let spec = step(setup, command, logs, "build")?;
            if let Some(step) = self.once(rig, &spec, key_of(&spec), stop)? {
                took = Some(took.unwrap_or(Duration::ZERO) + step);
            }
        }
        let of_image = self.image(setup, logs, stop)?;
        Ok(of_image.map_or(took, |more| Some(took.unwrap_or(Duration::ZERO) + more)))
    }

    /// Pulls or builds the image of a container. Returns the time if work was needed.
    fn image(
        &mut self,
        setup: &Setup,
        logs: &Path,
        stop: &StopSignal,
    ) -> Result<Option<Duration>, Invalid> {
        let Some(container) = setup.container() else {
            return Ok(None);
        };
        let key = containers::key(container);
        if let Some(earlier) = self.images.get(&key) {
            earlier.clone()?;
            return Ok(None);
        }
        let start = instant();
        let outcome = containers::image(container, &image_log(setup, logs), stop);
        let digest = outcome.map(|image| image.digest().to_owned());
        self.images.insert(key, digest.clone());
        digest?;
        Ok(Some(start.elapsed()))
    }

    /// Builds the images of a project. Images that were built before are skipped.
    pub fn images(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        projects: &Projects,
        logs: &Path,
        stop: &StopSignal,
    ) -> Result<Option<Duration>, Invalid> {
        let Some(compose) = setup.compose() else {
            return Ok(None);
        };
        let Some((spec, key)) = projects.build(&setup.system, compose, logs)? else {
            return Ok(None);
        };
        self.once(rig, &spec, key, stop)
    }

    /// Runs a step of a build, unless it has run before.
    fn once(
        &mut self,
        rig: &mut Rig,
        spec: &BuildSpec,
        key: Vec<String>,
        stop: &StopSignal,
    ) -> Result<Option<Duration>, Invalid> {
        if let Some(earlier) = self.built.get(&key) {
            earlier.clone()?;
            return Ok(None);
        }
        let start = instant();
        let outcome = rig
            .build(spec, stop.flag())
            .map(|()| start.elapsed())
            .map_err(invalid_build);
        // Failures are stored too. The build would fail in the same way for the next variant, and take as
        // long.
        self.built.insert(key, outcome.clone());
        outcome.map(Some)
    }

    /// The first line of the version command's output. `None` without such a command, or if it fails, because
    /// an unknown version must not be invented.
    ///
    /// # Errors
    ///
    /// When the command does not end. A command that starts a server instead would block the lab forever.
    pub fn version(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        logs: &Path,
        stop: &StopSignal,
    ) -> Result<Option<String>, Invalid> {
        if let Some(container) = setup.container() {
            let image = self.images.get(&containers::key(container));
            return Ok(image.and_then(|image| image.clone().ok()));
        }
        let Some(command) = &setup.version else {
            return Ok(None);
        };
        let Ok(mut spec) = step(setup, command, logs, "version") else {
            return Ok(None);
        };
        let key = key_of(&spec);
        // Run once, because a version command may take seconds and the build does not change during a run.
        if let Some(known) = self.versions.get(&key) {
            return known.clone();
        }
        // A separate file, because its first line is the version.
        spec.log = logs.join(format!("version-{}.log", self.versions.len()));
        spec.within = Some(VERSION_WITHIN);
        let version = match rig.build(&spec, stop.flag()) {
            Ok(()) => Ok(first_line(&spec.log)),
            Err(error @ BuildError::TimedOut { .. }) => {
                let Invalid { kind, reason, .. } = invalid_build(error);
                let advice = "`version` must be a command that prints a version and ends. Remove the key if there is no such command";
                Err(Invalid::new(kind, format!("{reason}. {advice}")))
            }
            Err(_) => Ok(None),
        };
        self.versions.insert(key, version.clone());
        version
    }
}

/// The first line of a file. `None` if it is empty, because an empty line would look like a known version.
fn first_line(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn step(setup: &Setup, command: &[Text], logs: &Path, what: &str) -> Result<BuildSpec, Invalid> {
    let nowhere = |_: &str| None;
    let command = render_all(command, &nowhere).map_err(|reason| {
        Invalid::new(
            InvalidKind::BuildFailed,
            format!(
                "{reason}. No system runs yet when `{}` is built",
                setup.system
            ),
        )
    })?;
    // Variables that contain addresses are for the running system only, and so are variables that the lab marks.
    let env = setup
        .env
        .iter()
        .filter(|(name, _)| !setup.env_of_run.contains(name))
        .filter_map(|(name, value)| Some((name.clone(), value.render(&nowhere).ok()?)))
        .collect();
    Ok(BuildSpec {
        name: setup.system.clone(),
        command,
        folder: setup.folder.clone(),
        env,
        log: logs.join(format!("{what}-{}.log", setup.system)),
        within: None,
    })
}

fn image_log(setup: &Setup, logs: &Path) -> PathBuf {
    logs.join(format!("image-{}.log", setup.system))
}

fn key_of(spec: &BuildSpec) -> Vec<String> {
    // All inputs that determine a command's effect. The name of the system is not included, because systems
    // may share a build.
    let mut key = vec![spec.folder.display().to_string()];
    key.extend(
        spec.env
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    key.extend(spec.command.iter().cloned());
    key
}

fn invalid_build(error: BuildError) -> Invalid {
    match error {
        BuildError::Spawn(error) => invalid_spawn(&error),
        BuildError::Interrupted { .. } => Invalid::interrupted(),
        BuildError::TimedOut {
            name,
            command,
            within,
            log,
            last_lines,
        } => Invalid::new(
            InvalidKind::BuildFailed,
            format!(
                "`{command}` ({name}) did not end within {} s{}",
                within.as_secs(),
                last_words(&last_lines, &log)
            ),
        )
        .logged(&log),
        BuildError::Failed {
            status: Status::Code(NOT_THERE),
            last_lines,
            name,
            ..
        } => Invalid::new(InvalidKind::ProgramMissing, not_there(&name, &last_lines)),
        BuildError::Failed {
            name,
            command,
            status,
            log,
            last_lines,
            ..
        } => Invalid::new(
            InvalidKind::BuildFailed,
            format!(
                "`{command}` (building `{name}`) ended with {status}{}",
                last_words(&last_lines, &log)
            ),
        )
        .logged(&log),
    }
}

/// The last line of a build that needs a missing program.
fn not_there(name: &str, last_lines: &[String]) -> String {
    let words = last_lines.iter().rev().map(|line| line.trim());
    match words.into_iter().find(|line| !line.is_empty()) {
        Some(words) => words.to_owned(),
        None => format!("the build of `{name}` needs a program that is not installed"),
    }
}

#[cfg(test)]
mod tests {
    use crate::files::Unwritten;

    use super::*;

    /// The number of different builds of a lab with this environment.
    fn builds(env: &str) -> usize {
        let text = format!(
            "question: q\nload: {{rate: 1/s, duration: 1s}}\ntarget: server\nsystems:\n  server:\n    \
             settings: {{log: off}}\n    build: make server\n    run: serve {{{{addr}}}}\n    \
             env: {{LOG: {env}, MODE: fast}}\nbaseline: {{name: a}}\n\
             variants: [{{name: b, with: {{server.log: on}}}}]\n"
        );
        let path = Path::new("x.yaml");
        let lab = lab::parse(path, &Unwritten(vec![(path.to_owned(), text.into_bytes())])).unwrap();
        let keys = lab.all().map(|variant| {
            let setup = &variant.systems()[0];
            let spec = step(setup, &setup.build[0], Path::new("logs"), "build").unwrap();
            assert!(key_of(&spec).contains(&"MODE=fast".to_owned()));
            key_of(&spec)
        });
        keys.collect::<std::collections::BTreeSet<_>>().len()
    }

    #[test]
    fn a_variable_of_the_running_system_is_no_part_of_the_build() {
        // Any variable can change a build, so each value has its own.
        assert_eq!(builds("'{{log}}'"), 2);
        assert_eq!(builds("{run: '{{log}}'}"), 1);
        assert_eq!(builds("'{{addr}}{{log}}'"), 1);
    }
}
