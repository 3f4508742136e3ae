//! The host side of the seam: every primitive as a step of the simulated thread.

use std::mem::MaybeUninit;
use std::panic::Location;

use warpfold_monoid::Plain;

use super::context::{Context, Copy, Meeting, Op, Source, Wait, current, running};
use super::count::{Event, Kind};
use super::fault::{FaultKind, Site};
use super::memory::{AccessKind, Conflict};
use crate::atomic::{MemoryOrder, MemoryScope};
use crate::shared::STATIC_LIMIT;
use crate::warp::{Mode, Redux};

// Threads.

macro_rules! coordinates {
    ($($name:ident = $($path:ident).+ $(($($call:tt)*))?;)*) => {$(
        pub(crate) fn $name() -> u32 {
            coordinates!(@ current(), $($path).+)
        }
    )*};
    (@ $context:expr, thread.$axis:ident) => { $context.thread().idx.$axis };
    (@ $context:expr, block.$axis:ident) => { $context.block.get().$axis };
    (@ $context:expr, block_dim.$axis:ident) => { $context.launch.block.$axis };
    (@ $context:expr, grid_dim.$axis:ident) => { $context.launch.grid.$axis };
}

coordinates! {
    thread_idx_x = thread.x; thread_idx_y = thread.y; thread_idx_z = thread.z;
    block_idx_x = block.x; block_idx_y = block.y; block_idx_z = block.z;
    block_dim_x = block_dim.x; block_dim_y = block_dim.y; block_dim_z = block_dim.z;
    grid_dim_x = grid_dim.x; grid_dim_y = grid_dim.y; grid_dim_z = grid_dim.z;
}

pub(crate) fn lane_id() -> u32 {
    current().thread().linear % 32
}

pub(crate) fn active_mask() -> u32 {
    current().live.get()
}

pub(crate) fn clock64() -> u64 {
    current().switches.get()
}

#[track_caller]
pub(crate) fn nanosleep(_nanos: u32) {
    current().suspend(Wait::Poll { call: "thread::nanosleep", site: Location::caller() });
}

#[track_caller]
pub(crate) fn trap() -> ! {
    current().fail("thread::trap", Location::caller(), FaultKind::Trap)
}

#[track_caller]
fn barrier(call: &'static str, predicate: bool) -> u32 {
    current().suspend(Wait::Barrier { call, predicate, site: Location::caller() })
}

#[track_caller]
pub(crate) fn sync_threads() {
    barrier("thread::sync_threads", false);
}

#[track_caller]
pub(crate) fn sync_threads_and(predicate: bool) -> bool {
    let Context { launch, .. } = current();
    barrier("thread::sync_threads_and", predicate) == launch.block.x * launch.block.y * launch.block.z
}

#[track_caller]
pub(crate) fn sync_threads_or(predicate: bool) -> bool {
    barrier("thread::sync_threads_or", predicate) != 0
}

#[track_caller]
pub(crate) fn sync_threads_count(predicate: bool) -> u32 {
    barrier("thread::sync_threads_count", predicate)
}

// Memory is in order here: fences have nothing to do.
pub(crate) fn fence_acq_rel_cta() {}
pub(crate) fn fence_acq_rel_gpu() {}
pub(crate) fn fence_acq_rel_sys() {}
pub(crate) fn fence_sc_cta() {}
pub(crate) fn fence_sc_gpu() {}
pub(crate) fn fence_sc_sys() {}
// Launches follow each other whole here.
pub(crate) fn grid_wait() {}
pub(crate) fn grid_let_next_start() {}

// Warps.

/// Waits for the lanes of `mask`, which bring the same call.
fn meet(op: Op, mask: u32, call: &'static str, site: Source) -> u32 {
    let context = current();
    if mask >> (context.thread().linear % 32) & 1 == 0 {
        context.fail(call, site, FaultKind::CallerNotInMask { mask });
    }
    context.suspend(Wait::Meeting(Meeting { op, mask, call, site }))
}

