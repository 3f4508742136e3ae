//! The launches of a reduction by tag.

use warpfold_gpu_kernels::tags::{
    FOLD_THREADS, TagParams, fold_tags, gather, partition,
    sorted::{self, SortedParams},
    width,
};
use warpfold_monoid::{
    Atomic, Monoid,
    keyed::{LANES, TAG_STRIP, TagShape, table_bytes},
};

use super::DeviceFacts;
use crate::{Error, Tag};

/// A launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagLaunch {
    pub(crate) kernel: &'static str,
    /// Blocks, a block's threads, and its dynamic shared memory in bytes.
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) shared: u32,
    cut: Cut,
}

/// How a launch cuts items and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    chunk: u64,
    chunks: u64,
    range: u64,
    copies: u32,
    floats: bool,
}

/// A launch's kernel, blocks, a block's threads, and its dynamic shared memory.
type Launch = (&'static str, u64, u32, u32);

/// What a reduction by tag launches, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagPlan {
    pub(crate) n: u64,
    pub(crate) k: u64,
    /// One after the other; none has no blocks.
    pub(crate) launches: Vec<TagLaunch>,
    /// Values between them, and bytes that say which of them are there.
    pub(crate) partials: u64,
    pub(crate) present: u64,
    lists: u64,
}

/// Items for each multiprocessor, at least, for which values are gathered rather than combined in order, where either will do.
const WORTH_GATHERING: u64 = 4096;

/// Ranges of tags, at most, for which blocks look at all items: where values are added; where they are combined, global memory is
/// faster than a second look, because most change nothing there.
const MOST_RANGES: u64 = 3;
const MOST_COMBINED: u64 = 1;

/// Items for each multiprocessor, at least, for which pairs are split into lists rather than added in global memory, and items at most.
const WORTH_SPLITTING: u64 = 1 << 15;
const MOST_SPLIT: u64 = 1 << 31;

/// Ranges, at most, that are faster than lists where values are of 8 bytes; of 4 bytes all are.
const MOST_LONG_RANGES: u64 = 2;

/// Lists that there are at least, if there are as many tags, and at most where tables have places for numbers out of scale.
const FEW_LISTS: u64 = 32;
const MANY_LISTS: u64 = 128;

/// Blocks of a list of common length, at most.
const MOST_PARTS: u64 = 16;

/// Copies of a block's table, at most, as a power of two: one for each lane.
const MOST_COPIES: u32 = LANES.ilog2();

/// Rows of a chunk that a block gathers, at least.
const LEAST_ROWS: u64 = 4;

impl TagPlan {
    /// A reduction into results.
    pub(crate) fn new<Op: Monoid>(n: u64, k: u64, facts: &DeviceFacts) -> Result<TagPlan, Error> {
        let short = n < WORTH_GATHERING * facts.multiprocessors as u64;
        let any_way = short && TagShape::of::<Op>(n, k).ranges() == 1;
        if !gather::serves::<Op>() || k == 0 || any_way {
            return TagPlan::in_order::<Op>(n, k, facts);
        }
        match TagPlan::split::<Op>(n, k, facts) {
            Some(plan) => plan,
            None => TagPlan::gathered::<Op>(n, k, facts),
        }
    }

