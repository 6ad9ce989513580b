//! Negotiates the format of an incremental response, if the client accepts one.

use super::liked_best;

/// Formats of incremental delivery over `multipart/mixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrementalFormat {
    /// `deferSpec=20220824`: parts contain their path and label.
    Defer20220824,
    /// `incrementalSpec=v0.2`: parts refer to earlier announcements in `pending`.
    IncrementalV02,
}

impl IncrementalFormat {
    /// The media type parameter that identifies the format.
    #[must_use]
    pub const fn parameter(self) -> &'static str {
        match self {
            Self::Defer20220824 => "deferSpec=20220824",
            Self::IncrementalV02 => "incrementalSpec=v0.2",
        }
    }
}

/// The format that the client prefers, the first of equals. `None` if it names no format and needs a single
/// response.
///
/// `accept` are the lines of the `Accept` header. They count as one list.
pub fn incremental_format<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Option<IncrementalFormat> {
    liked_best(accept, |media, mut parameters| {
        let is_multipart = media.eq_ignore_ascii_case("multipart/mixed");
        parameters.find_map(format_of).filter(|_| is_multipart)
    })
}

fn format_of(parameter: &str) -> Option<IncrementalFormat> {
    let (name, value) = parameter.split_once('=')?;
    let (name, value) = (name.trim(), value.trim().trim_matches('"'));
    if name.eq_ignore_ascii_case("deferSpec") && value == "20220824" {
        return Some(IncrementalFormat::Defer20220824);
    }
    (name.eq_ignore_ascii_case("incrementalSpec") && value == "v0.2")
        .then_some(IncrementalFormat::IncrementalV02)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Option<IncrementalFormat> {
        incremental_format([accept.as_bytes()].into_iter())
    }

    #[test]
    fn only_a_client_that_names_a_format_gets_parts() {
        for none in [
            "*/*",
            "application/json",
            "multipart/mixed",
            "multipart/mixed;deferSpec=20990101, application/json",
            "multipart/mixed;deferSpec=20220824;q=0, application/json",
            "multipart/mixed;subscriptionSpec=1.0",
            "text/html;deferSpec=20220824",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        let path = Some(IncrementalFormat::Defer20220824);
        let pending = Some(IncrementalFormat::IncrementalV02);
        for (accept, format) in [
            (
                "multipart/mixed;deferSpec=20220824,application/json;q=0.9",
                path,
            ),
            (
                "Multipart/Mixed; boundary=\"graphql\"; deferspec=\"20220824\"",
                path,
            ),
            (
                "application/json, multipart/mixed; incrementalSpec=v0.2",
                pending,
            ),
            (
                "multipart/mixed;deferSpec=20220824;q=0.5, multipart/mixed;incrementalSpec=v0.2",
                pending,
            ),
            (
                "multipart/mixed;deferSpec=20220824, multipart/mixed;incrementalSpec=v0.2",
                path,
            ),
        ] {
            assert_eq!(of(accept), format, "{accept}");
        }
    }
}
