//! Finds plain characters, which a JSON string contains unescaped. Eight bytes are compared at once.
//!
//! In a word of eight bytes, `word - ONES * n` borrows at each byte below `n`, which sets the byte's high
//! bit. `& !word` removes bytes with a high bit that was set before (letters beyond ASCII). A byte equals `b`
//! if its exclusive-or with `b` is below 1. A borrow may also mark the byte above falsely, but never a byte
//! below. So the lowest mark is always right. There is no mark if and only if there is no such byte.

/// The value 1 in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks quotes, backslashes and control characters in the high bits of their bytes.
#[inline(always)]
const fn marks(word: u64) -> u64 {
    below(word, 0x20) | equal(word, b'"') | equal(word, b'\\')
}

#[inline(always)]
const fn below(word: u64, bound: u64) -> u64 {
    word.wrapping_sub(ONES * bound) & !word
}

#[inline(always)]
const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * byte as u64), 1)
}

/// True if a string contains this byte unescaped. This includes bytes of letters beyond ASCII.
#[inline]
const fn is_plain_byte(byte: u8) -> bool {
    // `&` instead of `&&`: three comparisons without a branch.
    (byte >= b' ') & (byte != b'"') & (byte != b'\\')
}

/// The end of the run of plain characters from `at`. A quote, a backslash, a control character or `end` ends
/// it. `end` must not exceed the length of the text.
#[inline]
#[must_use]
pub fn plain_run(text: &[u8], mut at: usize, end: usize) -> usize {
    debug_assert!(
        at <= end && end <= text.len(),
        "{at}..{end} of {}",
        text.len()
    );
    // A slice of `at..end` and its chunks would look simpler. But responses with short strings then took a
    // tenth longer to read.
    while let Some(Ok(eight)) = text
        .get(at..at + 8)
        // Bytes after `end` belong to another value, even if they are plain.
        .filter(|_| at + 8 <= end)
        .map(<[u8; 8]>::try_from)
    {
        // Little-endian, so that the lowest mark is the first in the text.
        let found = marks(u64::from_le_bytes(eight)) & HIGHS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < end && text.get(at).is_some_and(|byte| is_plain_byte(*byte)) {
        at += 1;
    }
    at
}

/// True if all characters are plain.
#[inline]
#[must_use]
pub fn is_plain(text: &str) -> bool {
    throughout(text, marks, is_plain_byte)
}

/// True if all characters are plain and printable ASCII.
#[inline]
#[must_use]
pub fn is_plain_ascii(text: &str) -> bool {
    // A byte beyond ASCII already has its high bit set, which is a mark.
    let marks = |word| marks(word) | equal(word, 0x7f) | word;
    throughout(text, marks, |byte| is_plain_byte(byte) & (byte <= b'~'))
}

/// Without an early exit: compilers can use vector instructions, and most texts are plain.
#[inline(always)]
fn throughout(text: &str, marks: impl Fn(u64) -> u64, is_plain: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let has_none = |eight: [u8; 8]| marks(u64::from_le_bytes(eight)) & HIGHS == 0;
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().all(|byte| is_plain(*byte));
    };
    // The last eight bytes overlap the chunk before them, which is cheaper than a loop over the rest.
    let (chunks, _) = bytes.as_chunks();
    chunks
        .iter()
        .fold(has_none(*last), |all, chunk| all & has_none(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_at_each_special_byte_wherever_it_stands() {
        for special in (0..0x20).chain([b'"', b'\\']) {
            for place in 0..20 {
                let mut text = [b'a'; 24];
                text[place] = special;
                // A false mark above a true mark must not be taken as the first mark.
                text[place + 1] = special ^ 1;
                assert_eq!(plain_run(&text, 0, 24), place, "{special} at {place}");
                assert_eq!(plain_run(&text, place, 24), place);
            }
        }
    }

    #[test]
    fn a_run_does_not_pass_its_end() {
        let text = [0xc3; 40];
        for end in 0..40 {
            assert_eq!(plain_run(&text, 0, end), end);
        }
    }

    proptest::proptest! {
        #[test]
        fn eight_at_a_time_are_as_one_by_one(
            text in "[ -~]{0,40}|[ -~\\x00-\u{100}]{0,40}",
            cut in (0..40_usize, 0..40_usize),
        ) {
            let bytes = text.as_bytes();
            let is_ascii = |byte: &u8| is_plain_byte(*byte) && *byte < 0x7f;
            proptest::prop_assert_eq!(is_plain(&text), bytes.iter().all(|it| is_plain_byte(*it)));
            proptest::prop_assert_eq!(is_plain_ascii(&text), bytes.iter().all(is_ascii));
            let end = cut.0.min(bytes.len());
            let at = cut.1.min(end);
            let special = bytes[at..end].iter().position(|byte| !is_plain_byte(*byte));
            proptest::prop_assert_eq!(plain_run(bytes, at, end), special.map_or(end, |it| at + it));
        }
    }
}
