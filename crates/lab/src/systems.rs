//! Systems as a lab declares them: names, settings, and the checks that need no variant.

use std::collections::BTreeMap;

use yaml_with_places::{At, Finding, Node, Place, Value, did_you_mean};

use crate::compose_keys;
use crate::config_file_names;
use crate::container_keys;
use crate::experiment::System;
use crate::fields::Table;
use crate::formats::{Name, SettingPath, Written};
use crate::manifests_keys;
use crate::reading::Reading;
use crate::template::{FILE, RESERVED, Template};
use crate::url_keys;
use crate::variants::Draft;
use crate::wire::{ReadyFile, Settings, SystemFile};

/// The highest number of a core: the size of Linux's default mask.
const CORES: u32 = 1024;

/// Keys for the origin of a system. Each system has one of them.
const ORIGINS: [&str; 5] = ["run", "image", "compose", "manifests", "url"];

/// The systems of a lab, as declared.
pub(crate) struct Systems<'a> {
    pub(crate) declared: &'a [(At<Name>, SystemFile)],
    pub(crate) settings: &'a Settings,
    /// The whole lab as a tree. Values with mistakes still have their keys in it.
    pub(crate) tree: &'a Node,
}

impl<'a> Systems<'a> {
    /// True if a system is declared, even with mistakes.
    pub(crate) fn has(&self, system: &str) -> bool {
        self.names().any(|name| name == system)
    }

    /// Iterates over the names of all systems.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + Clone {
        keys(self.tree.get("systems"))
    }

    /// Iterates over the names of a system's settings, or of the lab-wide settings.
    pub(crate) fn setting_names(
        &self,
        system: Option<&str>,
    ) -> impl Iterator<Item = &'a str> + Clone {
        keys(match system {
            Some(system) => self
                .tree_of(system)
                .and_then(|system| system.get("settings")),
            None => self.tree.get("settings"),
        })
    }

    /// True if, side by side, one process of a system serves all variants.
    pub(crate) fn is_shared(&self, system: &str) -> bool {
        let mut declared = self.declared.iter();
        let found = declared.find(|(name, _)| name.value.0 == system);
        found.is_some_and(|(_, file)| file.shared.as_ref().is_some_and(|shared| shared.value))
    }

    /// Returns the value of a setting before a variant changes it.
    pub(crate) fn usual_value(&self, path: &SettingPath) -> Option<&'a Template> {
        let settings = match &path.system {
            None => self.settings,
            Some(system) => {
                let mut declared = self.declared.iter();
                let (_, file) = declared.find(|(name, _)| name.value.0 == *system)?;
                &file.settings
            }
        };
        let mut settings = settings.0.iter();
        let (_, found) = settings.find(|(name, _)| name.value.0 == path.setting)?;
        Some(&found.value.0)
    }

    fn tree_of(&self, system: &str) -> Option<&'a Node> {
        self.tree.get("systems")?.get(system)
    }

    /// True if a variable of a system was wrong. Its meaning is then unknown.
    pub(crate) fn has_wrong_env(&self, system: &str) -> bool {
        let env = self.tree_of(system).and_then(|system| system.get("env"));
        let is_wrong = |node: &Node| node.value == Value::Reported;
        env.is_some_and(|env| is_wrong(env) || env.entries().iter().any(|it| is_wrong(&it.node)))
    }

    /// Returns the systems of the checked lab.
    pub(crate) fn domain(&self) -> Vec<System> {
        self.declared
            .iter()
            .map(|(name, file)| System {
                name: name.value.0.clone(),
                settings: values(&file.settings),
            })
            .collect()
    }

    /// Checks everything about systems that does not depend on variants.
    pub(crate) fn check(&self, target: Option<&At<Written<Name>>>, reading: &mut Reading<'_>) {
        self.check_target(target, reading);
        check_reserved(self.settings, reading);
        for (name, file) in self.declared {
            check_reserved(&file.settings, reading);
            config_file_names::check(file, reading);
            if name.value.0 == FILE {
                reading.findings.add(
                    Finding::new(name.place, format!("a system cannot be named `{FILE}`")).help(
                        "`{{file.NAME}}` is the path of a configuration file. Choose another name",
                    ),
                );
            }
            for other in &file.after.0 {
                self.check_known(&other.value.0.0, other.place, reading);
            }
            let tree = self.tree_of(&name.value.0);
            // Read from the tree, because a wrong command is not a missing command.
            let has_none =
                tree.is_some_and(|tree| ORIGINS.iter().all(|origin| tree.entry(origin).is_none()));
            if has_none && !reading.has_gaps {
                reading.findings.add(
                    Finding::new(
                        name.place,
                        format!("the system `{}` has no `run`", name.value.0),
                    )
                    .help("give the command that runs it, the `image` of its container, the `compose` file of its services, its `manifests`, or the `url` at which it already runs"),
                );
            }
            if let Some(tree) = tree {
                url_keys::check_keys(tree, reading);
                container_keys::check_keys(tree, reading);
                compose_keys::check_keys(tree, reading);
                manifests_keys::check_keys(tree, reading);
            }
            container_keys::check(file, reading);
            check_ready(file, reading);
            for core in file.pin.iter().flat_map(|pin| &pin.value.0) {
                if core.value >= CORES {
                    reading.findings.add(
                        Finding::new(core.place, format!("there is no core {}", core.value))
                            .help("cores are numbered from 0"),
                    );
                }
            }
        }
    }

    /// Reports a system that does not exist.
    pub(crate) fn check_known(&self, name: &str, place: Place, reading: &mut Reading<'_>) {
        if self.has(name) || reading.has_gaps {
            return;
        }
        reading.findings.add(
            Finding::new(place, format!("there is no system `{name}`")).help(
                did_you_mean(name, self.names())
                    .unwrap_or_else(|| list("the systems are", self.names())),
            ),
        );
    }

    /// Reports a target that does not exist.
    pub(crate) fn check_target(
        &self,
        target: Option<&At<Written<Name>>>,
        reading: &mut Reading<'_>,
    ) {
        if let Some(target) = target {
            self.check_known(&target.value.0.0, target.place, reading);
        }
    }

    /// Reports a variant's own target that does not exist.
    pub(crate) fn check_own_target(&self, variant: &Draft<'_>, reading: &mut Reading<'_>) {
        let Some(At { place, value }) = &variant.target else {
            return;
        };
        if value.contains("{{") {
            let message = format!("`{value}` has a template that a target cannot have");
            let help = "a target can contain `{{name}}` and the factors of its `for`";
            let finding = Finding::new(*place, message).help(help);
            reading.findings.add(finding);
        } else {
            self.check_known(value, *place, reading);
        }
    }

    /// Reports settings of a variant that do not exist.
    pub(crate) fn check_with(&self, variant: &Draft<'_>, reading: &mut Reading<'_>) {
        self.check_paths(variant.with.iter().map(|(path, _)| path), reading);
    }

    /// Reports settings that do not exist.
    pub(crate) fn check_paths<'p>(
        &self,
        paths: impl Iterator<Item = &'p At<SettingPath>>,
        reading: &mut Reading<'_>,
    ) {
        if reading.has_gaps {
            return;
        }
        for path in paths {
            let (system, setting) = (path.value.system.as_deref(), &path.value.setting);
            if let Some(system) = system.filter(|system| !self.has(system)) {
                self.check_known(system, path.place, reading);
            } else if !self.setting_names(system).any(|known| known == setting) {
                let finding = self.unknown_setting(system, setting, path.place);
                reading.findings.add(finding);
            }
        }
    }

    fn unknown_setting(&self, system: Option<&str>, setting: &str, place: Place) -> Finding {
        let known = self.setting_names(system);
        // The right name of another system is a likelier mistake than an undeclared setting.
        let elsewhere = self
            .names()
            .find(|other| {
                self.setting_names(Some(other))
                    .any(|known| known == setting)
            })
            .map(|other| format!("did you mean `{other}.{setting}`?"));
        let whose = system.map_or("the lab".to_owned(), |system| format!("`{system}`"));
        let declare = if known.clone().next().is_none() {
            format!("{whose} has no settings. Declare it with its usual value under `settings`")
        } else {
            let known = list("has the settings", known.clone());
            format!("{whose} {known}. Declare a setting with its usual value under `settings`")
        };
        Finding::new(place, format!("{whose} has no setting `{setting}`")).help(
            did_you_mean(setting, known)
                .or(elsewhere)
                .unwrap_or(declare),
        )
    }
}

