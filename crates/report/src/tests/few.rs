//! Tests of costs that few requests pay. The costs are planted into a recording of a lab.

use super::*;
use crate::Terminal;
use analysis::sample::{ROW, few, planted};

#[test]
fn every_format_says_both_and_who_pays() {
    let (summary, few) = few(&planted(50, 5_000_000));
    let recording = planted(50, 5_000_000);
    insta::assert_snapshot!(crate::words::few(&few, model::Unit::Microseconds), @"mean +93 us (about 2 % of the requests pay)");
    insta::assert_snapshot!(crate::verdict_text(summary.variant(ROW).unwrap()), @"no difference shown; mean +93 us (about 2 % of the requests pay)");
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"Compared with `one by one` (203 us), at 100 requests/s, a typical request takes 17 us (15 to 24) longer with `batch of 2`, 264 us (258 to 281) longer with `batch of 10`; no difference shown for 1 of 3; on average, slow requests included, +93 us (84 to 101) with `one by one, batches allowed`: about 2 % of the requests pay.");
    let one = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (format, text) in renderings(&recording, &summary) {
        let text = one(text);
        for part in ["+93 us", "about 2 % of the requests pay"] {
            assert!(text.contains(part), "no `{part}` in {format}:\n{text}");
        }
    }
    let wide = crate::text(&recording, &summary, Terminal::plain(200));
    assert!(
        one(wide.clone()).contains("no difference shown; mean +93 us"),
        "{wide}"
    );
}

#[test]
fn the_picture_has_a_second_mark_on_an_axis_that_holds_it() {
    let recording = planted(10, 20_000_000);
    let page = crate::html(&recording, &Summary::of(&recording));
    let of_mean = |mark: &&str| mark.contains("<title>mean ") && mark.contains("hollow");
    let marks: Vec<&str> = page.split("<g class=\"").filter(of_mean).collect();
    assert_eq!(marks.len(), 3, "one for each variant");
    let paid = marks.iter().filter(|mark| mark.starts_with("mark worse"));
    let is_whole = |mark: &&&str| mark.matches("class=\"end\"").count() == 2;
    assert!(
        paid.clone().count() > 0 && paid.clone().all(|mark| is_whole(&mark)),
        "{marks:?}"
    );
    // No mark lies outside the picture.
    let places = page.split("cx=\"").skip(1);
    let places = places.filter_map(|rest| rest.split_once('%')?.0.parse::<f64>().ok());
    let places: Vec<f64> = places.collect();
    assert!(
        places.iter().all(|it| (0.0..=100.0).contains(it)),
        "{places:?}"
    );
}
