//! Times the kernels of the papers (`gpu-kernels/src/ladder`) on a GPU: `warpfold-ladder SECTION...`.
//!
//! A section is a paper. Each prints CSV, which goes to `SECTION.csv` in the folder that `WARPFOLD_OUT` names too; its module
//! says what the columns are. Every kernel's result is compared with one that the host worked out before it is timed, and a
//! wrong one ends the program. Where there is no GPU, it says so.

mod future;
mod harness;
mod harris;
mod keyed;
mod moderngpu;
mod one_array;
mod ordered;
mod patel;
mod scans;
mod thesis;
mod timcheck;
mod transpose;

use std::error::Error;

use clap::{Parser, ValueEnum};
use harness::Gpu;

/// Times the kernels of the papers on a GPU.
#[derive(Parser)]
struct Options {
    /// The papers [default: all]
    sections: Vec<Section>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Section {
    /// Block-wide sums of sets of 1024, step by step
    Timcheck,
    /// Five versions of a tree in shared memory, over 32 MB
    Patel,
    /// The fully unrolled kernel, over the elements of a thread
    Harris,
    /// Tiles and shuffles of moderngpu
    Moderngpu,
    /// How the values of blocks become one
    OneArray,
    /// Scans: Hillis and Steele, Blelloch, Sengupta and others
    Scans,
    /// Regular segmented reductions of the Futhark thesis
    Thesis,
    /// Its transposes
    Transpose,
    /// Ways of reading in order
    Ordered,
    /// The Futhark thesis's future work
    Future,
    /// Block-wide reductions by key
    Keyed,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let Some(gpu) = Gpu::new()? else { return Ok(()) };
    for section in Section::value_variants() {
        if !options.sections.is_empty() && !options.sections.contains(section) {
            continue;
        }
        match section {
            Section::Timcheck => timcheck::run(&gpu)?,
            Section::Patel => patel::run(&gpu)?,
            Section::Harris => harris::run(&gpu)?,
            Section::Moderngpu => moderngpu::run(&gpu)?,
            Section::OneArray => one_array::run(&gpu)?,
            Section::Scans => scans::run(&gpu)?,
            Section::Thesis => thesis::run(&gpu)?,
            Section::Transpose => transpose::run(&gpu)?,
            Section::Ordered => ordered::run(&gpu)?,
            Section::Future => future::run(&gpu)?,
            Section::Keyed => keyed::run(&gpu)?,
        }
    }
    Ok(())
}
