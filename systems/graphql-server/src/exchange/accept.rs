//! Content negotiation: which of the things we can send does the client want most?
//!
//! RFC 9110, 12.5.1: each media type takes its weight from the most specific range that names
//! it. Equal weights: the specification's own media type first when it is named, else JSON, the
//! answer that every client understands.

use crate::reply::Media;

/// What the client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// A GraphQL response.
    Response(Media),
    /// The page for a browser.
    Page,
}

/// Media ranges by how much they leave open; the more specific wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Anything,
    Type,
    Exact,
}

/// Weight in thousandths and the precision of the range that gave it.
#[derive(Debug, Clone, Copy, Default)]
struct Weight(Option<(Precision, u16)>);

impl Weight {
    fn take(&mut self, precision: Precision, thousandths: u16) {
        if self.0.is_none_or(|(had, _)| precision >= had) {
            self.0 = Some((precision, thousandths));
        }
    }

    /// Weight, then whether the type was named; `None` when the client does not want it.
    fn rank(self) -> Option<(u16, bool)> {
        self.0
            .filter(|(_, thousandths)| *thousandths > 0)
            .map(|(precision, thousandths)| (thousandths, precision == Precision::Exact))
    }
}

/// What the client wants most; `None` when it wants nothing that we have.
pub(super) fn wish(accept: Option<&str>, page_is_offered: bool) -> Option<Wish> {
    // The two values of nearly every program that is not a browser need no parsing.
    match accept {
        None | Some("" | "*/*" | "application/json") => Some(Wish::Response(Media::Json)),
        Some("application/graphql-response+json") => Some(Wish::Response(Media::GraphqlResponse)),
        Some(accept) => weigh(accept, page_is_offered),
    }
}

fn weigh(accept: &str, page_is_offered: bool) -> Option<Wish> {
    let (mut modern, mut legacy, mut page) =
        (Weight::default(), Weight::default(), Weight::default());
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let Some(thousandths) = weight_of(parts) else {
            continue;
        };
        match media.as_str() {
            "application/graphql-response+json" => modern.take(Precision::Exact, thousandths),
            "application/json" => legacy.take(Precision::Exact, thousandths),
            "text/html" => page.take(Precision::Exact, thousandths),
            "application/*" => {
                modern.take(Precision::Type, thousandths);
                legacy.take(Precision::Type, thousandths);
            }
            "*/*" => {
                modern.take(Precision::Anything, thousandths);
                legacy.take(Precision::Anything, thousandths);
            }
            _ => {}
        }
    }
    // A page only for who asks for one by name: `*/*` is what programs send.
    let page = if page_is_offered { page.rank() } else { None };
    // `max_by_key` keeps the last of equals, so JSON beats an unnamed modern type, while a named
    // one is greater than an unnamed one; two named ones are settled before.
    let modern_is_named = modern.rank().is_some_and(|(_, is_named)| is_named);
    let responses = if modern_is_named {
        [
            (legacy.rank(), Media::Json),
            (modern.rank(), Media::GraphqlResponse),
        ]
    } else {
        [
            (modern.rank(), Media::GraphqlResponse),
            (legacy.rank(), Media::Json),
        ]
    };
    responses
        .into_iter()
        .map(|(rank, media)| (rank, Wish::Response(media)))
        .chain([(page, Wish::Page)])
        .filter_map(|(rank, wish)| rank.map(|rank| (rank, wish)))
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, wish)| wish)
}

/// The weight in thousandths; `None` when the range cannot be served (another charset, or a
/// weight that is no number from 0 to 1).
fn weight_of<'a>(parameters: impl Iterator<Item = &'a str>) -> Option<u16> {
    let mut thousandths = 1000;
    for parameter in parameters {
        if let Some(("q" | "Q", value)) = parameter.split_once('=') {
            thousandths = parse_weight(value.trim())?;
        } else if !is_not_another_charset(parameter) {
            return None;
        }
    }
    Some(thousandths)
}

/// `0`, `0.5`, `1.000`: RFC 9110, 12.4.2.
fn parse_weight(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{fraction:0<3}").parse().ok()?;
    match (whole, thousandths) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// Whether a media type's parameter leaves UTF-8 as the charset.
pub(super) fn is_not_another_charset(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
        }
        _ => true,
    }
}
