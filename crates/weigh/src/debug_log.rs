//! The debug log on stderr: the actions and waits of a run. It explains a run that hangs.
//!
//! It is off without `-v` and `WEIGH_LOG`. The load engine has no events, so no event is logged between a due
//! time and the response. Keeper and launcher are separate processes and do not log here. `weigh` logs their
//! messages when it receives them.

use std::io::{self, Write};

use experiment::exit::Failure;
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::layer::SubscriberExt as _;

/// The variable that selects the events.
pub(crate) const VARIABLE: &str = "WEIGH_LOG";

/// The crates that `-v` selects.
const OURS: [&str; 3] = ["weigh", "experiment", "rig"];

/// Starts the log: `-v` is debug for the crates of `weigh`, and `-vv` is trace. Flags override the variable.
///
/// # Errors
///
/// When the variable is invalid.
pub(crate) fn start(flags: u8, variable: Option<&str>) -> Result<(), Failure> {
    let Some(targets) = targets(flags, variable)? else {
        return Ok(());
    };
    let subscriber = subscriber(targets, || Printable(io::stderr()));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| Failure::bug(format!("the debug log cannot start: {error}")))
}

fn subscriber<W>(targets: Targets, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_timer(SystemTime)
        // Files and CI logs do not show colors.
        .with_ansi(false);
    tracing_subscriber::registry().with(targets).with(layer)
}

/// Writes text without control characters for the terminal, because lab files and output of systems are
/// untrusted text.
struct Printable<W>(W);

impl<W: Write> Write for Printable<W> {
    /// Each call receives a whole event, so no character is split.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = report::printable(&String::from_utf8_lossy(event));
        self.0.write_all(text.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The targets of the log. `None` if the log is off.
fn targets(flags: u8, variable: Option<&str>) -> Result<Option<Targets>, Failure> {
    let level = match flags {
        0 => {
            return variable
                .filter(|text| !text.trim().is_empty())
                .map(parsed)
                .transpose();
        }
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Ok(Some(
        Targets::new().with_targets(OURS.map(|name| (name, level))),
    ))
}

fn parsed(text: &str) -> Result<Targets, Failure> {
    let wrong = |part: &str| {
        Failure::bad_input(format!(
            "`{VARIABLE}={text}`: expected off, error, warn, info, debug or trace, or targets such \
             as `rig=trace,weigh=debug`, found `{part}`"
        ))
    };
    // A bare word must be a level. The filter would treat it as the name of a target, and would silently log
    // other events.
    for part in text.split(',') {
        let level = part.rsplit('=').next().unwrap_or(part).trim();
        if level.is_empty() || level.parse::<LevelFilter>().is_err() {
            return Err(wrong(part.trim()));
        }
    }
    let targets = text.parse().map_err(|_| wrong(text))?;
    Ok(with_experiment(targets))
}

/// Gives `experiment` the level of `weigh`, because a user knows one program. A level of its own wins.
fn with_experiment(targets: Targets) -> Targets {
    let level_of = |name: &str| {
        let mut all = targets.iter();
        all.find(|(target, _)| *target == name)
            .map(|(_, level)| level)
    };
    match (level_of("weigh"), level_of("experiment")) {
        (Some(level), None) => targets.with_target("experiment", level),
        _ => targets,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Level;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_sign() {
        let kept = Kept::default();
        let writer = kept.clone();
        let targets = targets(0, Some("debug")).unwrap().unwrap();
        let subscriber = subscriber(targets, move || Printable(writer.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let error = "no `\u{1b}]0;owned\u{7}\u{202e}`";
            tracing::debug!(%error, "the process \u{1b}[31mdoes not start");
        });
        let log = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(
            log.contains("error=no `\u{fffd}]0;owned\u{fffd}\u{fffd}`"),
            "{log}"
        );
        assert!(log.ends_with('\n') && !log.contains('\u{1b}'), "{log}");
    }

    fn enabled(flags: u8, variable: Option<&str>, target: &str, level: Level) -> bool {
        let targets = targets(flags, variable).unwrap();
        targets.is_some_and(|targets| targets.would_enable(target, &level))
    }

    #[test]
    fn nothing_is_logged_unless_asked_for() {
        assert!(!enabled(0, None, "rig", Level::ERROR));
        assert!(!enabled(0, Some(""), "rig", Level::ERROR));
    }

    #[test]
    fn flags_are_about_our_crates_and_win_over_the_variable() {
        assert!(enabled(1, Some("off"), "rig::rig", Level::DEBUG));
        assert!(!enabled(1, None, "rig", Level::TRACE));
        assert!(enabled(2, None, "weigh::command", Level::TRACE));
        assert!(enabled(2, None, "experiment::measure", Level::TRACE));
        assert!(!enabled(2, None, "h2", Level::ERROR));
    }

    #[test]
    fn the_variable_names_a_level_or_targets() {
        assert!(enabled(0, Some("debug"), "h2", Level::DEBUG));
        let both = Some("rig=trace,weigh=debug");
        assert!(enabled(0, both, "rig", Level::TRACE));
        assert!(!enabled(0, both, "weigh", Level::TRACE));
        assert!(enabled(0, both, "experiment::systems", Level::DEBUG));
        let apart = Some("weigh=debug,experiment=off");
        assert!(!enabled(0, apart, "experiment", Level::ERROR));
        for wrong in ["loud", "rig=loud", "rig", "debug,,", "7x"] {
            let failure = targets(0, Some(wrong)).unwrap_err();
            assert!(failure.message.contains("expected off, error"), "{wrong}");
        }
    }
}
