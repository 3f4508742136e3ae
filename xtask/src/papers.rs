//! docs/papers.md: the papers' tables and figures, made of the records of `warpfold-ladder`.
//!
//! The text is in papers/*.md, a file a section. Between double braces it asks for what is made here:
//!
//! | in braces | becomes |
//! | --- | --- |
//! | `record NAME` | where the record is, and its card, driver and command |
//! | `get RECORD.COLUMN COLUMN=VALUE ...` | the number in the one row that is meant |
//! | `ratio QUERY / QUERY` | a quotient of two such |
//! | `check QUERY < QUERY` | nothing; a sentence next to it is wrong if it does not hold, and then there is no page; a query may have a factor, `1.1 * QUERY` |
//! | `table NAME`, `figure NAME TEXT` | a table; a chart, with a description |
//! | `peak`, `limit`, `copy` | bandwidths of the card, in GB/s |

mod chart;
mod figures;
mod record;
mod tables;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use self::figures::figure;
use self::record::Records;
use self::tables::table;
use crate::workspace::Workspace;

/// What an H200 SXM's memory moves at most, in GB/s, says NVIDIA's data sheet.
const PEAK: f64 = 4800.0;

/// Records beside those of the ladder: of what a plain read and a plain copy take, of the library's scan, and of its strategies for
/// segments.
const OTHERS: [(&str, &str); 3] = [
    ("operators", "2026-11-28-operators.csv"),
    ("scan", "2026-11-28-scan.csv"),
    ("segments", "2026-11-28-segments-last-steps.csv"),
];

/// Sections, with the records without which each is left out.
const SECTIONS: [(&str, &[&str]); 14] = [
    (include_str!("papers/intro.md"), &[]),
    (include_str!("papers/timcheck.md"), &["timcheck"]),
    (include_str!("papers/keyed.md"), &["keyed", "keyed-cub"]),
    (include_str!("papers/patel.md"), &["patel"]),
    (include_str!("papers/harris.md"), &["harris"]),
    (include_str!("papers/thesis.md"), &["thesis", "thesis_chooser"]),
    (include_str!("papers/transpose.md"), &["transpose"]),
    (include_str!("papers/ordered.md"), &["ordered"]),
    (include_str!("papers/future.md"), &["future"]),
    (include_str!("papers/moderngpu.md"), &["moderngpu"]),
    (include_str!("papers/one_array.md"), &["one_array"]),
    (include_str!("papers/scans.md"), &["scans"]),
    (include_str!("papers/counts.md"), &["counts", "counts_more"]),
    (include_str!("papers/errata.md"), &[]),
];

const PAGE: &str = "docs/papers.md";
const FIGURES: &str = "docs/papers";

/// Writes the page and its charts.
pub fn run(workspace: &Workspace) -> Result<()> {
    let files = files(&workspace.root)?;
    let folder = workspace.root.join(FIGURES);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {FIGURES}"))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {FIGURES}"))?;
    for (path, text) in &files {
        fs::write(workspace.root.join(path), text).with_context(|| format!("cannot write {path}"))?;
        println!("{path}");
    }
    Ok(())
}

/// The page, then its charts: paths from the root, and texts.
fn files(root: &Path) -> Result<Vec<(String, String)>> {
    let records = Records::read(root, &OTHERS)?;
    let card = Card::of(&records)?;
    let mut page = Page { records: &records, card, text: String::new(), figures: Vec::new() };
    for (text, needed) in SECTIONS {
        if needed.iter().all(|name| records.has(name)) {
            if !page.text.is_empty() {
                page.text.push('\n');
            }
            page.fill(text).with_context(|| text.lines().next().unwrap_or_default().to_owned())?;
        }
    }
    let mut files = vec![(PAGE.to_owned(), page.text)];
    files.append(&mut page.figures);
    Ok(files)
}

/// What the card's memory can do, in GB/s.
#[derive(Clone, Copy)]
struct Card {
    /// By its data sheet.
    peak: f64,
    /// The fastest plain read of 1 GiB, as measured.
    read: f64,
    /// A copy of 1 GiB, read and write.
    copy: f64,
}

