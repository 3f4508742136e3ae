//! Plans for reductions of many segments of one length.
//!
//! Which strategy runs depends on the number of segments, their length, how they lie and the device; the order in which a
//! segment's items combine depends on its length and the operator alone. So every strategy that a plan may name gives the
//! same bits, and settings that are forced change the time only.

use std::fmt;

use warpfold_gpu_kernels::segments::{
    THREADS,
    columns::{FEW_LANES, FEW_PARTS, MAX_SPLITS, SHORT_LANES, abreast, least},
    flat,
    narrow::{MAX_HELD, MAX_VECTOR, is_narrow},
    rows::{is_half, most_chunks, takes_most, takes_two},
    tile::TILE_BYTES,
    wide,
};
use warpfold_monoid::tree::{MAX_GROUPS, Shape, VECTORS_A_GROUP};

use super::{DeviceFacts, OperatorLayout};
use crate::Error;

/// How one length of segment lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// The items of a segment side by side, the segments `stride` items apart.
    Rows {
        /// Items from one segment's first to the next one's.
        stride: i64,
    },
    /// Neighbouring segments side by side: `[outer][n][inner]`.
    Columns {
        /// Segments that lie side by side.
        inner: u64,
        /// Are there no gaps between any items?
        dense: bool,
    },
    /// Anything else.
    Axes,
}

/// How the segments are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SegmentStrategy {
    /// On the CPU.
    Cpu,
    /// A thread a segment, from a tile in shared memory.
    Thread,
    /// Several threads a segment, several segments a block, from a tile in shared memory.
    Small,
    /// A part of a warp for each segment, straight from global memory.
    Warp,
    /// A block a segment.
    Block,
    /// Several blocks a segment, one a chunk.
    Large,
    /// Neighbouring segments by neighbouring threads.
    Columns,
    /// Few neighbouring segments, all by the same threads.
    Narrow,
    /// Neighbouring segments, several a thread, by vectors.
    Wide,
    /// Neighbouring segments without gaps, read as the one array that they are.
    Flat,
    /// Every item from where its axes lead.
    Gather,
}

impl SegmentStrategy {
    /// Those that run on a device.
    pub const ALL: [SegmentStrategy; 10] = [
        SegmentStrategy::Thread,
        SegmentStrategy::Small,
        SegmentStrategy::Warp,
        SegmentStrategy::Block,
        SegmentStrategy::Large,
        SegmentStrategy::Columns,
        SegmentStrategy::Narrow,
        SegmentStrategy::Wide,
        SegmentStrategy::Flat,
        SegmentStrategy::Gather,
    ];

    /// Its name, as errors and benches have it.
    pub const fn name(self) -> &'static str {
        match self {
            SegmentStrategy::Cpu => "cpu",
            SegmentStrategy::Thread => "thread",
            SegmentStrategy::Small => "small",
            SegmentStrategy::Warp => "warp",
            SegmentStrategy::Block => "block",
            SegmentStrategy::Large => "large",
            SegmentStrategy::Columns => "columns",
            SegmentStrategy::Narrow => "narrow",
            SegmentStrategy::Wide => "wide",
            SegmentStrategy::Flat => "flat",
            SegmentStrategy::Gather => "gather",
        }
    }
}

impl fmt::Display for SegmentStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is forced on a plan; `None` leaves it to the chooser. No setting changes a result's bits.
///
/// ```
/// use warpfold_host::plan::{
///     DeviceFacts, OperatorLayout,
///     segments::{Arrangement, SegmentPlanner, SegmentSettings, SegmentStrategy},
/// };
/// use warpfold_monoid::Sum;
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// let mut settings = SegmentSettings::default();
/// settings.strategy = Some(SegmentStrategy::Block);
/// let planner = SegmentPlanner::new(OperatorLayout::of::<Sum<f32>>(), &DeviceFacts::H100);
/// let plan = planner.with(settings).plan(1 << 20, 64, Arrangement::Rows { stride: 64 })?;
/// assert_eq!((plan.strategy, plan.grid), (SegmentStrategy::Block, 1 << 20));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SegmentSettings {
    /// The strategy.
    pub strategy: Option<SegmentStrategy>,
    /// Segments in a tile (*thread* and *small*): as many as fit, at most.
    pub rows_a_tile: Option<u32>,
    /// Chunks that one block folds (*large*).
    pub chunks_a_block: Option<u32>,
    /// Neighbouring segments that a block takes (*columns* and *wide*).
    pub width: Option<u32>,
    /// The most blocks; they go on until all segments are done.
    pub blocks: Option<u32>,
}

/// The plan of a reduction of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SegmentsPlan {
    /// Segments.
    pub m: u64,
    /// In which order a segment's items combine.
    pub shape: Shape,
    /// How they lie.
    pub arrangement: Arrangement,
    /// How it runs.
    pub strategy: SegmentStrategy,
    /// Why: the rule that chose.
    pub reason: &'static str,
    /// Blocks (1 on the CPU).
    pub grid: u32,
    /// Threads in a block (1 on the CPU).
    pub block: u32,
    /// Segments in a tile, where there are tiles.
    pub rows_a_tile: u32,
    /// Chunks that a block folds one after the other, in *large*.
    pub chunks_a_block: u32,
    /// Neighbouring segments that a block takes, in *columns* and *wide*.
    pub width: u32,
    /// Threads of a block that share a segment's chunk, in *columns* and *wide*.
    pub parts: u32,
    /// Blocks that share a segment's chunk, in *columns* and *wide*.
    pub splits: u32,
    /// Are the columns of *columns* so short that a thread folds one, or several?
    pub short: bool,
    /// How many neighbours a thread folds, in *wide* and where columns are short.
    pub abreast: u32,
    /// Bytes of an item.
    pub item_bytes: usize,
    /// Counters that the launch needs, zero before and after.
    pub tickets: u64,
    /// Values of chunks that the launch needs room for.
    pub partials: u64,
}

/// Plans reductions of segments for one operator and device.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPlanner {
    layout: OperatorLayout,
    facts: DeviceFacts,
    settings: SegmentSettings,
}

