//! The page of a running lab, and the page before its first round.

use analysis::summary::Summary;
use recording::{Recording, describe};

use super::escape::escape;
use super::{Document, document, page};

/// The state of a run at the moment of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoFar {
    /// Rounds are measured. A browser loads the page again after this number of seconds.
    Measuring {
        /// The time in seconds, at least 1.
        refresh_s: u32,
    },
    /// The run has ended, and its page does not change again.
    Ended,
}

impl SoFar {
    pub(super) fn refresh_s(self) -> Option<u32> {
        match self {
            Self::Measuring { refresh_s } => Some(refresh_s),
            Self::Ended => None,
        }
    }

    /// The line above the page. Verdicts before the end are wrong more often than their confidence says,
    /// because a reader may stop at the first favorable one.
    pub(super) fn notice(self, summary: &Summary) -> String {
        let text = match self {
            Self::Measuring { .. } => format!(
                "This run is still measuring: {} of {} so far. No verdict of this page is final before the end.",
                summary.rounds_measured,
                describe::plural(summary.rounds_planned as u64, "round")
            ),
            Self::Ended => {
                "This run has ended, and so has its address. The page is report.html in the \
                            folder of the recording."
                    .to_owned()
            }
        };
        format!(
            "<p class=\"notice\" role=\"status\">{}</p>\n",
            escape(&text)
        )
    }
}

/// Renders the recording of a running lab, or that has just ended.
#[must_use]
pub fn html_so_far(recording: &Recording, summary: &Summary, so_far: SoFar) -> String {
    page(recording, summary, Some(so_far))
}

/// Renders the page of a run without a complete round. `title` is the name of the lab.
#[must_use]
pub fn html_waiting(title: &str, refresh_s: u32) -> String {
    let title = escape(title);
    let header = format!(
        "<header>\n<p class=\"eyebrow\"><span>Weighbridge</span></p>\n<h1>{title}</h1>\n\
         <p class=\"notice\" role=\"status\">No round has been measured yet. This page loads again after \
         {refresh_s} s.</p>\n</header>\n"
    );
    document(&Document {
        title: &title,
        header: &header,
        main: "",
        footer: "",
        refresh_s: Some(refresh_s),
    })
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_page_before_the_end_says_so_and_loads_again() {
        let mut recording = SampleRun::side_by_side()
            .rounds(8)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        recording.rounds.retain(|round| round.round < 3);
        let summary = Summary::of(&recording);
        let measuring = SoFar::Measuring { refresh_s: 9 };
        let shown = html_so_far(&recording, &summary, measuring);
        assert!(shown.contains("<meta http-equiv=\"refresh\" content=\"9\">"));
        assert!(
            shown.contains("This run is still measuring: 3 of 8 rounds so far."),
            "{shown}"
        );
        let ended = html_so_far(&recording, &summary, SoFar::Ended);
        assert!(!ended.contains("refresh") && ended.contains("This run has ended"));
        assert!(!crate::html(&recording, &summary).contains("class=\"notice\""));
        let waiting = html_waiting("<lab>", 5);
        assert!(waiting.contains("&lt;lab&gt;") && waiting.contains("content=\"5\">"));
    }
}
