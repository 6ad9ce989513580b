//! The only file that prints. Results go to stdout, and diagnostics to stderr.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::environment;

/// The output streams and the abilities of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// True if stderr is a terminal that can redraw progress.
    pub(crate) is_live: bool,
    /// True if diagnostics may be colored.
    pub color: bool,
    /// Width of the result in columns.
    pub width: usize,
    /// True if the result may be colored.
    answer_color: bool,
    /// True if stdout is a terminal.
    is_read_live: bool,
    /// True if that terminal shows only ASCII.
    is_ascii: bool,
}

/// True if a result could not be written. All copies of a console share it.
static IS_UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Width of a result that does not go to a terminal.
const PLAIN_WIDTH: usize = 100;

impl Console {
    pub fn new(no_color: bool, no_tui: bool) -> Console {
        let is_terminal = io::stderr().is_terminal();
        // A dumb terminal cannot move up a line.
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

    /// The abilities of the terminal that shows the result.
    pub fn terminal(self) -> report::Terminal {
        report::Terminal {
            width: self.width,
            has_color: self.answer_color,
        }
    }

    /// Columns of the live screen on stderr, and true if it shows more than ASCII.
    pub(crate) fn screen(self) -> (usize, bool) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let columns = size.map(|size| usize::from(size.ws_col));
        // Some terminals report 0 if the size is unknown.
        (columns.filter(|it| *it > 0).unwrap_or(80), is_utf8())
    }

    /// Writes the result. If the reader has closed the pipe (`weigh … | head`), the program exits with 0.
    pub fn answer(self, text: &str) {
        let text = match self {
            // Control characters from outside are replaced by visible characters. This text has no colors.
            Console { is_ascii: true, .. } => Cow::Owned(report::ascii(&report::harmless(text))),
            Console {
                is_read_live: true, ..
            } => Cow::Owned(report::harmless(text)),
            // The reader is a program and receives all bytes unchanged.
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
            // As in `weigh report | head`, which has read enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => {
                self.no_answer(format_args!("the answer could not be written: {error}"));
            }
            Ok(()) => {}
        }
    }

    /// Prints the reason why there is no result. The exit code shows it too.
    pub fn no_answer(self, why: impl Display) {
        self.error(why);
        IS_UNWRITTEN.store(true, Ordering::Relaxed);
    }

    /// True if a result could not be written.
    pub fn is_unwritten() -> bool {
        IS_UNWRITTEN.load(Ordering::Relaxed)
    }

    /// Prints one line of diagnostics.
    pub fn say(self, line: impl Display) {
        // Names in files and output of systems are untrusted text.
        let line = report::harmless(&line.to_string());
        // A closed stderr does not stop the measurement.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Prints a warning about a problem that does not stop the run.
    pub fn warn(self, line: &str) {
        self.say(format_args!("weigh: warning: {line}"));
    }

    /// Prints the reason why `weigh` cannot continue.
    pub fn error(self, line: impl Display) {
        self.say(format_args!("weigh: {line}"));
    }
}

/// True if the terminal shows UTF-8 by its locale. As in POSIX, the first of these variables that is set
/// decides, and `C` is the default.
fn is_utf8() -> bool {
    let values =
        // An unset variable counts as empty, as in POSIX.
        ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| environment::inherited(name).unwrap_or_default());
    let locale = values.iter().find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    // Some terminals report 0 if the size is unknown.
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
