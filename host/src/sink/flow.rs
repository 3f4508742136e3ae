//! How a stream is folded by a device: what lies where, what is copied, what is launched. It knows no device.
//!
//! A stream is cut into chunks, and 2048 of those are a piece ([`Shape::of_piece`]). Whole chunks of a batch are folded where
//! they lie; what is left of it is copied to a place of the device's where the next batches fill it up. Every block that folds
//! a chunk puts its value down and takes a ticket, and whichever takes the piece's last one folds the values of the piece and
//! adds them to the accumulator: launches of `reduce_long`, which know that they are parts of more.

use std::ptr;

use warpfold_gpu_kernels::device::{ADD, KEEP, Part};
use warpfold_monoid::tree::{MAX_GROUPS, PIECE_CHUNKS, Shape};

use crate::{
    Error,
    erased::{ArrayHead, Erased, NOTHING, Params, Types},
};

/// The kernel that folds chunks.
pub(crate) const KERNEL: &str = "reduce_long";

/// Threads of a block of it.
pub(crate) const BLOCK: u32 = MAX_GROUPS;

/// Chunks that may be put together from parts of batches before they have to be folded.
const STAGES: u64 = 16;

/// What a device does for a stream, one after the other.
pub(crate) trait Machine {
    /// Copies bytes from one address to another.
    fn copy(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), Error>;
    /// Makes addresses readable to the next launch; where they lie.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    fn table(&mut self, addresses: &[u64]) -> Result<u64, Error>;
    /// Launches [`KERNEL`].
    fn launch(&mut self, grid: u32, params: &Params, n: u64) -> Result<(), Error>;
}

/// Where a stream's state lies, in bytes from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The accumulator.
    pub(crate) acc: u64,
    /// The values of the piece's chunks.
    pub(crate) chunks: u64,
    /// Items of chunks that are not whole.
    pub(crate) stages: u64,
    /// All of it.
    pub(crate) bytes: u64,
}

/// A stream on a device.
#[derive(Debug)]
pub(crate) struct Flow {
    types: &'static Types,
    /// Where the state lies; a ticket, zero at first, at its start.
    state: u64,
    pub(crate) layout: Layout,
    /// Items in a chunk.
    pub(crate) chunk: u64,
    /// Items that have come.
    pub(crate) position: u64,
    /// Which stage is being filled.
    stage: u64,
}

impl Flow {
    pub(crate) fn new(types: &'static Types, state: u64) -> Flow {
        let chunk = Shape::of_piece(0, types.layout.item_bytes).chunk;
        Flow { types, state, layout: Flow::layout(types), chunk, position: 0, stage: 0 }
    }

    /// What the state of such a stream looks like.
    pub(crate) fn layout(types: &Types) -> Layout {
        const ALIGN: u64 = 256;
        let (item, acc) = (types.layout.item_bytes as u64, types.layout.acc_bytes as u64);
        let chunk = Shape::of_piece(0, types.layout.item_bytes).chunk;
        let chunks = (ALIGN + acc).next_multiple_of(ALIGN);
        let stages = (chunks + PIECE_CHUNKS * acc).next_multiple_of(ALIGN);
        Layout { acc: ALIGN, chunks, stages, bytes: stages + STAGES * chunk * item }
    }

    /// Pieces that are whole.
    pub(crate) fn pieces(&self) -> u64 {
        self.position / self.chunk / PIECE_CHUNKS
    }

    /// Chunks of the piece that are whole.
    pub(crate) fn chunks(&self) -> u64 {
        self.position / self.chunk % PIECE_CHUNKS
    }

    /// Items of the chunk that is not.
    pub(crate) fn tail(&self) -> u64 {
        self.position % self.chunk
    }

    /// Where they lie, from the start of the state.
    pub(crate) fn tail_at(&self) -> u64 {
        self.layout.stages + self.stage * self.chunk * self.types.layout.item_bytes as u64
    }

