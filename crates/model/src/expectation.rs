//! Rules that decide if a response is right.

use std::fmt;
use std::sync::Arc;

use crate::{GrpcRule, StreamRule};

/// Rules that `weigh` checks on every response. The first rule that fails, in the order of the fields, names
/// the mismatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Rule for the status code.
    pub status: StatusRule,
    /// True if the body must be a JSON object without a top-level `errors` member. `null` and `[]` count as
    /// no errors.
    pub graphql: bool,
    /// Rule for the body.
    pub body: BodyRule,
    /// Headers that the response must contain with exactly this value. Names match in any case.
    pub headers: Vec<(String, String)>,
    /// A correct encoded form of the body. A body with equal bytes needs no decoding.
    pub encoded: Option<EncodedBody>,
    /// The status of the known body. Responses of another status may have another body. If it is `None` and
    /// several statuses are right, the first of them counts.
    pub body_of: Option<u16>,
    /// The rule of a response that is a stream of events. Rules for the body as a whole then have no effect.
    pub stream: Option<StreamRule>,
    /// The rule of a gRPC call. `None` if the request is no gRPC call.
    pub grpc: Option<GrpcRule>,
}

/// A body with a `Content-Encoding`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedBody {
    /// The value of the header, in lower case.
    pub coding: String,
    /// The encoded body.
    pub bytes: Arc<[u8]>,
}

/// Rule for the status code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusRule {
    /// 200 to 299.
    #[default]
    Success,
    /// Only this status, 100 to 599.
    Exactly(u16),
    /// One of several statuses or classes.
    Among(StatusSet),
    /// Every status is right.
    Any,
}

/// Several statuses and classes, in the given order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusSet {
    parts: [Option<StatusPart>; StatusSet::PARTS_MAX],
}

/// One status, or all statuses of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPart {
    /// 100 to 599.
    Code(u16),
    /// `2xx` is 2.
    Class(u16),
}

impl StatusPart {
    /// Parses `429` or `2xx`.
    ///
    /// # Errors
    /// When the text is neither. The error describes the expected form.
    pub fn read(text: &str) -> Result<StatusPart, String> {
        let text = text.trim();
        let wrong =
            || format!("expected a status from 100 to 599, or a class such as 2xx, found `{text}`");
        if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
            let class = class.parse().ok().filter(|class| (1..=5).contains(class));
            return class.map(StatusPart::Class).ok_or_else(wrong);
        }
        let code = text.parse().ok().filter(|code| (100..=599).contains(code));
        code.map(StatusPart::Code).ok_or_else(wrong)
    }

    /// True if the status equals this code or belongs to this class.
    #[must_use]
    pub fn has(self, status: u16) -> bool {
        match self {
            StatusPart::Code(code) => code == status,
            StatusPart::Class(class) => status / 100 == class,
        }
    }
}

impl StatusSet {
    /// Maximum number of parts.
    pub const PARTS_MAX: usize = 8;

    fn parts(&self) -> impl Iterator<Item = StatusPart> {
        self.parts.into_iter().flatten()
    }

    /// True if the first part matches this status. The known body belongs to this part.
    #[must_use]
    pub fn first_has(&self, status: u16) -> bool {
        self.parts().next().is_some_and(|part| part.has(status))
    }
}

impl StatusRule {
    /// The rule that accepts these statuses and classes.
    ///
    /// # Errors
    /// When `parts` is empty or has more than eight elements.
    pub fn of(parts: &[StatusPart]) -> Result<StatusRule, String> {
        match parts {
            [] => Err("expected a status, found none".to_owned()),
            [StatusPart::Class(2)] => Ok(StatusRule::Success),
            [StatusPart::Code(code)] => Ok(StatusRule::Exactly(*code)),
            parts if parts.len() > StatusSet::PARTS_MAX => Err(format!(
                "expected at most {} statuses, found {}. Write classes such as 4xx",
                StatusSet::PARTS_MAX,
                parts.len()
            )),
            parts => {
                let mut own = [None; StatusSet::PARTS_MAX];
                for (place, part) in own.iter_mut().zip(parts) {
                    *place = Some(*part);
                }
                Ok(StatusRule::Among(StatusSet { parts: own }))
            }
        }
    }

