//! The literature's transposes, as R. W. Larsen's thesis uses them (Generating Efficient Code for Futhark's Segmented Redomap,
//! DIKU, University of Copenhagen, 2017, chapter 5, figures 5.8 and 5.9).
//!
//! | kernel | of `[height][width]` | source |
//! | --- | --- | --- |
//! | [`tiles`], 16 x 16, an element a thread | both sides longer than half a tile | the thesis; its code generator's tile |
//! | [`tiles`], 32 x 32, an element a thread | the same | the thesis |
//! | [`tiles`], 32 x 32, four elements a thread | the same | G. Ruetsch and P. Micikevicius, Optimizing Matrix Transpose in CUDA, 2009 |
//! | [`low_height`], [`low_width`] | one side at most half a tile, the other longer than a tile | the thesis |
//! | [`copy`] | a single row or column | the thesis |
//!
//! A tile is read by rows and written by columns, both in order of addresses, and turned in shared memory, whose rows are one
//! longer than the tile: without that place, the lanes of a warp that read a column meet in one bank. Where one side is
//! shorter than half a tile most of a tile would be empty; there as many pieces as fit stand below (beside) each other in it.
//! [`select`] says which kernel the thesis runs.

use warpfold_monoid::Plain;
use warpfold_simt::{
    global,
    shared::Shared,
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
};

/// The parameters of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TransposeParams<T> {
    /// `height` rows of `width` elements.
    pub input: *const T,
    /// `width` rows of `height` elements.
    pub output: *mut T,
    /// Rows.
    pub height: u64,
    /// Columns.
    pub width: u64,
}

/// How a matrix is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By [`copy`].
    Copy,
    /// By [`low_height`].
    LowHeight,
    /// By [`low_width`].
    LowWidth,
    /// By [`tiles`].
    Tiles,
}

/// Which form the thesis takes for `[height][width]` and tiles of `dim` by `dim`.
pub const fn select(height: u64, width: u64, dim: u64) -> Form {
    if height == 1 || width == 1 {
        Form::Copy
    } else if height <= dim / 2 && width > dim {
        Form::LowHeight
    } else if width <= dim / 2 && height > dim {
        Form::LowWidth
    } else {
        Form::Tiles
    }
}

/// Blocks that a form takes; of [`copy`], whose grid may have any size, one for each 1024 elements.
///
/// Less than 2^31, or the result is of no use.
pub const fn blocks(form: Form, height: u64, width: u64, dim: u64) -> u64 {
    match form {
        Form::Copy => (height * width).div_ceil(1024),
        Form::LowHeight => width.div_ceil(dim * (dim / height)),
        Form::LowWidth => height.div_ceil(dim * (dim / width)),
        Form::Tiles => width.div_ceil(dim) * height.div_ceil(dim),
    }
}

/// Elements of shared memory of a tile: its rows are one longer than it is wide.
pub const fn slots(dim: usize) -> usize {
    dim * (dim + 1)
}

/// Copies a matrix of one row or one column, which is its own transpose.
///
/// # Safety
///
/// The parameters' memory is as their documentation has it, and one side is 1.
#[inline(always)]
pub unsafe fn copy<T: Plain>(params: &TransposeParams<T>) {
    let n = params.height * params.width;
    let step = grid_dim_x() as u64 * block_dim_x() as u64;
    let mut i = block_idx_x() as u64 * block_dim_x() as u64 + thread_idx_x() as u64;
    while i < n {
        // SAFETY: below the number of elements.
        unsafe {
            let value = global::load(params.input.wrapping_add(i as usize));
            global::store(params.output.wrapping_add(i as usize), value);
        }
        i += step;
    }
}

