//! The device side of the seam: every primitive as the PTX instruction it stands for.
//!
//! Barriers, shuffles, votes and matches go through LLVM's own intrinsics, which LLVM knows to be convergent; an
//! `asm!` block is not, and could be moved into or out of divergent code. Memory accesses, fences and atomics are
//! `asm!`, because rustc's atomics lose their ordering on this target and its references have no address space.

use core::arch::asm;
use core::mem::MaybeUninit;
use core::ptr::{read_unaligned, write_unaligned};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use warpfold_monoid::Plain;

use crate::warp::Mode;

macro_rules! intrinsics {
    ($($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $link:literal;)*) => {
        unsafe extern "C" {
            $(#[link_name = $link] safe fn $name($($arg: $ty),*) $(-> $ret)?;)*
        }
    };
}

// Safe in the sense of Rust: none of them touches memory that Rust sees. What a mask must name is the
// contract of the public functions above them.
intrinsics! {
    sreg_tid_x() -> u32 = "llvm.nvvm.read.ptx.sreg.tid.x";
    sreg_tid_y() -> u32 = "llvm.nvvm.read.ptx.sreg.tid.y";
    sreg_tid_z() -> u32 = "llvm.nvvm.read.ptx.sreg.tid.z";
    sreg_ntid_x() -> u32 = "llvm.nvvm.read.ptx.sreg.ntid.x";
    sreg_ntid_y() -> u32 = "llvm.nvvm.read.ptx.sreg.ntid.y";
    sreg_ntid_z() -> u32 = "llvm.nvvm.read.ptx.sreg.ntid.z";
    sreg_ctaid_x() -> u32 = "llvm.nvvm.read.ptx.sreg.ctaid.x";
    sreg_ctaid_y() -> u32 = "llvm.nvvm.read.ptx.sreg.ctaid.y";
    sreg_ctaid_z() -> u32 = "llvm.nvvm.read.ptx.sreg.ctaid.z";
    sreg_nctaid_x() -> u32 = "llvm.nvvm.read.ptx.sreg.nctaid.x";
    sreg_nctaid_y() -> u32 = "llvm.nvvm.read.ptx.sreg.nctaid.y";
    sreg_nctaid_z() -> u32 = "llvm.nvvm.read.ptx.sreg.nctaid.z";
    sreg_laneid() -> u32 = "llvm.nvvm.read.ptx.sreg.laneid";
    sreg_clock64() -> u64 = "llvm.nvvm.read.ptx.sreg.clock64";
    nvvm_activemask() -> u32 = "llvm.nvvm.activemask";
    nvvm_nanosleep(nanos: u32) = "llvm.nvvm.nanosleep";
    barrier_sync(id: u32) = "llvm.nvvm.barrier.cta.sync.aligned.all";
    barrier_and(id: u32, predicate: bool) -> bool = "llvm.nvvm.barrier.cta.red.and.aligned.all";
    barrier_or(id: u32, predicate: bool) -> bool = "llvm.nvvm.barrier.cta.red.or.aligned.all";
    barrier_popc(id: u32, predicate: bool) -> u32 = "llvm.nvvm.barrier.cta.red.popc.aligned.all";
    bar_warp_sync(mask: u32) = "llvm.nvvm.bar.warp.sync";
    shfl_up(mask: u32, value: u32, b: u32, c: u32) -> u32 = "llvm.nvvm.shfl.sync.up.i32";
    shfl_down(mask: u32, value: u32, b: u32, c: u32) -> u32 = "llvm.nvvm.shfl.sync.down.i32";
    shfl_bfly(mask: u32, value: u32, b: u32, c: u32) -> u32 = "llvm.nvvm.shfl.sync.bfly.i32";
    shfl_idx(mask: u32, value: u32, b: u32, c: u32) -> u32 = "llvm.nvvm.shfl.sync.idx.i32";
    nvvm_vote_all(mask: u32, predicate: bool) -> bool = "llvm.nvvm.vote.all.sync";
    nvvm_vote_any(mask: u32, predicate: bool) -> bool = "llvm.nvvm.vote.any.sync";
    nvvm_vote_uni(mask: u32, predicate: bool) -> bool = "llvm.nvvm.vote.uni.sync";
    nvvm_vote_ballot(mask: u32, predicate: bool) -> u32 = "llvm.nvvm.vote.ballot.sync";
    match_any_32(mask: u32, value: u32) -> u32 = "llvm.nvvm.match.any.sync.i32";
    match_any_64(mask: u32, value: u64) -> u32 = "llvm.nvvm.match.any.sync.i64";
}

/// A word, and whether the lane that was asked for lies in the caller's segment: `{ i32, i1 }` to LLVM.
#[repr(C)]
struct Flagged {
    word: u32,
    in_range: bool,
}

// SAFETY: the intrinsics' own signatures; they touch no memory. Results of two parts have no other ABI.
unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.shfl.sync.up.i32p"]
    safe fn shfl_up_flagged(mask: u32, value: u32, b: u32, c: u32) -> Flagged;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32p"]
    safe fn shfl_down_flagged(mask: u32, value: u32, b: u32, c: u32) -> Flagged;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32p"]
    safe fn shfl_bfly_flagged(mask: u32, value: u32, b: u32, c: u32) -> Flagged;
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32p"]
    safe fn shfl_idx_flagged(mask: u32, value: u32, b: u32, c: u32) -> Flagged;
}

// Threads.

