//! The charts of the page, by name.

use anyhow::{Context, Result, bail};

use super::chart::{Chart, Line, Panel};
use super::record::{Record, Records};
use super::tables::rate;

/// A chart by its name: that of its file.
pub fn figure(records: &Records, name: &str) -> Result<Chart> {
    let get = |record: &str| records.get(record);
    Ok(match name {
        "timcheck" => timcheck(get("timcheck")?)?,
        "keyed" => keyed(get("keyed")?, get("keyed-cub")?)?,
        "patel" => patel(get("patel")?)?,
        "harris" => harris(get("harris")?)?,
        "moderngpu" => moderngpu(get("moderngpu")?)?,
        "moderngpu-groups" => groups(get("moderngpu")?)?,
        "one-array" => one_array(get("one_array")?)?,
        "scans" => scans(get("scans")?, get("other:scan")?)?,
        "thesis-sum" => segments(get("thesis")?, "sum")?,
        "thesis-ordered" => segments(get("thesis")?, "ordered")?,
        "thesis-mss" => segments(get("thesis")?, "mss")?,
        "thesis-raw-sum" => raw(get("thesis")?, "sum")?,
        "thesis-raw-ordered" => raw(get("thesis")?, "ordered")?,
        "thesis-raw-mss" => raw(get("thesis")?, "mss")?,
        "thesis-chunks" => chunks(get("thesis")?)?,
        "transpose" => transpose(get("transpose")?)?,
        "transpose-edge" => transpose_edge(get("transpose")?)?,
        "ordered" => ordered(get("ordered")?)?,
        "future-small" => future_small(get("future")?)?,
        "future-parts" => future_parts(get("future")?)?,
        _ => bail!("no figure {name}"),
    })
}

/// Where points lie, and what they say.
struct Axes<'a> {
    place: &'a str,
    value: &'a str,
}

/// The line of the rows that have these values; if a place has several, of the least.
fn line(
    record: &Record,
    name: &str,
    axes: &Axes,
    places: &[String],
    wanted: &[(&str, &str)],
) -> Result<Line> {
    let mut points = Vec::new();
    for (i, place) in places.iter().enumerate() {
        let mut at = wanted.to_vec();
        at.push((axes.place, place));
        if let Some(row) = record.least(axes.value, &at)? {
            points.push((i, row.number(axes.value)?));
        }
    }
    Ok(Line { name: name.to_owned(), points })
}

fn powers(places: &[String]) -> Vec<String> {
    places.iter().map(|place| format!("2^{place}")).collect()
}

fn timcheck(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "threads", value: "speedup" };
    let threads = record.counts("threads", &[])?;
    let kernels = [
        "non_divergent",
        "sequential_global",
        "sequential_shared",
        "shuffles",
        "shuffles_atomic",
        "library",
        "library_unrolled",
        "cub_raking",
        "cub_warp_reductions",
    ];
    let mut panels = Vec::new();
    for (memory, title) in [("l2", "Sets in L2"), ("dram", "Sets in memory")] {
        let lines = kernels
            .iter()
            .map(|kernel| line(record, kernel, &axes, &threads, &[("kernel", kernel), ("memory", memory)]));
        panels.push(Panel {
            title: title.to_owned(),
            x_name: "threads of a block",
            places: threads.clone(),
            y_name: "times as fast as naive",
            log: true,
            lines: lines.collect::<Result<_>>()?,
        });
    }
    Ok(Chart { panels })
}

fn keyed(ours: &Record, cub: &Record) -> Result<Chart> {
    let axes = Axes { place: "threads", value: "cycles" };
    let threads = ours.counts("threads", &[])?;
    let mut lines = Vec::new();
    for record in [ours, cub] {
        for kernel in record.values("kernel", &[])? {
            let wanted = [("kernel", kernel), ("keys", "uniform")];
            lines.push(line(record, kernel, &axes, &threads, &wanted)?);
        }
    }
    Ok(Chart {
        panels: vec![Panel {
            title: "Sums by 16 keys in a block".to_owned(),
            x_name: "threads of a block, and items of a set",
            places: threads,
            y_name: "cycles a set",
            log: true,
            lines,
        }],
    })
}

