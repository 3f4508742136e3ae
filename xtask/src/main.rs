//! Development tasks: `cargo xtask --help`.

mod bundle;
mod driver;
mod mutants;
mod occupancy;
mod peers;
mod pip;
mod ptx;
mod setup;
mod steps;
mod stub;
mod test;
mod totals;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Development tasks of warpfold.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing, build and check everything, run the tests (those of every operator where there is a GPU)
    Test(test::Options),
    /// Install the device toolchain and ptxas where they are missing
    Setup,
    /// Build the kernels and show what each takes: registers, shared memory, size, occupancy
    Ptx(ptx::Options),
    /// Make a driver library that answers "no device", to link and run on machines without a driver
    CudaStub {
        /// Where to put it [default: target/cuda-stub]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Collect tests, benches and the command for a machine with a driver and no Rust
    GpuBundle(bundle::Options),
    /// Put faults into a copy of the kernels, one at a time, and see that the simulator's tests find each
    Mutants(mutants::Options),
    /// Build the programs that we are measured against
    Peers(peers::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let workspace = Workspace::load()?;
    match task {
        Task::Test(options) => test::run(&workspace, &options),
        Task::Setup => setup::run(&workspace, &mut |line| println!("{line}")).map(drop),
        Task::Ptx(options) => ptx::run(&workspace, &options),
        Task::CudaStub { out } => {
            let stub = stub::build(&workspace, out)?;
            println!("# {} functions. Set these to build and run with the feature cuda:", stub.functions);
            println!("export CUDA_LIBRARY_PATH={}", stub.root.display());
            println!(
                "export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
                stub.libraries().display()
            );
            Ok(())
        }
        Task::GpuBundle(options) => bundle::run(&workspace, &options),
        Task::Mutants(options) => mutants::run(&workspace, &options),
        Task::Peers(options) => peers::run(&workspace, &options),
    }
}
