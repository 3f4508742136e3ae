//! A block's shared memory, and who touched which byte of it when.
//!
//! Time has two parts. The *epoch* counts the block's barriers (and goes on counting from block to block, so that
//! what an earlier block left is older than everything). Within an epoch only `sync_warp` orders accesses, and only
//! within a warp, so each warp carries a vector clock of its 32 lanes.

use std::cell::UnsafeCell;
use std::panic::Location;

use crate::shared::STATIC_LIMIT;

type Source = &'static Location<'static>;

/// One access: when, by whom, where in the source.
#[derive(Clone, Copy)]
struct Access {
    epoch: u32,
    clock: u32,
    thread: u32,
    /// An update, which needs no order among its like.
    update: Option<AccessKind>,
    site: Option<Source>,
}

const NEVER: Access = Access { epoch: 0, clock: 0, thread: 0, update: None, site: None };

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Read,
    Write,
    Add,
    Update,
}

/// The accesses to one byte that a later one may conflict with.
#[derive(Clone, Copy)]
struct Byte {
    write: Access,
    /// A read, and where others of its warp read too in this epoch, `1 +` their index in `reader_sets`.
    read: Access,
    readers: u32,
    /// A read by another warp in the same epoch.
    other: Access,
}

const UNTOUCHED: Byte = Byte { write: NEVER, read: NEVER, readers: 0, other: NEVER };

/// What is wrong with an access.
pub(super) enum Conflict {
    Unwritten,
    Race { thread: u32, wrote: bool, site: Option<Source> },
}

pub(super) struct BlockMemory {
    arena: Box<[UnsafeCell<u128>]>,
    arrays: Vec<Array>,
    used: usize,
    dynamic: usize,
    bytes: Vec<Byte>,
    epoch: u32,
    first_epoch: u32,
    clocks: Vec<[[u32; 32]; 32]>,
    reader_sets: Vec<[u32; 32]>,
    untracked: Vec<(usize, usize)>,
}

struct Array {
    key: usize,
    offset: usize,
    bytes: usize,
}

/// What a byte holds before anyone writes it.
const POISON: u8 = 0xa5;

impl BlockMemory {
    pub(super) fn new(warps: usize, dynamic: usize) -> Self {
        let words = (STATIC_LIMIT + dynamic).div_ceil(16);
        BlockMemory {
            arena: (0..words).map(|_| UnsafeCell::new(0)).collect(),
            arrays: Vec::new(),
            used: 0,
            dynamic,
            bytes: Vec::new(),
            epoch: 0,
            first_epoch: 1,
            // Each lane has begun, and knows of no other.
            clocks: vec![std::array::from_fn(|lane| std::array::from_fn(|l| u32::from(l == lane))); warps],
            reader_sets: Vec::new(),
            untracked: Vec::new(),
        }
    }

    /// Makes the memory that of a block that starts now.
    pub(super) fn begin_block(&mut self) {
        self.next_epoch();
        self.first_epoch = self.epoch;
        self.arrays.clear();
        self.used = 0;
        self.untracked.clear();
        if self.dynamic > 0 {
            self.poison(STATIC_LIMIT, self.dynamic);
        }
    }

    /// A barrier: everything before it is ordered before everything after it.
    pub(super) fn next_epoch(&mut self) {
        self.epoch += 1;
        self.reader_sets.clear();
    }

    /// `sync_warp`: each lane of `mask` now knows what each of them did.
    pub(super) fn sync_warp(&mut self, warp: usize, mask: u32) {
        let clocks = &mut self.clocks[warp];
        let mut joined = [0; 32];
        for lane in lanes(mask) {
            for (all, own) in joined.iter_mut().zip(&clocks[lane]) {
                *all = (*all).max(*own);
            }
        }
        for lane in lanes(mask) {
            clocks[lane] = joined;
            clocks[lane][lane] += 1;
        }
    }

    fn start(&self) -> *mut u8 {
        self.arena.as_ptr().cast_mut().cast()
    }

    fn poison(&mut self, offset: usize, bytes: usize) {
        let end = offset + bytes;
        if self.bytes.len() < end {
            self.bytes.resize(end, UNTOUCHED);
        }
        // SAFETY: the range lies within the arena, whose cells allow writes through a shared pointer; the simulator
        // runs one thread at a time.
        unsafe { self.start().add(offset).write_bytes(POISON, bytes) };
    }