/// A block turns a tile of `DIM` by `DIM` elements, a thread `DIM / ROWS` of them.
///
/// # Safety
///
/// The whole grid of [`blocks`] calls, blocks of `DIM * ROWS` threads; `ROWS` divides `DIM`. The parameters' memory is as their
/// documentation has it, and `tile` has [`slots`], not in use.
#[inline(always)]
pub unsafe fn tiles<T: Plain, const DIM: usize, const ROWS: usize>(
    params: &TransposeParams<T>,
    tile: Shared<T>,
) {
    let across = params.width.div_ceil(DIM as u64);
    let (block, thread) = (block_idx_x() as u64, thread_idx_x() as usize);
    let (left, top) = (block % across * DIM as u64, block / across * DIM as u64);
    let (column, row) = (thread % DIM, thread / DIM);
    let mut k = row;
    while k < DIM {
        let (x, y) = (left + column as u64, top + k as u64);
        if x < params.width && y < params.height {
            // SAFETY: an element that there is; a slot that no other thread uses.
            unsafe {
                let from = params.input.wrapping_add((y * params.width + x) as usize);
                tile.write(k * (DIM + 1) + column, global::load(from));
            }
        }
        k += ROWS;
    }
    sync_threads();
    let mut k = row;
    while k < DIM {
        let (x, y) = (left + k as u64, top + column as u64);
        if x < params.width && y < params.height {
            // SAFETY: an element that there is, whose slot was written before the barrier.
            unsafe {
                let to = params.output.wrapping_add((x * params.height + y) as usize);
                global::store(to, tile.read(column * (DIM + 1) + k));
            }
        }
        k += ROWS;
    }
}

/// Few rows: `DIM / height` pieces of `DIM` columns stand below each other in a tile.
///
/// # Safety
///
/// The whole grid of [`blocks`] calls, blocks of `DIM * DIM` threads; `height` is at most `DIM`. The rest as for [`tiles`].
#[inline(always)]
pub unsafe fn low_height<T: Plain, const DIM: usize>(params: &TransposeParams<T>, tile: Shared<T>) {
    // SAFETY: the caller's promise.
    unsafe { low::<T, DIM, true>(params, tile) }
}

/// Few columns: `DIM / width` pieces of `DIM` rows stand beside each other in a tile.
///
/// # Safety
///
/// The whole grid of [`blocks`] calls, blocks of `DIM * DIM` threads; `width` is at most `DIM`. The rest as for [`tiles`].
#[inline(always)]
pub unsafe fn low_width<T: Plain, const DIM: usize>(params: &TransposeParams<T>, tile: Shared<T>) {
    // SAFETY: the caller's promise.
    unsafe { low::<T, DIM, false>(params, tile) }
}

/// [`low_height`] if there are few rows, else [`low_width`], which is the way back.
///
/// # Safety
///
/// As for these.
#[inline(always)]
unsafe fn low<T: Plain, const DIM: usize, const FEW_ROWS: bool>(
    params: &TransposeParams<T>,
    tile: Shared<T>,
) {
    let (few, many) = if FEW_ROWS { (params.height, params.width) } else { (params.width, params.height) };
    let (dim, thread, few) = (DIM as u32, thread_idx_x(), few as u32);
    let pieces = dim / few;
    let first = block_idx_x() as u64 * dim as u64 * pieces as u64;
    let (column, row) = (thread % dim, thread / dim);
    // Places on the long side and on the short one, of neighbours that lie along the long side, or along the short one.
    let along = (first + (column + row % pieces * dim) as u64, row / pieces);
    let across = (first + (row + column % pieces * dim) as u64, column / pieces);
    let in_long_rows = |(x, y): (u64, u32)| (y as u64 * many + x) as usize;
    let in_short_rows = |(x, y): (u64, u32)| (x * few as u64 + y as u64) as usize;
    let is_there = |(x, y): (u64, u32)| x < many && y < few;
    // SAFETY: elements that there are; each slot is one thread's before the barrier and one thread's behind it.
    unsafe {
        let (at, from) =
            if FEW_ROWS { (along, in_long_rows(along)) } else { (across, in_short_rows(across)) };
        if is_there(at) {
            tile.write((row * (dim + 1) + column) as usize, global::load(params.input.wrapping_add(from)));
        }
        sync_threads();
        let (at, to) = if FEW_ROWS { (across, in_short_rows(across)) } else { (along, in_long_rows(along)) };
        if is_there(at) {
            global::store(params.output.wrapping_add(to), tile.read((column * (dim + 1) + row) as usize));
        }
    }
}
