//! Removal of credentials from recordings, because recordings are shared.
//!
//! The name of a header, a variable, a parameter or a flag decides if its value is a credential. A credential
//! is replaced. The values of such headers are also replaced in other texts, such as the text of a lab.

use std::collections::BTreeMap;

use recording::Header;

/// The replacement of a credential.
const HIDDEN: &str = "(hidden)";

/// Endings of words in names of credentials: `X-Api-Key` has `key`, `Set-Cookie` has `cookie`.
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

/// Whole words in names of credentials. They are too short to be endings, because other words end in them.
const WORDS: &[&str] = &["auth", "key", "session", "sid", "pwd", "pass"];

/// Names with such a word that are not credentials. They describe the load.
const OPEN: &[&str] = &[
    "idempotency-key",
    "sec-websocket-key",
    "surrogate-key",
    "cache-key",
];

/// Minimum length of a replaced value in bytes. Shorter values appear in texts by chance.
const SHORTEST: usize = 8;

/// True if a value with this name is a credential.
pub fn is_secret(name: &str) -> bool {
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

/// Converts `accessKey` to `access-key`, so that its words are found like the words of `Access-Key`.
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

/// A header in the form of a recording.
pub(super) fn header(name: &str, value: &str) -> Header {
    Header {
        name: name.to_owned(),
        value: named(name, value),
    }
}

/// A value in the form of a recording.
pub fn named(name: &str, value: &str) -> String {
    if is_secret(name) {
        HIDDEN.to_owned()
    } else {
        url(value)
    }
}

/// Variables in the form of a recording.
pub fn variables(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let one = |(name, value): (&String, &String)| (name.clone(), named(name, value));
    all.iter().map(one).collect()
}

/// Removes credentials from a URL, a path or any other text. They are the user name and password before the
/// host, and parameters with names of credentials.
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
    // Also ends at a space, because the text may continue after the URL.
    let end = rest.find(['/', '?', '#', ' ']).unwrap_or(rest.len());
    // The last `@`, because a password may contain another.
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{HIDDEN}{}", &rest[at..]),
        None => text.to_owned(),
    }
}

/// A command line in the form of a recording.
pub fn words(words: &[String]) -> Vec<String> {
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

/// Hides the value in `Name: value` and in `NAME=VALUE`, also directly after a flag.
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

/// The name of a header without its flag: `--header=X-Api-Key`, `-HX-Api-Key`.
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

/// The secret values of headers, to hide in other texts.
pub(super) struct Values<'a>(Vec<&'a str>);

impl<'a> Values<'a> {
    pub(super) fn of(headers: impl Iterator<Item = &'a (String, String)>) -> Self {
        let secret = headers.filter(|(name, _)| is_secret(name));
        // The scheme before a credential is common in texts, unlike the credential itself.
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