/// So many bytes in all are little: a few to each thread that a large device holds.
const LITTLE_BYTES: u64 = 8 << 20;

/// Threads of *large* that a multiprocessor has at once.
const LARGE_THREADS: u64 = 1024;

/// The most that a block of *large* reads that meets after each chunk, if that is more than one.
const BLOCK_BYTES: u64 = 128 << 10;

/// Blocks of it that each multiprocessor is to have, a few times what it holds, before a block folds several chunks.
const BLOCKS_A_MULTIPROCESSOR: u64 = 24;

/// What it takes a block of *large* to begin and to end, in half chunks.
const LARGE_BEGIN: u64 = 3;

/// So many columns keep a large device busy with several a thread.
const MANY_COLUMNS: u64 = 1 << 16;

/// Vectors of neighbours that a block of *wide* takes at most, unless columns are short: a warp reads half a kilobyte of a row.
const WIDE_VECTORS: u32 = 32;

/// Groups of lanes from which on half as many suffice, if accumulators are small: blocks have threads for more groups.
const NARROW_GROUPS: u32 = 256;

/// Groups of lanes from which on columns are long.
const WIDE_GROUPS: u32 = 16;

/// Blocks of *wide* that a multiprocessor has at once.
const WIDE_RESIDENT: u64 = 2;

/// Bytes that a block of *wide* could read in the time that it takes to begin and to end.
const WIDE_BEGIN: u64 = 64 << 10;

/// Columns that a block of *flat* takes where they are more than its threads.
const FLAT_WIDTH: u32 = 256;

/// The fewest that its tiles have.
const FLAT_NARROW: u32 = 64;

/// Bytes that a block of *flat* reads: from these on it may share a chunk with others, if there are not blocks enough or accumulators are
/// large.
const FLAT_LEAST: u64 = 64 << 10;

/// From these on it may in any case.
const FLAT_MOST: u64 = 384 << 10;

/// Bytes that it could read in the time that it takes to begin and to end.
const FLAT_BEGIN: u64 = 16 << 10;

/// Bytes of all columns from which on *flat* has blocks enough.
const FLAT_BYTES: u64 = 4 << 20;

/// Threads in a block of *columns* at most, as [`warpfold_gpu_kernels::segments::columns::threads`] has it.
fn column_threads(acc_bytes: usize) -> u32 {
    let fit = (32 << 10) / acc_bytes.max(1);
    (fit.min(THREADS as usize) as u32 + 1).next_power_of_two() / 2
}

impl SegmentPlanner {
    /// A planner with nothing forced.
    pub const fn new(layout: OperatorLayout, facts: &DeviceFacts) -> Self {
        SegmentPlanner {
            layout,
            facts: *facts,
            settings: SegmentSettings {
                strategy: None,
                rows_a_tile: None,
                chunks_a_block: None,
                width: None,
                blocks: None,
            },
        }
    }

    /// The same with some things forced.
    pub const fn with(self, settings: SegmentSettings) -> Self {
        SegmentPlanner { settings, ..self }
    }

