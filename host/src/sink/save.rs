//! A sink's state as bytes: a header that says of which operator it is, the state, a checksum.

use std::any::type_name;

use warpfold_gpu_kernels::export::Descriptor;
use warpfold_monoid::{Monoid, tree::PIECE_CHUNKS};

use super::TaggedSink;
use crate::{
    Error,
    cpu::stream::{Stream, piece},
};

/// What they begin with, version included.
const MAGIC: &[u8; 12] = b"warpfold 1\r\n";

/// What such a stream looks like in bytes.
pub(super) fn write<Op: Monoid>(op: &Op, stream: &Stream<Op>) -> Vec<u8> {
    let mut out = header(op, type_name::<Op>(), stream.position);
    field(&mut out, plain(stream.acc.as_slice()));
    field(&mut out, plain(&stream.chunks));
    field(&mut out, plain(&stream.tail));
    sealed(out)
}

/// The stream.
///
/// # Safety
///
/// The bytes are what [`write`] gave.
pub(super) unsafe fn read<Op: Monoid>(op: &Op, saved: &[u8]) -> Result<Stream<Op>, Error> {
    let mut body = Body::open(op, type_name::<Op>(), saved)?;
    let position = body.number()?;
    // SAFETY: the caller's promise.
    let (acc, chunks, tail) =
        unsafe { (values::<Op::Acc>(body.field()?), values(body.field()?), values(body.field()?)) };
    // What follows from the position.
    let chunk = const { piece::<Op::Item>().chunk };
    let (whole, left) = (position / chunk, position % chunk);
    let counts = [acc.len(), chunks.len(), tail.len()];
    if counts != [(whole >= PIECE_CHUNKS) as usize, (whole % PIECE_CHUNKS) as usize, left as usize] {
        return Err(body.damaged("they hold other numbers of values than go with their number of items"));
    }
    Ok(Stream { position, acc: acc.first().copied(), chunks, tail })
}

/// What the values of a stream's tags look like in bytes, and how many items have come.
pub(super) fn write_tagged<Op: Monoid>(op: &Op, kept: &[Option<Op::Acc>], position: u64) -> Vec<u8> {
    let mut out = header(op, type_name::<TaggedSink<Op>>(), position);
    let held: Vec<u8> = kept.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<Op::Acc> = kept.iter().copied().flatten().collect();
    field(&mut out, &held);
    field(&mut out, plain(&values));
    sealed(out)
}

/// The values of tags, and how many items have come.
type Kept<A> = (Vec<Option<A>>, u64);

/// The values of `k` tags, and how many items have come.
///
/// # Safety
///
/// The bytes are what [`write_tagged`] gave.
pub(super) unsafe fn read_tagged<Op: Monoid>(op: &Op, k: u64, saved: &[u8]) -> Result<Kept<Op::Acc>, Error> {
    let mut body = Body::open(op, type_name::<TaggedSink<Op>>(), saved)?;
    let position = body.number()?;
    let held = body.field()?;
    if held.len() as u64 != k {
        return Err(Error::SavedTags { saved: held.len() as u64, tags: k });
    }
    // SAFETY: the caller's promise.
    let values = unsafe { values::<Op::Acc>(body.field()?) };
    if values.len() != held.iter().filter(|&&held| held != 0).count() {
        return Err(body.damaged("they hold another number of values than of tags that have one"));
    }
    let mut values = values.into_iter();
    let kept = held.iter().map(|&held| if held != 0 { values.next() } else { None }).collect();
    Ok((kept, position))
}

/// What bytes begin with: of which operator they are, by its name, layouts and parameters, and how many items have come.
fn header<Op: Monoid>(op: &Op, name: &str, position: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    field(&mut out, name.as_bytes());
    field(&mut out, plain(&[Descriptor::of::<Op>()]));
    field(&mut out, plain(std::slice::from_ref(op)));
    out.extend(position.to_le_bytes());
    out
}

/// With their checksum.
fn sealed(mut out: Vec<u8>) -> Vec<u8> {
    out.extend(checksum(&out).to_le_bytes());
    out
}

/// What follows the header's operator.
struct Body<'a> {
    rest: &'a [u8],
    bytes: u64,
}

impl<'a> Body<'a> {
    /// Of bytes with a right checksum that are of this operator under this name.
    fn open<Op: Monoid>(op: &Op, name: &'static str, saved: &'a [u8]) -> Result<Body<'a>, Error> {
        let mut body = Body { rest: &[], bytes: saved.len() as u64 };
        let rest =
            saved.strip_prefix(MAGIC).ok_or(body.damaged("they do not begin as those of this version do"))?;
        let Some((rest, sum)) = rest.split_last_chunk::<8>() else {
            return Err(body.damaged("they are cut off"));
        };
        if checksum(&saved[..saved.len() - 8]) != u64::from_le_bytes(*sum) {
            return Err(body.damaged("their checksum is wrong: they are cut off or damaged"));
        }
        body.rest = rest;
        let saved = String::from_utf8_lossy(body.field()?).into_owned();
        let same = saved == name;
        let same = body.field()? == plain(&[Descriptor::of::<Op>()]) && same;
        let same = body.field()? == plain(std::slice::from_ref(op)) && same;
        if same { Ok(body) } else { Err(Error::SavedOperator { saved, operator: name }) }
    }

    fn damaged(&self, problem: &'static str) -> Error {
        Error::SavedBytes { bytes: self.bytes, problem }
    }

    fn number(&mut self) -> Result<u64, Error> {
        let (number, rest) = self.rest.split_first_chunk::<8>().ok_or(self.damaged("they are cut off"))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn field(&mut self) -> Result<&'a [u8], Error> {
        let cut_off = self.damaged("they are cut off");
        take(&mut self.rest).ok_or(cut_off)
    }
}

/// Appends bytes and, before them, how many.
fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes such bytes from the front.
fn take<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = body.split_first_chunk::<8>()?;
    let (bytes, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    *body = rest;
    Some(bytes)
}

/// The bytes of values.
fn plain<T: warpfold_monoid::Plain>(values: &[T]) -> &[u8] {
    const { T::LAYOUT };
    // SAFETY: plain data: every byte is initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Values from their bytes.
///
/// # Safety
///
/// They are.
unsafe fn values<T: Copy>(bytes: &[u8]) -> Vec<T> {
    let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
    let mut values = Vec::<T>::with_capacity(count);
    // SAFETY: room for as many, and the caller's promise.
    unsafe {
        bytes.as_ptr().copy_to_nonoverlapping(values.as_mut_ptr().cast(), count * size_of::<T>());
        values.set_len(count);
    }
    values
}

/// FNV-1a, by words where there are whole ones.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    rest.iter().for_each(|&byte| mix(byte.into()));
    mix(bytes.len() as u64);
    hash
}
