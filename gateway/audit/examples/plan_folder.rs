//! Plans made-up queries for every supergraph of a folder, and counts the queries without a plan.
//!
//! ```text
//! cargo run --release -p gateway-audit --example plan_folder -- FOLDER [QUERIES] [DUMP]
//! ```
//!
//! `DUMP` is a folder. For each supergraph it gets the queries as JSON lines with the reason of a refusal, so that
//! another planner can plan the same queries. The table on standard output has one row for each supergraph, with tabs between the columns.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use gateway_audit::{Inventor, Schema, World};
use gateway_federation::{
    Effort, OperationOptions, OperationRequest, Operations, Overrides, Stop, Supergraph,
};
use serde_json::json;

/// Number of queries for each supergraph, without another number.
const QUERIES: usize = 200;

/// The same queries in every run.
const SEED: u64 = 7;

/// Time limit of one plan. A planner without an answer by then has failed.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("expected a folder of supergraphs")?;
    let queries = arguments.next().map_or(Ok(QUERIES), |text| text.parse())?;
    let dump = arguments.next().map(PathBuf::from);
    let mut files = Vec::new();
    find(folder.as_ref(), &mut files)?;
    files.sort();
    let mut table = io::stdout().lock();
    writeln!(table, "supergraph\tqueries\tplanned\tfirst refusal")?;
    for file in files {
        let sdl = fs::read_to_string(&file)?;
        // Only composed supergraphs have this specification.
        if !sdl.contains("specs.apollo.dev/join/v0") {
            continue;
        }
        let name = file.strip_prefix(&folder)?.display().to_string();
        let (planned, row) = plan(&sdl, queries);
        writeln!(table, "{name}\t{row}")?;
        if let Some(dump) = &dump {
            let lines = planned.iter().map(|(query, refusal)| {
                json!({"query": query, "refusal": refusal}).to_string() + "\n"
            });
            fs::create_dir_all(dump)?;
            fs::write(
                dump.join(name.replace('/', "__") + ".jsonl"),
                lines.collect::<String>(),
            )?;
        }
    }
    Ok(())
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|it| it == "graphql") {
            found.push(path);
        }
    }
    Ok(())
}

/// The queries of a supergraph, each with the reason of its refusal, and its row without the name.
fn plan(sdl: &str, queries: usize) -> (Vec<(String, Option<String>)>, String) {
    let supergraph = match Supergraph::parse(sdl) {
        Ok(supergraph) => supergraph,
        Err(error) => return (Vec::new(), unused("not loaded", &error)),
    };
    let schema = match Schema::of_clients(sdl) {
        Ok(schema) => schema,
        Err(error) => return (Vec::new(), unused("no queries", &error)),
    };
    let mut world = World::default();
    world.learn(&schema);
    let mut inventor = Inventor::new(&schema, &world, SEED);
    let gateway = Operations::new(supergraph.into(), OperationOptions::default());
    let planned: Vec<_> = (0..queries)
        .map(|_| {
            let query = inventor.query().query;
            let refusal = refusal(&gateway, &query);
            (query, refusal)
        })
        .collect();
    let mut refusals = planned.iter().filter_map(|(_, refusal)| refusal.as_deref());
    let first = refusals.next().unwrap_or_default();
    let count = planned
        .iter()
        .filter(|(_, refusal)| refusal.is_none())
        .count();
    let row = format!("{queries}\t{count}\t{first}");
    (planned, row)
}

/// The row of a supergraph without queries.
fn unused(what: &str, error: &dyn std::fmt::Display) -> String {
    format!("0\t0\t{what}: {}", error.to_string().replace('\n', " "))
}

/// The reason why a query has no plan.
fn refusal(gateway: &Operations, query: &str) -> Option<String> {
    let requested = OperationRequest {
        query,
        operation_name: None,
        overrides: &Overrides::default(),
        grants: None,
    };
    let effort = Effort::full(PATIENCE, Stop::default());
    let refusal = gateway.make(&requested, &effort).err()?;
    let errors: Vec<&str> = refusal
        .errors
        .iter()
        .map(|error| error.message.as_str())
        .collect();
    let reason = refusal.reason.as_deref().unwrap_or_default();
    Some(format!("{} {reason} {query}", errors.join(", ")).replace(['\t', '\n'], " "))
}
