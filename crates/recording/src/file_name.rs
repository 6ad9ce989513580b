//! Names of files and folders in the folder of a recording.

/// Replaces characters that are unsafe in a path by `-`.
pub fn file_name(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            // Characters that every file system and shell accepts without quotes.
            letter if letter.is_ascii_alphanumeric() || "-_.".contains(letter) => letter,
            _ => '-',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_letters_and_digits_and_loses_the_rest() {
        assert_eq!(file_name("go 1.22, x/y_z-ü"), "go-1.22--x-y_z--");
    }
}
