//! The container engine of this machine, and the objects of a run in it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use engine::{ConnectError, Engine, Host, Image, ImageBuild, ImageError};
use lab::{Container, Pull};
use model::InvalidKind;
use rig::Rig;
use rig::keeper::OwnerEnd;

use crate::environment;
use crate::invalid::Invalid;
use crate::stop::StopSignal;

/// The engine. It is searched once, because its presence does not change during a run.
///
/// # Errors
/// A reason for a row, with the searched places and the remedy.
pub fn engine() -> Result<&'static Engine, Invalid> {
    static ENGINE: OnceLock<Result<Engine, ConnectError>> = OnceLock::new();
    let found = ENGINE.get_or_init(|| {
        let host = Host::find(&environment::engines())?;
        let engine = Engine::connect(&host)?;
        tracing::debug!(%host, version = %engine.version(), "a container engine answers");
        Ok(engine)
    });
    found
        .as_ref()
        .map_err(|error| Invalid::new(InvalidKind::ProgramMissing, error.to_string()))
}

/// Registers a cleanup task with the keeper. It removes all objects of the run from the engine, even if this
/// program is killed. Must be called before the first object is created.
pub fn keep(rig: &mut Rig, engine: &Engine) -> Result<(), Invalid> {
    // The name of a run contains no space.
    let cleanup_task = format!("{} {}", rig.run(), engine.host().path());
    let kept = rig.run_at_end(&cleanup_task);
    kept.map_err(|error| Invalid::new(InvalidKind::NotReady, error.to_string()))
}

/// Runs the cleanup task of [`keep`]. `cleanup_task` contains its arguments.
///
/// # Errors
/// The objects that remain in the engine.
pub fn run_cleanup_task(cleanup_task: &str, owner: OwnerEnd) -> Result<(), String> {
    let (run, socket) = cleanup_task
        .split_once(' ')
        .ok_or_else(|| format!("expected a run and a socket, found `{cleanup_task}`"))?;
    let engine = Engine::connect(&Host::at(socket)).map_err(|error| error.to_string())?;
    let removed = match owner {
        OwnerEnd::Finished => engine.sweep(run),
        // If the owner was killed, its last requests may still create objects.
        OwnerEnd::Gone => engine.end_run(run),
    };
    removed.map(drop).map_err(|error| error.to_string())
}

/// True if an image must be pulled or built first.
pub(crate) fn is_to_be_made(container: &Container) -> bool {
    let is_there = || {
        let image = engine().map(|engine| engine.image(&container.image));
        matches!(image, Ok(Ok(Some(_))))
    };
    container.build.is_some() || container.pull == Pull::Always || !is_there()
}

/// The image ids of containers, by [`key`]. A name may lead to another image later, because two revisions of
/// a repository build images with one name.
static IMAGES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// All settings that determine the image of a container.
pub fn key(container: &Container) -> String {
    format!(
        "{} {:?} {:?}",
        container.image, container.pull, container.build
    )
}

/// The image that [`image`] has found for a container, in the form for the engine.
pub(crate) fn found_image(container: &Container) -> String {
    let images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = images.get(&key(container)).cloned();
    found.unwrap_or_else(|| container.image.clone())
}

/// Builds, pulls or looks up the image of a container. The engine's output goes to `log`.
pub fn image(container: &Container, log: &Path, stop: &StopSignal) -> Result<Image, Invalid> {
    let engine = engine()?;
    let made = match &container.build {
        Some(build) => {
            let build = ImageBuild {
                image: container.image.clone(),
                context: build.context.clone(),
                dockerfile: build.dockerfile.clone(),
                args: build.args.clone(),
            };
            with_log(log, |log| engine.build(&build, log, stop.flag()))
        }
        None => fetch(engine, container, log, stop),
    };
    let found = made.and_then(|()| engine.image(&container.image));
    let missing = || ImageError::Missing {
        image: container.image.clone(),
    };
    let found = found.and_then(|found| found.ok_or_else(missing));
    let found = found.map_err(invalid_image)?;
    let mut images = IMAGES.lock().unwrap_or_else(PoisonError::into_inner);
    images.insert(key(container), found.id.clone());
    Ok(found)
}

fn fetch(
    engine: &Engine,
    container: &Container,
    log: &Path,
    stop: &StopSignal,
) -> Result<(), ImageError> {
    let is_wanted = match container.pull {
        Pull::Always => true,
        Pull::Never => false,
        Pull::Missing => engine.image(&container.image)?.is_none(),
    };
    if !is_wanted {
        return Ok(());
    }
    with_log(log, |log| engine.pull(&container.image, log, stop.flag()))
}

/// The output is optional. If the file cannot be opened, it is lost.
fn with_log<T>(path: &Path, act: impl FnOnce(&mut dyn Write) -> T) -> T {
    match OpenOptions::new().create(true).append(true).open(path) {
        Ok(mut file) => act(&mut file),
        Err(_) => act(&mut std::io::sink()),
    }
}

fn invalid_image(error: ImageError) -> Invalid {
    let kind = match &error {
        ImageError::Interrupted { .. } => return Invalid::interrupted(),
        ImageError::NotBuilt { .. } => InvalidKind::BuildFailed,
        ImageError::Missing { .. } | ImageError::NotPulled { .. } | ImageError::Other { .. } => {
            InvalidKind::ProgramMissing
        }
    };
    Invalid::new(kind, error.to_string())
}
