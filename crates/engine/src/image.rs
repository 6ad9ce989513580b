//! Operations on images: inspect, fetch and build.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::body_try_stream;
use bollard::models::{BuildInfo, CreateImageInfo, ImageInspect};
use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use futures_util::{Stream, StreamExt as _};

use crate::error::{ImageError, status, words};
use crate::{Engine, MANAGED_BY, WEIGHBRIDGE, context};

/// Interval at which a fetch or a build polls its stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// An image that the engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The digest of its configuration: `sha256:…`.
    pub id: String,
    /// The name with the digest that its registry uses. `None` for an image that was built here.
    pub repository_digest: Option<String>,
    /// True if the image defines a health check.
    pub has_health_check: bool,
    /// True if the image defines a command.
    pub has_command: bool,
    /// The TCP ports that the image exposes.
    pub ports: Vec<u16>,
}

impl Image {
    /// The digest that identifies the image: the registry's, or the digest of its configuration.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.repository_digest.as_deref().unwrap_or(&self.id)
    }
}

/// Description of an image build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuild {
    /// Name of the new image.
    pub image: String,
    /// The folder that is sent, without the files that its `.dockerignore` lists.
    pub context: PathBuf,
    /// Path of the Dockerfile, relative to the context.
    pub dockerfile: String,
    /// Names and values of its `ARG`s.
    pub args: Vec<(String, String)>,
}

impl Engine {
    /// Returns the image of this name, or `None` if the engine does not have it.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn image(&self, name: &str) -> Result<Option<Image>, ImageError> {
        match self.runtime.block_on(self.docker.inspect_image(name)) {
            Ok(found) => Ok(Some(described(found))),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(ImageError::Other {
                image: name.to_owned(),
                reason: words(&error),
            }),
        }
    }

    /// Fetches an image from its registry. The engine's progress messages go to `log`.
    ///
    /// # Errors
    /// The error of the engine or the registry, or that `stop` was raised.
    pub fn pull(
        &self,
        name: &str,
        log: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Result<(), ImageError> {
        // Without a tag the engine would fetch all tags.
        let (repository, tag) = repository_and_tag(name);
        let options = CreateImageOptionsBuilder::new();
        let options = options.from_image(repository).tag(tag).build();
        let steps = self.docker.create_image(Some(options), None, None);
        let said = |step: &CreateImageInfo| {
            let wrong = step.error_detail.as_ref();
            let wrong = wrong.and_then(|detail| detail.message.clone());
            (step.status.clone().map(|line| line + "\n"), wrong)
        };
        match self.follow(steps, said, log, stop) {
            Followed::Ended => Ok(()),
            Followed::Interrupted => Err(ImageError::Interrupted {
                image: name.to_owned(),
            }),
            Followed::Failed(reason) => Err(ImageError::NotPulled {
                image: name.to_owned(),
                reason,
            }),
        }
    }

    /// Builds an image. The engine's progress messages go to `log`.
    ///
    /// # Errors
    /// An error in the context, the error of the engine, or that `stop` was raised.
    pub fn build(
        &self,
        build: &ImageBuild,
        log: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Result<(), ImageError> {
        let failed = |reason: String| ImageError::NotBuilt {
            image: build.image.clone(),
            reason,
        };
        if !build.context.join(&build.dockerfile).is_file() {
            let reason = format!(
                "there is no `{}` in `{}`",
                build.dockerfile,
                build.context.display()
            );
            return Err(failed(reason));
        }
        let packed = context::pack(&build.context, &build.dockerfile);
        let body = body_try_stream(context::chunks(packed.map_err(failed)?));
        let args: HashMap<&str, &str> = build
            .args
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let options = BuildImageOptionsBuilder::new()
            .t(&build.image)
            .dockerfile(&build.dockerfile)
            .buildargs(&args)
            .labels(&HashMap::from([(MANAGED_BY, WEIGHBRIDGE)]))
            // No later cleanup would find the containers of an interrupted build.
            .rm(true)
            .forcerm(true)
            .build();
        let steps = self.docker.build_image(options, None, Some(body));
        let said = |step: &BuildInfo| {
            let wrong = step.error_detail.as_ref();
            let wrong = wrong.and_then(|detail| detail.message.clone());
            (step.stream.clone(), wrong)
        };
        match self.follow(steps, said, log, stop) {
            Followed::Ended => Ok(()),
            Followed::Interrupted => Err(ImageError::Interrupted {
                image: build.image.clone(),
            }),
            Followed::Failed(reason) => Err(failed(reason)),
        }
    }

    /// Logs the messages of a stream until it ends. Dropping the stream makes the engine cancel the work.
    fn follow<T>(
        &self,
        steps: impl Stream<Item = Result<T, bollard::errors::Error>>,
        said: impl Fn(&T) -> (Option<String>, Option<String>),
        log: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Followed {
        self.runtime.block_on(async {
            let mut steps = std::pin::pin!(steps);
            loop {
                if stop.load(Ordering::Relaxed) {
                    return Followed::Interrupted;
                }
                let Ok(step) = tokio::time::timeout(LOOK, steps.next()).await else {
                    continue;
                };
                match step {
                    None => return Followed::Ended,
                    Some(Err(error)) => return Followed::Failed(words(&error)),
                    Some(Ok(step)) => {
                        let (line, wrong) = said(&step);
                        let line = line.unwrap_or_default();
                        // The image does not depend on its log, so an unwritable log is ignored.
                        let _unwritten = log.write_all(line.as_bytes());
                        if let Some(wrong) = wrong {
                            let _unwritten = writeln!(log, "{wrong}");
                            return Followed::Failed(one_line(&wrong));
                        }
                    }
                }
            }
        })
    }
}

enum Followed {
    Ended,
    Interrupted,
    Failed(String),
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn described(found: ImageInspect) -> Image {
    let config = found.config.unwrap_or_default();
    let health = config.healthcheck.and_then(|check| check.test);
    let ports = config.exposed_ports.into_iter().flatten();
    let ports = ports.filter_map(|port| port.strip_suffix("/tcp")?.parse().ok());
    let has_words = |words: Option<Vec<String>>| words.is_some_and(|words| !words.is_empty());
    Image {
        id: found.id.unwrap_or_default(),
        repository_digest: found
            .repo_digests
            .and_then(|digests| digests.into_iter().next()),
        has_health_check: health.is_some_and(|test| test.first().is_some_and(|it| it != "NONE")),
        has_command: has_words(config.cmd) || has_words(config.entrypoint),
        ports: ports.collect(),
    }
}

/// Splits `a.example.com:5000/api:1` into `a.example.com:5000/api` and `1`. The engine accepts a digest as a
/// tag.
fn repository_and_tag(name: &str) -> (&str, &str) {
    if let Some((repository, digest)) = name.split_once('@') {
        // A tag before a digest has no effect.
        return (repository_and_tag(repository).0, digest);
    }
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[last..].rfind(':') {
        Some(colon) => (&name[..last + colon], &name[last + colon + 1..]),
        None => (name, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_a_registry_is_no_tag() {
        for (name, expected) in [
            ("nginx", ("nginx", "latest")),
            ("nginx:1.29", ("nginx", "1.29")),
            (
                "a.example.com:5000/api",
                ("a.example.com:5000/api", "latest"),
            ),
            ("a.example.com:5000/api:1", ("a.example.com:5000/api", "1")),
            ("api:1@sha256:0a", ("api", "sha256:0a")),
        ] {
            assert_eq!(repository_and_tag(name), expected, "{name}");
        }
    }
}