    /// One by lists, where that is worth while.
    fn split<Op: Monoid>(n: u64, k: u64, facts: &DeviceFacts) -> Option<Result<TagPlan, Error>> {
        let multiprocessors = (facts.multiprocessors as u64).max(1);
        let most = (facts.most_shared_bytes_per_block as u64).saturating_sub(partition::STATIC_BYTES as u64);
        let (entry, wide) = (gather::entry_bytes::<Op>(false) as u64, gather::entry_bytes::<Op>(true) as u64);
        let worth = n >= WORTH_SPLITTING * multiprocessors && n / 4 >= k && n <= MOST_SPLIT;
        let tile = partition::tile::<Op>();
        let swept = if entry <= 4 { MOST_RANGES } else { MOST_LONG_RANGES };
        if !partition::serves::<Op>() || !worth || k * entry <= swept * most {
            return None;
        }
        // Tables with places for numbers out of scale, if lists are not too many then.
        let fits =
            |entry: u64| (most / entry).checked_ilog2().map(|log| log.min(partition::MOST_RANGE.ilog2()));
        let range = fits(wide)
            .filter(|&log| k.div_ceil(1 << log) <= MANY_LISTS)
            .or_else(|| fits(entry))
            .map(|log| 1 << log.min(k.div_ceil(FEW_LISTS).next_power_of_two().ilog2()))?;
        let lists = k.div_ceil(range);
        let tile_bytes = partition::tile_places(tile, lists) * partition::pair_bytes::<Op>() as u64;
        if lists > partition::MOST_LISTS as u64 || tile_bytes > most {
            return None;
        }
        let floats = wide > entry && range * wide <= most;
        let table = range * if floats { wide } else { entry };
        // Blocks of a list, as many as leave few multiprocessors without work where all lists are equally long, and of those as few.
        let parts = (1..=MOST_PARTS)
            .min_by_key(|parts| (lists * parts).div_ceil(multiprocessors) * 1000 * (50 + parts) / parts)
            .unwrap_or(1);
        let shares = (lists * parts + lists / 2).max(n / gather::MOST_ITEMS).max(1);
        let tiles = n.div_ceil(tile);
        let room = partition::Lists::of(lists, tiles, tile, size_of::<Op::Item>() as u64);
        let simple = k.div_ceil(gather::SIMPLE_THREADS as u64).min(8 * multiprocessors);
        let launches = [
            ("clear", simple, gather::SIMPLE_THREADS, 0),
            (
                partition::KERNELS[0],
                tiles.div_ceil(partition::TILES),
                partition::SPLIT_THREADS,
                tile_bytes as u32,
            ),
            (partition::KERNELS[1], shares + lists, partition::SUM_THREADS, table as u32),
            ("settle", simple, gather::SIMPLE_THREADS, 0),
        ];
        let plan = TagPlan { n, k, launches: Vec::new(), partials: k, present: room.bytes, lists };
        let cut = Cut { chunk: tile, chunks: tiles, range, copies: 0, floats };
        // What is gathered at once is for tags that repeat, of which warps keep values in registers: ranges would look at each pair again.
        let scattered = TagPlan::scattered(n, k, multiprocessors);
        let [clear, rest @ ..] = launches;
        Some(
            plan.with([clear], cut, facts)
                .and_then(|plan| plan.with([scattered.0], scattered.1, facts))
                .and_then(|plan| plan.with(rest, cut, facts)),
        )
    }

    /// The launch that gathers in global memory.
    fn scattered(n: u64, k: u64, multiprocessors: u64) -> (Launch, Cut) {
        let threads = gather::SCATTER_THREADS;
        let share = n.div_ceil((multiprocessors * gather::RESIDENT as u64).max(1));
        let chunk = share.max(LEAST_ROWS * threads as u64 * TAG_STRIP).next_multiple_of(TAG_STRIP);
        let chunk = chunk.min(gather::MOST_ITEMS);
        let chunks = n.div_ceil(chunk);
        (("scatter", chunks, threads, 0), Cut { chunk, chunks, range: k, copies: 0, floats: false })
    }

    /// One in the order of [`TagShape`].
    pub(crate) fn in_order<Op: Monoid>(n: u64, k: u64, facts: &DeviceFacts) -> Result<TagPlan, Error> {
        let shape = TagShape::of::<Op>(n, k);
        let units = shape.chunks.saturating_mul(shape.ranges());
        let blocks = units.div_ceil(shape.warps as u64);
        let fold = k.div_ceil(fold_tags(shape.fold_lanes()) as u64);
        let block = shape.warps * LANES;
        let table = table_bytes(shape.range, size_of::<Op::Acc>(), shape.few);
        let first = if shape.few { "few" } else { "many" };
        let launches = [(first, blocks, block, shape.warps * table as u32), ("fold", fold, FOLD_THREADS, 0)];
        let partials = k * shape.chunks;
        let cut =
            Cut { chunk: shape.chunk, chunks: shape.chunks, range: shape.range, copies: 0, floats: false };
        let plan = TagPlan { n, k, launches: Vec::new(), partials, present: partials, lists: 0 };
        plan.with(launches, cut, facts)
    }

