//! The layout of a result: a layout of `weigh`, or a layout of another tool that scripts already parse.

use analysis::Summary;
use analysis::curve::Curve;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use recording::{Kind, Recording};
use report::curve;
use report::{Layout, LayoutError, Terminal};

/// A layout of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// The answer, one table and all failures, for one screen of a terminal.
    Text,
    /// All tables for a terminal.
    Full,
    /// Markdown, to paste into a pull request.
    Md,
    /// One page of HTML that works offline.
    Html,
    /// All figures, with units in their names.
    Json,
    /// One line for each figure.
    Csv,
    /// At most 30 lines of Markdown, for a comment on a pull request.
    Comment,
    /// JUnit's XML, for CI: a test case for each variant and gate.
    Junit,
}

impl Page {
    /// Renders a recording, of a lab or of a single load.
    pub(crate) fn render(
        self,
        recording: &Recording,
        summary: &Summary,
        terminal: Terminal,
    ) -> String {
        match self {
            Page::Text | Page::Full if recording.kind == Kind::Load => {
                report::load_text(recording, summary, terminal)
            }
            Page::Text => report::text(recording, summary, terminal),
            Page::Full => report::full_text(recording, summary, terminal),
            Page::Md => report::markdown(recording, summary),
            Page::Html => report::html(recording, summary),
            Page::Json => report::json(recording, summary),
            Page::Csv => report::csv(recording, summary),
            Page::Comment => report::comment(recording, summary),
            Page::Junit => report::junit(recording, summary),
        }
    }
}

impl Page {
    /// Renders a lab at several loads.
    pub(crate) fn render_curve(self, curve: &Curve, terminal: Terminal) -> String {
        match self {
            Page::Text | Page::Full => curve::text(curve, terminal),
            Page::Md => curve::markdown(curve),
            Page::Html => report::curve_page(curve),
            Page::Json => curve.json(),
            Page::Csv => curve::csv(curve),
            Page::Comment => curve::comment(curve),
            Page::Junit => curve::junit(curve),
        }
    }
}

/// The layout of a comparison, as flags say it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Page,
    /// Print all tables on the terminal, like --format full.
    #[arg(long, conflicts_with = "format")]
    full: bool,
}

impl PageArgs {
    /// The layout that the flags select.
    pub(crate) fn page(self) -> Page {
        if self.full { Page::Full } else { self.format }
    }
}

/// All layouts, of `weigh` and of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A layout of `weigh`, which shows the whole recording.
    Page(Page),
    /// A layout of another tool, which shows one measurement.
    Theirs(Layout),
}

impl Format {
    /// Renders a recording. Layouts of other tools show `variant`, or the baseline, and no gates.
    pub(crate) fn render(
        self,
        recording: &Recording,
        summary: &Summary,
        variant: Option<&str>,
        terminal: Terminal,
    ) -> Result<String, LayoutError> {
        match self {
            Format::Page(page) => Ok(page.render(recording, summary, terminal)),
            Format::Theirs(layout) => layout.render(recording, variant),
        }
    }
}

/// The layouts of `weigh`, then the layouts of other tools.
const ALL: &[Format] = &[
    Format::Page(Page::Text),
    Format::Page(Page::Full),
    Format::Page(Page::Json),
    Format::Page(Page::Csv),
    Format::Page(Page::Md),
    Format::Page(Page::Html),
    Format::Page(Page::Comment),
    Format::Page(Page::Junit),
    Format::Theirs(Layout::Hgrm),
    Format::Theirs(Layout::Ab),
    Format::Theirs(Layout::VegetaText),
    Format::Theirs(Layout::VegetaJson),
    Format::Theirs(Layout::K6Json),
    Format::Theirs(Layout::BombardierText),
    Format::Theirs(Layout::BombardierJson),
    Format::Theirs(Layout::ArtilleryJson),
];

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Format::Page(page) => page.to_possible_value(),
            Format::Theirs(layout) => {
                let help = match layout {
                    Layout::Hgrm => "HdrHistogram's percentile table, as of wrk2",
                    Layout::Ab => "ApacheBench's report",
                    Layout::VegetaText => "vegeta report",
                    Layout::VegetaJson => "vegeta report -type json",
                    Layout::K6Json => "k6 run --summary-export",
                    Layout::BombardierText => "bombardier -l",
                    Layout::BombardierJson => "bombardier -l -o json",
                    Layout::ArtilleryJson => "artillery run --output",
                };
                Some(PossibleValue::new(layout.name()).help(help))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_can_be_asked_for() {
        for layout in Layout::ALL {
            assert!(ALL.contains(&Format::Theirs(layout)), "{}", layout.name());
        }
        for page in Page::value_variants() {
            assert!(ALL.contains(&Format::Page(*page)), "{page:?}");
        }
    }
}
