//! Checks e-mail addresses, and computes fingerprints. The store contains only the fingerprints.
//!
//! The check accepts the same texts as validator.js 12. A fingerprint has 64 bits of a keyed hash (HMAC with
//! SHA-256) over the client's address and the e-mail in lower case. A reader of the store without the key
//! learns no e-mail. It also cannot see that two clients tried the same e-mail, unless a rule counts e-mails.

use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::address::Address;
use crate::subject::Subject;

const LOCAL_BYTES_MAX: usize = 64;
const DOMAIN_BYTES_MAX: usize = 255;

/// Longest part of a domain between two dots, in UTF-16 units, as in the original.
const LABEL_UNITS_MAX: usize = 63;

/// The key of the fingerprints.
#[derive(Debug, Clone)]
pub struct FingerprintKey {
    key: hmac::Key,
    /// True if e-mails that differ only in case have different fingerprints.
    tells_case: bool,
}

impl FingerprintKey {
    /// Creates a key from a configured text. Instances with a common store need the same text.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::of(text.as_bytes())
    }

    /// Creates a random key that ends with the process. `None` if the system has no randomness.
    #[must_use]
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, bytes),
            tells_case: false,
        }
    }

    /// Makes `A@b.se` and `a@b.se` two e-mails, as in the original. A client that guesses one user's password
    /// in two spellings is then banned like a client that attacks two users.
    #[must_use]
    pub fn telling_case(self) -> Self {
        Self {
            tells_case: true,
            ..self
        }
    }

    /// The fingerprint of an e-mail from a client's address.
    #[must_use]
    pub fn fingerprint(&self, address: Address, email: &str) -> u64 {
        // The address is part of the hash: equal e-mails of two clients must differ in the store.
        let tag = self.tag(&[&address.bits().to_be_bytes()], email);
        // 64 bits are enough to distinguish a handful of e-mails of one address.
        let head = tag.as_ref().first_chunk().expect("a tag has 32 bytes");
        u64::from_be_bytes(*head)
    }

    /// The subject of a rule that counts e-mails, or e-mails of an address.
    pub(crate) fn subject(&self, address: Option<Address>, email: &str) -> Subject {
        let tag = match address {
            Some(address) => self.tag(&[b"both", &address.bits().to_be_bytes()], email),
            None => self.tag(&[b"email"], email),
        };
        let head = tag.as_ref().first_chunk().expect("a tag has 32 bytes");
        Subject::Hash(u128::from_be_bytes(*head))
    }

    fn tag(&self, parts: &[&[u8]], email: &str) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        if self.tells_case {
            context.update(email.as_bytes());
        } else {
            // Case is ignored, or one user's spellings would count as several e-mails.
            context.update(email.to_lowercase().as_bytes());
        }
        context.sign()
    }
}

/// True if the text is an e-mail address.
#[must_use]
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    local.len() <= LOCAL_BYTES_MAX
        && domain.len() <= DOMAIN_BYTES_MAX
        && is_domain(domain)
        && is_local(local)
}

fn is_local(local: &str) -> bool {
    if let Some(rest) = local.strip_prefix('"') {
        return rest.strip_suffix('"').is_some_and(is_quoted);
    }
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atom_letter);
    local.split('.').all(is_atom)
}

fn is_atom_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric()
        || "!#$%&'*+-/=?^_`{|}~".contains(letter)
        || matches!(letter, '\u{a1}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{ffef}')
}

/// Checks the content of quotes: a quote or a backslash needs a backslash before it.
fn is_quoted(inside: &str) -> bool {
    let mut letters = inside.chars();
    while let Some(letter) = letters.next() {
        let is_allowed = match letter {
            '\\' => letters.next().is_some_and(|escaped| escaped != '\n'),
            '"' | '\0' => false,
            _ => u32::from(letter) <= 0xffef,
        };
        if !is_allowed {
            return false;
        }
    }
    true
}

fn is_domain(domain: &str) -> bool {
    let Some((_, top)) = domain.rsplit_once('.') else {
        return false;
    };
    domain.split('.').all(is_label) && is_top_level(top)
}

