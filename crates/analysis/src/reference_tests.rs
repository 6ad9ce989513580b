//! `docs/figures.md`: every figure with its names, unit and meaning, made from the list of metrics.

use std::fmt::Write as _;

use generated::assert_generated;
use model::Metric;

/// Line that the page starts with.
const HEAD: &str = "<!-- Made from crates/model by `cargo xtask schema`; do not edit. -->

# Figures

This page lists every figure that `weigh` reports.
Write the name in `--until`, `--gate` and `gates`. JSON and CSV contain the key.
An overhead is the figure of a variant minus the figure of its baseline.

| name | other spellings | key in JSON and CSV | unit in reports | better | meaning |
|---|---|---|---|---|---|
";

fn page() -> String {
    let mut text = HEAD.to_owned();
    for metric in Metric::ALL {
        let (name, spellings) = metric
            .names()
            .split_first()
            .expect("every metric has a name");
        let spellings: Vec<String> = spellings.iter().map(|it| format!("`{it}`")).collect();
        let better = if metric.is_better_low() {
            "lower"
        } else {
            "higher"
        };
        let _ = writeln!(
            text,
            "| `{name}` | {} | `{}` | {} | {better} | {} |",
            spellings.join(", "),
            metric.key(),
            metric.unit().signs(),
            metric.meaning()
        );
    }
    text
}

#[test]
fn the_page_of_figures_is_up_to_date() {
    assert_generated("docs/figures.md", &page());
}
