//! Stacks for the coroutines, cut from one mapping.
//!
//! One mapping for each stack would exhaust the kernel's count of mappings at 64 blocks of 512 threads. Guard pages
//! split the slab's mapping, two pieces a stack, so they are there up to [`MAX_STACKS`] stacks, and no launch takes
//! more.

/// The most stacks of one slab: two mappings each stay well below the usual limit of 65530.
pub(super) const MAX_STACKS: usize = 16 * 1024;

/// Slabs up to this many stacks are kept for the thread's next launch.
const KEEP_STACKS: usize = 4 * 1024;

#[cfg(unix)]
mod imp {
    use std::io;
    use std::num::NonZeroUsize;
    use std::ptr::null_mut;

    use corosensei::stack::{Stack, StackPointer};

    /// A mapping that holds `count` stacks, each with a guard page below.
    pub(in super::super) struct Slab {
        start: *mut libc::c_void,
        bytes: usize,
        stride: usize,
        guard: usize,
        count: usize,
    }

    /// One stack of a slab.
    pub(in super::super) struct SlabStack {
        base: StackPointer,
        limit: StackPointer,
    }

    // SAFETY: base and limit bound memory of the slab that nothing else uses (`Slab::stack` asks so), aligned to 64.
    unsafe impl Stack for SlabStack {
        fn base(&self) -> StackPointer {
            self.base
        }

        fn limit(&self) -> StackPointer {
            self.limit
        }
    }

    impl Slab {
        pub(super) fn map(count: usize, stack_bytes: usize) -> io::Result<Self> {
            // SAFETY: a query.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            let stride = stack_bytes.next_multiple_of(page) + page;
            let bytes = count.checked_mul(stride).ok_or(io::ErrorKind::OutOfMemory)?;
            // SAFETY: a fresh private mapping, at an address of the kernel's choice.
            let start = unsafe {
                libc::mmap(
                    null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let slab = Slab { start, bytes, stride, guard: page, count };
            for i in 0..count {
                // SAFETY: a page of the mapping, which nobody uses yet.
                if unsafe { libc::mprotect(start.byte_add(i * stride), page, libc::PROT_NONE) } != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(slab)
        }

        pub(super) fn fits(&self, count: usize, stack_bytes: usize) -> bool {
            self.count >= count && self.stride - self.guard >= stack_bytes
        }

        pub(super) fn count(&self) -> usize {
            self.count
        }

        /// Stack `i`.
        ///
        /// # Safety
        ///
        /// No other stack `i` of this slab is in use, and the slab outlives this one.
        pub(in super::super) unsafe fn stack(&self, i: usize) -> SlabStack {
            let bottom = self.start.addr() + i * self.stride + self.guard;
            // Stack tops a page multiple apart would share a few cache sets among them all.
            let colour = i % 32 * 128;
            let (Some(base), Some(limit)) = (
                NonZeroUsize::new(self.start.addr() + (i + 1) * self.stride - colour),
                NonZeroUsize::new(bottom),
            ) else {
                unreachable!("a mapping does not lie at address 0")
            };
            SlabStack { base, limit }
        }
    }

    impl Drop for Slab {
        fn drop(&mut self) {
            // SAFETY: the mapping is this slab's own, and its stacks are gone.
            unsafe { libc::munmap(self.start, self.bytes) };
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io;

    use corosensei::stack::DefaultStack;

    pub(in super::super) type SlabStack = DefaultStack;

    /// Where there is no `mmap`, each stack is an allocation of its own.
    pub(in super::super) struct Slab {
        count: usize,
        stack_bytes: usize,
    }

    impl Slab {
        pub(super) fn map(count: usize, stack_bytes: usize) -> io::Result<Self> {
            Ok(Slab { count, stack_bytes })
        }

        pub(super) fn fits(&self, count: usize, stack_bytes: usize) -> bool {
            self.count >= count && self.stack_bytes >= stack_bytes
        }

        pub(super) fn count(&self) -> usize {
            self.count
        }

        pub(in super::super) unsafe fn stack(&self, _: usize) -> SlabStack {
            DefaultStack::new(self.stack_bytes).expect("memory for a thread's stack")
        }
    }
}

pub(super) use imp::{Slab, SlabStack};

use std::cell::RefCell;
use std::io;

thread_local! {
    static KEPT: RefCell<Option<Slab>> = const { RefCell::new(None) };
}

/// A slab of at least `count` stacks.
pub(super) fn take(count: usize, stack_bytes: usize) -> io::Result<Slab> {
    match KEPT.with(|kept| kept.borrow_mut().take()) {
        Some(slab) if slab.fits(count, stack_bytes) => Ok(slab),
        _ => Slab::map(count, stack_bytes),
    }
}

/// Keeps a slab, none of whose stacks is in use, for the next launch.
pub(super) fn put_back(slab: Slab) {
    if slab.count() <= KEEP_STACKS {
        KEPT.with(|kept| *kept.borrow_mut() = Some(slab));
    }
}
