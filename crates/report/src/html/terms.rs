//! Explanations of technical words in the text of the page. A reader opens one with the pointer, a key or a
//! finger. On paper they are at the end of the page.

use super::escape::escape;
use crate::describe;
use crate::summary::Summary;

/// A word and its meaning in reports.
struct Term {
    /// The word in the form of tables and sentences.
    word: &'static str,
    meaning: &'static str,
}

const TERMS: [Term; 18] = [
    Term {
        word: "baseline",
        meaning: "All other variants are compared with this variant, each time in the same round.",
    },
    Term {
        word: "interval",
        meaning: "The range in which the difference would lie if the run were repeated often. All \
                  verdicts of the page together have a confidence of 95 %, so each alone is \
                  somewhat more certain.",
    },
    Term {
        word: "requests/s",
        meaning: "Passed answers per second.",
    },
    Term {
        word: "min",
        meaning: "The fastest request of a round.",
    },
    Term {
        word: "mean",
        meaning: "The average over the requests of a round. A few very slow requests move it.",
    },
    Term {
        word: "typical",
        meaning: "The mean of the fastest three quarters of a round's requests. It is the latency \
                  of a request without disturbance.",
    },
    Term {
        word: "stdev",
        meaning: "Standard deviation: the typical distance of values from their mean.",
    },
    Term {
        word: "p50",
        meaning: "The median: half of the requests were faster.",
    },
    Term {
        word: "p75",
        meaning: "Three of four requests were faster.",
    },
    Term {
        word: "p90",
        meaning: "Nine of ten requests were faster.",
    },
    Term {
        word: "p95",
        meaning: "19 of 20 requests were faster.",
    },
    Term {
        word: "p99",
        meaning: "99 of 100 requests were faster.",
    },
    Term {
        word: "p99.9",
        meaning: "999 of 1,000 requests were faster.",
    },
    Term {
        word: "max",
        meaning: "The slowest request of a typical round, or of all rounds if p99 is of all rounds.",
    },
    Term {
        word: "CPU",
        meaning: "Processor time of all systems of the variant for each answer.",
    },
    Term {
        word: "memory",
        meaning: "The sum of the peaks of all systems of the variant.",
    },
    Term {
        word: "Verdict",
        meaning: "The conclusion from the interval of the deciding figure. No difference shown \
                  means that the interval contains 0. It does not prove that both are equal.",
    },
    Term {
        word: "generator CPU",
        meaning: "Processor time of the program that sends the requests, for each answer.",
    },
];

/// Text of the page, with an explanation if the word has one. `shown` is text, not markup.
pub(super) fn explained(word: &str, shown: &str) -> String {
    let Some(index) = TERMS.iter().position(|term| term.word == word) else {
        return escape(shown);
    };
    format!(
        "<button class=\"term\" popovertarget=\"term-{index}\" title=\"{}\">{}</button>",
        escape(TERMS[index].meaning),
        escape(shown)
    )
}

/// The text `98.33 % intervals` with its explanation.
pub(super) fn intervals(summary: &Summary) -> String {
    let shown = format!("{} intervals", describe::percent(summary.confidence_each));
    explained("interval", &shown)
}

/// The meanings of the words in a page: a block to open for each, and a list for paper.
pub(super) fn meanings(page: &str) -> String {
    let used = TERMS.iter().enumerate().filter(|(index, _)| {
        let target = format!("popovertarget=\"term-{index}\"");
        page.contains(&target)
    });
    let (mut opened, mut listed) = (String::new(), String::new());
    for (index, Term { word, meaning }) in used {
        opened += &format!(
            "<div class=\"meaning\" popover id=\"term-{index}\"><b>{word}</b> {meaning}</div>\n"
        );
        listed += &format!("<dt>{word}</dt><dd>{meaning}</dd>\n");
    }
    match opened.as_str() {
        "" => String::new(),
        opened => format!(
            "{opened}<section id=\"glossary\">\n<h2>Words</h2>\n<dl class=\"list\">\n{listed}</dl>\n</section>\n"
        ),
    }
}
