//! The path of a claim.

use super::Form;

/// The path of a value in the claims of a token: `$.roles[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPath {
    /// The path as a JSON Pointer (RFC 6901).
    pub pointer: String,
    text: String,
}

impl Form for ClaimPath {
    const NAME: &'static str = "claim-path";

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("expected a path such as `$.sub`, `$.roles[0]` or `$['a.b'].c`, found `{text}`")
        };
        let mut rest = text.strip_prefix('$').ok_or_else(wrong)?;
        let mut pointer = String::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(inner) = rest.strip_prefix("['") {
                inner.split_once("']").ok_or_else(wrong)?
            } else if let Some(inner) = rest.strip_prefix('[') {
                let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
                index.parse::<u32>().map_err(|_| wrong())?;
                (index, after)
            } else {
                let inner = rest.strip_prefix('.').ok_or_else(wrong)?;
                inner.split_at(inner.find(['.', '[']).unwrap_or(inner.len()))
            };
            if step.is_empty() {
                return Err(wrong());
            }
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
            rest = after;
        }
        Ok(Self {
            pointer,
            text: text.to_owned(),
        })
    }

    fn write(&self) -> String {
        self.text.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_pointers() {
        for (path, pointer) in [
            ("$", ""),
            ("$.sub", "/sub"),
            ("$.roles[0]", "/roles/0"),
            ("$['https://a.b/c~d'].e", "/https:~1~1a.b~1c~0d/e"),
        ] {
            assert_eq!(ClaimPath::read(path).unwrap().pointer, pointer);
        }
        for wrong in ["", "sub", "$sub", "$.", "$..a", "$[a]", "$['a", "$[0"] {
            assert!(ClaimPath::read(wrong).is_err(), "{wrong}");
        }
    }
}
