//! The server and the path of a URL with placeholders.

use k6_script::TextPart;

/// A URL, split into its server and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptUrl {
    /// Host and port, or the name of the environment that contains them.
    pub(super) origin: String,
    /// Path and query.
    pub(super) path: Vec<TextPart>,
    /// User and password.
    pub(super) user: Option<Vec<TextPart>>,
    /// A name of the environment. Its value may end with the begin of the path.
    pub(super) base: Option<String>,
}

/// Splits a URL.
///
/// # Errors
/// The reason why its path is not known.
pub(super) fn split(url: &[TextPart]) -> Result<ScriptUrl, String> {
    let mut rest = url.to_vec();
    let scheme = match rest.first() {
        Some(TextPart::Plain(text)) => match text.split_once("://") {
            Some((scheme @ ("http" | "https"), after)) => {
                let scheme = scheme.to_owned();
                rest[0] = TextPart::Plain(after.to_owned());
                scheme
            }
            _ => return Err("its URL does not begin with http:// or https://".to_owned()),
        },
        Some(TextPart::Environment(name)) => {
            let name = name.clone();
            rest.remove(0);
            match rest.first() {
                // The scheme alone is in the environment.
                Some(TextPart::Plain(text)) if text.starts_with("://") => {
                    rest[0] = TextPart::Plain(text[3..].to_owned());
                    "http".to_owned()
                }
                Some(TextPart::Plain(text)) if text.starts_with(['/', ':']) => {
                    return after_base(&name, rest);
                }
                // A value of an answer that begins with a slash, such as `Location`.
                Some(TextPart::Answer { .. }) => return after_base(&name, rest),
                _ => {
                    return Err(format!(
                        "its path is in `__ENV.{name}`. Give it with `--env {name}=http://HOST/PATH`"
                    ));
                }
            }
        }
        Some(other) => return Err(unknown("its URL", other)),
        None => return Err("its URL is empty".to_owned()),
    };
    let (authority, path) = authority(rest, false);
    let (user, host) = user(authority);
    let origin = origin(&host, &scheme)?;
    Ok(ScriptUrl {
        origin,
        path: rooted(path),
        user,
        base: None,
    })
}

/// The rest after a name of the environment that contains scheme and host.
fn after_base(name: &str, rest: Vec<TextPart>) -> Result<ScriptUrl, String> {
    let (port, path) = authority(rest, true);
    let port = match port.as_slice() {
        [] => String::new(),
        [TextPart::Plain(port)] => port.clone(),
        [other, ..] => return Err(unknown("its port", other)),
    };
    Ok(ScriptUrl {
        origin: format!("__ENV.{name}{port}"),
        path: rooted(path),
        user: None,
        base: port.is_empty().then(|| name.to_owned()),
    })
}

/// The parts before and after the begin of the path. `has_host` is true if the host is before these parts.
fn authority(parts: Vec<TextPart>, has_host: bool) -> (Vec<TextPart>, Vec<TextPart>) {
    let mut authority = Vec::new();
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        if let TextPart::Plain(text) = &part
            && let Some(end) = text.find(['/', '?', '#'])
        {
            let (before, after) = text.split_at(end);
            if !before.is_empty() {
                authority.push(TextPart::Plain(before.to_owned()));
            }
            let path = std::iter::once(TextPart::Plain(after.to_owned())).chain(parts);
            return (authority, path.collect());
        }
        let is_host_complete = match authority.last() {
            Some(TextPart::Plain(text)) => !text.ends_with([':', '.', '@', '-']),
            Some(TextPart::Environment(_)) => true,
            _ => has_host,
        };
        // The path is in a value of an answer, which begins with a slash.
        if matches!(part, TextPart::Answer { .. }) && is_host_complete {
            return (authority, std::iter::once(part).chain(parts).collect());
        }
        if part != TextPart::Plain(String::new()) {
            authority.push(part);
        }
    }
    (authority, Vec::new())
}

/// User and host of an authority.
fn user(authority: Vec<TextPart>) -> (Option<Vec<TextPart>>, Vec<TextPart>) {
    let at = authority
        .iter()
        .rposition(|part| matches!(part, TextPart::Plain(text) if text.contains('@')));
    let Some(at) = at else {
        return (None, authority);
    };
    let mut user = authority[..at].to_vec();
    let mut host = authority[at + 1..].to_vec();
    if let TextPart::Plain(text) = &authority[at]
        && let Some((before, after)) = text.rsplit_once('@')
    {
        if !before.is_empty() {
            user.push(TextPart::Plain(before.to_owned()));
        }
        if !after.is_empty() {
            host.insert(0, TextPart::Plain(after.to_owned()));
        }
    }
    (Some(user), host)
}

/// Host and port in lower case. The port of the scheme is written out.
fn origin(host: &[TextPart], scheme: &str) -> Result<String, String> {
    let mut origin = String::new();
    for part in host {
        match part {
            TextPart::Plain(text) => origin += &text.to_ascii_lowercase(),
            TextPart::Environment(name) => origin += &format!("__ENV.{name}"),
            other => return Err(unknown("its host", other)),
        }
    }
    if origin.is_empty() {
        return Err("its URL has no host".to_owned());
    }
    let has_port = origin
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.contains(']'));
    if !has_port {
        origin += if scheme == "https" { ":443" } else { ":80" };
    }
    Ok(origin)
}