#[track_caller]
pub(crate) unsafe fn sync_warp(mask: u32) {
    meet(Op::Sync, mask, "warp::sync_warp", Location::caller());
}

#[track_caller]
pub(crate) unsafe fn shuffle<T: Plain>(mode: Mode, mask: u32, value: T, b: u32, c: u32) -> T {
    let call = match mode {
        Mode::Up => "warp::shuffle_up",
        Mode::Down => "warp::shuffle_down",
        Mode::Xor => "warp::shuffle_xor",
        Mode::Idx => "warp::shuffle_idx",
    };
    let site = Location::caller();
    let width = 32_u32.wrapping_sub(c >> 8);
    if !width.is_power_of_two() || width > 32 {
        current().fail(call, site, FaultKind::Width { width });
    }
    let mut out = MaybeUninit::<T>::uninit();
    let (from, to, size) = ((&raw const value).cast(), out.as_mut_ptr().cast(), size_of::<T>());
    meet(Op::Shuffle { mode, b: b & 31, c, from, to, size }, mask, call, site);
    // SAFETY: the meeting has filled `out` from a lane that brought a `T` of the same size. Lanes whose call differs
    // in type but not in size and place cannot meet unless the kernel diverged within one generic function.
    unsafe { out.assume_init() }
}

#[track_caller]
pub(crate) unsafe fn shuffle_flagged<T: Plain>(
    mode: Mode,
    mask: u32,
    value: T,
    b: u32,
    c: u32,
) -> (T, Option<bool>) {
    // SAFETY: the caller's promise.
    (unsafe { shuffle(mode, mask, value, b, c) }, None)
}

macro_rules! votes {
    ($($name:ident = $op:ident, $call:literal;)*) => {$(
        #[track_caller]
        pub(crate) unsafe fn $name(mask: u32, predicate: bool) -> bool {
            meet(Op::$op(predicate), mask, $call, Location::caller()) != 0
        }
    )*};
}

votes! {
    vote_all = All, "warp::warp_vote_all";
    vote_any = Any, "warp::warp_vote_any";
    vote_uni = Uni, "warp::warp_vote_uni";
}

#[track_caller]
pub(crate) unsafe fn vote_ballot(mask: u32, predicate: bool) -> u32 {
    meet(Op::Ballot(predicate), mask, "warp::warp_vote_ballot", Location::caller())
}

#[track_caller]
pub(crate) unsafe fn match_any_u32(mask: u32, value: u32) -> u32 {
    meet(Op::Match(value.into()), mask, "warp::warp_match_any", Location::caller())
}

#[track_caller]
pub(crate) unsafe fn match_any_u64(mask: u32, value: u64) -> u32 {
    meet(Op::Match(value), mask, "warp::warp_match_any", Location::caller())
}

#[track_caller]
pub(crate) unsafe fn redux(op: Redux, mask: u32, value: u32) -> u32 {
    meet(Op::Redux(op, value), mask, "warp::warp_reduce", Location::caller())
}

#[track_caller]
pub(super) fn count_combine() {
    let site = Location::caller();
    if let Some(context) = running() {
        context.count(|| Event::call(Kind::Combine, "sim::count_combine", site));
    }
}

// Shared memory.

#[track_caller]
pub(super) fn shared_array<T: Plain>(key: usize, len: usize) -> *mut T {
    let context = current();
    let array = context.memory().borrow_mut().array(key, len.saturating_mul(size_of::<T>()), align_of::<T>());
    match array {
        Ok(ptr) => ptr.cast(),
        Err(asked) => context.fail(
            "shared!",
            Location::caller(),
            FaultKind::SharedExhausted { what: "static", asked, available: STATIC_LIMIT },
        ),
    }
}

