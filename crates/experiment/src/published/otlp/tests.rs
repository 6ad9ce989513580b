use super::*;

#[test]
fn a_url_without_a_path_gets_the_usual_one() {
    for (typed, meant) in [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/metrics"),
        ("http://[::1]:9/otlp/x", "http://[::1]:9/otlp/x"),
    ] {
        assert_eq!(collector(typed).unwrap().0.to_string(), meant);
    }
}

#[test]
fn what_cannot_be_pushed_to_is_refused() {
    for (typed, words) in [
        ("collector", "protocol"),
        ("grpc://127.0.0.1:4317", "grpc"),
        ("http://me:secret@127.0.0.1:4318", "password"),
    ] {
        let error = collector(typed).unwrap_err();
        assert!(error.contains(words), "{typed}: {error}");
    }
}

#[test]
fn messages_hold_what_was_counted() {
    let family = Family {
        name: "weighbridge_requests",
        help: "Requests",
        unit: "",
        values: Values::Counters(vec![(vec![("target", "a\"b".to_owned())], 7.0)]),
    };
    let started = UNIX_EPOCH + Duration::from_secs(1);
    let bytes = request(&[family], started, UNIX_EPOCH + Duration::from_secs(3)).encode_to_vec();
    let read = ExportMetricsServiceRequest::decode(bytes.as_slice()).unwrap();
    let metric = &read.resource_metrics[0].scope_metrics[0].metrics[0];
    let Some(metric::Data::Sum(sum)) = &metric.data else {
        panic!("a counter is a sum: {metric:?}");
    };
    let point = &sum.data_points[0];
    assert!(sum.is_monotonic);
    assert_eq!(point.value, Some(number_data_point::Value::AsDouble(7.0)));
    let times = (point.start_time_unix_nano, point.time_unix_nano);
    assert_eq!(times, (1_000_000_000, 3_000_000_000));
    assert_eq!(point.attributes[0].key, "target");
}
