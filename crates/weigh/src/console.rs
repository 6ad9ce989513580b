//! The only place that prints: results go to stdout, diagnostics to stderr.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::environment;

/// Where output goes, and what the other side can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    /// Is stderr a terminal on which progress may be redrawn in place?
    pub(crate) is_live: bool,
    /// May diagnostics be colored?
    pub(crate) color: bool,
    /// Columns that an answer may use.
    pub(crate) width: usize,
    /// May the answer be colored?
    answer_color: bool,
    /// Is the answer read on a terminal?
    is_read_live: bool,
    /// Does that terminal show nothing but ASCII?
    is_ascii: bool,
}

/// Set when an answer could not be written; one for all copies of a console.
static IS_UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Width of an answer that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

impl Console {
    pub(crate) fn new(no_color: bool, no_tui: bool) -> Console {
        let is_terminal = io::stderr().is_terminal();
        // One that says it can do nothing is not asked to go up a line.
        let is_dumb = environment::inherited("TERM").is_some_and(|name| name == "dumb");
        let is_read_live = io::stdout().is_terminal();
        let width = if is_read_live {
            terminal_width().unwrap_or(PLAIN_WIDTH)
        } else {
            PLAIN_WIDTH
        };
        Console {
            is_live: is_terminal && !no_tui && !is_dumb,
            color: is_terminal && !no_color,
            width,
            answer_color: is_read_live && !no_color,
            is_read_live,
            is_ascii: is_read_live && !is_utf8(),
        }
    }

    /// What the reader of an answer can see.
    pub(crate) fn terminal(self) -> report::Terminal {
        report::Terminal {
            width: self.width,
            has_color: self.answer_color,
        }
    }

    /// Columns of the live screen, which is on stderr, and whether it shows more than ASCII.
    pub(crate) fn screen(self) -> (usize, bool) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let columns = size.map(|size| usize::from(size.ws_col));
        // Some terminals say 0 when they do not know.
        (columns.filter(|it| *it > 0).unwrap_or(80), is_utf8())
    }

    /// Writes the answer. A reader that went away (`weigh … | head`) ends the
    /// program quietly: the answer was wanted no further.
    pub(crate) fn answer(self, text: &str) {
        let text = match self {
            // Control characters from outside are visible signs by then, and this text has no colors.
            Console { is_ascii: true, .. } => Cow::Owned(report::ascii(&report::harmless(text))),
            Console {
                is_read_live: true, ..
            } => Cow::Owned(report::harmless(text)),
            // A program reads it, byte for byte.
            _ => Cow::Borrowed(text),
        };
        let mut out = io::stdout().lock();
        let written = out
            .write_all(text.as_bytes())
            .and_then(|()| match text.ends_with('\n') {
                true => Ok(()),
                false => out.write_all(b"\n"),
            })
            .and_then(|()| out.flush());
        match written {
            // As in `weigh report | head`, which has read all that it wanted.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => {
                self.no_answer(format_args!("the answer could not be written: {error}"));
            }
            Ok(()) => {}
        }
    }

    /// Says why there is no answer, which the exit code says as well.
    pub(crate) fn no_answer(self, why: impl Display) {
        self.error(why);
        IS_UNWRITTEN.store(true, Ordering::Relaxed);
    }

    /// Whether an answer could not be written, so that whoever asked does not have it.
    pub(crate) fn is_unwritten() -> bool {
        IS_UNWRITTEN.load(Ordering::Relaxed)
    }

    /// One line of diagnostics.
    pub(crate) fn say(self, line: impl Display) {
        // Names in files and the last words of systems are others' words.
        let line = report::harmless(&line.to_string());
        // A closed stderr is no reason to stop measuring.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// One line about something that the user should know but that stops nothing.
    pub(crate) fn warn(self, line: &str) {
        self.say(format_args!("weigh: warning: {line}"));
    }

    /// One line about why `weigh` cannot go on.
    pub(crate) fn error(self, line: impl Display) {
        self.say(format_args!("weigh: {line}"));
    }
}

/// Whether the locale says that a terminal shows UTF-8: the first of these that is set decides, as
/// in POSIX, and `C` is what holds when none is.
fn is_utf8() -> bool {
    let values =
        // A variable that is not set counts as empty, as POSIX has it.
        ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| environment::inherited(name).unwrap_or_default());
    let locale = values.iter().find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    // Some terminals say 0 when they do not know.
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
