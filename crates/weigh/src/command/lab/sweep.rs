//! A lab at each load of its sweep, with one recording each and the curve of all.

use std::fs;
use std::path::Path;

use analysis::Summary;
use analysis::curve::{Curve, LoadLevel};
use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::file_url::file_url;
use experiment::record;
use experiment::stop::StopSignal;
use experiment::systems::Addresses;
use lab::{Lab, Level};
use report::curve;

use super::{Recorded, Run, summarize};
use crate::command::recording_file::{parse, read_text};
use crate::gates::GateArgs;

/// Prefix of a level's folder, within the folder of the run.
const PREFIX: &str = "at-";

impl Run<'_> {
    /// Runs one lab at each load of its sweep, records each run, and prints the curve.
    ///
    /// The order of the levels is random, so that a machine that gets warmer or busier does not look like a
    /// cost of more load.
    pub(super) fn swept(
        &self,
        lab: &Lab,
        builds: &mut BuildCache,
        console: Console,
        stop: &StopSignal,
    ) -> Result<Exit, Failure> {
        // Checked before the folder is created. Each level checks its own consent too.
        if self.cluster.is_none() {
            Addresses::of(lab, &self.consent.given())?;
        }
        let folder = record::new_folder(self.out, &lab.name)?;
        let seed = lab.seed.unwrap_or_else(environment::fresh_seed);
        let mut worst = Exit::Done;
        let mut unsaved = None;
        let mut levels = Vec::new();
        for index in schedule::round_order(lab.sweep.len(), 1, seed).concat() {
            let level = lab.sweep[index];
            console.say(format_args!(
                "weigh: {} at {level}, {} of {} levels",
                lab.name,
                levels.len() + 1,
                lab.sweep.len()
            ));
            let at = Lab {
                seed: Some(seed),
                ..lab.at(level)
            };
            let name = format!("{PREFIX}{}", slug(level));
            let own = folder.join(&name);
            let made = || match fs::create_dir(&own) {
                Ok(()) => Ok(own),
                Err(error) => Err(Failure::not_ready(format!(
                    "`{}` cannot be created: {error}",
                    own.display()
                ))),
            };
            let run = self.recorded_in(made, &at, builds, console, stop)?;
            worst = worst.max(run.exit());
            unsaved = unsaved.or(run.check_saved().err());
            // The next level would need the same cluster.
            let has_ended = run.recording.ended_because.is_some();
            let Recorded {
                recording, summary, ..
            } = run;
            levels.push(LoadLevel {
                folder: name,
                recording,
                summary,
            });
            if stop.is_asked() || has_ended {
                break;
            }
        }
        let curve = Curve::new(levels).map_err(|error| Failure::bug(error.to_string()))?;
        unsaved = unsaved.or(save(&folder, &curve).err());
        if self.revisions.is_some() {
            summarize(&curve::comment(&curve))?;
        }
        console.answer(&self.format.render_curve(&curve, console.terminal()));
        // Reported after the result, which must not be lost.
        if let Some(failure) = unsaved {
            return Err(failure);
        }
        console.say(format_args!(
            "weigh: recorded in {}. The picture is {}",
            folder.display(),
            file_url(&folder.join("curve.html"))
        ));
        Ok(worst)
    }
}

/// The folder name of a level: `100-per-s`, `8-connections`.
fn slug(level: Level) -> String {
    recording::file_name(&level.to_string().replace("/s", "-per-s").replace(' ', "-"))
}

fn save(folder: &Path, curve: &Curve) -> Result<(), Failure> {
    for (name, text) in [
        ("curve.json", curve.json()),
        ("curve.md", curve::markdown(curve)),
        ("curve.html", report::curve_page(curve)),
        ("junit.xml", curve::junit(curve)),
    ] {
        record::write(folder, name, &text)?;
    }
    Ok(())
}

/// The curve of a sweep's folder, with its gates judged. `None` for another folder.
///
/// # Errors
///
/// When a recording in it cannot be read, or belongs to another lab.
pub(in crate::command) fn curve_in(
    folder: &Path,
    gates: &GateArgs,
) -> Result<Option<Curve>, Failure> {
    if folder.join("recording.json").exists() || !folder.is_dir() {
        return Ok(None);
    }
    let refuse = |error: std::io::Error| {
        Failure::bad_input(format!("`{}` cannot be read: {error}", folder.display()))
    };
    let mut levels = Vec::new();
    for entry in fs::read_dir(folder).map_err(refuse)? {
        let entry = entry.map_err(refuse)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(PREFIX) {
            continue;
        }
        let recording = parse(&entry.path(), &read_text(&entry.path())?)?;
        let names = recording.variants.iter().map(|variant| &*variant.name);
        gates.check(&names.collect::<Vec<_>>())?;
        let all = gates.with_those_of_run(&recording)?;
        let summary = all.judge(Summary::of(&recording));
        levels.push(LoadLevel {
            folder: name,
            recording,
            summary,
        });
    }
    if levels.is_empty() {
        return Ok(None);
    }
    let curve = Curve::new(levels);
    curve
        .map(Some)
        .map_err(|error| Failure::bad_input(format!("`{}`: {error}", folder.display())))
}
