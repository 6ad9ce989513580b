//! Fills in a template within a variant. Settings are replaced by their values, and addresses stay open.
//!
//! A name is looked up in the system's own settings, then in the lab-wide settings. The values are templates
//! themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use yaml_with_places::{At, Finding, Place, did_you_mean};

use crate::formats::Verbatim;
use crate::reading::Reading;
use crate::systems::{Systems, list};
use crate::template::{FILE, FILES, FOLDER, LAB, PROGRAM, Part, Reference, TARGET, Template};
use crate::text::{Form, Text};
use crate::variants::Draft;
use crate::wire::SystemFile;

mod scheme;

/// A setting: its system, or `None` for a lab-wide setting, and its name.
type Key<'a> = (Option<&'a str>, &'a str);

/// Words of a finding on a text with an address.
pub(crate) struct NoAddress {
    pub(crate) mistake: &'static str,
    pub(crate) help: &'static str,
}

/// The settings of one variant.
pub(crate) struct Scope<'a> {
    pub(crate) systems: &'a Systems<'a>,
    variant: &'a Draft<'a>,
    /// The system that receives the load of the variant.
    target: Option<&'a str>,
    values: BTreeMap<Key<'a>, (&'a Template, Place)>,
    /// Systems that are reached over TLS.
    encrypted: BTreeSet<&'a str>,
}

impl<'a> Scope<'a> {
    /// Builds the scope of a variant, and reports an invalid `scheme`.
    pub(crate) fn new(
        systems: &'a Systems<'a>,
        variant: &'a Draft<'a>,
        target: Option<&'a str>,
        reading: &mut Reading<'_>,
    ) -> Scope<'a> {
        let mut values = BTreeMap::new();
        let lab_wide = std::iter::once((None, systems.settings));
        let own = systems
            .declared
            .iter()
            .map(|(name, file)| (Some(name.value.0.as_str()), &file.settings));
        for (system, settings) in lab_wide.chain(own) {
            for (name, At { place, value }) in &settings.0 {
                let Verbatim(template) = value;
                values.insert((system, name.value.0.as_str()), (template, *place));
            }
        }
        // Last, so that the values of the variant replace the values of the lab.
        for (path, value) in &variant.with {
            let key = (path.value.system.as_deref(), path.value.setting.as_str());
            values.insert(key, (&value.value, value.place));
        }
        let mut scope = Scope {
            systems,
            variant,
            target,
            values,
            encrypted: BTreeSet::new(),
        };
        // This must come last. A scheme is a template itself, and cannot contain addresses, because they
        // depend on it.
        let declared = systems.declared.iter();
        let encrypted =
            declared.filter(|(name, file)| scheme::is_encrypted(name, file, &scope, reading));
        scope.encrypted = encrypted.map(|(name, _)| name.value.0.as_str()).collect();
        scope
    }

    /// True if the variant reaches a system over TLS.
    pub(crate) fn is_encrypted(&self, system: &str) -> bool {
        self.encrypted.contains(system)
    }

    /// Returns the system that receives the load of the variant.
    pub(crate) fn target(&self) -> Option<&'a str> {
        self.target
    }

    /// Returns the system of this name. Outside of systems, `target` is the system that receives the load.
    fn system_named(&self, name: &str, is_within_system: bool) -> Option<&'a str> {
        let declared = self.systems.names().find(|known| *known == name);
        declared.or_else(|| self.target.filter(|_| name == TARGET && !is_within_system))
    }

    /// Returns the text of a system's template.
    pub(crate) fn text(
        &self,
        system: &str,
        template: &Template,
        place: Place,
        reading: &mut Reading<'_>,
    ) -> Text {
        let mut filling = Filling {
            scope: self,
            trail: Vec::new(),
            also: &[],
            reading,
        };
        filling.text(Some(system), template, place)
    }

    /// Returns a text of a system without addresses. `None` if it contains an address, which is reported with
    /// these words.
    pub(crate) fn text_without_addresses(
        &self,
        system: &str,
        written: &At<Verbatim<Template>>,
        words: &NoAddress,
        reading: &mut Reading<'_>,
    ) -> Option<String> {
        let text = self.text(system, &written.value.0, written.place, reading);
        if text.systems().next().is_some() || text.has_instance() || text.has_file() {
            reading
                .findings
                .add(Finding::new(written.place, words.mistake).help(words.help));
            return None;
        }
        Some(text.to_string())
    }

    /// Returns the text of a template that belongs to no system. `also` are further names of the caller.
    pub(crate) fn lab_text(
        &self,
        template: &Template,
        place: Place,
        also: &[&str],
        reading: &mut Reading<'_>,
    ) -> Text {
        let mut filling = Filling {
            scope: self,
            trail: Vec::new(),
            also,
            reading,
        };
        filling.text(None, template, place)
    }

    /// Returns the settings of a system: its own, and the lab-wide settings that it does not hide.
    pub(crate) fn settings(
        &self,
        system: &str,
        reading: &mut Reading<'_>,
    ) -> BTreeMap<String, Text> {
        let mut filling = Filling {
            scope: self,
            trail: Vec::new(),
            also: &[],
            reading,
        };
        let mut settings = BTreeMap::new();
        // The system's own settings come last, because they hide lab-wide settings with the same name.
        for owner in [None, Some(system)] {
            for &(whose, name) in self.values.keys().filter(|(whose, _)| *whose == owner) {
                settings.insert(name.to_owned(), filling.setting((whose, name)));
            }
        }
        settings
    }
}