fn patel(record: &Record) -> Result<Chart> {
    let versions: Vec<String> = record.values("version", &[])?.into_iter().map(str::to_owned).collect();
    let places: Vec<String> = versions.iter().map(|version| version.replace("version", "")).collect();
    let mut panels = Vec::new();
    for (value, y_name, title) in [
        ("whole_us", "microseconds", "Time of the whole reduction"),
        ("first_gbps", "GB/s", "Bandwidth of the first launch"),
    ] {
        let axes = Axes { place: "version", value };
        let mut lines = Vec::new();
        for (form, name) in [("covered", "a thread an item"), ("strided", "grid strides")] {
            for threads in ["128", "1024"] {
                let wanted = [("form", form), ("threads", threads)];
                lines.push(line(record, &format!("{name}, {threads}"), &axes, &versions, &wanted)?);
            }
        }
        panels.push(Panel {
            title: title.to_owned(),
            x_name: "version",
            places: places.clone(),
            y_name,
            log: false,
            lines,
        });
    }
    Ok(Chart { panels })
}

fn harris(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "elements", value: "us" };
    let mut panels = Vec::new();
    for size in ["20", "25"] {
        let elements = record.counts("elements", &[("log2_n", size)])?;
        let mut lines = Vec::new();
        for threads in record.counts("threads", &[("log2_n", size)])? {
            let wanted = [("log2_n", size), ("threads", &threads)];
            lines.push(line(record, &format!("{threads} threads"), &axes, &elements, &wanted)?);
        }
        panels.push(Panel {
            title: format!("2^{size} items"),
            x_name: "elements a thread",
            places: elements,
            y_name: "microseconds",
            log: true,
            lines,
        });
    }
    Ok(Chart { panels })
}

fn moderngpu(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "log2_n", value: "time" };
    let sizes = record.counts("log2_n", &[("part", "array")])?;
    let mut lines = Vec::new();
    for shape in record.values("shape", &[("part", "array"), ("shuffles", "ascending")])? {
        let wanted = [("part", "array"), ("shuffles", "ascending"), ("shape", shape)];
        let mut line = line(record, shape, &axes, &sizes, &wanted)?;
        for (place, us) in &mut line.points {
            *us = rate(&sizes[*place], 4.0, *us)?;
        }
        lines.push(line);
    }
    Ok(Chart {
        panels: vec![Panel {
            title: "One array, recursively".to_owned(),
            x_name: "items",
            places: powers(&sizes),
            y_name: "GB/s",
            log: false,
            lines,
        }],
    })
}

fn groups(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "shape", value: "time" };
    let widths = ["2/2", "4/4", "8/8", "16/16", "32/32"].map(str::to_owned);
    let mut panels = Vec::new();
    for (part, title) in [("one_warp", "One warp alone"), ("all_warps", "64 warps on every multiprocessor")] {
        let lines = ["ascending", "descending", "fused", "redux"]
            .iter()
            .map(|how| line(record, how, &axes, &widths, &[("part", part), ("shuffles", how)]));
        panels.push(Panel {
            title: title.to_owned(),
            x_name: "lanes of a group",
            places: widths
                .iter()
                .map(|width| width.split('/').next().unwrap_or_default().to_owned())
                .collect(),
            y_name: "nanoseconds a round",
            log: true,
            lines: lines.collect::<Result<_>>()?,
        });
    }
    Ok(Chart { panels })
}

fn one_array(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "log2_n", value: "us" };
    let sizes = record.counts("log2_n", &[])?;
    let mut lines = Vec::new();
    for strategy in ["last_block_wave", "two_launches_wave", "recursive", "atomics_wave"] {
        lines.push(line(record, strategy, &axes, &sizes, &[("strategy", strategy), ("type", "f32")])?);
    }
    Ok(Chart {
        panels: vec![Panel {
            title: "One array of f32".to_owned(),
            x_name: "items",
            places: powers(&sizes),
            y_name: "microseconds",
            log: true,
            lines,
        }],
    })
}

