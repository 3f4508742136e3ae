//! The kernels: built, assembled, and what each takes of a multiprocessor.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use warpfold_ptx_builder::{Arch, Build, CudaBuilder, ImageKind};

use crate::occupancy::{Occupancy, occupancy};
use crate::workspace::Workspace;

/// The oldest architecture supported, and the two that most programs meet.
const ARCHS: [Arch; 3] = [Arch::Sm75, Arch::Sm80, Arch::Sm90];

/// Threads of a block where the PTX does not say: what the device-wide reductions launch with.
const THREADS: u32 = 512;

/// Options of `cargo xtask ptx`.
#[derive(clap::Args)]
pub struct Options {
    /// Architectures to build and assemble for, as sm_90 or 90 [default: sm_75, sm_80, sm_90]
    #[arg(long = "arch", value_name = "ARCH")]
    archs: Vec<Arch>,
    /// The kernel crate [default: builtins/ of this workspace]
    #[arg(long = "crate", value_name = "FOLDER")]
    kernel_crate: Option<PathBuf>,
    /// Threads of a block for the occupancy column, where the PTX does not say
    #[arg(long, default_value_t = THREADS)]
    threads: u32,
    /// Print one JSON array instead of a table
    #[arg(long)]
    json: bool,
    /// Copy the .ptx and .cubin files into this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Fail where a kernel has a stack frame or spills without an allowance, where anything is warned of, or without ptxas
    #[arg(long)]
    strict: bool,
    /// rustc's own level of optimisation, 1 to 3; 1 is the facade's for the built-in operators
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    opt_level: u8,
    /// Features of the kernel crate, in place of its default ones
    #[arg(long = "feature", value_name = "FEATURE")]
    features: Vec<String>,
    /// Only entries whose name contains this
    filter: Option<String>,
}

/// Runs `cargo xtask ptx`.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let archs = if options.archs.is_empty() { ARCHS.to_vec() } else { options.archs.clone() };
    let crate_folder = options.kernel_crate.clone().unwrap_or_else(|| workspace.root.join("builtins"));
    let build = build(workspace, &crate_folder, &archs, options)?;
    if let Some(folder) = &options.keep {
        keep(&build, folder)?;
    }
    let mut rows = rows(&build, options.threads)?;
    rows.retain(|row| options.filter.as_ref().is_none_or(|part| row.entry.contains(part.as_str())));
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows.iter().map(Row::json).collect::<Vec<_>>())?);
    } else {
        print!("{}", table(&rows));
    }
    for warning in &build.warnings {
        eprintln!("warning: {warning}");
    }
    if options.strict {
        ensure!(build.warnings.is_empty(), "{} warnings, see above", build.warnings.len());
        ensure!(build.ptxas.is_some() && !rows.is_empty(), "nothing was assembled");
    }
    if !options.json {
        let archs: Vec<String> = archs.iter().map(Arch::to_string).collect();
        println!("{} modules, {} rows, assembled for {}", build.modules.len(), rows.len(), archs.join(", "));
    }
    Ok(())
}

/// Builds a kernel crate and assembles it for every one of `archs`. If strict, local memory is an error.
fn build(workspace: &Workspace, crate_folder: &Path, archs: &[Arch], options: &Options) -> Result<Build> {
    let mut builder = CudaBuilder::new(crate_folder);
    if !options.features.is_empty() {
        builder = builder.no_default_features().features(options.features.iter().cloned());
    }
    let builder = builder
        .archs(archs.iter().copied())
        .cubin(archs.iter().copied())
        .strict(options.strict)
        .opt_level(options.opt_level)
        .out_dir(workspace.target.join("xtask-ptx"))
        // The folder that the facade's build script uses too, so that `core` is compiled once.
        .target_dir(workspace.target.join("warpfold-ptx"))
        .ptxas_search(workspace.target.join("ptxas"))
        .cargo_directives(false);
    Ok(builder.build()?)
}

/// What one kernel takes on one architecture.
struct Row {
    module: String,
    arch: u32,
    entry: String,
    registers: u32,
    shared: u32,
    spills: u32,
    stack: u32,
    ptx_bytes: u64,
    cubin_bytes: u64,
    threads: u32,
    occupancy: Option<Occupancy>,
}

