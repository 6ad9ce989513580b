//! Explanations of technical words in the text of the page. A reader opens one with the pointer, a key or a
//! finger. On paper they are at the end of the page.

use analysis::summary::Summary;
use model::Metric;
use recording::describe;

use super::escape::escape;

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
        meaning: Metric::Requests.meaning(),
    },
    Term {
        word: "min",
        meaning: Metric::Min.meaning(),
    },
    Term {
        word: "mean",
        meaning: Metric::Mean.meaning(),
    },
    Term {
        word: "typical",
        meaning: Metric::Typical.meaning(),
    },
    Term {
        word: "stdev",
        meaning: Metric::Stdev.meaning(),
    },
    Term {
        word: "p50",
        meaning: Metric::P50.meaning(),
    },
    Term {
        word: "p75",
        meaning: Metric::P75.meaning(),
    },
    Term {
        word: "p90",
        meaning: Metric::P90.meaning(),
    },
    Term {
        word: "p95",
        meaning: Metric::P95.meaning(),
    },
    Term {
        word: "p99",
        meaning: Metric::P99.meaning(),
    },
    Term {
        word: "p99.9",
        meaning: Metric::P999.meaning(),
    },
    Term {
        word: "max",
        meaning: Metric::Max.meaning(),
    },
    Term {
        word: "CPU",
        meaning: Metric::Cpu.meaning(),
    },
    Term {
        word: "peak memory",
        meaning: Metric::Memory.meaning(),
    },
    Term {
        word: "Verdict",
        meaning: "The conclusion from the interval of the deciding figure. No difference shown \
                  means that the interval contains 0. It does not prove that both are equal.",
    },
    Term {
        word: "generator CPU",
        meaning: Metric::GeneratorCpu.meaning(),
    },
];

/// Text of the page, with an explanation if the word has one. `shown` is text, not markup.
pub(super) fn explained(word: &str, shown: &str) -> String {
    let Some(index) = TERMS
        .iter()
        .position(|term| term.word.eq_ignore_ascii_case(word))
    else {
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
