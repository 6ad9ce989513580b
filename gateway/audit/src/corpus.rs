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
//! Between that line and the operation there may be these lines:
//!
//! - `# variables: {…}`
//! - `# operation: NAME`
//! - `# fetches: a b b`: the subgraphs that receive requests, sorted
//! - `# errors: ["path.0.to", …]`: the paths of the errors, sorted
//! - `# data: {…}`: the data, if it differs from the data of the single server
//! - `# refused: CODE`
//! - `# granted: user scope !policy`: the grants of the request. Without this line it may see everything
//! - `# draws: 12.5 label`: the random number below 100 for `@override`, and the active labels

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Map, Value};

use crate::execute::{self, Answer};
use crate::schema::{Schema, SchemaError};
use crate::subgraph::Subgraph;
use crate::world::{ORACLE, World};

/// Reason why a corpus could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file contains an invalid schema.
    #[error("{path}: {source}")]
    Schema {
        /// The file with the schema.
        path: PathBuf,
        /// The error in the schema.
        source: SchemaError,
    },
    /// A line above an operation has the form `# key: value` and an unknown key.
    #[error("the case `{title}` has an unknown line `# {key}: …`")]
    UnknownLine {
        /// The title of the case.
        title: String,
        /// The unknown key.
        key: String,
    },
    /// A file or a line contains invalid JSON.
    #[error("{place}: {source}")]
    Json {
        /// The file or the line with the JSON.
        place: String,
        /// The error in the JSON.
        source: serde_json::Error,
    },
}

/// Subgraphs, their supergraph and the operations to test.
#[derive(Debug)]
pub struct Corpus {
    /// The name of the folder.
    pub name: String,
    /// The SDL text of the supergraph.
    pub sdl: String,
    /// The subgraph servers, in the order of their files.
    pub subgraphs: Vec<Subgraph>,
    /// The operations of `cases.graphql`, in order.
    pub cases: Vec<Case>,
    api: Schema,
    data: String,
}

/// One operation and its expected result.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// The behavior that the case shows.
    pub title: String,
    /// The text of the GraphQL document.
    pub query: String,
    /// The variables of the request, by name.
    pub variables: Map<String, Value>,
    /// The operation to execute. `None` if the document has one operation.
    pub operation: Option<String>,
    /// The subgraphs that must receive requests, sorted. `None` if any may.
    pub fetches: Option<Vec<String>>,
    /// The paths of the errors, sorted. `None` if they are the errors of the single server.
    pub errors: Option<Vec<String>>,
    /// The data as JSON text. `None` if it is the data of the single server.
    pub data: Option<String>,
    /// The expected code of the refusal.
    pub refused: Option<String>,
    /// The grants of the request: `user` for claims, scopes, and policies after `!`. `None` if the request
    /// may see everything.
    pub granted: Option<Vec<String>>,
    /// The random number of the request for labels of `@override`, then its active labels.
    pub draws: Option<Vec<String>>,
}

impl Corpus {
    /// Reads the corpus in a folder.
    ///
    /// # Errors
    /// If a file is missing or invalid.
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

    /// Reads the corpora in all folders below one folder, sorted by name.
    ///
    /// # Errors
    /// As [`Corpus::read`].
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, CorpusError> {
        files(folder)?
            .iter()
            .map(|folder| Self::read(folder))
            .collect()
    }

    /// The data in its initial state.
    ///
    /// # Errors
    /// If `data.json` is invalid.
    pub fn world(&self) -> Result<World, CorpusError> {
        let place = format!("{}/data.json", self.name);
        let mut world =
            World::parse(&self.data).map_err(|source| CorpusError::Json { place, source })?;
        // From the clients' schema and from every subgraph. An inaccessible object implements interfaces that
        // the clients' schema does not show.
        world.learn(&self.api);
        for subgraph in &self.subgraphs {
            world.learn(subgraph.schema());
        }
        Ok(world)
    }

    /// The schema that clients see.
    #[must_use]
    pub fn api(&self) -> &Schema {
        &self.api
    }

    /// The response of a single server with all the data.
    #[must_use]
    pub fn expected(&self, world: &World, case: &Case) -> Answer {
        execute::answer(
            &self.api,
            world,
            ORACLE,
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
    // The file system lists them in any order. Sorted, the first failure is always the same.
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
    // The text before the first case is a remark.
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
            // A mistyped key would remove a check without failing the case.
            key if key != line => {
                return Err(CorpusError::UnknownLine {
                    title: case.title,
                    key: key.to_owned(),
                });
            }
            // Other comment lines are remarks.
            _ => {}
        }
        query = rest;
    }
    query.trim().clone_into(&mut case.query);
    Ok(case)
}
