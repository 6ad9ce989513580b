//! A page in parts: one for each heading of the second level.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag};

use crate::paths::heading_id;

/// A page in parts.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Text before the first heading of the second level.
    pub(crate) start: String,
    pub(crate) parts: Vec<Part>,
}

/// One part of a page.
#[derive(Debug)]
pub(crate) struct Part {
    /// The heading as it is written, without its marks.
    pub(crate) title: String,
    /// Identifier of the heading.
    pub(crate) id: String,
    /// Identifiers of all headings of the part.
    pub(crate) headings: Vec<String>,
    /// The text. Its first heading has the first level.
    pub(crate) text: String,
}

/// Splits a page. Code blocks that contain `## ` stay whole.
pub(crate) fn by_heading(text: &str) -> Whole {
    let mut starts = Vec::new();
    let mut ids: Vec<(usize, String)> = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Start(Tag::Heading { level, .. }) = event {
            let title = text.get(range.clone()).unwrap_or_default();
            ids.push((range.start, heading_id(title)));
            if level == HeadingLevel::H2 {
                starts.push(range.start);
            }
        }
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let parts = starts.iter().zip(ends).map(|(&start, end)| {
        let body = text.get(start..end).unwrap_or_default();
        let (first, rest) = body.split_once('\n').unwrap_or((body, ""));
        let title = first.trim_start_matches('#').trim().to_owned();
        let inside = ids.iter().filter(|(at, _)| (start..end).contains(at));
        Part {
            id: heading_id(first),
            text: format!("# {title}\n{rest}"),
            title,
            headings: inside.map(|(_, id)| id.clone()).collect(),
        }
    });
    Whole {
        parts: parts.collect(),
        start: text
            .get(..starts.first().copied().unwrap_or(text.len()))
            .unwrap_or_default()
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_within_a_code_block_starts_no_part() {
        let whole = by_heading("# A\n\n```\n## not\n```\n\n## B\n\nx\n### C\n");
        assert_eq!(whole.start, "# A\n\n```\n## not\n```\n\n");
        assert_eq!(whole.parts.len(), 1);
        assert_eq!(whole.parts[0].text, "# B\n\nx\n### C\n");
        assert_eq!(whole.parts[0].headings, ["b", "c"]);
    }
}
