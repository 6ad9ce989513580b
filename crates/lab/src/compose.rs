//! Services of a compose file: what a variant makes of the keys.
//!
//! What is in the compose file is not known here; that a service exists is found out when the file is
//! read, before anything is started.

use yaml_with_places::{At, Finding, Place};

use crate::experiment::{Compose, ServiceChange};
use crate::fields::Table;
use crate::formats::{Format, ServiceName, VariableName, Verbatim};
use crate::reading::Reading;
use crate::scope::Scope;
use crate::template::Template;
use crate::wire::{ComposeFile, ServiceFile};

/// Most containers of one service: more than a machine has use for is a slip.
const REPLICAS_MAX: u32 = 64;

/// In place of the name of a service to leave out: so that a setting can say that all run.
const NONE: &str = "none";

/// What a variant makes of `compose`; `None` where that is wrong, which is reported.
pub(crate) fn of(
    (system, file): (&str, &ComposeFile),
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Compose> {
    let filling = Filling { system, scope };
    let path = filling.required(file.file.as_ref(), reading);
    let service = filling.required(file.service.as_ref(), reading);
    let port = match &file.port {
        Some(port) => filling.number(port, 1..=u32::from(u16::MAX), "a port", reading),
        None => None,
    };
    let profiles = filling.list(&file.profiles.0, reading);
    let env = filling.variables(&file.env, reading);
    let without = filling.without(&file.without.0, reading);
    let services = filling.services(&file.services, &without, reading);
    // All parts first, so that the mistakes of each are reported in one run.
    let (file_at, path) = path?;
    let (service_at, service) = service?;
    if without.contains(&service) {
        reading.findings.add(
            Finding::new(
                service_at,
                format!("`{service}` gets the load and is left out"),
            )
            .help("name the service that gets the load instead, with a setting that variants change: `service: \"{{load}}\"`"),
        );
        return None;
    }
    Some(Compose {
        file: reading.resolve(&path, file_at),
        service,
        port: port.and_then(|port| u16::try_from(port).ok()),
        profiles,
        env,
        without,
        services,
    })
}

/// What is said of a text that needs an address.
const ADDRESS: (&str, &str) = (
    "containers cannot reach this address",
    "services reach each other by their names, in a network of their own; make the other system a service of the compose file",
);

struct Filling<'a> {
    system: &'a str,
    scope: &'a Scope<'a>,
}

impl Filling<'_> {
    /// A text without addresses; `None` where it holds one.
    fn text(&self, written: &At<Verbatim<Template>>, reading: &mut Reading<'_>) -> Option<String> {
        let scope = self.scope;
        scope.text_without_addresses(self.system, written, ADDRESS, reading)
    }

    /// As [`Filling::text`]; `None` also for an empty one, as what was wrong before is.
    fn required(
        &self,
        written: Option<&At<Verbatim<Template>>>,
        reading: &mut Reading<'_>,
    ) -> Option<(Place, String)> {
        // A key that is missing was reported against the schema.
        let written = written?;
        let text = self.text(written, reading)?.trim().to_owned();
        (!text.is_empty()).then_some((written.place, text))
    }

    fn list(&self, written: &[At<Verbatim<Template>>], reading: &mut Reading<'_>) -> Vec<String> {
        let texts = written.iter().filter_map(|one| self.text(one, reading));
        texts.filter(|text| !text.trim().is_empty()).collect()
    }

    fn variables(
        &self,
        written: &Table<VariableName, At<Verbatim<Template>>>,
        reading: &mut Reading<'_>,
    ) -> Vec<(String, String)> {
        let variables = written.0.iter().filter_map(|(name, value)| {
            let VariableName(name) = &name.value;
            Some((name.clone(), self.text(value, reading)?))
        });
        variables.collect()
    }

    /// Services to leave out. One setting may name several, as `a, b`.
    fn without(
        &self,
        written: &[At<Verbatim<Template>>],
        reading: &mut Reading<'_>,
    ) -> Vec<String> {
        let mut without: Vec<String> = Vec::new();
        for one in written {
            let Some(text) = self.text(one, reading) else {
                continue;
            };
            let names = text.split(',').map(str::trim);
            for name in names.filter(|name| !name.is_empty() && *name != NONE) {
                if let Err(wrong) = ServiceName::read(name) {
                    let finding = Finding::new(one.place, wrong.message).help_if(wrong.help);
                    reading.findings.add(finding);
                } else if !without.iter().any(|known| known == name) {
                    without.push(name.to_owned());
                }
            }
        }
        without
    }

    fn services(
        &self,
        written: &Table<ServiceName, ServiceFile>,
        without: &[String],
        reading: &mut Reading<'_>,
    ) -> Vec<ServiceChange> {
        let mut changes = Vec::new();
        for (name, file) in &written.0 {
            let ServiceName(service) = &name.value;
            let env = self.variables(&file.env, reading);
            let image = file.image.as_ref().and_then(|it| self.text(it, reading));
            let replicas = file.replicas.as_ref();
            let replicas = replicas.and_then(|it| {
                self.number(it, 1..=REPLICAS_MAX, "a number of containers", reading)
            });
            // A variant may leave out what others change.
            if !without.contains(service) {
                changes.push(ServiceChange {
                    service: service.clone(),
                    env,
                    // An empty setting is the file's own image.
                    image: image.filter(|image| !image.trim().is_empty()),
                    replicas,
                });
            }
        }
        changes
    }

    fn number(
        &self,
        written: &At<Verbatim<Template>>,
        range: std::ops::RangeInclusive<u32>,
        what: &str,
        reading: &mut Reading<'_>,
    ) -> Option<u32> {
        let text = self.text(written, reading)?;
        let number = text.trim().parse().ok();
        let found = number.filter(|number| range.contains(number));
        if found.is_none() {
            let (least, most) = (range.start(), range.end());
            reading.findings.add(
                Finding::new(written.place, format!("`{text}` is not {what}")).help(format!(
                    "write a whole number from {least} to {most}, or a setting that holds one"
                )),
            );
        }
        found
    }
}
