//! Configuration files of a system: their templates within a variant.

use std::path::{Path, PathBuf};

use yaml_with_places::{At, Finding, Place};

use crate::experiment::ConfigFile;
use crate::fields::TextOr;
use crate::formats::{FileName, Format as _, Verbatim};
use crate::reading::Reading;
use crate::scope::{NoAddress, Scope};
use crate::template::{FileMistake, Template};
use crate::text::Text;
use crate::wire::{ConfigFileSource, SystemFile};

/// Highest number of bytes of a template. The recording contains each template.
const BYTES_MAX: usize = 1 << 20;

/// Help for braces that belong to the program.
const OTHER_BRACES: &str =
    "write `{path: FILE, raw: true}` if the program itself reads the braces of this file";

/// Returns the configuration files of a system. Wrong files are reported and left out.
pub(crate) fn of(
    system: &str,
    file: &SystemFile,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Vec<ConfigFile> {
    let mut files = Vec::new();
    for (name, source) in &file.files.0 {
        let FileName(name) = &name.value;
        let Some(text) = text_of(system, source, scope, reading) else {
            continue;
        };
        files.push(ConfigFile {
            name: name.clone(),
            text,
        });
    }
    files
}

/// The text of one file, with its templates filled in.
fn text_of(
    system: &str,
    source: &At<TextOr<String, ConfigFileSource>>,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Text> {
    let (path, text, is_raw) = match &source.value {
        TextOr::Text(path) => (Some(path), None, false),
        TextOr::Mapping(mapping) => (mapping.path.as_ref(), mapping.text.as_ref(), mapping.raw),
    };
    match (path, text) {
        (Some(path), None) => {
            let path = path_of(system, path, source.place, scope, reading)?;
            of_path(system, &path, is_raw, source.place, scope, reading)
        }
        (None, Some(text)) => {
            let place = source.place;
            filled(system, text, is_raw, place, place, scope, reading)
        }
        _ => {
            reading.findings.add(
                Finding::new(source.place, "a file needs either `path` or `text`")
                    .help("write the path of a template, or `text: …` with its lines"),
            );
            None
        }
    }
}

/// The path of a template, with its own settings filled in.
fn path_of(
    system: &str,
    written: &str,
    place: Place,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<PathBuf> {
    let template = match Template::read(written) {
        Ok(value) => At {
            place,
            value: Verbatim(value),
        },
        Err(misspelling) => {
            let finding = Finding::new(place, misspelling.message);
            reading.findings.add(finding.help_if(misspelling.help));
            return None;
        }
    };
    let words = NoAddress {
        mistake: "the path of a file cannot hold an address",
        help: "addresses are known only while systems run. Use settings in the path, and addresses in the file",
    };
    let before = reading.findings.count();
    let text = scope.text_without_addresses(system, &template, &words, reading)?;
    // An unknown setting is reported, and leaves a wrong path.
    if reading.findings.count() > before {
        return None;
    }
    Some(reading.resolve(&text, place))
}

fn of_path(
    system: &str,
    path: &Path,
    is_raw: bool,
    asked_for: Place,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Text> {
    let report = |message: String, help: &'static str, reading: &mut Reading<'_>| {
        let finding = Finding::new(asked_for, message).help(help);
        reading.findings.add(finding);
    };
    let text = match reading.text(path) {
        Ok(text) => text,
        Err(message) => {
            report(
                message,
                "paths are relative to the file that contains them",
                reading,
            );
            return None;
        }
    };
    if text.len() > BYTES_MAX {
        let message = format!(
            "`{}` has {} bytes, but a configuration file has at most {BYTES_MAX}",
            path.display(),
            text.len()
        );
        report(message, "let the program read this file itself", reading);
        return None;
    }
    let source = reading.source(path, text.clone());
    let whole = Place {
        end: text.len(),
        ..source
    };
    filled(system, &text, is_raw, whole, asked_for, scope, reading)
}

/// Returns a text with its templates filled in. `place` is the place of the text itself.
fn filled(
    system: &str,
    text: &str,
    is_raw: bool,
    place: Place,
    asked_for: Place,
    scope: &Scope<'_>,
    reading: &mut Reading<'_>,
) -> Option<Text> {
    if is_raw {
        return Some(Text::default().followed_by(text));
    }
    match Template::of_file(text) {
        Ok(template) => Some(scope.text(system, &template, place, reading)),
        Err(FileMistake { at, message }) => {
            // A text in the lab file may have escapes, so its bytes are at other places there.
            let is_own_file = place != asked_for;
            let place = if is_own_file {
                let start = place.start + at;
                let end = start + 2;
                Place {
                    start,
                    end,
                    ..place
                }
            } else {
                place
            };
            let mut finding = Finding::new(place, message).help(OTHER_BRACES);
            if is_own_file {
                finding = finding.related(asked_for, "this names the file");
            }
            reading.findings.add(finding);
            None
        }
    }
}
