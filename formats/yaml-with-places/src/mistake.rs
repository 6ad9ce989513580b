//! Mistakes in files, with their places and advice.
//!
//! Checks collect [`Findings`], which refer to sources by number. At the end these become [`Mistakes`], which
//! contain everything that a printer needs.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::tree::Place;

/// The content of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path of the file, as written by the caller or in an `include`.
    pub path: PathBuf,
    /// The whole text of the file.
    pub text: String,
}

/// One mistake while it is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    place: Place,
    message: String,
    label: String,
    help: Option<String>,
    related: Vec<(Place, String)>,
}

impl Finding {
    /// Creates a finding. The message states the expected and the actual value.
    #[must_use]
    pub fn new(place: Place, message: impl Into<String>) -> Finding {
        Finding {
            place,
            message: message.into(),
            label: String::new(),
            help: None,
            related: Vec::new(),
        }
    }

    /// Sets the text next to the marked excerpt.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Finding {
        self.label = label.into();
        self
    }

    /// Sets the advice for the author.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// Like [`Finding::help`], if there is advice.
    #[must_use]
    pub fn help_if(mut self, help: Option<String>) -> Finding {
        self.help = help.or(self.help);
        self
    }

    /// Adds another place that belongs to the mistake.
    #[must_use]
    pub fn related(mut self, place: Place, label: impl Into<String>) -> Finding {
        self.related.push((place, label.into()));
        self
    }
}

/// The collected mistakes.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    /// Adds a mistake, unless it was already added. Several variants may cause the same mistake.
    pub fn add(&mut self, finding: Finding) {
        // A linear search, because a file has tens of mistakes at most.
        if !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }

    /// Number of mistakes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// True if no mistake was found yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns `sources` if there are no mistakes. The source numbers of places are indices into `sources`.
    ///
    /// # Errors
    /// All mistakes, in reading order.
    pub fn settle(mut self, sources: Vec<Source>) -> Result<Vec<Source>, Mistakes> {
        if self.list.is_empty() {
            return Ok(sources);
        }
        // In the order of the file, regardless of the step that found them. The sort is stable, so mistakes
        // at one place keep the order of their discovery.
        self.list.sort_by_key(|finding| finding.place);
        let list: Vec<Mistake> = self
            .list
            .into_iter()
            .map(|finding| Mistake::new(finding, &sources))
            .collect();
        Err(Mistakes { list, sources })
    }
}

/// One mistake of the author of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The expected and the actual value.
    pub message: String,
    /// The file of the mistake.
    pub file: PathBuf,
    /// Line of the mistake, from 1. It is 1 for a file that could not be read.
    pub line: usize,
    /// Column of the mistake in characters, from 1.
    pub column: usize,
    /// The wrong bytes of the file.
    pub span: Range<usize>,
    /// Text next to the marked excerpt. It may be empty.
    pub label: String,
    /// Advice for the author of the file.
    pub help: Option<String>,
    /// Other places that belong to the mistake.
    pub related: Vec<Related>,
}

/// Another place that belongs to a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The role of this place in the mistake.
    pub label: String,
    /// The file of this place.
    pub file: PathBuf,
    /// Line of this place, from 1.
    pub line: usize,
    /// Column of this place in characters, from 1.
    pub column: usize,
    /// The bytes of the file at this place.
    pub span: Range<usize>,
}

impl Mistake {
    fn new(finding: Finding, sources: &[Source]) -> Mistake {
        let (file, line, column, span) = locate(finding.place, sources);
        let related = finding.related.into_iter().map(|(place, label)| {
            let (file, line, column, span) = locate(place, sources);
            Related {
                label,
                file,
                line,
                column,
                span,
            }
        });
        Mistake {
            message: finding.message,
            file,
            line,
            column,
            span,
            label: finding.label,
            help: finding.help,
            related: related.collect(),
        }
    }
}

/// Path, line, column and bytes of a place, clamped to the text and to character boundaries.
fn locate(place: Place, sources: &[Source]) -> (PathBuf, usize, usize, Range<usize>) {
    // A caller that could not read a file has no source for it.
    let Some(source) = sources.get(place.source) else {
        return (PathBuf::new(), 1, 1, 0..0);
    };
    // The parser counts bytes. An offset inside a character would make the printer panic.
    let start = source.text.floor_char_boundary(place.start);
    let end = source.text.ceil_char_boundary(place.end.max(start));
    let (line, column) = line_and_column(&source.text, start);
    (source.path.clone(), line, column, start..end)
}

/// Line and column, in characters and from 1, of a byte of the text.
#[must_use]
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// All mistakes in a file and its included files. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    list: Vec<Mistake>,
    sources: Vec<Source>,
}

impl Mistakes {
    /// The mistakes by file, in reading order.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.list.iter()
    }

    /// Number of mistakes, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All mistakes with excerpts and advice, one paragraph each, for a terminal.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let paragraphs: Vec<String> = self
            .list
            .iter()
            .map(|mistake| renderer.render(&[self.group(mistake)]))
            .collect();
        paragraphs.join("\n\n")
    }

    fn group<'a>(&'a self, mistake: &'a Mistake) -> Group<'a> {
        let title = Level::ERROR.primary_title(normalize_untrusted_str(&mistake.message));
        let path = mistake.file.to_string_lossy();
        let text = self.text(&mistake.file);
        let mut group = Group::with_title(title);
        // An empty file has no line to show, but the printer expects one.
        if text.is_empty() {
            group = group.element(Origin::path(path));
        } else {
            let primary = AnnotationKind::Primary
                .span(mistake.span.clone())
                .label(some(&mistake.label));
            let beside = mistake
                .related
                .iter()
                .filter(|related| related.file == mistake.file);
            let snippet = Snippet::source(text).path(path).annotation(primary);
            group = group.element(snippet.annotations(beside.map(annotation)));
        }
        for related in mistake
            .related
            .iter()
            .filter(|related| related.file != mistake.file)
        {
            let snippet = Snippet::source(self.text(&related.file))
                .path(related.file.to_string_lossy())
                .annotation(annotation(related));
            group = group.element(snippet);
        }
        match &mistake.help {
            Some(help) => group.element(Level::HELP.message(normalize_untrusted_str(help))),
            None => group,
        }
    }

    fn text(&self, file: &Path) -> &str {
        self.sources
            .iter()
            .find(|source| source.path == file)
            .map_or("", |source| &source.text)
    }
}

fn annotation(related: &Related) -> annotate_snippets::Annotation<'_> {
    AnnotationKind::Context
        .span(related.span.clone())
        .label(some(&related.label))
}

fn some(label: &str) -> Option<&str> {
    (!label.is_empty()).then_some(label)
}

impl<'a> IntoIterator for &'a Mistakes {
    type Item = &'a Mistake;
    type IntoIter = std::slice::Iter<'a, Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Mistakes {}
