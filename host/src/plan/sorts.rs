//! The launches of a sort of pairs.

use warpfold_gpu_kernels::sort::{
    BINS, COUNTED, FirstParams, GATHER_TILE, GatherParams, Key, Payload, SortParams, THREADS, TILE,
    record_pairs,
};

use super::DeviceFacts;
use crate::Error;

/// The most blocks that count digits, for each multiprocessor: each adds what it has counted to all others' in global memory.
const COUNTING_BLOCKS: u32 = 4;

/// What lies in a sort's room begins at multiples of so many bytes.
const ALIGN: u64 = 256;

/// What a sort launches, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortPlan {
    pub(crate) n: u64,
    /// Blocks of a pass: a tile each.
    pub(crate) tiles: u32,
    /// Blocks that count digits.
    pub(crate) counting: u32,
    /// Passes by all digits, at most, and the first of those by upper digits alone.
    pub(crate) digits: u32,
    pub(crate) upper: u32,
    /// Pairs of words of workspace.
    pub(crate) pairs: u64,
    key_bytes: u64,
    value_bytes: u64,
}

/// Where things lie: addresses, with provenance exposed where they are the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortPlaces {
    pub(crate) keys: usize,
    /// 0 for positions.
    pub(crate) values: usize,
    /// [`SortPlan::bytes`].
    pub(crate) room: usize,
    pub(crate) counter: usize,
    pub(crate) records: usize,
    /// Pairs of words at `records`.
    pub(crate) capacity: u64,
}

impl SortPlan {
    /// The launches for at least one pair.
    pub(crate) fn new<K: Key, V: Payload>(n: u64, facts: &DeviceFacts) -> Result<SortPlan, Error> {
        let limit = u32::MAX as u64;
        if n > limit {
            return Err(Error::TooManyToSort { items: n, limit });
        }
        if THREADS > facts.max_threads_per_block {
            let limit = facts.max_threads_per_block;
            return Err(Error::BlockTooLarge { n, threads: THREADS, limit });
        }
        let blocks = n.div_ceil(TILE as u64);
        if blocks > facts.max_grid_x as u64 {
            return Err(Error::GridTooLarge { n, blocks, limit: facts.max_grid_x });
        }
        let most = facts.multiprocessors.saturating_mul(COUNTING_BLOCKS).clamp(1, facts.max_grid_x);
        Ok(SortPlan {
            n,
            tiles: blocks as u32,
            counting: n.div_ceil(COUNTED as u64).min(most as u64) as u32,
            digits: K::DIGITS,
            upper: K::UPPER,
            pairs: record_pairs(blocks),
            key_bytes: size_of::<K>() as u64,
            value_bytes: size_of::<V>() as u64,
        })
    }

    /// Bytes of the counts of all digits.
    pub(crate) fn count_bytes(&self) -> u64 {
        self.digits as u64 * (BINS * size_of::<u32>()) as u64
    }

    /// Where the parts of the room begin: sorted keys and values, as many aside, offsets, steps; and where it ends. Counts come first.
    fn parts(&self) -> [u64; 7] {
        let keys = (self.n * self.key_bytes).next_multiple_of(ALIGN);
        let values = (self.n * self.value_bytes).next_multiple_of(ALIGN);
        let mut at = 0;
        [self.count_bytes(), keys, values, keys, values, self.count_bytes(), ALIGN].map(|bytes| {
            at += bytes;
            at
        })
    }

    /// Bytes of room, aligned to 16.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts()[6]
    }

    /// From the room's begin to the sorted keys, and to the values.
    pub(crate) fn sorted(&self) -> (u64, u64) {
        (self.parts()[0], self.parts()[1])
    }

    /// From the room's begin to as much room for keys, and for values, that is free after the sort.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn aside(&self) -> (u64, u64) {
        (self.parts()[2], self.parts()[3])
    }

    /// The launches in their order: kernels, blocks, and of a pass its digit's number and whether it is by all of them.
    pub(crate) fn launches(&self) -> impl Iterator<Item = (&'static str, u32, (u32, bool))> {
        let (tiles, none) = (self.tiles, (0, false));
        let by_upper = (self.upper..self.digits).map(move |digit| ("pass", tiles, (digit, false)));
        let check = (self.upper < self.digits).then_some(("check", tiles, none));
        let by_all = (0..self.digits).map(move |digit| ("pass", tiles, (digit, true)));
        let counts = [("histogram", self.counting, none), ("offsets", 1, none)];
        counts.into_iter().chain(by_upper).chain(check).chain(by_all)
    }

    /// The parameters of the kernels.
    pub(crate) fn params<K: Key, V: Payload>(
        &self,
        at: &SortPlaces,
        kind: u32,
        (digit, all): (u32, bool),
    ) -> SortParams<K, V> {
        let place = std::ptr::with_exposed_provenance_mut::<u8>;
        let [keys, values, keys_aside, values_aside, offsets, steps, _] =
            self.parts().map(|part| place(at.room + part as usize));
        SortParams {
            keys: place(at.keys).cast(),
            values: place(at.values).cast(),
            n: self.n,
            sorted_keys: [keys.cast(), keys_aside.cast()],
            sorted_values: [values.cast(), values_aside.cast()],
            counts: place(at.room).cast(),
            offsets: offsets.cast(),
            steps: steps.cast(),
            counter: place(at.counter).cast(),
            records: place(at.records).cast(),
            capacity: at.capacity,
            tiles: self.tiles,
            digit,
            kind,
            all: all.into(),
        }
    }
}

/// How items of so many bytes, so aligned, are brought into an order: the parameters, and blocks.
pub(crate) fn gather(
    (bytes, align): (usize, usize),
    n: u64,
    (from, index, to): (usize, usize, usize),
) -> (GatherParams, u32) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>;
    // As wide as they are aligned, whatever their size is a multiple of.
    let unit = align.min(16);
    let params = GatherParams {
        from: place(from),
        to: place(to),
        index: place(index).cast(),
        n,
        unit: unit as u32,
        units: (bytes / unit) as u32,
    };
    (params, n.div_ceil(GATHER_TILE as u64) as u32)
}

/// How the first of each group are found: the parameters, and blocks.
pub(crate) fn firsts<K: Key>(
    (keys, index, n): (usize, usize, u64),
    (groups, count): (usize, u64),
    firsts: usize,
    kind: u32,
) -> (FirstParams<K>, u32) {
    let place = std::ptr::with_exposed_provenance_mut::<u8>;
    let params = FirstParams {
        keys: place(keys).cast(),
        index: place(index).cast(),
        n,
        groups: place(groups).cast(),
        count,
        firsts: place(firsts).cast(),
        kind,
        padding: 0,
    };
    (params, count.div_ceil(THREADS as u64) as u32)
}
