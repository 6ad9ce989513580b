//! Costs that few requests pay, in words.

use analysis::summary::quantity;
use analysis::summary::{FewPay, Payment};
use model::Unit;
use recording::digits;

/// The difference in words: `mean +1.04 ms (about a fifth of the requests pay more)`.
pub(crate) fn words(few: &FewPay, times: Unit) -> String {
    let payers = payers(few).map_or_else(String::new, |payers| format!(" ({payers})"));
    format!("{}{payers}", mean(few, times))
}

/// The difference of the mean in words: `mean +1.04 ms`.
pub(crate) fn mean(few: &FewPay, times: Unit) -> String {
    let latency_us = few.latency_us_mean;
    let sign = if latency_us < 0.0 { '-' } else { '+' };
    let size = quantity::amount(times, latency_us.abs());
    format!("mean {sign}{size}")
}

/// The share of the requests that pay, in words: `about a fifth of the requests pay more`. `None` if it is
/// too small to be distinguished from chance.
pub(crate) fn payers(few: &FewPay) -> Option<String> {
    let does = match few.payment {
        Payment::Pay => "pay",
        Payment::PayMore => "pay more",
        Payment::PayLess => "pay less",
        Payment::Save => "save",
        Payment::SaveMore => "save more",
        Payment::SaveLess => "save less",
    };
    Some(format!("{} {does}", of_requests(few.share_of_requests?)))
}

/// A share of the requests in words, with justified precision: `about a fifth of the requests`.
fn of_requests(share: f64) -> String {
    const FRACTIONS: [(f64, &str); 9] = [
        (1.0, "nearly all"),
        (0.75, "about three quarters of the"),
        (0.6667, "about two thirds of the"),
        (0.5, "about half of the"),
        (0.4, "about two fifths of the"),
        (0.3333, "about a third of the"),
        (0.25, "about a quarter of the"),
        (0.2, "about a fifth of the"),
        (0.1, "about a tenth of the"),
    ];
    let is_nearest = |one: &&(f64, &str), other: &&(f64, &str)| {
        let distance = |it: &(f64, &str)| (it.0 / share).ln().abs();
        distance(one).total_cmp(&distance(other))
    };
    let nearest = FRACTIONS.iter().min_by(is_nearest);
    match nearest {
        Some((_, words)) if share >= 0.075 => format!("{words} requests"),
        // One digit is enough, because a small share is not known more precisely.
        _ => {
            let percent = share * 100.0;
            let place = 10f64.powf(percent.log10().floor());
            let rounded = (percent / place).round() * place;
            format!("about {} % of the requests", digits::planned(rounded))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_named_as_exactly_as_they_are_known() {
        let shares = [0.004, 0.019, 0.05, 0.09, 0.11, 0.19, 0.24, 0.31, 0.52, 0.98];
        let words: Vec<String> = shares.into_iter().map(of_requests).collect();
        insta::assert_snapshot!(words.join("\n"), @"
        about 0.4 % of the requests
        about 2 % of the requests
        about 5 % of the requests
        about a tenth of the requests
        about a tenth of the requests
        about a fifth of the requests
        about a quarter of the requests
        about a third of the requests
        about half of the requests
        nearly all requests
        ");
    }
}
