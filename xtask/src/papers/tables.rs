//! The tables of the page, by name.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::record::{Record, Records};
use super::{Card, percent, time};

/// A table by its name.
pub fn table(records: &Records, card: Card, name: &str) -> Result<String> {
    let get = |record: &str| records.get(record);
    Ok(match name {
        "timcheck-l2" => timcheck(get("timcheck")?, "l2")?,
        "timcheck-dram" => timcheck(get("timcheck")?, "dram")?,
        "keyed" => keyed(get("keyed")?, get("keyed-cub")?)?,
        "patel" => patel(get("patel")?, card)?,
        "harris" => harris(get("harris")?, card)?,
        "harris-small" => harris_small(get("harris")?)?,
        "moderngpu" => moderngpu(get("moderngpu")?, card)?,
        "moderngpu-groups" => groups(get("moderngpu")?)?,
        "one-array" => one_array(get("one_array")?)?,
        "one-array-rates" => one_array_rates(get("one_array")?, card)?,
        "scans" => scans(get("scans")?, get("other:scan")?, card)?,
        "counts-more" => counts_more(get("counts_more")?)?,
        "thesis-20" => segments(get("thesis")?, "20", card)?,
        "thesis-26" => segments(get("thesis")?, "26", card)?,
        "thesis-left-out" => left_out(get("thesis")?)?,
        "thesis-tail" => tail(get("thesis")?)?,
        "thesis-groups" => group_sizes(get("thesis")?)?,
        "thesis-combine" => combine(get("thesis")?)?,
        "thesis-chooser" => chooser(get("thesis_chooser")?, get("other:segments")?)?,
        "transpose" => transpose(get("transpose")?, card)?,
        "ordered" => ordered(get("ordered")?, card)?,
        "future-small" => future_small(get("future")?)?,
        "future-parts" => future_parts(get("future")?)?,
        "future-vectors" => vectors(get("future")?, card)?,
        _ => bail!("no table {name}"),
    })
}

/// A header and rows.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(columns: &[&str]) -> Table {
        Table { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.to_vec());
    }

    /// Markdown, numbers to the right.
    fn text(self) -> String {
        let is_number = |cell: &str| {
            let cell = cell.trim_start_matches('*');
            cell == "-" || cell.starts_with(|first: char| first.is_ascii_digit())
        };
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let sides = (0..self.columns.len()).map(|column| {
            let right = self.rows.iter().all(|row| is_number(&row[column]));
            if right { " ---: |" } else { " --- |" }
        });
        let mut lines = vec![line(&self.columns), format!("|{}", sides.collect::<String>())];
        lines.extend(self.rows.iter().map(|row| line(row)));
        lines.join("\n")
    }
}

/// GB/s of so many items of so many bytes.
pub fn rate(log2_n: &str, bytes: f64, us: f64) -> Result<f64> {
    Ok(log2_n.parse::<f64>().context("a logarithm")?.exp2() * bytes / us / 1e3)
}

fn columns<'a>(first: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    first.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

fn timcheck(record: &Record, memory: &str) -> Result<String> {
    let threads = record.counts("threads", &[])?;
    let mut table = Table::new(&columns(&["kernel"], &threads));
    for kernel in record.values("kernel", &[("memory", memory)])? {
        let mut cells = vec![format!("`{kernel}`")];
        for count in &threads {
            let row = record.one(&[("kernel", kernel), ("memory", memory), ("threads", count)])?;
            cells.push(format!("{} ({})", row.text("cycles")?, row.text("speedup")?));
        }
        table.row(&cells);
    }
    Ok(table.text())
}

fn keyed(ours: &Record, cub: &Record) -> Result<String> {
    let threads = ours.counts("threads", &[])?;
    let mut names = Vec::new();
    for keys in ["16 keys", "one key"] {
        names.extend(threads.iter().map(|count| format!("{keys}, {count}")));
    }
    let mut table = Table::new(&columns(&["kernel"], &names));
    for record in [ours, cub] {
        for kernel in record.values("kernel", &[])? {
            let mut cells = vec![format!("`{kernel}`")];
            for keys in ["uniform", "one"] {
                for count in &threads {
                    let row = record.one(&[("kernel", kernel), ("keys", keys), ("threads", count)])?;
                    cells.push(row.text("cycles")?.to_owned());
                }
            }
            table.row(&cells);
        }
    }
    Ok(table.text())
}