    /// The array of a declaration, which the first thread to come allocates; or the bytes asked for in all.
    pub(super) fn array(&mut self, key: usize, bytes: usize, align: usize) -> Result<*mut u8, usize> {
        if let Some(array) = self.arrays.iter().find(|array| array.key == key && array.bytes == bytes) {
            return Ok(self.start().wrapping_add(array.offset));
        }
        let offset = self.used.next_multiple_of(align);
        if align > 16 || offset.saturating_add(bytes) > STATIC_LIMIT {
            return Err(offset.saturating_add(bytes));
        }
        self.used = offset + bytes;
        self.arrays.push(Array { key, offset, bytes });
        self.poison(offset, bytes);
        Ok(self.start().wrapping_add(offset))
    }

    /// The dynamic part, if it holds `bytes`; else the bytes that it has.
    pub(super) fn dynamic(&self, bytes: usize) -> Result<*mut u8, usize> {
        if bytes <= self.dynamic { Ok(self.start().wrapping_add(STATIC_LIMIT)) } else { Err(self.dynamic) }
    }

    /// Whether an address lies in this memory.
    pub(super) fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start().addr()) < size_of_val(&*self.arena)
    }

    /// How far an address lies behind the start of this memory.
    pub(super) fn offset(&self, address: usize) -> usize {
        address.wrapping_sub(self.start().addr())
    }

    /// Leaves a range out of the checks until the block ends.
    pub(super) fn untrack(&mut self, address: usize, bytes: usize) {
        let range = (address, address.saturating_add(bytes));
        if self.contains(address) && !self.untracked.contains(&range) {
            self.untracked.push(range);
        }
    }

    /// Forgets what was written to a range, until something arrives there.
    pub(super) fn forget(&mut self, address: usize, bytes: usize) {
        let offset = self.offset(address);
        if offset.saturating_add(bytes) <= self.bytes.len() {
            self.bytes[offset..offset + bytes].fill(UNTOUCHED);
            self.poison(offset, bytes);
        }
    }

    /// Records an access to `bytes` bytes by a thread, unless it conflicts with what was before.
    pub(super) fn access(
        &mut self,
        thread: u32,
        address: usize,
        bytes: usize,
        kind: AccessKind,
        site: Source,
    ) -> Result<(), Conflict> {
        let offset = address.wrapping_sub(self.start().addr());
        // Memory of someone else's: a handle made by hand.
        if offset.saturating_add(bytes) > self.bytes.len() {
            return Ok(());
        }
        if self.untracked.iter().any(|&(start, end)| start < address + bytes && address < end) {
            return Ok(());
        }
        let (warp, lane) = (thread as usize / 32, thread as usize % 32);
        let known = &self.clocks[warp][lane];
        let (epoch, first_epoch) = (self.epoch, self.first_epoch);
        let update = Some(kind).filter(|kind| matches!(kind, AccessKind::Add | AccessKind::Update));
        let me = Access { epoch, clock: known[lane], thread, update, site: Some(site) };
        let ordered = |before: &Access| {
            before.epoch != epoch
                || before.thread == thread
                || (before.thread as usize / 32 == warp && known[before.thread as usize % 32] >= before.clock)
        };
        let race =
            |other: &Access, wrote| Err(Conflict::Race { thread: other.thread, wrote, site: other.site });
        for byte in &mut self.bytes[offset..offset + bytes] {
            if !(ordered(&byte.write) || update.is_some() && byte.write.update == update) {
                return race(&byte.write, true);
            }
            if update.is_some() && byte.write.epoch < first_epoch {
                return Err(Conflict::Unwritten);
            }
            if kind != AccessKind::Read {
                if !ordered(&byte.read) {
                    return race(&byte.read, false);
                }
                if byte.read.epoch == epoch {
                    if byte.other.epoch == epoch {
                        return race(&byte.other, false);
                    }
                    if byte.readers != 0 {
                        let set = &self.reader_sets[byte.readers as usize - 1];
                        if let Some(reader) = (0..32).find(|&l| l != lane && known[l] < set[l]) {
                            let reader = Access { thread: (warp * 32 + reader) as u32, ..byte.read };
                            return race(&reader, false);
                        }
                    }
                }
                *byte = Byte { write: me, ..UNTOUCHED };
            } else {
                if byte.write.epoch < first_epoch {
                    return Err(Conflict::Unwritten);
                }
                if byte.read.epoch != epoch {
                    (byte.read, byte.readers, byte.other) = (me, 0, NEVER);
                } else if byte.read.thread as usize / 32 != warp {
                    byte.other = me;
                } else if byte.readers == 0 && ordered(&byte.read) {
                    byte.read = me;
                } else {
                    if byte.readers == 0 {
                        let mut set = [0; 32];
                        set[byte.read.thread as usize % 32] = byte.read.clock;
                        self.reader_sets.push(set);
                        byte.readers = self.reader_sets.len() as u32;
                    }
                    self.reader_sets[byte.readers as usize - 1][lane] = me.clock;
                }
            }
        }
        Ok(())
    }
}

/// The lanes of a mask, in order.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}
