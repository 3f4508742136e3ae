//! Reduces the same data with every operator: `cargo run -- [cpu|sim|cuda]`, by default on the GPU if there is one.

use std::process::ExitCode;

use custom_op::{
    KERNELS,
    ops::{
        AffineMap, Bounds, Compose, CountOver, LongestRun, Matrix, MatrixProduct, MaxSegmentSum, Mean,
        Particle, SumOfSquaredHeights,
    },
};
use warpfold::{Engine, Error, NonEmpty};

const N: usize = 10_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let engine = match std::env::args().nth(1).as_deref() {
        None => Engine::new()?,
        Some("cpu") => Engine::cpu(),
        Some("sim") => Engine::sim(),
        Some("cuda") => Engine::cuda(0)?,
        Some(other) => {
            eprintln!("`{other}` is no backend: cpu, sim or cuda");
            std::process::exit(2);
        }
    };
    engine.load(KERNELS);
    println!("{}", engine.info());

    let wave: Vec<f32> = (0..N).map(|i| (i as f32 * 0.01).sin()).collect();
    let over = engine.reducer(CountOver { threshold: 0.5 })?.reduce(&wave)?;
    println!("{over} of {N} values are over 0.5");

    let mean = engine.reducer(Mean)?.reduce(&wave)?;
    println!("their mean is {mean:?}");

    let points: Vec<[f32; 2]> = wave.iter().enumerate().map(|(i, &y)| [i as f32 * 0.01, y]).collect();
    if let Some(seen) = engine.reducer(Bounds)?.reduce(&points)? {
        println!("{} points lie between {:?} and {:?}", seen.points, seen.low, seen.high);
    }

    let particles: Vec<Particle> =
        wave.iter().map(|&y| Particle { mass: 1.0, position: [0.0, 0.0, y] }).collect();
    let squares = engine.reducer(SumOfSquaredHeights::default())?.reduce(&particles)?;
    println!("their squared heights add up to {squares}");

    // Interest of 0.1 % a day, and 5 or 6 put in.
    let days: Vec<AffineMap> =
        (0..365).map(|day| AffineMap { scale: 1.001, shift: 5.0 + (day % 2) as f32 }).collect();
    let year = engine.reducer(Compose)?.reduce(&days)?;
    println!("after a year, x is worth {} x + {}", year.scale, year.shift);

    let fibonacci = engine.reducer(MatrixProduct)?.reduce(&[Matrix([[1, 1], [1, 0]]); 40])?;
    println!("Fibonacci number 40 is {}", fibonacci.0[0][1]);

    let signs: Vec<i32> = wave.iter().map(|&y| if y < 0.0 { -1 } else { 1 }).collect();
    let run = engine.reducer(LongestRun)?.reduce(&signs)?;
    println!("the longest run of one sign has {run} values");

    let best = engine.reducer(NonEmpty(MaxSegmentSum))?.reduce(&signs)?;
    println!("the greatest sum of neighbouring signs is {best:?}");
    Ok(())
}
