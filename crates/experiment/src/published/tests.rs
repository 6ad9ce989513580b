use model::{Arrival, Phase, Rate};

use super::families::{Values, edges_ns};
use super::*;

fn per_second(rate: f64) -> Rate {
    Rate::new(rate).unwrap()
}

fn open(phases: Vec<Phase>) -> Load {
    Load::Open {
        phases,
        arrival: Arrival::Uniform,
        connections_max: 1,
        requests_max: None,
    }
}

#[test]
fn the_planned_rate_follows_steps_and_ramps() {
    let load = open(vec![
        Phase::constant(Duration::from_secs(10), per_second(100.0)),
        Phase {
            duration: Duration::from_secs(10),
            from: per_second(100.0),
            to: per_second(300.0),
        },
    ]);
    let at = |seconds| rate_at(&load, Duration::from_secs(seconds));
    assert_eq!(at(0), Some(100.0));
    assert_eq!(at(9), Some(100.0));
    assert_eq!(at(15), Some(200.0));
    assert_eq!(at(20), None);
}

#[test]
fn a_load_that_is_thrown_away_is_a_phase_and_no_count() {
    let account = Account::new();
    let live = Arc::new(Live::with_jobs(0));
    account.begin(Vec::new(), &live);
    let text = scrape::written(account.read().0);
    assert!(
        text.contains("weighbridge_phase{phase=\"warm-up\"} 1"),
        "{text}"
    );
    assert!(!text.contains("weighbridge_requests_total"), "{text}");
    account.end();
    let text = scrape::written(account.read().0);
    assert!(
        text.contains("weighbridge_phase{phase=\"between\"} 1"),
        "{text}"
    );
}

#[test]
fn names_with_quotes_and_lines_stay_one_label() {
    let account = Account::new();
    let live = Arc::new(Live::with_jobs(1));
    let receiver = Receiver {
        target: "a\"} 1\nevil 2 \\".to_owned(),
        load: open(vec![Phase::constant(
            Duration::from_secs(600),
            per_second(50.0),
        )]),
    };
    account.begin(vec![receiver], &live);
    account.round(2, 8);
    let text = scrape::written(account.read().0);
    let wanted = r#"weighbridge_planned_requests_per_second{target="a\"} 1\nevil 2 \\"} 50"#;
    assert!(text.contains(wanted), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("evil")), "{text}");
    assert!(text.contains("weighbridge_round 2"), "{text}");
    assert!(text.contains("weighbridge_rounds_planned 8"), "{text}");
}

#[test]
fn every_bucket_ends_where_a_cell_of_the_generator_does() {
    // Otherwise a cell would extend over two buckets, and the counts would be wrong.
    let edges = edges_ns();
    assert!(edges.is_sorted(), "{edges:?}");
    assert!(edges.iter().all(|edge| {
        let power = edge.is_power_of_two();
        power || (edge % 3 == 0 && (edge / 3).is_power_of_two())
    }));
    let account = Account::new();
    let live = Arc::new(Live::with_jobs(1));
    let load = open(vec![Phase::constant(
        Duration::from_secs(1),
        per_second(1.0),
    )]);
    let target = "one".to_owned();
    account.begin(vec![Receiver { target, load }], &live);
    let families = account.read().0;
    let histograms = families.iter().filter(|family| match &family.values {
        Values::Histograms(samples) => samples.len() == 1,
        _ => false,
    });
    assert_eq!(histograms.count(), 2, "latency and lateness");
}

#[test]
fn a_bare_port_is_loopback_and_more_is_typed() {
    for (typed, shown) in [
        ("9464", "127.0.0.1:9464"),
        (":9464", "127.0.0.1:9464"),
        ("localhost:9464", "127.0.0.1:9464"),
        ("0.0.0.0:9464", "0.0.0.0:9464"),
        ("[::1]:9464", "[::1]:9464"),
    ] {
        let bound = scrape::bind(typed).unwrap();
        assert!(format!("{bound:?}").contains(shown), "{typed}: {bound:?}");
    }
    for typed in ["", "70000", "example.org:80", "127.0.0.1"] {
        let error = scrape::bind(typed).unwrap_err();
        assert!(error.contains("expected a port"), "{typed}: {error}");
    }
}
