//! `warpfold ops`: the table of operators, as text, as JSON or as the page `docs/operators.md`.

use std::fmt::Write;

use serde::{Serialize, Serializer};

use crate::args::Ops;
use crate::error::Error;
use crate::input::Dtype;
use crate::ops::{Operator, TABLE, class_names};
use crate::output::json_line;

/// One operator, in the order in which JSON gives it.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    meaning: &'static str,
    /// The types that it takes, and the result's for each.
    types: Types,
    rules: Rules,
}

#[derive(Serialize)]
struct Rules {
    arithmetic: &'static str,
    nan: &'static str,
    ties: Option<&'static str>,
    nothing: &'static str,
}

/// Types of elements and of results.
struct Types(Vec<(&'static str, String)>);

impl Serialize for Types {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(taken, given)| (taken, given)))
    }
}

/// The operators in the form asked for.
pub fn report(args: &Ops) -> Result<String, Error> {
    if args.json {
        json_line(&TABLE.iter().map(entry).collect::<Vec<_>>())
    } else if args.markdown {
        Ok(markdown())
    } else {
        Ok(text())
    }
}

fn entry(operator: &Operator) -> Entry {
    let &Operator { name, meaning, arithmetic, nan, ties, nothing, .. } = operator;
    let types = Dtype::ALL
        .into_iter()
        .filter_map(|dtype| Some((dtype.name(), operator.gives(dtype)?.of(dtype))))
        .collect();
    Entry { name, meaning, types: Types(types), rules: Rules { arithmetic, nan, ties, nothing } }
}

/// What an operator takes and gives, a pair for each group of types.
fn signatures(operator: &Operator) -> Vec<(String, &'static str)> {
    operator
        .groups()
        .into_iter()
        .map(|(classes, gives)| (class_names(&classes), gives.of_class(classes[0])))
        .collect()
}

/// Lines of at most this many characters.
const WIDTH: usize = 100;

/// Appends words to the last line of a text, breaking it where it gets too long, and ends it.
fn wrap(text: &mut String, indent: usize, words: &str) {
    let mut column = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
    let mut first = true;
    for word in words.split_whitespace() {
        if !first && column + 1 + word.len() > WIDTH {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if !first {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
        first = false;
    }
    text.push('\n');
}

fn text() -> String {
    const INDENT: usize = 14;
    let mut text = String::new();
    for operator in &TABLE {
        let &Operator { name, meaning, arithmetic, nan, ties, nothing, .. } = operator;
        let types: Vec<String> =
            signatures(operator).into_iter().map(|(taken, given)| format!("{taken} -> {given}")).collect();
        // Writing to a String cannot fail.
        let _ = write!(text, "{name:INDENT$}");
        wrap(&mut text, INDENT, meaning);
        for (rule, words) in
            [("types", types.join("; ").as_str()), ("arithmetic", arithmetic), ("a NaN", nan)]
                .into_iter()
                .chain(ties.map(|ties| ("of ties", ties)))
                .chain([("of nothing", nothing)])
        {
            let _ = write!(text, "  {rule:0$}", INDENT - 2);
            wrap(&mut text, INDENT, words);
        }
        text.push('\n');
    }
    text.push_str("A NaN is ignored with --nan ignore. null means that there is no result.\n");
    text
}

fn markdown() -> String {
    let mut text = String::from(
        "# Operators of the command\n\n\
         Written by `warpfold ops --markdown`; a test holds the two equal. `null` is JSON for no result. \"Ignored\" is what\n\
         a NaN is with `--nan ignore`. How sums and the other floats' results are kept exact is in\n\
         [numerics.md](numerics.md).\n\n\
         | name | meaning | types | result |\n| --- | --- | --- | --- |\n",
    );
    for operator in &TABLE {
        let (mut name, mut meaning) = (format!("`{}`", operator.name), operator.meaning);
        for (taken, given) in signatures(operator) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {name} | {meaning} | {taken} | {given} |");
            (name, meaning) = (String::new(), "");
        }
    }
    text.push_str("\n| name | arithmetic | a NaN | of nothing |\n| --- | --- | --- | --- |\n");
    for operator in &TABLE {
        let &Operator { name, arithmetic, nan, ties, nothing, .. } = operator;
        let ties = ties.map(|ties| format!("; of ties: {ties}")).unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {arithmetic}{ties} | {nan} | {nothing} |");
    }
    text
}