    /// Plans a reduction of `m` segments of `n` items.
    ///
    /// # Errors
    ///
    /// [`Error::StrategyUnfit`] if a strategy is forced that cannot fold segments of that length or arrangement in their
    /// order; [`Error::BlockTooLarge`] for a device whose blocks are too small.
    pub fn plan(&self, m: u64, n: u64, arrangement: Arrangement) -> Result<SegmentsPlan, Error> {
        let shape = Shape::new(n, self.layout.item_bytes);
        let (strategy, reason) = match self.settings.strategy {
            Some(strategy) => {
                self.check(strategy, &shape, arrangement)?;
                (strategy, "forced")
            }
            None => self.choose(m, &shape, arrangement),
        };
        let mut plan = SegmentsPlan {
            m,
            shape,
            arrangement,
            strategy,
            reason,
            grid: 1,
            block: THREADS,
            rows_a_tile: 1,
            chunks_a_block: 1,
            width: 1,
            parts: 1,
            splits: 1,
            short: false,
            abreast: 1,
            item_bytes: self.layout.item_bytes,
            tickets: 0,
            partials: 0,
        };
        let chunks = shape.chunks.max(1);
        // Segments side by side, and groups of them.
        let inner = if let Arrangement::Columns { inner, .. } = arrangement { inner } else { 1 };
        let outer = m.checked_div(inner).unwrap_or(0);
        let blocks = match strategy {
            SegmentStrategy::Cpu => 1,
            SegmentStrategy::Thread | SegmentStrategy::Small => {
                let bytes = n.max(1).saturating_mul(self.layout.item_bytes.max(1) as u64);
                let fit = (TILE_BYTES as u64 / bytes).max(1);
                // Whole passes of the block's threads, unless that leaves more of the tile empty than threads idle.
                let pass = (THREADS / shape.groups.clamp(1, 32)) as u64;
                let whole = fit / pass * pass;
                let fit = if whole * fit.div_ceil(pass) * pass >= fit * fit { whole } else { fit };
                let forced = self.settings.rows_a_tile.map_or(fit, |rows| (rows.max(1) as u64).min(fit));
                plan.rows_a_tile = forced as u32;
                m.div_ceil(forced)
            }
            SegmentStrategy::Warp => m.div_ceil((THREADS / shape.groups) as u64),
            SegmentStrategy::Block => {
                let OperatorLayout { item_bytes, acc_bytes, commutative, any_order, .. } = self.layout;
                let two = commutative
                    && !any_order
                    && takes_two(item_bytes, acc_bytes)
                    && is_half(n, shape.groups, shape.vector);
                plan.block = if two { shape.groups / 2 } else { shape.groups.max(32) };
                m
            }
            SegmentStrategy::Large => {
                plan.block = shape.groups;
                plan.tickets = m;
                plan.partials = m.saturating_mul(chunks);
                let blocks = |chunks_a_block: u64| m.saturating_mul(chunks.div_ceil(chunks_a_block));
                let OperatorLayout { item_bytes, acc_bytes, commutative, any_order, .. } = self.layout;
                let most = if shape.groups < MAX_GROUPS
                    || takes_most(item_bytes, acc_bytes, commutative, any_order)
                        && shape.chunk == shape.lanes() * VECTORS_A_GROUP
                {
                    (most_chunks(acc_bytes, shape.groups) as u64).min(chunks)
                } else {
                    1
                };
                // Rounds of blocks that run at once, each as long as its chunks and what it takes to begin and to end.
                let slots = self.facts.multiprocessors as u64 * LARGE_THREADS / shape.groups as u64;
                let cost = |several: u64| {
                    let rounds = blocks(several).div_ceil(slots.max(1));
                    rounds.saturating_mul(2 * several + LARGE_BEGIN)
                };
                let evenly = |most: u64| chunks.div_ceil(chunks.div_ceil(most));
                let several = [32, 16, 8, 4, 2, 1].map(|several| evenly(most.min(several)));
                let several = if commutative && !any_order {
                    several.into_iter().min_by_key(|&several| cost(several)).unwrap_or(1)
                } else {
                    // Chunk after chunk with a barrier for each: a few, while that leaves each multiprocessor blocks enough.
                    let enough = self.facts.multiprocessors as u64 * BLOCKS_A_MULTIPROCESSOR;
                    let bytes = shape.chunk * item_bytes as u64;
                    let fits = |&several: &u64| {
                        chunks >= 2 * several && blocks(several) >= enough && several * bytes <= BLOCK_BYTES
                    };
                    [8, 4, 2].into_iter().find(fits).unwrap_or(1)
                };
                let several = self.settings.chunks_a_block.map_or(several, |forced| forced as u64);
                plan.chunks_a_block = several.clamp(1, most) as u32;
                blocks(plan.chunks_a_block as u64)
            }
            SegmentStrategy::Columns => {
                // A thread each takes the longer the longer columns are: more of them, so that there is enough to do.
                let OperatorLayout { item_bytes, acc_bytes, any_order, .. } = self.layout;
                let lanes = if any_order { shape.n } else { shape.lanes() };
                let shared = self.is_for_few(m, &shape, inner);
                plan.short = self.layout.commutative
                    && self.settings.width.is_none()
                    && chunks == 1
                    && (shared || lanes <= SHORT_LANES && m.saturating_mul(16) >= lanes.pow(3));
                if plan.short {
                    // Where rows are no vectors of neighbours, one to a thread.
                    let few = abreast(item_bytes, acc_bytes);
                    let gaps = !matches!(arrangement, Arrangement::Columns { dense: true, .. });
                    if shared
                        || m >= MANY_COLUMNS
                            && shape.lanes() <= FEW_LANES
                            && (gaps || inner.is_multiple_of(few as u64))
                    {
                        plan.abreast = few;
                        // Threads share more lanes than one has levels for.
                        plan.parts = if shared { (shape.lanes() / FEW_LANES) as u32 } else { 1 };
                    }
                    plan.width = THREADS;
                    let several = plan.abreast > 1 && n <= shape.vector as u64;
                    let a_block = THREADS * if several { least(n, few as usize) } else { 1 };
                    // Across groups of columns, too.
                    let threads = inner.div_ceil(plan.abreast as u64).saturating_mul(plan.parts as u64);
                    outer.saturating_mul(threads).div_ceil(a_block as u64)
                } else if self.layout.commutative {
                    self.split_wide(&mut plan, inner, 1)
                } else {
                    self.split_columns(&mut plan, inner);
                    let tiles = inner.div_ceil(plan.width as u64);
                    let pieces = chunks * plan.splits as u64;
                    if pieces > 1 {
                        plan.tickets = outer.saturating_mul(tiles);
                        plan.partials = m.saturating_mul(pieces);
                    }
                    outer.saturating_mul(tiles).saturating_mul(pieces)
                }
            }
            SegmentStrategy::Narrow => {
                if shape.groups <= 32 {
                    outer.div_ceil((THREADS / shape.groups) as u64)
                } else {
                    plan.block = shape.groups;
                    if chunks > 1 {
                        plan.tickets = outer;
                        plan.partials = m.saturating_mul(chunks);
                    }
                    outer.saturating_mul(chunks)
                }
            }
            SegmentStrategy::Wide => self.split_wide(&mut plan, inner, self.abreast()),
            SegmentStrategy::Flat => self.split_flat(&mut plan, inner),
            SegmentStrategy::Gather if shape.groups <= 32 => m.div_ceil((THREADS / shape.groups) as u64),
            SegmentStrategy::Gather => {
                plan.block = shape.groups;
                if chunks > 1 {
                    plan.tickets = m;
                    plan.partials = m.saturating_mul(chunks);
                }
                m.saturating_mul(chunks)
            }
        };
        let limit = self.facts.max_grid_x as u64;
        // Blocks of the others go on with another segment when they are done with one.
        let one_each = plan.short
            || strategy == SegmentStrategy::Columns && self.layout.commutative
            || matches!(
                strategy,
                SegmentStrategy::Warp
                    | SegmentStrategy::Block
                    | SegmentStrategy::Large
                    | SegmentStrategy::Narrow
                    | SegmentStrategy::Wide
                    | SegmentStrategy::Flat
            );
        if one_each && blocks > limit {
            return Err(Error::GridTooLarge { n, blocks, limit: self.facts.max_grid_x });
        }
        let most = self.settings.blocks.filter(|_| !one_each).map_or(limit, |most| most.max(1) as u64);
        plan.grid = blocks.min(limit).min(most).max(1) as u32;
        if strategy != SegmentStrategy::Cpu && plan.block > self.facts.max_threads_per_block {
            return Err(Error::BlockTooLarge {
                n,
                threads: plan.block,
                limit: self.facts.max_threads_per_block,
            });
        }
        Ok(plan)
    }

