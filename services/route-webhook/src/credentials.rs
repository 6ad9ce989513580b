//! Secrets in files, and the headers of clients that must match them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{self, HeaderMap};
use subtle::ConstantTimeEq as _;

/// Shortest secret in bytes, because shorter secrets can be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// The reason why the secret of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("cannot read `{}`, the file of {flag}: {source}", path.display())]
    Unreadable {
        flag: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "the secret in `{}`, the file of {flag}, has {found} bytes; expected {SECRET_BYTES_MIN} or \
         more, such as the output of `openssl rand -hex 32`",
        path.display()
    )]
    TooShort {
        flag: &'static str,
        path: PathBuf,
        found: usize,
    },
    #[error("the file `{}` of {flag} has no `:`; expected USER:PASSWORD", path.display())]
    NoPassword { flag: &'static str, path: PathBuf },
}

/// A file with a secret. It is read for each request, so a changed Secret applies without a restart.
#[derive(Clone, Debug)]
pub(crate) struct SecretFile {
    flag: &'static str,
    path: PathBuf,
}

impl SecretFile {
    /// Reads the file once, to report mistakes at the start.
    pub(crate) fn new(flag: &'static str, path: &Path) -> Result<Self, SecretError> {
        let path = path.to_owned();
        let file = Self { flag, path };
        file.read()?;
        Ok(file)
    }

    /// The current secret.
    pub(crate) fn read(&self) -> Result<String, SecretError> {
        let (flag, path) = (self.flag, self.path.clone());
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(source) => return Err(SecretError::Unreadable { flag, path, source }),
        };
        // Editors end a file with a line break.
        let secret = text.trim();
        let found = secret.len();
        if found < SECRET_BYTES_MIN {
            return Err(SecretError::TooShort { flag, path, found });
        }
        Ok(secret.to_owned())
    }
}

/// The value of the single header `Authorization` after this scheme.
pub(crate) fn given<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a [u8]> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    // If there are two headers, a proxy in front may have checked the other one.
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return None;
    };
    let (start, value) = line.as_bytes().split_at_checked(scheme.len())?;
    let value = value.strip_prefix(b" ")?;
    start
        .eq_ignore_ascii_case(scheme.as_bytes())
        .then(|| value.trim_ascii())
}

/// Compares in constant time, so that the duration does not reveal the correct part of a guess.
pub(crate) fn is_equal(own: &str, given: &[u8]) -> bool {
    own.as_bytes().ct_eq(given).into()
}

/// The reason why a call of a hook is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallDenied {
    #[error("the hooks need one header `Authorization` with the credentials of this webhook")]
    WrongCredentials,
    #[error("the credentials of this webhook cannot be read at the moment")]
    NoOwnCredentials,
}

/// The condition that a call of a hook must fulfil. Without files, every client may call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    bearer: Option<SecretFile>,
    basic: Option<SecretFile>,
}

impl Callers {
    /// # Errors
    ///
    /// Fails if a file is configured and contains no usable secret.
    pub(crate) fn new(bearer: Option<&Path>, basic: Option<&Path>) -> Result<Self, SecretError> {
        let open = |flag, path: Option<&Path>| path.map(|path| SecretFile::new(flag, path));
        let callers = Self {
            bearer: open("--bearer-token-file", bearer).transpose()?,
            basic: open("--basic-credentials-file", basic).transpose()?,
        };
        if let Some(file) = &callers.basic
            && !file.read()?.contains(':')
        {
            let (flag, path) = (file.flag, file.path.clone());
            return Err(SecretError::NoPassword { flag, path });
        }
        Ok(callers)
    }

