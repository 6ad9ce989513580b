//! Tables in documents that a task writes. Each table stands between two marker lines.

use std::fs;

use anyhow::{Context as _, bail};

use crate::repository::root;

/// Replaces the table of that title in `document` by `page`. The rest stays unchanged.
pub(crate) fn write(document: &str, title: &str, page: &str) -> anyhow::Result<()> {
    let path = root().join(document);
    let text = fs::read_to_string(&path).with_context(|| format!("{document} cannot be read"))?;
    let text = replaced(&text, title, page).with_context(|| document.to_owned())?;
    fs::write(&path, text).with_context(|| format!("{document} cannot be written"))
}

/// Returns the text with markers for the table of that title. New markers are added at the end.
pub(crate) fn with_place(text: &str, title: &str) -> String {
    let begin = format!("<!-- written by a chore: {title} -->");
    if text.contains(&begin) {
        return text.to_owned();
    }
    format!(
        "{}\n\n{begin}\n\n<!-- end of {title} -->\n",
        text.trim_end()
    )
}

/// The text before the table of that title, and the table, without the marker lines around it.
pub(crate) fn place<'a>(text: &'a str, title: &str) -> Option<(&'a str, &'a str)> {
    let (before, rest) = text.split_once(&format!("<!-- written by a chore: {title} -->"))?;
    let (table, _) = rest.split_once(&format!("<!-- end of {title} -->"))?;
    Some((before, table.trim()))
}

fn replaced(text: &str, title: &str, page: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- written by a chore: {title} -->");
    let end = format!("<!-- end of {title} -->");
    let Some((before, rest)) = text.split_once(&begin) else {
        bail!("it has no line `{begin}`");
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("it has no line `{end}`");
    };
    let page = page.trim();
    Ok(format!("{before}{begin}\n\n{page}\n\n{end}{after}"))
}

/// Checks that the document has markers for each of these tables, and that writing one leaves the other
/// tables unchanged.
#[cfg(test)]
pub(crate) fn assert_places(document: &str, titles: &[&str]) {
    let text = fs::read_to_string(root().join(document)).unwrap();
    for title in titles {
        let written = replaced(&text, title, "| another table |").unwrap();
        for other in titles {
            let is_same = |written: &str| {
                let place = |text: &str| {
                    let begin = format!("<!-- written by a chore: {other} -->");
                    let rest = text.split_once(&begin).unwrap().1.to_owned();
                    rest.split("<!-- end of").next().unwrap().to_owned()
                };
                place(written) == place(&text)
            };
            assert_eq!(is_same(&written), other != title, "{title}, {other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_made_once_and_what_stands_around_it_stays() {
        let text = with_place("# Title\n", "one");
        let text = replaced(&text, "one", "| 1 |\n").unwrap() + "A conclusion.\n";
        let text = with_place(&with_place(&text, "one"), "two");
        let text = replaced(&text, "two", "| 2 |").unwrap();
        assert_eq!(
            replaced(&text, "one", "| 3 |").unwrap(),
            "# Title\n\n<!-- written by a chore: one -->\n\n| 3 |\n\n<!-- end of one -->\nA conclusion.\n\n\
             <!-- written by a chore: two -->\n\n| 2 |\n\n<!-- end of two -->\n"
        );
    }
}