    /// The strategy for segments of a shape.
    fn choose(&self, m: u64, shape: &Shape, arrangement: Arrangement) -> (SegmentStrategy, &'static str) {
        let inner = if let Arrangement::Columns { inner, .. } = arrangement { inner } else { 1 };
        let Arrangement::Rows { stride } = arrangement else {
            return match arrangement {
                // Three of 2^24 `f32` and more: 70 us in place of 72.
                Arrangement::Columns { .. }
                    if self.check(SegmentStrategy::Narrow, shape, arrangement).is_ok()
                        && !(inner == 3 && shape.chunks > 1 && self.is_for_flat(m, shape, inner)) =>
                {
                    (SegmentStrategy::Narrow, "few segments lie side by side")
                }
                Arrangement::Columns { .. } if self.is_for_few(m, shape, inner) => {
                    (SegmentStrategy::Columns, "many short segments lie side by side")
                }
                Arrangement::Columns { .. }
                    if self.is_for_flat(m, shape, inner)
                        && self.check(SegmentStrategy::Flat, shape, arrangement).is_ok() =>
                {
                    (SegmentStrategy::Flat, "long segments lie side by side, as one array")
                }
                Arrangement::Columns { .. }
                    if shape.groups >= WIDE_GROUPS
                        && inner.is_multiple_of(self.abreast() as u64)
                        && self.check(SegmentStrategy::Wide, shape, arrangement).is_ok() =>
                {
                    (SegmentStrategy::Wide, "long segments lie side by side")
                }
                Arrangement::Columns { .. }
                    if self.check(SegmentStrategy::Columns, shape, arrangement).is_ok() =>
                {
                    (SegmentStrategy::Columns, "segments lie side by side")
                }
                _ => (SegmentStrategy::Gather, "items lie at distances"),
            };
        };
        let bytes = shape.n * self.layout.item_bytes as u64;
        let contiguous = stride == shape.n as i64 && bytes <= TILE_BYTES as u64;
        if shape.chunks > 1 {
            return (SegmentStrategy::Large, "several chunks");
        }
        // Straight from memory where that is in whole vectors and neighbouring threads read enough side by side. Items
        // that one thread reads side by side conflict in shared memory; and where there is little to read, the way
        // through it is a detour.
        let vectors = shape.n.div_ceil(shape.vector as u64);
        let words = shape.n.is_multiple_of(shape.vector as u64) && !self.layout.any_order;
        let little = m.saturating_mul(bytes) <= LITTLE_BYTES && vectors >= 2;
        let straight = words && (little || shape.groups >= if self.layout.commutative { 8 } else { 2 });
        match shape.groups {
            // Rows of 133 `f32` take 76 us in place of 80, of 134 71 in place of 89; of 155 77 in place of 73.
            9..=32 if contiguous && self.is_for_small(shape) => {
                (SegmentStrategy::Small, "a warp holds all lanes, and little more than half of it works")
            }
            9..=32 if self.layout.commutative && !self.layout.any_order => {
                (SegmentStrategy::Warp, "a warp holds all lanes, and half of it works at least")
            }
            0..=32 if straight => (SegmentStrategy::Warp, "a warp holds all lanes, in whole vectors"),
            1 if contiguous => (SegmentStrategy::Thread, "a thread holds all lanes"),
            2..=32 if contiguous => (SegmentStrategy::Small, "a warp holds all lanes"),
            0..=32 => (SegmentStrategy::Warp, "a warp holds all lanes, and rows are apart"),
            _ => (SegmentStrategy::Block, "a block holds all lanes"),
        }
    }

    /// Can it fold segments of that shape and arrangement in their order?
    fn check(&self, strategy: SegmentStrategy, shape: &Shape, arrangement: Arrangement) -> Result<(), Error> {
        let unfit = |why: &'static str| Error::StrategyUnfit { strategy: strategy.name(), n: shape.n, why };
        let rows = matches!(arrangement, Arrangement::Rows { .. });
        let contiguous = arrangement == Arrangement::Rows { stride: shape.n as i64 };
        let fits = shape.n.saturating_mul(self.layout.item_bytes as u64) <= TILE_BYTES as u64;
        match strategy {
            SegmentStrategy::Cpu => Err(unfit("it is the CPU's")),
            SegmentStrategy::Thread if shape.groups > 1 => {
                Err(unfit("their lanes are more than a thread holds"))
            }
            SegmentStrategy::Small if !(2..=32).contains(&shape.groups) => {
                Err(unfit("their lanes are those of one thread, or more than a warp holds"))
            }
            SegmentStrategy::Thread | SegmentStrategy::Small if !contiguous => {
                Err(unfit("rows are not side by side"))
            }
            SegmentStrategy::Thread | SegmentStrategy::Small if !fits => {
                Err(unfit("a tile does not hold one"))
            }
            SegmentStrategy::Warp if shape.groups > 32 => {
                Err(unfit("their lanes are more than a warp holds"))
            }
            SegmentStrategy::Block if shape.chunks > 1 => Err(unfit("they have several chunks")),
            SegmentStrategy::Large if shape.chunks <= 1 => Err(unfit("they are one chunk")),
            SegmentStrategy::Warp | SegmentStrategy::Block | SegmentStrategy::Large if !rows => {
                Err(unfit("their items are not side by side"))
            }
            SegmentStrategy::Narrow => {
                let held = if self.layout.any_order { 1 } else { shape.vector as usize };
                match arrangement {
                    Arrangement::Columns { inner, dense: true } if is_narrow(inner) => {
                        if !self.layout.commutative {
                            Err(unfit("their order matters"))
                        } else if shape.vector as usize > MAX_VECTOR {
                            Err(unfit("their items are of one byte"))
                        } else if held * inner as usize * self.layout.acc_bytes > MAX_HELD {
                            Err(unfit("their accumulators are more than a thread holds"))
                        } else {
                            Ok(())
                        }
                    }
                    _ => Err(unfit("they are not 2 to 4 columns without gaps")),
                }
            }
            SegmentStrategy::Flat => match arrangement {
                Arrangement::Columns { inner, dense: true } => {
                    if !self.layout.commutative {
                        Err(unfit("their order matters"))
                    } else if !flat::serves(shape.vector, self.layout.acc_bytes, true) {
                        Err(unfit("a thread does not hold what a vector accumulates"))
                    } else if inner > flat::MAX_INNER {
                        Err(unfit("a chunk has more items than it counts"))
                    } else {
                        Ok(())
                    }
                }
                _ => Err(unfit("they are no columns without gaps")),
            },
            SegmentStrategy::Columns | SegmentStrategy::Wide
                if !matches!(arrangement, Arrangement::Columns { .. }) =>
            {
                Err(unfit("segments do not lie side by side"))
            }
            SegmentStrategy::Columns
                if self.layout.commutative
                    && wide::threads(self.layout.acc_bytes, self.layout.any_order, 1) < wide::FOLD =>
            {
                Err(unfit("a block does not hold what they accumulate"))
            }
            SegmentStrategy::Wide if !self.layout.commutative => Err(unfit("their order matters")),
            SegmentStrategy::Wide if self.abreast() == 1 => {
                Err(unfit("a thread does not hold what several neighbours accumulate"))
            }
            SegmentStrategy::Wide if shape.groups < wide::FOLD => {
                Err(unfit("their lanes are fewer than those of four threads"))
            }
            _ => Ok(()),
        }
    }

