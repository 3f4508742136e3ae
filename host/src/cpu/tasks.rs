//! Work on several threads, the same code for every operator.

use std::marker::PhantomData;

use rayon::prelude::*;

/// Does work number `0 .. count`, on several threads if there are at least two times `least` of them.
///
/// Each thread makes itself a worker, which may keep what it reuses.
pub(super) fn each<'a>(count: usize, least: usize, worker: &(dyn Fn() -> Box<dyn FnMut(usize) + 'a> + Sync)) {
    if count < 2 * least {
        let work = worker();
        return (0..count).for_each(work);
    }
    (0..count).into_par_iter().with_min_len(least).for_each_init(worker, |work, k| work(k));
}

/// A slice that several threads write to, each other places.
pub(super) struct Places<'a, T> {
    first: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

impl<T> Clone for Places<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Places<'_, T> {}

// SAFETY: a mutable slice, of which no two threads write the same place.
unsafe impl<T: Send> Sync for Places<'_, T> {}

impl<'a, T: Copy> Places<'a, T> {
    /// All places of a slice.
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Places { first: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Reads a value.
    ///
    /// # Safety
    ///
    /// No other thread uses that place meanwhile.
    #[inline]
    pub(super) unsafe fn get(&self, place: usize) -> T {
        assert!(place < self.len);
        // SAFETY: a place in the slice, which is this thread's.
        unsafe { self.first.add(place).read() }
    }

    /// Writes a value.
    ///
    /// # Safety
    ///
    /// No other thread uses that place meanwhile.
    #[inline]
    pub(super) unsafe fn put(&self, place: usize, value: T) {
        assert!(place < self.len);
        // SAFETY: a place in the slice, which is this thread's.
        unsafe { self.first.add(place).write(value) };
    }
}

/// The same of values that own something: what was there is dropped.
pub(super) struct Slots<'a, T> {
    first: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a mutable slice, of which no two threads write the same place.
unsafe impl<T: Send> Sync for Slots<'_, T> {}

impl<'a, T> Slots<'a, T> {
    /// All places of a slice.
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Slots { first: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Replaces a value.
    ///
    /// # Safety
    ///
    /// No other thread uses that place meanwhile.
    #[inline]
    pub(super) unsafe fn put(&self, place: usize, value: T) {
        assert!(place < self.len);
        // SAFETY: a place in the slice, which is this thread's.
        unsafe { *self.first.add(place) = value };
    }
}
