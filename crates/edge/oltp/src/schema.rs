//! The schema in which all tables lie. Statements name every table with it: where a server looks for a name without one is its own
//! affair, and more than one place.

use virtbench_record::DatabaseKind;

/// In a statement this stands before the name of a table, in place of its schema.
pub const PLACE: char = '@';

/// A schema: of MariaDB a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    kind: DatabaseKind,
    name: String,
}

impl Schema {
    /// The schema of this name.
    pub fn new(kind: DatabaseKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A statement with this schema before the names of tables.
    pub fn qualified(&self, text: &str) -> String {
        let quote = if self.kind == DatabaseKind::PostgreSql { "\"" } else { "`" };
        let name = self.name.replace(quote, &quote.repeat(2));
        text.replace(PLACE, &format!("{quote}{name}{quote}."))
    }

    /// Its name as a text in a statement.
    pub fn literal(&self) -> String {
        let name = self.name.replace('\'', "''");
        // Strings of MariaDB have escapes.
        let name = if self.kind == DatabaseKind::MariaDb { name.replace('\\', "\\\\") } else { name };
        format!("'{name}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_schema_whatever_that_is_called() {
        let text = "SELECT a FROM @orders, @stock";
        let postgresql = Schema::new(DatabaseKind::PostgreSql, "Cl\"erk@x");
        assert_eq!(postgresql.qualified(text), "SELECT a FROM \"Cl\"\"erk@x\".orders, \"Cl\"\"erk@x\".stock");
        let mariadb = Schema::new(DatabaseKind::MariaDb, "o'`x\\");
        assert_eq!(mariadb.qualified("@item"), "`o'``x\\`.item");
        assert_eq!(mariadb.literal(), "'o''`x\\\\'");
    }
}
