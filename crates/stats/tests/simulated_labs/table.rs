//! The table of METHODOLOGY.md: what these simulations say, written by them.

use std::fmt::Write as _;
use std::path::Path;

use crate::machine::{Order, Quantile};
use crate::{DIFFERENT, coverage, share, stopping};
use stats::Claim;

const BEGIN: &str = "<!-- written by UPDATE_METHODOLOGY=1 cargo test -p stats: begin -->";
const END: &str = "<!-- written by UPDATE_METHODOLOGY=1 cargo test -p stats: end -->";

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
    let wish = (10, 0.008);
    let is_different = |ended: &stopping::Ended| DIFFERENT.contains(&ended.claim);
    rows.push((
        "identical systems, rounds until ±0.8 % (`--until`): a difference is claimed in".to_owned(),
        percent(stopping::share(250, 0.0, wish, is_different)),
    ));
    let mut text = "| simulated labs | share |\n|---|---|\n".to_owned();
    for (what, how_often) in rows {
        let _ = writeln!(text, "| {what} | {how_often} |");
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the one switch of these tests")]
fn the_table_in_methodology_is_what_these_simulations_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../METHODOLOGY.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}\n\n{}\n{END}{after}", table());
    if std::env::var_os("UPDATE_METHODOLOGY").is_some() {
        std::fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "the table in METHODOLOGY.md is out of date; run `UPDATE_METHODOLOGY=1 cargo test -p stats`; \
         it should be\n{}",
        table()
    );
}
