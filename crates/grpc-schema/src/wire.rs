//! The wire format of protocol buffers, for messages without descriptors.

/// The content of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// A whole number.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// Eight or four bytes, which no message here uses.
    Fixed,
}

/// Iterates over the fields of a message: number and content. It ends at the first damaged field.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = (u64, Content<'_>)> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let key = number(&mut rest)?;
        let content = match key & 7 {
            0 => Content::Number(number(&mut rest)?),
            1 => take(&mut rest, 8).map(|_| Content::Fixed)?,
            2 => {
                let length = usize::try_from(number(&mut rest)?).ok()?;
                Content::Bytes(take(&mut rest, length)?)
            }
            5 => take(&mut rest, 4).map(|_| Content::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, content))
    })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (first, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Adds a field with bytes to a message.
pub(crate) fn put(field: u8, bytes: &[u8], message: &mut Vec<u8>) {
    message.push(field << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        message.push(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
        length >>= 7;
    }
    message.push(u8::try_from(length).unwrap_or(0));
    message.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_until_the_damage() {
        let mut message = vec![0x08, 0x96, 0x01];
        put(2, &[b'a'; 200], &mut message);
        let found: Vec<_> = fields(&message).collect();
        assert_eq!(
            found,
            [(1, Content::Number(150)), (2, Content::Bytes(&[b'a'; 200]))]
        );
        message.extend_from_slice(&[0x12, 0x05, b'a']);
        assert_eq!(fields(&message).count(), 2);
        assert_eq!(fields(&[0xff; 20]).count(), 0);
    }
}
