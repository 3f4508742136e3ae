//! Transposes of 4-byte elements: the thesis's figures 5.8 and 5.9.
//!
//! Columns: which table (`all`: every `[h][w]` of 2^26 elements with sides that are powers of two; `edge`: heights around a tile's
//! and half a tile's); the tile; the form that is forced, or `selected`; what it is; height and width; microseconds a call;
//! 10^9 bytes a second of a read and a write of all. A form that cannot take a shape has no row there.

use warpfold_gpu_kernels::ladder::transpose::{Form, TransposeParams, blocks, select};

use crate::harness::{Array, Failure, Gpu, Kernel, Report};

/// Microseconds of a sample.
const SAMPLE: f64 = 2e3;

/// How many pieces of a result are looked at.
const PIECES: u64 = 100;

/// How many elements each has.
const PIECE: u64 = 4096;

/// A kernel for each form.
pub struct Transposer<'a> {
    dim: u64,
    copy: Kernel<'a>,
    low_height: Kernel<'a>,
    low_width: Kernel<'a>,
    tiles: Kernel<'a>,
    tile_threads: u32,
}

impl<'a> Transposer<'a> {
    /// Of tiles of 16 by 16, of 32 by 32, or of these with four elements a thread.
    pub fn new(gpu: &'a Gpu, tile: &str) -> Result<Self, Failure> {
        let dim = if tile == "16" { 16 } else { 32 };
        let kernel = |name: &str| gpu.kernel("transpose", name);
        Ok(Transposer {
            dim,
            copy: kernel("copy")?,
            low_height: kernel(&format!("low_height_{dim}"))?,
            low_width: kernel(&format!("low_width_{dim}"))?,
            tiles: kernel(&format!("tiles_{tile}"))?,
            tile_threads: if tile == "32_by_4" { 256 } else { (dim * dim) as u32 },
        })
    }

    /// Transposes `[height][width]` by the form that the thesis selects.
    pub fn run<T>(&self, from: *const T, to: *mut T, height: u64, width: u64) -> Result<(), Failure> {
        assert_eq!(size_of::<T>(), 4);
        self.run_as(select(height, width, self.dim), from.cast(), to.cast(), height, width)
    }

    fn run_as(
        &self,
        form: Form,
        input: *const u32,
        output: *mut u32,
        height: u64,
        width: u64,
    ) -> Result<(), Failure> {
        let params = TransposeParams { input, output, height, width };
        let threads = (self.dim * self.dim) as u32;
        let (kernel, threads) = match form {
            Form::Copy => (&self.copy, 256),
            Form::LowHeight => (&self.low_height, threads),
            Form::LowWidth => (&self.low_width, threads),
            Form::Tiles => (&self.tiles, self.tile_threads),
        };
        // SAFETY: the entry's parameters; callers pass arrays of that many elements.
        unsafe { kernel.launch(blocks(form, height, width, self.dim), threads, &params) }
    }
}

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let what = "transposes of 4-byte elements; microseconds a call, medians";
    let columns = "table,tile,form,kind,height,width,us,gbps";
    let mut report = Report::new(gpu, "transpose", what, columns);
    let n = 1_u64 << 26;
    let values: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let (input, output) = (gpu.upload(&values)?, gpu.zeros::<u32>(n as usize)?);
    let mut tiles = Vec::new();
    for tile in ["16", "32", "32_by_4"] {
        tiles.push((tile, Transposer::new(gpu, tile)?));
    }
    for log in 0..=26 {
        for (tile, with) in &tiles {
            let of = Shape { table: "all", tile, with, height: 1 << log, width: n >> log };
            of.measure(gpu, &values, [&input, &output], true, &mut report)?;
        }
    }
    // Around a tile's height, and with what it replaces: a wide matrix of few rows.
    for height in [2, 4, 6, 7, 8, 9, 10, 12, 14, 15, 16, 17, 20, 24, 28, 31, 32, 33, 48, 63, 64, 65] {
        for (tile, with) in &tiles {
            let width = n / height;
            for (height, width) in [(height, width), (width, height)] {
                let of = Shape { table: "edge", tile, with, height, width };
                of.measure(gpu, &values, [&input, &output], false, &mut report)?;
            }
        }
    }
    report.finish()
}

struct Shape<'a> {
    table: &'a str,
    tile: &'a str,
    with: &'a Transposer<'a>,
    height: u64,
    width: u64,
}

impl Shape<'_> {
    /// Times what is selected, or every form that can take the shape.
    fn measure(
        &self,
        gpu: &Gpu,
        values: &[u32],
        [input, output]: [&Array<u32>; 2],
        selected_only: bool,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let Shape { table, tile, with, height, width } = *self;
        let (dim, n) = (with.dim, height * width);
        let selected = select(height, width, dim);
        for form in [Form::Copy, Form::LowHeight, Form::LowWidth, Form::Tiles] {
            let fits = match form {
                Form::Copy => height == 1 || width == 1,
                Form::LowHeight => height <= dim,
                Form::LowWidth => width <= dim,
                Form::Tiles => true,
            };
            if form != selected && (selected_only || !fits) {
                continue;
            }
            gpu.clear(output)?;
            with.run_as(form, input.ptr(), output.ptr(), height, width)?;
            // Pieces all over, the first and the last elements among them.
            for piece in 0..=PIECES {
                let len = PIECE.min(n);
                let first = (n - len) / PIECES * piece;
                let first = if piece == PIECES { n - len } else { first };
                let found = output.read(gpu, first as usize, len as usize)?;
                let wanted = |i: u64| values[(i % height * width + i / height) as usize];
                if (first..).zip(&found).any(|(i, &found)| found != wanted(i)) {
                    return Err(format!("{form:?}, tiles {tile}, [{height}][{width}] is wrong").into());
                }
            }
            let time =
                gpu.time_for(SAMPLE, &|_| with.run_as(form, input.ptr(), output.ptr(), height, width))?;
            let rate = 8.0 * n as f64 / time / 1e3;
            let name = if form == selected { "selected" } else { "forced" };
            report.row(format_args!("{table},{tile},{name},{form:?},{height},{width},{time:.2},{rate:.0}"));
        }
        Ok(())
    }
}
