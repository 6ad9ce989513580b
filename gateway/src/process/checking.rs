//! `gateway check`: reports the effect of each key of a configuration, and its errors.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use gateway_config::{Survey, SurveyedKey};

use crate::process::environment::Environment;
use crate::process::generation::{self, GenerationError, Sources};

/// Prints the lists of keys first, even if the file has other errors. Then checks the whole file, and the files
/// that it names.
pub(crate) fn check(path: &Path, sources: &Sources) -> Result<(), GenerationError> {
    let environment = Environment::of_process();
    let text = generation::config_text(path)?;
    let survey =
        gateway_config::survey(path, &text, &environment).map_err(GenerationError::Config)?;
    telemetry::announce(lists(&survey).trim_end());
    let reading = generation::read_config(Some(path), &environment, sources.is_development)?;
    let keys = survey.without_effect.len();
    for warning in reading.warnings.iter().skip(keys) {
        telemetry::announce(&format!("warning: {warning}"));
    }
    let config = Arc::new(reading.config);
    let problems = generation::problems(&config, sources.supergraph.as_deref(), &environment);
    if !problems.is_empty() {
        return Err(GenerationError::Several(problems));
    }
    telemetry::announce(&format!("{}: nothing wrong found", path.display()));
    Ok(())
}

/// The three lists. The keys that need action come last, where users see them.
fn lists(survey: &Survey) -> String {
    let mut text = String::new();
    add(&mut text, "works", &survey.works);
    add(&mut text, "accepted without effect", &survey.without_effect);
    add(&mut text, "refused", &survey.refused);
    text
}

fn add(text: &mut String, title: &str, keys: &[SurveyedKey]) {
    if keys.is_empty() {
        return;
    }
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{title}:");
    for SurveyedKey { line, key, note } in keys {
        let _ = match note.as_str() {
            "" => writeln!(text, "  line {line}: {key}"),
            note => writeln!(text, "  line {line}: {key}: {note}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_a_title_and_an_empty_one_has_none() {
        let key = |line, key: &str, note: &str| SurveyedKey {
            line,
            key: key.to_owned(),
            note: note.to_owned(),
        };
        let survey = Survey {
            works: vec![key(1, "supergraph.listen", "")],
            without_effect: vec![key(3, "fleet_detector", "nothing is sent")],
            refused: Vec::new(),
        };
        assert_eq!(
            lists(&survey),
            "works:\n  line 1: supergraph.listen\naccepted without effect:\n  line 3: fleet_detector: nothing is sent\n"
        );
    }
}