fn patel(record: &Record, card: Card) -> Result<String> {
    let threads = record.counts("threads", &[])?;
    let mut names: Vec<String> = threads.iter().map(|count| format!("us, {count}")).collect();
    names.extend(["GB/s, first launch, best", "of peak", "of the measured read"].map(str::to_owned));
    let mut table = Table::new(&columns(&["version", "form"], &names));
    for version in record.values("version", &[])? {
        for form in record.values("form", &[])? {
            let wanted = [("version", version), ("form", form)];
            let mut cells = vec![version.replace("version", ""), form.to_owned()];
            for count in &threads {
                let row = record.one(&[wanted[0], wanted[1], ("threads", count)])?;
                cells.push(time(row.number("whole_us")?));
            }
            let best = record.least("first_us", &wanted)?.context("no row")?;
            cells.extend(card.cells(best.number("first_gbps")?));
            table.row(&cells);
        }
    }
    Ok(table.text())
}

fn harris(record: &Record, card: Card) -> Result<String> {
    let mut table =
        Table::new(&["elements a thread", "blocks", "us", "GB/s", "of peak", "of the measured read"]);
    for row in record.select(&[("log2_n", "25")])? {
        let us = row.number("us")?;
        let mut cells = vec![row.text("elements")?.to_owned(), row.text("blocks")?.to_owned(), time(us)];
        cells.extend(card.cells(rate("25", 4.0, us)?));
        table.row(&cells);
    }
    Ok(table.text())
}

/// Elements of a thread, over the threads of a block.
fn harris_small(record: &Record) -> Result<String> {
    let sizes = ["10", "20"];
    let mut grid = Vec::new();
    for size in sizes {
        grid.extend(
            record.counts("threads", &[("log2_n", size)])?.into_iter().map(|threads| (size, threads)),
        );
    }
    let names: Vec<String> = grid.iter().map(|(size, threads)| format!("2^{size}, {threads}")).collect();
    let mut table = Table::new(&columns(&["elements a thread"], &names));
    for elements in record.counts("elements", &[("log2_n", "20")])? {
        let mut cells = vec![elements.clone()];
        for (size, threads) in &grid {
            let wanted = [("log2_n", *size), ("threads", threads), ("elements", &elements)];
            cells.push(match record.select(&wanted)?.first() {
                Some(row) => time(row.number("us")?),
                None => "-".to_owned(),
            });
        }
        table.row(&cells);
    }
    Ok(table.text())
}

fn moderngpu(record: &Record, card: Card) -> Result<String> {
    let forms = [
        ("ascending", "128x7"),
        ("ascending", "128x8"),
        ("ascending", "128x9"),
        ("ascending", "128x11"),
        ("descending", "128x8"),
        ("fused", "128x8"),
        ("redux", "128x8"),
    ];
    let name = |(how, shape): &(&str, &str)| match *how {
        "ascending" => (*shape).to_owned(),
        _ => format!("{shape}, {how}"),
    };
    let names: Vec<String> = forms.iter().map(name).collect();
    let more = ["GB/s, best", "of peak", "of the measured read"].map(str::to_owned);
    let names = [&names[..], &more[..]].concat();
    let mut table = Table::new(&columns(&["items"], &names));
    for size in record.counts("log2_n", &[("part", "array")])? {
        let mut cells = vec![format!("2^{size}")];
        for (how, shape) in forms {
            let row =
                record.one(&[("part", "array"), ("shuffles", how), ("shape", shape), ("log2_n", &size)])?;
            cells.push(time(row.number("time")?));
        }
        let best = record.least("time", &[("part", "array"), ("log2_n", &size)])?.context("no row")?;
        cells.extend(card.cells(rate(&size, 4.0, best.number("time")?)?));
        table.row(&cells);
    }
    Ok(table.text())
}

fn groups(record: &Record) -> Result<String> {
    let hows = ["ascending", "descending", "fused", "redux"];
    let names: Vec<String> = ["one warp", "all warps"]
        .iter()
        .flat_map(|part| hows.iter().map(move |how| format!("{part}: {how}")))
        .collect();
    let mut table = Table::new(&columns(&["lanes, of which with a value"], &names));
    for shape in record.values("shape", &[("part", "one_warp")])? {
        let mut cells = vec![shape.replace('/', ", ")];
        for part in ["one_warp", "all_warps"] {
            for how in hows {
                let rows = record.select(&[("part", part), ("shuffles", how), ("shape", shape)])?;
                cells.push(match rows.first() {
                    Some(row) => format!("{:.1}", row.number("time")?),
                    None => "-".to_owned(),
                });
            }
        }
        table.row(&cells);
    }
    Ok(table.text())
}

