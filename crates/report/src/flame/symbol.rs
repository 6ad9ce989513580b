//! Readable names of functions.

/// A symbol without the additions of compilers: Rust's hash and escapes, and the marks of just-in-time
/// compilers.
pub(super) fn readable(symbol: &str) -> String {
    let symbol = legacy_rust(symbol).unwrap_or_else(|| symbol.to_owned());
    let symbol = without_hash(&symbol);
    // V8 marks the level of optimization: `~` interpreted, `^` baseline, `*` optimized. It is the same
    // function at each level. Java's map contains signatures of classes.
    let symbol = symbol
        .strip_prefix("LazyCompile:")
        .or_else(|| symbol.strip_prefix("Function:"))
        .or_else(|| symbol.strip_prefix("JS:"))
        .unwrap_or(symbol);
    symbol
        .trim_start_matches(['*', '~', '^', '+'])
        .trim()
        .to_owned()
}

/// A name such as `crate::function::h0123456789abcdef` without its hash.
fn without_hash(symbol: &str) -> &str {
    match symbol.rsplit_once("::h") {
        Some((path, hash)) if is_hash(hash) => path,
        _ => symbol,
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Demangles `_ZN5alloc3vec…17h0123456789abcdefE`, which consists of lengths and names. `None` for any other
/// symbol.
fn legacy_rust(symbol: &str) -> Option<String> {
    // Demangling here covers only the needs of flamegraphs. It is necessary because `perf` without debug
    // files leaves such names.
    let mut rest = symbol.strip_prefix("_ZN")?;
    let mut parts = Vec::new();
    while let Some(length) = rest.find(|character: char| !character.is_ascii_digit()) {
        if length == 0 {
            break;
        }
        let count: usize = rest[..length].parse().ok()?;
        // The addition is checked, because the length comes from a file.
        let name = rest.get(length..length.checked_add(count)?)?;
        parts.push(unescaped(name));
        rest = rest.get(length + count..)?;
    }
    // C++ names begin in the same way. Only Rust's names end with a hash of 16 digits.
    let is_rust = rest.starts_with('E')
        && parts
            .last()
            .is_some_and(|last| last.strip_prefix('h').is_some_and(is_hash));
    is_rust.then(|| parts.join("::"))
}

/// Replaces the escapes of characters that a symbol cannot contain.
fn unescaped(name: &str) -> String {
    const ESCAPES: [(&str, &str); 12] = [
        ("$LT$", "<"),
        ("$GT$", ">"),
        ("$RF$", "&"),
        ("$BP$", "*"),
        ("$LP$", "("),
        ("$RP$", ")"),
        ("$C$", ","),
        ("$u20$", " "),
        ("$u27$", "'"),
        ("$u7b$", "{"),
        ("$u7d$", "}"),
        ("..", "::"),
    ];
    let name = name
        .strip_prefix("_$")
        .map_or(name.to_owned(), |rest| format!("${rest}"));
    ESCAPES
        .iter()
        .fold(name, |name, (escape, plain)| name.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_were_written() {
        for (symbol, expected) in [
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            (
                "_ZN3foo21_$LT$impl$u20$Bar$GT$3baz17h0123456789abcdefE",
                "foo::<impl Bar>::baz",
            ),
            ("_ZN2v88internal7RuntimeE", "_ZN2v88internal7RuntimeE"),
            (
                "LazyCompile:*handle /app/server.js:12",
                "handle /app/server.js:12",
            ),
            ("JS:^handle server.js:1:2", "handle server.js:1:2"),
            ("epoll_wait", "epoll_wait"),
            ("weird::hello", "weird::hello"),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }
}