    /// Takes in `n` items at an address.
    pub(crate) fn push(
        &mut self,
        machine: &mut dyn Machine,
        op: Erased<'_>,
        address: u64,
        n: u64,
    ) -> Result<(), Error> {
        let size = self.types.layout.item_bytes as u64;
        let mut done = 0;
        if self.tail() > 0 {
            done = self.stage(machine, address, n)?;
            if self.tail() == 0 {
                let stage = self.state + self.tail_at();
                self.fold(machine, op, From::Here(stage), 1, self.position - self.chunk)?;
            }
        }
        while n - done >= self.chunk {
            let count = ((n - done) / self.chunk).min(PIECE_CHUNKS - self.chunks());
            self.fold(machine, op, From::Here(address + done * size), count, self.position)?;
            self.position += count * self.chunk;
            done += count * self.chunk;
        }
        if done < n {
            self.stage(machine, address + done * size, n - done)?;
        }
        Ok(())
    }

    /// Takes in several batches, each an address and a number of items, by as few launches as there are pieces.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn push_all(
        &mut self,
        machine: &mut dyn Machine,
        op: Erased<'_>,
        batches: &mut dyn Iterator<Item = (u64, u64)>,
    ) -> Result<(), Error> {
        let size = self.types.layout.item_bytes as u64;
        // Chunks that have come and are not folded yet.
        let mut waiting = Vec::new();
        let (mut begin, mut room) = (self.position - self.tail(), PIECE_CHUNKS - self.chunks());
        for (address, n) in batches {
            let mut done = 0;
            while done < n {
                if self.tail() == 0 && n - done >= self.chunk {
                    waiting.push(address + done * size);
                    self.position += self.chunk;
                    done += self.chunk;
                } else {
                    done += self.stage(machine, address + done * size, n - done)?;
                    if self.tail() > 0 {
                        continue;
                    }
                    waiting.push(self.state + self.tail_at());
                    self.stage = (self.stage + 1) % STAGES;
                }
                // Folded before the first of the stages in use is filled again, or at the piece's end.
                let full = self.stage == STAGES - 1 && self.tail() == 0;
                if waiting.len() as u64 == room || full {
                    self.fold_all(machine, op, &mut waiting, begin)?;
                    self.stage = 0;
                    (begin, room) = (self.position, PIECE_CHUNKS - self.chunks());
                }
            }
        }
        self.fold_all(machine, op, &mut waiting, begin)
    }

    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    fn fold_all(
        &mut self,
        machine: &mut dyn Machine,
        op: Erased<'_>,
        waiting: &mut Vec<u64>,
        begin: u64,
    ) -> Result<(), Error> {
        if !waiting.is_empty() {
            let table = machine.table(waiting)?;
            self.fold(machine, op, From::Table(table), waiting.len() as u64, begin)?;
            waiting.clear();
        }
        Ok(())
    }

    /// Copies items to the chunk that is not whole, as many as it has room for; how many.
    fn stage(&mut self, machine: &mut dyn Machine, address: u64, n: u64) -> Result<u64, Error> {
        let size = self.types.layout.item_bytes as u64;
        let count = n.min(self.chunk - self.tail());
        let to = self.state + self.tail_at() + self.tail() * size;
        machine.copy(address, to, count * size)?;
        self.position += count;
        Ok(count)
    }

    /// Folds whole chunks, the first of which begins at that position, into the piece.
    fn fold(
        &self,
        machine: &mut dyn Machine,
        op: Erased<'_>,
        from: From,
        count: u64,
        begin: u64,
    ) -> Result<(), Error> {
        let number = begin / self.chunk;
        let (input, table) = match from {
            From::Here(input) => (input, 0),
            From::Table(table) => (0, table),
        };
        let place = |offset: u64| ptr::with_exposed_provenance_mut::<u8>((self.state + offset) as usize);
        let params = op.params(ArrayHead {
            input: ptr::with_exposed_provenance(input as usize),
            n: count * self.chunk,
            output: place(self.layout.acc),
            partials: place(self.layout.chunks),
            ticket: place(0).cast(),
            chunk: self.chunk,
            chunks: PIECE_CHUNKS as u32,
            groups: MAX_GROUPS,
            part: Part {
                base: begin,
                table: ptr::with_exposed_provenance(table as usize),
                first: (number % PIECE_CHUNKS) as u32,
                end: if number < PIECE_CHUNKS { KEEP } else { ADD },
            },
            op: NOTHING,
        });
        machine.launch(count as u32, &params, count * self.chunk)
    }
}

/// Where chunks lie.
enum From {
    /// Side by side.
    Here(u64),
    /// Where a table says.
    Table(u64),
}