#[track_caller]
pub(crate) fn dynamic_shared<T: Plain>(len: usize) -> *mut T {
    let context = current();
    let asked = len.saturating_mul(size_of::<T>());
    let array = context.memory().borrow().dynamic(asked);
    match array {
        Ok(ptr) => ptr.cast(),
        Err(available) => context.fail(
            "shared::dynamic_shared",
            Location::caller(),
            FaultKind::SharedExhausted { what: "dynamic", asked, available },
        ),
    }
}

pub(crate) fn shared_untracked<T: Plain>(ptr: *mut T, len: usize) {
    current().memory().borrow_mut().untrack(ptr.addr(), len.saturating_mul(size_of::<T>()));
}

/// Checks, records and counts an access to element `index`.
fn shared_access<T: Plain>(ptr: *const T, len: usize, index: usize, kind: AccessKind, site: Source) {
    let (call, counted) = match kind {
        AccessKind::Read => ("Shared::read", Kind::SharedRead),
        AccessKind::Write => ("Shared::write", Kind::SharedWrite),
        AccessKind::Add => ("Shared::add", Kind::SharedWrite),
        AccessKind::Update => ("Shared::update", Kind::SharedWrite),
    };
    check_shared(ptr, len, index, kind, (call, site));
    let context = current();
    context.count(|| {
        // From the start of the block's memory, which is aligned to all banks.
        let address = context.memory().borrow().offset(ptr.wrapping_add(index).addr()) as u64;
        let (bytes, align) = (size_of::<T>(), align_of::<T>());
        Event { kind: counted, call, site, bytes, align, address: Some(address) }
    });
}

