//! Claims about variants that are compared with another variant instead of the baseline.

use crate::{Folder, changed, check};

const ONE: &str = "  - {name: b, with: {server.stack: b}}\n";

/// Pairs of a variant and the variant that it is compared with.
fn pairs(variants: &str) -> Vec<(String, Option<String>)> {
    let lab = Folder::with_lab(changed(&[(ONE, variants)])).parse();
    let lab = lab.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
    lab.all()
        .map(|it| (it.name.clone(), it.against.clone()))
        .collect()
}

fn pair(name: &str, against: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(against.to_owned()))
}

#[test]
fn a_variant_can_be_compared_with_a_variant_above_it() {
    let found = pairs("  - {name: b}\n  - {name: c, against: b}\n  - {name: d, against: a}\n");
    assert_eq!(found[1..], [pair("b", "a"), pair("c", "b"), pair("d", "a")]);
}

#[test]
fn factors_are_filled_into_the_name_of_the_other_variant() {
    let text = changed(&[
        ("{name: a}", "{name: \"a {{size}}\", for: {size: [1, 2]}}"),
        (
            ONE,
            "  - {name: \"b {{size}}\", for: {size: [1, 2]}}\n  \
             - {name: \"c {{size}}\", for: {size: [1, 2]}, against: \"b {{size}}\"}\n",
        ),
    ]);
    let lab = Folder::with_lab(text).parse();
    let lab = lab.unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
    let found: Vec<String> = lab
        .all()
        .map(|it| format!("{}-{}", it.name, it.against.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        found,
        ["a 1-", "b 1-a 1", "c 1-b 1", "a 2-", "b 2-a 2", "c 2-b 2"]
    );
}

#[test]
fn wrong_names_are_refused() {
    let unknown = check(&[(ONE, "  - {name: bee}\n  - {name: c, against: be}\n")]);
    assert!(
        unknown.contains("there is no variant `be` with the baseline of `c`"),
        "{unknown}"
    );
    assert!(unknown.contains("`bee`"), "{unknown}");
    let below = check(&[(ONE, "  - {name: b, against: c}\n  - {name: c}\n")]);
    assert!(below.contains("`c` is below the variant"), "{below}");
    assert!(below.contains("move `c` above `b`"), "{below}");
    let itself = check(&[(ONE, "  - {name: b, against: b}\n")]);
    assert!(
        itself.contains("cannot be compared with itself"),
        "{itself}"
    );
}

#[test]
fn a_variant_of_another_baseline_is_refused() {
    let found = check(&[
        ("{name: a}", "{name: \"a {{size}}\", for: {size: [1, 2]}}"),
        (
            ONE,
            "  - {name: \"b {{size}}\", for: {size: [1, 2]}}\n  \
             - {name: c, for: {size: [1]}, against: \"b 2\"}\n",
        ),
    ]);
    assert!(
        found.contains("there is no variant `b 2` with the baseline of"),
        "{found}"
    );
}
