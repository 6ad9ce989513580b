//! Claims about every text and every lab.

use std::fmt::Write as _;

use proptest::prelude::*;
use proptest::sample::select;

use crate::{Folder, LAB};

/// Pieces of lab files, in any order.
fn rubble() -> impl Strategy<Value = String> {
    let pieces = vec![
        "question: q\n",
        "load:\n",
        "  rate: 5/s\n",
        "  connections: 3\n",
        "  duration: 1s\n",
        "target: server\n",
        "systems:\n",
        "  server:\n",
        "    run: a {{addr}}\n",
        "    run: {{\n",
        "baseline: {name: a}\n",
        "variants:\n",
        "  - {name: b}\n",
        "  - for: [a, b]\n",
        "include: x.yaml\n",
        "    settings: {a: '{{b}}', b: '{{a}}'}\n",
        "    after: server\n",
        "&a ",
        "*a",
        "[",
        "]",
        "{",
        "}",
        "- ",
        ": ",
        "\n",
        "\t",
        "'",
        "\"",
        "|\n",
        "é",
        "\u{feff}",
        "!!str ",
        "---\n",
        "...\n",
        "#",
        "? ",
        "\0",
        "\r",
    ];
    prop::collection::vec(select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

/// The example with one stretch replaced by other text.
fn damaged() -> impl Strategy<Value = String> {
    (0..LAB.len(), 0..40_usize, "[ -~\n]{0,8}").prop_map(|(start, length, text)| {
        let end = (start + length).min(LAB.len());
        format!("{}{text}{}", &LAB[..start], &LAB[end..])
    })
}

/// Parses and renders, with any result.
fn survives(text: &str) {
    if let Err(mistakes) = Folder::with_lab(text).parse() {
        let lines = text.lines().count().max(1);
        for mistake in &mistakes {
            assert!((1..=lines + 1).contains(&mistake.line), "{mistake:?}");
            assert!(
                !mistake.message.contains("a defect of weigh"),
                "{mistake:?}"
            );
        }
        assert!(mistakes.render(false).contains("error"));
        assert!(mistakes.render(true).contains("error"));
    }
}

#[derive(Debug)]
struct Valid {
    load: &'static str,
    rounds: u32,
    seed: Option<u64>,
    systems: usize,
    settings: Vec<(String, String)>,
    variants: Vec<String>,
    extra: Vec<&'static str>,
}

fn valid() -> impl Strategy<Value = Valid> {
    let load = select(vec![
        "{connections: 5, duration: 1s}",
        "{connections: 5, count: 10, keep-alive: off}",
        "{connections: 5, count: 10, http2: on, streams: 3}",
        "{rate: 10/s, count: 10, spin: 0}",
        "{rate: 10/s, duration: 100ms, arrival: poisson}",
        "{rate: 0.5/s, count: 10, connections-max: 3}",
        "{phases: [{duration: 1s, rate: 0/s, to: 5/s}], timeout: 250ms}",
    ]);
    let extra = select(vec![
        "pin: 0",
        "scheme: https",
        "pin: [0, 1]",
        "ready: listening",
        "ready: {path: /health}",
        "needs: cargo",
        "limits: {cpus: 0.5, memory: 1GiB}",
        "env: {A: 1, B: '{{url}}'}",
        "build: [make, 'make {{name}}']",
    ]);
    (
        load,
        1..100_u32,
        any::<Option<u64>>(),
        1..5_usize,
        prop::collection::btree_map("[a-m][a-z0-9_-]{2,6}", "[^\\pC{]{0,12}", 0..4),
        prop::collection::btree_set("[A-Za-z][A-Za-z0-9 ._-]{0,10}[a-z]", 1..5),
        prop::collection::btree_set(extra, 0..8),
    )
        .prop_map(|(load, rounds, seed, systems, settings, variants, extra)| {
            let mut extra: Vec<&str> = extra.into_iter().collect();
            extra.dedup_by_key(|line| line.split(':').next());
            Valid {
                load,
                rounds,
                seed,
                systems,
                settings: settings
                    .into_iter()
                    .filter(|(name, _)| name != "addr")
                    .collect(),
                variants: variants.into_iter().collect(),
                extra,
            }
        })
}

impl Valid {
    fn yaml(&self) -> String {
        let mut text = format!(
            "question: q\nload: {}\nrounds: {}\n",
            self.load, self.rounds
        );
        if let Some(seed) = self.seed {
            writeln!(text, "seed: {seed}").unwrap();
        }
        text += "target: s0\nsystems:\n";
        for system in 0..self.systems {
            writeln!(text, "  s{system}:").unwrap();
            let next = system + 1;
            let other = if next < self.systems {
                format!("{{{{s{next}.url}}}}")
            } else {
                String::new()
            };
            let uses: String = self
                .settings
                .iter()
                .map(|(name, _)| format!(" {{{{{name}}}}}"))
                .collect();
            writeln!(text, "    run: serve {{{{port}}}} {other}{uses}").unwrap();
            if !self.settings.is_empty() {
                text += "    settings:\n";
            }
            for (name, value) in &self.settings {
                writeln!(text, "      {name}: '{}'", value.replace('\'', "''")).unwrap();
            }
            for line in &self.extra {
                writeln!(text, "    {line}").unwrap();
            }
        }
        text += "baseline: {name: the baseline}\nvariants:\n";
        for variant in &self.variants {
            writeln!(text, "  - name: '{variant}'").unwrap();
            if let Some((name, _)) = self.settings.first() {
                writeln!(text, "    with: {{s0.{name}: '{{{{name}}}}'}}").unwrap();
            }
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        survives(&text);
    }

    #[test]
    fn any_rubble_is_read_or_refused(text in rubble()) {
        survives(&text);
    }

    #[test]
    fn any_damage_is_read_or_refused(text in damaged()) {
        survives(&text);
    }

    #[test]
    fn every_valid_lab_is_read(valid in valid()) {
        let lab = match Folder::with_lab(valid.yaml()).parse() {
            Ok(lab) => lab,
            Err(mistakes) => return Err(TestCaseError::fail(mistakes.to_string())),
        };
        prop_assert_eq!(lab.rounds, valid.rounds);
        prop_assert_eq!(lab.seed, valid.seed);
        prop_assert_eq!(lab.variants.len(), valid.variants.len());
        for variant in lab.all() {
            let stack = variant.systems();
            prop_assert_eq!(stack.len(), valid.systems);
            prop_assert_eq!(&stack[stack.len() - 1].system, "s0");
            for (index, setup) in stack.iter().enumerate() {
                for other in &setup.after {
                    prop_assert!(stack[..index].iter().any(|earlier| earlier.system == *other));
                }
            }
        }
        if let Some((name, _)) = valid.settings.first() {
            for variant in &lab.variants {
                let target = &variant.systems()[valid.systems - 1];
                prop_assert_eq!(target.settings[name].to_string(), variant.name.clone());
            }
        }
    }
}
