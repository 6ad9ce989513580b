use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn data(columns: &[&str], rows: &[&[&str]], order: RowOrder) -> Data {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Data {
        columns: texts(columns),
        rows: rows.iter().map(|row| texts(row)).collect(),
        ranges: Vec::new(),
        order,
        seed: 7,
    }
}

fn places(data: &Data, captures: &[&str]) -> Places {
    let captures: Vec<String> = captures.iter().map(|&name| name.to_owned()).collect();
    Places {
        captures_known: captures.len(),
        values: Arc::new(Values::new(data, 1, captures)),
        request: 0,
    }
}

fn template(path: &str, header: &str, body: &str, data: &Data) -> Result<Template, RequestError> {
    let source = Source {
        start: path,
        before_length: &format!(" {header} "),
        after_length: Some(" "),
        body: body.as_bytes(),
    };
    let found = Template::new(&source, &places(data, &[]))?;
    Ok(found.expect("there is a place"))
}

fn filled(template: &Template, index: u64) -> String {
    let mut buffer = b"left over".to_vec();
    template.fill(index, &[], &mut buffer);
    String::from_utf8(buffer).unwrap()
}

#[test]
fn a_value_is_escaped_in_the_path_only_and_the_length_is_that_of_the_body() {
    let data = data(&["name"], &[&["a b/ü"], &["x"]], RowOrder::Rotation);
    let template = template("/{{name}}", "N: {{ name }}", "[{{name}},{{index}}]", &data).unwrap();
    assert_eq!(
        filled(&template, 0),
        "/a%20b%2F%C3%BC N: a b/ü 10 [a b/ü,0]"
    );
    assert_eq!(filled(&template, 11), "/x N: x 6 [x,11]");
}

#[test]
fn a_random_number_stays_in_its_range_reaches_all_of_it_and_repeats_with_the_slot() {
    let none = data(&[], &[], RowOrder::Rotation);
    let template = template("/{{random:8..11}}", "{{random:8..11}}", "", &none).unwrap();
    let slots: Vec<String> = (0..200).map(|index| filled(&template, index)).collect();
    let seen: BTreeSet<&String> = slots.iter().collect();
    assert_eq!(seen.len(), 16, "two places are drawn apart: {seen:?}");
    assert_eq!(filled(&template, 99), slots[99]);
}

#[test]
fn rows_in_rotation_meet_every_request_of_the_turn() {
    let rows: &[&[&str]] = &[&["a"], &["b"], &["c"], &["d"]];
    let data = data(&["x"], rows, RowOrder::Rotation);
    for turn in [1, 2, 3, 6, 8] {
        let values = Values::new(&data, turn, Vec::new());
        let pairs: BTreeSet<(usize, &[u8])> = (0..100)
            .map(|index: usize| (index % turn, &*values.row(index as u64)[0].raw))
            .collect();
        assert_eq!(pairs.len(), turn * 4, "{turn}");
    }
    let values = Values::new(&data, 1, Vec::new());
    let order: Vec<u8> = (0..6).map(|index| values.row(index)[0].raw[0]).collect();
    assert_eq!(order, b"abcdab");
}

#[test]
fn random_rows_are_all_used_about_equally() {
    let rows: &[&[&str]] = &[&["a"], &["b"], &["c"], &["d"]];
    let values = Values::new(&data(&["x"], rows, RowOrder::Random), 1, Vec::new());
    let mut counts: BTreeMap<u8, u32> = BTreeMap::new();
    for index in 0..4000 {
        *counts.entry(values.row(index)[0].raw[0]).or_default() += 1;
    }
    // Four standard deviations of a binomial count: sqrt(4000 * 0.25 * 0.75) = 27.
    assert!(
        counts.values().all(|count| count.abs_diff(1000) < 110),
        "{counts:?}"
    );
}

#[test]
fn what_is_no_place_stays_or_is_refused() {
    let none = data(&[], &[], RowOrder::Rotation);
    let kept = template("/{{index}}", "{{other}} {{{index}}", "{{", &none).unwrap();
    assert_eq!(filled(&kept, 5), "/5 {{other}} {5 2 {{");
    let some = data(&["a", "b"], &[&["1", "2\n"]], RowOrder::Rotation);
    for (header, words) in [
        ("{{c}}", "no column `c`. The data has `a`, `b`"),
        ("{{b}}", "expected a value on one line"),
        (
            "{{random:5..1}}",
            "expected a range such as `1..1000`, found `5..1`",
        ),
        ("{{random:x}}", "found `x`"),
    ] {
        let error = template("/", header, "", &some).unwrap_err().to_string();
        assert!(error.contains(words), "{header}: {error}");
    }
    assert!(
        template("/{{b}}", "", "{{b}}", &some).is_ok(),
        "only headers end with a line"
    );
}

#[test]
fn a_captured_value_has_the_form_of_its_notation() {
    let none = data(&[], &[], RowOrder::Rotation);
    let body = r#"{"a":{{json:id}},"b":"no {{escaped:id}}","c":"x={{encoded:id}}"}"#;
    let source = Source {
        start: "/{{id}}?q={{json:id}}",
        before_length: " {{encoded:id}} ",
        after_length: Some(" "),
        body: body.as_bytes(),
    };
    let places = places(&none, &["id"]);
    let template = Template::new(&source, &places).unwrap().unwrap();
    let filled = |text: &str, is_json: bool| {
        let captured = CapturedValue {
            text: text.to_owned(),
            is_json,
        };
        let mut buffer = Vec::new();
        template.fill(0, &[captured], &mut buffer);
        String::from_utf8(buffer).unwrap()
    };
    assert_eq!(
        filled("12", true),
        r#"/12?q=12 12 31 {"a":12,"b":"no 12","c":"x=12"}"#
    );
    assert_eq!(
        filled("12", false),
        r#"/12?q=%2212%22 12 33 {"a":"12","b":"no 12","c":"x=12"}"#
    );
    assert_eq!(
        filled(r#"a"\&"#, false),
        r#"/a%22%5C%26?q=%22a%5C%22%5C%5C%26%22 a%22%5C%26 49 {"a":"a\"\\&","b":"no a\"\\&","c":"x=a%22%5C%26"}"#
    );
}

#[test]
fn a_column_can_be_written_within_a_text_of_json() {
    let data = data(&["x"], &[&["a\"b"]], RowOrder::Rotation);
    let template = template(
        "/{{escaped:x}}",
        "{{encoded:x}}",
        "\"{{escaped:x}}\"",
        &data,
    )
    .unwrap();
    assert_eq!(filled(&template, 0), "/a%5C%22b a%22b 6 \"a\\\"b\"");
}

#[test]
fn a_raw_column_stands_unchanged_in_a_path_if_each_value_can() {
    let values = data(&["x", "y"], &[&["/a%20b?c", "d e"]], RowOrder::Rotation);
    let template_of = |path: &str| template(path, "{{raw:y}}", "{{raw:x}}", &values);
    assert_eq!(
        filled(&template_of("GET {{raw:x}}").unwrap(), 0),
        "GET /a%20b?c d e 8 /a%20b?c"
    );
    let error = template_of("GET /{{raw:y}}").unwrap_err().to_string();
    assert_eq!(
        error,
        "column `y` for `{{raw:y}}`: expected a part of a path, found `d e`, and a path cannot contain ' '. `{{y}}` encodes it"
    );
    let error = template(
        "GET {{raw:y}}",
        "",
        "",
        &data(&["y"], &[&["d"]], RowOrder::Rotation),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`d`, and a path begins with `/`"), "{error}");
}
