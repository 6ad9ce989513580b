//! The model of a report's table. Text, Markdown and HTML print it without knowing its content.

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
    pub(crate) name: &'static str,
    /// The unit of the figures. It may be empty.
    unit: &'static str,
    /// A shorter heading for the terminal, with its unit on a second line.
    short: Option<&'static str>,
    pub(crate) kind: Kind,
}

impl Column {
    pub(crate) fn words(name: &'static str) -> Self {
        Self {
            name,
            unit: "",
            short: None,
            kind: Kind::Words,
        }
    }

    pub(crate) fn figure(name: &'static str, unit: &'static str) -> Self {
        Self {
            unit,
            kind: Kind::Figure,
            ..Self::words(name)
        }
    }

    pub(crate) fn aside(self) -> Self {
        Self {
            kind: Kind::Aside,
            ..self
        }
    }

    pub(crate) fn short(self, short: &'static str) -> Self {
        Self {
            short: Some(short),
            ..self
        }
    }

    /// The heading in a terminal.
    pub(crate) fn on_terminal(&self) -> String {
        match (self.short, self.unit) {
            (Some(short), _) => short.to_owned(),
            (None, "") => self.name.to_owned(),
            (None, unit) => format!("{}\n{unit}", self.name),
        }
    }

    /// The heading on one line, with its unit in parentheses.
    pub(crate) fn on_one_line(&self) -> String {
        match self.unit {
            "" => self.title(),
            unit => format!("{} ({unit})", self.title()),
        }
    }

    /// The heading on a page, with its unit on a second line.
    pub(crate) fn on_page(&self) -> String {
        match self.unit {
            "" => self.title(),
            unit => format!("{}\n{unit}", self.title()),
        }
    }

    /// The name with an upper-case initial. Names such as `p99` stay as they are.
    fn title(&self) -> String {
        let mut words = self.name.split(|it: char| !it.is_ascii_alphanumeric());
        let first = words.next().unwrap_or_default();
        if !first.chars().all(|it| it.is_ascii_lowercase()) || first.is_empty() {
            return self.name.to_owned();
        }
        let (initial, rest) = self.name.split_at(1);
        initial.to_uppercase() + rest
    }
}

/// A cell in the unit of its column.
pub(crate) enum Cell {
    Text(String),
    /// A figure. The terminal has no space for its error.
    Measured {
        value: String,
        with_error: String,
    },
}

impl Cell {
    /// The text in a terminal.
    pub(crate) fn brief(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Measured { value, .. } => value,
        }
    }

    /// The text on a page, with the error of a figure.
    pub(crate) fn whole(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Measured { with_error, .. } => with_error,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
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
