//! Elements in memory, and the Rust types that stand for theirs.

use std::cell::OnceCell;

use bytemuck::Pod;
use half::{bf16, f16};
use memmap2::Mmap;
use num_complex::Complex;
use warpfold::{Plain, segments::Layout};

use super::Dtype;

/// A Rust type that elements of a file are read as.
pub trait Stored: Plain {
    /// What lies in the file in its place: something that any bytes are a value of.
    type Raw: Pod + Sync;
    /// The type's name.
    const DTYPE: Dtype;
    /// The element.
    fn read(raw: Self::Raw) -> Self;
    /// The elements, where they lie if they are stored as they are.
    fn as_stored(raw: &[Self::Raw]) -> Option<&[Self]>;
}

macro_rules! stored_as_they_are {
    ($($type:ty => $dtype:ident,)*) => {$(
        impl Stored for $type {
            type Raw = $type;
            const DTYPE: Dtype = Dtype::$dtype;
            #[inline(always)]
            fn read(raw: $type) -> $type { raw }
            #[inline(always)]
            fn as_stored(raw: &[$type]) -> Option<&[$type]> { Some(raw) }
        }
    )*};
}
stored_as_they_are! {
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    u8 => Uint8,
    u16 => Uint16,
    u32 => Uint32,
    u64 => Uint64,
    f16 => Float16,
    bf16 => Bfloat16,
    f32 => Float32,
    f64 => Float64,
    Complex<f32> => Complex64,
    Complex<f64> => Complex128,
}

/// A byte of a file may be neither 0 nor 1, which no `bool` is: it is read as true.
impl Stored for bool {
    type Raw = u8;
    const DTYPE: Dtype = Dtype::Bool;
    #[inline(always)]
    fn read(raw: u8) -> bool {
        raw != 0
    }
    #[inline(always)]
    fn as_stored(_raw: &[u8]) -> Option<&[bool]> {
        None
    }
}

/// Elements of one type in this machine's byte order, aligned.
#[derive(Debug)]
pub struct Data {
    dtype: Dtype,
    len: usize,
    bytes: Bytes,
}

/// Where the elements lie.
#[derive(Debug)]
enum Bytes {
    /// From `start` to the end of a mapped file.
    Mapped { map: Mmap, start: usize },
    /// In memory of their own, in words so that they are aligned.
    Owned(Vec<u64>),
}

impl Data {
    /// All that follows `start` in a file: where it lies if it is aligned and in this machine's byte order, else
    /// copied, with the bytes of each number turned around if `swapped`.
    pub fn of_file(map: Mmap, start: usize, dtype: Dtype, swapped: bool) -> Data {
        let bytes = &map[start..];
        let len = bytes.len() / dtype.size();
        let aligned = bytes.as_ptr().addr().is_multiple_of(dtype.number());
        if aligned && !(swapped && dtype.number() > 1) {
            return Data { dtype, len, bytes: Bytes::Mapped { map, start } };
        }
        let mut words = vec![0; bytes.len().div_ceil(8)];
        let copy = &mut bytemuck::cast_slice_mut(&mut words)[..bytes.len()];
        copy.copy_from_slice(bytes);
        if swapped {
            match dtype.number() {
                2 => copy.as_chunks_mut::<2>().0.iter_mut().for_each(|number| number.reverse()),
                4 => copy.as_chunks_mut::<4>().0.iter_mut().for_each(|number| number.reverse()),
                _ => copy.as_chunks_mut::<8>().0.iter_mut().for_each(|number| number.reverse()),
            }
        }
        Data { dtype, len, bytes: Bytes::Owned(words) }
    }

    /// Integers of 64 bits.
    pub fn of_integers(items: Vec<i64>) -> Data {
        let len = items.len();
        Data { dtype: Dtype::Int64, len, bytes: Bytes::Owned(bytemuck::cast_vec(items)) }
    }

    /// Floats of 64 bits.
    pub fn of_floats(items: Vec<f64>) -> Data {
        let len = items.len();
        Data { dtype: Dtype::Float64, len, bytes: Bytes::Owned(bytemuck::cast_vec(items)) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The elements as they are stored.
    ///
    /// # Panics
    ///
    /// If they are of another type.
    pub fn raw<T: Stored>(&self) -> &[T::Raw] {
        assert_eq!(self.dtype, T::DTYPE, "elements are read as what they are");
        bytemuck::cast_slice(self.bytes())
    }

    /// The same elements in memory of their own.
    pub fn copied(&self) -> Data {
        let bytes = self.bytes();
        let mut words = vec![0; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Data { bytes: Bytes::Owned(words), ..*self }
    }

    /// Some of the elements, by their places, in any order.
    pub fn pick(&self, places: &[u64]) -> Data {
        fn copy<const SIZE: usize>(from: &[u8], to: &mut [u8], places: &[u64]) {
            let (from, to) = (from.as_chunks::<SIZE>().0, to.as_chunks_mut::<SIZE>().0);
            to.iter_mut().zip(places).for_each(|(to, &place)| *to = from[place as usize]);
        }
        let mut words = vec![0; (places.len() * self.dtype.size()).div_ceil(8)];
        let (from, to) = (self.bytes(), bytemuck::cast_slice_mut(&mut words));
        match self.dtype.size() {
            1 => copy::<1>(from, to, places),
            2 => copy::<2>(from, to, places),
            4 => copy::<4>(from, to, places),
            8 => copy::<8>(from, to, places),
            _ => copy::<16>(from, to, places),
        }
        Data { dtype: self.dtype, len: places.len(), bytes: Bytes::Owned(words) }
    }

    /// The bits of integers, as those of another type of as many.
    ///
    /// # Panics
    ///
    /// If the other type is wider or narrower.
    pub fn bits_as<T: Stored>(&self) -> &[T::Raw] {
        assert_eq!(self.dtype.size(), size_of::<T::Raw>(), "elements are read as others of their size");
        bytemuck::cast_slice(self.bytes())
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped { map, start } => &map[*start..],
            Bytes::Owned(words) => &bytemuck::cast_slice(words)[..self.len * self.dtype.size()],
        }
    }

    /// Are they still where the file is mapped?
    #[cfg(test)]
    pub fn is_mapped(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped { .. })
    }
}

/// An array from a file.
#[derive(Debug)]
pub struct Array {
    /// The elements, in the order in which the file stores them.
    pub data: Data,
    /// The length of each axis.
    pub shape: Vec<u64>,
    /// Does the first axis run fastest, not the last?
    pub fortran: bool,
    logical: OnceCell<Data>,
}

impl Array {
    /// An array of that many axes.
    pub fn new(data: Data, shape: Vec<u64>, fortran: bool) -> Array {
        Array { data, shape, fortran, logical: OnceCell::new() }
    }

