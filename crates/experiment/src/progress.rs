//! Live progress on a terminal, and plain lines elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use load::Live;
use model::Load;

use crate::console::Console;
use crate::environment::instant;
use crate::published::{Account, Receiver};
use crate::screen::Look;

/// Interval between two redraws of the terminal.
const REDRAW: Duration = Duration::from_millis(500);

/// The progress of one run.
pub struct Progress {
    console: Console,
    /// One step per measurement. Hidden without a terminal.
    bar: ProgressBar,
    /// True if a single load uses the whole screen.
    is_alone: bool,
    /// The published account of the run, if there is one.
    published: Option<Account>,
}

impl Progress {
    /// Progress over this many measurements.
    pub fn new(console: Console, measurements: u64) -> Progress {
        let bar = if console.is_live {
            ProgressBar::with_draw_target(Some(measurements), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        let template = if measurements > 1 {
            "{bar:24} {pos}/{len}  {wide_msg}  {eta} left"
        } else {
            "{spinner} {wide_msg}  {elapsed}"
        };
        let style = ProgressStyle::with_template(template)
            .expect("the template is a constant that indicatif accepts");
        Progress {
            console,
            bar: bar.with_style(style),
            is_alone: false,
            published: None,
        }
    }

    /// Returns the progress of a single load that uses the whole screen.
    pub fn alone(self) -> Progress {
        if self.console.is_live {
            let style = ProgressStyle::with_template("{msg}");
            let style = style.expect("the template is a constant that indicatif accepts");
            self.bar.set_style(style);
        }
        Progress {
            is_alone: true,
            ..self
        }
    }

    /// True if the output is a live screen on a terminal.
    pub(crate) fn is_live(&self) -> bool {
        self.console.is_live
    }

    /// Width of the screen in columns.
    pub fn width(&self) -> usize {
        self.console.screen().0
    }

    /// Replaces the lines above the bar.
    pub(crate) fn table(&self, lines: &[String]) {
        let template = "{prefix}\n{bar:24} {pos}/{len}  {wide_msg}  {eta} left";
        let style = ProgressStyle::with_template(template);
        self.bar
            .set_style(style.expect("the template is a constant that indicatif accepts"));
        self.bar.set_prefix(report::harmless(&lines.join("\n")));
    }

    /// Returns the progress with a published account.
    pub fn published(self, account: Option<Account>) -> Progress {
        Progress {
            published: account,
            ..self
        }
    }

    /// The published account.
    pub fn account(&self) -> Option<&Account> {
        self.published.as_ref()
    }

    /// Prints a permanent line.
    pub fn note(&self, line: &str) {
        if self.console.is_live {
            // Printed through the bar, which would otherwise overwrite the line.
            self.bar.suspend(|| self.console.say(line));
        } else {
            self.console.say(line);
        }
    }

    /// Shows the current activity. Only on a terminal, because it is redrawn.
    pub(crate) fn show(&self, line: &str) {
        self.bar.set_message(line.to_owned());
        self.bar.tick();
    }

    /// Does `work`, and meanwhile shows the counts of a discarded load.
    pub fn during<T>(&self, label: &str, work: impl FnOnce(&Live) -> T) -> T {
        self.measuring(label, Vec::new(), work)
    }

    /// Does `work`, and meanwhile shows and publishes the counts of a measured load.
    pub fn measuring<T>(
        &self,
        label: &str,
        receivers: Vec<Receiver>,
        work: impl FnOnce(&Live) -> T,
    ) -> T {
        let screen = receivers
            .first()
            .filter(|_| self.is_alone && self.console.is_live);
        let screen = screen.map(|receiver| receiver.load.clone());
        let Some(account) = &self.published else {
            let jobs = screen.as_ref().map_or(0, |_| 1);
            return self.shown(label, screen, &Live::with_jobs(jobs), work);
        };
        let live = Arc::new(Live::with_jobs(receivers.len()));
        account.begin(receivers, &live);
        let result = self.shown(label, screen, &live, work);
        account.end();
        result
    }

    fn shown<T>(
        &self,
        label: &str,
        screen: Option<Load>,
        live: &Live,
        work: impl FnOnce(&Live) -> T,
    ) -> T {
        if !self.console.is_live {
            return work(live);
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let ticker = scope.spawn(|| match &screen {
                Some(load) => self.screen_until(&done, label, load, live),
                None => self.redraw_until(&done, label, live),
            });
            let result = work(live);
            done.store(true, Ordering::Relaxed);
            // Wakes the ticker, so that the next measurement does not wait for its pause.
            ticker.thread().unpark();
            result
        })
    }

    /// Advances the bar by one measurement.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// Sets the expected total number of measurements.
    pub fn expect(&self, measurements: u64) {
        self.bar.set_length(measurements);
    }

    /// Clears the progress bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn screen_until(&self, done: &AtomicBool, label: &str, load: &Load, live: &Live) {
        let start = instant();
        let (mut rates, mut second) = (Vec::new(), (start, 0));
        while !done.load(Ordering::Relaxed) {
            let seen = live.read_jobs().into_iter().next().unwrap_or_default();
            let passed = second.0.elapsed();
            if passed >= Duration::from_secs(1) {
                let ended = seen.counts.ended;
                let rate = (ended - second.1) as f64 / passed.as_secs_f64();
                rates.push(rate);
                second = (instant(), ended);
            }
            let (width, is_utf8) = self.console.screen();
            let look = Look {
                label,
                load,
                elapsed: start.elapsed(),
                seen: &seen,
                rates: &rates,
                is_utf8,
            };
            self.show(&look.text(width));
            thread::park_timeout(REDRAW);
        }
    }

    fn redraw_until(&self, done: &AtomicBool, label: &str, live: &Live) {
        let start = instant();
        while !done.load(Ordering::Relaxed) {
            let counts = live.read();
            // The first update may come immediately, and would divide by zero.
            let seconds = start.elapsed().as_secs_f64().max(1e-3);
            let rate = counts.finished() as f64 / seconds;
            let errors = counts.mismatched + counts.failed + counts.missed;
            let mean = mean(counts.latency_mean_ns());
            self.show(&format!(
                "{label}: {rate:.0}/s, mean {mean}, {errors} errors"
            ));
            thread::park_timeout(REDRAW);
        }
    }
}

/// A mean latency with its unit. A dash before the first response.
fn mean(mean_ns: Option<u64>) -> String {
    mean_ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.3} ms", ns as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_without_a_response_has_no_mean() {
        assert_eq!(mean(None), "–");
        assert_eq!(mean(Some(1_234_567)), "1.235 ms");
    }
}
