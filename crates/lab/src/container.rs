//! Systems that are containers: their keys within a variant.

use std::path::PathBuf;

use yaml_with_places::{At, Finding, Place};

use crate::experiment::{Container, ImageBuild, Network, Pull, Volume};
use crate::fields::TextOr;
use crate::formats::{Name, VariableName, Verbatim};
use crate::reading::Reading;
use crate::scope::{NoAddress, Scope};
use crate::systems::Systems;
use crate::template::Template;
use crate::text::Text;
use crate::wire::{ImageBuildFile, NetworkFile, PullFile, SystemFile};

/// Returns the container from the keys next to `image`, except the command. `None` if a key is wrong, which
/// is reported.
pub(crate) fn of(
    system: &str,
    file: &SystemFile,
    image_at: &At<Verbatim<Template>>,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Container> {
    let filling = Filling { system, scope };
    let image = filling.checked(image_at, is_image_name, &IMAGE, reading);
    let build = file.build.0.iter().find_map(|step| match &step.value {
        TextOr::Mapping(build) => Some(build.as_ref()),
        TextOr::Text(_) => None,
    });
    let build = build.map(|build| filling.build(build, reading));
    let user = file.user.as_ref();
    let user = user.map(|user| filling.checked(user, is_user, &USER, reading));
    let volumes = file.volumes.0.iter();
    // All volumes are read before the first mistake ends the function, so that all mistakes are reported.
    let volumes: Vec<Option<Volume>> = volumes.map(|it| filling.volume(it, reading)).collect();
    let network = filling.network(file, reading);
    Some(Container {
        image: image?,
        build: match build {
            Some(build) => Some(build?),
            None => None,
        },
        command: Vec::new(),
        volumes: volumes.into_iter().collect::<Option<_>>()?,
        network: network?,
        user: match user {
            Some(user) => Some(user?),
            None => None,
        },
        pull: match file.pull.as_ref().map(|pull| pull.value) {
            Some(PullFile::Missing) | None => Pull::Missing,
            Some(PullFile::Always) => Pull::Always,
            Some(PullFile::Never) => Pull::Never,
        },
    })
}

/// Reports addresses that a container cannot use. These are Unix sockets of this machine, and within a
/// network of containers the addresses of systems that only listen on this machine.
pub(crate) fn check_told<'a>(
    name: &At<Name>,
    file: &SystemFile,
    told: impl Iterator<Item = &'a Text>,
    systems: &Systems<'_>,
    reading: &mut Reading<'_>,
) {
    let Name(own) = &name.value;
    let place = file.image.as_ref().map_or(name.place, |image| image.place);
    let mut unreachable: Vec<&str> = Vec::new();
    let mut has_socket = false;
    for text in told {
        has_socket |= text.has_socket();
        if is_bridged(file) {
            let others = text.systems().filter(|other| other != own);
            unreachable.extend(others.filter(|other| !is_seen_by_containers(systems, other)));
        }
    }
    if has_socket {
        reading.findings.add(
            Finding::new(place, format!("the container `{own}` uses the address of a Unix socket"))
                .help("containers cannot see the Unix sockets of systems. Use `{{addr}}`, `{{port}}` or `{{url}}`"),
        );
    }
    unreachable.dedup();
    if let Some(other) = unreachable.first() {
        reading.findings.add(
            Finding::new(
                place,
                format!("`{own}` cannot reach `{other}` from its container network"),
            )
            .help(format!(
                "`{other}` listens at 127.0.0.1 of this machine. Give `{own}` `network: host` and no `port`, or make `{other}` a container with a `port`"
            )),
        );
    }
}

/// True if containers in their network can find a system.
fn is_seen_by_containers(systems: &Systems<'_>, system: &str) -> bool {
    let mut declared = systems.declared.iter();
    let found = declared.find(|(name, _)| name.value.0 == system);
    // An unknown system is reported at its name. A system that already runs has its own address, which may be
    // reachable or not.
    found.is_none_or(|(_, file)| file.url.is_some() || is_bridged(file) && file.replicas.is_none())
}

