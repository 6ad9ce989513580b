//! Comparison of statuses. Bodies are compared within one status only.

/// The reason not to compare the body of a response. `None` if it is compared. `own` contains the statuses of
/// the two responses of the proof, and `theirs` is the status of the baseline's response.
pub(super) fn not_compared(own: [u16; 2], theirs: u16) -> Option<String> {
    let [first, second] = own;
    if first != second {
        return Some(format!(
            "two equal requests had the statuses {first} and {second}"
        ));
    }
    (first != theirs)
        .then(|| format!("its status is {first}, but the status of the baseline is {theirs}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bodies_of_one_status_are_compared() {
        assert_eq!(not_compared([200, 200], 200), None);
        let varying = not_compared([200, 429], 200).unwrap();
        assert_eq!(varying, "two equal requests had the statuses 200 and 429");
        let other = not_compared([429, 429], 200).unwrap();
        assert_eq!(
            other,
            "its status is 429, but the status of the baseline is 200"
        );
    }
}
