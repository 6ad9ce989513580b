//! Mistakes in lab files: what is wrong, where, and what to write instead.
//!
//! Checks collect [`Findings`], which point into sources by number; at the end these become
//! [`Mistakes`], which carry everything needed to show them.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer, Snippet, normalize_untrusted_str,
};

use crate::experiment::Source;

/// Where something stands: bytes `start..end` of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) source: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// One mistake in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: Place,
    message: String,
    label: String,
    help: Option<String>,
    related: Vec<(Place, String)>,
}

impl Finding {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Finding {
        Finding {
            place,
            message: message.into(),
            label: String::new(),
            help: None,
            related: Vec::new(),
        }
    }

    /// Words beside the marked excerpt.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Finding {
        self.label = label.into();
        self
    }

    /// What to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// As [`Finding::help`], when there is any.
    pub(crate) fn help_if(mut self, help: Option<String>) -> Finding {
        self.help = help.or(self.help);
        self
    }

    /// Another place that takes part in it.
    pub(crate) fn related(mut self, place: Place, label: impl Into<String>) -> Finding {
        self.related.push((place, label.into()));
        self
    }
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    /// Adds a mistake, unless the same one is there already: several variants may run into it.
    pub(crate) fn add(&mut self, finding: Finding) {
        if !self.list.contains(&finding) {
            self.list.push(finding);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// The mistakes in reading order, or the sources back when there are none.
    pub(crate) fn settle(mut self, sources: Vec<Source>) -> Result<Vec<Source>, Mistakes> {
        if self.list.is_empty() {
            return Ok(sources);
        }
        self.list.sort_by_key(|finding| finding.place);
        let list: Vec<Mistake> = self
            .list
            .into_iter()
            .map(|finding| Mistake::new(finding, &sources))
            .collect();
        Err(Mistakes { list, sources })
    }
}

/// One mistake of a lab's author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// What was expected and what was found.
    pub message: String,
    /// The file it is in.
    pub file: PathBuf,
    /// Its line, from 1. It is 1 for a file that could not be read.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// The bytes of the file that are wrong.
    pub span: Range<usize>,
    /// Words beside the marked excerpt; may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Other places that take part in it.
    pub related: Vec<Related>,
}

/// Another place that takes part in a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its part.
    pub label: String,
    /// The file it is in.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// The bytes of the file that take part.
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

/// Path, line, column and bytes of a place, kept within the text and on character boundaries.
fn locate(place: Place, sources: &[Source]) -> (PathBuf, usize, usize, Range<usize>) {
    let Some(source) = sources.get(place.source) else {
        return (PathBuf::new(), 1, 1, 0..0);
    };
    let text = &source.text;
    let start = text.floor_char_boundary(place.start);
    let end = text.ceil_char_boundary(place.end.max(start));
    let before = &text[..start];
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[line_start..].chars().count() + 1;
    (source.path.clone(), line, column, start..end)
}

/// Everything wrong with a lab; never empty.
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

    /// How many; at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them with excerpts and help, one paragraph each, for a terminal.
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
        if text.is_empty() {
            group = group.element(Origin::path(path));
        } else {
            let primary = AnnotationKind::Primary
                .span(mistake.span.clone())
                .label(some(&mistake.label));
            let beside = mistake.related.iter().filter(|it| it.file == mistake.file);
            let snippet = Snippet::source(text).path(path).annotation(primary);
            group = group.element(snippet.annotations(beside.map(annotation)));
        }
        for related in mistake.related.iter().filter(|it| it.file != mistake.file) {
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
