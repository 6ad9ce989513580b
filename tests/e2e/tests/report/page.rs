//! The view of a reader of `report.html`, checked with a headless Chromium.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::{Browser, View, url_of, weigh, weigh_command};
use serde_json::{Value, json};
use tempfile::TempDir;

const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../labs/graphql-server/records/2026-11-21/recording.json"
);
const VIEWS: [View; 4] = [
    View {
        width: 1400,
        is_dark: false,
    },
    View {
        width: 1400,
        is_dark: true,
    },
    View {
        width: 420,
        is_dark: false,
    },
    View {
        width: 420,
        is_dark: true,
    },
];
/// Nine variants side by side.
const NINE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../labs/router-extensibility/records/static-subgraph.json"
);

fn rendered(recording: &Path, format: &str) -> String {
    let output = weigh_command()
        .arg("report")
        .arg(recording)
        .args(["--format", format])
        .output()
        .expect("weigh starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("reports are UTF-8")
}

fn page_of(recording: &Path, folder: &TempDir) -> PathBuf {
    let page = folder.path().join("report.html");
    fs::write(&page, rendered(recording, "html")).expect("the page can be written");
    page
}

/// Writes the committed recording with a change.
fn changed(folder: &TempDir, change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = fs::read_to_string(RECORDING).expect("the recording is committed");
    let mut recording: Value = serde_json::from_str(&text).expect("a recording is JSON");
    change(&mut recording);
    let path = folder.path().join("recording.json");
    fs::write(&path, recording.to_string()).expect("the recording can be written");
    path
}

/// Opens the page in every view. The page must send no request, log no error, fit the window and have
/// readable labels.
pub(crate) fn look(browser: &mut Browser, page: &Path) {
    let own = url_of(page);
    let mut grounds = Vec::new();
    for view in VIEWS {
        let events = browser.open(&own, view);
        let mut asked = Vec::new();
        for event in &events {
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => asked.push(&event["params"]["request"]["url"]),
                "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" => {
                    panic!("{view:?}: {event}")
                }
                _ => {}
            }
        }
        asked.retain(|url| !url.as_str().is_some_and(|url| url.starts_with("data:")));
        assert_eq!(asked, [&json!(own)], "{view:?}");
        let overflow = browser
            .ask("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(overflow, 0, "{view:?}: the page scrolls sideways");
        assert_eq!(browser.ask(TOUCHING), json!([]), "{view:?}");
        assert_eq!(browser.ask(OUTSIDE), json!([]), "{view:?}");
        grounds.push(browser.ask("getComputedStyle(document.body).backgroundColor"));
    }
    assert_eq!(grounds[0], grounds[2]);
    assert_eq!(grounds[1], grounds[3]);
    assert_ne!(grounds[0], grounds[1], "light and dark look alike");
}

/// Barriers that axe-core finds on the page, rule by rule.
const VIOLATIONS: &str = "axe.run().then(found => found.violations.map(rule =>
  rule.id + ': ' + rule.nodes.map(node => node.html.slice(0, 200)).join(' | ')))";

/// Checks that the page is accessible to people who do not see it, or see it differently.
pub(crate) fn has_no_barrier(browser: &mut Browser, page: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("axe");
    if !judged::has_package(&folder, "axe-core") {
        return;
    }
    let rules = fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js"));
    let rules = rules.expect("the package has it");
    for view in VIEWS {
        browser.open(&url_of(page), view);
        browser.ask(&format!("{rules};0"));
        assert_eq!(browser.ask(VIOLATIONS), json!([]), "{view:?}");
    }
}

/// Labels of one picture that overlap. Marks may overlap if values are equal.
const TOUCHING: &str = "[...document.querySelectorAll('svg')].flatMap(picture => {
  const boxes = [...picture.querySelectorAll('text:not(.sign)')]
    .map(text => [text.textContent, text.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0);
  return boxes.flatMap(([one, a], index) => boxes.slice(index + 1)
    .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
      && a.top < b.bottom - 4 && b.top < a.bottom - 4)
    .map(([other]) => one + ' / ' + other));
})";

/// Verdicts that the table or the window cuts off.
const CUT: &str = "[...document.querySelectorAll('#results td.verdict')].filter(cell => {
  const box = cell.getBoundingClientRect(), frame = cell.closest('.scroll').getBoundingClientRect();
  return box.width == 0 || box.right > frame.right + 1 || box.left < frame.left || box.right > innerWidth
    || cell.scrollWidth > cell.clientWidth;
}).map(cell => cell.textContent)";

/// Number of blocks with content that is not shown.
const CLOSED: &str = "[...document.querySelectorAll('details > :not(summary)')]
  .filter(content => !content.checkVisibility()).length";

/// Labels that the window cuts off.
const OUTSIDE: &str = "[...document.querySelectorAll('svg text')]
  .map(text => [text.textContent, text.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.left < 0 || box.right > innerWidth))
  .map(([label]) => label)";

