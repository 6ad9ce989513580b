//! Hints for commands that a shell would understand, and for addresses that are fixed.
//!
//! A person copies a command from a terminal. The hint is the text to write instead.

/// The mistake and the hint for a command that needs a shell. `None` for other commands. `words` are the words
/// of `text` after splitting.
pub(crate) fn for_shell(text: &str, words: &[String]) -> Option<(String, String)> {
    if let Some((variable, _)) = words.first().and_then(|word| assignment(word)) {
        return Some((
            format!("the command begins with the variable `{variable}`, which only a shell sets"),
            format!("write `env {}`", with_port(text.trim())),
        ));
    }
    let operator = operator(text, words)?;
    let mistake = format!("`{operator}` needs a shell, and `weigh` runs commands without one");
    let folder_and_rest = text.trim().strip_prefix("cd ").and_then(|rest| {
        let (folder, rest) = rest.split_once(" && ")?;
        Some((folder.trim(), rest.trim()))
    });
    let hint = match folder_and_rest {
        Some((folder, rest)) => format!("write the command `{rest}` with `folder: {folder}`"),
        None => "write a script, or `sh -c '… exec PROGRAM …'`. With `exec`, the program itself receives the signal to stop".to_owned(),
    };
    Some((mistake, hint))
}

/// The parts of a word such as `PORT=8080`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// The first operator of a shell that stands alone, outside of quotes.
fn operator<'a>(text: &'a str, words: &[String]) -> Option<&'a str> {
    const OPERATORS: [&str; 9] = ["&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"];
    // A quoted operator has its quotes here, or it is a part of a longer word there.
    let mut parts = text.split_whitespace();
    parts.find(|part| OPERATORS.contains(part) && words.iter().any(|word| word == part))
}

/// The command with `{{port}}` instead of the number in a leading `PORT=8080`.
fn with_port(text: &str) -> String {
    let Some((first, rest)) = text.split_once(' ') else {
        return text.to_owned();
    };
    match assignment(first) {
        Some(("PORT", value)) if is_port(value) => format!("PORT={{{{port}}}} {rest}"),
        _ => text.to_owned(),
    }
}

/// The command with a template instead of its first fixed address or port. `None` without a fixed address.
pub(crate) fn with_template(words: &[String]) -> Option<String> {
    let mut words = words.to_vec();
    let (index, word) = (0..words.len()).find_map(|index| {
        let before = index.checked_sub(1).map(|before| words[before].as_str());
        Some((index, replaced(&words[index], before)?))
    })?;
    words[index] = word;
    let quoted = words
        .iter()
        .map(|word| match word.contains([' ', '\'', '"']) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.clone(),
        });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

/// A word with a template instead of its fixed address. `before` is the word before it.
fn replaced(word: &str, before: Option<&str>) -> Option<String> {
    for host in ["127.0.0.1:", "localhost:", "0.0.0.0:", "[::]:", "[::1]:"] {
        if let Some((start, port)) = word.split_once(host)
            && is_port(port)
        {
            return Some(format!("{start}{{{{addr}}}}"));
        }
    }
    // An empty host means all addresses of the machine.
    let (start, value) = word
        .rsplit_once('=')
        .map_or(("", word), |(name, value)| (&word[..=name.len()], value));
    if value.strip_prefix(':').is_some_and(is_port) {
        return Some(format!("{start}{{{{addr}}}}"));
    }
    let name = match start.strip_suffix('=') {
        Some(name) => Some(name),
        None => before,
    };
    let name = name.map(|name| name.trim_start_matches('-').to_ascii_lowercase());
    let is_of_port = name.is_some_and(|name| name == "p" || name.ends_with("port"));
    (is_of_port && is_port(value)).then(|| format!("{start}{{{{port}}}}"))
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_a_shell_has_the_text_to_write_instead() {
        for (text, hint) in [
            (
                "PORT=8080 node server.js",
                "write `env PORT={{port}} node server.js`",
            ),
            ("A_B=x run --it", "write `env A_B=x run --it`"),
            (
                "cd api && npm start",
                "write the command `npm start` with `folder: api`",
            ),
            ("node a.js > log", "write a script, or `sh -c"),
            ("a | b", "write a script, or `sh -c"),
        ] {
            let words = shlex::split(text).unwrap();
            let (_, found) = for_shell(text, &words).unwrap();
            assert!(found.starts_with(hint), "{text}: {found}");
        }
        for text in [
            "env PORT={{port}} a",
            "grep '|' file",
            "sh -c 'a && b'",
            "a --x=1",
            "a --q 'x > y'",
        ] {
            let words = shlex::split(text).unwrap();
            assert_eq!(for_shell(text, &words), None, "{text}");
        }
    }

    #[test]
    fn a_fixed_address_becomes_a_template() {
        for (command, expected) in [
            (
                "serve --listen 127.0.0.1:8080",
                Some("serve --listen {{addr}}"),
            ),
            (
                "serve --listen=localhost:8080 -v",
                Some("serve --listen={{addr}} -v"),
            ),
            ("serve :8080", Some("serve {{addr}}")),
            ("serve --port 8080", Some("serve --port {{port}}")),
            ("serve -p 8080 'a b'", Some("serve -p {{port}} 'a b'")),
            ("serve --http-port=8080", Some("serve --http-port={{port}}")),
            (
                "env PORT=3000 node a.js",
                Some("env PORT={{port}} node a.js"),
            ),
            ("serve --workers 8", None),
            ("serve --port 0", None),
            ("serve", None),
        ] {
            let words = shlex::split(command).unwrap();
            assert_eq!(with_template(&words).as_deref(), expected, "{command}");
        }
    }
}