    /// Parses `200`, `2xx`, or several: `200,429` and `[2xx, 429]`.
    ///
    /// # Errors
    /// When the text has another form. The error describes the expected form.
    pub fn read(text: &str) -> Result<StatusRule, String> {
        let text = text.trim();
        let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let parts = inner.unwrap_or(text).split(',').map(StatusPart::read);
        StatusRule::of(&parts.collect::<Result<Vec<_>, _>>()?)
    }

    /// True if this status is right.
    #[must_use]
    #[inline]
    pub fn accepts(&self, status: u16) -> bool {
        match self {
            StatusRule::Success => (200..300).contains(&status),
            StatusRule::Exactly(expected) => status == *expected,
            StatusRule::Among(set) => set.parts().any(|part| part.has(status)),
            StatusRule::Any => true,
        }
    }

    /// True if the rule names this status, either itself or by its class.
    #[must_use]
    pub fn names(&self, status: u16) -> bool {
        *self != StatusRule::Any && self.accepts(status)
    }

    /// Statuses that request less load: 429 (RFC 6585, section 4) and 503 (RFC 9110, section 15.6.4).
    pub const PUSHED_BACK: [u16; 2] = [429, 503];
}

/// Rule for the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyRule {
    /// Every body is right.
    #[default]
    Any,
    /// Exactly these bytes.
    Equals(Arc<[u8]>),
    /// Exactly these bytes, or an equal JSON value without the ignored parts.
    Alike {
        /// The correct body.
        body: Arc<[u8]>,
        /// JSON pointers (RFC 6901) to values that differ by nature. Such a value may also be missing.
        ignore: Vec<String>,
    },
}

impl fmt::Display for StatusRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusRule::Success => out.write_str("2xx"),
            StatusRule::Exactly(status) => write!(out, "{status}"),
            StatusRule::Among(set) => {
                for (index, part) in set.parts().enumerate() {
                    let between = if index == 0 { "" } else { " or " };
                    write!(out, "{between}{part}")?;
                }
                Ok(())
            }
            StatusRule::Any => out.write_str("any"),
        }
    }
}

impl fmt::Display for StatusPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusPart::Code(code) => write!(out, "{code}"),
            StatusPart::Class(class) => write!(out, "{class}xx"),
        }
    }
}

impl BodyRule {
    /// The rule for a known body. `ignore` points to its values that differ by nature.
    #[must_use]
    pub fn known(body: &[u8], ignore: &[String]) -> BodyRule {
        let body = Arc::from(body);
        if ignore.is_empty() {
            BodyRule::Equals(body)
        } else {
            let ignore = ignore.to_vec();
            BodyRule::Alike { body, ignore }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_as_they_are_written() {
        let shown = |text: &str| StatusRule::read(text).map(|rule| rule.to_string());
        assert_eq!(StatusRule::read("2xx"), Ok(StatusRule::Success));
        assert_eq!(StatusRule::read("404"), Ok(StatusRule::Exactly(404)));
        assert_eq!(shown("200,429").as_deref(), Ok("200 or 429"));
        assert_eq!(shown("[2xx, 429]").as_deref(), Ok("2xx or 429"));
        for wrong in ["", "200,", "99", "600", "0xx", "6xx", "xx", "ok", "200-204"] {
            let error = shown(wrong).unwrap_err();
            assert!(error.contains("expected a status"), "{wrong}: {error}");
        }
        assert!(shown("1xx,2xx,3xx,4xx,5xx,200,201,202,203").is_err());
    }

    #[test]
    fn a_set_accepts_its_statuses_and_no_other() {
        let rule = StatusRule::read("2xx,429").unwrap();
        for (status, is_right) in [
            (200, true),
            (299, true),
            (429, true),
            (428, false),
            (301, false),
        ] {
            assert_eq!(rule.accepts(status), is_right, "{status}");
        }
        let StatusRule::Among(set) = rule else {
            panic!("{rule}");
        };
        assert!(set.first_has(204) && !set.first_has(429));
        assert!(!StatusRule::Any.names(429) && rule.names(429));
    }
}