fn scans(record: &Record, library: &Record) -> Result<Chart> {
    let axes = Axes { place: "log2_n", value: "stream_us" };
    let sizes = record.counts("log2_n", &[])?;
    let mut lines = Vec::new();
    for form in record.values("form", &[])? {
        lines.push(line(record, form, &axes, &sizes, &[("form", form)])?);
    }
    let wanted = [("section", "types"), ("operation", "sum_i32")];
    lines.push(line(library, "one pass with look-back", &axes, &sizes, &wanted)?);
    for (place, us) in lines.iter_mut().flat_map(|line| &mut line.points) {
        *us = rate(&sizes[*place], 8.0, *us)?;
    }
    Ok(Chart {
        panels: vec![Panel {
            title: "Inclusive sums of i32".to_owned(),
            x_name: "items",
            places: powers(&sizes),
            y_name: "useful GB/s",
            log: false,
            lines,
        }],
    })
}

/// The thesis's strategies over how many segments there are, each with the best group size.
const STRATEGIES: [&str; 5] = ["large", "large_chunk_1", "small", "loop_in_map", "scan"];

fn strategies(record: &Record, value: &str, size: &str, op: &str, title: String) -> Result<Panel> {
    let axes = Axes { place: "log2_m", value };
    let wanted = [("table", "segments"), ("log2_n", size), ("op", op)];
    let segments = record.counts("log2_m", &wanted)?;
    let mut lines = Vec::new();
    for strategy in STRATEGIES {
        let mut wanted = wanted.to_vec();
        wanted.push(("strategy", strategy));
        lines.push(line(record, strategy, &axes, &segments, &wanted)?);
    }
    // What takes very long would press the rest together.
    let scans = lines[STRATEGIES.len() - 1].points.iter().map(|point| point.1).fold(0.0, f64::max);
    for line in &mut lines {
        line.points.retain(|point| point.1 < 30.0 * scans);
    }
    let mut whole = wanted.to_vec();
    whole.extend([("strategy", "large"), ("log2_m", "0")]);
    let whole = record.least(value, &whole)?.context("one segment")?.number(value)?;
    let points = vec![(0, whole), (segments.len() - 1, whole)];
    lines.push(Line { name: "all as one segment".to_owned(), points });
    Ok(Panel {
        title,
        x_name: "segments",
        places: powers(&segments),
        y_name: "microseconds",
        log: true,
        lines,
    })
}

fn segments(record: &Record, op: &str) -> Result<Chart> {
    let panel =
        |size| strategies(record, "final_us", size, op, format!("{op}, 2^{size} items, with transposes"));
    Ok(Chart { panels: vec![panel("20")?, panel("26")?] })
}

fn raw(record: &Record, op: &str) -> Result<Chart> {
    let panel =
        |size| strategies(record, "raw_us", size, op, format!("{op}, 2^{size} items, without transposes"));
    Ok(Chart { panels: vec![panel("20")?, panel("26")?] })
}

/// Numbers of groups as parts of what the card holds at once, as `warpfold-ladder` cuts them. What follows are short chunks, whose
/// times leave the picture.
const OF_CARD: [&str; 10] = ["1/4", "1/2", "1-", "1", "1+", "9/8", "3/2", "2", "2+", "4"];

fn chunks(record: &Record) -> Result<Chart> {
    let mut panels = Vec::new();
    for size in ["20", "26"] {
        for group in ["128", "1024"] {
            let mut lines = Vec::new();
            for op in ["sum", "ordered", "mss"] {
                let wanted = [("table", "chunks"), ("log2_n", size), ("group", group), ("op", op)];
                let rows = record.select(&wanted)?;
                let times = rows[..rows.len() - 1].iter().map(|row| row.number("raw_us"));
                let points = (0..OF_CARD.len()).zip(times.collect::<Result<Vec<_>>>()?);
                lines.push(Line { name: op.to_owned(), points: points.collect() });
            }
            panels.push(Panel {
                title: format!("2^{size} items, groups of {group}"),
                x_name: "groups, of what is held at once (1+: one more)",
                places: OF_CARD.map(str::to_owned).to_vec(),
                y_name: "microseconds, first step",
                log: false,
                lines,
            });
        }
    }
    Ok(Chart { panels })
}