    /// A column.
    pub fn column(data: Data) -> Array {
        let shape = vec![data.len() as u64];
        Array::new(data, shape, false)
    }

    /// The elements in logical order, the last axis running fastest: a copy, made once, if the file has another.
    pub fn in_logical_order(&self) -> &Data {
        let long_axes = self.shape.iter().filter(|&&axis| axis > 1).count();
        if !self.fortran || long_axes < 2 || self.data.len() == 0 {
            return &self.data;
        }
        self.logical.get_or_init(|| {
            let mut words = vec![0; self.data.bytes().len().div_ceil(8)];
            let (from, to) = (self.data.bytes(), bytemuck::cast_slice_mut(&mut words));
            match self.data.dtype.size() {
                1 => self.gather::<1>(from, to),
                2 => self.gather::<2>(from, to),
                4 => self.gather::<4>(from, to),
                8 => self.gather::<8>(from, to),
                _ => self.gather::<16>(from, to),
            }
            Data { bytes: Bytes::Owned(words), ..self.data }
        })
    }

    /// The elements of two arrays in an order in which those at the same logical position meet.
    pub fn paired_with<'a>(&'a self, other: &'a Array) -> (&'a Data, &'a Data) {
        if self.fortran == other.fortran && self.shape == other.shape {
            (&self.data, &other.data)
        } else {
            (self.in_logical_order(), other.in_logical_order())
        }
    }

    /// How its elements lie along some axes and along the others, in `data`: those in the file's order, or in logical
    /// order.
    pub fn layout(&self, data: &Data, axes: &[usize]) -> Result<Layout, warpfold::Error> {
        let shape: Vec<usize> = self.shape.iter().map(|&axis| axis as usize).collect();
        let fortran = self.fortran && std::ptr::eq(data, &self.data);
        let mut strides = vec![0; shape.len()];
        let mut next = 1isize;
        for axis in 0..shape.len() {
            let axis = if fortran { axis } else { shape.len() - 1 - axis };
            strides[axis] = next;
            next = next.wrapping_mul(shape[axis].max(1) as isize);
        }
        Layout::new(&shape, &strides, axes)
    }

    /// Copies elements of `SIZE` bytes from Fortran's order to C's.
    fn gather<const SIZE: usize>(&self, from: &[u8], to: &mut [u8]) {
        let (from, to) = (from.as_chunks::<SIZE>().0, to.as_chunks_mut::<SIZE>().0);
        let shape: Vec<usize> = self.shape.iter().map(|&axis| axis as usize).collect();
        let mut strides = vec![1; shape.len()];
        for axis in 1..shape.len() {
            strides[axis] = strides[axis - 1] * shape[axis - 1];
        }
        // The place of the element among the axes, and in the file.
        let (mut place, mut at) = (vec![0; shape.len()], 0);
        for element in &mut to[..from.len()] {
            *element = from[at];
            for axis in (0..shape.len()).rev() {
                place[axis] += 1;
                at += strides[axis];
                if place[axis] < shape[axis] {
                    break;
                }
                at -= strides[axis] * shape[axis];
                place[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_order_is_that_of_nested_loops() {
        let shape = [3, 1, 4, 2];
        let n = shape.iter().product::<usize>();
        // Element (a, b, c, d) holds its place in C's order.
        let mut stored = vec![0; n];
        let mut next = 0;
        for a in 0..shape[0] {
            for b in 0..shape[1] {
                for c in 0..shape[2] {
                    for d in 0..shape[3] {
                        stored[a + shape[0] * (b + shape[1] * (c + shape[2] * d))] = next;
                        next += 1;
                    }
                }
            }
        }
        let shape = shape.map(|axis| axis as u64).to_vec();
        let array = Array::new(Data::of_integers(stored), shape, true);
        let expected: Vec<i64> = (0..n as i64).collect();
        assert_eq!(array.in_logical_order().raw::<i64>(), expected);
    }
}
