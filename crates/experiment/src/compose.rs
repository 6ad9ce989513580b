//! Systems that are services of a compose file: reading the file, and writing the file that is started
//! instead.
//!
//! `weigh` reads a file once per run, so that all rounds use the same content. It writes a new file for each
//! start, because each start is a separate project.

mod document;
mod tool;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use lab::{Compose, Lab, Setup, Variant};
use model::InvalidKind;
use rig::{BuildSpec, Rig};
use serde_json::Value;

use document::{DocumentInputs, read, written};
pub(crate) use document::{Entrance, Labels, Planned, Written};
pub(crate) use tool::OF_OTHERS;
pub use tool::Tool;

use crate::containers;
use crate::exit::Failure;
use crate::invalid::Invalid;
use crate::secrets;

/// The compose files of a lab, as resolved by compose.
#[derive(Debug, Default)]
pub struct Projects {
    read: Vec<(Source, Result<Resolved, Invalid>)>,
    /// The folder of the files that are started. They contain credentials. `None` before [`Projects::kept`],
    /// and without any project.
    folder: Option<PathBuf>,
    /// Number of started projects.
    started: AtomicU32,
}

/// A compose file, as resolved by compose.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    tool: Tool,
    document: Value,
}

/// The inputs that determine the resolved file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    file: PathBuf,
    profiles: Vec<String>,
    env: Vec<(String, String)>,
}

impl Source {
    fn of(compose: &Compose) -> Source {
        Source {
            file: compose.file.clone(),
            profiles: compose.profiles.clone(),
            env: compose.env.clone(),
        }
    }
}

impl Projects {
    /// Reads every compose file of a lab. A mistake in a file appears in the rows of the variants that need
    /// it.
    pub fn of(lab: &Lab) -> Projects {
        let setups = lab.all().flat_map(Variant::systems);
        let mut sources: Vec<Source> = Vec::new();
        for source in setups.filter_map(Setup::compose).map(Source::of) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        if sources.is_empty() {
            return Projects::default();
        }
        let tool = Tool::find();
        let read = sources.into_iter().map(|source| {
            let found = tool.clone().and_then(|tool| {
                Resolved::read(&tool, &source.file, &source.profiles, &source.env)
            });
            (source, found)
        });
        Projects {
            read: read.collect(),
            ..Projects::default()
        }
    }