macro_rules! sregs {
    ($($name:ident = $sreg:ident;)*) => {
        $(#[inline(always)] pub(crate) fn $name() -> u32 { $sreg() })*
    };
}

sregs! {
    thread_idx_x = sreg_tid_x; thread_idx_y = sreg_tid_y; thread_idx_z = sreg_tid_z;
    block_dim_x = sreg_ntid_x; block_dim_y = sreg_ntid_y; block_dim_z = sreg_ntid_z;
    block_idx_x = sreg_ctaid_x; block_idx_y = sreg_ctaid_y; block_idx_z = sreg_ctaid_z;
    grid_dim_x = sreg_nctaid_x; grid_dim_y = sreg_nctaid_y; grid_dim_z = sreg_nctaid_z;
    lane_id = sreg_laneid;
    active_mask = nvvm_activemask;
}

#[inline(always)]
pub(crate) fn clock64() -> u64 {
    sreg_clock64()
}

#[inline(always)]
pub(crate) fn nanosleep(nanos: u32) {
    nvvm_nanosleep(nanos)
}

#[inline(always)]
pub(crate) fn trap() -> ! {
    // SAFETY: stops the whole grid; nothing runs after it.
    unsafe { core::arch::nvptx::trap() }
}

#[inline(always)]
pub(crate) fn sync_threads() {
    barrier_sync(0)
}

#[inline(always)]
pub(crate) fn sync_threads_and(predicate: bool) -> bool {
    barrier_and(0, predicate)
}

#[inline(always)]
pub(crate) fn sync_threads_or(predicate: bool) -> bool {
    barrier_or(0, predicate)
}

#[inline(always)]
pub(crate) fn sync_threads_count(predicate: bool) -> u32 {
    barrier_popc(0, predicate)
}

macro_rules! fences {
    ($($name:ident = $ptx:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name() {
            // SAFETY: a fence has no operands; without `nomem` it also stops the compiler from moving accesses.
            unsafe { asm!($ptx, options(nostack, preserves_flags)) }
        }
    )*};
}

fences! {
    fence_acq_rel_cta = "fence.acq_rel.cta;";
    fence_acq_rel_gpu = "fence.acq_rel.gpu;";
    fence_acq_rel_sys = "fence.acq_rel.sys;";
    fence_sc_cta = "fence.sc.cta;";
    fence_sc_gpu = "fence.sc.gpu;";
    fence_sc_sys = "fence.sc.sys;";
}

#[cfg(target_feature = "sm_90")]
fences! {
    grid_wait = "griddepcontrol.wait;";
    grid_let_next_start = "griddepcontrol.launch_dependents;";
}

/// Before sm_90 grids follow each other whole.
#[cfg(not(target_feature = "sm_90"))]
#[inline(always)]
pub(crate) fn grid_wait() {}

#[cfg(not(target_feature = "sm_90"))]
#[inline(always)]
pub(crate) fn grid_let_next_start() {}

// Warps.

#[inline(always)]
pub(crate) unsafe fn sync_warp(mask: u32) {
    bar_warp_sync(mask)
}

#[inline(always)]
fn shuffle_word(mode: Mode, mask: u32, value: u32, b: u32, c: u32) -> u32 {
    match mode {
        Mode::Up => shfl_up(mask, value, b, c),
        Mode::Down => shfl_down(mask, value, b, c),
        Mode::Xor => shfl_bfly(mask, value, b, c),
        Mode::Idx => shfl_idx(mask, value, b, c),
    }
}

/// Shuffles `T` as 32-bit words, and the last one to three bytes as one more word.
///
/// The first sixteen words are spelled out rather than looped over: with constant offsets the copies of the value
/// on the stack always dissolve into registers, whatever the unroller thinks of the loop.
#[inline(always)]
pub(crate) unsafe fn shuffle<T: Plain>(mode: Mode, mask: u32, value: T, b: u32, c: u32) -> T {
    let mut out = MaybeUninit::<T>::uninit();
    let from = (&raw const value).cast::<u8>();
    let to = out.as_mut_ptr().cast::<u8>();
    let size = const { size_of::<T>() };
    // SAFETY: every access below lies within the `size` initialised bytes of `value` (`Plain` has no padding) and
    // the `size` bytes of `out`, which are all written.
    unsafe {
        macro_rules! words {
            ($($i:literal)*) => {$(
                if size >= $i * 4 + 4 {
                    let word = read_unaligned(from.add($i * 4).cast::<u32>());
                    write_unaligned(to.add($i * 4).cast::<u32>(), shuffle_word(mode, mask, word, b, c));
                }
            )*};
        }
        words!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        let mut at = 64;
        while at + 4 <= size {
            let word = read_unaligned(from.add(at).cast::<u32>());
            write_unaligned(to.add(at).cast::<u32>(), shuffle_word(mode, mask, word, b, c));
            at += 4;
        }
        let tail = size & !3;
        match size & 3 {
            1 => {
                let word = shuffle_word(mode, mask, u32::from(*from.add(tail)), b, c);
                *to.add(tail) = word as u8;
            }
            2 => {
                let word = u32::from(read_unaligned(from.add(tail).cast::<u16>()));
                write_unaligned(to.add(tail).cast::<u16>(), shuffle_word(mode, mask, word, b, c) as u16);
            }
            3 => {
                let low = u32::from(read_unaligned(from.add(tail).cast::<u16>()));
                let word = shuffle_word(mode, mask, low | u32::from(*from.add(tail + 2)) << 16, b, c);
                write_unaligned(to.add(tail).cast::<u16>(), word as u16);
                *to.add(tail + 2) = (word >> 16) as u8;
            }
            _ => {}
        }
        out.assume_init()
    }
}

/// Shuffles, and says what the instruction says of the range where the value is the one word that it moves; else nothing.
#[inline(always)]
pub(crate) unsafe fn shuffle_flagged<T: Plain>(
    mode: Mode,
    mask: u32,
    value: T,
    b: u32,
    c: u32,
) -> (T, Option<bool>) {
    if const { size_of::<T>() != 4 } {
        // SAFETY: the caller's promise.
        return (unsafe { shuffle(mode, mask, value, b, c) }, None);
    }
    // SAFETY: four initialised bytes (`Plain` has no padding), of a type that any bytes of a value of it are fit for.
    unsafe {
        let word = core::mem::transmute_copy::<T, u32>(&value);
        let Flagged { word, in_range } = match mode {
            Mode::Up => shfl_up_flagged(mask, word, b, c),
            Mode::Down => shfl_down_flagged(mask, word, b, c),
            Mode::Xor => shfl_bfly_flagged(mask, word, b, c),
            Mode::Idx => shfl_idx_flagged(mask, word, b, c),
        };
        (core::mem::transmute_copy::<u32, T>(&word), Some(in_range))
    }
}

#[inline(always)]
pub(crate) unsafe fn vote_all(mask: u32, predicate: bool) -> bool {
    nvvm_vote_all(mask, predicate)
}

#[inline(always)]
pub(crate) unsafe fn vote_any(mask: u32, predicate: bool) -> bool {
    nvvm_vote_any(mask, predicate)
}

#[inline(always)]
pub(crate) unsafe fn vote_uni(mask: u32, predicate: bool) -> bool {
    nvvm_vote_uni(mask, predicate)
}

#[inline(always)]
pub(crate) unsafe fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    nvvm_vote_ballot(mask, predicate)
}

