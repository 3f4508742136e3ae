//! Memory of a launch, of values whose type only its makers know: what runs kernels is compiled once for all operators.

use std::mem::MaybeUninit;

use warpfold_simt::sim::Buffer;

use crate::Error;

/// Equal values side by side, at first, in an allocation of their own: what lies beyond them is in no buffer of the launch.
#[derive(Debug)]
pub(crate) struct Room {
    /// Aligned for every plain type.
    units: Vec<Unit>,
    bytes: usize,
}

/// As large as it is aligned.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Unit([MaybeUninit<u8>; 16]);

impl Room {
    /// Zeros, for `count` values of so many bytes.
    pub(crate) fn of_bytes(count: u64, value_bytes: usize) -> Result<Room, Error> {
        let needed = || Error::HostMemory { needed: count.saturating_mul(value_bytes as u64) };
        let count = usize::try_from(count).map_err(|_| needed())?;
        let bytes = count.checked_mul(value_bytes).ok_or_else(needed)?;
        let len = bytes.div_ceil(size_of::<Unit>());
        let mut units = Vec::new();
        units.try_reserve_exact(len).map_err(|_| needed())?;
        units.resize(len, Unit([MaybeUninit::zeroed(); 16]));
        Ok(Room { units, bytes })
    }

    /// `count` copies of a value, of which these are the bytes.
    pub(crate) fn filled(count: u64, value: &[MaybeUninit<u8>]) -> Result<Room, Error> {
        let Room { mut units, bytes } = Room::of_bytes(count, value.len())?;
        // SAFETY: the units' own bytes, of which there are as many at least.
        let places = unsafe { std::slice::from_raw_parts_mut(units.as_mut_ptr().cast(), bytes) };
        if !value.is_empty() {
            places.chunks_exact_mut(value.len()).for_each(|place| place.copy_from_slice(value));
        }
        Ok(Room { units, bytes })
    }

    /// Where the values lie.
    pub(crate) fn address(&mut self) -> usize {
        self.units.as_mut_ptr().expose_provenance()
    }

    /// The first of the values, in bytes.
    pub(crate) fn first(&self, bytes: usize) -> &[MaybeUninit<u8>] {
        assert!(bytes <= self.bytes);
        // SAFETY: the units' own bytes.
        unsafe { std::slice::from_raw_parts(self.units.as_ptr().cast(), bytes) }
    }

    /// What the kernel is told of them.
    pub(crate) fn buffer(&mut self, name: &str) -> Buffer {
        Buffer { name: name.into(), start: self.address(), bytes: self.bytes, writable: true }
    }

    /// The first of them that is not zero, and where it stands, of numbers.
    pub(crate) fn first_nonzero(&self) -> Option<(usize, u32)> {
        self.numbers().iter().copied().enumerate().find(|&(_, number)| number != 0)
    }

    /// The first number, if there is one.
    pub(crate) fn first_u32(&self) -> Option<u32> {
        self.numbers().first().copied()
    }

    /// The first number of 64 bits, if there is one.
    pub(crate) fn first_u64(&self) -> Option<u64> {
        match *self.numbers() {
            [low, high, ..] => Some((high as u64) << 32 | low as u64),
            _ => None,
        }
    }

    fn numbers(&self) -> &[u32] {
        // SAFETY: numbers, which a launch leaves initialised.
        unsafe { std::slice::from_raw_parts(self.units.as_ptr().cast(), self.bytes / 4) }
    }
}
