//! Text with open addresses: a template after its settings are filled in.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::template::Reference;

/// The address of a running system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address that was assigned to it.
    pub address: SocketAddr,
    /// The path that was assigned to its Unix socket, if it needs one.
    pub socket: Option<PathBuf>,
    /// Host and port from the URL of a system that already runs.
    pub authority: Option<String>,
    /// The folder of its configuration files, as the system itself sees it. `None` without files.
    pub files: Option<PathBuf>,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Endpoint {
        Endpoint {
            address,
            socket: None,
            authority: None,
            files: None,
        }
    }
}

impl Endpoint {
    /// Returns host and port from its URL, or its address.
    #[must_use]
    pub fn authority(&self) -> String {
        let named = self.authority.clone();
        named.unwrap_or_else(|| self.address.to_string())
    }
}

/// A template after its settings are filled in. Only addresses of systems remain open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
}

/// One piece of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Plain(String),
    Address {
        system: String,
        form: Form,
    },
    /// The number of the instance, from 1.
    Instance,
    /// The path of a configuration file of a system, or of their folder.
    File {
        system: String,
        name: Option<String>,
    },
    /// A path of this machine, with the template that stands for it.
    Path {
        path: String,
        template: String,
    },
}

/// The notation of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Host and port, such as `127.0.0.1:8080`.
    Addr,
    /// The port, such as `8080`.
    Port,
    /// A URL, such as `http://127.0.0.1:8080`.
    Url,
    /// A URL with TLS, such as `https://127.0.0.1:8080`.
    SecureUrl,
    /// The path of a Unix socket.
    Socket,
}

impl Form {
    /// Every notation with its name in templates.
    pub(crate) const ALL: [(&'static str, Form); 4] = [
        ("addr", Form::Addr),
        ("port", Form::Port),
        ("url", Form::Url),
        ("socket", Form::Socket),
    ];

    /// Returns the notation with this name in templates.
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
            Form::Socket => "socket",
        }
    }
}

impl Text {
    pub(crate) fn push_plain(&mut self, plain: &str) {
        // Joined, so that two texts with equal characters are equal.
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

    pub(crate) fn push_instance(&mut self) {
        self.pieces.push(Piece::Instance);
    }

    /// Adds the path of a system's configuration file, or of the folder of its files.
    pub(crate) fn push_file(&mut self, system: &str, name: Option<&str>) {
        self.pieces.push(Piece::File {
            system: system.to_owned(),
            name: name.map(str::to_owned),
        });
    }

    /// Adds a path of this machine. Recordings show the template instead.
    pub(crate) fn push_path(&mut self, path: &Path, template: &Reference) {
        self.pieces.push(Piece::Path {
            path: path.display().to_string(),
            template: template.to_string(),
        });
    }

    /// Returns the text with templates for the paths of this machine, for a recording.
    #[must_use]
    pub fn without_paths(&self) -> Text {
        let mut text = Text::default();
        for piece in &self.pieces {
            match piece {
                Piece::Path { template, .. } => text.push_plain(template),
                other => text.push(other),
            }
        }
        text
    }

    /// True if the text contains the path of a configuration file.
    pub(crate) fn has_file(&self) -> bool {
        let is_file = |piece: &Piece| matches!(piece, Piece::File { .. });
        self.pieces.iter().any(is_file)
    }

    /// True if the text, apart from addresses, differs between the instances of a system.
    pub(crate) fn has_instance(&self) -> bool {
        self.pieces.contains(&Piece::Instance)
    }

    pub(crate) fn append(&mut self, other: &Text) {
        for piece in &other.pieces {
            self.push(piece);
        }
    }

    fn push(&mut self, piece: &Piece) {
        match piece {
            // Joined with the text before it.
            Piece::Plain(plain) => self.push_plain(plain),
            other => self.pieces.push(other.clone()),
        }
    }

    /// Returns the text with `plain` at its end.
    #[must_use]
    pub fn followed_by(&self, plain: &str) -> Text {
        let mut text = self.clone();
        text.push_plain(plain);
        text
    }

    /// Iterates over the systems with addresses in the text, in order of appearance, perhaps repeated.
    pub fn systems(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Plain(_) | Piece::Instance | Piece::File { .. } | Piece::Path { .. } => None,
            Piece::Address { system, .. } => Some(system.as_str()),
        })
    }

    /// True if the text contains an address of this system as numbers. A URL can have a host name instead.
    pub fn has_address_of(&self, system: &str) -> bool {
        self.pieces.iter().any(|piece| {
            matches!(piece, Piece::Address { system: whose, form: Form::Addr | Form::Port } if whose == system)
        })
    }

    /// True if the text contains the path of this system's Unix socket.
    pub fn has_socket_of(&self, system: &str) -> bool {
        self.pieces.iter().any(|piece| {
            matches!(piece, Piece::Address { system: whose, form: Form::Socket } if whose == system)
        })
    }

    /// True if the text contains the path of any Unix socket.
    pub(crate) fn has_socket(&self) -> bool {
        let is_socket = |piece: &Piece| {
            matches!(
                piece,
                Piece::Address {
                    form: Form::Socket,
                    ..
                }
            )
        };
        self.pieces.iter().any(is_socket)
    }

    /// Returns the text with every address filled in.
    ///
    /// # Errors
    /// A sentence that names the first system without an address from `find`.
    pub fn render(&self, find: &dyn Fn(&str) -> Option<Endpoint>) -> Result<String, String> {
        self.fill(None, find)
    }

    /// Returns the text for one instance of a system, numbered from 1.
    ///
    /// # Errors
    /// A sentence that names the first system without an address from `find`.
    pub fn render_instance(
        &self,
        instance: u32,
        find: &dyn Fn(&str) -> Option<Endpoint>,
    ) -> Result<String, String> {
        self.fill(Some(instance), find)
    }

    fn fill(
        &self,
        instance: Option<u32>,
        find: &dyn Fn(&str) -> Option<Endpoint>,
    ) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                Piece::Path { path, .. } => text.push_str(path),
                Piece::Instance => text.push_str(
                    &instance
                        .ok_or("`{{instance}}` has no value: the system does not run yet")?
                        .to_string(),
                ),
                Piece::File { system, name } => {
                    let folder = find(system).and_then(|found| found.files);
                    let folder = folder.ok_or_else(|| {
                        format!("the files of `{system}` have no path: it does not run yet")
                    })?;
                    let path = name
                        .as_ref()
                        .map_or(folder.clone(), |name| folder.join(name));
                    text.push_str(&path.display().to_string());
                }
                Piece::Address { system, form } => {
                    let none = |what: &str| {
                        format!(
                            "`{{{{{system}.{}}}}}` has no value: `{system}` has no {what}",
                            form.word()
                        )
                    };
                    let found = find(system).ok_or_else(|| none("address yet"))?;
                    let addr = found.address;
                    text.push_str(&match form {
                        Form::Addr => addr.to_string(),
                        Form::Port => addr.port().to_string(),
                        Form::Url => format!("http://{}", found.authority()),
                        Form::SecureUrl => format!("https://{}", found.authority()),
                        Form::Socket => match found.socket {
                            Some(path) => path.display().to_string(),
                            None => {
                                return Err(none(
                                    "Unix socket. Add `{{socket}}` to its own `run` or `env`",
                                ));
                            }
                        },
                    });
                }
            }
        }
        Ok(text)
    }
}