#[inline(always)]
pub(crate) unsafe fn match_any_u32(mask: u32, value: u32) -> u32 {
    match_any_32(mask, value)
}

#[inline(always)]
pub(crate) unsafe fn match_any_u64(mask: u32, value: u64) -> u32 {
    match_any_64(mask, value)
}

#[cfg(target_feature = "sm_80")]
mod redux {
    intrinsics! {
        add(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.add";
        umin(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.umin";
        umax(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.umax";
        smin(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.min";
        smax(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.max";
        and(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.and";
        or(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.or";
        xor(value: u32, mask: u32) -> u32 = "llvm.nvvm.redux.sync.xor";
    }

    use crate::warp::Redux;

    #[inline(always)]
    pub(crate) unsafe fn redux(op: Redux, mask: u32, value: u32) -> u32 {
        match op {
            Redux::Add => add(value, mask),
            Redux::MinU32 => umin(value, mask),
            Redux::MaxU32 => umax(value, mask),
            Redux::MinI32 => smin(value, mask),
            Redux::MaxI32 => smax(value, mask),
            Redux::And => and(value, mask),
            Redux::Or => or(value, mask),
            Redux::Xor => xor(value, mask),
        }
    }
}
#[cfg(target_feature = "sm_80")]
pub(crate) use redux::redux;

/// Before sm_80: a butterfly over a full warp; over fewer lanes, each in turn broadcasts its value.
#[cfg(not(target_feature = "sm_80"))]
#[inline(always)]
pub(crate) unsafe fn redux(op: crate::warp::Redux, mask: u32, value: u32) -> u32 {
    let mut acc = value;
    if mask == crate::warp::FULL {
        let mut lane_mask = 16;
        while lane_mask > 0 {
            acc = op.combine(acc, shfl_bfly(mask, acc, lane_mask, 31));
            lane_mask /= 2;
        }
        return acc;
    }
    acc = shfl_idx(mask, value, mask.trailing_zeros(), 31);
    let mut rest = mask & (mask - 1);
    while rest != 0 {
        acc = op.combine(acc, shfl_idx(mask, value, rest.trailing_zeros(), 31));
        rest &= rest - 1;
    }
    acc
}

// Shared memory.

#[inline(always)]
pub(crate) unsafe fn shared_read<T: Plain>(ptr: *const T, _len: usize, index: usize) -> T {
    // SAFETY: the caller promises `index` within the array and a value written before.
    unsafe { ptr.add(index).read() }
}

#[inline(always)]
pub(crate) unsafe fn shared_write<T: Plain>(ptr: *mut T, _len: usize, index: usize, value: T) {
    // SAFETY: the caller promises `index` within the array.
    unsafe { ptr.add(index).write(value) }
}

#[cfg(target_feature = "sm_80")]
#[inline(always)]
pub(crate) unsafe fn shared_copy_async<T: Plain>(ptr: *mut T, _len: usize, index: usize, from: *const T) {
    // SAFETY: the caller promises `index` within the array, and 16 readable bytes, aligned.
    unsafe {
        asm!(
            "{{",
            ".reg .u64 %to;",
            "cvta.to.shared.u64 %to, {to};",
            "cp.async.cg.shared.global [%to], [{from}], 16;",
            "}}",
            to = in(reg64) ptr.add(index),
            from = in(reg64) from,
            options(nostack),
        );
    }
}

#[cfg(not(target_feature = "sm_80"))]
#[inline(always)]
pub(crate) unsafe fn shared_copy_async<T: Plain>(ptr: *mut T, len: usize, index: usize, from: *const T) {
    // SAFETY: the caller's promise.
    unsafe { shared_write(ptr, len, index, load_vector::<T, 1, crate::global::hint::Cg>(from)[0]) }
}

#[inline(always)]
pub(crate) fn commit_copies() {
    // SAFETY: waits for nothing.
    #[cfg(target_feature = "sm_80")]
    unsafe {
        asm!("cp.async.commit_group;", options(nostack));
    }
}

#[inline(always)]
pub(crate) fn wait_copies<const NEWEST: usize>() {
    // SAFETY: a wait. What has arrived may be read, so nothing moves across.
    #[cfg(target_feature = "sm_80")]
    unsafe {
        asm!("cp.async.wait_group {};", const NEWEST, options(nostack));
    }
}

/// What several threads add to at once in shared memory.
pub trait Counters: Plain {
    /// # Safety
    /// `ptr` is an aligned word of shared memory.
    unsafe fn add(ptr: *mut Self, value: Self);
}

/// By rustc's own atomics, relaxed: they keep the address space.
impl Counters for u32 {
    #[inline(always)]
    unsafe fn add(ptr: *mut u32, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { AtomicU32::from_ptr(ptr) }.fetch_add(value, Ordering::Relaxed);
    }
}

/// Cards add 32 bits at once, and 64 only by trying: what the lower half carries goes with the upper one.
impl Counters for u64 {
    #[inline(always)]
    unsafe fn add(ptr: *mut u64, value: u64) {
        let (lower, upper) = (value as u32, (value >> 32) as u32);
        // SAFETY: the caller's promise.
        let before = unsafe { AtomicU32::from_ptr(ptr.cast()) }.fetch_add(lower, Ordering::Relaxed);
        let upper = upper.wrapping_add((before.wrapping_add(lower) < lower) as u32);
        // Without a question: a branch costs more than an addition of nothing.
        // SAFETY: the caller's promise; the word behind the lower one.
        unsafe { AtomicU32::from_ptr(ptr.cast::<u32>().add(1)) }.fetch_add(upper, Ordering::Relaxed);
    }
}

/// rustc has no atomic floats; the instruction is a loop that cards know better than one of ours.
impl Counters for f64 {
    #[inline(always)]
    unsafe fn add(ptr: *mut f64, value: f64) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("{{ .reg .u64 place; cvta.to.shared.u64 place, {}; red.relaxed.cta.shared.add.f64 [place], {}; }}",
                in(reg64) ptr, in(reg64) value, options(nostack, preserves_flags));
        }
    }
}

/// What several threads update at once in shared memory.
pub trait Exchanges: Plain + Eq {
    /// # Safety
    /// `ptr` is an aligned word of shared memory.
    unsafe fn read(ptr: *mut Self) -> Self;
    /// Puts `new` there if `old` is; else says what is.
    ///
    /// # Safety
    /// The same.
    unsafe fn replace(ptr: *mut Self, old: Self, new: Self) -> Result<(), Self>;
}

macro_rules! exchanges {
    ($($ty:ty: $atomic:ident;)*) => {$(
        impl Exchanges for $ty {
            #[inline(always)]
            unsafe fn read(ptr: *mut Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $atomic::from_ptr(ptr) }.load(Ordering::Relaxed)
            }
            #[inline(always)]
            unsafe fn replace(ptr: *mut Self, old: Self, new: Self) -> Result<(), Self> {
                // SAFETY: the caller's promise.
                let word = unsafe { $atomic::from_ptr(ptr) };
                word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).map(|_| ())
            }
        }
    )*};
}

exchanges! {
    u32: AtomicU32;
    u64: AtomicU64;
}

#[inline(always)]
pub(crate) unsafe fn shared_add<T: Counters>(ptr: *mut T, _len: usize, index: usize, value: T) {
    // SAFETY: the caller promises `index` within the array, whose elements are aligned.
    unsafe { T::add(ptr.add(index), value) }
}

/// What several threads draw numbers from in shared memory.
pub trait Draws: Counters {
    /// # Safety
    /// `ptr` is an aligned word of shared memory.
    unsafe fn draw(ptr: *mut Self, value: Self) -> Self;
}

impl Draws for u32 {
    #[inline(always)]
    unsafe fn draw(ptr: *mut u32, value: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { AtomicU32::from_ptr(ptr) }.fetch_add(value, Ordering::Relaxed)
    }
}

#[inline(always)]
pub(crate) unsafe fn shared_fetch_add<T: Draws>(ptr: *mut T, _len: usize, index: usize, value: T) -> T {
    // SAFETY: the caller promises `index` within the array, whose elements are aligned.
    unsafe { T::draw(ptr.add(index), value) }
}

#[inline(always)]
pub(crate) unsafe fn shared_update<T: Exchanges>(
    ptr: *mut T,
    _len: usize,
    index: usize,
    new: impl Fn(T) -> T,
) {
    let place = ptr.wrapping_add(index);
    // SAFETY: the caller promises `index` within the array, whose elements are aligned.
    let mut old = unsafe { T::read(place) };
    loop {
        let value = new(old);
        if value == old {
            return;
        }
        // SAFETY: as above.
        match unsafe { T::replace(place, old, value) } {
            Ok(()) => return,
            Err(now) => old = now,
        }
    }
}

#[inline(always)]
pub(crate) fn shared_untracked<T: Plain>(_ptr: *mut T, _len: usize) {}

/// The block's dynamic shared memory: an empty static in this section is where the PTX builder lets it start.
#[unsafe(link_section = ".shared")]
static mut DYNAMIC_SHARED: [u128; 0] = [];

#[inline(always)]
pub(crate) fn dynamic_shared<T: Plain>(_len: usize) -> *mut T {
    (&raw mut DYNAMIC_SHARED).cast()
}

// Global memory.

/// The loads of one cache hint, by width.
pub trait Loads {
    /// # Safety
    /// `ptr` points to a readable byte of global memory.
    unsafe fn b8(ptr: *const u8) -> u8;
    /// # Safety
    /// `ptr` points to 2 readable bytes of global memory and is aligned to them.
    unsafe fn b16(ptr: *const u8) -> u16;
    /// # Safety
    /// `ptr` points to 4 readable bytes of global memory and is aligned to them.
    unsafe fn b32(ptr: *const u8) -> u32;
    /// # Safety
    /// `ptr` points to 8 readable bytes of global memory and is aligned to them.
    unsafe fn b64(ptr: *const u8) -> u64;
    /// # Safety
    /// `ptr` points to 16 readable bytes of global memory and is aligned to them.
    unsafe fn v4b32(ptr: *const u8) -> [u32; 4];
    /// # Safety
    /// `ptr` points to 16 readable bytes of global memory and is aligned to them.
    unsafe fn v2b64(ptr: *const u8) -> [u64; 2];

    /// [`Loads::b8`] if `wanted` is not 0, else any bits.
    ///
    /// # Safety
    /// If `wanted` is not 0, as for [`Loads::b8`].
    unsafe fn b8_if(wanted: u32, ptr: *const u8) -> u8;
    /// # Safety
    /// If `wanted` is not 0, as for [`Loads::b16`].
    unsafe fn b16_if(wanted: u32, ptr: *const u8) -> u16;
    /// # Safety
    /// If `wanted` is not 0, as for [`Loads::b32`].
    unsafe fn b32_if(wanted: u32, ptr: *const u8) -> u32;
    /// # Safety
    /// If `wanted` is not 0, as for [`Loads::b64`].
    unsafe fn b64_if(wanted: u32, ptr: *const u8) -> u64;
    /// # Safety
    /// If `wanted` is not 0, as for [`Loads::v4b32`].
    unsafe fn v4b32_if(wanted: u32, ptr: *const u8) -> [u32; 4];
    /// # Safety
    /// If `wanted` is not 0, as for [`Loads::v2b64`].
    unsafe fn v2b64_if(wanted: u32, ptr: *const u8) -> [u64; 2];
}

/// One load instruction behind a predicate. Not `pure`: the compiler would move it to where its value is used, behind a
/// branch, and loads would wait for each other.
macro_rules! load_if {
    ($wanted:ident, $ptr:ident, $ptx:expr, $($reg:ident $out:ident),+) => {
        asm!(concat!("{{ .reg .pred wanted; setp.ne.u32 wanted, {}, 0; @wanted ld.global", $ptx, ", [{}]; }}"),
            in(reg32) $wanted, $(out($reg) $out,)+ in(reg64) $ptr, options(readonly, nostack, preserves_flags))
    };
}

macro_rules! loads {
    ($($(#[$cfg:meta])* $hint:ident = $ptx:literal;)*) => {$(
        $(#[$cfg])*
        // `pure`: two loads of one address may become one, as with plain reads. `readonly`: not moved over writes,
        // fences or barriers.
        // SAFETY (all): the contract of each method is that of the instruction.
        impl Loads for crate::global::hint::$hint {
            #[inline(always)]
            unsafe fn b8(ptr: *const u8) -> u8 {
                let out: u16;
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("ld.global", $ptx, ".u8 {}, [{}];"), out(reg16) out, in(reg64) ptr,
                        options(pure, readonly, nostack, preserves_flags));
                }
                out as u8
            }
            #[inline(always)]
            unsafe fn b16(ptr: *const u8) -> u16 {
                let out;
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("ld.global", $ptx, ".u16 {}, [{}];"), out(reg16) out, in(reg64) ptr,
                        options(pure, readonly, nostack, preserves_flags));
                }
                out
            }
            #[inline(always)]
            unsafe fn b32(ptr: *const u8) -> u32 {
                let out;
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("ld.global", $ptx, ".u32 {}, [{}];"), out(reg32) out, in(reg64) ptr,
                        options(pure, readonly, nostack, preserves_flags));
                }
                out
            }
            #[inline(always)]
            unsafe fn b64(ptr: *const u8) -> u64 {
                let out;
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("ld.global", $ptx, ".u64 {}, [{}];"), out(reg64) out, in(reg64) ptr,
                        options(pure, readonly, nostack, preserves_flags));
                }
                out
            }
            #[inline(always)]
            unsafe fn v4b32(ptr: *const u8) -> [u32; 4] {
                let (a, b, c, d);
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("ld.global", $ptx, ".v4.u32 {{{}, {}, {}, {}}}, [{}];"),
                        out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg64) ptr,
                        options(pure, readonly, nostack, preserves_flags));
                }
                [a, b, c, d]
            }
            #[inline(always)]
            unsafe fn v2b64(ptr: *const u8) -> [u64; 2] {
                let (a, b);
                // SAFETY: as above.
                unsafe {
                    asm!(concat!("ld.global", $ptx, ".v2.u64 {{{}, {}}}, [{}];"),
                        out(reg64) a, out(reg64) b, in(reg64) ptr,
                        options(pure, readonly, nostack, preserves_flags));
                }
                [a, b]
            }
            #[inline(always)]
            unsafe fn b8_if(wanted: u32, ptr: *const u8) -> u8 {
                let out: u16;
                // SAFETY: as above.
                unsafe { load_if!(wanted, ptr, concat!($ptx, ".u8 {}"), reg16 out) }
                out as u8
            }
            #[inline(always)]
            unsafe fn b16_if(wanted: u32, ptr: *const u8) -> u16 {
                let out;
                // SAFETY: as above.
                unsafe { load_if!(wanted, ptr, concat!($ptx, ".u16 {}"), reg16 out) }
                out
            }
            #[inline(always)]
            unsafe fn b32_if(wanted: u32, ptr: *const u8) -> u32 {
                let out;
                // SAFETY: as above.
                unsafe { load_if!(wanted, ptr, concat!($ptx, ".u32 {}"), reg32 out) }
                out
            }
            #[inline(always)]
            unsafe fn b64_if(wanted: u32, ptr: *const u8) -> u64 {
                let out;
                // SAFETY: as above.
                unsafe { load_if!(wanted, ptr, concat!($ptx, ".u64 {}"), reg64 out) }
                out
            }
            #[inline(always)]
            unsafe fn v4b32_if(wanted: u32, ptr: *const u8) -> [u32; 4] {
                let (a, b, c, d);
                // SAFETY: as above.
                unsafe {
                    load_if!(wanted, ptr, concat!($ptx, ".v4.u32 {{{}, {}, {}, {}}}"),
                        reg32 a, reg32 b, reg32 c, reg32 d)
                }
                [a, b, c, d]
            }
            #[inline(always)]
            unsafe fn v2b64_if(wanted: u32, ptr: *const u8) -> [u64; 2] {
                let (a, b);
                // SAFETY: as above.
                unsafe { load_if!(wanted, ptr, concat!($ptx, ".v2.u64 {{{}, {}}}"), reg64 a, reg64 b) }
                [a, b]
            }
        }
    )*};
}

