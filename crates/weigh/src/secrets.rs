//! Credentials, which must not be in recordings: recordings are shared.
//!
//! The one idea: a name tells. What the name of a header, a variable, a parameter or a flag says to
//! be a credential is replaced; and the values of such headers are replaced wherever else they stand,
//! as in the text of a lab.

use std::collections::BTreeMap;

use report::recording::Header;

/// Stands for what is not shown.
const HIDDEN: &str = "(hidden)";

/// How words of a name end that carry a credential: `X-Api-Key` has `key`, `Set-Cookie` `cookie`.
const ENDINGS: &[&str] = &[
    "authorization",
    "authentication",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "apikey",
    "jwt",
    "signature",
];

/// Words of a name that carry a credential, and in which others end.
const WORDS: &[&str] = &["auth", "key", "session", "sid", "pwd", "pass"];

/// Names with such a word that are no credentials, and tell how a load was made.
const OPEN: &[&str] = &[
    "idempotency-key",
    "sec-websocket-key",
    "surrogate-key",
    "cache-key",
];

/// Shorter values stand in texts by chance.
const SHORTEST: usize = 8;

/// Whether what has this name is a credential.
pub(crate) fn is_secret(name: &str) -> bool {
    let (plain, name) = (
        name.trim().to_ascii_lowercase(),
        with_parted_words(name.trim()),
    );
    let is_word =
        |word: &str| WORDS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending));
    !OPEN.contains(&plain.as_str())
        && name
            .split(|character: char| !character.is_ascii_alphanumeric())
            .any(is_word)
}

/// `accessKey` as `access-key`, so that its words are found as those of `Access-Key` are.
fn with_parted_words(name: &str) -> String {
    let mut parted = String::with_capacity(name.len() + 4);
    let mut is_after_lower = false;
    for character in name.chars() {
        if is_after_lower && character.is_ascii_uppercase() {
            parted.push('-');
        }
        is_after_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
        parted.push(character.to_ascii_lowercase());
    }
    parted
}

/// A header as a recording keeps it.
pub(super) fn header((name, value): &(String, String)) -> Header {
    Header {
        name: name.clone(),
        value: named(name, value),
    }
}

/// A value as a recording keeps it.
pub(crate) fn named(name: &str, value: &str) -> String {
    if is_secret(name) {
        HIDDEN.to_owned()
    } else {
        url(value)
    }
}

/// Variables as a recording keeps them.
pub(crate) fn variables(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let one = |(name, value): (&String, &String)| (name.clone(), named(name, value));
    all.iter().map(one).collect()
}

/// A URL, a path or any other text without what the parts of a URL give away: who calls, before the
/// host, and parameters with such names.
pub(super) fn url(text: &str) -> String {
    let text = without_user(text);
    let Some((path, query)) = text.split_once('?') else {
        return text;
    };
    let parameter = |text: &str| match text.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
        _ => text.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(parameter).collect();
    format!("{path}?{}", query.join("&"))
}

fn without_user(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    // A space as well, because the text may go on behind the URL.
    let end = rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len());
    // The last one: a password may hold another.
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => text.to_owned(),
    }
}

/// A command line as a recording keeps it.
pub(crate) fn words(words: &[String]) -> Vec<String> {
    let mut follows_secret = false;
    let mut shown = Vec::with_capacity(words.len());
    for word in words {
        let is_flag = word.starts_with("--");
        shown.push(match () {
            () if follows_secret && !is_flag => HIDDEN.to_owned(),
            () => one_word(word),
        });
        // A flag with `=` has its value in the same word.
        follows_secret = is_flag && !word.contains('=') && is_secret(word);
    }
    shown
}

/// `Name: value`, also right behind its flag, and `NAME=VALUE`.
fn one_word(word: &str) -> String {
    if let Some((before, _)) = word.split_once(':') {
        let name = header_name(before);
        if is_name(name) && is_secret(name) {
            return format!("{before}: {HIDDEN}");
        }
    }
    match word.split_once('=') {
        Some((name, _)) if is_name(name.trim_start_matches('-')) && is_secret(name) => {
            format!("{name}={HIDDEN}")
        }
        _ => url(word),
    }
}