    /// Checks by its head that a request may call a hook.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<(), CallDenied> {
        if self.bearer.is_none() && self.basic.is_none() {
            return Ok(());
        }
        let own = |file: &SecretFile| {
            file.read().map_err(|error| {
                tracing::error!(%error, "no credentials for the hooks");
                CallDenied::NoOwnCredentials
            })
        };
        if let Some(file) = &self.bearer
            && let Some(given) = given(headers, "Bearer")
        {
            let is_right = is_equal(&own(file)?, given);
            return is_right.then_some(()).ok_or(CallDenied::WrongCredentials);
        }
        if let Some(file) = &self.basic
            && let Some(given) = given(headers, "Basic")
        {
            // The own side is encoded: text of a client needs no decoder then.
            let is_right = is_equal(&STANDARD.encode(own(file)?), given);
            return is_right.then_some(()).ok_or(CallDenied::WrongCredentials);
        }
        Err(CallDenied::WrongCredentials)
    }

    /// The value of `WWW-Authenticate` in a refusal.
    pub(crate) fn challenge(&self) -> &'static str {
        match (&self.bearer, &self.basic) {
            (Some(_), Some(_)) => r#"Bearer, Basic realm="route-webhook", charset="UTF-8""#,
            (None, Some(_)) => r#"Basic realm="route-webhook", charset="UTF-8""#,
            _ => "Bearer",
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn admits(callers: &Callers, lines: &[&'static str]) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::AUTHORIZATION, HeaderValue::from_static(line));
        }
        callers.admit(&headers).map_err(|denied| denied.to_string())
    }

    #[test]
    fn credentials_are_compared_and_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (token, password) = (folder.path().join("token"), folder.path().join("password"));
        fs::write(&token, "0123456789abcdef\n").unwrap();
        fs::write(&password, "keeper:0123456789\n").unwrap();
        let callers = Callers::new(Some(&token), Some(&password)).unwrap();
        let basic = "Basic a2VlcGVyOjAxMjM0NTY3ODk=";
        assert_eq!(admits(&callers, &["Bearer 0123456789abcdef"]), Ok(()));
        assert_eq!(admits(&callers, &["bearer 0123456789abcdef"]), Ok(()));
        assert_eq!(admits(&callers, &[basic]), Ok(()));
        for wrong in [
            &[][..],
            &["Bearer 0123456789abcdeg"],
            &["Bearer"],
            &["Bearer0123456789abcdef"],
            &["Basic a2VlcGVyOjAxMjM0NTY3ODg="],
            &["Digest 0123456789abcdef"],
            &[basic, basic],
        ] {
            assert!(admits(&callers, wrong).is_err(), "{wrong:?}");
        }
        fs::write(&token, "another-token-of-this-hook").unwrap();
        assert!(admits(&callers, &["Bearer 0123456789abcdef"]).is_err());
        assert_eq!(
            admits(&callers, &["Bearer another-token-of-this-hook"]),
            Ok(())
        );
        // An emptied or lost file refuses everyone.
        fs::write(&token, "").unwrap();
        let told = admits(&callers, &["Bearer "]).unwrap_err();
        assert!(told.contains("cannot be read at the moment"), "{told}");
        fs::remove_file(&token).unwrap();
        assert!(admits(&callers, &["Bearer another-token-of-this-hook"]).is_err());
        assert_eq!(admits(&callers, &[basic]), Ok(()));
    }

    #[test]
    fn a_file_without_a_usable_secret_ends_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let told = |bearer, basic| Callers::new(bearer, basic).unwrap_err().to_string();
        assert!(told(Some(&*file), None).contains("--bearer-token-file"));
        fs::write(&file, "").unwrap();
        assert!(told(Some(&*file), None).contains("has 0 bytes"));
        fs::write(&file, "0123456789abcdef").unwrap();
        assert!(told(None, Some(&*file)).contains("expected USER:PASSWORD"));
        assert!(
            Callers::new(None, None)
                .unwrap()
                .admit(&HeaderMap::new())
                .is_ok()
        );
    }

    #[test]
    fn a_refusal_names_the_schemes_that_are_possible() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        fs::write(&file, "keeper:0123456789").unwrap();
        let challenge = |bearer, basic| Callers::new(bearer, basic).unwrap().challenge();
        assert_eq!(challenge(Some(&*file), None), "Bearer");
        assert!(challenge(None, Some(&*file)).starts_with("Basic realm="));
        assert!(challenge(Some(&*file), Some(&*file)).starts_with("Bearer, Basic realm="));
    }
}
