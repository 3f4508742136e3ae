//! Records of benches: CSV under comments that name the card, the driver and the command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, bail};

/// Where the records lie, from the root.
const FOLDER: &str = "benches/record/h200";

/// One file.
pub struct Record {
    /// Its path from the root.
    pub path: String,
    /// Its comments, without the `#`.
    pub head: Vec<String>,
    columns: Rc<[String]>,
    rows: Vec<Row>,
}

/// A line, by column.
pub struct Row {
    columns: Rc<[String]>,
    texts: Vec<String>,
}

impl Row {
    /// What a column says.
    pub fn text(&self, column: &str) -> Result<&str> {
        Ok(&self.texts[place(&self.columns, column)?])
    }

    /// The number in a column.
    pub fn number(&self, column: &str) -> Result<f64> {
        let text = self.text(column)?;
        text.parse().with_context(|| format!("column {column} says {text:?}, which is no number"))
    }
}

/// Which column is called so.
fn place(columns: &[String], name: &str) -> Result<usize> {
    columns.iter().position(|column| column == name).with_context(|| format!("no column {name}"))
}

impl Record {
    fn read(root: &Path, path: &str) -> Result<Record> {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        Record::parse(path, &text)
    }

    /// Of a file's text.
    pub fn parse(path: &str, text: &str) -> Result<Record> {
        let head = text.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim().to_owned());
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        let columns = reader.headers().with_context(|| format!("{path} has no header"))?;
        let columns: Rc<[String]> = columns.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for row in reader.records() {
            let row = row.with_context(|| format!("{path} is not CSV"))?;
            let texts = row.iter().map(str::to_owned).collect();
            rows.push(Row { columns: Rc::clone(&columns), texts });
        }
        Ok(Record { path: path.to_owned(), head: head.collect(), columns, rows })
    }

    /// The rows that have these values in these columns, in order.
    pub fn select(&self, wanted: &[(&str, &str)]) -> Result<Vec<&Row>> {
        let mut at = Vec::new();
        for (column, value) in wanted {
            at.push((place(&self.columns, column).with_context(|| self.path.clone())?, *value));
        }
        let matches = |row: &&Row| at.iter().all(|(column, value)| row.texts[*column] == *value);
        Ok(self.rows.iter().filter(matches).collect())
    }

    /// The one row that has them.
    pub fn one(&self, wanted: &[(&str, &str)]) -> Result<&Row> {
        let found = self.select(wanted)?;
        match found[..] {
            [row] => Ok(row),
            _ => bail!("{} has {} rows of {wanted:?}, where one is wanted", self.path, found.len()),
        }
    }

    /// The row with the least number in a column, if there is any.
    pub fn least(&self, column: &str, wanted: &[(&str, &str)]) -> Result<Option<&Row>> {
        let mut best: Option<(&Row, f64)> = None;
        for row in self.select(wanted)? {
            let number = row.number(column)?;
            if best.is_none_or(|(_, least)| number < least) {
                best = Some((row, number));
            }
        }
        Ok(best.map(|(row, _)| row))
    }

    /// The different values of a column, in the order in which they come first.
    pub fn values(&self, column: &str, wanted: &[(&str, &str)]) -> Result<Vec<&str>> {
        let mut values = Vec::new();
        for row in self.select(wanted)? {
            let value = row.text(column)?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Ok(values)
    }

    /// The same, if they are whole numbers, ascending.
    pub fn counts(&self, column: &str, wanted: &[(&str, &str)]) -> Result<Vec<String>> {
        let mut counts = Vec::new();
        for value in self.values(column, wanted)? {
            counts.push(value.parse::<u64>().with_context(|| format!("{value} in {column}"))?);
        }
        counts.sort_unstable();
        Ok(counts.iter().map(u64::to_string).collect())
    }
}

/// The records by name: `timcheck` is the newest `DAY-ladder-timcheck.csv`, `other:scan` one that is named with its day.
pub struct Records {
    records: BTreeMap<String, Record>,
}

impl Records {
    /// Reads those that are there: of the ladder all, of others those named, by name and file.
    pub fn read(root: &Path, others: &[(&str, &str)]) -> Result<Records> {
        let mut files = Vec::new();
        for entry in fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot read {FOLDER}"))? {
            files.push(entry?.file_name().to_string_lossy().into_owned());
        }
        // By day.
        files.sort();
        let mut records = BTreeMap::new();
        for file in files {
            let of_ladder = file.get(10..).and_then(|rest| rest.strip_prefix("-ladder-"));
            let name = match of_ladder.and_then(|rest| rest.strip_suffix(".csv")) {
                Some(section) => section.to_owned(),
                None => match others.iter().find(|other| other.1 == file) {
                    Some(other) => format!("other:{}", other.0),
                    None => continue,
                },
            };
            records.insert(name, Record::read(root, &format!("{FOLDER}/{file}"))?);
        }
        Ok(Records { records })
    }

    /// Whether there is one.
    pub fn has(&self, name: &str) -> bool {
        self.records.contains_key(name)
    }

    /// One by name.
    pub fn get(&self, name: &str) -> Result<&Record> {
        self.records.get(name).with_context(|| format!("no record {name}"))
    }

    /// The number that `record.column key=value ...` means.
    pub fn number(&self, query: &str) -> Result<(f64, &str)> {
        let mut words = query.split_whitespace();
        let place = words.next().context("an empty query")?;
        let (name, column) = place.split_once('.').with_context(|| format!("{place}: record.column"))?;
        let mut wanted = Vec::new();
        for word in words {
            wanted.push(word.split_once('=').with_context(|| format!("{word}: column=value"))?);
        }
        let row = self.get(name)?.one(&wanted)?;
        Ok((row.number(column)?, row.text(column)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_columns() {
        let record =
            Record::parse("a.csv", "# card: X\n# command: y\nkind,n,us\na,1,2.50\nb,1,3\na,2,1\n").unwrap();
        assert_eq!(record.head, ["card: X", "command: y"]);
        assert_eq!(record.one(&[("kind", "a"), ("n", "1")]).unwrap().number("us").unwrap(), 2.5);
        assert!(record.one(&[("kind", "a")]).is_err());
        assert!(record.one(&[("sort", "a")]).is_err());
        assert_eq!(record.least("us", &[("kind", "a")]).unwrap().unwrap().text("n").unwrap(), "2");
        assert!(record.least("us", &[("kind", "c")]).unwrap().is_none());
        assert_eq!(record.values("kind", &[]).unwrap(), ["a", "b"]);
        assert_eq!(record.counts("n", &[]).unwrap(), ["1", "2"]);
    }
}