impl Card {
    fn of(records: &Records) -> Result<Card> {
        let limit = |operation: &str| -> Result<f64> {
            let query = format!(
                "other:operators.gigabytes_per_second by=limit operation={operation} length=268435456 launch=stream"
            );
            Ok(records.number(&query)?.0)
        };
        Ok(Card { peak: PEAK, read: limit("read")?, copy: limit("copy")? })
    }

    /// Cells of a rate of reading: GB/s, and what part of the peak and of the measured read that is.
    fn cells(&self, rate: f64) -> [String; 3] {
        [format!("{rate:.0}"), percent(rate / self.peak), percent(rate / self.read)]
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Microseconds, with three digits or more.
fn time(us: f64) -> String {
    if us < 9.995 {
        format!("{us:.2}")
    } else if us < 99.95 {
        format!("{us:.1}")
    } else {
        format!("{us:.0}")
    }
}

struct Page<'a> {
    records: &'a Records,
    card: Card,
    text: String,
    figures: Vec<(String, String)>,
}

impl Page<'_> {
    fn fill(&mut self, template: &str) -> Result<()> {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            let (asked, after) = after.split_once("}}").context("braces that do not close")?;
            self.text.push_str(before);
            let answer = self.answer(asked.trim()).with_context(|| format!("{{{{{asked}}}}}"))?;
            self.text.push_str(&answer);
            // A line that only checks leaves none.
            rest = after;
            if answer.is_empty() && self.text.ends_with('\n') {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
        }
        self.text.push_str(rest);
        Ok(())
    }

