//! A corpus on disk.
//!
//! ```text
//! corpus/NAME/
//!   subgraphs/*.graphql   as their teams write them
//!   supergraph.graphql    composed from them by ../tests/compose
//!   composer              `apollo` where the composition is Apollo's
//!   data.json             see `World`
//!   cases.graphql         operations, each below a line `# == what it shows`
//! ```
//!
//! Between that line and the operation there may be `# variables: {…}`,
//! `# operation: NAME`, `# fetches: a b b` (the subgraphs that are asked, sorted),
//! `# errors: ["path.0.to", …]` (the paths of the errors, sorted) and `# data: {…}` where the answer
//! is not what one server would say, and `# refused: CODE`. Of the request, `# granted: user scope
//! !policy` says what it may see (everything when left out), and `# draws: 12.5 label` what it drew
//! of 100 for `@override`, and which labels are active.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value};

use crate::execute::{self, Answer};
use crate::schema::{Schema, SchemaError};
use crate::subgraph::Subgraph;
use crate::world::{ORACLE, World};

/// Why a corpus could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file is missing.
    #[error("{path}: {source}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A schema is wrong.
    #[error("{path}: {source}")]
    Schema {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: SchemaError,
    },
    /// A line above an operation has the form `# key: value` and an unknown key.
    #[error("the case `{title}` has an unknown line `# {key}: …`")]
    UnknownLine {
        /// The case.
        title: String,
        /// The key.
        key: String,
    },
    /// JSON is wrong.
    #[error("{place}: {source}")]
    Json {
        /// Where.
        place: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// Subgraphs, their supergraph and what is asked of them.
#[derive(Debug)]
pub struct Corpus {
    /// The folder's name.
    pub name: String,
    /// The supergraph's SDL.
    pub sdl: String,
    /// The servers.
    pub subgraphs: Vec<Subgraph>,
    /// What is asked.
    pub cases: Vec<Case>,
    api: Schema,
    data: String,
}

/// One operation and what must come of it.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// What it shows.
    pub title: String,
    /// The document.
    pub query: String,
    /// The JSON object of variables.
    pub variables: Map<String, Value>,
    /// Which operation of the document.
    pub operation: Option<String>,
    /// The subgraphs that are asked, sorted, when it matters.
    pub fetches: Option<Vec<String>>,
    /// The paths of the errors, sorted, where one server would have others.
    pub errors: Option<Vec<String>>,
    /// The data as JSON text, where one server would say something else.
    pub data: Option<String>,
    /// The code of the refusal.
    pub refused: Option<String>,
    /// What the request has: `user` for claims, scopes, policies behind `!`. Everything without it.
    pub granted: Option<Vec<String>>,
    /// The number that the request drew for labels of `@override`, then the active labels.
    pub draws: Option<Vec<String>>,
}

impl Corpus {
    /// Reads a folder.
    ///
    /// # Errors
    /// When a file is missing or wrong.
    pub fn read(folder: &Path) -> Result<Self, CorpusError> {
        let sdl = text(&folder.join("supergraph.graphql"))?;
        let api = schema(&folder.join("supergraph.graphql"), Schema::of_clients(&sdl))?;
        let mut subgraphs = Vec::new();
        for path in files(&folder.join("subgraphs"))? {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let sdl = text(&path)?;
            subgraphs.push(schema(&path, Subgraph::parse(&name, &sdl))?);
        }
        Ok(Self {
            name: folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            subgraphs,
            api,
            data: text(&folder.join("data.json"))?,
            cases: cases(&text(&folder.join("cases.graphql"))?)?,
            sdl,
        })
    }

    /// Reads all folders below one, by name.
    ///
    /// # Errors
    /// As [`Corpus::read`].
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, CorpusError> {
        files(folder)?
            .iter()
            .map(|folder| Self::read(folder))
            .collect()
    }

    /// The data, as at the start.
    ///
    /// # Errors
    /// When `data.json` is wrong.
    pub fn world(&self) -> Result<World, CorpusError> {
        let place = format!("{}/data.json", self.name);
        let mut world =
            World::parse(&self.data).map_err(|source| CorpusError::Json { place, source })?;
        // From clients and from every subgraph: an inaccessible object implements interfaces that
        // the clients' schema does not show.
        world.learn(&self.api);
        for subgraph in &self.subgraphs {
            world.learn(subgraph.schema());
        }
        Ok(world)
    }

    /// What clients may ask.
    #[must_use]
    pub fn api(&self) -> &Schema {
        &self.api
    }

    /// What one server that knows everything answers.
    #[must_use]
    pub fn expected(&self, world: &World, case: &Case) -> Answer {
        let server = (&self.api, world, ORACLE);
        execute::answer(
            server,
            &case.query,
            case.operation.as_deref(),
            &case.variables,
        )
    }
}

/// Entries of a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    let wrong = |source| CorpusError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        paths.push(entry.map_err(wrong)?.path());
    }
    // The file system lists them in any order; the first failure should always be the same.
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String, CorpusError> {
    fs::read_to_string(path).map_err(|source| CorpusError::Read {
        path: path.to_owned(),
        source,
    })
}

fn schema<T>(path: &Path, read: Result<T, SchemaError>) -> Result<T, CorpusError> {
    read.map_err(|source| CorpusError::Schema {
        path: path.to_owned(),
        source,
    })
}

fn cases(text: &str) -> Result<Vec<Case>, CorpusError> {
    // The text in front of the first case is a remark.
    text.split("# == ").skip(1).map(case).collect()
}

fn case(text: &str) -> Result<Case, CorpusError> {
    let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut case = Case {
        title: title.trim().to_owned(),
        ..Case::default()
    };
    let json = |source| CorpusError::Json {
        place: title.to_owned(),
        source,
    };
    let mut query = rest;
    while let Some((line, rest)) = query
        .strip_prefix("# ")
        .and_then(|rest| rest.split_once('\n'))
    {
        let bare = || Some((line.strip_suffix(':')?, ""));
        let (key, value) = line.split_once(": ").or_else(bare).unwrap_or((line, ""));
        let words = || {
            value
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        match key {
            "variables" => case.variables = serde_json::from_str(value).map_err(json)?,
            "operation" => case.operation = Some(value.to_owned()),
            "fetches" => case.fetches = Some(words()),
            "errors" => case.errors = Some(serde_json::from_str(value).map_err(json)?),
            "data" => case.data = Some(value.to_owned()),
            "refused" => case.refused = Some(value.to_owned()),
            "granted" => case.granted = Some(words()),
            "draws" => case.draws = Some(words()),
            // A mistyped key would take a check away and leave the case green.
            key if key != line => {
                return Err(CorpusError::UnknownLine {
                    title: case.title,
                    key: key.to_owned(),
                });
            }
            // A remark.
            _ => {}
        }
        query = rest;
    }
    query.trim().clone_into(&mut case.query);
    Ok(case)
}