loads! {
    Plainly = "";
    Cg = ".cg";
    Cs = ".cs";
    Lu = ".lu";
    Nc = ".nc";
    NoAllocate = ".L1::no_allocate";
    NcNoAllocate = ".nc.L1::no_allocate";
    L2Prefetch128 = ".L2::128B";
    #[cfg(target_feature = "sm_80")]
    L2Prefetch256 = ".L2::256B";
    #[cfg(not(target_feature = "sm_80"))]
    L2Prefetch256 = ".L2::128B";
}

/// Loads `T` in pieces as wide as its alignment allows.
#[inline(always)]
pub(crate) unsafe fn load<T: Plain, H: Loads>(ptr: *const T) -> T {
    // SAFETY: the caller promises `size_of::<T>()` readable bytes at `ptr`, aligned for `T`.
    unsafe { load_pieces::<T, H, { usize::MAX }>(ptr.cast()) }
}

/// Loads `[T; V]` with one instruction.
#[inline(always)]
pub(crate) unsafe fn load_vector<T: Plain, const V: usize, H: Loads>(ptr: *const T) -> [T; V] {
    // SAFETY: the caller promises that `ptr` is aligned to the whole vector; its size is a power of two up to 16.
    unsafe {
        match const { size_of::<[T; V]>() } {
            2 => load_pieces::<[T; V], H, 2>(ptr.cast()),
            4 => load_pieces::<[T; V], H, 4>(ptr.cast()),
            8 => load_pieces::<[T; V], H, 8>(ptr.cast()),
            16 if size_of::<T>() % 8 == 0 => load_pieces::<[T; V], H, 16>(ptr.cast()),
            16 => {
                let words = H::v4b32(ptr.cast());
                core::mem::transmute_copy::<[u32; 4], [T; V]>(&words)
            }
            _ => load_pieces::<[T; V], H, { usize::MAX }>(ptr.cast()),
        }
    }
}