/// The path with a slash at its begin and without a fragment.
fn rooted(path: Vec<TextPart>) -> Vec<TextPart> {
    let mut rooted = Vec::new();
    for part in path {
        match part {
            TextPart::Plain(text) => {
                let (before, is_end) = match text.split_once('#') {
                    Some((before, _)) => (before, true),
                    None => (text.as_str(), false),
                };
                let begin = if rooted.is_empty() && !before.starts_with('/') {
                    "/"
                } else {
                    ""
                };
                rooted.push(TextPart::Plain(format!("{begin}{before}")));
                if is_end {
                    break;
                }
            }
            other => rooted.push(other),
        }
    }
    if rooted.is_empty() {
        rooted.push(TextPart::Plain("/".to_owned()));
    }
    rooted
}

/// The reason why a part of a request is not known.
pub(super) fn unknown(what: &str, part: &TextPart) -> String {
    match part {
        TextPart::Plain(text) => format!("{what} is `{text}`"),
        TextPart::Answer { name, .. } | TextPart::Computed(name) => {
            format!("{what} contains {name}, which is known only when it runs")
        }
        TextPart::Environment(name) => {
            format!(
                "{what} contains `__ENV.{name}`, which has no value. Give it with `--env {name}=VALUE`"
            )
        }
        TextPart::Column(_) | TextPart::Range(_) | TextPart::Index => {
            format!("{what} differs between iterations")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> TextPart {
        TextPart::Plain(text.to_owned())
    }

    fn env(name: &str) -> TextPart {
        TextPart::Environment(name.to_owned())
    }

    fn shown(url: &[TextPart]) -> Result<String, String> {
        let found = split(url)?;
        let parts = |parts: &[TextPart]| -> String {
            let shown = parts.iter().map(|part| match part {
                TextPart::Plain(text) => text.clone(),
                other => format!("<{other:?}>"),
            });
            shown.collect()
        };
        let user = found
            .user
            .map(|user| format!("{} at ", parts(&user)))
            .unwrap_or_default();
        Ok(format!("{user}{} {}", found.origin, parts(&found.path)))
    }

    #[test]
    fn server_and_path_are_known_although_the_host_is_not() {
        assert_eq!(
            shown(&[plain("https://Shop.example/v1?a=1#top")]).as_deref(),
            Ok("shop.example:443 /v1?a=1")
        );
        assert_eq!(shown(&[plain("http://a:8080")]).as_deref(), Ok("a:8080 /"));
        assert_eq!(shown(&[plain("http://a?x=1")]).as_deref(), Ok("a:80 /?x=1"));
        assert_eq!(
            shown(&[plain("https://"), env("H"), plain("/stock")]).as_deref(),
            Ok("__ENV.H:443 /stock")
        );
        assert_eq!(
            shown(&[plain("http://"), env("H"), plain(":8080/x")]).as_deref(),
            Ok("__ENV.H:8080 /x")
        );
        assert_eq!(
            shown(&[env("BASE"), plain("/x/y")]).as_deref(),
            Ok("__ENV.BASE /x/y")
        );
        assert_eq!(
            shown(&[env("S"), plain("://"), env("H"), plain("/x")]).as_deref(),
            Ok("__ENV.H:80 /x")
        );
        assert_eq!(
            shown(&[plain("http://ann:p@w@a/x")]).as_deref(),
            Ok("ann:p@w at a:80 /x")
        );
        assert_eq!(
            shown(&[plain("http://[::1]/x")]).as_deref(),
            Ok("[::1]:80 /x")
        );
        assert_eq!(
            shown(&[
                plain("http://"),
                env("U"),
                plain(":"),
                env("P"),
                plain("@a/x")
            ])
            .as_deref(),
            Ok("<Environment(\"U\")>:<Environment(\"P\")> at a:80 /x")
        );
    }

    #[test]
    fn a_value_of_an_answer_can_be_the_path() {
        let location = || TextPart::Answer {
            call: 0,
            value: k6_script::AnswerValue::Header("Location".to_owned(), None),
            form: k6_script::AnswerForm::Text,
            name: "headers.Location".to_owned(),
        };
        for (url, origin) in [
            (vec![plain("http://a:1"), location(), plain("&x#y")], "a:1"),
            (vec![env("BASE"), location()], "__ENV.BASE"),
            (vec![plain("https://"), env("H"), location()], "__ENV.H:443"),
        ] {
            let found = split(&url).expect("it has a path");
            assert_eq!(found.origin, origin);
            assert_eq!(found.path[0], location());
        }
        for url in [
            vec![plain("http://a:"), location()],
            vec![plain("http://"), location()],
            vec![location()],
        ] {
            assert!(split(&url).is_err());
        }
    }

    #[test]
    fn a_url_without_a_known_path_is_refused_with_the_flag_that_helps() {
        for url in [
            vec![env("URL")],
            vec![env("URL"), plain("&x=1")],
            vec![env("URL"), plain("?x=1")],
        ] {
            let why = shown(&url).expect_err("it is refused");
            assert!(why.contains("--env URL=http://HOST/PATH"), "{why}");
        }
        assert!(shown(&[plain("/relative")]).is_err());
        assert!(shown(&[plain("ws://a/")]).is_err());
        let answer = TextPart::Computed("json() of the answer".to_owned());
        assert!(
            shown(&[answer.clone(), plain("/x")])
                .expect_err("it is refused")
                .contains("when it runs")
        );
        assert!(
            shown(&[plain("http://"), answer, plain("/x")])
                .expect_err("it is refused")
                .contains("host")
        );
    }
}