const ARRAY_STRATEGIES: [&str; 7] = [
    "last_block_wave",
    "two_launches_wave",
    "recursive",
    "atomics_wave",
    "last_block_one",
    "two_launches_one",
    "atomics_one",
];

fn one_array(record: &Record) -> Result<String> {
    let names = ARRAY_STRATEGIES.map(|name| name.replace('_', " "));
    let mut table = Table::new(&columns(&["items"], &names));
    for size in record.counts("log2_n", &[])? {
        let mut cells = vec![format!("2^{size}")];
        for strategy in ARRAY_STRATEGIES {
            let rows = record.select(&[("strategy", strategy), ("type", "f32"), ("log2_n", &size)])?;
            cells.push(match rows.first() {
                Some(row) => time(row.number("us")?),
                None => "-".to_owned(),
            });
        }
        table.row(&cells);
    }
    Ok(table.text())
}

fn one_array_rates(record: &Record, card: Card) -> Result<String> {
    let mut table =
        Table::new(&["strategy, 2^28 items", "type", "us", "GB/s", "of peak", "of the measured read"]);
    for strategy in ARRAY_STRATEGIES {
        for item in ["i32", "f32"] {
            let us = record.one(&[("strategy", strategy), ("type", item), ("log2_n", "28")])?.number("us")?;
            let mut cells = vec![format!("`{strategy}`"), item.to_owned(), time(us)];
            cells.extend(card.cells(rate("28", 4.0, us)?));
            table.row(&cells);
        }
    }
    Ok(table.text())
}

fn scans(record: &Record, library: &Record, card: Card) -> Result<String> {
    let sizes = record.counts("log2_n", &[])?;
    let mut names: Vec<String> = sizes.iter().map(|size| format!("us, 2^{size}")).collect();
    names.extend(["useful GB/s, 2^26", "of peak", "of the measured copy"].map(str::to_owned));
    let mut table = Table::new(&columns(&["form"], &names));
    let rates = |us: f64| -> Result<[String; 3]> {
        let rate = rate("26", 8.0, us)?;
        Ok([format!("{rate:.0}"), percent(rate / card.peak), percent(rate / card.copy)])
    };
    for form in record.values("form", &[])? {
        let mut cells = vec![format!("`{form}`")];
        let mut last = 0.0;
        for size in &sizes {
            last = record.one(&[("form", form), ("log2_n", size)])?.number("stream_us")?;
            cells.push(time(last));
        }
        cells.extend(rates(last)?);
        table.row(&cells);
    }
    let mut cells = vec!["one pass with look-back (the library's)".to_owned()];
    let mut last = 0.0;
    for size in &sizes {
        let rows = library.select(&[("section", "types"), ("operation", "sum_i32"), ("log2_n", size)])?;
        cells.push(match rows.first() {
            Some(row) => {
                last = row.number("stream_us")?;
                time(last)
            }
            None => "-".to_owned(),
        });
    }
    cells.extend(rates(last)?);
    table.row(&cells);
    Ok(table.text())
}

fn counts_more(record: &Record) -> Result<String> {
    let mut table = Table::new(&[
        "kernel",
        "bank conflicts: card",
        "by its description",
        "branches that diverge",
        "lanes at work, of 32",
        "sectors a load",
        "sectors a store",
    ]);
    for kernel in record.values("kernel", &[])? {
        let row = |count| record.one(&[("kernel", kernel), ("count", count)]);
        let card = |count| row(count)?.number("ncu");
        table.row(&[
            format!("`{}`", kernel.split("__").last().unwrap_or_default()),
            row("bank_conflicts")?.text("ncu")?.to_owned(),
            row("bank_conflicts")?.text("expected")?.to_owned(),
            row("divergent_branches")?.text("ncu")?.to_owned(),
            format!("{:.1}", card("lanes_an_instruction_on")?),
            format!("{:.1}", card("sectors_loaded")? / card("global_loads")?),
            format!("{:.1}", card("sectors_stored")? / card("global_stores")?),
        ]);
    }
    Ok(table.text())
}

