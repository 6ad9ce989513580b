//! The table of METHODOLOGY.md, written from the results of these simulations.

use std::fmt::Write as _;
use std::path::Path;

use crate::machine::{Order, Quantile};
use crate::side_by_side::{Asked, Cost, ESTIMATORS, Score, scores};
use crate::{DIFFERENT, coverage, share, stopping};
use stats::Claim;

/// The lines before and after a table of that name.
fn marks(name: &str) -> [String; 2] {
    ["begin", "end"].map(|end| {
        format!("<!-- written by UPDATE_METHODOLOGY=1 cargo test -p stats{name}: {end} -->")
    })
}

fn table() -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let alarms = |labs, order| percent(share(labs, 8, order, 0.0, &DIFFERENT));
    let mut rows = vec![
        (
            "identical systems, 200 labs of 8 rounds: a difference is claimed in".to_owned(),
            alarms(200, Order::Interleaved),
        ),
        (
            "the same, 1,000 labs".to_owned(),
            alarms(1_000, Order::Interleaved),
        ),
        (
            "the same, all rounds of one system before those of the other".to_owned(),
            alarms(1_000, Order::Blocks),
        ),
    ];
    for rounds in [6, 8, 10] {
        let found = share(300, rounds, Order::Interleaved, 0.02, &[Claim::Higher]);
        rows.push((format!("+2 %, {rounds} rounds: found in"), percent(found)));
    }
    for rounds in [6, 10, 20] {
        let covered = [Quantile::P50, Quantile::P90, Quantile::P99]
            .map(|quantile| percent(coverage(2_000, rounds, quantile)));
        rows.push((
            format!(
                "{rounds} rounds: the 95 % interval holds the true p50, p90, p99 difference in"
            ),
            covered.join(", "),
        ));
    }
    for (alarms, what) in [
        (
            &*stopping::WATCHED,
            "identical systems, rounds until an interval is narrow (`--until`), eight wishes of \
             500 labs each: a difference is claimed in, and of the worst wish",
        ),
        (
            &*stopping::PLAIN,
            "the same, if intervals were not made wider for having looked",
        ),
    ] {
        let shares = [alarms.all, alarms.most].map(percent);
        rows.push((what.to_owned(), shares.join(", ")));
    }
    assert_eq!(stopping::LABS, 500, "the table says so");
    let mut text = "| simulated labs | share |\n|---|---|\n".to_owned();
    for (what, how_often) in rows {
        let _ = writeln!(text, "| {what} | {how_often} |");
    }
    text
}

/// Runs of each line of the table of estimators.
const RUNS: u64 = 500;

fn estimators() -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = "| load | figure of a round | equal: claimed | +5 us: found, inside | \
                    +20 us: found, inside | typical interval |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for (asked, load) in [
        (Asked::One, "one query"),
        (Asked::TwoInTurn, "two queries, 150 us apart"),
        (
            Asked::OneAmongOthers,
            "one query, on cores that others keep busy",
        ),
    ] {
        let [none, five, twenty] = [0.0, 5.0, 20.0].map(|us| scores(RUNS, asked, Cost::Each(us)));
        for (index, (_, name)) in ESTIMATORS.iter().enumerate() {
            let found =
                |score: Score| format!("{}, {}", percent(score.higher), percent(score.inside));
            let _ = writeln!(
                text,
                "| {load} | {name} | {} | {} | {} | ±{:.1} us |",
                percent(none[index].claimed),
                found(five[index]),
                found(twenty[index]),
                none[index].half_width_us
            );
        }
    }
    let tenth = scores(RUNS, Asked::One, Cost::Tenth(200.0));
    for (score, (_, name)) in tenth.iter().zip(ESTIMATORS) {
        let _ = writeln!(
            text,
            "| one query; a tenth of the requests pays 200 us | {name} | – | – | {}, {} | ±{:.1} us |",
            percent(score.higher),
            percent(score.inside),
            score.half_width_us
        );
    }
    text
}

fn is_updated(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../METHODOLOGY.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let [begin, end] = marks(name);
    let (before, rest) = page.split_once(&begin).expect("the page has a place");
    let (_, after) = rest.split_once(&end).expect("a place has an end");
    let expected = format!("{before}{begin}\n\n{table}\n{end}{after}");
    if is_to_be_written() {
        std::fs::write(&path, &expected).expect("the page can be written");
        return;
    }
    assert!(
        page == expected,
        "the table in METHODOLOGY.md is out of date; run `UPDATE_METHODOLOGY=1 cargo test -p stats`; \
         it should be\n{table}"
    );
}

#[expect(clippy::disallowed_methods, reason = "the one switch of these tests")]
fn is_to_be_written() -> bool {
    std::env::var_os("UPDATE_METHODOLOGY").is_some()
}

/// Simulates, and writes a table.
type Writes = fn() -> String;

// One test for all tables, because they are in one file and several tests would write it at the same time.
#[test]
fn the_tables_in_methodology_are_what_these_simulations_say() {
    let tables: [(&str, Writes); 8] = [
        ("", table),
        (", estimators", estimators),
        (", pace", crate::pace::table),
        (", together", crate::together::table),
        (", adjusted", crate::neighbors::table),
        (", factors", crate::factors::table),
        (", gates", crate::gates::table),
        (", histories", crate::history::table),
    ];
    // On all cores. One after the other, they take longer than all other tests of this program together.
    let texts = std::thread::scope(|scope| {
        let running = tables.map(|(_, table)| scope.spawn(table));
        running.map(|table| table.join().expect("the simulations end"))
    });
    for ((name, _), text) in tables.iter().zip(&texts) {
        is_updated(name, text);
    }
}