/// Loads `T` in pieces of `ALIGN` bytes (at most 16), or of its own alignment where that is not given.
///
/// # Safety
/// `ptr` points to `size_of::<T>()` readable bytes of global memory, aligned to the pieces.
#[inline(always)]
unsafe fn load_pieces<T: Plain, H: Loads, const ALIGN: usize>(ptr: *const u8) -> T {
    let mut out = MaybeUninit::<T>::uninit();
    let to = out.as_mut_ptr().cast::<u8>();
    let size = const { size_of::<T>() };
    let piece = const { piece(size_of::<T>(), if ALIGN == usize::MAX { align_of::<T>() } else { ALIGN }) };
    let mut at = 0;
    // SAFETY: every piece lies within the value on both sides, and all of `out` is written.
    unsafe {
        while at < size {
            let (from, to) = (ptr.add(at), to.add(at));
            match piece {
                1 => *to = H::b8(from),
                2 => write_unaligned(to.cast(), H::b16(from)),
                4 => write_unaligned(to.cast(), H::b32(from)),
                8 => write_unaligned(to.cast(), H::b64(from)),
                _ => write_unaligned(to.cast(), H::v2b64(from)),
            }
            at += piece;
        }
        out.assume_init()
    }
}

/// [`load`] if `wanted`, else any bits.
#[inline(always)]
pub(crate) unsafe fn load_if<T: Plain, H: Loads>(wanted: bool, ptr: *const T) -> MaybeUninit<T> {
    // SAFETY: the caller's promise.
    unsafe { load_pieces_if::<T, H, { usize::MAX }>(wanted, ptr.cast()) }
}