/// Checks and records an access to element `index`.
fn check_shared<T: Plain>(
    ptr: *const T,
    len: usize,
    index: usize,
    kind: AccessKind,
    (call, site): (&'static str, Source),
) {
    let (context, write) = (current(), kind != AccessKind::Read);
    context.step(call, site);
    if index >= len {
        context.fail(call, site, FaultKind::SharedOutOfBounds { index, len });
    }
    let thread = context.thread().linear;
    let address = ptr.wrapping_add(index).addr();
    let conflict = context.memory().borrow_mut().access(thread, address, size_of::<T>(), kind, site);
    let kind = match conflict {
        Ok(()) => return,
        Err(Conflict::Unwritten) => FaultKind::UnwrittenShared { index, len },
        Err(Conflict::Race { thread, wrote, site: other }) => FaultKind::SharedRace {
            index,
            write,
            other: context.coordinates(thread),
            other_write: wrote,
            other_site: Site::from(other.unwrap_or(site)),
        },
    };
    context.fail(call, site, kind)
}

#[track_caller]
pub(crate) unsafe fn shared_read<T: Plain>(ptr: *const T, len: usize, index: usize) -> T {
    shared_access(ptr, len, index, AccessKind::Read, Location::caller());
    // SAFETY: within the array and written, as just checked.
    unsafe { ptr.add(index).read() }
}

#[track_caller]
pub(crate) unsafe fn shared_write<T: Plain>(ptr: *mut T, len: usize, index: usize, value: T) {
    shared_access(ptr, len, index, AccessKind::Write, Location::caller());
    // SAFETY: within the array, as just checked.
    unsafe { write(current(), ptr.add(index), value) }
}

const COPY: &str = "Shared::copy_async";

/// The copy is made as late as may be, at the wait.
#[track_caller]
pub(crate) unsafe fn shared_copy_async<T: Plain>(ptr: *mut T, len: usize, index: usize, from: *const T) {
    let (context, site, size) = (current(), Location::caller(), size_of::<T>());
    global_access(from.cast(), size, size, Kind::Load, COPY, site);
    check_shared(ptr, len, index, AccessKind::Write, (COPY, site));
    let to = ptr.wrapping_add(index);
    context.memory().borrow_mut().forget(to.addr(), size);
    let (pending, group) = &mut *context.thread().copies.borrow_mut();
    pending.push_back(Copy { from: from.cast(), to: to.cast(), group: *group });
}

pub(crate) fn commit_copies() {
    current().thread().copies.borrow_mut().1 += 1;
}

#[track_caller]
pub(crate) fn wait_copies<const NEWEST: usize>() {
    let context = current();
    let next = || {
        let (pending, closed) = &mut *context.thread().copies.borrow_mut();
        let arrives = pending.front().is_some_and(|copy| copy.group + NEWEST < *closed);
        if arrives { pending.pop_front() } else { None }
    };
    while let Some(Copy { from, to, .. }) = next() {
        // SAFETY: 16 bytes each, checked when they were asked for; the caller of that promised that they stay.
        unsafe {
            shared_access(to.cast::<u128>(), 1, 0, AccessKind::Write, Location::caller());
            write(context, to.cast::<u128>(), from.cast::<u128>().read());
        }
    }
}

/// What several threads may add to at once in shared memory.
pub trait Counters: Plain {
    fn plus(self, other: Self) -> Self;
}

impl Counters for u32 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

impl Counters for u64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

impl Counters for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

/// What several threads may update at once in shared memory.
pub trait Exchanges: Plain + Eq {}
impl Exchanges for u32 {}
impl Exchanges for u64 {}

#[track_caller]
pub(crate) unsafe fn shared_add<T: Counters>(ptr: *mut T, len: usize, index: usize, value: T) {
    shared_access(ptr, len, index, AccessKind::Add, Location::caller());
    let place = ptr.wrapping_add(index);
    // SAFETY: within the array and written, as just checked; one simulated thread runs at a time.
    unsafe { write(current(), place, place.read().plus(value)) }
}

/// What several threads may draw numbers from in shared memory.
pub trait Draws: Counters {}
impl Draws for u32 {}

#[track_caller]
pub(crate) unsafe fn shared_fetch_add<T: Draws>(ptr: *mut T, len: usize, index: usize, value: T) -> T {
    shared_access(ptr, len, index, AccessKind::Add, Location::caller());
    let place = ptr.wrapping_add(index);
    // SAFETY: within the array and written, as just checked; one simulated thread runs at a time.
    unsafe {
        let before = place.read();
        write(current(), place, before.plus(value));
        before
    }
}

#[track_caller]
pub(crate) unsafe fn shared_update<T: Exchanges>(
    ptr: *mut T,
    len: usize,
    index: usize,
    new: impl Fn(T) -> T,
) {
    shared_access(ptr, len, index, AccessKind::Update, Location::caller());
    let place = ptr.wrapping_add(index);
    // SAFETY: as above.
    unsafe { write(current(), place, new(place.read())) }
}

// Global memory.

/// The loads of one cache hint: on the host there are no caches to hint at.
pub trait Loads {}
impl<T> Loads for T {}

/// Checks an access to global memory, and counts it.
fn global_access(ptr: *const u8, bytes: usize, align: usize, kind: Kind, call: &'static str, site: Source) {
    let context = current();
    context.step(call, site);
    let address = ptr.addr();
    if !address.is_multiple_of(align) {
        context.fail(call, site, FaultKind::Misaligned { address, align });
    }
    let buffer = buffer_of(context, address, bytes, kind, call, site);
    context.count(|| {
        let address = match buffer {
            // Far from all others, at the start of a sector but for what it is off the alignment of vectors.
            Some(i) => {
                let start = context.options.buffers[i].start;
                (i as u64 + 1) << 48 | (start % 16 + (address - start)) as u64
            }
            None => address as u64,
        };
        Event { kind, call, site, bytes, align, address: Some(address) }
    });
}

/// The number of the buffer that an access lies in; none if there are no buffers.
fn buffer_of(
    context: &Context<'_>,
    address: usize,
    bytes: usize,
    kind: Kind,
    call: &'static str,
    site: Source,
) -> Option<usize> {
    let write = kind != Kind::Load;
    let buffers = &context.options.buffers;
    let inside = |i: usize| {
        let buffer = &buffers[i];
        let offset = address.wrapping_sub(buffer.start);
        offset <= buffer.bytes && bytes <= buffer.bytes - offset && (buffer.writable || !write)
    };
    let last = context.last_buffer.get();
    if last < buffers.len() && inside(last) {
        return Some(last);
    }
    if let Some(i) = (0..buffers.len()).find(|&i| inside(i)) {
        context.last_buffer.set(i);
        return Some(i);
    }
    let detail = if context.memory().borrow().contains(address) {
        "in the block's shared memory, which the instruction does not reach".to_owned()
    } else if !buffers.is_empty() {
        nearest(context, address, bytes)
    } else if address < 4096 {
        "a null pointer".to_owned()
    } else {
        return None;
    };
    context.fail(call, site, FaultKind::OutOfBounds { address, bytes, detail });
}

/// Counts a lane that reaches a load and does not want it.
fn unwanted(bytes: usize, align: usize, call: &'static str, site: Source) {
    current().count(|| Event { kind: Kind::Load, call, site, bytes, align, address: None });
}

/// How an access lies to the buffer nearest to it.
#[cold]
fn nearest(context: &Context<'_>, address: usize, bytes: usize) -> String {
    let end = address.saturating_add(bytes);
    let gap = |start: usize, stop: usize| start.saturating_sub(end).max(address.saturating_sub(stop));
    let buffers = context.options.buffers.iter();
    match buffers.min_by_key(|buffer| gap(buffer.start, buffer.start.saturating_add(buffer.bytes))) {
        Some(buffer) if address >= buffer.start && end <= buffer.start + buffer.bytes => {
            format!("byte {} of `{}`, which is read-only", address - buffer.start, buffer.name)
        }
        Some(buffer) if address >= buffer.start => {
            let offset = address - buffer.start;
            format!("they start at byte {offset} of `{}`, which has {} bytes", buffer.name, buffer.bytes)
        }
        Some(buffer) => format!("they start {} bytes before `{}`", buffer.start - address, buffer.name),
        None => "no buffer is registered".to_owned(),
    }
}

/// Writes a value, and notes whether that changed anything.
///
/// # Safety
///
/// `ptr` is valid for writes of a `T` and aligned; a thread of the kernel runs.
unsafe fn write<T: Plain>(context: &Context<'_>, ptr: *mut T, value: T) {
    let size = size_of::<T>();
    // SAFETY: the caller's promise. The bytes are compared as `MaybeUninit`-free only when the place was written
    // before; poison and host memory are always initialised bytes.
    unsafe {
        let before = std::slice::from_raw_parts(ptr.cast::<u8>(), size);
        let after = std::slice::from_raw_parts((&raw const value).cast::<u8>(), size);
        if before != after {
            context.changed();
        }
        ptr.write(value);
    }
}

#[track_caller]
pub(crate) unsafe fn load<T: Plain, H: Loads>(ptr: *const T) -> T {
    global_access(
        ptr.cast(),
        size_of::<T>(),
        align_of::<T>(),
        Kind::Load,
        "global::load",
        Location::caller(),
    );
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { ptr.read() }
}

#[track_caller]
pub(crate) unsafe fn load_vector<T: Plain, const V: usize, H: Loads>(ptr: *const T) -> [T; V] {
    let size = size_of::<[T; V]>();
    global_access(ptr.cast(), size, size, Kind::Load, "global::load_vector", Location::caller());
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { ptr.cast::<[T; V]>().read() }
}

#[track_caller]
pub(crate) unsafe fn load_if<T: Plain, H: Loads>(wanted: bool, ptr: *const T) -> MaybeUninit<T> {
    if !wanted {
        unwanted(size_of::<T>(), align_of::<T>(), "global::load", Location::caller());
        return MaybeUninit::uninit();
    }
    // SAFETY: the caller's promise.
    MaybeUninit::new(unsafe { load::<T, H>(ptr) })
}

#[track_caller]
pub(crate) unsafe fn load_vector_if<T: Plain, const V: usize, H: Loads>(
    wanted: bool,
    ptr: *const T,
) -> MaybeUninit<[T; V]> {
    if !wanted {
        let size = size_of::<[T; V]>();
        unwanted(size, size, "global::load_vector", Location::caller());
        return MaybeUninit::uninit();
    }
    // SAFETY: the caller's promise.
    MaybeUninit::new(unsafe { load_vector::<T, V, H>(ptr) })
}

#[track_caller]
pub(crate) unsafe fn store<T: Plain, const STREAMING: bool>(ptr: *mut T, value: T) {
    global_access(
        ptr.cast(),
        size_of::<T>(),
        align_of::<T>(),
        Kind::Store,
        "global::store",
        Location::caller(),
    );
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { write(current(), ptr, value) }
}

#[track_caller]
pub(crate) unsafe fn store_vector<T: Plain, const V: usize, const STREAMING: bool>(
    ptr: *mut T,
    value: [T; V],
) {
    let size = size_of::<[T; V]>();
    global_access(ptr.cast(), size, size, Kind::Store, "global::store_vector", Location::caller());
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { write(current(), ptr.cast::<[T; V]>(), value) }
}

/// Lets other threads run before a load that may be one of many.
fn poll(call: &'static str, site: Source) {
    current().suspend(Wait::Poll { call, site });
}

#[track_caller]
pub(crate) unsafe fn load_pair_relaxed_gpu(ptr: *const [u64; 2]) -> [u64; 2] {
    let (call, site) = ("global::load_pair_relaxed_gpu", Location::caller());
    poll(call, site);
    global_access(ptr.cast(), 16, 16, Kind::Load, call, site);
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { ptr.read_volatile() }
}

#[track_caller]
pub(crate) unsafe fn store_pair_relaxed_gpu(ptr: *mut [u64; 2], value: [u64; 2]) {
    global_access(ptr.cast(), 16, 16, Kind::Store, "global::store_pair_relaxed_gpu", Location::caller());
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { write(current(), ptr, value) }
}

// Atomics: one thread runs at a time, so a read and a write after it are one step.

/// The atomic accesses of one type.
pub trait Words: Plain {
    /// Whether two values have the same bits.
    fn same_bits(self, other: Self) -> bool;

    /// # Safety
    /// `ptr` is an aligned readable word.
    #[track_caller]
    unsafe fn load_volatile(ptr: *const Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { load_word(ptr, "global::load_volatile", Location::caller()) }
    }

    /// # Safety
    /// `ptr` is an aligned readable word.
    #[track_caller]
    unsafe fn load_relaxed_gpu(ptr: *const Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { load_word(ptr, "global::load_relaxed_gpu", Location::caller()) }
    }

    /// # Safety
    /// `ptr` is an aligned readable word.
    #[track_caller]
    unsafe fn load_acquire_gpu(ptr: *const Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { load_word(ptr, "global::load_acquire_gpu", Location::caller()) }
    }

    /// # Safety
    /// `ptr` is an aligned writable word.
    #[track_caller]
    unsafe fn store_volatile(ptr: *mut Self, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { store_word(ptr, value, "global::store_volatile", Location::caller()) }
    }

    /// # Safety
    /// `ptr` is an aligned writable word.
    #[track_caller]
    unsafe fn store_relaxed_gpu(ptr: *mut Self, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { store_word(ptr, value, "global::store_relaxed_gpu", Location::caller()) }
    }

    /// # Safety
    /// `ptr` is an aligned writable word.
    #[track_caller]
    unsafe fn store_release_gpu(ptr: *mut Self, value: Self) {
        // SAFETY: the caller's promise.
        unsafe { store_word(ptr, value, "global::store_release_gpu", Location::caller()) }
    }

    /// # Safety
    /// `ptr` is an aligned writable word.
    #[track_caller]
    unsafe fn exchange<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self {
        let (call, site) = ("atomic::exchange", Location::caller());
        // What a lock is taken with: another thread may have to run before it succeeds.
        poll(call, site);
        // SAFETY: the caller's promise.
        unsafe { update(ptr, |_| value, call, site) }
    }

    /// # Safety
    /// `ptr` is an aligned writable word.
    #[track_caller]
    unsafe fn compare_exchange<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, old: Self, new: Self) -> Self {
        let (call, site) = ("atomic::compare_exchange", Location::caller());
        poll(call, site);
        // SAFETY: the caller's promise.
        unsafe { update(ptr, |now| if now.same_bits(old) { new } else { now }, call, site) }
    }
}