/// One row for each kernel and architecture that was assembled.
fn rows(build: &Build, threads: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for module in &build.modules {
        for (arch, used) in module.resources.iter().filter(|(_, used)| used.is_entry) {
            let image = |kind| module.images.iter().find(|image| image.arch == *arch && image.kind == kind);
            let (ptx, cubin) = (image(ImageKind::Ptx), image(ImageKind::Cubin));
            let text = match ptx {
                Some(image) => fs::read_to_string(&image.path)
                    .with_context(|| format!("cannot read {}", image.path.display()))?,
                None => String::new(),
            };
            let size = |image: Option<&warpfold_ptx_builder::Image>| {
                image.and_then(|image| fs::metadata(&image.path).ok()).map_or(0, |data| data.len())
            };
            let threads = block_threads(&text, &used.function).unwrap_or(threads);
            rows.push(Row {
                module: module.group.clone(),
                arch: arch.number(),
                entry: used.function.clone(),
                registers: used.registers,
                shared: used.shared_bytes,
                spills: used.spill_store_bytes.max(used.spill_load_bytes),
                stack: used.stack_bytes,
                ptx_bytes: size(ptx),
                cubin_bytes: size(cubin),
                threads,
                occupancy: occupancy(arch.number(), used.registers, used.shared_bytes, threads),
            });
        }
    }
    rows.sort_by(|a, b| (&a.module, &a.entry, a.arch).cmp(&(&b.module, &b.entry, b.arch)));
    Ok(rows)
}

/// The block size that the PTX of an entry requires (`.reqntid`) or allows at most (`.maxntid`), if it says so.
fn block_threads(ptx: &str, entry: &str) -> Option<u32> {
    let start = ptx.match_indices(".entry ").find_map(|(at, word)| {
        let rest = ptx[at + word.len()..].strip_prefix(entry)?;
        (!rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "_$".contains(c))).then_some(rest)
    })?;
    let head = start.split('{').next().unwrap_or("");
    let directive = [".reqntid", ".maxntid"].iter().find_map(|name| head.split_once(name))?.1;
    let line = directive.lines().next().unwrap_or("");
    line.split(',').map(|part| part.trim().trim_end_matches(';').parse::<u32>().ok()).product()
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "module": self.module, "arch": format!("sm_{}", self.arch), "entry": self.entry,
            "registers": self.registers, "shared_bytes": self.shared, "spill_bytes": self.spills,
            "stack_bytes": self.stack, "ptx_bytes": self.ptx_bytes, "cubin_bytes": self.cubin_bytes,
            "threads": self.threads,
            "occupancy": self.occupancy.map(|it| json!({
                "blocks": it.blocks, "warps": it.warps, "max_warps": it.max_warps, "percent": it.percent(),
            })),
        })
    }

    fn cells(&self) -> [String; 11] {
        let occupancy =
            self.occupancy.map_or("?".to_owned(), |it| format!("{:.0} % ({})", it.percent(), it.blocks));
        [
            self.module.clone(),
            format!("sm_{}", self.arch),
            self.entry.clone(),
            self.registers.to_string(),
            self.shared.to_string(),
            self.spills.to_string(),
            self.stack.to_string(),
            self.ptx_bytes.to_string(),
            self.cubin_bytes.to_string(),
            self.threads.to_string(),
            occupancy,
        ]
    }
}

/// Rows in columns: sizes in bytes, PTX and machine code of the whole module, occupancy as the share of warps and
/// (in brackets) resident blocks.
fn table(rows: &[Row]) -> String {
    let titles = [
        "module",
        "arch",
        "entry",
        "regs",
        "shared",
        "spills",
        "stack",
        "ptx",
        "cubin",
        "threads",
        "occupancy",
    ];
    let mut lines = vec![titles.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|cells| cells[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let mut text = String::new();
    for cells in &lines {
        for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // Names to the left, numbers to the right.
            let cell = if column <= 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            text += gap;
            text += &cell;
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn keep(build: &Build, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for image in build.modules.iter().flat_map(|module| &module.images) {
        let name = image.path.file_name().context("an image without a name")?;
        fs::copy(&image.path, folder.join(name))
            .with_context(|| format!("cannot copy {}", image.path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "
.visible .entry sum__reduce_one_more(
\t.param .u64 p
)
.maxntid 64
{ ret; }
.visible .entry sum__reduce_one(
\t.param .align 8 .b8 p[40]
)
.reqntid 16, 8, 1
{ ret; }
.visible .entry plain()
{ // .maxntid 32
ret; }
";

    #[test]
    fn the_block_size_is_that_of_the_entry_itself() {
        assert_eq!(block_threads(PTX, "sum__reduce_one"), Some(128));
        assert_eq!(block_threads(PTX, "sum__reduce_one_more"), Some(64));
        assert_eq!(block_threads(PTX, "plain"), None);
        assert_eq!(block_threads(PTX, "absent"), None);
    }

    #[test]
    fn columns_line_up() {
        let row = Row {
            module: "sum_f32".into(),
            arch: 90,
            entry: "sum_f32__reduce_chunks".into(),
            registers: 32,
            shared: 128,
            spills: 0,
            stack: 0,
            ptx_bytes: 12345,
            cubin_bytes: 678,
            threads: 512,
            occupancy: occupancy(90, 32, 128, 512),
        };
        let text = table(&[row]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].find("entry"), lines[1].find("sum_f32__reduce"));
        assert_eq!(lines[0].len(), lines[1].len().max(lines[0].len()));
        assert!(lines[1].ends_with("100 % (4)"), "{text}");
    }
}