/// [`load_vector`] if `wanted`, else any bits.
#[inline(always)]
pub(crate) unsafe fn load_vector_if<T: Plain, const V: usize, H: Loads>(
    wanted: bool,
    ptr: *const T,
) -> MaybeUninit<[T; V]> {
    // SAFETY: the caller promises that `ptr` is aligned to the whole vector; its size is a power of two up to 16.
    unsafe {
        match const { size_of::<[T; V]>() } {
            2 => load_pieces_if::<[T; V], H, 2>(wanted, ptr.cast()),
            4 => load_pieces_if::<[T; V], H, 4>(wanted, ptr.cast()),
            8 => load_pieces_if::<[T; V], H, 8>(wanted, ptr.cast()),
            16 if size_of::<T>() % 8 == 0 => load_pieces_if::<[T; V], H, 16>(wanted, ptr.cast()),
            16 => {
                let words = H::v4b32_if(wanted.into(), ptr.cast());
                core::mem::transmute_copy::<[u32; 4], MaybeUninit<[T; V]>>(&words)
            }
            _ => load_pieces_if::<[T; V], H, { usize::MAX }>(wanted, ptr.cast()),
        }
    }
}

/// [`load_pieces`] if `wanted`, else any bits.
///
/// # Safety
/// If `wanted`, as for [`load_pieces`].
#[inline(always)]
unsafe fn load_pieces_if<T: Plain, H: Loads, const ALIGN: usize>(
    wanted: bool,
    ptr: *const u8,
) -> MaybeUninit<T> {
    let mut out = MaybeUninit::<T>::uninit();
    let to = out.as_mut_ptr().cast::<u8>();
    let size = const { size_of::<T>() };
    let piece = const { piece(size_of::<T>(), if ALIGN == usize::MAX { align_of::<T>() } else { ALIGN }) };
    let (wanted, mut at) = (u32::from(wanted), 0);
    // SAFETY: every piece lies within the value on both sides.
    unsafe {
        while at < size {
            let (from, to) = (ptr.wrapping_add(at), to.add(at));
            match piece {
                1 => *to = H::b8_if(wanted, from),
                2 => write_unaligned(to.cast(), H::b16_if(wanted, from)),
                4 => write_unaligned(to.cast(), H::b32_if(wanted, from)),
                8 => write_unaligned(to.cast(), H::b64_if(wanted, from)),
                _ => write_unaligned(to.cast(), H::v2b64_if(wanted, from)),
            }
            at += piece;
        }
    }
    out
}

