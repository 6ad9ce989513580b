//! Determines the addresses of collectors.

use gateway_config::{Otlp, OtlpEndpoint, OtlpProtocol, Written};
use http::Uri;

use super::{CollectorError, Signal};
use crate::resource::Variables;

/// The address for messages in OTLP: from the environment, otherwise from the configuration.
pub(super) fn otlp(
    otlp: &Otlp,
    signal: Signal,
    variables: Variables<'_>,
) -> Result<Uri, CollectorError> {
    let variable = |name: &'static str| {
        let text = variables(name).filter(|text| !text.is_empty())?;
        let read = OtlpEndpoint::parse(&text);
        Some(read.map_err(|reason| CollectorError::Variable { name, reason }))
    };
    let own = variable(signal.variable()).transpose()?;
    let is_own = own.is_some();
    let general = variable("OTEL_EXPORTER_OTLP_ENDPOINT").transpose()?;
    let written = otlp.endpoint.as_ref().map(|it| it.0.clone());
    let endpoint = own.or(general).or(written);
    let uri = match (endpoint, otlp.protocol) {
        (Some(OtlpEndpoint::Url(uri)), _) => uri,
        (_, OtlpProtocol::Grpc) => Uri::from_static("http://127.0.0.1:4317"),
        (_, OtlpProtocol::Http) => Uri::from_static("http://127.0.0.1:4318"),
    };
    let base = uri.path().trim_end_matches('/');
    let path = match otlp.protocol {
        // A gRPC call uses the path of its method. The URL's path is not added.
        OtlpProtocol::Grpc => signal.grpc_path().to_owned(),
        // The variable of this signal contains the whole URL.
        OtlpProtocol::Http
            if base.ends_with(signal.http_path()) || (is_own && !base.is_empty()) =>
        {
            return Ok(uri);
        }
        OtlpProtocol::Http => format!("{base}{}", signal.http_path()),
    };
    let mut parts = uri.into_parts();
    parts.path_and_query = path.parse().ok();
    Ok(Uri::from_parts(parts).expect("a URL with another path is one"))
}

/// The address of a receiver with a single path. A configured path has precedence.
pub(super) fn plain(endpoint: Option<&Written<OtlpEndpoint>>, port: u16, path: &str) -> Uri {
    let uri = match endpoint.map(|it| &it.0) {
        Some(OtlpEndpoint::Url(uri)) => uri.clone(),
        Some(OtlpEndpoint::Default) | None => format!("http://127.0.0.1:{port}")
            .parse()
            .expect("an address with a port is a URL"),
    };
    if !matches!(uri.path(), "" | "/") {
        return uri;
    }
    let mut parts = uri.into_parts();
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).expect("a URL with another path is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        endpoint: Option<&str>,
        protocol: OtlpProtocol,
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let settings = Otlp {
            endpoint: endpoint.map(|text| Written(OtlpEndpoint::parse(text).unwrap())),
            protocol,
            ..Otlp::default()
        };
        let look = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        otlp(&settings, Signal::Traces, &look)
            .map(|uri| uri.to_string())
            .map_err(|error| error.to_string())
    }

    const GRPC: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

    #[test]
    fn a_collector_is_where_the_original_looks_for_it() {
        use OtlpProtocol::{Grpc, Http};
        for (endpoint, protocol, expected) in [
            (None, Http, "http://127.0.0.1:4318/v1/traces"),
            (Some("default"), Http, "http://127.0.0.1:4318/v1/traces"),
            (Some("c:1"), Http, "http://c:1/v1/traces"),
            (Some("https://c/otlp/"), Http, "https://c/otlp/v1/traces"),
            (Some("http://c:1/v1/traces"), Http, "http://c:1/v1/traces"),
        ] {
            assert_eq!(of(endpoint, protocol, &[]).as_deref(), Ok(expected));
        }
        for (endpoint, host) in [
            (None, "http://127.0.0.1:4317"),
            (Some("default"), "http://127.0.0.1:4317"),
            (Some("https://c:1"), "https://c:1"),
        ] {
            let expected = format!("{host}{GRPC}");
            assert_eq!(of(endpoint, Grpc, &[]), Ok(expected));
        }
    }

    #[test]
    fn the_environment_wins_and_the_variable_of_the_signal_is_the_whole_url() {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://e:1");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:1/path");
        let http = OtlpProtocol::Http;
        let expected = "http://e:1/v1/traces";
        assert_eq!(of(Some("c:1"), http, &[general]).as_deref(), Ok(expected));
        let expected = "http://own:1/path";
        assert_eq!(of(None, http, &[general, own]).as_deref(), Ok(expected));
        let empty = ("OTEL_EXPORTER_OTLP_ENDPOINT", "");
        let expected = "http://c:1/v1/traces";
        assert_eq!(of(Some("c:1"), http, &[empty]).as_deref(), Ok(expected));
        let wrong = ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://e");
        let told = of(None, http, &[wrong]).unwrap_err();
        assert!(
            told.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: `ftp://e`"),
            "{told}"
        );
    }

    #[test]
    fn a_receiver_with_one_path_needs_only_a_host() {
        let of = |text: &str| {
            let endpoint = Written(OtlpEndpoint::parse(text).unwrap());
            plain(Some(&endpoint), 9411, "/api/v2/spans").to_string()
        };
        assert_eq!(of("default"), "http://127.0.0.1:9411/api/v2/spans");
        assert_eq!(of("zipkin:9411"), "http://zipkin:9411/api/v2/spans");
        assert_eq!(of("https://z/"), "https://z/api/v2/spans");
        assert_eq!(of("http://z/other"), "http://z/other");
    }
}
