//! Tests of the colors of the pages: readers with any color vision must tell their meanings apart, on light and
//! on dark ground.
//!
//! Dichromacy is simulated by the matrices for full severity of Machado, Oliveira and Fernandes, "A
//! Physiologically-based Model for Simulation of Color Vision Deficiency" (IEEE TVCG 15(6), 2009). They apply
//! to linear RGB. Distances are Euclidean distances in Oklab (Ottosson, 2020), times 100. Contrast is defined
//! by WCAG 2.2.

use super::STYLE;

/// Minimum distance of two colors with different meanings. The difference of 2 is just visible.
const DISTANCE_MIN: f64 = 10.0;
/// Minimum contrast of text (WCAG 2.2, 1.4.3).
const TEXT_MIN: f64 = 4.5;
/// Minimum contrast of marks and fills (WCAG 2.2, 1.4.11).
const MARK_MIN: f64 = 3.0;

/// Colors with a meaning: the three claims, and the things of one picture, such as systems or variants.
const MEANINGS: [&str; 7] = ["worse", "better", "same", "s1", "s2", "s3", "s4"];

type Matrix = [[f64; 3]; 3];

const TRICHROMACY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
const PROTANOPIA: Matrix = [
    [0.152_286, 1.052_583, -0.204_868],
    [0.114_503, 0.786_281, 0.099_216],
    [-0.003_882, -0.048_116, 1.051_998],
];
const DEUTERANOPIA: Matrix = [
    [0.367_322, 0.860_646, -0.227_968],
    [0.280_085, 0.672_501, 0.047_413],
    [-0.011_820, 0.042_940, 0.968_881],
];
const TRITANOPIA: Matrix = [
    [1.255_528, -0.076_749, -0.178_779],
    [-0.078_411, 0.930_809, 0.147_602],
    [0.004_733, 0.691_367, 0.303_900],
];
const VISIONS: [(&str, Matrix); 4] = [
    ("trichromacy", TRICHROMACY),
    ("protanopia", PROTANOPIA),
    ("deuteranopia", DEUTERANOPIA),
    ("tritanopia", TRITANOPIA),
];

/// Linear red, green and blue of a color such as `#a64300`.
fn linear(color: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let byte = u8::from_str_radix(&color[at..at + 2], 16).unwrap();
        let value = f64::from(byte) / 255.0;
        match value <= 0.040_45 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        }
    })
}

fn product(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(one, other)| one * other).sum())
}

fn seen(color: &str, vision: &Matrix) -> [f64; 3] {
    product(vision, linear(color)).map(|value| value.clamp(0.0, 1.0))
}

fn oklab(rgb: [f64; 3]) -> [f64; 3] {
    let lms = product(
        &[
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ],
        rgb,
    );
    product(
        &[
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ],
        lms.map(f64::cbrt),
    )
}

fn distance(one: &str, other: &str, vision: &Matrix) -> f64 {
    let [one, other] = [one, other].map(|color| oklab(seen(color, vision)));
    let squares = one
        .iter()
        .zip(other)
        .map(|(one, other)| (one - other).powi(2));
    squares.sum::<f64>().sqrt() * 100.0
}

fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |color: &str| {
        let [red, green, blue] = linear(color);
        0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
    };
    let (one, other) = (luminance(one), luminance(other));
    (one / other).max(other / one)
}

/// The colors of the style sheet in one of its three lists: light, dark and paper.
fn color<'a>(list: &'a str, name: &str) -> &'a str {
    let (_, rest) = list.split_once(&format!("--{name}: ")).expect(name);
    &rest[..7]
}

fn lists() -> Vec<(&'static str, &'static str)> {
    let lists: Vec<&str> = STYLE.split(":root {").skip(1).collect();
    ["light", "dark", "paper"].into_iter().zip(lists).collect()
}

#[test]
fn every_reader_tells_the_meanings_apart() {
    assert_eq!(lists().len(), 3);
    for (list_name, list) in lists() {
        for (index, one) in MEANINGS.iter().enumerate() {
            for other in &MEANINGS[index + 1..] {
                for (vision_name, vision) in VISIONS {
                    let found = distance(color(list, one), color(list, other), &vision);
                    assert!(
                        found >= DISTANCE_MIN,
                        "{one} and {other}, {list_name}, {vision_name}: {found:.1}"
                    );
                }
            }
        }
    }
}

#[test]
fn marks_and_words_stand_out_from_the_ground() {
    for (list_name, list) in lists() {
        for ground in ["ground", "raised"] {
            let stands_out = |name: &str, least: f64| {
                let found = contrast(color(list, name), color(list, ground));
                assert!(
                    found >= least,
                    "{name} on {ground}, {list_name}: {found:.2}"
                );
            };
            for text in ["ink", "quiet", "worse", "better"] {
                stands_out(text, TEXT_MIN);
            }
        }
        for mark in MEANINGS {
            let found = contrast(color(list, mark), color(list, "ground"));
            assert!(found >= MARK_MIN, "{mark}, {list_name}: {found:.2}");
        }
    }
}

#[test]
fn the_pages_use_no_color_outside_of_the_lists() {
    let (_, rules) = STYLE.split_once("* { box-sizing").unwrap();
    let (rules, paper) = rules.split_once("@media print").unwrap();
    let (_, paper) = paper.split_once('}').unwrap();
    for line in rules.lines().chain(paper.lines()) {
        let has_color = line.contains(": #") && !line.contains(".flame");
        assert!(!has_color, "{line}");
    }
}

#[test]
fn the_simulation_finds_colors_that_dichromats_confuse() {
    // Dichromats see gray as others do.
    for (name, vision) in VISIONS {
        let [red, green, blue] = seen("#808080", &vision);
        assert!(
            (red - green).abs() < 1e-3 && (green - blue).abs() < 1e-3,
            "{name}"
        );
    }
    // A red and a green of equal lightness are hard to tell apart without one of two cones.
    let (red, green) = ("#b4582f", "#73783a");
    assert!(distance(red, green, &TRICHROMACY) > 10.0);
    assert!(distance(red, green, &DEUTERANOPIA) < 6.0);
    // A blue and a green of equal lightness are hard to tell apart without the cone for blue.
    assert!(distance("#0a62a9", "#00795b", &TRITANOPIA) < 5.0);
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
}
