//! Chunks of an array, or of a stream, that is not there as a whole.

use warpfold_monoid::{
    Monoid,
    tree::{PIECE_CHUNKS, Shape},
};

use super::{ByReference, Chunked, Chunks, Level, Places, each_chunk, fold_chunks};

/// What has come of a stream: all that its value depends on.
#[derive(Clone, Debug)]
pub(crate) struct Stream<Op: Monoid> {
    /// Items that have come.
    pub(crate) position: u64,
    /// The value of all whole pieces.
    pub(crate) acc: Option<Op::Acc>,
    /// The values of the whole chunks since.
    pub(crate) chunks: Vec<Op::Acc>,
    /// The items since, less than a chunk.
    pub(crate) tail: Vec<Op::Item>,
}

/// The tree of a whole piece.
pub(crate) const fn piece<T>() -> Shape {
    let size = size_of::<T>();
    Shape::of_piece(PIECE_CHUNKS * Shape::of_piece(0, size).chunk, size)
}

impl<Op: Monoid> Stream<Op> {
    pub(crate) fn new() -> Self {
        Stream { position: 0, acc: None, chunks: Vec::new(), tail: Vec::new() }
    }

    /// Takes in the next items.
    pub(crate) fn push(&mut self, op: &Op, mut items: &[Op::Item]) {
        let chunk = const { piece::<Op::Item>().chunk } as usize;
        self.position += items.len() as u64;
        if !self.tail.is_empty() {
            let (head, rest) = items.split_at(items.len().min(chunk - self.tail.len()));
            self.tail.extend_from_slice(head);
            items = rest;
            if self.tail.len() == chunk {
                let tail = std::mem::take(&mut self.tail);
                let before = self.position - (chunk + items.len()) as u64;
                self.take_chunks(op, &tail, before);
                self.tail = tail;
                self.tail.clear();
            }
        }
        while items.len() >= chunk {
            let room = PIECE_CHUNKS as usize - self.chunks.len();
            let (whole, rest) = items.split_at(chunk * room.min(items.len() / chunk));
            self.take_chunks(op, whole, self.position - items.len() as u64);
            items = rest;
        }
        self.tail.extend_from_slice(items);
    }

    /// Takes in whole chunks, no more than the piece has room for, whose first item has that index.
    fn take_chunks(&mut self, op: &Op, items: &[Op::Item], index: u64) {
        let shape = const { piece::<Op::Item>() };
        let first = self.chunks.len();
        self.chunks.resize(first + items.len() / shape.chunk as usize, op.identity());
        chunk_values(op, &shape, items, index, &mut self.chunks[first..]);
        if self.chunks.len() as u64 == PIECE_CHUNKS {
            let value = fold_chunks(op, std::mem::take(&mut self.chunks), &shape);
            self.acc = Some(self.acc.map_or(value, |acc| op.combine(acc, value)));
        }
    }

    /// The unfinished value of what has come; none of nothing.
    pub(crate) fn value(&self, op: &Op) -> Option<Op::Acc> {
        let shape = const { piece::<Op::Item>() };
        let mut values = self.chunks.clone();
        if !self.tail.is_empty() {
            let mut value = [op.identity()];
            chunk_values(op, &shape, &self.tail, self.position - self.tail.len() as u64, &mut value);
            values.push(value[0]);
        }
        if values.is_empty() {
            return self.acc;
        }
        let chunks = values.len() as u64;
        let value = fold_chunks(op, values, &Shape { chunks, ..shape });
        Some(self.acc.map_or(value, |acc| op.combine(acc, value)))
    }
}

/// The values of chunks that lie side by side, the last one perhaps short, of which the first item has that index.
pub(crate) fn chunk_values<Op: Monoid>(
    op: &Op,
    shape: &Shape,
    items: &[Op::Item],
    index: u64,
    values: &mut [Op::Acc],
) {
    let chunks =
        Chunked { level: Level::best(), ops: std::slice::from_ref(op), shape, values: Places::new(values) };
    let here = Shape { n: items.len() as u64, chunks: (items.len() as u64).div_ceil(shape.chunk), ..*shape };
    each_chunk(&chunks, &here, Chunks::Of(&ByReference(items)), index);
}

/// The value of an array from those of all its chunks.
pub(crate) fn value_of_chunks<Op: Monoid>(op: &Op, values: Vec<Op::Acc>, shape: &Shape) -> Op::Acc {
    fold_chunks(op, values, shape)
}