    /// Are rows of more than eight groups, which are no whole vectors of four, so short that a tile of them is faster?
    fn is_for_small(&self, shape: &Shape) -> bool {
        let OperatorLayout { acc_bytes, commutative, any_order, .. } = self.layout;
        let most = if shape.n % 4 == 2 { 44 } else { 36 };
        commutative
            && !any_order
            && acc_bytes <= 8
            && shape.vector == 4
            && shape.groups == 16
            && !shape.n.is_multiple_of(4)
            && shape.n.div_ceil(4) <= most
    }

    /// Are columns of more lanes than one thread has best shared by threads of as many warps, several columns each?
    fn is_for_few(&self, m: u64, shape: &Shape, inner: u64) -> bool {
        let OperatorLayout { item_bytes, acc_bytes, commutative, any_order, .. } = self.layout;
        let few = abreast(item_bytes, acc_bytes);
        commutative
            && !any_order
            && self.settings.width.is_none()
            && shape.chunks == 1
            && shape.lanes() > FEW_LANES
            && shape.lanes() <= FEW_LANES * if few > 2 { FEW_PARTS / 2 } else { FEW_PARTS }
            && few > 1
            && inner.is_multiple_of(few as u64)
            && inner >= WIDE_VECTORS as u64
            && m * (shape.lanes() / FEW_LANES) >= 2 * MANY_COLUMNS
    }

    /// Are so many columns side by side faster as one array? Rows of whole vectors, as many as a power of two, are read as well by
    /// *wide*, unless there are several such arrays of few columns; and so are all whose accumulators are large.
    fn is_for_flat(&self, m: u64, shape: &Shape, inner: u64) -> bool {
        let item_bytes = self.layout.item_bytes as u64;
        let whole = inner.is_multiple_of(self.abreast() as u64) && self.abreast() > 1;
        let read_as_well = if self.layout.acc_bytes > 8 {
            whole || inner > 64
        } else {
            whole && inner.is_power_of_two() && inner > if m > inner { 64 } else { 16 }
        };
        shape.groups >= WIDE_GROUPS
            && (inner <= flat::threads(self.layout.acc_bytes) as u64 || self.layout.acc_bytes <= 8 && !whole)
            && !read_as_well
            && m.saturating_mul(shape.n).saturating_mul(item_bytes) >= FLAT_BYTES
            && shape.n.min(shape.chunk).saturating_mul(inner).saturating_mul(item_bytes) >= FLAT_LEAST
    }

    /// How many neighbours a thread of *wide* folds.
    fn abreast(&self) -> u32 {
        let OperatorLayout { item_bytes, acc_bytes, commutative, any_order, .. } = self.layout;
        wide::abreast(item_bytes, acc_bytes, commutative, any_order)
    }

    /// How many columns a block of *wide* takes, `abreast` to a thread, and how many of their groups at once; the number of blocks. So
    /// *columns* are cut, too, if their order does not matter.
    fn split_wide(&self, plan: &mut SegmentsPlan, inner: u64, abreast: u32) -> u64 {
        plan.abreast = abreast;
        let (groups, chunks) = (plan.shape.groups, plan.shape.chunks.max(1));
        let threads = wide::threads(self.layout.acc_bytes, self.layout.any_order, abreast);
        // Short columns need fewer threads: more columns, up to as many as leave groups for the rounds that a block has at most.
        let half = abreast > 1 && groups >= NARROW_GROUPS && self.layout.acc_bytes <= 8;
        let vectors = if half { WIDE_VECTORS / 2 } else { WIDE_VECTORS };
        let most = (threads / groups.min((threads / vectors).max(MAX_GROUPS / wide::MAX_ROUNDS))).max(1);
        let forced = |width: u32| (width / abreast).clamp(1, most);
        let most = self.settings.width.map_or(most, forced) as u64;
        // As many vectors to each tile.
        let vectors = inner.div_ceil(abreast as u64).max(1);
        let vectors = vectors.div_ceil(vectors.div_ceil(most)) as u32;
        plan.width = vectors * abreast;
        plan.parts = ((threads / vectors + 1).next_power_of_two() / 2).min(groups);
        plan.block = vectors * plan.parts;
        let outer = plan.m / inner.max(1);
        let tiles = inner.div_ceil(plan.width as u64);
        let tiles_in_all = outer.saturating_mul(tiles);
        self.split(plan, tiles_in_all, wide::MAX_ROUNDS, WIDE_RESIDENT);
        tiles_in_all.saturating_mul(chunks * plan.splits as u64)
    }