/// One walk through templates and their settings.
struct Filling<'s, 'a, 'r, 'f> {
    scope: &'s Scope<'a>,
    /// The settings being filled in, each referred to by the previous setting.
    trail: Vec<Key<'a>>,
    /// Further names at the place of the template, for the list of known names.
    also: &'r [&'r str],
    reading: &'r mut Reading<'f>,
}

impl<'a> Filling<'_, 'a, '_, '_> {
    fn text(&mut self, system: Option<&'a str>, template: &Template, place: Place) -> Text {
        let mut text = Text::default();
        for part in &template.parts {
            match part {
                Part::Plain(plain) => text.push_plain(plain),
                Part::Reference(reference) => {
                    self.reference(system, reference, place, &mut text);
                }
            }
        }
        text
    }

    fn reference(
        &mut self,
        system: Option<&'a str>,
        reference: &Reference,
        place: Place,
        text: &mut Text,
    ) {
        let word = reference.word.as_str();
        if reference.system.is_none() && word == "name" {
            return text.push_plain(&self.scope.variant.name);
        }
        // Only a running system has this value. A request or a proof has no instance.
        if reference.system.is_none() && word == "instance" && system.is_some() {
            return text.push_instance();
        }
        let file = match reference.system.as_deref() {
            Some(FILE) => Some(Some(word)),
            None if word == FILES => Some(None),
            _ => None,
        };
        if let (Some(system), Some(name)) = (system, file) {
            return self.file(
                system,
                name,
                self.reading.reference(place, reference.index),
                text,
            );
        }
        // `{{other.x}}` is only looked up in `other`.
        let owner = match &reference.system {
            Some(other) => self.scope.system_named(other, system.is_some()),
            None => system,
        };
        if let (Some(owner), Some(form)) = (owner, Form::of(word)) {
            let form = match form {
                Form::Url if self.scope.is_encrypted(owner) => Form::SecureUrl,
                form => form,
            };
            return text.push_address(owner, form);
        }
        let lab_wide = reference.system.is_none().then_some(None);
        let owners = owner.map(Some).into_iter().chain(lab_wide);
        for owner in owners {
            if let (None, Some(value)) = (owner, self.scope.variant.factor(word)) {
                // Factors are lab-wide words, and hide a setting of the same name.
                return text.push_plain(value);
            }
            let known = self
                .scope
                .values
                .keys()
                .find(|(whose, name)| *whose == owner && *name == word);
            if let Some(&key) = known {
                // A setting that is already being filled in refers to itself.
                if self.trail.contains(&key) {
                    return self.circle(key, self.reading.reference(place, reference.index));
                }
                return text.append(&self.setting(key));
            }
            if self
                .scope
                .systems
                .setting_names(owner)
                .any(|name| name == word)
            {
                // The value was wrong, which is reported.
                return;
            }
        }
        if let Some(path) = self.own_path(reference) {
            return text.push_path(&path, reference);
        }
        self.unknown(system, reference, place);
    }

    /// The path of the running program, or of the lab's folder. Names of the lab take precedence.
    fn own_path(&self, reference: &Reference) -> Option<PathBuf> {
        match (reference.system.as_deref(), reference.word.as_str()) {
            (None, PROGRAM) => Some(self.reading.files.program()),
            (Some(LAB), FOLDER) if !self.scope.systems.has(LAB) => {
                // The first source is the lab itself.
                let lab = self.reading.sources.first()?;
                let folder = lab.path.parent().unwrap_or(Path::new(""));
                Some(self.reading.files.absolute(folder))
            }
            _ => None,
        }
    }

    /// Adds the path of a configuration file, or of the folder of all files.
    fn file(&mut self, system: &str, name: Option<&str>, place: Place, text: &mut Text) {
        let mut declared = self.scope.systems.declared.iter();
        let Some((_, file)) = declared.find(|(declared, _)| declared.value.0 == system) else {
            return;
        };
        let mut names = file.files.0.iter().map(|(name, _)| name.value.0.as_str());
        let is_known = match name {
            Some(name) => names.any(|known| known == name),
            None => names.next().is_some(),
        };
        if is_known {
            text.push_file(system, name);
        } else if !self.reading.has_gaps {
            let finding = unknown_file(name, file, system, place);
            self.reading.findings.add(finding);
        }
    }

    fn setting(&mut self, key: Key<'a>) -> Text {
        let &(template, place) = self
            .scope
            .values
            .get(&key)
            .expect("keys are those of values");
        self.trail.push(key);
        let text = self.text(key.0, template, place);
        self.trail.pop();
        text
    }

    fn circle(&mut self, key: Key<'_>, place: Place) {
        let shown = |(system, name): &Key<'_>| match system {
            Some(system) => format!("`{system}.{name}`"),
            None => format!("`{name}`"),
        };
        // The trail may lead into the cycle from outside. Only its members are shown.
        let start = self.trail.iter().position(|it| *it == key);
        let start = start.expect("a circle ends at a setting that is being filled in");
        let circle = &self.trail[start..];
        // Every setting of a cycle leads into it. The first setting by name reports it.
        if circle.iter().min() != Some(&key) {
            return;
        }
        let mut circle: Vec<String> = circle.iter().map(shown).collect();
        circle.push(shown(&key));
        self.reading.findings.add(
            Finding::new(place, "these settings refer to each other in a circle")
                .help(circle.join(" needs ")),
        );
    }

    fn unknown(&mut self, system: Option<&str>, reference: &Reference, place: Place) {
        // A file that could not be read may declare it.
        if self.reading.has_gaps {
            return;
        }
        let systems = self.scope.systems;
        let other = reference.system.as_deref();
        let place = self.reading.reference(place, reference.index);
        if let Some(other) = other.filter(|other| !systems.has(other)) {
            let help = if other == LAB {
                "write `{{lab.folder}}` for the folder of the lab".to_owned()
            } else {
                did_you_mean(other, systems.names())
                    .unwrap_or_else(|| list("the systems are", systems.names()))
            };
            self.reading
                .findings
                .add(Finding::new(place, format!("there is no system `{other}`")).help(help));
            return;
        }
        let mut known: Vec<&str> = systems.setting_names(other.or(system)).collect();
        if other.is_none() {
            if system.is_some() {
                known.extend(systems.setting_names(None));
                known.extend(["instance", PROGRAM]);
            }
            known.push("name");
            known.extend(
                self.scope
                    .variant
                    .factors
                    .iter()
                    .map(|(name, _)| name.as_str()),
            );
            known.extend(self.also);
        }
        if other.or(system).is_some() {
            known.extend(Form::ALL.map(|(word, _)| word));
        }
        let help = did_you_mean(&reference.word, known.iter().copied())
            .unwrap_or_else(|| list("the names here are", known.iter().copied()));
        self.reading
            .findings
            .add(Finding::new(place, format!("`{reference}` is not defined here")).help(help));
    }
}

/// Returns the finding for `{{file.NAME}}` with an unknown name, or `{{files}}` without files.
fn unknown_file(name: Option<&str>, file: &SystemFile, system: &str, place: Place) -> Finding {
    let names = file.files.0.iter().map(|(name, _)| name.value.0.as_str());
    let Some(name) = name else {
        return Finding::new(place, format!("`{system}` has no `files`"))
            .help("add `files` to the system, or remove `{{files}}`");
    };
    let help = if names.clone().next().is_none() {
        format!("add `files: {{{name}: PATH}}` to the system")
    } else {
        did_you_mean(name, names.clone()).unwrap_or_else(|| list("its files are", names))
    };
    Finding::new(place, format!("`{system}` has no file `{name}`")).help(help)
}