    /// One by atomic updates.
    fn gathered<Op: Monoid>(n: u64, k: u64, facts: &DeviceFacts) -> Result<TagPlan, Error> {
        let multiprocessors = (facts.multiprocessors as u64).max(1);
        let most = facts.most_shared_bytes_per_block as u64;
        let apart = facts.shared_bytes_per_multiprocessor as u64 / gather::RESIDENT as u64;
        // As two blocks of a multiprocessor share it, but for what each takes beside.
        let share = apart.saturating_sub(1 << 10).min(most).saturating_sub(gather::STATIC_BYTES as u64);
        let alone = most.saturating_sub(gather::STATIC_BYTES as u64);
        let (entry, least_entry) =
            (gather::entry_bytes::<Op>(true) as u64, gather::entry_bytes::<Op>(false) as u64);
        let (room, entry, resident) = if k * entry <= share {
            (share, entry, gather::RESIDENT as u64)
        } else if k * entry <= alone {
            (alone, entry, 1)
        } else if k * least_entry <= share {
            (share, least_entry, gather::RESIDENT as u64)
        } else {
            (alone, least_entry, 1)
        };
        let fits = (room / entry / 16 * 16).max(1);
        let ranges = k.div_ceil(fits);
        let combined = matches!(Op::ATOMIC, Atomic::Combine);
        let simple = k.div_ceil(gather::SIMPLE_THREADS as u64).min(8 * multiprocessors);
        let simple = |kernel| (kernel, simple, gather::SIMPLE_THREADS, 0);
        let (launch, cut) = if ranges > if combined { MOST_COMBINED } else { MOST_RANGES } {
            TagPlan::scattered(n, k, multiprocessors)
        } else {
            let range = k.div_ceil(ranges);
            let ranges = k.div_ceil(range);
            let copies = (room / (range * entry)).max(1).ilog2().min(MOST_COPIES);
            let (kernel, threads) = match resident {
                1 => (gather::KERNELS[1], gather::LONE_THREADS),
                _ => (gather::KERNELS[0], gather::threads::<Op>()),
            };
            let share = n.div_ceil((multiprocessors * resident / ranges).max(1));
            // A block's own share of the tags is to be less work than its items.
            let chunk = share.max(LEAST_ROWS * threads as u64 * TAG_STRIP).max(2 * range);
            let chunk = chunk.next_multiple_of(TAG_STRIP).min(gather::MOST_ITEMS);
            let chunks = n.div_ceil(chunk);
            let shared = ((range << copies) * entry).next_multiple_of(16) as u32;
            let cut = Cut { chunk, chunks, range, copies, floats: entry > least_entry };
            ((kernel, chunks * ranges, threads, shared), cut)
        };
        let plan = TagPlan { n, k, launches: Vec::new(), partials: k, present: 0, lists: 0 };
        plan.with([simple("clear"), launch, simple("settle")], cut, facts)
    }

    /// The same with those of these launches that have blocks.
    fn with<const N: usize>(
        mut self,
        launches: [Launch; N],
        cut: Cut,
        facts: &DeviceFacts,
    ) -> Result<TagPlan, Error> {
        let n = self.n;
        for (kernel, blocks, block, shared) in launches {
            if blocks > facts.max_grid_x as u64 {
                return Err(Error::GridTooLarge { n, blocks, limit: facts.max_grid_x });
            }
            if block > facts.max_threads_per_block {
                return Err(Error::BlockTooLarge { n, threads: block, limit: facts.max_threads_per_block });
            }
            if blocks > 0 {
                self.launches.push(TagLaunch { kernel, grid: blocks as u32, block, shared, cut });
            }
        }
        Ok(self)
    }