/// The figures of the page's table and below it, by variant and metric.
const FIGURES: &str =
    "Object.fromEntries([...document.querySelectorAll('#results tbody tr')].map(row => [
  row.querySelector('th').textContent,
  Object.fromEntries([...row.querySelectorAll('td[data-metric]')].map(cell => [
    cell.dataset.metric,
    [cell.querySelector('span').textContent, cell.querySelector('small')?.textContent ?? null],
  ])),
]))";

/// Rows of the table below a line of the text report, by the first cell. The values are the remaining cells.
fn table<'a>(text: &'a str, columns: &str) -> BTreeMap<&'a str, Vec<&'a str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(columns));
    let body = lines.skip_while(|line| !line.starts_with('─')).skip(1);
    body.take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with(' '))
        .map(|line| {
            let mut cells = line
                .split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty());
            (cells.next().expect("a row has a name"), cells.collect())
        })
        .collect()
}

#[test]
fn the_page_of_a_lab_loads_alone_and_says_what_the_table_says() {
    let folder = TempDir::new().expect("a temporary folder");
    let recording = Path::new(RECORDING);
    let page = page_of(recording, &folder);
    let mut browser = Browser::start();
    look(&mut browser, &page);
    let sections = browser.ask("[...document.querySelectorAll('section')].map(part => part.id)");
    let wanted = [
        "answer",
        "results",
        "overhead",
        "distribution",
        "shift",
        "time",
        "cost",
        "traffic",
        "checks",
        "reading",
        "variants",
        "machine",
        "requests",
        "reproduce",
    ];
    let has = |id: &&str| {
        let sections = sections.as_array().expect("a list");
        sections.iter().any(|section| section == *id)
    };
    let absent: Vec<_> = wanted.iter().filter(|id| !has(id)).collect();
    assert!(absent.is_empty(), "{absent:?} of {sections}");

    let text = rendered(recording, "full");
    let figures = browser.ask(FIGURES);
    let results = table(&text, "variant  ");
    assert_eq!(results.len(), 4, "{text}");
    let columns = [
        "requests_per_s",
        "latency_us_p50",
        "latency_us_p99",
        "latency_us_max",
    ];
    let columns = columns
        .iter()
        .chain(&["cpu_us_per_request", "memory_peak_bytes"]);
    for (variant, cells) in &results {
        // The verdict has the space of the maximum, which is in the figures of the distributions.
        let shown = columns.clone().zip(cells);
        for (metric, cell) in shown.filter(|(metric, _)| **metric != "latency_us_max") {
            assert_eq!(figures[variant][metric][0], *cell, "{metric} of {variant}");
        }
    }
    let overheads = table(&text, "Overhead against");
    assert_eq!(overheads.len(), 3, "{text}");
    let columns = [
        "requests_per_s",
        "latency_us_mean",
        "latency_us_p50",
        "latency_us_p99",
    ];
    for (variant, cells) in &overheads {
        for (metric, cell) in columns.iter().chain(&["cpu_us_per_request"]).zip(cells) {
            assert_eq!(figures[variant][metric][1], *cell, "{metric} of {variant}");
        }
    }
}

#[test]
fn a_page_of_nine_variants_is_small_and_begins_with_the_answer() {
    let folder = TempDir::new().expect("a temporary folder");
    let page = page_of(Path::new(NINE), &folder);
    let size = fs::metadata(&page).expect("the page was written").len();
    assert!(size < 400_000, "{size} bytes");
    let mut browser = Browser::start();
    look(&mut browser, &page);
    has_no_barrier(&mut browser, &page);
    for width in [390, 1280] {
        let is_dark = false;
        browser.open(&url_of(&page), View { width, is_dark });
        for part in [".said-first", "#answer .row:nth-child(2)"] {
            let end = browser.ask(&format!(
                "document.querySelector('{part}').getBoundingClientRect().bottom"
            ));
            let end = end.as_f64().expect("a length");
            assert!(end < 660.0, "{part} ends at {end} of {width} px");
        }
    }
    for width in [390, 1280, 1440] {
        let is_dark = false;
        browser.open(&url_of(&page), View { width, is_dark });
        assert_eq!(browser.ask(CUT), json!([]), "at {width} px");
    }
    browser.on_paper();
    assert_eq!(browser.ask(CLOSED), 0, "paper has nothing to open");
    let screen = View {
        width: 1280,
        is_dark: false,
    };
    browser.open(&url_of(&page), screen);
    let closed = browser.ask(CLOSED);
    assert!(closed.as_u64().is_some_and(|closed| closed > 8), "{closed}");
    // A term is explained by a button, and on paper by a list.
    let opened = "(() => {
      const word = [...document.querySelectorAll('button.term')].find(it => it.textContent == 'p99');
      word.focus(); word.click();
      return document.querySelector(':popover-open').textContent;
    })()";
    assert_eq!(browser.ask(opened), "p99 99 of 100 requests were faster.");
    let listed = browser.ask("document.querySelector('#glossary').textContent");
    assert!(
        listed
            .as_str()
            .is_some_and(|words| words.contains("99 of 100 requests"))
    );
}