/// A table for each operator, folded away.
fn segments(record: &Record, size: &str, card: Card) -> Result<String> {
    let strategies = ["large", "large_chunk_1", "small", "loop_in_map", "scan"];
    let names = strategies.map(|name| format!("`{name}`"));
    let more = ["best, GB/s", "of peak", "of the measured read"].map(str::to_owned);
    let names = [&names[..], &more[..]].concat();
    let mut texts = Vec::new();
    for op in ["sum", "ordered", "mss"] {
        let mut table = Table::new(&columns(&["segments"], &names));
        let wanted = [("table", "segments"), ("log2_n", size), ("op", op)];
        for m in record.counts("log2_m", &wanted)? {
            let wanted = [&wanted[..], &[("log2_m", m.as_str())]].concat();
            let best = record.least("final_us", &wanted)?.context("no row")?;
            let mut cells = vec![format!("2^{m}")];
            for strategy in strategies {
                let wanted = [&wanted[..], &[("strategy", strategy)]].concat();
                cells.push(match record.least("final_us", &wanted)? {
                    Some(row) => {
                        // In one piece.
                        let text = format!("{}\u{a0}({})", time(row.number("final_us")?), row.text("group")?);
                        if std::ptr::eq(row, best) { format!("**{text}**") } else { text }
                    }
                    None => "-".to_owned(),
                });
            }
            cells.extend(card.cells(rate(size, 4.0, best.number("final_us")?)?));
            table.row(&cells);
        }
        let name = format!("<code>{op}</code>, 2^{size} items, every number of segments");
        texts.push(format!("<details>\n<summary>{name}</summary>\n\n{}\n\n</details>", table.text()));
    }
    Ok(texts.join("\n\n"))
}

/// What was not called, since it takes too long.
fn left_out(record: &Record) -> Result<String> {
    let mut table = Table::new(&["operator", "items", "segments", "strategy", "estimated seconds"]);
    for row in record.select(&[("table", "left_out")])? {
        table.row(&[
            row.text("op")?.to_owned(),
            format!("2^{}", row.text("log2_n")?),
            format!("2^{}", row.text("log2_m")?),
            format!("`{}`", row.text("strategy")?),
            format!("{:.1}", row.number("final_us")? / 1e6),
        ]);
    }
    Ok(table.text())
}

/// The first step alone with as many groups as the card holds at once, and with one more; the same of twice as many.
fn tail(record: &Record) -> Result<String> {
    let mut table = Table::new(&[
        "operator",
        "items",
        "group",
        "groups held at once",
        "us, so many",
        "us, one more",
        "times as long",
        "us, twice as many",
        "us, one more",
        "times as long",
    ]);
    for op in ["sum", "ordered", "mss"] {
        for size in record.counts("log2_n", &[("table", "chunks")])? {
            for group in record.counts("group", &[("table", "chunks")])? {
                let wanted =
                    [("table", "chunks"), ("op", op), ("log2_n", size.as_str()), ("group", group.as_str())];
                // Where the card holds more than there are items for, there is nothing to see.
                let Some(held) = record.select(&wanted)?.get(3).copied() else { continue };
                let held = held.text("groups")?.parse::<u64>()?;
                let mut cells = vec![op.to_owned(), format!("2^{size}"), group.clone(), held.to_string()];
                for count in [held, 2 * held] {
                    let us = |groups: u64| -> Result<f64> {
                        let groups = groups.to_string();
                        let row = record.one(&[&wanted[..], &[("groups", groups.as_str())]].concat())?;
                        row.number("raw_us")
                    };
                    let (just, above) = (us(count)?, us(count + 1)?);
                    cells.extend([time(just), time(above), format!("{:.2}", above / just)]);
                }
                table.row(&cells);
            }
        }
    }
    Ok(table.text())
}