/// # Safety
/// `ptr` is an aligned readable word.
unsafe fn load_word<T: Plain>(ptr: *const T, call: &'static str, site: Source) -> T {
    poll(call, site);
    global_access(ptr.cast(), size_of::<T>(), size_of::<T>(), Kind::Load, call, site);
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { ptr.read_volatile() }
}

/// # Safety
/// `ptr` is an aligned writable word.
unsafe fn store_word<T: Plain>(ptr: *mut T, value: T, call: &'static str, site: Source) {
    global_access(ptr.cast(), size_of::<T>(), size_of::<T>(), Kind::Store, call, site);
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe { write(current(), ptr, value) }
}

/// # Safety
/// `ptr` is an aligned writable word.
unsafe fn update<T: Plain>(ptr: *mut T, new: impl FnOnce(T) -> T, call: &'static str, site: Source) -> T {
    let context = current();
    if context.concurrent {
        poll(call, site);
    }
    global_access(ptr.cast(), size_of::<T>(), size_of::<T>(), Kind::Atomic, call, site);
    // SAFETY: the caller's promise, checked as far as buffers are registered.
    unsafe {
        let old = ptr.read_volatile();
        write(context, ptr, new(old));
        old
    }
}

/// Atomic addition, for integers and floats.
pub trait Adds: Words {
    /// # Safety
    /// `ptr` is an aligned writable word.
    unsafe fn add<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
}