/// Returns the values of settings as text.
pub(crate) fn values(settings: &Settings) -> BTreeMap<String, String> {
    let Table(rows) = settings;
    rows.iter()
        .map(|(name, value)| (name.value.0.clone(), value.value.0.to_string()))
        .collect()
}

fn keys(node: Option<&Node>) -> impl Iterator<Item = &str> + Clone {
    node.into_iter()
        .flat_map(Node::entries)
        .map(|entry| entry.key.as_str())
}

/// Returns a text such as `the systems are a, b`.
pub(crate) fn list<'a>(what: &str, words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    format!("{what} {}", words.join(", "))
}

/// Reports keys of `ready` that cannot be used together.
fn check_ready(file: &SystemFile, reading: &mut Reading<'_>) {
    let Some(At {
        value: ReadyFile::Mapping(probe),
        ..
    }) = &file.ready
    else {
        return;
    };
    if let (None, Some(status)) = (&probe.path, &probe.status) {
        reading.findings.add(
            Finding::new(status.place, "`status` without `path`")
                .help("give the path that must answer"),
        );
    }
    if let (Some(_), Some(state)) = (&probe.path, &probe.state) {
        reading.findings.add(
            Finding::new(state.place, "`state` cannot be used with `path`")
                .help("a path that answers is the stronger proof. Remove one of the two"),
        );
    }
}

fn check_reserved(settings: &Settings, reading: &mut Reading<'_>) {
    for (name, _) in &settings.0 {
        let word = name.value.0.as_str();
        if RESERVED.contains(&word) {
            reading.findings.add(
                Finding::new(name.place, format!("a setting cannot be named `{word}`")).help(
                    format!("`{{{{{word}}}}}` has a fixed meaning. Choose another name"),
                ),
            );
        }
    }
}
