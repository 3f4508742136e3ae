//! Shared memory: what the threads of one block have in common.
//!
//! A kernel entry declares it with [`shared!`](crate::shared!) and a concrete type, and hands the [`Shared`] handle to
//! generic code (a static, which it is on the device, cannot be generic). It is not initialised. Declarations of one
//! kernel add up to at most 48 KB ([`STATIC_LIMIT`]); more is asked for at the launch and reached through
//! [`dynamic_shared`].
//!
//! ```
//! use warpfold_simt::shared::Shared;
//! use warpfold_simt::sim::{self, Launch, Options};
//! use warpfold_simt::{global, shared, thread};
//!
//! /// Reverses a block's elements.
//! unsafe fn reverse<T: warpfold_monoid::Plain>(data: *mut T, tile: Shared<T>) {
//!     let (t, n) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize);
//!     // SAFETY: `t` and `n - 1 - t` are within both arrays, and the barrier lies between writing and reading.
//!     unsafe {
//!         tile.write(t, global::load(data.add(t)));
//!         thread::sync_threads();
//!         global::store(data.add(t), tile.read(n - 1 - t));
//!     }
//! }
//!
//! # fn main() -> Result<(), sim::Fault> {
//! let mut data: Vec<u64> = (0..64).collect();
//! let ptr = data.as_mut_ptr() as usize;
//! sim::launch(&Launch::new("reverse", 1, 64), &Options::default(), || {
//!     let tile = shared!([u64; 64]);
//!     // SAFETY: 64 threads, 64 elements, a tile of 64.
//!     unsafe { reverse(ptr as *mut u64, tile) }
//! })?;
//! assert!(data.iter().rev().copied().eq(0..64));
//! # Ok(())
//! # }
//! ```

use warpfold_monoid::Plain;

use crate::imp;

/// The most shared memory that the declarations of one kernel may take, in bytes.
pub const STATIC_LIMIT: usize = 48 * 1024;

/// A handle to an array in the block's shared memory. Copying it copies the handle.
#[derive(Debug)]
pub struct Shared<T> {
    ptr: *mut T,
    len: usize,
}

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

/// What threads of a block may [add](Shared::add) to at the same time: `u32`, `u64` and `f64`.
pub trait Counter: imp::Counters {}
impl<T: imp::Counters> Counter for T {}

/// What they may draw numbers from by [`fetch_add`](Shared::fetch_add): `u32`, which every card adds at once.
pub trait Drawn: imp::Draws {}
impl<T: imp::Draws> Drawn for T {}

/// What they may [update](Shared::update) at the same time: `u32` and `u64`.
pub trait Exchangeable: imp::Exchanges {}
impl<T: imp::Exchanges> Exchangeable for T {}

impl<T: Plain> Shared<T> {
    /// A handle to `len` elements at `ptr`.
    ///
    /// # Safety
    ///
    /// `ptr` points to `len` elements of the calling block's shared memory.
    #[inline(always)]
    pub const unsafe fn from_raw(ptr: *mut T, len: usize) -> Self {
        Shared { ptr, len }
    }

    /// The number of elements.
    #[inline(always)]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Reads element `index`.
    ///
    /// # Safety
    ///
    /// `index < len`; the element has been written in this block; and between that write, or any other by another
    /// thread, and this read lies a barrier (or, within a warp, [`sync_warp`](crate::warp::sync_warp)).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn read(self, index: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { imp::shared_read(self.ptr, self.len, index) }
    }

    /// Writes element `index`.
    ///
    /// # Safety
    ///
    /// `index < len`, and between any access of another thread to the element and this write lies a barrier (or,
    /// within a warp, [`sync_warp`](crate::warp::sync_warp)).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn write(self, index: usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { imp::shared_write(self.ptr, self.len, index, value) }
    }

    /// Asks for element `index` to be what 16 bytes of global memory hold, and does not wait for it. It arrives with the group that the calling
    /// thread [closes](commit_copies) next: after [`wait_copies`] this thread may read it, and others after a barrier more.
    /// Cards before compute capability 8.0 wait at once.
    ///
    /// # Safety
    ///
    /// `index < len`, and `T` has 16 bytes; between any access of another thread to the element and this call lies a barrier. `from` is
    /// readable and aligned to 16 bytes, and not written until it has arrived; nobody uses the element until then.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn copy_async(self, index: usize, from: *const T) {
        const { assert!(size_of::<T>() == 16, "16 bytes at a time are copied without a wait") };
        // SAFETY: the caller's promise.
        unsafe { imp::shared_copy_async(self.ptr, self.len, index, from) }
    }

    /// Adds to element `index`; integers wrap. Additions of several threads to one element need no barrier between them.
    ///
    /// No card adds 64 bits at once here. Integers take two additions, the second with what the first carries: so much faster than
    /// floats, of which a card tries until nobody came between, that sums are worth bringing into this form.
    ///
    /// # Safety
    ///
    /// `index < len`; the element has been written in this block; and between any access of another thread that is no
    /// such addition and this one lies a barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn add(self, index: usize, value: T)
    where
        T: Counter,
    {
        // SAFETY: the caller's promise.
        unsafe { imp::shared_add(self.ptr, self.len, index, value) }
    }

    /// As [`add`](Shared::add), and returns what was there before. Which of several threads comes first is open.
    ///
    /// # Safety
    ///
    /// As for [`add`](Shared::add).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn fetch_add(self, index: usize, value: T) -> T
    where
        T: Drawn,
    {
        // SAFETY: the caller's promise.
        unsafe { imp::shared_fetch_add(self.ptr, self.len, index, value) }
    }

    /// Puts what `new` makes of element `index` in its place, as one step among the block's threads. `new` is asked again where
    /// another thread came between.
    ///
    /// # Safety
    ///
    /// `index < len`; the element has been written in this block; and between any access of another thread that is no
    /// `update` and this one lies a barrier.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn update(self, index: usize, new: impl Fn(T) -> T)
    where
        T: Exchangeable,
    {
        // SAFETY: the caller's promise.
        unsafe { imp::shared_update(self.ptr, self.len, index, new) }
    }

    /// The address of the first element. Accesses through it are beyond the simulator's sight, so that it stops
    /// checking this array for races and unwritten reads.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        imp::shared_untracked(self.ptr, self.len);
        self.ptr
    }

    /// The elements from number `first` on; none if there are fewer.
    #[inline(always)]
    pub fn from(self, first: usize) -> Self {
        let first = if first < self.len { first } else { self.len };
        Shared { ptr: self.ptr.wrapping_add(first), len: self.len - first }
    }

    /// The same memory as elements of another type: as many as it has bytes for.
    ///
    /// # Safety
    ///
    /// `U` is no more aligned than `T`. What is read as one type has been written as it, or is plain data in any case.
    #[inline(always)]
    pub unsafe fn cast<U: Plain>(self) -> Shared<U> {
        let bytes = self.len * size_of::<T>();
        Shared {
            ptr: self.ptr.cast(),
            len: if size_of::<U>() == 0 { self.len } else { bytes / size_of::<U>() },
        }
    }

    /// The first `len` elements, or all if there are fewer.
    #[inline(always)]
    pub fn first(self, len: usize) -> Self {
        Shared { ptr: self.ptr, len: if len < self.len { len } else { self.len } }
    }
}

