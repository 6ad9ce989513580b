//! The help of `weigh load`, because people read it first.

use e2e::{Run, weigh_command};

fn help(flag: &str) -> String {
    let output = weigh_command()
        .args(["load", flag])
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .output()
        .expect("weigh starts");
    Run::of(output).exits_with(0).answer()
}

#[test]
fn the_short_help_fits_on_a_screen() {
    let help = help("-h");
    assert!(help.lines().count() <= 60, "{help}");
    insta::assert_snapshot!(help);
}

#[test]
fn the_long_help_says_it_all() {
    insta::assert_snapshot!(help("--help"));
}