fn transpose(record: &Record) -> Result<Chart> {
    let heights = record.counts("height", &[("table", "all")])?;
    let axes = Axes { place: "height", value: "us" };
    let mut lines = Vec::new();
    for (tile, name) in TILES {
        let mut line = line(record, name, &axes, &heights, &[("table", "all"), ("tile", tile)])?;
        for (_, us) in &mut line.points {
            *us = 8.0 * f64::from(1 << 26) / *us / 1e3;
        }
        lines.push(line);
    }
    let places = heights.iter().map(|height| format!("2^{}", height.parse::<u64>().unwrap_or(1).ilog2()));
    Ok(Chart {
        panels: vec![Panel {
            title: "Transposes of 2^26 elements, the form that is selected".to_owned(),
            x_name: "rows",
            places: places.collect(),
            y_name: "GB/s, read and write",
            log: false,
            lines,
        }],
    })
}

/// Tiles, and how the page calls them.
const TILES: [(&str, &str); 3] = [("16", "16 x 16"), ("32", "32 x 32"), ("32_by_4", "32 x 32, 4 a thread")];

fn transpose_edge(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "height", value: "us" };
    let mut panels = Vec::new();
    for (tile, name) in TILES {
        let wanted = [("table", "edge"), ("tile", tile)];
        let mut heights = record.counts("height", &wanted)?;
        // Not more than there is room to name.
        heights.retain(|height| !["6", "7", "14", "20", "24", "28", "48"].contains(&height.as_str()));
        heights.retain(|height| height.len() < 3);
        let mut lines = Vec::new();
        for (kind, name) in [("Tiles", "tiles"), ("LowHeight", "low_height")] {
            let mut wanted = wanted.to_vec();
            wanted.push(("kind", kind));
            lines.push(line(record, name, &axes, &heights, &wanted)?);
        }
        panels.push(Panel {
            title: format!("Few rows, tiles of {name}"),
            x_name: "rows (2^26 elements)",
            places: heights,
            y_name: "microseconds",
            log: true,
            lines,
        });
    }
    Ok(Chart { panels })
}

fn ordered(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "group", value: "final_us" };
    let mut panels = Vec::new();
    for (op, title) in [("ordered", "A sum in order, 2^26 items"), ("mss", "Maximum segment sum, 2^26 items")]
    {
        let wanted = [("op", op), ("log2_n", "26")];
        let groups = record.counts("group", &wanted)?;
        let mut lines = Vec::new();
        for way in record.values("way", &wanted)? {
            let mut wanted = wanted.to_vec();
            wanted.push(("way", way));
            lines.push(line(record, way, &axes, &groups, &wanted)?);
        }
        panels.push(Panel {
            title: title.to_owned(),
            x_name: "threads of a group",
            places: groups,
            y_name: "microseconds",
            log: true,
            lines,
        });
    }
    Ok(Chart { panels })
}

fn future_small(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "log2_m", value: "final_us" };
    let mut panels = Vec::new();
    for (op, title) in [("sum", "Sums, 2^26 items"), ("mss", "Maximum segment sums, 2^26 items")] {
        let wanted = [("table", "small"), ("what", op)];
        let segments = record.counts("log2_m", &wanted)?;
        let mut lines = Vec::new();
        for kernel in record.values("kernel", &wanted)? {
            let mut wanted = wanted.to_vec();
            wanted.push(("kernel", kernel));
            lines.push(line(record, kernel, &axes, &segments, &wanted)?);
        }
        panels.push(Panel {
            title: title.to_owned(),
            x_name: "segments",
            places: powers(&segments),
            y_name: "microseconds",
            log: false,
            lines,
        });
    }
    Ok(Chart { panels })
}

fn future_parts(record: &Record) -> Result<Chart> {
    let axes = Axes { place: "log2_m", value: "raw_us" };
    let wanted = [("table", "parts"), ("what", "sum")];
    let segments = record.counts("log2_m", &wanted)?;
    let mut lines = Vec::new();
    for width in record.counts("width", &wanted)? {
        let mut wanted = wanted.to_vec();
        wanted.push(("width", &width));
        lines.push(line(record, &format!("{width} a segment"), &axes, &segments, &wanted)?);
    }
    Ok(Chart {
        panels: vec![Panel {
            title: "Loop in map by threads a segment, 2^26 items".to_owned(),
            x_name: "segments",
            places: powers(&segments),
            y_name: "microseconds",
            log: true,
            lines,
        }],
    })
}
