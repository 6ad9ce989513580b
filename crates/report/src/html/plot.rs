//! Parts that all pictures share: scales, ticks, colors, and a frame with text that never shrinks.
//!
//! Horizontal positions are percentages and not pixels. Marks stand at percentages of the frame, lines are
//! drawn in an inner picture that stretches, and text keeps its size. So the same markup is readable at any
//! width and on paper, without a script.

use recording::digits;

use super::escape::escape;

/// Mapping of values to places between two edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    /// Equal steps for equal differences. Edges that coincide are moved apart.
    pub(super) fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            is_log: false,
        }
    }

    /// Equal steps for equal ratios. Both edges must be above 0.
    pub(super) fn log(low: f64, high: f64) -> Self {
        Self {
            is_log: true,
            ..Self::linear(low, high)
        }
    }

    /// A linear scale around these values, with a margin. It always includes zero.
    pub(super) fn around_zero(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let margin = (high - low) * 0.08;
        Self::linear(low - margin, high + margin)
    }

    /// The place of a value, in percent of the distance from the low edge to the high edge.
    pub(super) fn percent(self, value: f64) -> f64 {
        let share = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // Lines end slightly outside the frame, where the picture is cut off. So they cross its edge at their
        // true angle.
        (share * 100.0).clamp(-5.0, 105.0)
    }

    /// True if the value lies between the edges.
    pub(super) fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// True if the value lies beyond the high edge.
    pub(super) fn is_above(self, value: f64) -> bool {
        value > self.high
    }

    /// Round values on the scale with their labels, about `about` at most.
    pub(super) fn ticks(self, about: f64) -> Vec<(f64, String)> {
        if self.is_log {
            return self.log_ticks();
        }
        let rough = (self.high - self.low) / about;
        let power = 10f64.powf(rough.log10().floor());
        // This is the smallest round step that gives at most the requested number of marks. Rounding may
        // leave even the last step slightly below the rough one, and it is then near enough.
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(power * 10.0);
        let first = (self.low / step).ceil();
        // The limit of 30 ends the loop if a scale is so wide that steps vanish in rounding.
        (0..30)
            .map(|index| (first + f64::from(index)) * step)
            .take_while(|tick| *tick <= self.high + step * 1e-9)
            .map(|tick| (tick, digits::tick(tick, step)))
            .collect()
    }

    /// Ticks of a horizontal axis. Long labels such as `1,500` need the room of others, so there are fewer.
    pub(super) fn ticks_across(self, about: f64) -> Vec<(f64, String)> {
        const LONG: usize = 5;
        let ticks = self.ticks(about);
        let is_long = |(_, label): &(f64, String)| label.chars().count() >= LONG;
        match ticks.iter().any(is_long) {
            true => self.ticks(about * 0.6),
            false => ticks,
        }
    }

    /// 1, 2 and 5 times the powers of ten. A long scale has only the powers.
    fn log_ticks(self) -> Vec<(f64, String)> {
        let factors: &[f64] = if self.high / self.low > 300.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let first = self.low.log10().floor();
        // Twelve decades cover the range from a nanosecond to a quarter of an hour.
        (0..12)
            .flat_map(|decade| {
                let power = 10f64.powf(first + f64::from(decade));
                factors.iter().map(move |factor| (factor * power, power))
            })
            .filter(|(tick, _)| *tick >= self.low * 0.999 && *tick <= self.high * 1.001)
            .map(|(tick, power)| (tick, digits::tick(tick, power)))
            .collect()
    }
}

/// A mark on an axis, with its place in percent and its label.
pub(super) struct Tick {
    pub(super) percent: f64,
    pub(super) label: String,
    /// True if the label is hidden in narrow pictures.
    pub(super) is_minor: bool,
}

/// A frame with two axes. Marks inside are placed in percent from the top left.
pub(super) struct Frame<'a> {
    /// Title of the picture for screen readers.
    pub(super) title: &'a str,
    /// Figures of the picture for screen readers.
    pub(super) description: &'a str,
    /// CSS class of the frame, which sets its height and margins.
    pub(super) class: &'a str,
    pub(super) across: Vec<Tick>,
    pub(super) up: Vec<Tick>,
}

