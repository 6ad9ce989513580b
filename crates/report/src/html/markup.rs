//! HTML markup for text, tables and lists.

use super::escape::escape;
use super::terms::explained;
use crate::cell;
use crate::table::{Cell, Column, Kind, Look, Table};
use crate::terminal::Tone;

/// A table of complete `<tr>` elements, in a region of this name. A wide table scrolls separately. `caption` is
/// markup above the table. Empty without rows.
pub(super) fn grid(label: &str, caption: &str, columns: &[Column], rows: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = |column: &Column| {
        let class = if is_words(column) {
            " class=\"words\""
        } else {
            ""
        };
        // The unit on a second line is not part of the word.
        let heading = column.on_page();
        let (word, unit) = heading.split_once('\n').unwrap_or((&heading, ""));
        let mut shown = explained(word, word);
        if !unit.is_empty() {
            shown += &format!("<br>{}", escape(unit));
        }
        format!("<th scope=\"col\"{class}>{shown}</th>")
    };
    let head: String = columns.iter().map(head).collect();
    let caption = match caption {
        "" => String::new(),
        text => format!("<p class=\"note\">{text}</p>\n"),
    };
    format!(
        "{caption}<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n\
         <table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n</div>\n",
        escape(label)
    )
}

/// Prints a table, and its notes as a list. `caption` is markup.
pub(super) fn table(table: &Table, caption: &str) -> String {
    let rows = table.rows.iter().map(|row| line(row, &table.columns));
    let rows: String = rows.collect();
    let notes = match table.notes.as_slice() {
        [] => String::new(),
        notes => list(notes),
    };
    grid(table.label, caption, &table.columns, &rows) + &notes
}

fn is_words(column: &Column) -> bool {
    column.kind != Kind::Figure
}

fn line(row: &[Cell], columns: &[Column]) -> String {
    let cells = row.iter().zip(columns).enumerate();
    let cells: String = cells
        .map(|(index, (cell, column))| match (index, cell.look) {
            (0, Look::Code) => format!(
                "<th scope=\"row\" class=\"words\"><code>{}</code></th>",
                escape(cell.whole())
            ),
            (0, _) => name(cell.whole()),
            _ => data(cell, is_words(column)),
        })
        .collect();
    let is_invalid = |cell: &Cell| matches!(cell.look, Look::Verdict { is_invalid: true });
    match row.iter().any(is_invalid) {
        true => format!("<tr class=\"invalid\">{cells}</tr>\n"),
        false => format!("<tr>{cells}</tr>\n"),
    }
}

fn data(cell: &Cell, is_words: bool) -> String {
    let (text, class) = (cell.whole(), class_of(cell.tone));
    let remark = cell.remark.as_deref().map(escape).unwrap_or_default();
    match cell.look {
        Look::Code => format!("<td class=\"words\"><code>{}</code></td>", escape(text)),
        Look::Ruling => format!("<td class=\"words {class}\"><b>{}</b></td>", escape(text)),
        Look::State => format!(
            "<td class=\"words\" title=\"{remark}\"><span class=\"state {0}\">{0}</span></td>",
            escape(text)
        ),
        Look::Verdict { .. } => {
            format!("<td class=\"words verdict {class}\">{}</td>", prose(text))
        }
        Look::Plain => match cell.metric {
            Some(metric) => format!(
                "<td data-metric=\"{}\" title=\"{remark}\"><span>{}</span>{}</td>",
                metric.key(),
                escape(text),
                beneath(cell, class)
            ),
            None if is_words => words(text),
            None => figure(text),
        },
    }
}

/// The difference below a figure.
fn beneath(cell: &Cell, class: &str) -> String {
    let difference = cell.difference.as_deref();
    difference.map_or_else(String::new, |text| {
        format!("<small class=\"{class}\">{}</small>", escape(text))
    })
}

/// The CSS class of a tone.
pub(super) fn class_of(tone: Option<Tone>) -> &'static str {
    match tone {
        Some(Tone::Worse) => "worse",
        Some(Tone::Better) => "better",
        Some(Tone::Refused) => "refused",
        Some(Tone::Heading) | None => "same",
    }
}

/// The first cell of a row.
pub(super) fn name(name: &str) -> String {
    format!("<th scope=\"row\" class=\"words\">{}</th>", escape(name))
}

/// A cell of words. An empty text is shown as a dash.
pub(super) fn words(text: &str) -> String {
    let text = if text.is_empty() { cell::NOTHING } else { text };
    format!("<td class=\"words\">{}</td>", prose(text))
}

/// A cell with a figure.
pub(super) fn figure(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

pub(super) fn list(lines: &[String]) -> String {
    let items: String = lines
        .iter()
        .map(|line| format!("<li>{}</li>\n", prose(line)))
        .collect();
    format!("<ul>\n{items}</ul>\n")
}

/// A closed block that the reader can open, such as a file or a command.
pub(super) fn folded(title: &str, content: &str) -> String {
    format!("<details><summary>{title}</summary>\n{content}</details>\n")
}

/// A sentence of our own. Backticks in it mark words of the user.
pub(super) fn prose(sentence: &str) -> String {
    let parts: Vec<&str> = sentence.split('`').collect();
    // With an odd number, backticks are part of the text and not markup.
    if parts.len().is_multiple_of(2) {
        return escape(sentence);
    }
    let mark = |(index, part): (usize, &&str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(mark).collect()
}
