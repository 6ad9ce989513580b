//! Source text of scripts: types are removed, and operators become calls of the recorder.

mod edits;
mod names;
mod visit;

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_ast_visit::Visit as _;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};

use names::Names;
use visit::Visitor;

/// Maximum length of a file of a script, in bytes.
const LENGTH_MAX: usize = 4 << 20;

/// Maximum depth of brackets in a file.
const DEPTH_MAX: usize = 1000;

/// A call of `k6/http` in the text of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// The line, from 1.
    pub(crate) line: u32,
    /// The called function, as in the script.
    pub(crate) callee: String,
}

/// A module that a file imports, with the names that it takes from the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) module: String,
    pub(crate) names: Vec<String>,
    pub(crate) line: u32,
}

/// A file that the engine can run.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    /// The calls of `k6/http`, numbered from the first number on.
    pub(crate) sites: Vec<Site>,
    pub(crate) imports: Vec<Import>,
    pub(crate) lines: Lines,
}

/// The lines of the original text, by the lines of the text that runs.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u32>);

impl Lines {
    /// The line of the original text.
    pub(crate) fn original(&self, line: u32) -> u32 {
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        self.0.get(index).copied().unwrap_or(line)
    }
}

/// A text that is not a script: the message and its line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unparsed {
    pub(crate) line: u32,
    pub(crate) message: String,
}

/// Decodes the text of a file: UTF-8, or UTF-16 with a mark at its begin.
pub(crate) fn decoded(bytes: &[u8]) -> Option<String> {
    let wide = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        if rest.len() % 2 == 1 {
            return None;
        }
        let units = rest.chunks(2).map(|pair| match pair {
            [first, second] => read([*first, *second]),
            _ => 0xFFFD,
        });
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        plain => String::from_utf8(plain.to_vec()).ok(),
    }
}

/// Prepares a file of a script. Its calls of `k6/http` have numbers from `first_site` on.
///
/// # Errors
/// The first place that is no JavaScript or TypeScript.
pub(crate) fn prepared(path: &Path, text: &str, first_site: usize) -> Result<Prepared, Unparsed> {
    bounded(text)?;
    let is_typed = matches!(
        path.extension().and_then(|it| it.to_str()),
        Some("ts" | "mts" | "cts")
    );
    let (plain, lines) = match is_typed {
        true => without_types(path, text)?,
        false => (text.to_owned(), Lines::default()),
    };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &plain, SourceType::mjs()).parse();
    first_mistake(&plain, &parsed.diagnostics)?;
    let mut names = Names::default();
    names.visit_program(&parsed.program);
    let mut visitor = Visitor::new(&plain, names, first_site);
    visitor.visit_program(&parsed.program);
    let (edited, sites, imports) = visitor.finish();
    let sites = sites.into_iter().map(|(offset, callee)| Site {
        line: lines.original(line_of(&plain, offset)),
        callee,
    });
    let imports = imports.into_iter().map(|(offset, import)| Import {
        line: lines.original(line_of(&plain, offset)),
        ..import
    });
    Ok(Prepared {
        sites: sites.collect(),
        imports: imports.collect(),
        text: match is_common(&parsed.program, &plain) {
            true => common(&edited),
            false => edited,
        },
        lines,
    })
}

/// Refuses a text that is too long or too deep to parse.
fn bounded(text: &str) -> Result<(), Unparsed> {
    if text.len() > LENGTH_MAX {
        let message = format!("the file is longer than {} MiB", LENGTH_MAX >> 20);
        return Err(Unparsed { line: 1, message });
    }
    let (mut depth, mut line) = (0_usize, 1);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' => line += 1,
            _ => {}
        }
        if depth > DEPTH_MAX {
            let message = format!("its brackets are deeper than {DEPTH_MAX}");
            return Err(Unparsed { line, message });
        }
    }
    Ok(())
}

/// The text without types, and its lines.
fn without_types(path: &Path, text: &str) -> Result<(String, Lines), Unparsed> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::ts()).parse();
    first_mistake(text, &parsed.diagnostics)?;
    let mut program = parsed.program;
    let semantic = SemanticBuilder::new().with_enum_eval(true).build(&program);
    let scoping = semantic.semantic.into_scoping();
    let options = TransformOptions::default();
    let done =
        Transformer::new(&allocator, path, &options).build_with_scoping(scoping, &mut program);
    first_mistake(text, &done.diagnostics)?;
    let options = CodegenOptions {
        source_map_path: Some(path.to_owned()),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(&program);
    let count = u32::try_from(printed.code.lines().count()).unwrap_or(u32::MAX);
    let lines = match printed.map {
        None => Lines::default(),
        Some(map) => {
            let table = map.generate_lookup_table();
            // A generated line can begin with a token of no origin. Its last token has one.
            let original = |line| {
                let token = map.lookup_token(&table, line, u32::MAX);
                token.map_or(line, |token| token.get_src_line())
            };
            Lines((0..count).map(|line| original(line) + 1).collect())
        }
    };
    Ok((printed.code, lines))
}