/// The widest access, up to 16 bytes, that divides a value of this size and is allowed by this alignment.
const fn piece(size: usize, align: usize) -> usize {
    let mut piece = if align > 16 { 16 } else { align };
    while size % piece != 0 {
        piece /= 2;
    }
    piece
}

macro_rules! stores {
    ($($name:ident = $ptx:literal;)*) => {$(
        /// # Safety
        /// `ptr` points to `size_of::<T>()` writable bytes of global memory, aligned to `piece`.
        #[inline(always)]
        unsafe fn $name<T: Plain>(ptr: *mut u8, value: T, piece: usize) {
            let from = (&raw const value).cast::<u8>();
            let size = const { size_of::<T>() };
            let mut at = 0;
            // SAFETY: every piece lies within the value on both sides; `Plain` has no uninitialised byte.
            unsafe {
                while at < size {
                    let (from, to) = (from.add(at), ptr.add(at));
                    match piece {
                        1 => asm!(concat!("st.global", $ptx, ".u8 [{}], {};"), in(reg64) to,
                            in(reg16) u16::from(*from), options(nostack, preserves_flags)),
                        2 => asm!(concat!("st.global", $ptx, ".u16 [{}], {};"), in(reg64) to,
                            in(reg16) read_unaligned(from.cast::<u16>()), options(nostack, preserves_flags)),
                        4 => asm!(concat!("st.global", $ptx, ".u32 [{}], {};"), in(reg64) to,
                            in(reg32) read_unaligned(from.cast::<u32>()), options(nostack, preserves_flags)),
                        8 => asm!(concat!("st.global", $ptx, ".u64 [{}], {};"), in(reg64) to,
                            in(reg64) read_unaligned(from.cast::<u64>()), options(nostack, preserves_flags)),
                        _ => {
                            let [a, b, c, d] = read_unaligned(from.cast::<[u32; 4]>());
                            asm!(concat!("st.global", $ptx, ".v4.u32 [{}], {{{}, {}, {}, {}}};"), in(reg64) to,
                                in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                                options(nostack, preserves_flags))
                        }
                    }
                    at += piece;
                }
            }
        }
    )*};
}

stores! {
    store_pieces = "";
    store_pieces_streaming = ".cs";
}

#[inline(always)]
pub(crate) unsafe fn store<T: Plain, const STREAMING: bool>(ptr: *mut T, value: T) {
    let piece = const { piece(size_of::<T>(), align_of::<T>()) };
    // SAFETY: the caller promises room for a `T` at `ptr`, aligned for it.
    unsafe {
        if STREAMING {
            store_pieces_streaming(ptr.cast(), value, piece)
        } else {
            store_pieces(ptr.cast(), value, piece)
        }
    }
}

#[inline(always)]
pub(crate) unsafe fn store_vector<T: Plain, const V: usize, const STREAMING: bool>(
    ptr: *mut T,
    value: [T; V],
) {
    let piece = const { piece(size_of::<[T; V]>(), 16) };
    // SAFETY: the caller promises room for the vector at `ptr`, aligned to all of it.
    unsafe {
        if STREAMING {
            store_pieces_streaming(ptr.cast(), value, piece)
        } else {
            store_pieces(ptr.cast(), value, piece)
        }
    }
}

#[inline(always)]
pub(crate) unsafe fn load_pair_relaxed_gpu(ptr: *const [u64; 2]) -> [u64; 2] {
    let (a, b);
    // SAFETY: the caller promises 16 aligned readable bytes.
    unsafe {
        asm!("ld.relaxed.gpu.global.v2.u64 {{{}, {}}}, [{}];", out(reg64) a, out(reg64) b, in(reg64) ptr,
            options(nostack, preserves_flags));
    }
    [a, b]
}

#[inline(always)]
pub(crate) unsafe fn store_pair_relaxed_gpu(ptr: *mut [u64; 2], value: [u64; 2]) {
    // SAFETY: the caller promises 16 aligned writable bytes.
    unsafe {
        asm!("st.relaxed.gpu.global.v2.u64 [{}], {{{}, {}}};", in(reg64) ptr, in(reg64) value[0],
            in(reg64) value[1], options(nostack, preserves_flags));
    }
}

// Atomics.

use crate::atomic::{MemoryOrder, MemoryScope, OrderKind, ScopeKind};

