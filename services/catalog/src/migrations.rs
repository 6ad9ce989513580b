//! The migrations that create the tables, in order. A released migration never changes.

/// One migration. Its number is its position, from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) postgres: &'static str,
    pub(crate) sqlite: &'static str,
}

/// All migrations, in order.
pub(crate) const ALL: [Migration; 2] = [
    Migration {
        name: "tables",
        postgres: include_str!("../migrations/postgres/1_tables.sql"),
        sqlite: include_str!("../migrations/sqlite/1_tables.sql"),
    },
    Migration {
        name: "seed",
        postgres: include_str!("../migrations/postgres/2_seed.sql"),
        sqlite: include_str!("../migrations/sqlite/2_seed.sql"),
    },
];

/// Creates the table that records the migrations of a database.
pub(crate) const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS catalog_migration (number integer PRIMARY KEY, name text NOT NULL)";

/// Reads the number of migrations of a database.
pub(crate) const COUNT: &str = "SELECT COALESCE(MAX(number), 0) FROM catalog_migration";

/// Records a migration in the database.
pub(crate) const RECORD: &str = "INSERT INTO catalog_migration (number, name) VALUES ($1, $2)";

/// The database has more migrations than this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has had {found} migrations, and this program knows {}; use a newer program or another database",
    ALL.len()
)]
pub(crate) struct TooNew {
    found: i32,
}

/// The migrations that a database still needs, with their numbers.
pub(crate) fn missing(had: i32) -> Result<impl Iterator<Item = (i32, Migration)>, TooNew> {
    let known = i32::try_from(ALL.len()).expect("the migrations of this program fit into 32 bits");
    if had > known {
        return Err(TooNew { found: had });
    }
    // `RECORD` never writes a negative number. With one, all migrations would run and fail on their own
    // tables.
    let had_count = usize::try_from(had).unwrap_or(0);
    Ok((1..).zip(ALL).skip(had_count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_gets_what_it_lacks_in_order() {
        let names = |had| -> Result<Vec<_>, TooNew> {
            Ok(missing(had)?
                .map(|(number, it)| (number, it.name))
                .collect())
        };
        assert_eq!(names(0), Ok(vec![(1, "tables"), (2, "seed")]));
        assert_eq!(names(1), Ok(vec![(2, "seed")]));
        assert_eq!(names(2), Ok(vec![]));
        assert_eq!(names(3), Err(TooNew { found: 3 }));
    }
}
