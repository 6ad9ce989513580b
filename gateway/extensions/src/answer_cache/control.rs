//! `Cache-Control` and related headers of a response (RFC 9111).

use std::time::Duration;

use http::{HeaderName, HeaderValue, header};

use super::LONGEST;

/// The clients that may receive a cached response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Public,
    Private,
}

/// The lifetime and the scope of a cached response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freshness {
    pub(super) time: Duration,
    pub(super) scope: Scope,
}

impl Freshness {
    /// `None` if the response must not be cached, for example without the header. `usual` is the lifetime for
    /// a header without a lifetime.
    pub(super) fn read(
        values: &impl Fn(&HeaderName) -> Vec<HeaderValue>,
        usual: Option<Duration>,
    ) -> Option<Self> {
        let lines = values(&header::CACHE_CONTROL);
        if lines.is_empty() || values(&header::VARY).iter().any(|it| it == "*") {
            return None;
        }
        let mut scope = Scope::Public;
        let (mut time, mut shared) = (None, None);
        for line in &lines {
            for directive in line.to_str().ok()?.split(',') {
                let (name, value) = match directive.trim().split_once('=') {
                    Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
                    None => (directive.trim(), None),
                };
                match name.to_ascii_lowercase().as_str() {
                    "no-store" | "no-cache" => return None,
                    "private" => scope = Scope::Private,
                    "max-age" => time = Some(seconds(value)?),
                    "s-maxage" => shared = Some(seconds(value)?),
                    _ => {}
                }
            }
        }
        let said = shared.or(time);
        let all = said.or(usual)?;
        // Time that an upstream cache has kept the response already.
        let age = match values(&header::AGE).first() {
            Some(age) if said.is_some() => seconds(age.to_str().ok())?,
            _ => Duration::ZERO,
        };
        let time = all.min(LONGEST).checked_sub(age)?;
        (!time.is_zero()).then_some(Self { time, scope })
    }
}

/// If the time is invalid, the response is not cached.
fn seconds(text: Option<&str>) -> Option<Duration> {
    let text = text?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A number that does not fit means the maximum lifetime.
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(control: &[&'static str], age: Option<&'static str>, vary: &'static str) -> String {
        let values = |name: &HeaderName| -> Vec<HeaderValue> {
            let texts: Vec<&'static str> = match name.as_str() {
                "cache-control" => control.to_vec(),
                "age" => age.into_iter().collect(),
                _ => vec![vary],
            };
            texts.into_iter().map(HeaderValue::from_static).collect()
        };
        match Freshness::read(&values, Some(Duration::from_secs(7))) {
            Some(it) => format!("{:?} {}", it.scope, it.time.as_secs()),
            None => "no".to_owned(),
        }
    }

    #[test]
    fn the_header_decides_and_without_it_nothing_is_kept() {
        for (control, expected) in [
            (&[][..], "no"),
            (&["public"], "Public 7"),
            (&["max-age=60"], "Public 60"),
            (&["Max-Age=\"60\", private"], "Private 60"),
            (&["max-age=60", "s-maxage=30"], "Public 30"),
            (&["max-age=60, no-store"], "no"),
            (&["max-age=60", "no-cache"], "no"),
            (&["max-age=0"], "no"),
            (&["max-age=-1"], "no"),
            (&["max-age=x"], "no"),
            (&["max-age"], "no"),
            (&["max-age=99999999999999999999999"], "Public 2592000"),
            (&["private"], "Private 7"),
        ] {
            assert_eq!(read(control, None, "accept"), expected, "{control:?}");
        }
        assert_eq!(read(&["max-age=60"], Some("20"), "accept"), "Public 40");
        assert_eq!(read(&["max-age=60"], Some("60"), "accept"), "no");
        assert_eq!(read(&["max-age=60"], Some("x"), "accept"), "no");
        assert_eq!(read(&["max-age=60"], None, "*"), "no");
    }
}