/// How much longer each group size takes than the best one, over all numbers of segments that all four sizes can take.
fn group_sizes(record: &Record) -> Result<String> {
    let groups = record.counts("group", &[])?;
    let mut table = Table::new(&columns(&["operator", "items", "strategy"], &groups));
    for op in ["sum", "ordered", "mss"] {
        for size in record.counts("log2_n", &[])? {
            for strategy in ["large", "large_chunk_1", "small", "loop_in_map", "scan"] {
                let wanted =
                    [("table", "segments"), ("op", op), ("log2_n", size.as_str()), ("strategy", strategy)];
                let mut logarithms: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
                for m in record.counts("log2_m", &wanted)? {
                    let rows = record.select(&[&wanted[..], &[("log2_m", m.as_str())]].concat())?;
                    if rows.len() < groups.len() {
                        continue;
                    }
                    let times = rows.iter().map(|row| row.number("final_us")).collect::<Result<Vec<_>>>()?;
                    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
                    for (row, us) in rows.iter().zip(&times) {
                        logarithms.entry(row.text("group")?).or_default().push((us / best).ln());
                    }
                }
                let mut cells = vec![op.to_owned(), format!("2^{size}"), format!("`{strategy}`")];
                for group in &groups {
                    let values = logarithms.get(group.as_str()).context("no row")?;
                    let mean = (values.iter().sum::<f64>() / values.len() as f64).exp();
                    cells.push(format!("{mean:.2}"));
                }
                table.row(&cells);
            }
        }
    }
    Ok(table.text())
}

/// One segment, by how a group's values are combined.
fn combine(record: &Record) -> Result<String> {
    let strategies = ["large", "large_interleaved", "large_compact", "large_shuffles"];
    let names = strategies.map(|name| format!("`{name}`"));
    let mut table = Table::new(&columns(&["operator", "items", "group", "items of a thread"], &names));
    for op in record.values("op", &[("table", "combine")])? {
        for size in record.counts("log2_n", &[("table", "combine"), ("op", op)])? {
            for group in record.counts("group", &[])? {
                let wanted =
                    [("table", "combine"), ("op", op), ("log2_n", size.as_str()), ("group", group.as_str())];
                for groups in record.counts("groups", &wanted)? {
                    let wanted = [&wanted[..], &[("groups", groups.as_str())]].concat();
                    let chunks = record.counts("chunk", &wanted)?;
                    let mut cells =
                        vec![op.to_owned(), format!("2^{size}"), group.clone(), chunks.join(", ")];
                    for strategy in strategies {
                        let row = record.one(&[&wanted[..], &[("strategy", strategy)]].concat())?;
                        cells.push(time(row.number("raw_us")?));
                    }
                    table.row(&cells);
                }
            }
        }
    }
    Ok(table.text())
}

fn chooser(record: &Record, library: &Record) -> Result<String> {
    let mut table = Table::new(&[
        "operator",
        "items",
        "thresholds",
        "a thread a segment from",
        "several segments a group up to",
        "mean",
        "worst",
    ]);
    for row in record.select(&[])? {
        let text = |column: &str| row.text(column).map(str::to_owned);
        table.row(&[
            text("op")?,
            format!("2^{}", text("log2_n")?),
            text("thresholds")?,
            text("many")?,
            text("short")?,
            text("mean")?,
            text("worst")?,
        ]);
    }
    let (shapes, mean, worst) = library_chooser(library)?;
    let cells = ["`f32` sum", "about 2^26", "the library's choice", "-", "-"].map(str::to_owned);
    let more = [format!("{mean:.3}"), format!("{worst:.3}")];
    table.row(&[&cells[..], &more[..]].concat());
    Ok(format!("{}\n\nThe last line is over {shapes} shapes.", table.text()))
}

/// How many shapes the library's chooser was held against all its strategies over, and how much longer its choice took than the best:
/// the mean (geometric) and the worst. The fourth step of that record is of the kernels as they are.
fn library_chooser(record: &Record) -> Result<(usize, f64, f64)> {
    let (mut shapes, mut logarithms, mut worst) = (0, 0.0, 1.0_f64);
    for section in ["rows", "odd"] {
        let wanted = [("step", "4"), ("operation", "sum_f32"), ("section", section), ("how", "chosen")];
        for chosen in record.select(&wanted)? {
            let shape = [("segments", chosen.text("segments")?), ("length", chosen.text("length")?)];
            let forced = [&wanted[..3], &[("how", "forced")], &shape].concat();
            let best = record.least("stream_us", &forced)?.context("no strategy was forced")?;
            let chosen = chosen.number("stream_us")?;
            let quotient = chosen / best.number("stream_us")?.min(chosen);
            (shapes, logarithms, worst) = (shapes + 1, logarithms + quotient.ln(), worst.max(quotient));
        }
    }
    Ok((shapes, (logarithms / shapes as f64).exp(), worst))
}

