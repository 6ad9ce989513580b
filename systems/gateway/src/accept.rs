//! Content negotiation: which of the things we can send does the client want most?
//!
//! RFC 9110, 12.5.1: each media type takes its weight from the most specific range that names it.
//! Equal weights: the specification's own media type first when it is named, else JSON.

use crate::reply::Media;

/// What the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// A GraphQL response.
    Response(Media),
    /// The page for a browser.
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Anything,
    Type,
    Exact,
}

/// Weight in thousandths and the precision of the range that gave it.
#[derive(Clone, Copy, Debug, Default)]
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
pub(crate) fn wish(accept: Option<&[u8]>, page_is_offered: bool) -> Option<Wish> {
    // The values of nearly every program that is not a browser need no parsing.
    match accept {
        None | Some(b"" | b"*/*") => Some(Wish::Response(Media::Json)),
        Some(b"application/json") => Some(Wish::Response(Media::JsonOnly)),
        Some(b"application/graphql-response+json") => Some(Wish::Response(Media::GraphqlResponse)),
        Some(accept) => weigh(std::str::from_utf8(accept).ok()?, page_is_offered),
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
            // Clients that can take an answer in pieces can take one piece.
            "multipart/mixed" => legacy.take(Precision::Type, thousandths),
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
    let json = match modern.rank() {
        None if legacy.rank().is_some_and(|(_, is_named)| is_named) => Media::JsonOnly,
        _ => Media::Json,
    };
    // A page only for who asks for one by name: `*/*` is what programs send.
    let page = if page_is_offered { page.rank() } else { None };
    let mut best: Option<((u16, bool), Wish)> = None;
    for (rank, wish) in [
        (page, Wish::Page),
        (
            modern.rank().filter(|(_, is_named)| *is_named),
            Wish::Response(Media::GraphqlResponse),
        ),
        (legacy.rank(), Wish::Response(json)),
    ] {
        if let Some(rank) = rank
            && best.is_none_or(|(had, _)| rank > had)
        {
            best = Some((rank, wish));
        }
    }
    best.map(|(_, wish)| wish)
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
pub(crate) fn parse_weight(text: &str) -> Option<u16> {
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
pub(crate) fn is_not_another_charset(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            let value = value.trim().trim_matches('"');
            value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_gets_what_it_wants_most() {
        let response = |media| Some(Wish::Response(media));
        let cases = [
            ("", response(Media::Json)),
            ("*/*", response(Media::Json)),
            ("application/*", response(Media::Json)),
            ("application/json", response(Media::JsonOnly)),
            ("Application/JSON; charset=utf-8", response(Media::JsonOnly)),
            ("application/json, text/plain, */*", response(Media::Json)),
            (
                "application/graphql-response+json",
                response(Media::GraphqlResponse),
            ),
            (
                "application/graphql-response+json, application/json",
                response(Media::GraphqlResponse),
            ),
            (
                "application/graphql-response+json;q=0.5, application/json",
                response(Media::Json),
            ),
            (
                "multipart/mixed;deferSpec=20220824,application/json",
                response(Media::JsonOnly),
            ),
            ("multipart/mixed;deferSpec=20220824", response(Media::Json)),
            (
                "text/html,application/xhtml+xml,*/*;q=0.8",
                Some(Wish::Page),
            ),
            ("text/plain", None),
            ("application/json;charset=latin1", None),
            ("application/json;q=0", None),
        ];
        for (accept, expected) in cases {
            assert_eq!(wish(Some(accept.as_bytes()), true), expected, "{accept}");
        }
        assert_eq!(wish(Some(b"\xff"), true), None);
    }

    #[test]
    fn no_page_where_none_is_offered() {
        assert_eq!(wish(Some(b"text/html"), false), None);
        assert_eq!(
            wish(Some(b"text/html,*/*;q=0.8"), false),
            Some(Wish::Response(Media::Json))
        );
    }
}