    fn answer(&mut self, asked: &str) -> Result<String> {
        let (word, rest) = asked.split_once(char::is_whitespace).unwrap_or((asked, ""));
        let rest = rest.trim();
        let number = |query: &str| self.records.number(query).map(|found| found.0);
        Ok(match word {
            "peak" => format!("{:.0}", self.card.peak),
            "limit" => format!("{:.0}", self.card.read),
            "copy" => format!("{:.0}", self.card.copy),
            "record" => self.record(rest)?,
            "get" => self.records.number(rest)?.1.to_owned(),
            "ratio" => {
                let (above, below) = rest.split_once(" / ").context("a ratio of two")?;
                let ratio = number(above)? / number(below)?;
                if ratio < 9.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }
            }
            "check" => {
                let (less, more) = rest.split_once(" < ").context("a comparison of two")?;
                let scaled = |text: &str| -> Result<f64> {
                    match text.split_once(" * ") {
                        Some((factor, query)) => {
                            Ok(factor.trim().parse::<f64>().context("a factor")? * number(query)?)
                        }
                        None => number(text),
                    }
                };
                let (less, more) = (scaled(less)?, scaled(more)?);
                if less >= more {
                    bail!("{less} is not less than {more}: the text around it needs another look");
                }
                String::new()
            }
            "table" => table(self.records, self.card, rest)?,
            "figure" => {
                let (name, description) = rest.split_once(char::is_whitespace).context("a description")?;
                let svg = figure(self.records, name)?.svg()?;
                self.figures.push((format!("{FIGURES}/{name}.svg"), svg));
                let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("![{description}](papers/{name}.svg)")
            }
            _ => bail!("nothing is called so"),
        })
    }

    fn record(&self, name: &str) -> Result<String> {
        let record = self.records.get(name)?;
        let file = record.path.rsplit('/').next().unwrap_or_default();
        let mut text = format!("Record: [{file}](../{}), of {}.", record.path, &file[..10]);
        for line in &record.head {
            let (key, value) = line.split_once(':').context("a comment that names nothing")?;
            text.push_str(&format!(" {}{}: {}.", key[..1].to_uppercase(), &key[1..], value.trim()));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// Nobody edits numbers by hand, and a new record makes a new page.
    #[test]
    fn the_committed_page_is_what_the_records_say() {
        let files = files(&root()).unwrap();
        for (path, text) in &files {
            let committed = fs::read_to_string(root().join(path)).unwrap_or_default();
            assert!(committed == *text, "{path} is not what the records say: run `cargo xtask papers`");
        }
        let charts = fs::read_dir(root().join(FIGURES)).unwrap().count();
        assert_eq!(charts, files.len() - 1, "a chart in {FIGURES} that the page does not have");
    }

    /// Every module that lists errata is in the page's list, and every kernel is on the page and in the simulator's tests.
    #[test]
    fn the_page_names_every_kernel_of_the_ladder() {
        let tests = fs::read_dir(root().join("gpu-kernels/tests/simulator"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let of_ladder =
            |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("ladder");
        let tests: String = tests.filter(of_ladder).map(|path| fs::read_to_string(path).unwrap()).collect();
        let errata = include_str!("papers/errata.md");
        let page: String = SECTIONS.iter().map(|section| section.0).collect();
        for entry in fs::read_dir(root().join("gpu-kernels/src/ladder")).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            let module = fs::read_to_string(&path).unwrap();
            if module.contains("//! # Errata") {
                assert!(
                    errata.contains(&format!("ladder/{file}")),
                    "the errata of {file} are not in the list"
                );
            }
            if ["mod.rs", "pass.rs"].contains(&file) {
                continue;
            }
            assert!(page.contains(&format!("ladder/{file}")), "{file} is not on the page");
            // Kernels stand at the left margin; `cta_reduce` runs as part of `reduce`.
            let kernels = module.lines().filter_map(|line| line.strip_prefix("pub unsafe fn "));
            for kernel in kernels.filter_map(|line| line.split(['<', '(']).next()) {
                assert!(page.contains(&format!("`{kernel}")), "{kernel} of {file} is not on the page");
                let runs = |line: &str| {
                    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == kernel)
                };
                assert!(
                    kernel == "cta_reduce" || tests.lines().any(runs),
                    "no test in the simulator names {kernel} of {file}"
                );
            }
        }
    }

    #[test]
    fn a_section_without_its_record_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let place = "benches/record/h200";
        fs::create_dir_all(folder.path().join(place)).unwrap();
        for entry in fs::read_dir(root().join(place)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap();
            if name != "2026-11-28-ladder-keyed-cub.csv" {
                fs::copy(&path, folder.path().join(place).join(name)).unwrap();
            }
        }
        let (whole, less) = (files(&root()).unwrap(), files(folder.path()).unwrap());
        assert_eq!(less.len(), whole.len() - 1);
        assert!(whole[0].1.contains("## Timcheck, 2017: reductions by key in a block"));
        assert!(!less[0].1.contains("reductions by key in a block"));
        assert!(less[0].1.contains("## Larsen, 2017: future work"));
    }

    #[test]
    fn a_sentence_that_does_not_hold_any_more_stops_the_page() {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("benches/record/h200");
        fs::create_dir_all(&records).unwrap();
        fs::write(records.join("2026-11-28-ladder-a.csv"), "# card: X\nn,us\n1,2.50\n2,5.00\n").unwrap();
        let records = Records::read(folder.path(), &OTHERS).unwrap();
        let card = Card { peak: 1.0, read: 1.0, copy: 1.0 };
        let fill = |template: &str| {
            let mut page = Page { records: &records, card, text: String::new(), figures: Vec::new() };
            page.fill(template).map(|()| page.text)
        };
        assert_eq!(fill("x\n{{check a.us n=1 < a.us n=2}}\ny {{get a.us n=1}}\n").unwrap(), "x\ny 2.50\n");
        assert_eq!(fill("{{ratio a.us n=2 / a.us n=1}}").unwrap(), "2.00");
        assert!(fill("{{record a}}").unwrap().ends_with("of 2026-11-28. Card: X."));
        assert!(fill("{{check a.us n=2 < a.us n=1}}").is_err());
        assert_eq!(fill("x\n{{check a.us n=2 < 2.1 * a.us n=1}}\n").unwrap(), "x\n");
        assert!(fill("{{check a.us n=2 < 1.9 * a.us n=1}}").is_err());
        assert!(fill("{{get a.us n=3}}").is_err());
        assert!(fill("{{nothing}}").is_err());
    }
}
