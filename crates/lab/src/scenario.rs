//! Scenarios: steps with think time and captured values, in a lab or in a file of their own.

use std::path::Path;
use std::time::Duration;

use model::{Capture, CaptureFrom, Step};
use serde::Deserialize;
use yaml_with_places::{At, Finding, Node, Place, Value};

use crate::data;
use crate::experiment::Scenario;
use crate::formats::{HeaderName, Name, Pattern, Pointer, Written};
use crate::include::Reading;
use crate::places::Places;
use crate::requests::{self, Sent};
use crate::wire::{CaptureFile, ScenarioFile, StepFile};

/// What a step adds to its request.
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
                .help(format!("`{{{{{text}}}}}` has a meaning of its own")),
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
        // A pattern alone is looked for in the whole body.
        (None, None) if file.regex.is_some() => Some(CaptureFrom::Body),
        (None, None) => {
            reading.findings.add(
                Finding::new(at, "nothing says where the value stands")
                    .help("give `json: /data/id`, `header: Location` or `regex: 'id=([0-9]+)'`"),
            );
            None
        }
        (Some(json), Some(header)) => {
            reading.findings.add(
                Finding::new(header.place, "`json` and `header` exclude each other")
                    .related(json.place, "`json` is given here")
                    .help("a value stands in one place; give the other a name of its own"),
            );
            None
        }
    }
}

/// Adds the names that a step captures to those that are known.
pub(crate) fn add_names(file: &StepFile, names: &mut Vec<String>) {
    for (name, _) in &file.capture.0 {
        if !names.contains(&name.value.0) {
            names.push(name.value.0.clone());
        }
    }
}

/// The scenario that a tree means, or `None` when a part of it is missing; that is reported.
pub(crate) fn of_file(path: &Path, reading: &mut Reading<'_>) -> Option<Scenario> {
    let tree: Node = reading.scenario(path)?;
    if tree.value == Value::Reported {
        return None;
    }
    let file = match ScenarioFile::deserialize(&tree) {
        Ok(file) => file,
        Err(error) => {
            let message = format!("a defect of weigh: {error}");
            reading.findings.add(Finding::new(tree.place, message));
            return None;
        }
    };
    let data = file.data.as_ref().map(|data| data::check(data, reading));
    let steps = file.steps.as_deref()?;
    let sent = Sent::of_steps(steps, &file.headers).with_data(data.as_ref());
    let (requests, steps) = sent.check(tree.place, reading);
    let known = Places {
        scope: None,
        data: None,
        captured: &[],
    };
    let expect = requests::expect(&file.expect, known, reading);
    if expect.same_as_baseline {
        reading.findings.add(
            Finding::new(tree.place, "`same-as: baseline` without a baseline")
                .help("only a lab has one; give `body: file` instead"),
        );
    }
    Some(Scenario {
        requests,
        steps,
        data,
        expect,
    })
}
