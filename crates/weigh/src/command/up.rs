//! `weigh up`: starts a lab's systems for inspection.

use std::thread;
use std::time::Duration;

use experiment::build_cache::{BuildCache, missing_program};
use experiment::compose::Projects;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use experiment::invalid::Invalid;
use experiment::measure::start_rig;
use experiment::stop::StopSignal;
use experiment::systems::{Addresses, RunningSystems, Startup};
use lab::{Lab, Variant};

use crate::labs::{self, SettingArgs};

/// Start the systems of a lab and keep them up until Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The lab.
    #[arg(value_name = "LAB")]
    lab: String,
    /// The variant with these systems [default: the baseline].
    #[arg(value_name = "VARIANT", conflicts_with = "variant")]
    name: Option<String>,
    /// The variant with these systems, as a flag.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[command(flatten)]
    settings: SettingArgs,
}

/// Interval between two checks of running systems.
const WATCH: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let labs = labs::read(
        std::slice::from_ref(&args.lab),
        args.settings.wishes(),
        console,
    )?;
    let [lab] = labs.as_slice() else {
        return Err(Failure::bad_input(format!(
            "expected one lab, found {} in `{}`. Name one of them",
            labs.len(),
            args.lab
        )));
    };
    let name = args.name.as_ref().or(args.variant.as_ref());
    let variant = choose(lab, name.map(String::as_str))?;
    // No consent is needed, because only readiness probes are sent.
    let addresses = Addresses::unasked(lab)?;
    let logs = tempfile::tempdir().map_err(|error| {
        Failure::not_ready(format!("cannot create a temporary folder: {error}"))
    })?;
    let projects = Projects::of(lab);
    let mut rig = start_rig(logs.path(), console)?;
    let projects = projects.kept(&mut rig)?;
    let setups = variant.systems();
    let started = missing_program(setups).map_or(Ok(()), Err).and_then(|()| {
        let mut builds = BuildCache::default();
        for setup in setups {
            builds.build(&mut rig, setup, logs.path(), stop)?;
            builds.images(&mut rig, setup, &projects, logs.path(), stop)?;
        }
        let startup = Startup {
            lab,
            setups,
            logs: logs.path(),
            stop,
            addresses: &addresses,
            projects: &projects,
            shared: None,
        };
        RunningSystems::start(&mut rig, startup)
    });
    let systems = started.map_err(|invalid| leave(&invalid))?;
    for (system, url) in systems.urls() {
        console.answer(&format!("{system}  {url}"));
    }
    console.say(format_args!(
        "weigh: the systems of `{}` are up. Ctrl-C stops them",
        variant.name
    ));
    let mut ended = None;
    while !stop.is_asked() && ended.is_none() {
        // A signal handler only sets the flag, so the flag is polled.
        thread::park_timeout(WATCH);
        ended = systems.ended(&mut rig);
    }
    systems.stop(&mut rig);
    rig.shut_down()
        .map_err(|error| Failure::bug(error.to_string()))?;
    match ended {
        Some(reason) => Err(Failure::not_ready(reason)),
        None => Ok(Exit::Done),
    }
}

fn choose<'a>(lab: &'a Lab, name: Option<&str>) -> Result<&'a Variant, Failure> {
    let Some(name) = name else {
        return Ok(&lab.baseline);
    };
    lab.all()
        .find(|variant| variant.name == name)
        .ok_or_else(|| labs::stranger(lab, name))
}

fn leave(invalid: &Invalid) -> Failure {
    Failure {
        exit: invalid.exit(),
        message: invalid.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use experiment::files::Unwritten;

    use super::*;

    #[test]
    fn a_wrong_name_gives_the_list_of_variants() {
        let text = "question: q\nload: {rate: 1/s, duration: 1s}\ntarget: api\n\
            systems: {api: {run: 'x {{addr}}'}}\nbaseline: {name: direct}\n\
            variants: [{name: proxy}, {name: '+ log'}]\n";
        let path = Path::new("a.yaml");
        let files = Unwritten(vec![(path.to_owned(), text.as_bytes().to_vec())]);
        let lab = lab::parse(path, &files).unwrap();
        assert_eq!(choose(&lab, Some("+ log")).unwrap().name, "+ log");
        assert_eq!(choose(&lab, None).unwrap().name, "direct");
        let error = choose(&lab, Some("sidecar")).unwrap_err().message;
        assert_eq!(
            error,
            "expected a variant of `a`, found `sidecar`. The variants are direct, proxy, + log"
        );
    }
}
