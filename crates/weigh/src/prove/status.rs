//! Bodies are compared within one status only.

/// Why the body of an answer is compared with no other; none where it is. `own` are the statuses of the two
/// answers of the proof, `theirs` is that of the baseline's.
pub(super) fn not_compared(own: [u16; 2], theirs: u16) -> Option<String> {
    let [first, second] = own;
    if first != second {
        return Some(format!(
            "the same request was answered {first} and then {second}"
        ));
    }
    (first != theirs).then(|| format!("it was answered {first}, and that of the baseline {theirs}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bodies_of_one_status_are_compared() {
        assert_eq!(not_compared([200, 200], 200), None);
        let varying = not_compared([200, 429], 200).unwrap();
        assert_eq!(varying, "the same request was answered 200 and then 429");
        let other = not_compared([429, 429], 200).unwrap();
        assert_eq!(other, "it was answered 429, and that of the baseline 200");
    }
}
