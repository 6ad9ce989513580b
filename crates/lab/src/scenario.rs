//! Scenarios in files of their own: steps with think time and captured values.

use std::path::Path;

use serde::Deserialize;
use yaml_with_places::{Finding, Node, Value};

use crate::data;
use crate::experiment::Scenario;
use crate::places::Places;
use crate::reading::Reading;
use crate::requests::{self, Sent};
use crate::streams;
use crate::websockets;
use crate::wire::ScenarioFile;

/// Returns the scenario of a tree. `None` if a part of it is missing, which is reported.
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
    streams::check_usual(&requests, &file.expect, tree.place, reading);
    websockets::check_usual(&requests, &file.expect, expect.answer.status, reading);
    if expect.same_as_baseline {
        reading.findings.add(
            Finding::new(
                tree.place,
                "`same-as: baseline` needs a baseline, which a scenario file does not have",
            )
            .help("give `body: file` instead"),
        );
    }
    Some(Scenario {
        requests,
        steps,
        data,
        expect,
    })
}