/// True if a system is in a network of containers.
fn is_bridged(file: &SystemFile) -> bool {
    match file.network.as_ref().map(|network| network.value) {
        Some(NetworkFile::Bridge) => true,
        Some(NetworkFile::Host) => false,
        None => file.image.is_some() && file.port.is_some(),
    }
}

/// The expected form of a text, for messages.
struct Wanted {
    what: &'static str,
    help: &'static str,
}

const IMAGE: Wanted = Wanted {
    what: "not the name of an image",
    help: "write it as for a container engine, for example `nginx:1.29` or `registry.example.com/api@sha256:…`",
};

const USER: Wanted = Wanted {
    what: "not a container user",
    help: "write `USER` or `USER:GROUP` with names or numbers",
};

fn is_image_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// True if the text may be the name or id of a container.
pub(crate) fn is_container_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

fn is_user(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let mut parts = text.splitn(2, ':');
    parts.all(|part| !part.is_empty() && part.chars().all(is_plain))
}

/// The message and the help for a text that needs an address.
const ADDRESS: NoAddress = NoAddress {
    mistake: "this text needs an address that is not known yet",
    help: "addresses are known only while systems run. Use them in `command` or `env`",
};

struct Filling<'a> {
    system: &'a str,
    scope: &'a Scope<'a>,
}

impl Filling<'_> {
    /// Returns a text without an address. `None` if it contains an address, or if it is empty because of a
    /// reported mistake.
    fn text(&self, written: &At<Verbatim<Template>>, reading: &mut Reading<'_>) -> Option<String> {
        let scope = self.scope;
        let text = scope.text_without_addresses(self.system, written, &ADDRESS, reading)?;
        (!text.is_empty()).then_some(text)
    }

    fn checked(
        &self,
        written: &At<Verbatim<Template>>,
        is_right: fn(&str) -> bool,
        wanted: &Wanted,
        reading: &mut Reading<'_>,
    ) -> Option<String> {
        let text = self.text(written, reading)?;
        if is_right(&text) {
            return Some(text);
        }
        reading.findings.add(
            Finding::new(written.place, format!("`{text}` is {}", wanted.what)).help(wanted.help),
        );
        None
    }

    fn build(&self, file: &ImageBuildFile, reading: &mut Reading<'_>) -> Option<ImageBuild> {
        let context = self.text(&file.context, reading);
        let dockerfile = match &file.dockerfile {
            Some(written) => self.text(written, reading),
            None => Some("Dockerfile".to_owned()),
        };
        let mut args = Vec::new();
        for (name, value) in &file.args.0 {
            let VariableName(name) = &name.value;
            args.push((name.clone(), self.text(value, reading)));
        }
        let args = args.into_iter();
        Some(ImageBuild {
            context: reading.resolve(&context?, file.context.place),
            dockerfile: dockerfile?,
            // An argument may be empty.
            args: args
                .map(|(name, value)| (name, value.unwrap_or_default()))
                .collect(),
        })
    }

    fn volume(
        &self,
        written: &At<Verbatim<Template>>,
        reading: &mut Reading<'_>,
    ) -> Option<Volume> {
        let text = self.text(written, reading)?;
        match volume(&text, |source| reading.resolve(source, written.place)) {
            Ok(volume) => Some(volume),
            Err(wrong) => {
                reading.findings.add(
                    Finding::new(written.place, format!("`{text}` is not a volume: {wrong}")).help(
                        "write `./folder:/path`, `./folder:/path:ro`, or `/path` for a volume that is empty at each start",
                    ),
                );
                None
            }
        }
    }

    fn network(&self, file: &SystemFile, reading: &mut Reading<'_>) -> Option<Network> {
        let Some(port_at) = &file.port else {
            return match &file.network {
                Some(network) if network.value == NetworkFile::Bridge => {
                    no_port(network.place, reading)
                }
                _ => Some(Network::Host),
            };
        };
        let text = self.text(port_at, reading)?;
        let port = text.trim().parse().ok().filter(|port: &u16| *port > 0);
        if port.is_none() {
            reading.findings.add(
                Finding::new(port_at.place, format!("`{text}` is not a port"))
                    .help("write a whole number from 1 to 65535"),
            );
        }
        if let Some(network) = file.network.as_ref().filter(|_| !is_bridged(file)) {
            reading.findings.add(
                Finding::new(port_at.place, "`port` cannot be used with `network: host`")
                    .related(network.place, "this selects the network of this machine")
                    .help("several containers cannot share a port on this machine. Pass `{{port}}` in `command` or `env`, or remove `network`"),
            );
            return None;
        }
        Some(Network::Bridge { port: port? })
    }
}

