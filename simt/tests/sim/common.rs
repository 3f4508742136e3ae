//! What the tests share.

use warpfold_simt::sim::{self, Fault, Launch, Options, Report, Schedule};
use warpfold_simt::thread::Vec3;

/// A pointer that a kernel closure may capture.
#[derive(Debug)]
pub struct Ptr<T>(*mut T);

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

// SAFETY: the simulator runs one thread at a time.
unsafe impl<T> Sync for Ptr<T> {}

impl<T> Ptr<T> {
    pub fn of(slice: &mut [T]) -> Self {
        Ptr(slice.as_mut_ptr())
    }

    pub fn at(self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }
}

/// Every kind of schedule.
pub fn schedules() -> impl Iterator<Item = Schedule> {
    let seeded = (0..4).map(Schedule::Seeded);
    let concurrent = (0..4).map(|seed| Schedule::Concurrent { seed });
    let late = (0..2).map(|seed| Schedule::Late { seed });
    [Schedule::Sequential].into_iter().chain(seeded).chain(concurrent).chain(late)
}

/// Runs a kernel that must not fail.
pub fn run(grid: impl Into<Vec3>, block: impl Into<Vec3>, kernel: impl Fn() + Sync) -> Report {
    launch(grid, block, kernel).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Runs a kernel in order.
pub fn launch(
    grid: impl Into<Vec3>,
    block: impl Into<Vec3>,
    kernel: impl Fn() + Sync,
) -> Result<Report, Fault> {
    sim::launch(&Launch::new("kernel", grid, block), &Options::default(), kernel)
}