#[test]
fn a_sweep_is_a_page_of_its_own() {
    let folder = TempDir::new().expect("a temporary folder");
    let text = fs::read_to_string(NINE).expect("the recording is committed");
    let mut recording: Value = serde_json::from_str(&text).expect("a recording is JSON");
    for rate in [100.0, 400.0, 1600.0] {
        let phase = &mut recording["load"]["model"]["phases"][0];
        assert!(phase["rate_from_per_s"].is_number(), "{phase}");
        phase["rate_from_per_s"] = json!(rate);
        phase["rate_to_per_s"] = json!(rate);
        let level = folder.path().join(format!("at-{rate}-per-s"));
        fs::create_dir(&level).expect("a folder can be made");
        fs::write(level.join("recording.json"), recording.to_string()).expect("it can be written");
    }
    let text = rendered(folder.path(), "text");
    assert!(text.contains("at 1,600 requests/s"), "{text}");
    let page = folder.path().join("curve.html");
    fs::write(&page, rendered(folder.path(), "html")).expect("the page can be written");
    let mut browser = Browser::start();
    look(&mut browser, &page);
    has_no_barrier(&mut browser, &page);
    let marks = browser.ask("document.querySelectorAll('figure .sign title').length");
    assert_eq!(marks, 8 * 3);
}

#[test]
fn the_page_of_a_lab_in_which_variants_failed_says_why_and_gives_no_number() {
    let folder = TempDir::new().expect("a temporary folder");
    let recording = changed(&folder, |recording| {
        recording["variants"][1]["status"] = json!({
            "state": "invalid",
            "kind": "not-ready",
            "reason": "`server` did not answer <http://127.0.0.1:1> within 10 s",
        });
        let rounds = recording["rounds"].as_array_mut().expect("rounds");
        rounds.retain(|round| round["variant"] != "juniper-ntex-tuned");
        for round in rounds {
            if round["variant"] == "async-graphql-actix-web-plain" {
                let passed = round["outcomes"]["passed"].as_u64().expect("a count");
                round["outcomes"]["passed"] = json!(passed - 7);
                round["outcomes"]["mismatched"]["body"] = json!(7);
            }
        }
    });
    let page = page_of(&recording, &folder);
    let mut browser = Browser::start();
    look(&mut browser, &page);
    let answer = browser.ask("document.querySelector('#answer').textContent");
    let answer = answer.as_str().expect("text");
    for reason in [
        "invalid: server did not answer <http://127.0.0.1:1> within 10 s",
        "answers mismatched (body 70)",
    ] {
        assert!(answer.contains(reason), "`{reason}` in: {answer}");
    }
    let figures = browser.ask(FIGURES);
    for variant in ["juniper-ntex-tuned", "async-graphql-actix-web-plain"] {
        assert_eq!(figures[variant], json!({}), "{figures}");
    }
    let drawn = browser.ask(
        "[...document.querySelectorAll('#time figure b, #shift figure b')].map(name => name.textContent)",
    );
    assert_eq!(
        drawn,
        json!([
            "async-graphql-actix-web-tuned",
            "juniper-ntex-plain",
            "async-graphql-actix-web-tuned"
        ])
    );
}

/// The output of `weigh report` on a terminal with this locale and this value of `NO_COLOR`.
fn on_a_terminal(locale: &str, no_color: &str) -> String {
    let command = format!("'{}' report --full '{RECORDING}'", weigh().display());
    // `script` of util-linux gives the command a terminal of its own.
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env("LC_ALL", locale)
        .env("NO_COLOR", no_color)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("reports are UTF-8")
}

#[test]
fn a_terminal_gets_colors_unless_refused_and_ascii_unless_it_shows_more() {
    let colored = on_a_terminal("C.UTF-8", "");
    assert!(colored.contains("\u{1b}[1m") && colored.contains("±") && colored.contains("├"));
    let bare = on_a_terminal("C.UTF-8", "1");
    assert!(!bare.contains('\u{1b}') && bare.contains("±"), "{bare}");
    let ascii = on_a_terminal("C", "1");
    assert!(ascii.is_ascii(), "{ascii}");
    assert!(ascii.contains("+-") && ascii.contains("|-"), "{ascii}");
    // Without a terminal there are neither colors nor ASCII, regardless of the locale.
    let piped = rendered(Path::new(RECORDING), "full");
    assert!(!piped.contains('\u{1b}') && piped.contains("±"));
}
