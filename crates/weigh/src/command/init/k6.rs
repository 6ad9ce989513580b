//! Requests and thresholds of a k6 script. The script runs in a sandbox without a network (`k6_script`).

mod call_parts;
mod lab_calls;
mod places;
mod script_files;
mod shares;
mod targets;
mod texts;
mod thresholds;
mod wires;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k6_script::{FileSource, ScriptPlace, ScriptRecording, TIME_MAX, record};

use super::requests::Requests;
use lab_calls::LabCalls;
use script_files::FolderFiles;

/// The choices of the user for a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choices<'a> {
    /// Values of `__ENV`.
    pub(super) environment: &'a [(String, String)],
    /// The server that the lab loads.
    pub(super) host: Option<&'a str>,
    /// The folder that the script may read.
    pub(super) root: Option<&'a Path>,
}

/// Runs the script, and returns its requests.
///
/// # Errors
/// The mistake in the script, for the user.
pub(super) fn read(path: &Path, source: &str, choices: Choices<'_>) -> Result<Requests, String> {
    let entry = path.canonicalize().map_err(|error| error.to_string())?;
    let root = match choices.root {
        Some(root) => root
            .canonicalize()
            .map_err(|error| format!("--root: {error}"))?,
        None => script_files::root(&entry, std::env::current_dir().ok().as_deref()),
    };
    let files: Arc<dyn FileSource> = Arc::new(FolderFiles { root });
    recorded(&entry, source, &files, choices)
}

/// Runs the script with these files, and returns its requests.
fn recorded(
    entry: &Path,
    source: &str,
    files: &Arc<dyn FileSource>,
    choices: Choices<'_>,
) -> Result<Requests, String> {
    let environment: BTreeMap<String, String> = choices.environment.iter().cloned().collect();
    let recording =
        record(entry, files, &environment, TIME_MAX).map_err(|error| error.to_string())?;
    let has_calls = recording.scenarios.iter().any(|it| !it.calls.is_empty());
    if !has_calls && recording.unreached.is_empty() {
        let end = recording
            .notes
            .iter()
            .find(|note| note.text.contains("ends with an error"));
        return Err(match end {
            Some(note) => format!("{}{}", begin(note.place.as_ref()), note.text),
            None => no_call(&recording),
        });
    }
    let mut requests = Requests::of(source);
    let lab_calls = LabCalls::of(&recording, choices.host)?;
    lab_calls.add(&mut requests);
    add_options(&recording, &mut requests);
    add_notes(&recording, &mut requests);
    Ok(requests)
}

/// The refusal of a script without requests, with the first module that `weigh` does not have.
fn no_call(recording: &ScriptRecording) -> String {
    let mut why =
        "expected a script that calls `k6/http`, WebSocket, gRPC or `k6/x/sse`, found no call"
            .to_owned();
    if let Some(left) = recording.modules.first() {
        why += &format!(
            ". It imports `{}` in {}: {}",
            left.module, left.place, left.why
        );
    }
    why
}

/// Adds the thresholds as gates, and lists the options that belong to the lab.
fn add_options(recording: &ScriptRecording, requests: &mut Requests) {
    let Some(options) = recording.options.as_object() else {
        return;
    };
    for (name, value) in options {
        match name.as_str() {
            "thresholds" => thresholds::add(value, requests),
            "scenarios" => {
                for (name, _) in value.as_object().into_iter().flatten() {
                    requests.leave_out(
                        &format!("options.scenarios.{name}"),
                        "its times and its number of users are for the lab to say",
                    );
                }
            }
            _ => requests.leave_out(&format!("options.{name}"), "it is for the lab to say"),
        }
    }
}

/// Lists the parts of the script that the lab does not have, and the assumptions of the recording.
fn add_notes(recording: &ScriptRecording, requests: &mut Requests) {
    for module in &recording.modules {
        let what = format!("{} `{}`", module.place, module.module);
        requests.leave_out(&what, module.why);
    }
    for name in &recording.absent {
        requests.leave_out(name, "the script exports no such function");
    }
    for note in &recording.unreached {
        let line = note.place.as_ref().filter(|place| place.is_entry);
        let file = note.place.as_ref().filter(|place| !place.is_entry);
        let callee = note.text.trim_end_matches(" is not reached");
        let what = file.map_or(callee.to_owned(), |place| format!("{place} {callee}"));
        requests.leave_out_request(line.and_then(line_of), &what, "it is not reached");
    }
    for note in &recording.notes {
        match note.text.split_once(" is left out: ") {
            Some((what, why)) => {
                requests.leave_out(&format!("{}{what}", begin(note.place.as_ref())), why)
            }
            None => requests.remark(&format!("{}{}.", begin(note.place.as_ref()), note.text)),
        }
    }
    if !recording.unset.is_empty() {
        let names = recording.unset.iter().map(|name| format!("__ENV.{name}"));
        requests.remark(&format!(
            "Without a value: {}. Give it with `--env NAME=VALUE`.",
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    if recording.functions.iter().any(|name| name == "teardown") {
        requests.leave_out("teardown", "what it sends is not part of the load");
    }
    // The steps of a scenario and the messages of a conversation have the pauses.
    if recording.has_pauses && !requests.is_scenario() && !requests.is_websocket() {
        requests.leave_out("sleep", "the load decides when requests are sent");
    }
    if recording.has_checks {
        let why = match (requests.is_websocket(), requests.is_scenario()) {
            (true, _) => {
                "the lab checks no message. Write `stream: {events: 50, each: json}` into a request"
            }
            (_, true) => {
                "the steps check the status only. Write `expect` of a step for a body that is always the same"
            }
            _ => "an answer is right when it is that of the baseline",
        };
        requests.leave_out("check", why);
    }
}

/// The place at the begin of a sentence.
fn begin(place: Option<&ScriptPlace>) -> String {
    place.map(|place| format!("{place}: ")).unwrap_or_default()
}

/// The line of a place, for the list of omissions.
fn line_of(place: &ScriptPlace) -> Option<usize> {
    usize::try_from(place.line).ok()
}

/// A pair of a flag: `NAME=VALUE`.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("expected NAME=VALUE, found `{text}`")),
    }
}

/// The path of a folder of the user.
pub(super) fn folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.is_dir() {
        true => Ok(path),
        false => Err(format!("`{text}` is no folder")),
    }
}

#[cfg(test)]
mod tests;
