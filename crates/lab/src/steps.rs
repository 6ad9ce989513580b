//! The parts of a step other than its request: think time, and values captured from its response.

use std::time::Duration;

use model::{Capture, CaptureFrom, Step};
use yaml_with_places::{At, Finding, Place};

use crate::formats::{HeaderName, Name, Pattern, Pointer, Written};
use crate::reading::Reading;
use crate::wire::{CaptureFile, StepFile};

/// Returns the parts of a step other than its request.
pub(crate) fn step(name: String, file: &StepFile, reading: &mut Reading<'_>) -> Step {
    let mut captures = Vec::new();
    for (name, At { value, place }) in &file.capture.0 {
        let Name(text) = &name.value;
        if ["index", "name"].contains(&text.as_str()) {
            reading.findings.add(
                Finding::new(
                    name.place,
                    format!("a captured value cannot be named `{text}`"),
                )
                .help(format!(
                    "`{{{{{text}}}}}` has a fixed meaning. Choose another name"
                )),
            );
        }
        captures.extend(place_of(value, *place, reading).map(|from| {
            Capture {
                name: text.clone(),
                from,
                pattern: value
                    .regex
                    .as_ref()
                    .map(|Written(Pattern(regex))| regex.clone()),
            }
        }));
    }
    Step {
        name,
        pause: file.pause.map_or(Duration::ZERO, |Written(pause)| pause),
        captures,
    }
}

fn place_of(file: &CaptureFile, at: Place, reading: &mut Reading<'_>) -> Option<CaptureFrom> {
    match (&file.json, &file.header) {
        (Some(json), None) => {
            let Written(Pointer(pointer)) = &json.value;
            Some(CaptureFrom::Json(pointer.clone()))
        }
        (None, Some(header)) => {
            let Written(HeaderName(header)) = &header.value;
            Some(CaptureFrom::Header(header.clone()))
        }
        // A pattern alone is searched in the whole body.
        (None, None) if file.regex.is_some() => Some(CaptureFrom::Body),
        (None, None) => {
            reading.findings.add(
                Finding::new(at, "the captured value has no source")
                    .help("give `json: /data/id`, `header: Location` or `regex: 'id=([0-9]+)'`"),
            );
            None
        }
        (Some(json), Some(header)) => {
            reading.findings.add(
                Finding::new(header.place, "`json` and `header` exclude each other")
                    .related(json.place, "`json` is given here")
                    .help("a captured value has one source. Capture the other under another name"),
            );
            None
        }
    }
}

/// Adds the captures of a step to the known names.
pub(crate) fn add_names(file: &StepFile, names: &mut Vec<String>) {
    for (name, _) in &file.capture.0 {
        if !names.contains(&name.value.0) {
            names.push(name.value.0.clone());
        }
    }
}
