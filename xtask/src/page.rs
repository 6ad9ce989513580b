//! Tables in documents that a chore writes, each between two lines of its own.

use std::fs;

use anyhow::{Context as _, bail};

use crate::chores::root;

/// Puts `page` where `document` holds the table of that title; everything else stays.
pub(crate) fn write(document: &str, title: &str, page: &str) -> anyhow::Result<()> {
    let path = root().join(document);
    let text = fs::read_to_string(&path).with_context(|| format!("{document} cannot be read"))?;
    let text = replaced(&text, title, page).with_context(|| document.to_owned())?;
    fs::write(&path, text).with_context(|| format!("{document} cannot be written"))
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

/// The document has a place for each of these tables, and writing one leaves the others.
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
