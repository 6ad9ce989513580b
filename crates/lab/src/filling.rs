//! Texts of a key with settings but without addresses.

use yaml_with_places::{At, Finding, Place};

use crate::fields::Table;
use crate::formats::{VariableName, Verbatim};
use crate::reading::Reading;
use crate::scope::{NoAddress, Scope};
use crate::template::Template;

/// Fills in the texts of one system.
pub(crate) struct Filling<'a> {
    system: &'a str,
    scope: &'a Scope<'a>,
    /// The words for a text that needs an address.
    address: &'static NoAddress,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(
        system: &'a str,
        scope: &'a Scope<'a>,
        address: &'static NoAddress,
    ) -> Filling<'a> {
        Filling {
            system,
            scope,
            address,
        }
    }

    /// Returns a text without addresses. `None` if it contains an address.
    pub(crate) fn text(
        &self,
        written: &At<Verbatim<Template>>,
        reading: &mut Reading<'_>,
    ) -> Option<String> {
        let scope = self.scope;
        scope.text_without_addresses(self.system, written, self.address, reading)
    }

    /// Like [`Filling::text`]. Also returns `None` for an empty text, which comes from a reported mistake.
    pub(crate) fn required(
        &self,
        written: Option<&At<Verbatim<Template>>>,
        reading: &mut Reading<'_>,
    ) -> Option<(Place, String)> {
        // A missing key was reported by the structural check.
        let written = written?;
        let text = self.text(written, reading)?.trim().to_owned();
        (!text.is_empty()).then_some((written.place, text))
    }

    /// Returns the texts of a list that are not empty.
    pub(crate) fn list(
        &self,
        written: &[At<Verbatim<Template>>],
        reading: &mut Reading<'_>,
    ) -> Vec<String> {
        let texts = written.iter().filter_map(|one| self.text(one, reading));
        texts.filter(|text| !text.trim().is_empty()).collect()
    }

    /// Returns names without duplicates. One setting may contain several, as `a, b`. `none` is no name.
    pub(crate) fn names(
        &self,
        written: &[At<Verbatim<Template>>],
        none: &str,
        reading: &mut Reading<'_>,
    ) -> Vec<(Place, String)> {
        let mut names: Vec<(Place, String)> = Vec::new();
        for one in written {
            let Some(text) = self.text(one, reading) else {
                continue;
            };
            for name in text.split(',').map(str::trim) {
                let is_known = names.iter().any(|(_, known)| known == name);
                if !name.is_empty() && name != none && !is_known {
                    names.push((one.place, name.to_owned()));
                }
            }
        }
        names
    }

    /// Returns variables with their values.
    pub(crate) fn variables(
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

    /// Returns a whole number. `None` for another text, which is reported.
    pub(crate) fn number(
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
                    "write a whole number from {least} to {most}, or a setting with such a value"
                )),
            );
        }
        found
    }
}
