//! Images: looked up, fetched and built.

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

/// How often a fetch or a build looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// An image that the engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The digest of its configuration: `sha256:…`.
    pub id: String,
    /// The name with the digest by which its registry knows it; none for one that was built here.
    pub repository_digest: Option<String>,
    /// Whether it says how its health is checked.
    pub has_health_check: bool,
    /// Whether it says what runs in it.
    pub has_command: bool,
}

impl Image {
    /// The digest that tells it from all others: the registry's, or that of its configuration.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.repository_digest.as_deref().unwrap_or(&self.id)
    }
}

/// How an image is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuild {
    /// The name that it gets.
    pub image: String,
    /// The folder that is sent, without what its `.dockerignore` names.
    pub context: PathBuf,
    /// The Dockerfile, relative to the context.
    pub dockerfile: String,
    /// Values of its `ARG`s.
    pub args: Vec<(String, String)>,
}

impl Engine {
    /// The image of this name, or none where the engine does not have it.
    ///
    /// # Errors
    /// When the engine fails.
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

    /// Fetches an image from its registry. What the engine says on the way goes to `log`.
    ///
    /// # Errors
    /// What the engine or the registry says; or that `stop` was raised.
    pub fn pull(
        &self,
        name: &str,
        log: &mut dyn Write,
        stop: &AtomicBool,
    ) -> Result<(), ImageError> {
        // Without a tag the engine would fetch all of them.
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

    /// Builds an image. What the engine says on the way goes to `log`.
    ///
    /// # Errors
    /// What is wrong with the context, what the engine says; or that `stop` was raised.
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
            // What a build that is broken off leaves would be found by nothing.
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

    /// Writes down what is said until it ends; dropping the stream makes the engine give up.
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
                        // A log that cannot be written changes nothing about the image.
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
    let has_words = |words: Option<Vec<String>>| words.is_some_and(|words| !words.is_empty());
    Image {
        id: found.id.unwrap_or_default(),
        repository_digest: found
            .repo_digests
            .and_then(|digests| digests.into_iter().next()),
        has_health_check: health.is_some_and(|test| test.first().is_some_and(|it| it != "NONE")),
        has_command: has_words(config.cmd) || has_words(config.entrypoint),
    }
}

/// `a.example.com:5000/api:1` is `a.example.com:5000/api` and `1`; a digest is a tag to the engine.
fn repository_and_tag(name: &str) -> (&str, &str) {
    if let Some((repository, digest)) = name.split_once('@') {
        // A tag before a digest says nothing more.
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
