use analysis::gate;
use model::{Gate, InvalidKind};
use recording::sample::SampleRun;
use recording::{Profile, VariantStatus};

use super::*;
use crate::cell;

fn page(recording: &Recording) -> String {
    html(recording, &Summary::of(recording))
}

#[test]
fn the_page_loads_nothing() {
    let out = page(&SampleRun::graphql_server());
    for word in [
        "http://", "https://", "<script", "<img", "@import", "url(", "src=",
    ] {
        let hits = out.matches(word).count();
        assert_eq!(hits, 0, "`{word}` in the page");
    }
}

#[test]
fn what_the_user_wrote_is_text_and_never_markup() {
    let evil = "<script>alert(1)</script>\"'&\u{1b}";
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant(evil, 800.0)
        .variant("c", 800.0)
        .build();
    let lab = recording.lab.as_mut().unwrap();
    lab.name = evil.to_owned();
    lab.question = evil.to_owned();
    lab.files[0].path = evil.to_owned();
    lab.files[0].text = Some(evil.to_owned());
    recording.command.push(evil.to_owned());
    recording.environment.cpu_model = Some(evil.to_owned());
    recording.load.requests[0].body = Some(evil.to_owned());
    recording.load.requests[0].name = evil.to_owned();
    let system = &mut recording.variants[1].systems[0];
    system.version = Some(evil.to_owned());
    system.name = evil.to_owned();
    system.command.push(evil.to_owned());
    system.env.insert(evil.to_owned(), evil.to_owned());
    for round in &mut recording.rounds {
        round.systems[0].name = evil.to_owned();
    }
    recording.profiles.push(Profile {
        variant: evil.to_owned(),
        system: evil.to_owned(),
        samples: 0,
        rate_hz: 1,
        cpu_us_per_request: None,
        hottest: Vec::new(),
        files: vec![format!("javascript:{evil}.svg")],
        missing: None,
    });
    recording.variants[2].with.insert(evil.into(), evil.into());
    recording.variants[2].status = VariantStatus::Invalid {
        kind: InvalidKind::Crashed,
        reason: evil.to_owned(),
    };
    let out = page(&recording);
    assert!(!out.contains("<script>"));
    assert!(!out.contains('\u{1b}'));
    assert!(
        out.contains("href=\"./javascript:"),
        "a file beside the page"
    );
    assert!(out.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
    assert_closed(&out);
}

/// Checks that every opened element is closed, in order.
fn assert_closed(page: &str) {
    let open_only = ["meta", "link", "br", "!doctype"];
    let mut stack: Vec<&str> = Vec::new();
    let style_end = page.find("</style>").unwrap();
    for piece in page[style_end + 8..].split('<').skip(1) {
        let tag = piece.split('>').next().unwrap();
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            let opened = stack.pop();
            if !["head", "html"].contains(&name) {
                assert_eq!(opened, Some(name), "</{name}>");
            }
        } else if !open_only.contains(&name) && !tag.ends_with('/') {
            stack.push(name);
        }
    }
    assert!(stack.is_empty(), "{stack:?}");
}

#[test]
fn every_opened_element_is_closed() {
    let mut recording = SampleRun::graphql_server();
    recording.variants[2].proof = None;
    assert_closed(&page(&recording));
    assert_closed(&page(&SampleRun::load_alone(true)));
}

#[test]
fn a_row_without_a_number_shows_why() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.rounds.retain(|round| round.variant == "a");
    recording.variants[1].status = VariantStatus::Invalid {
        kind: InvalidKind::NotReady,
        reason: "`server` did not answer within 10 s".to_owned(),
    };
    let out = page(&recording);
    let row = out
        .lines()
        .find(|line| line.starts_with("<tr class=\"invalid\">"))
        .unwrap();
    assert!(row.contains("invalid: <code>server</code> did not answer within 10 s"));
    assert!(!row.contains("data-metric"));
    let answer = out.find("<div class=\"row invalid\">").unwrap();
    assert!(out[answer..].contains("invalid: <code>server</code> did not answer within 10 s"));
    for section in ["overhead", "shift"] {
        assert!(!out.contains(&format!("<section id=\"{section}\"")));
    }
}

