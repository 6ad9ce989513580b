//! Mistakes in a file: what is wrong, where, and what to write instead.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, normalize_untrusted_str};

/// Where something stands: a range of bytes of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// One mistake in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: Place,
    message: String,
    help: Option<String>,
}

impl Finding {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            help: None,
        }
    }

    /// What to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    pub(crate) fn add(&mut self, finding: Finding) {
        if !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The mistakes in reading order.
    pub(crate) fn settle(mut self, path: &Path, text: &str) -> Mistakes {
        self.list.sort_by_key(|finding| finding.place);
        let list = self.list.into_iter().map(|finding| {
            let start = text.floor_char_boundary(finding.place.start);
            let end = text.ceil_char_boundary(finding.place.end.max(start));
            let (line, column) = line_and_column(text, start);
            Mistake {
                message: finding.message,
                line,
                column,
                span: start..end,
                help: finding.help,
            }
        });
        Mistakes {
            list: list.collect(),
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// Line and column, in characters and from 1, of a byte of the text.
pub(crate) fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// One mistake of the author of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What was expected and what was found.
    pub message: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// The bytes of the file that are wrong.
    pub span: Range<usize>,
    /// What to do about it.
    pub help: Option<String>,
}

/// Everything wrong with a file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    list: Vec<Mistake>,
    path: PathBuf,
    text: String,
}

impl Mistakes {
    /// The mistakes in reading order.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.list.iter()
    }

    /// All of them with their lines and help, one paragraph each, for a terminal.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let path = self.path.to_string_lossy();
        let paragraphs: Vec<String> = self
            .list
            .iter()
            .map(|mistake| {
                let title = Level::ERROR.primary_title(normalize_untrusted_str(&mistake.message));
                let mark = AnnotationKind::Primary.span(mistake.span.clone());
                let snippet = Snippet::source(self.text.as_str())
                    .path(path.as_ref())
                    .annotation(mark);
                let mut group = title.element(snippet);
                if let Some(help) = &mistake.help {
                    group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
                }
                renderer.render(&[group])
            })
            .collect();
        paragraphs.join("\n\n")
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.render(false))
    }
}

impl std::error::Error for Mistakes {}