fn first_mistake(text: &str, found: &oxc_diagnostics::Diagnostics) -> Result<(), Unparsed> {
    let Some(first) = found.iter().next() else {
        return Ok(());
    };
    let offset = first.labels.first().map_or(0, |label| label.offset());
    Err(Unparsed {
        line: line_of(text, offset),
        message: first.message.to_string(),
    })
}

/// The line of a byte, from 1.
fn line_of(text: &str, offset: u32) -> u32 {
    let end = usize::try_from(offset).unwrap_or(0).min(text.len());
    let before = text.as_bytes()[..end]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    u32::try_from(before).map_or(u32::MAX, |before| before + 1)
}

/// True for a module in the older form of Node (CommonJS).
fn is_common(program: &Program<'_>, text: &str) -> bool {
    let has_syntax = program
        .body
        .iter()
        .any(oxc_ast::ast::Statement::is_module_declaration);
    !has_syntax
        && ["module.exports", "exports.", "require("]
            .iter()
            .any(|it| text.contains(it))
}

/// A module of the older form as one of the newer form. Lines stay.
fn common(text: &str) -> String {
    format!(
        "const module = {{ exports: {{}} }}; (function (exports) {{{text}\n}}).call(module.exports, module.exports); \
         export default module.exports;"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> String {
        let prepared = prepared(Path::new("/a.js"), text, 0).expect("a script");
        let text = prepared.text.replace("__weigh.", "");
        let is_added = |part: &&str| part.starts_with("globalThis.") && part.ends_with("undefined");
        text.split_inclusive("; ")
            .filter(|part| !is_added(&part.trim_end_matches("; ")))
            .collect()
    }

    #[test]
    fn operators_become_calls_and_places_stay_places() {
        for (text, expected) in [
            ("x = a /* > */ > b;", "x =  binary(\">\",a /* > */ , b);"),
            (
                "x = a + b + c;",
                "x =  binary(\"+\", binary(\"+\",a , b) , c);",
            ),
            ("if (!a) b[0]++;", "if ( truth( unary(\"!\",a))) b[0]++;"),
            ("b[i] = c[j][k];", "b[i] =  at( at(c,j),k);"),
            ("b[i](c); delete b[i];", "b[i](c); delete b[i];"),
            (
                "new a[0].B(c[1]); a?.b[i];",
                "new a[0].B( at(c,1)); a?.b[i];",
            ),
            (
                "o.n += f(1) || -2;",
                "o.n = binary(\"+\",o.n,  left(f(1)) || -2);",
            ),
            (
                "typeof x; const {A = 1, B} = __ENV;",
                " unary(\"typeof\",typeof x===\"undefined\"?undefined:x); const {A = 1, B} = environment([\"A\"]);",
            ),
        ] {
            assert_eq!(changed(text), expected, "{text}");
        }
    }

    #[test]
    fn calls_of_http_have_numbers_and_lines() {
        let text = "import http, { post as send } from 'k6/http';\nconst { get } = http;\nconst put = http.put;\n\
                    http\n  .head('/a'); send(1); get(2); put(3); http['patch'](4); cache.get(5); http.url(6);\n";
        let prepared = prepared(Path::new("/a.js"), text, 7).expect("a script");
        let sites: Vec<String> = prepared
            .sites
            .iter()
            .map(|it| format!("{} {}", it.line, it.callee))
            .collect();
        assert_eq!(
            sites,
            ["4 http.head", "5 send", "5 get", "5 put", "5 http['patch']"]
        );
        assert!(
            prepared.text.contains("__weigh.site(11,http)['patch'](4)"),
            "{}",
            prepared.text
        );
    }

    #[test]
    fn names_without_a_declaration_exist() {
        let text = "for (a in {}) { b = 1; } let c; c = 2; function d(e) { e += 1; d = 3; }";
        let prepared = prepared(Path::new("/a.js"), text, 0).expect("a script");
        let begin = "globalThis.a ??= undefined; globalThis.b ??= undefined; for (a in {})";
        assert!(prepared.text.starts_with(begin), "{}", prepared.text);
    }

    #[test]
    fn deep_and_long_texts_are_refused() {
        let refused = |text: &str| {
            prepared(Path::new("/a.js"), text, 0)
                .expect_err("it is refused")
                .message
        };
        assert!(refused(&"(".repeat(2000)).contains("brackets"));
        assert!(refused(&" ".repeat(LENGTH_MAX + 1)).contains("MiB"));
        assert_eq!(decoded(&[0xFF, 0xFE, b'a', 0]).as_deref(), Some("a"));
        assert_eq!(decoded(&[0xFE, 0xFF, 0, b'a']).as_deref(), Some("a"));
        assert_eq!(decoded(&[0xFF, 0xFE, b'a']), None);
        assert_eq!(decoded(&[0xC3, 0x28]), None);
    }
}