#[test]
fn an_interrupted_run_is_said_at_the_top() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.interrupted = true;
    recording.rounds.truncate(8);
    let out = page(&recording);
    let alarm = out
        .find("INTERRUPTED: 4 of 8 rounds were measured")
        .unwrap();
    assert!(alarm < out.find("<section").unwrap());
}

#[test]
fn the_picture_says_its_figures_as_text() {
    let summary = Summary::of(
        &SampleRun::open()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build(),
    );
    let svg = forest::forest(&summary, Metric::Mean).unwrap();
    let figure = cell::difference(&summary.variants[1], Metric::Mean).unwrap();
    let beside = format!("<span class=\"figure\">{figure}");
    assert_eq!(svg.matches(&beside).count(), 1, "next to the line");
    let under = format!("<title>mean {figure}");
    assert_eq!(svg.matches(&under).count(), 1, "under the pointer");
    assert!(svg.contains("class=\"mark worse\""));
}

#[test]
fn too_few_rounds_for_an_interval_give_no_picture_of_a_difference() {
    let sample = SampleRun::open()
        .rounds(5)
        .variant("a", 700.0)
        .variant("b", 800.0);
    let recording = sample.build();
    let summary = Summary::of(&recording);
    assert_eq!(forest::forest(&summary, Metric::Mean), None);
    assert_eq!(shift::shifts(&recording, &summary), "");
    let out = html(&recording, &summary);
    assert!(out.contains("not enough rounds (6 needed, 5 measured)"));
    assert!(!out.contains("class=\"mark"));
}

#[test]
fn the_shift_function_has_an_interval_at_every_quantile() {
    let recording = SampleRun::closed()
        .rounds(12)
        .variant("a", 700.0)
        .variant("b", 900.0)
        .build();
    let out = shift::shifts(&recording, &Summary::of(&recording));
    for quantile in ["p10", "p50", "p90", "p99", "p99.9"] {
        assert!(
            out.contains(&format!("<title>{quantile}: +")),
            "{quantile}: {out}"
        );
    }
    assert_eq!(out.matches("class=\"mark worse\"").count(), 8);
}

#[test]
fn what_became_of_gates_is_on_the_page() {
    let recording = SampleRun::open()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    let gate: Gate = "b mean overhead < 0.01ms".parse().unwrap();
    let summary = Summary::of(&recording).judged(&[gate], gate::Undecided::Fails);
    let out = html(&recording, &summary);
    let section = out.find("<section id=\"gates\">").unwrap();
    assert!(out[section..].contains("<b>broken</b>"));
}

#[test]
fn a_page_of_many_variants_and_rounds_stays_below_two_megabytes() {
    let names = [
        "config", "rhai", "rust", "go", "node", "csharp", "java", "python",
    ];
    let sample = SampleRun::open().rounds(8).variant("baseline", 680.0);
    let sample = names.iter().zip(1..).fold(sample, |sample, (name, step)| {
        sample.variant(name, 700.0 + 40.0 * f64::from(step))
    });
    let recording = sample.build();
    let out = page(&recording);
    assert!(out.len() < 2_000_000, "{}", out.len());
    for name in names {
        assert!(out.matches(name).count() > 10, "{name}");
    }
}

#[test]
fn the_verdict_stands_next_to_the_name() {
    let out = page(
        &SampleRun::side_by_side()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build(),
    );
    let results = &out[out.find("<section id=\"results\"").unwrap()..];
    let row = results.lines().find(|it| it.contains(">b</th>")).unwrap();
    let verdict =
        "<th scope=\"row\" class=\"words\">b</th><td class=\"words verdict worse\">slower by";
    assert!(row.contains(verdict), "{row}");
}

