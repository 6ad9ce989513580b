use std::time::Duration;

use super::*;

fn duration(text: &str) -> Result<Duration, String> {
    Duration::read(text)
}

#[test]
fn times_are_read_as_humantime_reads_them() {
    assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
    assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(duration("1h 5s"), Ok(Duration::from_secs(3_605)));
    assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
    for wrong in ["", "30", "s", "1.5s", "-1s", "10 lightyears", "5000000h"] {
        assert!(duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn sizes_have_decimal_and_binary_units() {
    assert_eq!(ByteSize::read("16384"), Ok(ByteSize(16_384)));
    assert_eq!(ByteSize::read("16KiB"), Ok(ByteSize(16_384)));
    assert_eq!(ByteSize::read("400kb"), Ok(ByteSize(400_000)));
    assert!(ByteSize::read("-1").is_err() && ByteSize::read("many").is_err());
}

#[test]
fn a_star_is_only_the_whole_last_segment() {
    for path in ["/", "/graphql", "/graphql/*", "/:tenant/graphql"] {
        assert!(GraphqlPath::read(path).is_ok(), "{path}");
    }
    for path in ["graphql", "/*/graphql", "/g*", ""] {
        assert!(GraphqlPath::read(path).is_err(), "{path}");
    }
}

#[test]
fn a_unix_socket_has_an_absolute_path() {
    let read = |text| ServiceAddress::read(text);
    let endpoint = |path: &str| {
        Ok(ServiceAddress::Unix {
            socket: "/run/s".into(),
            path: path.to_owned(),
        })
    };
    assert_eq!(read("unix:///run/s"), endpoint("/"));
    assert_eq!(read("unix:///run/s?a=b&path=/p"), endpoint("/p"));
    for wrong in ["unix://run/s", "unix://", "ftp://h", "h:80", "http://"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_json_path_has_keys_and_places() {
    let path = BodyPath::read(".extensions.x[0].y").unwrap();
    assert_eq!(path.write(), ".extensions.x[0].y");
    assert_eq!(path.0.len(), 4);
    for wrong in ["", "x", ".", ".a..b", ".a[0"] {
        assert!(BodyPath::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_address_has_a_port_or_is_a_path() {
    assert_eq!(
        Listen::parse("[::1]:0"),
        Ok(Listen::Tcp("[::1]:0".to_owned()))
    );
    assert_eq!(
        Listen::parse("/run/gateway"),
        Ok(Listen::Unix("/run/gateway".into()))
    );
    assert!(Listen::parse("4000").is_err() && Listen::parse(":4000").is_err());
}
