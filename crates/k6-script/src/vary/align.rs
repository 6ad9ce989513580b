//! Texts of several iterations, aligned with the values that each iteration drew.

/// A drawn value in all iterations.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) key: String,
    pub(super) values: Vec<String>,
    /// True if the text can contain the value plus a constant.
    pub(super) is_number: bool,
}

/// A drawn value at a place of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) key: String,
    /// The constant that the script adds to the value.
    pub(super) offset: i64,
    /// Length of the value in the first iteration, in characters.
    pub(super) length: usize,
    /// The values of all iterations.
    pub(super) values: Vec<String>,
}

/// A part of the common text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Plain(String),
    Column(Found),
}

/// A column at a place of all texts, with the length of its value in each.
type Explanation = fn(&[&str], usize, &Column) -> Option<(Found, Vec<usize>)>;

/// The common text of all iterations. `None` if the drawn values do not explain every difference.
pub(super) fn aligned(texts: &[&str], columns: &[Column]) -> Option<Vec<Piece>> {
    let mut rests: Vec<&str> = texts.to_vec();
    let mut pieces = Vec::new();
    loop {
        let common = common(&rests);
        let first = *rests.first()?;
        if rests.iter().all(|rest| rest.len() == common) {
            if common > 0 {
                pieces.push(Piece::Plain(first.to_owned()));
            }
            return Some(pieces);
        }
        // The begin of the values can be equal by chance.
        let starts = || {
            let starts = (0..=common).rev();
            starts.filter(|start| first.is_char_boundary(*start))
        };
        let explained = |by: Explanation| {
            starts().find_map(|start| {
                let mut found = columns.iter().filter_map(|it| by(&rests, start, it));
                let (found, lengths) = found.next()?;
                Some((start, found, lengths))
            })
        };
        // A value as it is explains a difference better than a value plus a constant, wherever it begins.
        let (start, found, lengths) = explained(exactly).or_else(|| explained(moved))?;
        if start > 0 {
            pieces.push(Piece::Plain(first[..start].to_owned()));
        }
        pieces.push(Piece::Column(found));
        for (rest, length) in rests.iter_mut().zip(lengths) {
            *rest = &rest[start + length..];
        }
    }
}

/// Length of the common begin, in bytes.
fn common(texts: &[&str]) -> usize {
    let Some((first, others)) = texts.split_first() else {
        return 0;
    };
    let mut length = first.len();
    for other in others {
        let same = first
            .bytes()
            .zip(other.bytes())
            .take_while(|(left, right)| left == right);
        length = length.min(same.count());
    }
    while !first.is_char_boundary(length) {
        length -= 1;
    }
    length
}

/// A column at a place of all texts, plus a constant.
fn found(column: &Column, offset: i64) -> Found {
    Found {
        key: column.key.clone(),
        offset,
        length: column
            .values
            .first()
            .map_or(0, |value| value.chars().count()),
        values: column.values.clone(),
    }
}

fn is_digit(byte: Option<&u8>) -> bool {
    byte.is_some_and(u8::is_ascii_digit)
}

/// The column at a place of all texts, with the length of its value in each.
fn exactly(rests: &[&str], start: usize, column: &Column) -> Option<(Found, Vec<usize>)> {
    let mut pairs = rests.iter().zip(&column.values);
    let first = column.values.first();
    let is_constant = column.values.iter().all(|value| Some(value) == first);
    let is_here = !is_constant
        && pairs.all(|(rest, value)| {
            let (before, after) = rest.as_bytes().split_at_checked(start).unwrap_or_default();
            let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
            let has_ends =
                !is_number || (!is_digit(before.last()) && !is_digit(after.get(value.len())));
            !value.is_empty() && after.starts_with(value.as_bytes()) && has_ends
        });
    is_here.then(|| {
        (
            found(column, 0),
            column.values.iter().map(String::len).collect(),
        )
    })
}

/// The column plus a constant at a place of all texts, with the length of the number in each.
fn moved(rests: &[&str], start: usize, column: &Column) -> Option<(Found, Vec<usize>)> {
    if !column.is_number {
        return None;
    }
    let mut offset = None;
    let mut lengths = Vec::new();
    for (rest, value) in rests.iter().zip(&column.values) {
        let (before, after) = rest.as_bytes().split_at_checked(start)?;
        if is_digit(before.last()) {
            return None;
        }
        let digits = after
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let number: i64 = rest.get(start..start + digits)?.parse().ok()?;
        let own = number.checked_sub(value.parse().ok()?)?;
        if *offset.get_or_insert(own) != own {
            return None;
        }
        lengths.push(digits);
    }
    Some((found(column, offset?), lengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(key: &str, values: [&str; 3], is_number: bool) -> Column {
        Column {
            key: key.to_owned(),
            values: values.map(str::to_owned).to_vec(),
            is_number,
        }
    }

    fn shown(texts: [&str; 3], columns: &[Column]) -> Option<String> {
        let pieces = aligned(&texts, columns)?;
        let shown = pieces.into_iter().map(|piece| match piece {
            Piece::Plain(text) => text,
            Piece::Column(found) => format!("<{}{:+}>", found.key, found.offset),
        });
        Some(shown.collect())
    }

    #[test]
    fn drawn_values_explain_differences_and_nothing_else_does() {
        let columns = [
            column("id", ["12", "15", "7"], false),
            column("name", ["ann", "anna", "bob"], false),
            column("roll", ["0", "3", "9"], true),
        ];
        assert_eq!(
            shown(["/v1/12", "/v1/15", "/v1/7"], &columns).as_deref(),
            Some("/v1/<id+0>")
        );
        assert_eq!(
            shown(["/12/ann?x", "/15/anna?x", "/7/bob?x"], &columns).as_deref(),
            Some("/<id+0>/<name+0>?x")
        );
        assert_eq!(
            shown(["/100", "/103", "/109"], &columns).as_deref(),
            Some("/<roll+100>")
        );
        let users = [
            column("user", ["1", "2", "3"], true),
            column("name", ["u0", "u1", "u2"], false),
        ];
        assert_eq!(
            shown(["/u0", "/u1", "/u2"], &users).as_deref(),
            Some("/<name+0>")
        );
        assert_eq!(shown(["/a", "/b", "/c"], &columns), None);
        assert_eq!(shown(["/12/x", "/15/y", "/7/z"], &columns), None);
        assert_eq!(shown(["/112", "/115", "/17"], &columns), None);
        assert_eq!(
            shown(["/same", "/same", "/same"], &columns).as_deref(),
            Some("/same")
        );
    }
}
