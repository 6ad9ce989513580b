//! Text with holes for addresses: what is left of a template once its settings are filled in.

use std::fmt;
use std::net::SocketAddr;

/// A template in which settings are filled in and only addresses of systems remain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
}

/// A part of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Plain(String),
    Address { system: String, form: Form },
}

/// How an address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `127.0.0.1:8080`
    Addr,
    /// `8080`
    Port,
    /// `http://127.0.0.1:8080`
    Url,
    /// `https://127.0.0.1:8080`
    SecureUrl,
}

impl Form {
    /// Every form with its word in templates.
    pub(crate) const ALL: [(&'static str, Form); 3] = [
        ("addr", Form::Addr),
        ("port", Form::Port),
        ("url", Form::Url),
    ];

    /// The form a template's word asks for.
    pub(crate) fn of(word: &str) -> Option<Form> {
        Form::ALL
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, form)| *form)
    }

    fn word(self) -> &'static str {
        match self {
            Form::Addr => "addr",
            Form::Port => "port",
            Form::Url | Form::SecureUrl => "url",
        }
    }
}

impl Text {
    pub(crate) fn push_plain(&mut self, plain: &str) {
        if let Some(Piece::Plain(last)) = self.pieces.last_mut() {
            last.push_str(plain);
        } else if !plain.is_empty() {
            self.pieces.push(Piece::Plain(plain.to_owned()));
        }
    }

    pub(crate) fn push_address(&mut self, system: &str, form: Form) {
        self.pieces.push(Piece::Address {
            system: system.to_owned(),
            form,
        });
    }

    pub(crate) fn append(&mut self, other: &Text) {
        for piece in &other.pieces {
            match piece {
                Piece::Plain(plain) => self.push_plain(plain),
                Piece::Address { system, form } => self.push_address(system, *form),
            }
        }
    }

    /// The same with more behind it.
    #[must_use]
    pub fn followed_by(&self, plain: &str) -> Text {
        let mut text = self.clone();
        text.push_plain(plain);
        text
    }

    /// The systems whose addresses it waits for, in order of appearance, perhaps repeated.
    pub fn systems(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Plain(_) => None,
            Piece::Address { system, .. } => Some(system.as_str()),
        })
    }

    /// The text with every address filled in.
    ///
    /// # Errors
    /// A sentence that names the first system for which `address_of` gives none.
    pub fn render(
        &self,
        address_of: &dyn Fn(&str) -> Option<SocketAddr>,
    ) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                Piece::Address { system, form } => {
                    let addr = address_of(system).ok_or_else(|| {
                        format!(
                            "`{{{{{system}.{}}}}}` has no value: `{system}` has no address yet",
                            form.word()
                        )
                    })?;
                    text.push_str(&match form {
                        Form::Addr => addr.to_string(),
                        Form::Port => addr.port().to_string(),
                        Form::Url => format!("http://{addr}"),
                        Form::SecureUrl => format!("https://{addr}"),
                    });
                }
            }
        }
        Ok(text)
    }
}

/// As a template again: `target/release/server --listen {{server.addr}}`.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Plain(plain) => f.write_str(plain)?,
                Piece::Address { system, form } => write!(f, "{{{{{system}.{}}}}}", form.word())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Text {
        let mut text = Text::default();
        text.push_plain("--listen ");
        text.push_address("server", Form::Addr);
        text.push_plain(" --origin ");
        text.push_address("origin", Form::Url);
        text.push_plain("/x:");
        text.push_address("origin", Form::Port);
        text
    }

    #[test]
    fn addresses_are_filled_in_as_address_port_and_url() {
        let rendered = text().render(&|system| match system {
            "server" => Some(([127, 0, 0, 1], 4000).into()),
            _ => Some(([127, 0, 0, 1], 5000).into()),
        });
        assert_eq!(
            rendered.as_deref(),
            Ok("--listen 127.0.0.1:4000 --origin http://127.0.0.1:5000/x:5000")
        );
    }

    #[test]
    fn a_missing_address_is_named() {
        let rendered = text().render(&|system| {
            (system == "server").then(|| SocketAddr::from(([127, 0, 0, 1], 4000)))
        });
        assert_eq!(
            rendered.unwrap_err(),
            "`{{origin.url}}` has no value: `origin` has no address yet"
        );
    }

    #[test]
    fn it_shows_as_the_template_it_came_from() {
        assert_eq!(
            text().to_string(),
            "--listen {{server.addr}} --origin {{origin.url}}/x:{{origin.port}}"
        );
    }

    #[test]
    fn a_url_of_what_speaks_tls_says_so_and_is_written_the_same() {
        let mut text = Text::default();
        text.push_address("server", Form::SecureUrl);
        let address = |_: &str| Some(SocketAddr::from(([127, 0, 0, 1], 4000)));
        assert_eq!(
            text.render(&address).as_deref(),
            Ok("https://127.0.0.1:4000")
        );
        assert_eq!(text.to_string(), "{{server.url}}");
    }
}