impl Frame<'_> {
    /// The picture. `body` is drawn in front of the grid.
    pub(super) fn draw(&self, body: &str) -> String {
        // Links must be reachable with the keyboard, and content of the role `img` is not.
        let role = if body.contains("<a ") { "group" } else { "img" };
        let mut out = format!(
            "<svg class=\"plot {}\" role=\"{role}\"><title>{}</title><desc>{}</desc>\n",
            self.class,
            escape(self.title),
            escape(self.description)
        );
        for tick in &self.up {
            let y = 100.0 - tick.percent;
            out += &format!(
                "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{y:.2}%\" y2=\"{y:.2}%\"/>\
                 <text class=\"quiet\" x=\"0\" dx=\"-8\" y=\"{y:.2}%\" dy=\".35em\" \
                 text-anchor=\"end\">{}</text>\n",
                escape(&tick.label)
            );
        }
        for tick in &self.across {
            let x = tick.percent;
            let class = if tick.is_minor {
                "quiet minor"
            } else {
                "quiet"
            };
            out += &format!(
                "<line class=\"tick\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"100%\"/>\
                 <text class=\"{class}\" x=\"{x:.2}%\" y=\"100%\" dy=\"1.45em\" \
                 text-anchor=\"middle\">{}</text>\n",
                escape(&tick.label)
            );
        }
        out + body + "</svg>\n"
    }
}

/// Opens the inner picture that stretches with its frame. Its coordinates range from 0 to 1000 in both
/// directions.
pub(super) const STRETCHED: &str =
    "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" width=\"100%\" height=\"100%\">";

/// Points in percent (from the left, from below) as the `d` attribute of a path in a stretched picture. Steps are
/// relative to the point before, which is shorter. They are taken between rounded places, so that no error adds
/// up.
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    let mut last: Option<(f64, f64)> = None;
    for (x, y) in points {
        let place = ((x * 10.0).round(), (1000.0 - y * 10.0).round());
        out += &match last {
            None => format!("M{:.0} {:.0}", place.0, place.1),
            Some(last) => format!("l{:.0} {:.0}", place.0 - last.0, place.1 - last.1),
        };
        last = Some(place);
    }
    // A minus sign separates numbers like a space.
    out.replace(" -", "-")
}

/// The CSS classes of one thing of several, such as a system in a bar or a variant of a curve. There are four
/// colors. The next four things have the same colors with another line.
pub(super) fn series(index: usize) -> String {
    let again = if index / 4 % 2 == 1 { " again" } else { "" };
    format!("s{}{again}", index % 4 + 1)
}

/// Marks of a vertical axis of differences. Each mark above zero has a sign.
pub(super) fn signed(scale: Scale, about: f64) -> Vec<Tick> {
    let tick = |(value, label): (f64, String)| Tick {
        percent: scale.percent(value),
        is_minor: false,
        label: match value > 0.0 && label.contains(|digit: char| ('1'..='9').contains(&digit)) {
            true => format!("+{label}"),
            false => label,
        },
    };
    scale.ticks(about).into_iter().map(tick).collect()
}

/// A picture with the names of its two axes. All parts are markup. `caption` may be empty.
pub(super) fn figure(caption: &str, up: &str, across: &str, picture: &str) -> String {
    let caption = match caption {
        "" => String::new(),
        caption => format!("<figcaption>{caption}</figcaption>\n"),
    };
    format!(
        "<figure>\n{caption}<p class=\"over\">{up}</p>\n{picture}\
         <p class=\"under\">{across}</p>\n</figure>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, about: f64) -> Vec<String> {
        scale
            .ticks(about)
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn ticks_are_round_and_have_the_digits_of_their_step() {
        assert_eq!(
            labels(Scale::linear(-0.07, 0.13), 5.0),
            ["-0.05", "0.00", "0.05", "0.10"]
        );
        assert_eq!(
            labels(Scale::linear(0.0, 43_000.0), 5.0),
            ["0", "10,000", "20,000", "30,000", "40,000"]
        );
        assert_eq!(
            labels(Scale::log(0.2, 30.0), 5.0),
            ["0.2", "0.5", "1", "2", "5", "10", "20"]
        );
    }

    #[test]
    fn long_labels_leave_room_for_each_other() {
        let labels = |scale: Scale| -> Vec<String> {
            let ticks = scale.ticks_across(5.0).into_iter();
            ticks.map(|(_, label)| label).collect()
        };
        let short = labels(Scale::linear(0.0, 200.0));
        assert_eq!(short, ["0", "50", "100", "150", "200"]);
        let long = labels(Scale::linear(0.0, 2_000.0));
        assert_eq!(long, ["0", "1,000", "2,000"]);
    }

    #[test]
    fn places_run_from_edge_to_edge() {
        assert!((Scale::linear(2.0, 4.0).percent(3.0) - 50.0).abs() < 1e-9);
        assert!((Scale::log(1.0, 100.0).percent(10.0) - 50.0).abs() < 1e-9);
        assert!((Scale::linear(1.0, 1.0).percent(1.0)).abs() < 1e-9);
    }

    #[test]
    fn a_path_has_steps_between_rounded_places() {
        let points = [(0.0, 0.0), (10.0, 50.0), (9.96, 50.04), (20.0, 40.0)];
        assert_eq!(path(points.into_iter()), "M0 1000l100-500l0 0l100 100");
        assert_eq!(path(std::iter::empty()), "");
    }
}