fn is_label(label: &str) -> bool {
    let is_letter = |letter: char| {
        letter.is_ascii_alphanumeric()
            || letter == '-'
            || (letter >= '\u{a1}' && !letter.is_whitespace() && !is_unwanted(letter))
    };
    !label.is_empty()
        && label.encode_utf16().count() <= LABEL_UNITS_MAX
        && label.chars().all(is_letter)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// True for full-width forms, and for blanks that Unicode does not class as white space.
fn is_unwanted(letter: char) -> bool {
    matches!(letter, '\u{ff01}'..='\u{ff5e}' | '\u{200b}' | '\u{feff}')
}

fn is_top_level(top: &str) -> bool {
    let is_encoded = top
        .get(..2)
        .is_some_and(|head| head.eq_ignore_ascii_case("xn"))
        && top.len() >= 4
        // Punycode labels contain digits and hyphens, which the rule below would refuse.
        && top.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter >= '\u{a1}';
    is_encoded || (top.chars().count() >= 2 && top.chars().all(is_letter))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepted_is_what_the_original_accepts() {
        for text in [
            "a@b.se",
            "A@B.SE",
            "a+b@c.co",
            "\"q q\"@c.se",
            "é@b.se",
            "a@bücher.de",
            "a.b@c.d.se",
            "a@xn--bcher-kva.xn--p1ai",
            "\"a\\\"b\"@c.se",
        ] {
            assert!(is_email(text), "{text}");
        }
        let local = |length: usize| format!("{}@b.se", "a".repeat(length));
        assert!(is_email(&local(64)) && !is_email(&local(65)));
        let label = |length: usize| format!("a@{}.se", "b".repeat(length));
        assert!(is_email(&label(63)) && !is_email(&label(64)));
        // Labels of 62 letters and a dot, and one label with the rest.
        let domain = |length: usize| {
            let rest = length - 3 - 3 * 63;
            format!(
                "a@{}{}.se",
                format!("{}.", "b".repeat(62)).repeat(3),
                "b".repeat(rest)
            )
        };
        assert!(is_email(&domain(255)) && !is_email(&domain(256)));
        // The limit of the whole domain, with no label over its own limit: the rest is split.
        let split = domain(254).replacen(".se", ".b.se", 1);
        assert!(!is_email(&split), "{} bytes", split.len() - 2);
    }

    #[test]
    fn refused_is_what_the_original_refuses() {
        for text in [
            "",
            "@",
            "a",
            "a@b",
            "a@b.c",
            " a@b.se",
            "a@b.se ",
            "a b@c.se",
            "a@localhost",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a@-b.se",
            "a@b-.se",
            "a@b_c.se",
            ".a@b.se",
            "a..b@c.se",
            "a.@b.se",
            "a@b.12",
            "a@b.se.",
            "a@.se",
            "a@@b.se",
            "\"a\"b\"@c.se",
            "\"@b.se",
            "a@ｂ.se",
        ] {
            assert!(!is_email(text), "{text}");
        }
    }

    #[test]
    fn a_fingerprint_knows_case_only_when_told_to_and_depends_on_key_and_client() {
        let key = FingerprintKey::from_text("one");
        let [here, there] = ["10.0.0.1", "10.0.0.2"].map(|text| Address::parse(text).unwrap());
        let print = key.fingerprint(here, "A@B.se");
        assert_eq!(print, key.fingerprint(here, "a@b.SE"));
        assert_ne!(print, key.fingerprint(there, "a@b.se"));
        let telling = key.clone().telling_case();
        let [lower, upper] = ["a@b.se", "A@b.se"].map(|it| telling.fingerprint(here, it));
        assert_eq!(lower, print);
        assert_ne!(lower, upper);
        assert_ne!(
            print,
            FingerprintKey::from_text("two").fingerprint(here, "a@b.se")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in "\\PC*[@.\"\\\\]*\\PC*") {
            let _ = is_email(&text);
        }
    }
}