    /// How many blocks share a chunk of a tile of columns, of which there are so many: so that rounds of blocks, of which a
    /// multiprocessor has `resident` at once, are full, against what it takes one to begin.
    fn split(&self, plan: &mut SegmentsPlan, tiles_in_all: u64, most_rounds: u32, resident: u64) {
        let (groups, chunks) = (plan.shape.groups, plan.shape.chunks.max(1));
        let (shape, width) = (plan.shape, plan.width);
        let cost = |splits| self.rounds(&shape, width, tiles_in_all, splits, resident, WIDE_BEGIN);
        let mut splits = groups.div_ceil(plan.parts * most_rounds).next_power_of_two();
        plan.splits = splits;
        while splits < MAX_SPLITS && plan.parts * splits * 2 <= groups {
            splits *= 2;
            if cost(splits) < cost(plan.splits) {
                plan.splits = splits;
            }
        }
        let pieces = chunks * plan.splits as u64;
        if pieces > 1 {
            plan.tickets = tiles_in_all.saturating_mul(wide::tickets(chunks as u32));
            plan.partials = plan.m.saturating_mul(pieces + wide::lane_values(chunks as u32));
        }
    }

    /// How long it takes, in bytes that a block reads, if so many blocks share a chunk of each tile: whole rounds of blocks, of which a
    /// multiprocessor has `resident` at once, each of what it reads and what it takes to begin. Those of a last chunk that is short fit
    /// in what the others leave of the last round, as often as they are shorter, or come after it.
    fn rounds(
        &self,
        shape: &Shape,
        width: u32,
        tiles_in_all: u64,
        splits: u32,
        resident: u64,
        begin: u64,
    ) -> u64 {
        let Shape { n, chunk, chunks, .. } = *shape;
        let (chunk, chunks) = (chunk.min(n).max(1), chunks.max(1));
        let slots = (self.facts.multiprocessors as u64 * resident).max(1);
        let a_chunk = tiles_in_all.saturating_mul(splits as u64);
        let blocks = a_chunk.saturating_mul(chunks);
        let a_row = (width as usize * self.layout.item_bytes) as u64;
        let block = |rows: u64| {
            let bytes = rows * a_row;
            // A multiprocessor that has but one block gives it more.
            let bytes = if blocks <= slots / resident { bytes * 3 / 4 } else { bytes };
            bytes / splits as u64 + begin
        };
        let left = n - chunk * (chunks - 1);
        let short = if left < chunk { a_chunk } else { 0 };
        let rounds = (blocks - short).div_ceil(slots);
        let free = (rounds * slots - (blocks - short)).saturating_mul(block(chunk) / block(left));
        let after = short.saturating_sub(free).div_ceil(slots);
        rounds.saturating_mul(block(chunk)).saturating_add(after.saturating_mul(block(left)))
    }

    /// How many groups of all columns a block of *flat* folds at once; the number of blocks.
    fn split_flat(&self, plan: &mut SegmentsPlan, inner: u64) -> u64 {
        let vector = plan.shape.vector;
        let threads = flat::threads(self.layout.acc_bytes);
        // Tiles of as many columns each, all of them in one if they fit.
        let most = FLAT_WIDTH.min(threads - 2 * vector) as u64;
        let tiles = if inner > threads as u64 { inner.div_ceil(most) } else { 1 };
        let (mut cost, mut blocks) = self.cut_flat(plan, inner, tiles);
        // Narrower ones, if their blocks fill rounds better: 301 columns take 83 us in two, and 69 in three.
        let mut more = tiles + 1;
        while tiles > 1 && self.layout.acc_bytes <= 8 && inner.div_ceil(more) >= FLAT_NARROW as u64 {
            let mut other = *plan;
            let (other_cost, other_blocks) = self.cut_flat(&mut other, inner, more);
            if other_cost < cost {
                (*plan, cost, blocks) = (other, other_cost, other_blocks);
            }
            more += 1;
        }
        let pieces = plan.shape.chunks.max(1) * plan.splits as u64;
        if pieces > 1 {
            let outer = blocks / pieces;
            plan.tickets = outer.saturating_mul(wide::tickets(plan.shape.chunks.max(1) as u32));
            plan.partials =
                plan.m.saturating_mul(pieces + wide::lane_values(plan.shape.chunks.max(1) as u32));
        }
        blocks
    }

    /// The same in so many tiles: how long that takes, to compare with that of others, and the number of blocks.
    fn cut_flat(&self, plan: &mut SegmentsPlan, inner: u64, tiles: u64) -> (u64, u64) {
        let (shape, small) = (plan.shape, self.layout.acc_bytes <= 8);
        let (groups, chunks, vector) = (shape.groups, shape.chunks.max(1), shape.vector);
        plan.width = inner.max(1).div_ceil(tiles) as u32;
        if tiles > 1 {
            plan.width = plan.width.next_multiple_of(vector);
        }
        let a_row = if tiles > 1 { vector * flat::a_row(plan.width, vector) } else { plan.width };
        let threads = flat::threads(self.layout.acc_bytes);
        plan.parts = ((threads / a_row + 1).next_power_of_two() / 2).clamp(1, groups);
        plan.block = plan.parts * a_row;
        let outer = (plan.m / inner.max(1)).saturating_mul(inner.div_ceil(plan.width as u64));
        let a_lane = plan.width as u64 * self.layout.item_bytes as u64;
        let bytes = shape.chunk.min(shape.n) * a_lane;
        let least = groups.div_ceil(plan.parts * flat::MAX_ROUNDS).next_power_of_two();
        plan.splits = least;
        let (width, block) = (plan.width, plan.block);
        let resident = flat::resident(vector, self.layout.acc_bytes, block) as u64;
        let slots = (self.facts.multiprocessors as u64 * resident).max(1);
        let mut splits = least;
        let few = |splits: u32| outer.saturating_mul(chunks * splits as u64) < slots;
        let cost = |splits: u32| {
            if tiles == 1 {
                return self.rounds(&shape, width, outer, splits, resident, FLAT_BEGIN);
            }
            // Blocks of the last chunk whose lanes have one item take nearly as long as those of others; they come last.
            let a_split = shape.lanes() / splits as u64;
            let left = shape.n - shape.chunk * (chunks - 1);
            let short = if 4 * left < a_split { 0 } else { left.div_ceil(a_split).min(splits as u64) };
            let blocks = outer.saturating_mul((chunks - 1) * splits as u64 + short);
            let rounds = blocks.div_ceil(slots).max(1);
            // Those that a multiprocessor has at once share what it reads, and wait more where they are few.
            let abreast = blocks.div_ceil(self.facts.multiprocessors as u64).clamp(1, resident);
            let cost = rounds.saturating_mul(abreast * (bytes / splits as u64 + FLAT_BEGIN));
            if abreast < resident { cost / 8 * 9 } else { cost }
        };
        // 64 columns of 2^20 `f32` take 77 us by blocks that share a chunk by twos, and 73 by fours; others take less by the fewer.
        let short = !small || inner.is_power_of_two() && inner > 16;
        while splits < flat::MAX_SPLITS
            && plan.parts * splits * 2 <= groups
            && bytes / splits as u64 > if !small || few(splits) { FLAT_LEAST } else { FLAT_MOST }
        {
            splits *= 2;
            if short || cost(splits) < cost(plan.splits) {
                plan.splits = splits;
            }
        }
        // One of five warps keeps one of four schedulers longer.
        let cost = cost(plan.splits);
        let cost = if block.div_ceil(32) == 5 { cost / 3 * 4 } else { cost };
        (cost, outer.saturating_mul(chunks * plan.splits as u64))
    }

