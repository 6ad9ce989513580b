//! Scripts after an answer, of Postman and of JetBrains: simple values that they keep, and expected statuses.
//!
//! The scripts do not run. Only statements in well-known forms are read.

use regex::Regex;

use super::placeholders::{json_pointer, word};
use super::requests::{Captured, CapturedFrom};

/// The effects of a script that a lab can have too.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// The captured values with their names in the file.
    pub(super) captures: Vec<(String, Captured)>,
    /// Names that get a constant.
    pub(super) constants: Vec<(String, String)>,
    /// Names that get another value.
    pub(super) unknown: Vec<String>,
    pub(super) status: Vec<String>,
    /// True if the script does more.
    pub(super) has_more: bool,
}

/// The functions that keep a value for later requests.
const SETTERS: &str = r"(?:(?:pm\.(?:environment|collectionVariables|globals|variables)\.set|postman\.set(?:Environment|Global)Variable|client\.global\.set|bru\.setVar|request\.variables\.set)\s*\()";

/// The answer as JSON.
const ANSWERS: &str = r"(?:pm\.response\.json\(\)|JSON\.parse\(\s*(?:responseBody|pm\.response\.text\(\))\s*\)|response\.body|res\.getBody\(\)|res\.body)";

impl Script {
    /// Reads a script.
    pub(super) fn of(text: &str) -> Script {
        let mut script = Script::default();
        // The patterns are constant. A mistake in one of them would make every script one that does more.
        if script.read(text).is_err() {
            script.has_more = true;
        }
        script
    }

    fn read(&mut self, text: &str) -> Result<(), regex::Error> {
        let without_comments = Regex::new(r"(?m)^\s*//.*$|/\*(?s:.)*?\*/")?;
        let text = without_comments.replace_all(text, "");
        let assignment = Regex::new(&format!(
            r#"(?:const|let|var)\s+(\w+)\s*=\s*({ANSWERS}|\w+)((?:\??\.\w+|\[\s*(?:\d+|"[^"]*"|'[^']*')\s*\])*)\s*;?\s*(?:\n|$)"#
        ))?;
        let mut aliases: Vec<(String, String)> = Vec::new();
        let answer = Regex::new(&format!("^{ANSWERS}$"))?;
        let mut rest = text.to_string();
        for found in assignment.captures_iter(&text) {
            let base = if answer.is_match(&found[2]) {
                Some("$".to_owned())
            } else {
                let known = aliases.iter().find(|(name, _)| *name == found[2]);
                known.map(|(_, path)| path.clone())
            };
            if let Some(base) = base {
                aliases.push((found[1].to_owned(), format!("{base}{}", &found[3])));
                rest = rest.replacen(&found[0], "\n", 1);
            }
        }
        rest = self.read_setters(&rest, &aliases)?;
        rest = self.read_statuses(&rest)?;
        let frame = Regex::new(
            r#"pm\.test\(\s*(?:"[^"]*"|'[^']*'|`[^`]*`)\s*,\s*(?:async\s+)?(?:function\s*\(\s*\)|\(\s*\)\s*=>)\s*\{|client\.test\(\s*(?:"[^"]*"|'[^']*')\s*,\s*(?:function\s*\(\s*\)|\(\s*\)\s*=>)\s*\{|\}\s*\)|console\.log\([^()]*\)|client\.log\([^()]*\)|[;\s]"#,
        )?;
        self.has_more |= !frame.replace_all(&rest, "").is_empty();
        Ok(())
    }