    /// Creates the folder of the files that are started. It is removed at the end of the run, even after a
    /// crash.
    ///
    /// # Errors
    ///
    /// When it cannot be created, or the keeper has ended.
    pub fn kept(mut self, rig: &mut Rig) -> Result<Projects, Failure> {
        if self.read.is_empty() {
            return Ok(self);
        }
        // A name that is unique to the run, so that the keeper can register it before the folder exists.
        let folder = std::env::temp_dir().join(format!("{}-compose", rig.run()));
        rig.remove_at_end(&folder)
            .map_err(|error| Failure::bug(error.to_string()))?;
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|error| {
            Failure::not_ready(format!(
                "the folder for compose files, `{}`, cannot be created: {error}",
                folder.display()
            ))
        })?;
        self.folder = Some(folder);
        Ok(self)
    }

    /// The name of a new project of a run, in characters that every version of compose accepts.
    pub(crate) fn new_name(&self, run: &str) -> String {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{run}-{number}")
    }

    /// The file of a project with these labels.
    ///
    /// # Errors
    ///
    /// The mistake in the file, or the reason why its projects would not be separate.
    pub(crate) fn written(
        &self,
        system: &str,
        compose: &Compose,
        labels: &Labels,
    ) -> Result<(&Tool, Written), Invalid> {
        let source = Source::of(compose);
        let mut known = self.read.iter();
        let found = known.find(|(known, _)| *known == source);
        let (_, found) = found.expect("all compose files of the lab were read");
        let Resolved { tool, document } = found.as_ref().map_err(Clone::clone)?;
        let is_folder = |path: &str| fs::metadata(path).map_or(true, |it| it.is_dir());
        let inputs = DocumentInputs {
            compose,
            labels,
            is_folder: &is_folder,
            image_ports: &image_ports,
        };
        let written = written(document, inputs).map_err(|why| {
            let reason = format!("`{system}`, {}: {}", compose.file.display(), why.join("; "));
            Invalid::new(InvalidKind::NotReady, reason)
        })?;
        Ok((tool, written))
    }

    /// The command that builds the images of a project, and its inputs. `None` if no image is built.
    ///
    /// # Errors
    ///
    /// Like [`Projects::written`], or when the file cannot be written.
    pub fn build(
        &self,
        system: &str,
        compose: &Compose,
        logs: &Path,
    ) -> Result<Option<(BuildSpec, Vec<String>)>, Invalid> {
        let (tool, written) = self.written(system, compose, &Labels::new())?;
        let Some(build) = written.build else {
            return Ok(None);
        };
        let engine = containers::engine()?;
        let file = self.save(&format!("build-{system}"), &build)?;
        let spec = BuildSpec {
            name: system.to_owned(),
            command: tool.command("weighbridge", &file, &["build"]),
            folder: PathBuf::from("/"),
            // The engine that starts the images. Compose alone might not find it.
            env: vec![("DOCKER_HOST".to_owned(), engine.host().to_string())],
            log: logs.join(format!("build-{system}.log")),
            within: None,
        };
        Ok(Some((spec, vec![build.to_string()])))
    }

    /// Writes a file that only this user can read, because variables may contain credentials.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn save(&self, name: &str, file: &Value) -> Result<PathBuf, Invalid> {
        let folder = self.folder.as_ref();
        let folder = folder.expect("a lab with a project has the folder");
        let path = folder.join(format!("{name}.json"));
        write_private(&path, &format!("{file:#}\n")).map_err(|error| {
            let reason = format!("`{}` cannot be written: {error}", path.display());
            Invalid::new(InvalidKind::NotReady, reason)
        })?;
        Ok(path)
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

impl Resolved {
    /// Reads a file with compose.
    ///
    /// # Errors
    ///
    /// The file does not exist, or the error message of compose.
    pub fn read(
        tool: &Tool,
        file: &Path,
        profiles: &[String],
        env: &[(String, String)],
    ) -> Result<Resolved, Invalid> {
        let shown = file.display();
        let wrong = |why: String| Invalid::new(InvalidKind::NotReady, format!("`{shown}`: {why}"));
        if !file.is_file() {
            return Err(wrong("the compose file does not exist".to_owned()));
        }
        // Compose runs in another folder.
        let path = std::path::absolute(file).map_err(|error| wrong(error.to_string()))?;
        let text = tool.config(&path, profiles, env).map_err(wrong)?;
        Ok(Resolved {
            tool: tool.clone(),
            document: read(&text).map_err(wrong)?,
        })
    }

    /// The services without a profile, and those of the profiles, by name.
    pub fn services(&self, profiles: &[String]) -> Vec<(String, Value)> {
        let all = self.document["services"].as_object();
        let all = all.into_iter().flatten();
        let is_active = |service: &Value| match service.get("profiles").and_then(Value::as_array) {
            None => true,
            Some(own) => own
                .iter()
                .any(|it| profiles.iter().any(|name| *it == name.as_str())),
        };
        let own = all.filter(|(_, service)| is_active(service));
        own.map(|(name, service)| (name.clone(), service.clone()))
            .collect()
    }
}

/// The ports that an image exposes, if the engine has the image already.
fn image_ports(image: &str) -> Vec<u16> {
    let found = containers::engine().map(|engine| engine.image(image));
    match found {
        Ok(Ok(Some(image))) => image.ports,
        _ => Vec::new(),
    }
}

/// A started file for display, with credentials in variables hidden.
pub fn shown(file: &Value) -> Value {
    let mut shown = file.clone();
    let services = shown["services"].as_object_mut();
    for (_, service) in services.into_iter().flatten() {
        let Some(Value::Object(env)) = service.get_mut("environment") else {
            continue;
        };
        for (name, value) in env {
            if let Value::String(text) = value {
                *text = secrets::named(name, text);
            }
        }
    }
    shown
}
