//! Claims about proofs of the variants with certain values of settings and factors.

use lab::{Lab, Variant};

use crate::Folder;

const LAB: &str = "\
question: What do log and TLS cost?
load: {rate: 100/s, duration: 1s}
target: server
settings: {log: {off: '', on: '--log'}}
systems:
  server:
    settings: {tls: off}
    run: serve {{log}} --tls {{tls}} --listen {{addr}}
  proxy: {run: 'p {{addr}} {{server.addr}}'}
";

const FACTORS: &str = "factors:\n  log: [off, on]\n  server.tls: [off, on]\n";

fn text(of: &str, more: &str) -> String {
    format!("{LAB}{more}proof:\n  - {{name: it, of: {of}, expect: {{headers: {{a: b}}}}}}\n")
}

/// The names of the variants that must give the proof.
fn proven(of: &str, more: &str) -> Vec<String> {
    let lab: Lab = match Folder::with_lab(text(of, more)).parse() {
        Ok(lab) => lab,
        Err(mistakes) => panic!("{mistakes}"),
    };
    let must = lab
        .all()
        .filter(|variant: &&Variant| !variant.proofs.is_empty());
    must.map(|variant| variant.name.clone()).collect()
}

fn mistakes(of: &str, more: &str) -> String {
    Folder::with_lab(text(of, more)).mistakes()
}

#[test]
fn a_level_of_a_factor_names_the_variants_that_have_it() {
    assert_eq!(proven("{log: on}", FACTORS), ["log on", "log on, tls on"]);
    assert_eq!(
        proven("{server.tls: on}", FACTORS),
        ["tls on", "log on, tls on"]
    );
    assert_eq!(proven("{log: on, server.tls: off}", FACTORS), ["log on"]);
    assert_eq!(proven("{log: [off, on]}", FACTORS).len(), 4);
}

#[test]
fn a_setting_and_a_factor_of_for_name_their_variants_as_well() {
    let steps = "baseline: {name: a}\nvariants:\n  - {name: b, with: {log: on}}\n  - {name: c, with: {log: on, server.tls: on}}\n";
    assert_eq!(proven("{log: on}", steps), ["b", "c"]);
    // The usual value counts, too.
    assert_eq!(proven("{server.tls: off}", steps), ["a", "b"]);
    let sizes = "baseline: {name: a}\nvariants:\n  - {for: {size: [1, 10]}, with: {server.tls: '{{size}}'}}\n";
    assert_eq!(proven("{size: 10}", sizes), ["10"]);
    assert_eq!(proven("{server.tls: 1}", sizes), ["1"]);
}

#[test]
fn a_factor_can_be_the_target() {
    let factors = "factors:\n  target: [server, proxy]\n  log: [off, on]\n";
    let lab = Folder::with_lab(text("{target: proxy}", factors))
        .parse()
        .unwrap();
    let loaded = |variant: &Variant| variant.systems().last().unwrap().system.clone();
    let shown: Vec<(String, String)> = lab.all().map(|it| (it.name.clone(), loaded(it))).collect();
    let expected = [
        ("target server, log off", "server"),
        ("target proxy", "proxy"),
        ("log on", "server"),
        ("target proxy, log on", "proxy"),
    ];
    assert_eq!(
        shown,
        expected.map(|(name, system)| (name.to_owned(), system.to_owned()))
    );
    assert_eq!(
        proven("{target: proxy}", factors),
        ["target proxy", "target proxy, log on"]
    );
    let unknown = factors.replace("proxy]", "prxy]");
    let shown = mistakes("all", &unknown);
    assert!(shown.contains("there is no system `prxy`"), "{shown}");
}

#[test]
fn a_factor_of_for_can_choose_the_target() {
    let each = "baseline: {name: direct}\nvariants:\n  - {for: {before: [proxy, server]}, target: '{{before}}'}\n  - {for: [proxy twice], target: proxy}\n";
    assert_eq!(proven("{target: proxy}", each), ["proxy", "proxy twice"]);
    let shown = mistakes("all", &each.replace("{{before}}", "{{befor}}"));
    assert!(
        shown.contains("`{{befor}}` has a template that a target cannot have"),
        "{shown}"
    );
    let shown = mistakes("all", &each.replace("[proxy, server]", "[proxi]"));
    assert!(shown.contains("there is no system `proxi`"), "{shown}");
    assert!(shown.contains("did you mean `proxy`?"), "{shown}");
}

#[test]
fn a_proof_of_no_variant_is_a_mistake() {
    for (of, words) in [
        ("{log: onn}", "no variant has this value of `log`"),
        ("{lg: on}", "the lab has no setting `lg`"),
        ("{server.log: on}", "`server` has no setting `log`"),
        ("{sever.tls: on}", "there is no system `sever`"),
    ] {
        let shown = mistakes(of, FACTORS);
        assert!(shown.contains(words), "{of}: {words}\n{shown}");
    }
    let apart = "baseline: {name: a}\nvariants:\n  - {name: b, with: {log: on}}\n  - {name: c, with: {server.tls: on}}\n";
    let shown = mistakes("{log: on, server.tls: on}", apart);
    assert!(
        shown.contains("no variant has all these values together"),
        "{shown}"
    );
}