/// Writes the text as a template: `target/release/server --listen {{server.addr}}`.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Plain(plain) => f.write_str(plain)?,
                Piece::Path { template, .. } => f.write_str(template)?,
                Piece::Address { system, form } => write!(f, "{{{{{system}.{}}}}}", form.word())?,
                Piece::Instance => f.write_str("{{instance}}")?,
                Piece::File { name: None, .. } => f.write_str("{{files}}")?,
                Piece::File {
                    name: Some(name), ..
                } => write!(f, "{{{{file.{name}}}}}")?,
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
            "server" => Some(SocketAddr::from(([127, 0, 0, 1], 4000)).into()),
            _ => Some(SocketAddr::from(([127, 0, 0, 1], 5000)).into()),
        });
        assert_eq!(
            rendered.as_deref(),
            Ok("--listen 127.0.0.1:4000 --origin http://127.0.0.1:5000/x:5000")
        );
    }

    #[test]
    fn an_instance_has_a_number_and_a_build_has_none() {
        let mut text = Text::default();
        text.push_plain("limiter-");
        text.push_instance();
        let nowhere = |_: &str| None;
        assert_eq!(
            text.render_instance(3, &nowhere).as_deref(),
            Ok("limiter-3")
        );
        assert!(text.render(&nowhere).unwrap_err().contains("{{instance}}"));
        assert_eq!(text.to_string(), "limiter-{{instance}}");
    }

    #[test]
    fn a_missing_address_is_named() {
        let rendered = text().render(&|system| {
            (system == "server").then(|| SocketAddr::from(([127, 0, 0, 1], 4000)).into())
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
        let address = |_: &str| Some(SocketAddr::from(([127, 0, 0, 1], 4000)).into());
        assert_eq!(
            text.render(&address).as_deref(),
            Ok("https://127.0.0.1:4000")
        );
        assert_eq!(text.to_string(), "{{server.url}}");
    }

    #[test]
    fn a_socket_is_a_path_and_belongs_to_who_has_one() {
        let mut text = Text::default();
        text.push_plain("unix://");
        text.push_address("server", Form::Socket);
        let address = SocketAddr::from(([127, 0, 0, 1], 4000));
        let found = |_: &str| {
            Some(Endpoint {
                address,
                socket: Some("/run/s".into()),
                authority: None,
                files: None,
            })
        };
        assert_eq!(text.render(&found).as_deref(), Ok("unix:///run/s"));
        assert!(text.has_socket_of("server") && !text.has_socket_of("origin"));
        assert_eq!(
            text.render(&|_| Some(address.into())).unwrap_err(),
            "`{{server.socket}}` has no value: `server` has no Unix socket. \
             Add `{{socket}}` to its own `run` or `env`"
        );
    }
}