    /// The parameters of one of its launches.
    pub(crate) fn params<Op: Monoid>(&self, launch: &TagLaunch, op: Op, at: &Places) -> TagParams<Op> {
        let place = std::ptr::with_exposed_provenance_mut::<u8>;
        TagParams {
            tags: place(at.tags),
            values: place(at.values).cast(),
            n: self.n,
            output: place(at.output).cast(),
            partials: place(at.partials).cast(),
            present: place(at.present),
            first_bad: place(at.first_bad).cast(),
            chunk: launch.cut.chunk,
            k: self.k as u32,
            chunks: launch.cut.chunks as u32,
            range: launch.cut.range as u32,
            width: at.width,
            copies: launch.cut.copies,
            floats: launch.cut.floats as u32,
            lists: self.lists as u32,
            base: at.base,
            kept: place(at.kept).cast(),
            held: place(at.held),
            op,
        }
    }
}

/// Where things lie: addresses, with provenance exposed where they are the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) tags: usize,
    pub(crate) width: u32,
    pub(crate) values: usize,
    pub(crate) output: usize,
    pub(crate) partials: usize,
    pub(crate) present: usize,
    pub(crate) first_bad: usize,
    /// Items before the first.
    pub(crate) base: u64,
    /// Values that what is found is added to, and whether they are there; 0 for results.
    pub(crate) kept: usize,
    pub(crate) held: usize,
}

/// What stands around the sort of a reduction by tag, and around its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortedPlan {
    n: u64,
    k: u64,
    /// Blocks of the launch before, and of that behind.
    pub(crate) number: u32,
    pub(crate) spread: u32,
}

impl SortedPlan {
    /// That of a reduction, if it goes that way.
    pub(crate) fn of<Op: Monoid>(n: u64, k: u64, facts: &DeviceFacts) -> Option<SortedPlan> {
        if n == 0 || !sorted::serves::<Op>() || !TagShape::of::<Op>(n, k).sorted {
            return None;
        }
        let most = 8 * (facts.multiprocessors as u64).max(1);
        let blocks =
            |items: u64| items.div_ceil(sorted::THREADS as u64).min(most).min(facts.max_grid_x as u64);
        let number = blocks(k.max(n.div_ceil(sorted::IN_FLIGHT as u64)));
        Some(SortedPlan { n, k, number: number as u32, spread: blocks(n.min(k)) as u32 })
    }

    /// Do tags of that type have to be made keys? Those of 32 bits are keys, if they are out of range too.
    pub(crate) fn makes_keys<T: Tag>() -> bool {
        T::WIDTH != width::WORD
    }

    /// The parameters of the kernels.
    pub(crate) fn params<Op: Monoid>(&self, op: Op, at: &SortedPlaces) -> SortedParams<Op> {
        let place = std::ptr::with_exposed_provenance_mut::<u8>;
        SortedParams {
            tags: place(at.tags),
            n: self.n,
            keys: place(at.keys).cast(),
            output: place(at.output).cast(),
            first_bad: place(at.first_bad).cast(),
            run_keys: place(at.run_keys).cast(),
            run_values: place(at.run_values).cast(),
            count: place(at.count).cast(),
            k: self.k as u32,
            width: at.width,
            op,
        }
    }
}

/// Where things lie: addresses, with provenance exposed where they are the host's; 0 for what is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedPlaces {
    pub(crate) tags: usize,
    pub(crate) width: u32,
    pub(crate) keys: usize,
    pub(crate) output: usize,
    pub(crate) first_bad: usize,
    pub(crate) run_keys: usize,
    pub(crate) run_values: usize,
    pub(crate) count: usize,
}
