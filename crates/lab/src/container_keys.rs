//! Checks of container keys that need no variant.

use std::collections::{BTreeMap, BTreeSet};

use yaml_with_places::{At, Finding, Findings, Node};

use crate::experiment::{ImageBuild, Variant};
use crate::fields::TextOr;
use crate::formats::{Name, Written};
use crate::reading::Reading;
use crate::template::{Command, Template};
use crate::wire::{ReadyFile, ReadyState, SystemFile};

/// Keys that only have a meaning with `image`.
const OF_CONTAINERS: [&str; 6] = ["command", "port", "network", "volumes", "user", "pull"];

/// Programs with a `run` command that starts a container under another process.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Reports keys that do not go together, in the tree of one system.
pub(crate) fn check_keys(system: &Node, reading: &mut Reading<'_>) {
    let Some(image) = system.entry("image") else {
        for key in OF_CONTAINERS {
            if let Some(other) = system.entry(key) {
                reading.findings.add(
                    Finding::new(other.key_place, format!("`{key}` without `image`"))
                        .help("only a container has this key. Add `image`, or remove this key"),
                );
            }
        }
        return;
    };
    if let Some(run) = system.entry("run") {
        reading.findings.add(
            Finding::new(run.key_place, "`run` cannot be used with `image`")
                .related(image.key_place, "this key makes it a container")
                .help("a container runs its `command`. Remove `run` or `image`"),
        );
    }
    if let Some(version) = system.entry("version") {
        reading.findings.add(
            Finding::new(version.key_place, "`version` cannot be used with `image`")
                .help("the recording already contains the digest of its image. Remove this key"),
        );
    }
}

/// Reports values that do not go together.
pub(crate) fn check(file: &SystemFile, reading: &mut Reading<'_>) {
    check_build(file, reading);
    if let Some(run) = &file.run
        && let Some(engine) = engine_of(&run.value)
    {
        reading.findings.add(
            Finding::new(run.place, format!("`run` contains `{engine} run`")).help(format!(
                "`weigh` cannot limit, watch or stop a container that {engine} starts. Write `image: NAME` instead of `run`, with `command`, `env`, `port` and `volumes`"
            )),
        );
    }
    let state = match file.ready.as_ref() {
        Some(At {
            place,
            value: ReadyFile::Text(state),
        }) => Some((*place, *state)),
        Some(At {
            value: ReadyFile::Mapping(probe),
            ..
        }) => probe.state.as_ref().map(|state| (state.place, state.value)),
        None => None,
    };
    if let Some((place, ReadyState::Healthy)) = state
        && file.image.is_none()
    {
        reading.findings.add(
            Finding::new(place, "`healthy` without `image`")
                .help("only an image has a health check. Give a `path` that must answer"),
        );
    }
}

/// Checks that an image is built once, last, and only for a container.
fn check_build(file: &SystemFile, reading: &mut Reading<'_>) {
    let steps = file.build.0.iter().enumerate();
    for (index, step) in steps.filter(|(_, step)| matches!(step.value, TextOr::Mapping(_))) {
        if file.image.is_none() {
            reading.findings.add(
                Finding::new(
                    step.place,
                    "this step builds an image, but the system has no `image`",
                )
                .help("write the name of the image under `image`. A process is built by commands"),
            );
        } else if index + 1 < file.build.0.len() {
            reading.findings.add(
                Finding::new(
                    step.place,
                    "this step builds the image, but it is not the last step of `build`",
                )
                .help("`context` must come once, after the build commands"),
            );
        }
    }
}

/// Reports a name that several images would get. All of them would run the image that was built last.
pub(crate) fn check_names(
    declared: &[(At<Name>, SystemFile)],
    variants: &[Variant],
    findings: &mut Findings,
) {
    let mut builds: BTreeMap<&str, &Option<ImageBuild>> = BTreeMap::new();
    let mut reported = BTreeSet::new();
    for setup in variants.iter().flat_map(Variant::systems) {
        let Some(container) = setup.container() else {
            continue;
        };
        let first = *builds.entry(&container.image).or_insert(&container.build);
        if *first == container.build || !reported.insert(&container.image) {
            continue;
        }
        let mut all = declared.iter();
        let own = all.find(|(name, _)| name.value.0 == setup.system);
        if let Some(image) = own.and_then(|(_, file)| file.image.as_ref()) {
            findings.add(
                Finding::new(
                    image.place,
                    format!("several images are named `{}`", container.image),
                )
                .help("they are built in different ways. Give each image its own name, such as `api:{{setting}}`"),
            );
        }
    }
}

/// Returns the engine if the command would start a container with it.
fn engine_of(Written(Command(words)): &Written<Command>) -> Option<&'static str> {
    let words: Vec<String> = words.iter().map(Template::to_string).collect();
    // A shell receives its commands as one word.
    let mut parts = words.iter().flat_map(|word| word.split_whitespace());
    let engine = parts.find_map(|word| {
        let program = word.rsplit('/').next().unwrap_or(word);
        ENGINES.into_iter().find(|engine| *engine == program)
    })?;
    parts.any(|word| word == "run").then_some(engine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Format;

    #[test]
    fn a_container_that_another_program_starts_is_recognized() {
        let engine = |command: &str| engine_of(&Written(Command::read(command).unwrap()));
        assert_eq!(engine("docker run --rm nginx"), Some("docker"));
        assert_eq!(
            engine("sudo /usr/bin/podman run -p {{port}}:80 a"),
            Some("podman")
        );
        assert_eq!(
            engine("sh -c 'exec docker container run a'"),
            Some("docker")
        );
        assert_eq!(engine("docker-proxy run"), None);
        assert_eq!(engine("run/docker --listen {{addr}}"), None);
        assert_eq!(engine("./serve --engine docker"), None);
    }
}