/// The name of a header without the flag before it: `--header=X-Api-Key`, `-HX-Api-Key`.
fn header_name(before: &str) -> &str {
    let behind_flag = match before.strip_prefix('-') {
        Some(long) if long.starts_with('-') => before.split_once('='),
        Some(short) => short.split_once('H'),
        None => None,
    };
    behind_flag.map_or(before, |(_, name)| name).trim()
}

fn is_name(text: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    !text.is_empty() && text.chars().all(fits)
}

/// Texts without the values of these headers that are credentials.
pub(super) struct Values<'a>(Vec<&'a str>);

impl<'a> Values<'a> {
    pub(super) fn of(headers: impl Iterator<Item = &'a (String, String)>) -> Self {
        let secret = headers.filter(|(name, _)| is_secret(name));
        // The scheme before a credential is in many texts, the credential itself is not.
        let values = secret.map(|(_, value)| value.rsplit(' ').next().unwrap_or(value));
        Self(values.filter(|value| value.len() >= SHORTEST).collect())
    }

    pub(super) fn hidden_in(&self, text: &str) -> String {
        let hide = |text: String, value: &&str| text.replace(value, HIDDEN);
        self.0.iter().fold(text.to_owned(), hide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_is_a_credential() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Set-Cookie",
            "X-Api-Key",
            "apikey",
            "x-hasura-admin-secret",
            "X-Auth-Token",
            "Ocp-Apim-Subscription-Key",
            "JWT_SECRET",
            "PGPASSWORD",
            "X-Session-Id",
            "accessKey",
            "AWSSecretAccessKey",
            "privateKey",
            "X-AccessKey",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "Content-Type",
            "Accept",
            "Idempotency-Key",
            "X-Author",
            "X-Request-Id",
            "Sec-WebSocket-Key",
            "Host",
            "keyboardLayout",
            "primaryColor",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_command_line_keeps_its_form_and_no_credential() {
        let shown = |line: &[&str]| {
            let line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            words(&line).join(" | ")
        };
        assert_eq!(
            shown(&[
                "weigh",
                "load",
                "-H",
                "Authorization: Bearer abc",
                "http://localhost:1/"
            ]),
            "weigh | load | -H | Authorization: (hidden) | http://localhost:1/"
        );
        assert_eq!(
            shown(&[
                "-HX-Api-Key:abc",
                "--header=Cookie: a=b",
                "-kHApiKey: x",
                "-H",
                "A: b"
            ]),
            "-HX-Api-Key: (hidden) | --header=Cookie: (hidden) | -kHApiKey: (hidden) | -H | A: b"
        );
        assert_eq!(
            shown(&[
                "env",
                "JWT_SECRET=s",
                "run",
                "--token",
                "t",
                "--api-key=k",
                "--port",
                "1"
            ]),
            "env | JWT_SECRET=(hidden) | run | --token | (hidden) | --api-key=(hidden) | --port | 1"
        );
        assert_eq!(
            shown(&[
                "https://me:pw@host/a@b?x=1&access_token=t",
                r#"{"query":"{key:id}"}"#
            ]),
            r#"https://(hidden)@host/a@b?x=1&access_token=(hidden) | {"query":"{key:id}"}"#
        );
    }

    #[test]
    fn a_value_that_is_hidden_in_one_place_is_hidden_in_all() {
        let headers = [
            ("Authorization".to_owned(), "Bearer abcdefgh".to_owned()),
            ("Cookie".to_owned(), "a=1".to_owned()),
            ("Accept".to_owned(), "application/json".to_owned()),
        ];
        let values = Values::of(headers.iter());
        assert_eq!(
            values.hidden_in("{Authorization: 'Bearer abcdefgh'}, a=1, application/json"),
            "{Authorization: 'Bearer (hidden)'}, a=1, application/json"
        );
    }
}