    /// Reads calls that keep a value, and returns the rest of the text.
    fn read_setters(
        &mut self,
        text: &str,
        aliases: &[(String, String)],
    ) -> Result<String, regex::Error> {
        let setter = Regex::new(&format!(
            r#"{SETTERS}\s*["'`]([^"'`]+)["'`]\s*,\s*((?:[^()\n]|\([^()\n]*\))+)\)\s*;?"#
        ))?;
        let member = Regex::new(&format!(r"^({ANSWERS}|\w+)((?s:.)*)$"))?;
        let answer = Regex::new(&format!("^{ANSWERS}$"))?;
        let header = Regex::new(
            r#"^(?:pm\.response\.headers\.get|postman\.getResponseHeader|response\.headers\.valueOf)\(\s*["']([^"']+)["']\s*\)$"#,
        )?;
        let constant = Regex::new(r#"^(?:"([^"\\]*)"|'([^'\\]*)'|(-?\d+(?:\.\d+)?|true|false))$"#)?;
        for found in setter.captures_iter(text) {
            let (name, value) = (found[1].to_owned(), found[2].trim());
            let path = member.captures(value).and_then(|parts| {
                let base = match answer.is_match(&parts[1]) {
                    true => "$",
                    false => aliases
                        .iter()
                        .find(|(known, _)| *known == parts[1])?
                        .1
                        .as_str(),
                };
                json_pointer(&format!("{base}{}", &parts[2]).replace("?.", "."))
            });
            let from = match (path, header.captures(value)) {
                (Some(pointer), _) => Some(CapturedFrom::Json(pointer)),
                (None, Some(header)) => Some(CapturedFrom::Header(header[1].to_owned())),
                (None, None) => None,
            };
            match (from, constant.captures(value)) {
                (Some(from), _) => {
                    let captured = Captured {
                        name: word(&name),
                        from,
                        regex: None,
                    };
                    self.captures.push((name, captured));
                }
                (None, Some(constant)) => {
                    let value = constant.iter().skip(1).flatten().next();
                    let value = value.map_or("", |value| value.as_str());
                    self.constants.push((name, value.to_owned()));
                }
                (None, None) => self.unknown.push(name),
            }
        }
        Ok(setter.replace_all(text, "").into_owned())
    }

    /// Reads checks of the status, and returns the rest of the text.
    fn read_statuses(&mut self, text: &str) -> Result<String, regex::Error> {
        let forms = [
            r"pm\.response\.to\.have\.status\(\s*(\d{3})\s*\)",
            r"pm\.expect\(\s*pm\.response\.code\s*\)\.to\.(?:be\.)?(?:equals?|eql)\(\s*(\d{3})\s*\)",
            r"pm\.expect\(\s*pm\.response\.code\s*\)\.to\.be\.oneOf\(\s*\[([\d,\s]+)\]\s*\)",
            r#"tests\[[^\]]*\]\s*=\s*responseCode\.code\s*===?\s*(\d{3})"#,
            r#"client\.assert\(\s*response\.status\s*===?\s*(\d{3}(?:\s*\|\|\s*response\.status\s*===?\s*\d{3})*)\s*(?:,\s*(?:"[^"]*"|'[^']*'|`[^`]*`)\s*)?\)"#,
        ];
        let mut rest = text.to_owned();
        for form in forms {
            let form = Regex::new(form)?;
            for found in form.captures_iter(&rest.clone()) {
                let is_digit = |it: char| it.is_ascii_digit();
                for status in found[1]
                    .split(|it| !is_digit(it))
                    .filter(|it| !it.is_empty())
                {
                    if !self.status.iter().any(|known| known == status) {
                        self.status.push(status.to_owned());
                    }
                }
            }
            rest = form.replace_all(&rest, "").into_owned();
        }
        // A lab requires success without a status.
        if self.status == ["200"] {
            self.status.clear();
        }
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_json(name: &str, pointer: &str) -> (String, Captured) {
        let captured = Captured {
            name: word(name),
            from: CapturedFrom::Json(pointer.to_owned()),
            regex: None,
        };
        (name.to_owned(), captured)
    }

    #[test]
    fn kept_values_are_captured() {
        for (text, pointer) in [
            (
                "pm.environment.set(\"token\", pm.response.json().token);",
                "/token",
            ),
            (
                "var jsonData = JSON.parse(responseBody);\npostman.setEnvironmentVariable('token', jsonData.data[0].id)",
                "/data/0/id",
            ),
            (
                "const res = pm.response.json();\nconst data = res.data;\npm.collectionVariables.set(`token`, data['access-token']);",
                "/data/access-token",
            ),
            (
                "client.global.set(\"token\", response.body.json.token);",
                "/json/token",
            ),
            (
                "pm.test('ok', function () {\n  pm.response.to.have.status(200);\n});\npm.globals.set('token', pm.response.json()?.a?.b);",
                "/a/b",
            ),
        ] {
            let expected = Script {
                captures: vec![from_json("token", pointer)],
                ..Script::default()
            };
            assert_eq!(Script::of(text), expected, "{text}");
        }
        let header = Script::of("pm.environment.set('etag', pm.response.headers.get('ETag'))");
        assert_eq!(
            header.captures[0].1.from,
            CapturedFrom::Header("ETag".to_owned())
        );
        assert!(!header.has_more);
    }

    #[test]
    fn statuses_are_expected_and_the_rest_is_known_to_exist() {
        let script = Script::of(
            "pm.test(\"made\", () => {\n  pm.response.to.have.status(201);\n  \
             pm.expect(pm.response.json().a).to.eql(1);\n});",
        );
        assert_eq!(script.status, ["201"]);
        assert!(script.has_more);
        let several = Script::of(
            "pm.test('x', function () { pm.expect(pm.response.code).to.be.oneOf([200, 404]); });",
        );
        assert_eq!(several.status, ["200", "404"]);
        assert!(!several.has_more);
        assert_eq!(
            Script::of("client.assert(response.status === 404, 'gone');").status,
            ["404"]
        );
        let either =
            Script::of("client.assert(response.status == 200 || response.status == 302, 'no');");
        assert_eq!(either.status, ["200", "302"]);
        assert!(!either.has_more);
    }

    #[test]
    fn other_values_are_named() {
        let script =
            Script::of("pm.environment.set('a', 'x y'); pm.environment.set('now', Date.now());");
        assert_eq!(script.constants, [("a".to_owned(), "x y".to_owned())]);
        assert_eq!(script.unknown, ["now"]);
        assert!(Script::of("for (;;) {}").has_more);
        assert_eq!(Script::of("// only a comment\n"), Script::default());
    }
}
