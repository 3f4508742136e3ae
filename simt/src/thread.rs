//! Where a thread stands in its block and grid, and the block's barrier.

use crate::imp;

/// Two coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vec2 {
    /// Along x, the fastest-varying one.
    pub x: u32,
    /// Along y.
    pub y: u32,
}

/// Three coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vec3 {
    /// Along x, the fastest-varying one.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

#[cfg(not(target_arch = "nvptx64"))]
mod shapes {
    use super::Vec3;

    impl From<u32> for Vec3 {
        fn from(x: u32) -> Self {
            Vec3 { x, y: 1, z: 1 }
        }
    }

    impl From<(u32, u32)> for Vec3 {
        fn from((x, y): (u32, u32)) -> Self {
            Vec3 { x, y, z: 1 }
        }
    }

    impl From<(u32, u32, u32)> for Vec3 {
        fn from((x, y, z): (u32, u32, u32)) -> Self {
            Vec3 { x, y, z }
        }
    }

    impl std::fmt::Display for Vec3 {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "({}, {}, {})", self.x, self.y, self.z)
        }
    }
}

macro_rules! coordinates {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> u32 {
            imp::$name()
        }
    )*};
}

coordinates! {
    /// This thread's x coordinate in its block.
    thread_idx_x
    /// This thread's y coordinate in its block.
    thread_idx_y
    /// This thread's z coordinate in its block.
    thread_idx_z
    /// This block's x coordinate in the grid.
    block_idx_x
    /// This block's y coordinate in the grid.
    block_idx_y
    /// This block's z coordinate in the grid.
    block_idx_z
    /// The block's threads along x.
    block_dim_x
    /// The block's threads along y.
    block_dim_y
    /// The block's threads along z.
    block_dim_z
    /// The grid's blocks along x.
    grid_dim_x
    /// The grid's blocks along y.
    grid_dim_y
    /// The grid's blocks along z.
    grid_dim_z
}

/// This thread's coordinates in its block.
#[inline(always)]
pub fn thread_idx() -> Vec3 {
    Vec3 { x: thread_idx_x(), y: thread_idx_y(), z: thread_idx_z() }
}

/// This block's coordinates in the grid.
#[inline(always)]
pub fn block_idx() -> Vec3 {
    Vec3 { x: block_idx_x(), y: block_idx_y(), z: block_idx_z() }
}

/// The block's shape in threads.
#[inline(always)]
pub fn block_dim() -> Vec3 {
    Vec3 { x: block_dim_x(), y: block_dim_y(), z: block_dim_z() }
}

/// The grid's shape in blocks.
#[inline(always)]
pub fn grid_dim() -> Vec3 {
    Vec3 { x: grid_dim_x(), y: grid_dim_y(), z: grid_dim_z() }
}

/// This thread's number in the whole grid, unique for every shape of block and grid: blocks count x first, then y,
/// then z, and so do threads in a block. It wraps past 2^32 threads.
#[inline(always)]
pub fn index() -> u32 {
    let (grid, block) = (grid_dim(), block_idx());
    let (dim, thread) = (block_dim(), thread_idx());
    let block_number =
        (block.z.wrapping_mul(grid.y).wrapping_add(block.y)).wrapping_mul(grid.x).wrapping_add(block.x);
    let thread_number = (thread.z * dim.y + thread.y) * dim.x + thread.x;
    block_number.wrapping_mul(dim.x * dim.y * dim.z).wrapping_add(thread_number)
}

/// This thread's number in a one-dimensional grid. It wraps past 2^32 threads.
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x().wrapping_mul(block_dim_x()).wrapping_add(thread_idx_x())
}

/// This thread's coordinates in a two-dimensional grid of threads.
#[inline(always)]
pub fn index_2d() -> Vec2 {
    Vec2 { x: index_1d(), y: block_idx_y().wrapping_mul(block_dim_y()).wrapping_add(thread_idx_y()) }
}

/// This thread's coordinates in a three-dimensional grid of threads.
#[inline(always)]
pub fn index_3d() -> Vec3 {
    let Vec2 { x, y } = index_2d();
    Vec3 { x, y, z: block_idx_z().wrapping_mul(block_dim_z()).wrapping_add(thread_idx_z()) }
}

/// Whether this is thread 0 of block 0. True for exactly one thread of the grid.
#[inline(always)]
pub fn first() -> bool {
    block_idx() == Vec3 { x: 0, y: 0, z: 0 } && thread_idx() == Vec3 { x: 0, y: 0, z: 0 }
}

/// The threads of a warp: 32 on every architecture.
#[inline(always)]
pub fn warp_size() -> u32 {
    32
}

/// Waits until every thread of the block is here (`bar.sync 0`). What a thread wrote to shared or global memory
/// before the barrier, every thread of the block sees after it.
///
/// Every thread of the block must reach the same barrier: none may skip it or have returned.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads() {
    imp::sync_threads()
}

/// [`sync_threads`], which also counts the threads whose `predicate` is not zero.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads_count(predicate: u32) -> u32 {
    imp::sync_threads_count(predicate != 0)
}

/// [`sync_threads`], which also says whether every thread's `predicate` is not zero: 1 if so, else 0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads_and(predicate: u32) -> u32 {
    u32::from(imp::sync_threads_and(predicate != 0))
}

/// [`sync_threads`], which also says whether any thread's `predicate` is not zero: 1 if so, else 0.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn sync_threads_or(predicate: u32) -> u32 {
    u32::from(imp::sync_threads_or(predicate != 0))
}

/// Orders this thread's memory accesses for the threads of its block (`fence.sc.cta`). No thread waits.
#[inline(always)]
pub fn block_fence() {
    imp::fence_sc_cta()
}

/// Orders this thread's memory accesses for every thread of the device (`fence.sc.gpu`). No thread waits.
#[inline(always)]
pub fn device_fence() {
    imp::fence_sc_gpu()
}

/// The same as [`device_fence`]: a grid runs on one device.
#[inline(always)]
pub fn grid_fence() {
    imp::fence_sc_gpu()
}

/// Orders this thread's memory accesses for every thread of every device and the host (`fence.sc.sys`).
#[inline(always)]
pub fn system_fence() {
    imp::fence_sc_sys()
}

/// Sleeps for about `nanos` nanoseconds, at most a millisecond. A loop that waits for another thread calls it (or
/// polls with one of the loads of [`global`](crate::global) that are made for polling): in the simulator these are
/// what lets the other threads go on.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn nanosleep(nanos: u32) {
    imp::nanosleep(nanos)
}

/// The multiprocessor's clock, in cycles. In the simulator, a count of the launch's thread switches.
#[inline(always)]
pub fn clock64() -> u64 {
    imp::clock64()
}

/// Stops the whole grid with an error. In the simulator, a [`Fault`](crate::sim::Fault) that names this thread.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn trap() -> ! {
    imp::trap()
}
