//! The model of a report's table. Text, Markdown, HTML and CSV print it without knowing its content.

use model::{Metric, Unit};

use crate::terminal::Tone;

/// A table, built once for all formats.
pub(crate) struct Table {
    /// Name of the table for screen readers.
    pub(crate) label: &'static str,
    pub(crate) columns: Vec<Column>,
    /// Rows with a cell for each column. A table without rows is not printed.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Sentences below the table.
    pub(crate) notes: Vec<String>,
}

/// Content of a column. It decides the alignment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, aligned left.
    Words,
    /// Words that a narrow terminal leaves out like a figure.
    Aside,
    /// A number, aligned right.
    Figure,
}

pub(crate) struct Column {
    /// The heading in lower case, as text shows it.
    pub(crate) name: String,
    /// The unit of the figures. It may be empty.
    unit: String,
    /// A shorter heading for the terminal, with its unit on a second line.
    short: Option<String>,
    pub(crate) kind: Kind,
    /// True if a terminal has no space for the column.
    pub(crate) is_for_pages: bool,
}

impl Column {
    pub(crate) fn words(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: String::new(),
            short: None,
            kind: Kind::Words,
            is_for_pages: false,
        }
    }

    pub(crate) fn figure(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            kind: Kind::Figure,
            ..Self::words(name).in_unit(unit)
        }
    }

    /// The column of a metric. `times` is the unit of the latencies of the report.
    pub(crate) fn of(metric: Metric, times: Unit) -> Self {
        match metric {
            Metric::Cpu => Self::figure("CPU", "us/request").short("CPU\nus/req"),
            Metric::GeneratorCpu => Self::figure("generator CPU", "us/request"),
            Metric::Memory => Self::figure("peak memory", "MiB").short("memory\nMiB"),
            Metric::Throughput => Self::figure("throughput", "MB/s").short("MB/s"),
            latency if latency.unit() == Unit::Milliseconds => {
                Self::figure(latency.label(), times.sign())
            }
            other => Self::figure(other.label(), ""),
        }
    }

    pub(crate) fn in_unit(self, unit: impl Into<String>) -> Self {
        Self {
            unit: unit.into(),
            ..self
        }
    }

    pub(crate) fn aside(self) -> Self {
        Self {
            kind: Kind::Aside,
            ..self
        }
    }

    pub(crate) fn for_pages(self) -> Self {
        Self {
            is_for_pages: true,
            ..self
        }
    }

    pub(crate) fn short(self, short: impl Into<String>) -> Self {
        Self {
            short: Some(short.into()),
            ..self
        }
    }

    /// The heading in a terminal.
    pub(crate) fn on_terminal(&self) -> String {
        match (&self.short, self.unit.as_str()) {
            (Some(short), _) => short.clone(),
            (None, "") => self.name.clone(),
            (None, unit) => format!("{}\n{unit}", self.name),
        }
    }

    /// The heading on one line, with its unit in parentheses.
    pub(crate) fn on_one_line(&self) -> String {
        match self.unit.as_str() {
            "" => self.title(),
            unit => format!("{} ({unit})", self.title()),
        }
    }

    /// The heading on a page, with its unit on a second line.
    pub(crate) fn on_page(&self) -> String {
        match self.unit.as_str() {
            "" => self.title(),
            unit => format!("{}\n{unit}", self.title()),
        }
    }

    /// The name with an upper-case initial. Names such as `p99` stay as they are.
    fn title(&self) -> String {
        let mut words = self.name.split(|it: char| !it.is_ascii_alphanumeric());
        let first = words.next().unwrap_or_default();
        if !first.chars().all(|it| it.is_ascii_lowercase()) || first.is_empty() {
            return self.name.clone();
        }
        let (initial, rest) = self.name.split_at(1);
        initial.to_uppercase() + rest
    }
}

/// Meaning of a cell, for formats that show it by markup.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Look {
    #[default]
    Plain,
    Code,
    /// The verdict on a variant.
    Verdict {
        is_invalid: bool,
    },
    /// The state of a check, or the ruling of a gate. It has a tone if it is not in order.
    State,
    Ruling,
}

/// A cell in the unit of its column.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) brief: String,
    /// The text of formats with more space.
    pub(crate) whole: Option<String>,
    pub(crate) look: Look,
    /// Tone of the text. For a figure with a difference, it is the tone of the difference.
    pub(crate) tone: Option<Tone>,
    /// The difference from the baseline. A terminal does not show it.
    pub(crate) difference: Option<String>,
    /// Explanation that a page shows under the pointer.
    pub(crate) remark: Option<String>,
    /// The metric, for scripts that read a page.
    pub(crate) metric: Option<Metric>,
}

impl Cell {
    /// A text, and a longer one for formats with more space.
    pub(crate) fn long(brief: impl Into<String>, whole: impl Into<String>) -> Self {
        Self {
            whole: Some(whole.into()),
            ..Self::from(brief.into())
        }
    }

    pub(crate) fn looks(self, look: Look, tone: Option<Tone>) -> Self {
        Self { look, tone, ..self }
    }

    /// The text on a page, with the error of a figure.
    pub(crate) fn whole(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.brief)
    }

    /// True if the tone belongs to the text itself.
    pub(crate) fn is_toned(&self) -> bool {
        self.tone.is_some() && self.look != Look::Plain
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            brief: text,
            ..Self::default()
        }
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::from(text.clone())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl Table {
    pub(crate) fn new(
        label: &'static str,
        columns: impl Into<Vec<Column>>,
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Self {
        Self {
            label,
            columns: columns.into(),
            rows: rows.into_iter().collect(),
            notes: Vec::new(),
        }
    }

    /// The table with a sentence below it. A table without rows has none.
    pub(crate) fn with_note(self, note: &str) -> Self {
        match self.rows.is_empty() {
            true => self,
            false => self.with_notes(vec![note.to_owned()]),
        }
    }

    pub(crate) fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// The table with its last column next to the first one.
    pub(crate) fn with_last_column_second(mut self) -> Self {
        fn moved<T>(cells: &mut [T]) {
            if let [_, rest @ ..] = cells {
                rest.rotate_right(usize::from(!rest.is_empty()));
            }
        }
        moved(&mut self.columns);
        self.rows.iter_mut().for_each(|row| moved(row));
        self
    }

    /// The table without its last column.
    pub(crate) fn without_last_column(mut self) -> Self {
        self.columns.pop();
        for row in &mut self.rows {
            row.pop();
        }
        self
    }
}

/// A row of texts.
pub(crate) fn row<const N: usize>(texts: [String; N]) -> Vec<Cell> {
    texts.map(Cell::from).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_capitalizes_words_and_keeps_symbols() {
        for (name, title) in [
            ("not sustained", "Not sustained"),
            ("bytes/response", "Bytes/response"),
            ("p99", "p99"),
            ("50 %", "50 %"),
            ("CPU", "CPU"),
        ] {
            assert_eq!(Column::words(name).title(), title);
        }
        let column = Column::figure("peak memory", "MiB").short("memory\nMiB");
        assert_eq!(column.on_terminal(), "memory\nMiB");
        assert_eq!(column.on_one_line(), "Peak memory (MiB)");
        assert_eq!(column.on_page(), "Peak memory\nMiB");
    }
}