fn transpose(record: &Record, card: Card) -> Result<String> {
    let mut table = Table::new(&[
        "tile",
        "form",
        "shapes",
        "GB/s, slowest",
        "GB/s, fastest",
        "fastest of peak",
        "of the measured copy",
    ]);
    for tile in ["16", "32", "32_by_4"] {
        for kind in record.values("kind", &[("table", "all"), ("tile", tile)])? {
            let rows = record.select(&[("table", "all"), ("tile", tile), ("kind", kind)])?;
            let rates = rows.iter().map(|row| row.number("gbps")).collect::<Result<Vec<_>>>()?;
            let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let fastest = rates.iter().copied().fold(0.0, f64::max);
            table.row(&[
                tile.replace("_by_", ", a thread "),
                kind.to_owned(),
                rows.len().to_string(),
                format!("{slowest:.0}"),
                format!("{fastest:.0}"),
                percent(fastest / card.peak),
                percent(fastest / card.copy),
            ]);
        }
    }
    Ok(table.text())
}

fn ordered(record: &Record, card: Card) -> Result<String> {
    let mut table = Table::new(&[
        "operator",
        "way",
        "us, 2^20 (group, items)",
        "us, 2^26 (group, items)",
        "GB/s, 2^26",
        "of peak",
        "of the measured read",
    ]);
    for op in record.values("op", &[])? {
        for way in record.values("way", &[("op", op)])? {
            let mut cells = vec![op.to_owned(), format!("`{way}`")];
            let mut last = 0.0;
            for size in ["20", "26"] {
                let wanted = [("op", op), ("way", way), ("log2_n", size)];
                let best = record.least("final_us", &wanted)?.context("no row")?;
                last = best.number("final_us")?;
                cells.push(format!("{} ({}, {})", time(last), best.text("group")?, best.text("items")?));
            }
            cells.extend(card.cells(rate("26", 4.0, last)?));
            table.row(&cells);
        }
    }
    Ok(table.text())
}

fn future_small(record: &Record) -> Result<String> {
    let kernels = ["scan", "flags", "index"];
    let names = ["scan", "flags", "index"].map(|name| format!("{name} (group)"));
    let mut table = Table::new(&columns(&["operator", "segments of 2^26 items"], &names));
    for op in ["sum", "mss"] {
        let wanted = [("table", "small"), ("what", op)];
        for m in record.counts("log2_m", &wanted)? {
            let mut cells = vec![op.to_owned(), format!("2^{m}")];
            for kernel in kernels {
                let wanted = [&wanted[..], &[("log2_m", m.as_str()), ("kernel", kernel)]].concat();
                let best = record.least("final_us", &wanted)?.context("no row")?;
                cells.push(format!("{} ({})", time(best.number("final_us")?), best.text("group")?));
            }
            table.row(&cells);
        }
    }
    Ok(table.text())
}

fn future_parts(record: &Record) -> Result<String> {
    let wanted = [("table", "parts"), ("what", "sum")];
    let widths = record.counts("width", &wanted)?;
    let names: Vec<String> = widths.iter().map(|width| format!("{width} a segment")).collect();
    let mut table = Table::new(&columns(&["segments of 2^26 items"], &names));
    for m in record.counts("log2_m", &wanted)? {
        let mut cells = vec![format!("2^{m}")];
        for width in &widths {
            let wanted = [&wanted[..], &[("log2_m", m.as_str()), ("width", width)]].concat();
            cells.push(match record.select(&wanted)?.first() {
                Some(row) => time(row.number("raw_us")?),
                None => "-".to_owned(),
            });
        }
        table.row(&cells);
    }
    Ok(table.text())
}

fn vectors(record: &Record, card: Card) -> Result<String> {
    let mut table = Table::new(&[
        "items",
        "a load",
        "us, 128",
        "us, 256",
        "us, 512",
        "GB/s, best",
        "of peak",
        "of the measured read",
    ]);
    for item in record.values("what", &[("table", "vectors")])? {
        for (kernel, name) in [("items", "an item"), ("vectors", "16 bytes")] {
            let wanted = [("table", "vectors"), ("what", item), ("kernel", kernel)];
            let mut cells = vec![item.to_owned(), name.to_owned()];
            for group in ["128", "256", "512"] {
                cells.push(time(record.one(&[&wanted[..], &[("group", group)]].concat())?.number("raw_us")?));
            }
            let best = record.least("raw_us", &wanted)?.context("no row")?.number("raw_us")?;
            // All are arrays of 2^28 bytes.
            cells.extend(card.cells(rate("28", 1.0, best)?));
            table.row(&cells);
        }
    }
    Ok(table.text())
}
