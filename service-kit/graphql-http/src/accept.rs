//! Content negotiation: which of the server's media types does the client prefer?
//!
//! RFC 9110, 12.5.1: each media type takes its weight from the most specific range that matches it. For equal
//! weights, the draft's own media type comes first if the client names it. Otherwise JSON comes first,
//! because every client supports it.

mod events;
mod parts;

use std::{iter, str};

use crate::content_type::leaves_utf_8;
use crate::media::Media;

pub use events::{EventFormat, event_format};
pub use parts::{IncrementalFormat, incremental_format};

/// The form of response that the client prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Negotiated {
    /// A GraphQL response in this media type.
    Response(Media),
    /// The page for a browser.
    Page,
}

/// Precision of a media range. A more specific range wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precision {
    Anything,
    Type,
    Exact,
}

/// Weight in thousandths, and the precision of its range.
#[derive(Clone, Copy, Debug, Default)]
struct Weight(Option<(Precision, u16)>);

impl Weight {
    fn take(&mut self, precision: Precision, thousandths: u16) {
        // The later of two equal ranges counts. RFC 9110 leaves this open.
        if self.0.is_none_or(|(had, _)| precision >= had) {
            self.0 = Some((precision, thousandths));
        }
    }

    /// The weight, and true if the type was named. `None` if the client does not accept the type.
    fn rank(self) -> Option<(u16, bool)> {
        self.0
            .filter(|(_, thousandths)| *thousandths > 0)
            .map(|(precision, thousandths)| (thousandths, precision == Precision::Exact))
    }

    fn is_named(self) -> bool {
        self.rank().is_some_and(|(_, is_named)| is_named)
    }
}

/// The response that the client prefers. `None` if it accepts no available media type.
///
/// `accept` are the lines of the `Accept` header. They count as one list (RFC 9110, 5.3).
pub fn negotiate<'a>(
    mut accept: impl Iterator<Item = &'a [u8]>,
    page_is_offered: bool,
) -> Option<Negotiated> {
    let (first, second) = (accept.next(), accept.next());
    let Some(second) = second else {
        // The usual values of programs other than browsers need no parsing. They are the common case of a
        // server under load.
        return match first {
            None | Some(b"" | b"*/*") => Some(Negotiated::Response(Media::Json)),
            Some(b"application/json") => Some(Negotiated::Response(Media::JsonOnly)),
            Some(b"application/graphql-response+json") => {
                Some(Negotiated::Response(Media::GraphqlResponse))
            }
            Some(only) => Weights::of([only].into_iter())?.preferred(page_is_offered),
        };
    };
    let lines = first.into_iter().chain([second]).chain(accept);
    Weights::of(lines)?.preferred(page_is_offered)
}

/// The client's weights of the available media types.
#[derive(Default)]
struct Weights {
    modern: Weight,
    legacy: Weight,
    page: Weight,
}

impl Weights {
    /// Reads the header. `None` if it is not text.
    fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut weights = Self::default();
        for line in lines {
            for range in str::from_utf8(line).ok()?.split(',') {
                weights.take(range);
            }
        }
        Some(weights)
    }

    fn take(&mut self, range: &str) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let Some(thousandths) = weight_of(parts) else {
            return;
        };
        let mut take_both = |precision| {
            self.modern.take(precision, thousandths);
            self.legacy.take(precision, thousandths);
        };
        match media.as_str() {
            "application/graphql-response+json" => self.modern.take(Precision::Exact, thousandths),
            "application/json" => self.legacy.take(Precision::Exact, thousandths),
            "text/html" => self.page.take(Precision::Exact, thousandths),
            // A client that accepts a response in parts also accepts a response in one part.
            "multipart/mixed" => self.legacy.take(Precision::Type, thousandths),
            "application/*" => take_both(Precision::Type),
            "*/*" => take_both(Precision::Anything),
            _ => {}
        }
    }

    fn preferred(&self, page_is_offered: bool) -> Option<Negotiated> {
        let json = match self.modern.rank() {
            // Such a client is older than the newer type, and does not expect statuses other than 200 for a
            // refused document.
            None if self.legacy.is_named() => Media::JsonOnly,
            _ => Media::Json,
        };
        let modern = (self.modern.rank(), Media::GraphqlResponse);
        let legacy = (self.legacy.rank(), json);
        // `max_by_key` returns the last of equal values: JSON if the newer type is not named, and the newer
        // type if both are named.
        let responses = if self.modern.is_named() {
            [legacy, modern]
        } else {
            [modern, legacy]
        };
        // Only a client that names HTML receives a page, because programs send `*/*`.
        let page = self.page.rank().filter(|_| page_is_offered);
        responses
            .into_iter()
            .map(|(rank, media)| (rank, Negotiated::Response(media)))
            .chain([(page, Negotiated::Page)])
            .filter_map(|(rank, negotiated)| Some((rank?, negotiated)))
            .max_by_key(|(rank, _)| *rank)
            .map(|(_, negotiated)| negotiated)
    }
}

/// The parameters of a range, without spaces around them.
type Parameters<'a> = iter::Map<str::Split<'a, char>, fn(&str) -> &str>;

/// The format of the range with the highest weight, or of the first of equal ranges. `format_of` receives a
/// range's media type and parameters. `None` if it returns `None` for all ranges.
fn liked_best<'a, F>(
    accept: impl Iterator<Item = &'a [u8]>,
    format_of: impl Fn(&str, Parameters<'a>) -> Option<F>,
) -> Option<F> {
    let mut best: Option<(u16, F)> = None;
    for line in accept {
        for range in std::str::from_utf8(line).ok()?.split(',') {
            let mut parts: Parameters<'a> = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let Some(format) = format_of(media, parts.clone()) else {
                continue;
            };
            let weight = weight_of(parts).unwrap_or(0);
            if weight > 0 && best.as_ref().is_none_or(|(had, _)| weight > *had) {
                best = Some((weight, format));
            }
        }
    }
    best.map(|(_, format)| format)
}

/// The weight in thousandths. `None` if the range requires another charset, or its weight is not a number
/// from 0 to 1.
fn weight_of<'a>(parameters: impl Iterator<Item = &'a str>) -> Option<u16> {
    let mut thousandths = 1000;
    for parameter in parameters {
        if let Some(("q" | "Q", value)) = parameter.split_once('=') {
            thousandths = parse_weight(value.trim())?;
        } else if !leaves_utf_8(parameter) {
            return None;
        }
    }
    Some(thousandths)
}

/// A weight in thousandths: `0`, `0.5`, `1.000` (RFC 9110, 12.4.2).
#[must_use]
pub fn parse_weight(text: &str) -> Option<u16> {
    // Parsed by hand and not as a float: the grammar has at most three digits, and thousandths compare
    // exactly.
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

#[cfg(test)]
mod tests;
