//! A sink's state as bytes: a header that says of which operator it is, the state, a checksum.

use std::any::type_name;

use warpfold_gpu_kernels::export::Descriptor;
use warpfold_monoid::{Monoid, tree::PIECE_CHUNKS};

use crate::{
    Error,
    cpu::stream::{Stream, piece},
};

/// What they begin with, version included.
const MAGIC: &[u8; 12] = b"warpfold 1\r\n";

/// What such a stream looks like in bytes.
pub(super) fn write<Op: Monoid>(op: &Op, stream: &Stream<Op>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    field(&mut out, type_name::<Op>().as_bytes());
    field(&mut out, plain(&[Descriptor::of::<Op>()]));
    field(&mut out, plain(std::slice::from_ref(op)));
    out.extend(stream.position.to_le_bytes());
    field(&mut out, plain(stream.acc.as_slice()));
    field(&mut out, plain(&stream.chunks));
    field(&mut out, plain(&stream.tail));
    out.extend(checksum(&out).to_le_bytes());
    out
}

/// The stream.
///
/// # Safety
///
/// The bytes are what [`write`] gave.
pub(super) unsafe fn read<Op: Monoid>(op: &Op, saved: &[u8]) -> Result<Stream<Op>, Error> {
    let damaged = |problem| Error::SavedBytes { bytes: saved.len() as u64, problem };
    let rest = saved.strip_prefix(MAGIC).ok_or(damaged("they do not begin as those of this version do"))?;
    let Some((body, sum)) = rest.split_last_chunk::<8>() else { return Err(damaged("they are cut off")) };
    if checksum(&saved[..saved.len() - 8]) != u64::from_le_bytes(*sum) {
        return Err(damaged("their checksum is wrong: they are cut off or damaged"));
    }
    let mut body = body;
    let mut next = || take(&mut body).ok_or(damaged("they are cut off"));
    let name = String::from_utf8_lossy(next()?).into_owned();
    let same = name == type_name::<Op>();
    let same = next()? == plain(&[Descriptor::of::<Op>()]) && same;
    let same = next()? == plain(std::slice::from_ref(op)) && same;
    if !same {
        return Err(Error::SavedOperator { saved: name, operator: type_name::<Op>() });
    }
    let Some((position, rest)) = body.split_first_chunk::<8>() else {
        return Err(damaged("they are cut off"));
    };
    body = rest;
    let position = u64::from_le_bytes(*position);
    let mut next = || take(&mut body).ok_or(damaged("they are cut off"));
    // SAFETY: the caller's promise.
    let (acc, chunks, tail) = unsafe { (values::<Op::Acc>(next()?), values(next()?), values(next()?)) };
    // What follows from the position.
    let chunk = const { piece::<Op::Item>().chunk };
    let (whole, left) = (position / chunk, position % chunk);
    let counts = [acc.len(), chunks.len(), tail.len()];
    if counts != [(whole >= PIECE_CHUNKS) as usize, (whole % PIECE_CHUNKS) as usize, left as usize] {
        return Err(damaged("they hold other numbers of values than go with their number of items"));
    }
    Ok(Stream { position, acc: acc.first().copied(), chunks, tail })
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