/// Closes a group of what the calling thread has [asked for](Shared::copy_async) since the last one, which may be nothing.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn commit_copies() {
    imp::commit_copies()
}

/// Waits until all groups that the calling thread has closed have arrived, but for the last `NEWEST`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn wait_copies<const NEWEST: usize>() {
    imp::wait_copies::<NEWEST>()
}

/// The block's dynamic shared memory, as `len` elements: what the launch asked for beyond the declared arrays. Every
/// call yields the same memory.
///
/// # Safety
///
/// The launch asked for at least `len * size_of::<T>()` bytes, and `T` is aligned to 16 bytes or less.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn dynamic_shared<T: Plain>(len: usize) -> Shared<T> {
    Shared { ptr: imp::dynamic_shared(len), len }
}

/// The start of the block's dynamic shared memory, as `cuda_std` names it. See [`dynamic_shared`], which the
/// simulator can check.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn dynamic_shared_mem<T: Plain>() -> *mut T {
    let ptr = imp::dynamic_shared(0);
    imp::shared_untracked(ptr, usize::MAX);
    ptr
}

/// Declares an array in shared memory: `shared!([f64; 32])` is a [`Shared<f64>`](crate::shared::Shared) of 32
/// elements, the same for every thread of the block, not initialised. The type is concrete and [`Plain`]; each place
/// in the source is an array of its own.
///
/// [`Plain`]: warpfold_monoid::Plain
#[macro_export]
macro_rules! shared {
    ([$ty:ty; $len:expr]) => {{
        #[cfg(target_arch = "nvptx64")]
        let tile = {
            #[unsafe(link_section = ".shared")]
            static mut TILE: ::core::mem::MaybeUninit<[$ty; $len]> = ::core::mem::MaybeUninit::uninit();
            // SAFETY: the array has `$len` elements.
            unsafe { $crate::shared::Shared::<$ty>::from_raw((&raw mut TILE).cast::<$ty>(), $len) }
        };
        #[cfg(not(target_arch = "nvptx64"))]
        let tile = {
            static TILE: $crate::sim::SharedSite = $crate::sim::SharedSite::new();
            TILE.array::<$ty>($len)
        };
        tile
    }};
}

/// Declares an array in shared memory as `cuda_std` does: `shared_array![f32; 256]` is a `*mut f32` to 256 elements,
/// not initialised. The simulator cannot see accesses through a pointer; [`shared!`](crate::shared!) is checked.
///
/// ```
/// use warpfold_simt::sim::{self, Launch, Options};
/// use warpfold_simt::{shared_array, thread};
///
/// # fn main() -> Result<(), sim::Fault> {
/// sim::launch(&Launch::new("pointer", 1, 256), &Options::default(), || {
///     let tile = shared_array![f32; 256];
///     // SAFETY: one element a thread.
///     unsafe { *tile.add(thread::thread_idx_x() as usize) = 1.0 };
///     thread::sync_threads();
/// })?;
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! shared_array {
    ($ty:ty; $len:expr) => {
        $crate::shared!([$ty; $len]).as_ptr()
    };
}
