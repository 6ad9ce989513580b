use super::*;

#[derive(Debug)]
struct Example;

impl Counts for Example {
    fn tell(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        scrape.counter("bans", "Bans that were started", 3)?;
        scrape.counters(
            "answers",
            "Answers by path",
            [(&[("path", "a\"b\\\n")][..], 1), (&[("path", "c")][..], 0)],
        )?;
        scrape.gauge("plans", "Plans that are kept", (&[("kind", "q")], 7))?;
        let buckets = Buckets {
            bounds: &[0.000_025, 10.0],
            counts: &[1, 2, 3],
            sum: 61.5,
        };
        scrape.histograms("took_us", "Time", [(&[][..], buckets)])
    }
}

#[test]
fn each_kind_of_metric_has_its_lines() {
    let text = text(Arc::new(Example));
    let (counts, process) = text.split_once("# HELP process_").unwrap();
    assert_eq!(
        counts,
        r#"# HELP bans Bans that were started
# TYPE bans counter
bans_total 3
# HELP answers Answers by path
# TYPE answers counter
answers_total{path="a\"b\\\n"} 1
answers_total{path="c"} 0
# HELP plans Plans that are kept
# TYPE plans gauge
plans{kind="q"} 7
# HELP took_us Time
# TYPE took_us histogram
took_us_sum 61.5
took_us_count 6
took_us_bucket{le="0.000025"} 1
took_us_bucket{le="10.0"} 3
took_us_bucket{le="+Inf"} 6
"#
    );
    assert!(process.ends_with("# EOF\n"), "{process}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_uses_memory_and_time() {
    let text = text(Arc::new(Example));
    let sample = |name: &str| -> f64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
            .parse()
            .unwrap()
    };
    assert!(sample("process_resident_memory_bytes") > 1e5);
    assert!(sample("process_cpu_seconds_total") >= 0.0);
}

#[test]
fn counts_can_be_had_as_values() {
    let families = families(&Example);
    let of = |name: &str| {
        let family = families.iter().find(|it| it.name == name);
        family
            .unwrap_or_else(|| panic!("no {name} in {families:?}"))
            .samples
            .clone()
    };
    let label = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let sample = |labels, number| Sample { labels, number };
    assert_eq!(of("bans"), [sample(vec![], Number::Counter(3.0))]);
    let answers = [
        sample(label("path", "a\"b\\\n"), Number::Counter(1.0)),
        sample(label("path", "c"), Number::Counter(0.0)),
    ];
    assert_eq!(of("answers"), answers);
    assert_eq!(
        of("plans"),
        [sample(label("kind", "q"), Number::Gauge(7.0))]
    );
    let took = Number::Histogram {
        bounds: vec![0.000_025, 10.0],
        counts: vec![1, 2, 3],
        sum: 61.5,
    };
    assert_eq!(of("took_us"), [sample(vec![], took)]);
    assert_eq!(of("process_resident_memory_bytes").len(), 1);
}

/// A metric of a user, with names that Prometheus does not allow.
#[derive(Debug)]
struct Custom;

impl Counts for Custom {
    fn tell(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let sample = |number| Sample {
            labels: [("a.b", "1"), ("a_b", "2"), ("2nd", "\n")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            number,
        };
        let family = |name: &str, unit: &str, number| Family {
            name: name.to_owned(),
            help: "Custom".to_owned(),
            unit: unit.to_owned(),
            samples: vec![sample(number)],
        };
        scrape.family(&family("acme.sum", "{request}", Number::Counter(1.5)))?;
        let buckets = Number::Histogram {
            bounds: vec![1.0],
            counts: vec![2, 1],
            sum: 9.0,
        };
        scrape.family(&family("acme.time", "ms", buckets))
    }
}

#[test]
fn a_metric_of_a_user_has_names_that_prometheus_allows() {
    let text = text(Arc::new(Custom));
    let (counts, _) = text.split_once("# HELP process_").unwrap();
    assert_eq!(
        counts,
        r#"# HELP acme_sum Custom
# TYPE acme_sum counter
acme_sum_total{a_b="1",_2nd="\n"} 1.5
# HELP acme_time_milliseconds Custom
# TYPE acme_time_milliseconds histogram
acme_time_milliseconds_sum{a_b="1",_2nd="\n"} 9.0
acme_time_milliseconds_count{a_b="1",_2nd="\n"} 3
acme_time_milliseconds_bucket{le="1.0",a_b="1",_2nd="\n"} 2
acme_time_milliseconds_bucket{le="+Inf",a_b="1",_2nd="\n"} 3
"#
    );
    // Values for pushed metrics keep the names of the user.
    let families = families(&Custom);
    assert_eq!(families[0].samples[0].labels[0].0, "a.b");
    assert_eq!(families[1].unit, "ms");
}