    /// How many columns a block of *columns* takes where order matters, and how many threads share each.
    fn split_columns(&self, plan: &mut SegmentsPlan, inner: u64) {
        let most = column_threads(self.layout.acc_bytes);
        let shape = plan.shape;
        // The threads of a column share its parts; the rest of them have its neighbours.
        let parts = shape.chunk.min(shape.n).div_ceil(shape.part()).max(1).next_power_of_two() as u32;
        let fit = (most / parts).max(1);
        let width = self.settings.width.map_or(fit, |width| width.clamp(1, fit));
        plan.width = (width as u64).min(inner.max(1)) as u32;
        plan.parts = parts;
        plan.block = plan.width * plan.parts;
    }
}

impl SegmentsPlan {
    /// The kernel that runs it, the last part of an entry point's name; `"cpu"` on the CPU.
    pub const fn kernel(&self) -> &'static str {
        match self.strategy {
            SegmentStrategy::Cpu => "cpu",
            SegmentStrategy::Thread => "rows_thread",
            SegmentStrategy::Small => "rows_small",
            SegmentStrategy::Warp => "rows_warp",
            SegmentStrategy::Block => "rows_block",
            SegmentStrategy::Large if self.shape.groups < MAX_GROUPS || self.chunks_a_block > 1 => {
                "rows_short"
            }
            SegmentStrategy::Large => "rows_long",
            SegmentStrategy::Columns if self.abreast > 1 => "columns_few",
            SegmentStrategy::Columns if self.short => "columns_short",
            SegmentStrategy::Columns => "columns",
            SegmentStrategy::Narrow => "narrow",
            SegmentStrategy::Wide => "wide",
            SegmentStrategy::Flat => "flat",
            SegmentStrategy::Gather => "gather",
        }
    }

    /// The plan of segments that the CPU folds.
    pub fn cpu(m: u64, n: u64, arrangement: Arrangement, layout: OperatorLayout) -> SegmentsPlan {
        SegmentsPlan {
            m,
            shape: Shape::new(n, layout.item_bytes),
            arrangement,
            strategy: SegmentStrategy::Cpu,
            reason: "on the CPU",
            grid: 1,
            block: 1,
            rows_a_tile: 1,
            chunks_a_block: 1,
            width: 1,
            parts: 1,
            splits: 1,
            short: false,
            abreast: 1,
            item_bytes: layout.item_bytes,
            tickets: 0,
            partials: 0,
        }
    }

    /// The plan in words, for people: what [`Display`](fmt::Display) prints.
    pub fn explain(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for SegmentsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { n, vector, groups, chunk, chunks } = self.shape;
        writeln!(f, "{} segments of {n} items of {} bytes", self.m, self.item_bytes)?;
        writeln!(
            f,
            "order      {chunks} {} of {} items, {groups} x {vector} lanes",
            if chunks == 1 { "chunk" } else { "chunks" },
            chunk.min(n)
        )?;
        writeln!(f, "strategy   {}: {}", self.strategy, self.reason)?;
        if self.strategy == SegmentStrategy::Cpu {
            return write!(f, "runs as    tasks on the CPU");
        }
        write!(f, "runs as    {}<<<{}, {}>>>", self.kernel(), self.grid, self.block)?;
        match self.strategy {
            SegmentStrategy::Thread | SegmentStrategy::Small => {
                write!(f, ", {} segments a tile", self.rows_a_tile)?
            }
            SegmentStrategy::Large => write!(f, ", {} chunks a block", self.chunks_a_block)?,
            SegmentStrategy::Columns | SegmentStrategy::Wide | SegmentStrategy::Flat => {
                if self.abreast > 1 && self.strategy == SegmentStrategy::Columns {
                    return write!(f, ", {} segments a thread\nworkspace  none", self.abreast);
                }
                write!(f, ", {} segments a block, {} threads each", self.width, self.parts)?;
                if self.splits > 1 {
                    write!(f, ", {} blocks a chunk", self.splits)?;
                }
            }
            _ => (),
        }
        write!(f, "\nworkspace  {} counters, {} values", self.tickets, self.partials)
    }
}

#[cfg(test)]
mod tests {
    use warpfold_monoid::{Compose, Max, Sum};

    use super::*;

    fn planner<Op: warpfold_monoid::Monoid>() -> SegmentPlanner {
        SegmentPlanner::new(OperatorLayout::of::<Op>(), &DeviceFacts::H100)
    }

    fn rows(n: u64) -> Arrangement {
        Arrangement::Rows { stride: n as i64 }
    }

