//! Header lines that the usual parser refuses.

/// Returns the head with spaces instead of the line ends within values (obs-fold, RFC 9112, section 5.2),
/// with equal length. `None` if values contain no line ends.
pub(super) fn unfolded(head: &[u8]) -> Option<Vec<u8>> {
    let mut unfolded = head.to_vec();
    let (mut line, mut is_status, mut is_folded) = (0, true, false);
    let mut has_value = false;
    for at in 0..head.len() {
        if head[at] != b'\n' {
            continue;
        }
        let is_empty = matches!(&head[line..at], b"" | b"\r");
        // Empty lines may come before the status line. After it, an empty line ends the head.
        if is_empty && !is_status {
            break;
        }
        // A continued line belongs to the name before it.
        if !matches!(head.get(line), Some(b' ' | b'\t')) {
            has_value = head[line..at].contains(&b':');
        }
        // Only a value can continue. A line without a colon is wrong by itself.
        if !is_status && has_value && matches!(head.get(at + 1), Some(b' ' | b'\t')) {
            unfolded[at] = b' ';
            if head[at - 1] == b'\r' {
                unfolded[at - 1] = b' ';
            }
            is_folded = true;
        }
        is_status &= is_empty;
        line = at + 1;
    }
    is_folded.then_some(unfolded)
}

/// Returns the fault of the first malformed header name, for a message.
pub(super) fn name_fault(head: &[u8]) -> &'static str {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_empty = |line: &&[u8]| matches!(*line, b"" | b"\r");
    let lines = head.split(|byte| *byte == b'\n').skip_while(is_empty);
    for line in lines.skip(1) {
        let name = line.iter().take_while(|byte| is_token(byte)).count();
        match line.get(name) {
            Some(b':') if name > 0 => {}
            Some(b' ' | b'\t') if name > 0 => {
                return "a header name with a space before the colon";
            }
            _ => break,
        }
    }
    "a malformed header name"
}
