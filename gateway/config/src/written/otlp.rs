//! The address of an OTLP collector, and the sampling of traces.

use http::Uri;

use super::Form;

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtlpEndpoint {
    /// This machine, at the default port of the protocol.
    Default,
    /// An `http` or `https` URL.
    Url(Uri),
}

impl OtlpEndpoint {
    /// Reads `default`, a URL, or `host:port`, which means a connection without TLS.
    ///
    /// # Errors
    /// Returns the expected form and the actual text, as one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        <Self as Form>::read(text)
    }
}

impl Form for OtlpEndpoint {
    const NAME: &'static str = "otlp-endpoint";

    fn read(text: &str) -> Result<Self, String> {
        if text == "default" {
            return Ok(Self::Default);
        }
        let wrong = |why: &str| {
            format!(
                "`{text}` is not where a collector can be: {why}; expected `http://host:port`, `host:port` or `default`"
            )
        };
        let whole = match text.split_once("://") {
            Some(_) => text.to_owned(),
            None => format!("http://{text}"),
        };
        let uri: Uri = whole.parse().map_err(|_| wrong("it cannot be read"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong("its scheme is not known"));
        }
        if uri.host().unwrap_or_default().is_empty() {
            return Err(wrong("the host is missing"));
        }
        // The message omits the user part, because it may be a password.
        if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            return Err(
                "a name or a password in the address of a collector would not be sent: write it as a header, under `headers` or `metadata`".to_owned(),
            );
        }
        Ok(Self::Url(uri))
    }

    fn write(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::Url(uri) => uri.to_string(),
        }
    }
}

/// The fraction of requests that are traced, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler(pub f64);

impl Form for Sampler {
    const NAME: &'static str = "sampler";

    fn read(text: &str) -> Result<Self, String> {
        let share = match text {
            "always_on" => Some(1.0),
            "always_off" => Some(0.0),
            _ => text.parse::<f64>().ok(),
        };
        share
            // Rejects negative numbers and NaN.
            .filter(|share| *share >= 0.0)
            // As in the original, a fraction above 1 means all requests.
            .map(|share| share.min(1.0))
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "expected `always_on`, `always_off` or a share such as `0.01`, found `{text}`"
                )
            })
    }

    fn write(&self) -> String {
        match self.0 {
            1.0 => "always_on".to_owned(),
            0.0 => "always_off".to_owned(),
            share => share.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_may_be_named_without_a_scheme_as_in_the_original() {
        let shown = |text| OtlpEndpoint::read(text).map(|it| it.write());
        for (text, expected) in [
            ("default", "default"),
            ("collector:4317", "http://collector:4317/"),
            ("127.0.0.1:1234", "http://127.0.0.1:1234/"),
            ("https://collector/otlp", "https://collector/otlp"),
            ("[::1]:4317", "http://[::1]:4317/"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected));
        }
        for (text, why) in [
            ("ftp://a", "scheme"),
            ("http://", "cannot be read"),
            ("a b", "cannot be read"),
            ("", "cannot be read"),
            ("http://me:secret@a", "as a header"),
        ] {
            let told = shown(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn a_share_is_a_word_or_a_number_from_zero() {
        for (text, share) in [
            ("always_on", 1.0),
            ("always_off", 0.0),
            ("0.01", 0.01),
            ("1", 1.0),
            ("7", 1.0),
            ("0", 0.0),
        ] {
            assert_eq!(Sampler::read(text), Ok(Sampler(share)));
        }
        for text in ["-0.1", "NaN", "1%", "", "on"] {
            assert!(Sampler::read(text).is_err(), "{text}");
        }
    }
}