fn no_port(network_at: Place, reading: &mut Reading<'_>) -> Option<Network> {
    reading.findings.add(
        Finding::new(network_at, "`network: bridge` without `port`")
            .help("write the port on which it listens in the container: `port: 8080`"),
    );
    None
}

/// Reads `SOURCE:PATH`, `SOURCE:PATH:ro` or `PATH`.
fn volume(text: &str, resolve: impl Fn(&str) -> PathBuf) -> Result<Volume, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, path, is_read_only) = match parts.as_slice() {
        [path] => (None, *path, false),
        [source, path] | [source, path, "rw"] => (Some(*source), *path, false),
        [source, path, "ro"] => (Some(*source), *path, true),
        [_, _, mode] => return Err(format!("expected `ro` or `rw`, found `{mode}`")),
        _ => return Err("it has more than two colons".to_owned()),
    };
    let is_inside = path.starts_with('/') && path.len() > 1;
    if !is_inside || path.split('/').any(|part| part == "..") {
        return Err(format!("`{path}` is not an absolute path in a container"));
    }
    let path = path.to_owned();
    match source {
        None => Ok(Volume::Fresh { path }),
        Some(source) if source.starts_with(['.', '/']) => Ok(Volume::Shown {
            source: resolve(source),
            path,
            is_read_only,
        }),
        Some(source) => Err(format!(
            "the named volume `{source}` would keep its content between starts, so rounds would differ"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_a_folder_that_is_shown_or_an_empty_one() {
        let read = |text: &str| volume(text, |source| PathBuf::from("/lab").join(source));
        let shown = |source: &str, is_read_only| Volume::Shown {
            source: source.into(),
            path: "/data".to_owned(),
            is_read_only,
        };
        assert_eq!(read("/srv:/data"), Ok(shown("/srv", false)));
        assert_eq!(read("./x:/data:ro"), Ok(shown("/lab/./x", true)));
        let fresh = Volume::Fresh {
            path: "/data".to_owned(),
        };
        assert_eq!(read("/data"), Ok(fresh));
        for (text, reason) in [
            ("store:/data", "keep its content between starts"),
            ("./x:data", "`data` is not an absolute path"),
            ("./x:/", "`/` is not an absolute path"),
            ("./x:/a/../b", "is not an absolute path"),
            ("./x:/data:z", "expected `ro` or `rw`, found `z`"),
            ("a:b:c:d", "more than two colons"),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.contains(reason), "{text}: {wrong}");
        }
    }

    #[test]
    fn names_of_images_and_users_are_those_of_engines() {
        for image in ["nginx", "a.example.com:5000/api:1.2", "api@sha256:0af"] {
            assert!(is_image_name(image), "{image}");
        }
        for other in ["", "-v", "a b", "a;b", "{{x}}"] {
            assert!(!is_image_name(other), "{other}");
        }
        assert!(is_user("1000:1000") && is_user("www-data"));
        assert!(!is_user("a:b:c") && !is_user(":1") && !is_user("a b"));
    }
}
