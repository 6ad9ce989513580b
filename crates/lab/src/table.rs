//! Rows of values for requests: CSV with a header row, or JSON lines.

use serde_json::{Map, Value};

/// Names of columns, and rows with a value for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The columns' names, in the order of the file.
    pub columns: Vec<String>,
    /// At least one row, each with as many values as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads the content of a file. Its first character separates JSON lines from CSV.
    ///
    /// # Errors
    /// If it has no rows, or rows with other columns than the first.
    pub fn read(bytes: &[u8]) -> Result<Table, String> {
        let table = match bytes.trim_ascii_start().first() {
            Some(b'{') => json_lines(bytes),
            _ => csv(bytes),
        }?;
        if table.rows.is_empty() {
            return Err(
                "expected a header row and rows of values, or JSON lines, found no row".to_owned(),
            );
        }
        Ok(table)
    }
}

/// True if JSON writes a value of this text without quotes.
pub(crate) fn is_bare(text: &str) -> bool {
    let value: Result<Value, _> = serde_json::from_str(text);
    matches!(value, Ok(Value::Number(_) | Value::Bool(_)))
}

fn csv(bytes: &[u8]) -> Result<Table, String> {
    let mut reader = csv::ReaderBuilder::new()
        // Names are words in templates, so spaces around them do not count. Values are data and stay
        // unchanged.
        .trim(csv::Trim::Headers)
        .from_reader(bytes);
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let columns = reader
        .headers()
        .map(texts)
        .map_err(|error| error.to_string())?;
    let rows = reader
        .records()
        .map(|record| record.as_ref().map(texts).map_err(ToString::to_string))
        .collect::<Result<_, _>>()?;
    Ok(Table { columns, rows })
}

fn json_lines(bytes: &[u8]) -> Result<Table, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut table = Table::default();
    for (number, line) in (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let members: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        // The first line replaces a header row: all other lines must have the same members.
        if table.rows.is_empty() {
            table.columns = members.keys().cloned().collect();
        }
        if let Some(name) = members.keys().find(|name| !table.columns.contains(*name)) {
            return Err(format!("line {number}: the first line has no `{name}`"));
        }
        let row = table
            .columns
            .iter()
            .map(|column| match members.get(column) {
                Some(Value::String(text)) => Ok(text.clone()),
                Some(value) => Ok(value.to_string()),
                None => Err(format!(
                    "line {number}: expected `{column}`, as in the first line"
                )),
            });
        let row = row.collect::<Result<_, _>>()?;
        table.rows.push(row);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: &[&str], rows: &[&[&str]]) -> Table {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Table {
            columns: texts(columns),
            rows: rows.iter().map(|row| texts(row)).collect(),
        }
    }

    #[test]
    fn csv_and_json_lines_mean_the_same() {
        let expected = table(&["id", "name"], &[&["1", "a, b"], &["2", ""]]);
        assert_eq!(csv(b"id, name\n1,\"a, b\"\n2,\n").as_ref(), Ok(&expected));
        let lines = b"{\"id\":1,\"name\":\"a, b\"}\n\n{\"name\":\"\",\"id\":2}\n";
        assert_eq!(json_lines(lines), Ok(expected));
    }

    #[test]
    fn rows_of_other_columns_are_refused_with_their_line() {
        for (lines, words) in [
            ("{\"a\":1}\n{\"b\":1}", "line 2: the first line has no `b`"),
            ("{\"a\":1,\"b\":2}\n{\"a\":1}", "line 2: expected `b`"),
            ("{\"a\":1}\n7", "line 2: "),
        ] {
            let error = json_lines(lines.as_bytes()).unwrap_err();
            assert!(error.contains(words), "{lines}: {error}");
        }
        let error = csv(b"a,b\n1,2\n3\n").unwrap_err();
        assert!(error.contains("line: 3"), "{error}");
    }
}