/// The other read-modify-writes, for integers.
pub trait Integers: Adds {
    /// # Safety
    /// `ptr` is an aligned writable word.
    unsafe fn min<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word.
    unsafe fn max<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word.
    unsafe fn and<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word.
    unsafe fn or<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
    /// # Safety
    /// `ptr` is an aligned writable word.
    unsafe fn xor<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, value: Self) -> Self;
}

macro_rules! updates {
    ($($name:ident($now:ident, $value:ident) = $new:expr;)*) => {$(
        #[track_caller]
        unsafe fn $name<O: MemoryOrder, S: MemoryScope>(ptr: *mut Self, $value: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { update(ptr, |$now| $new, concat!("atomic::fetch_", stringify!($name)), Location::caller()) }
        }
    )*};
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Words for $ty {
            fn same_bits(self, other: Self) -> bool {
                self == other
            }
        }
        impl Adds for $ty {
            updates! { add(now, value) = now.wrapping_add(value); }
        }
        impl Integers for $ty {
            updates! {
                min(now, value) = now.min(value);
                max(now, value) = now.max(value);
                and(now, value) = now & value;
                or(now, value) = now | value;
                xor(now, value) = now ^ value;
            }
        }
    )*};
}

integers! { u32 i32 u64 i64 }

macro_rules! floats {
    ($($ty:ty)*) => {$(
        impl Words for $ty {
            fn same_bits(self, other: Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
        impl Adds for $ty {
            updates! { add(now, value) = now + value; }
        }
    )*};
}

floats! { f32 f64 }

#[track_caller]
#[allow(clippy::extra_unused_type_parameters)]
pub(crate) unsafe fn increment_wrapping<O: MemoryOrder, S: MemoryScope>(ptr: *mut u32, limit: u32) -> u32 {
    let next = |now: u32| if now >= limit { 0 } else { now + 1 };
    // SAFETY: the caller's promise.
    unsafe { update(ptr, next, "atomic::increment_wrapping", Location::caller()) }
}