/// The atomic instructions of one type.
pub trait Words: Plain {
    /// # Safety
    /// `ptr` is an aligned readable word of global memory.
    unsafe fn load_volatile(ptr: *const Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn store_volatile(ptr: *mut Self, value: Self);
    /// # Safety
    /// `ptr` is an aligned readable word of global memory.
    unsafe fn load_relaxed_gpu(ptr: *const Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned readable word of global memory.
    unsafe fn load_acquire_gpu(ptr: *const Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn store_relaxed_gpu(ptr: *mut Self, value: Self);
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn store_release_gpu(ptr: *mut Self, value: Self);
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn exchange<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn compare_exchange<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, old: Self, new: Self) -> Self;
}

/// One `atom` instruction with the order and scope of two constants.
macro_rules! ordered {
    (@pick $order:expr, $scope:expr, $tail:expr, $operands:tt, $($o:ident $s:ident $ptx:literal),*) => {
        match ($order, $scope) {
            $((OrderKind::$o, ScopeKind::$s) => ordered!(@asm $ptx, $tail, $operands),)*
        }
    };
    (@asm $ptx:literal, $tail:expr, ($($operands:tt)*)) => {
        asm!(concat!("atom", $ptx, $tail), $($operands)*, options(nostack, preserves_flags))
    };
    ($order:expr, $scope:expr, $tail:expr, $($operands:tt)*) => {
        ordered!(@pick $order, $scope, $tail, ($($operands)*),
            Relaxed Cta ".relaxed.cta", Relaxed Gpu ".relaxed.gpu", Relaxed Sys ".relaxed.sys",
            Acquire Cta ".acquire.cta", Acquire Gpu ".acquire.gpu", Acquire Sys ".acquire.sys",
            Release Cta ".release.cta", Release Gpu ".release.gpu", Release Sys ".release.sys",
            AcqRel Cta ".acq_rel.cta", AcqRel Gpu ".acq_rel.gpu", AcqRel Sys ".acq_rel.sys")
    };
}

macro_rules! words {
    ($($ty:ty: $reg:ident, $bits:literal;)*) => {$(
        impl Words for $ty {
            #[inline(always)]
            unsafe fn load_volatile(ptr: *const Self) -> Self {
                let out;
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    asm!(concat!("ld.volatile.global.b", $bits, " {}, [{}];"), out($reg) out, in(reg64) ptr,
                        options(nostack, preserves_flags));
                }
                out
            }
            #[inline(always)]
            unsafe fn store_volatile(ptr: *mut Self, value: Self) {
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    asm!(concat!("st.volatile.global.b", $bits, " [{}], {};"), in(reg64) ptr, in($reg) value,
                        options(nostack, preserves_flags));
                }
            }
            #[inline(always)]
            unsafe fn load_relaxed_gpu(ptr: *const Self) -> Self {
                let out;
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    asm!(concat!("ld.relaxed.gpu.global.b", $bits, " {}, [{}];"), out($reg) out, in(reg64) ptr,
                        options(nostack, preserves_flags));
                }
                out
            }
            #[inline(always)]
            unsafe fn load_acquire_gpu(ptr: *const Self) -> Self {
                let out;
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    asm!(concat!("ld.acquire.gpu.global.b", $bits, " {}, [{}];"), out($reg) out, in(reg64) ptr,
                        options(nostack, preserves_flags));
                }
                out
            }
            #[inline(always)]
            unsafe fn store_relaxed_gpu(ptr: *mut Self, value: Self) {
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    asm!(concat!("st.relaxed.gpu.global.b", $bits, " [{}], {};"), in(reg64) ptr, in($reg) value,
                        options(nostack, preserves_flags));
                }
            }
            #[inline(always)]
            unsafe fn store_release_gpu(ptr: *mut Self, value: Self) {
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    asm!(concat!("st.release.gpu.global.b", $bits, " [{}], {};"), in(reg64) ptr, in($reg) value,
                        options(nostack, preserves_flags));
                }
            }
            #[inline(always)]
            unsafe fn exchange<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self {
                let out;
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    ordered!(O::KIND, S::KIND, concat!(".global.exch.b", $bits, " {}, [{}], {};"),
                        out($reg) out, in(reg64) ptr, in($reg) value);
                }
                out
            }
            #[inline(always)]
            unsafe fn compare_exchange<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, old: Self, new: Self) -> Self {
                let out;
                // SAFETY: the caller's promise is what the instruction asks.
                unsafe {
                    ordered!(O::KIND, S::KIND, concat!(".global.cas.b", $bits, " {}, [{}], {}, {};"),
                        out($reg) out, in(reg64) ptr, in($reg) old, in($reg) new);
                }
                out
            }
        }
    )*};
}

words! {
    u32: reg32, "32"; i32: reg32, "32"; f32: reg32, "32";
    u64: reg64, "64"; i64: reg64, "64"; f64: reg64, "64";
}

/// Atomic addition, for integers and floats.
pub trait Adds: Words {
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn add<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
}

/// The other read-modify-writes, for integers.
pub trait Integers: Adds {
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn min<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn max<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn and<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn or<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word of global memory.
    unsafe fn xor<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
}

macro_rules! update {
    ($name:ident, $reg:ident, $ptx:literal) => {
        #[inline(always)]
        unsafe fn $name<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self {
            let out;
            // SAFETY: the caller's promise is what the instruction asks.
            unsafe {
                ordered!(O::KIND, S::KIND, concat!(".global.", $ptx, " {}, [{}], {};"),
                    out($reg) out, in(reg64) ptr, in($reg) value);
            }
            out
        }
    };
}

macro_rules! adds {
    ($($ty:ty: $reg:ident, $ptx:literal;)*) => {$(
        impl Adds for $ty {
            update!(add, $reg, $ptx);
        }
    )*};
}

// Addition of signed 64-bit integers is that of unsigned ones: PTX has one name for both.
adds! {
    u32: reg32, "add.u32"; i32: reg32, "add.s32"; f32: reg32, "add.f32";
    u64: reg64, "add.u64"; i64: reg64, "add.u64"; f64: reg64, "add.f64";
}

macro_rules! integers {
    ($($ty:ty: $reg:ident, $min:literal, $max:literal, $and:literal, $or:literal, $xor:literal;)*) => {$(
        impl Integers for $ty {
            update!(min, $reg, $min);
            update!(max, $reg, $max);
            update!(and, $reg, $and);
            update!(or, $reg, $or);
            update!(xor, $reg, $xor);
        }
    )*};
}

integers! {
    u32: reg32, "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32";
    i32: reg32, "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32";
    u64: reg64, "min.u64", "max.u64", "and.b64", "or.b64", "xor.b64";
    i64: reg64, "min.s64", "max.s64", "and.b64", "or.b64", "xor.b64";
}

#[inline(always)]
pub(crate) unsafe fn increment_wrapping<O: MemoryOrder, S: MemoryScope>(ptr: *mut u32, limit: u32) -> u32 {
    let out;
    // SAFETY: the caller promises an aligned writable word of global memory.
    unsafe {
        ordered!(O::KIND, S::KIND, ".global.inc.u32 {}, [{}], {};",
            out(reg32) out, in(reg64) ptr, in(reg32) limit);
    }
    out
}
