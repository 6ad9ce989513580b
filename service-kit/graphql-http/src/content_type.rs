//! Checks that a body is JSON.

/// True if `Content-Type` declares JSON in UTF-8. Without a charset, JSON is UTF-8.
///
/// `accepted` are the media types that count as JSON, in lower case.
#[must_use]
pub fn is_json(content_type: Option<&[u8]>, accepted: &[&str]) -> bool {
    let Some(content_type) = content_type else {
        return false;
    };
    // The usual value needs no parsing.
    if let Some(first) = accepted.first()
        && content_type == first.as_bytes()
    {
        return true;
    }
    let Ok(text) = std::str::from_utf8(content_type) else {
        return false;
    };
    let mut parts = text.split(';').map(str::trim);
    // `split` yields at least one part. Empty text matches no type.
    let media = parts.next().unwrap_or_default();
    accepted.iter().any(|name| media.eq_ignore_ascii_case(name)) && parts.all(leaves_utf_8)
}

/// True if a parameter of a media type is compatible with UTF-8.
pub(crate) fn leaves_utf_8(parameter: &str) -> bool {
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
    use super::is_json;

    #[test]
    fn json_in_utf_8_is_json_however_it_is_written() {
        let is = |value: &str| is_json(Some(value.as_bytes()), &["application/json"]);
        for json in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF8\"",
            "application/json; profile=x",
        ] {
            assert!(is(json), "{json}");
        }
        for other in [
            "",
            "text/plain",
            "application/json+x",
            "application/json; charset=latin1",
            "application/graphql+json",
        ] {
            assert!(!is(other), "{other}");
        }
        assert!(!is_json(None, &["application/json"]));
        assert!(!is_json(Some(b"\xff"), &["application/json"]));
        let both = ["application/json", "application/graphql+json"];
        assert!(is_json(Some(b"application/graphql+json"), &both));
    }
}
