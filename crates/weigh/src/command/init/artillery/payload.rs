//! Rows of values: the CSV files of `payload`, and variables with several values.

use std::path::Path;

use serde_json::Value;

use crate::command::init::placeholders::flat;
use crate::command::init::requests::{Requests, Rows};
use crate::command::init::values::plain;

/// Maximum number of rows of a lab's data.
const ROWS_MAX: usize = 100_000;

/// Names of columns in the test, and the rows. The columns of the rows are empty.
type Named = Option<(Vec<String>, Rows)>;

/// The rows of the first readable file. Other names are added to `unknown`.
pub(super) fn rows(
    payload: Option<&Value>,
    test: &Path,
    unknown: &mut Vec<(String, String)>,
    requests: &mut Requests,
) -> Named {
    let specs = match payload {
        Some(Value::Array(specs)) => specs.as_slice(),
        Some(single @ Value::Object(_)) => std::slice::from_ref(single),
        _ => return None,
    };
    let mut found: Named = None;
    for spec in specs {
        let path = spec.get("path").map(plain).unwrap_or_default();
        let fields = spec.get("fields").and_then(Value::as_array);
        let fields: Vec<String> = fields.into_iter().flatten().map(plain).collect();
        let read = match &found {
            Some(_) => Err("a lab has one file of rows, and another comes first".to_owned()),
            None => file(spec, &test.with_file_name(""), &path, &fields),
        };
        match read {
            Ok(rows) => found = Some((fields, rows)),
            Err(why) => {
                for field in fields {
                    unknown.push((
                        field.clone(),
                        format!("`{field}` comes from `{path}`: {why}"),
                    ));
                }
                requests.leave_out(&format!("config.payload {path}"), &why);
            }
        }
    }
    found
}

fn file(spec: &Value, folder: &Path, path: &str, fields: &[String]) -> Result<Rows, String> {
    let is_on = |key: &str| spec.get(key) == Some(&Value::Bool(true));
    if is_on("loadAll") || fields.is_empty() {
        return Err("it has no `fields`".to_owned());
    }
    let delimiter = spec.get("delimiter").map(plain).unwrap_or_default();
    let delimiter = delimiter.bytes().next().unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(is_on("skipHeader"))
        .delimiter(delimiter)
        .flexible(true)
        .from_path(folder.join(path))
        .map_err(|error| format!("it cannot be read: {error}"))?;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("it is no CSV: {error}"))?;
        if rows.len() == ROWS_MAX {
            return Err(format!("it has more than {ROWS_MAX} rows"));
        }
        if record.len() < fields.len() {
            let row = rows.len() + 1;
            return Err(format!(
                "row {row} has fewer values than there are `fields`"
            ));
        }
        let values = record.iter().take(fields.len()).map(str::to_owned);
        rows.push(values.collect());
    }
    if rows.is_empty() {
        return Err("it has no rows".to_owned());
    }
    let order = spec.get("order").map(plain).unwrap_or_default();
    Ok(Rows {
        columns: Vec::new(),
        rows,
        is_random: order != "sequence",
    })
}

/// Adds a variable with several values. One value is drawn. With other columns, each combination becomes a
/// row.
pub(super) fn add_drawn(name: &str, values: &[Value], rows: &mut Named) -> Result<(), String> {
    let (names, known) = rows.get_or_insert_with(|| {
        let one = Rows {
            columns: Vec::new(),
            rows: vec![Vec::new()],
            is_random: true,
        };
        (Vec::new(), one)
    });
    if !known.is_random {
        return Err("its values are drawn, but those of `payload` come in sequence".to_owned());
    }
    if known.rows.len().saturating_mul(values.len()) > ROWS_MAX {
        return Err(format!("the combinations are more than {ROWS_MAX} rows"));
    }
    let combined = known.rows.iter().flat_map(|row| {
        values.iter().map(move |value| {
            let mut row = row.clone();
            row.push(flat(value));
            row
        })
    });
    known.rows = combined.collect();
    names.push(name.to_owned());
    Ok(())
}