    #[test]
    fn the_chooser_follows_length_and_arrangement() {
        let chosen = |m, n| planner::<Sum<f32>>().plan(m, n, rows(n)).unwrap().strategy;
        let m = 1 << 22;
        assert_eq!([1, 4, 16].map(|n| chosen(m, n)), [SegmentStrategy::Thread; 3]);
        assert_eq!([17, 64, 127].map(|n| chosen(m, n)), [SegmentStrategy::Small; 3]);
        assert_eq!([128, 132, 155, 511, 512].map(|n| chosen(m, n)), [SegmentStrategy::Warp; 5]);
        assert_eq!([129, 143, 150].map(|n| chosen(m, n)), [SegmentStrategy::Small; 3]);
        assert_eq!([513, 8192].map(|n| chosen(m, n)), [SegmentStrategy::Block; 2]);
        assert_eq!([8193, 1 << 30].map(|n| chosen(3, n)), [SegmentStrategy::Large; 2]);
        let block = |n| planner::<Sum<f32>>().plan(m, n, rows(n)).unwrap().block;
        assert_eq!(
            [513, 640, 641, 1024, 1025].map(block),
            [32, 32, 64, 64, 64],
            "two groups a thread, or one"
        );
        assert_eq!([8, 64].map(|n| chosen(1000, n)), [SegmentStrategy::Warp; 2], "little to read");
        let apart = Arrangement::Rows { stride: 100 };
        assert_eq!(planner::<Sum<f32>>().plan(m, 17, apart).unwrap().strategy, SegmentStrategy::Warp);
        let columns = |inner| Arrangement::Columns { inner, dense: true };
        let of = |inner, n| planner::<Sum<f32>>().plan(inner, n, columns(inner)).unwrap().strategy;
        assert_eq!(
            [(2, 1000), (4, 1000), (8, 1000), (1000, 1000), (1000, 16)].map(|(inner, n)| of(inner, n))[..],
            {
                use SegmentStrategy::{Columns, Narrow, Wide};
                [Narrow, Narrow, Wide, Wide, Columns]
            }
        );
        let ordered = planner::<Compose<f32>>().plan(3, 1000, columns(3)).unwrap();
        assert_eq!(ordered.strategy, SegmentStrategy::Columns, "order matters");
        assert_eq!(
            planner::<Max<i32>>().plan(9, 9, Arrangement::Axes).unwrap().strategy,
            SegmentStrategy::Gather
        );
    }

    #[test]
    fn only_time_depends_on_facts_and_settings() {
        for n in [5, 300, 5000, 100_000, 10_000_000] {
            let reference = planner::<Sum<f32>>().plan(77, n, rows(n)).unwrap().shape;
            for multiprocessors in [1, 20, 144] {
                let facts = DeviceFacts { multiprocessors, ..DeviceFacts::H100 };
                let planner = SegmentPlanner::new(OperatorLayout::of::<Sum<f32>>(), &facts);
                for strategy in SegmentStrategy::ALL.map(Some).into_iter().chain([None]) {
                    let settings =
                        SegmentSettings { strategy, blocks: Some(3), ..SegmentSettings::default() };
                    if let Ok(plan) = planner.with(settings).plan(77, n, rows(n)) {
                        assert_eq!(plan.shape, reference, "{plan}");
                    }
                }
            }
        }
    }

    #[test]
    fn work_covers_all_segments_and_blocks_fit() {
        for (m, n) in [(1, 1), (1 << 33, 3), (1 << 20, 100), (5000, 5000), (3, 1 << 33), (1 << 16, 1 << 16)] {
            let plan = planner::<Sum<f32>>().plan(m, n, rows(n)).unwrap();
            assert!(
                plan.block <= 1024 && plan.grid >= 1 && plan.grid <= DeviceFacts::H100.max_grid_x,
                "{plan}"
            );
            if plan.strategy == SegmentStrategy::Large {
                assert_eq!(plan.partials, m * plan.shape.chunks, "{plan}");
                let blocks_a_row = plan.shape.chunks.div_ceil(plan.chunks_a_block as u64);
                assert_eq!(plan.grid as u64, m * blocks_a_row, "{plan}");
            }
        }
        for (outer, n, inner) in
            [(1, 1 << 20, 8), (7, 100, 100), (1, 4, 1 << 24), (1000, 10_000, 5), (9, 64, 99)]
        {
            let columns = Arrangement::Columns { inner, dense: false };
            let plan = planner::<Sum<f32>>().plan(outer * inner, n, columns).unwrap();
            let a_thread = if plan.strategy == SegmentStrategy::Wide { plan.abreast } else { 1 };
            assert_eq!(plan.block * a_thread, plan.width * plan.parts, "{plan}");
            assert!(
                plan.block <= THREADS && (plan.parts * plan.splits) as u64 <= plan.shape.lanes(),
                "{plan}"
            );
        }
    }

    #[test]
    fn what_cannot_be_is_an_error_with_numbers() {
        let forced = |strategy| {
            planner::<Sum<f32>>()
                .with(SegmentSettings { strategy: Some(strategy), ..SegmentSettings::default() })
        };
        let error = forced(SegmentStrategy::Thread).plan(5, 17, rows(17)).unwrap_err();
        assert!(matches!(error, Error::StrategyUnfit { strategy: "thread", n: 17, .. }), "{error}");
        let error = forced(SegmentStrategy::Block).plan(1 << 32, 600, rows(600)).unwrap_err();
        assert!(matches!(error, Error::GridTooLarge { n: 600, blocks: 4294967296, .. }), "{error}");
        let facts = DeviceFacts { max_threads_per_block: 128, ..DeviceFacts::H100 };
        let error =
            SegmentPlanner::new(OperatorLayout::of::<Sum<f32>>(), &facts).plan(9, 20, rows(20)).unwrap_err();
        assert!(matches!(error, Error::BlockTooLarge { threads: 256, limit: 128, .. }), "{error}");
    }

    #[test]
    fn the_explanation_names_strategy_and_reason() {
        let text = planner::<Sum<f32>>().plan(100, 100_000, rows(100_000)).unwrap().explain();
        assert!(text.contains("100 segments of 100000 items of 4 bytes"), "{text}");
        assert!(text.contains("large: several chunks") && text.contains("rows_short<<<"), "{text}");
    }
}
