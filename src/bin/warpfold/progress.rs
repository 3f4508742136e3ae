//! A progress bar for reductions that take long.

use std::io::{self, IsTerminal};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use warpfold::{Items, Plain};

/// Bytes of input from which on a reduction may take long.
const LONG: u64 = 1 << 30;

/// How long it runs before the bar shows.
const PATIENCE: Duration = Duration::from_secs(1);

/// Items that say on a bar how many of them have been read.
pub struct Watched<'a, T> {
    items: &'a [T],
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
}

impl<'a, T: Plain> Watched<'a, T> {
    /// The items under watch, if there are many of them and a person looks on.
    pub fn new(items: &'a [T]) -> Option<Self> {
        (size_of_val(items) as u64 >= LONG && io::stderr().is_terminal()).then(|| Self::always(items))
    }

    fn always(items: &'a [T]) -> Self {
        let bar =
            ProgressBar::with_draw_target(Some(size_of_val(items) as u64), ProgressDrawTarget::hidden());
        // The template is a constant; if it were wrong, the default style would do.
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        Watched { items, bar, start: Instant::now(), shown: AtomicBool::new(false) }
    }
}

impl<T: Plain> Items<T> for Watched<'_, T> {
    fn len(&self) -> u64 {
        self.items.len() as u64
    }

    fn get(&self, index: u64) -> T {
        self.items[index as usize]
    }

    fn run<'a>(&'a self, range: Range<u64>, _scratch: &'a mut Vec<T>) -> &'a [T] {
        self.bar.inc((range.end - range.start) * size_of::<T>() as u64);
        if self.start.elapsed() > PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        &self.items[range.start as usize..range.end as usize]
    }
}

impl<T> Drop for Watched<'_, T> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold::{Engine, Sum};

    #[test]
    fn every_byte_is_counted_once_and_the_sum_is_the_same() {
        let items: Vec<f32> = (0..100_003).map(|i| (i % 1000) as f32 * 0.37).collect();
        let sum = Engine::cpu().reducer(Sum::<f32>::new()).unwrap();
        let watched = Watched::always(&items);
        let found = sum.reduce_items(&watched).unwrap();
        assert_eq!(found.to_bits(), sum.reduce(&items).unwrap().to_bits());
        assert_eq!(watched.bar.position(), 4 * items.len() as u64);
    }
}