#[test]
fn pictures_stand_in_the_order_of_a_reader_and_the_rest_is_folded() {
    let out = page(
        &SampleRun::side_by_side()
            .rounds(12)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build(),
    );
    let place = |id: &str| {
        let found = out.find(&format!("<section id=\"{id}\""));
        found.unwrap_or_else(|| panic!("{id}"))
    };
    let order = [
        "answer",
        "results",
        "rounds",
        "distribution",
        "systems",
        "overhead",
        "time",
    ];
    let places: Vec<usize> = order.into_iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?}");
    for folded in ["overhead", "shift", "time", "cost", "machine", "requests"] {
        assert!(
            out.contains(&format!(
                "<section id=\"{folded}\" class=\"behind\">\n<details>"
            )),
            "{folded}"
        );
        // A link to a place within a closed block opens it.
        assert!(
            out.contains(&format!("<a href=\"#{folded}-content\">")),
            "{folded}"
        );
    }
    assert!(out.contains("<b class=\"state none\">No gate</b> At 1,000 requests/s"));
}

#[test]
fn typical_and_mean_have_two_marks_and_the_axis_shows_both_where_they_disagree() {
    let recording = SampleRun::side_by_side()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    let mut summary = Summary::of(&recording);
    let of_mean = |summary: &Summary| {
        let answer = forest::answer(summary);
        let marks: Vec<String> = answer
            .split("<g class=\"mark ")
            .skip(1)
            .map(str::to_owned)
            .collect();
        assert_eq!(marks.len(), 2, "{answer}");
        assert!(marks[0].contains("<title>typical ") && marks[0].contains("<circle"));
        assert!(marks[1].contains("<title>mean ") && marks[1].contains("hollow"));
        marks[1].clone()
    };
    of_mean(&summary);
    // A wide interval that agrees is cut at the edge with arrows. One that disagrees widens the axis.
    let mean = summary.variants[1].metrics.get_mut(&Metric::Mean).unwrap();
    let overhead = mean.overhead.as_mut().unwrap();
    overhead.difference_low = Some(-90_000.0);
    overhead.difference_high = Some(90_000.0);
    summary.variants[1].few_pay = None;
    let cut = of_mean(&summary);
    assert_eq!(cut.matches("class=\"end\"").count(), 0, "{cut}");
    summary.variants[1].few_pay = Some(analysis::summary::FewPay {
        latency_us_mean: 90.0,
        share_of_requests: None,
        payment: analysis::summary::Payment::Pay,
    });
    let whole = of_mean(&summary);
    assert_eq!(whole.matches("class=\"end\"").count(), 2, "{whole}");
}

#[test]
fn a_sparse_percentile_has_the_color_of_its_interval() {
    let recording = SampleRun::side_by_side()
        .rounds(12)
        .variant("a", 700.0)
        .variant("b", 900.0)
        .build();
    let mut summary = Summary::of(&recording);
    let figure = summary.variants[1].metrics.get_mut(&Metric::P99).unwrap();
    figure.is_sparse = true;
    let ends = cell::pooled(&summary.variants[1], Metric::P99).unwrap().1;
    assert!(ends.0 > 0.0, "{ends:?}");
    let drawn = forest::forest(&summary, Metric::P99).unwrap();
    assert!(drawn.contains("class=\"mark worse\""), "{drawn}");
    assert!(!drawn.contains("class=\"mark same\""), "{drawn}");
    let cell = cell::compared(&summary.variants[1], Metric::P99);
    assert!(
        cell.tone == Some(crate::terminal::Tone::Worse),
        "the table agrees"
    );
}

#[test]
fn a_system_has_one_place_in_every_bar() {
    let mut recording = SampleRun::side_by_side()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    for (index, round) in recording.rounds.iter_mut().enumerate() {
        let mut cache = round.systems[0].clone();
        cache.name = "cache".to_owned();
        // Recordings list the systems of a variant in the order of their starts.
        round.systems.insert(index % 2, cache);
    }
    let bars = cost::bars(&Summary::of(&recording));
    for row in bars.split("<div class=\"row\">").skip(1) {
        let first = row.find("class=\"s1\"").unwrap();
        let second = row.find("class=\"s2\"").unwrap();
        assert!(first < second, "{row}");
    }
}
