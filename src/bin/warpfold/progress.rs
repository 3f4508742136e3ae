//! The elements of a file as a reduction reads them, with a progress bar where that takes long.

use std::io::{self, IsTerminal};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use warpfold::{Backend, Engine, Items};

use crate::input::Stored;

/// Bytes of input from which on a reduction may take long.
const LONG: u64 = 1 << 30;

/// How long it runs before the bar shows.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that says how many bytes have been read.
struct Bar {
    bar: ProgressBar,
    start: Instant,
    shown: AtomicBool,
}

impl Bar {
    /// A bar, if there are many bytes to read here and a person looks on.
    fn new(engine: &Engine, bytes: usize) -> Option<Bar> {
        (bytes as u64 >= LONG && engine.backend() != Backend::Sim && io::stderr().is_terminal())
            .then(|| Bar::always(bytes))
    }

    fn always(bytes: usize) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(bytes as u64), ProgressDrawTarget::hidden());
        // The template is a constant; if it were wrong, the default style would do.
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        Bar { bar, start: Instant::now(), shown: AtomicBool::new(false) }
    }

    fn advance(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
        if self.start.elapsed() > PATIENCE && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The elements of one array.
pub struct Elements<'a, T: Stored> {
    raw: &'a [T::Raw],
    bar: Option<Bar>,
}

impl<'a, T: Stored> Elements<'a, T> {
    pub fn new(engine: &Engine, raw: &'a [T::Raw]) -> Self {
        Elements { raw, bar: Bar::new(engine, size_of_val(raw)) }
    }
}

impl<T: Stored> Items<T> for Elements<'_, T> {
    fn len(&self) -> u64 {
        self.raw.len() as u64
    }

    fn get(&self, index: u64) -> T {
        T::read(self.raw[index as usize])
    }

    fn as_slice(&self) -> Option<&[T]> {
        // Whoever takes them all at once does not say how far it is.
        if self.bar.is_none() { T::as_stored(self.raw) } else { None }
    }

    fn run<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<T>) -> &'a [T] {
        let raw = &self.raw[range.start as usize..range.end as usize];
        if let Some(bar) = &self.bar {
            bar.advance(size_of_val(raw));
        }
        match T::as_stored(raw) {
            Some(items) => items,
            None => {
                scratch.clear();
                scratch.extend(raw.iter().map(|&raw| T::read(raw)));
                scratch
            }
        }
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
        let elements = Elements::<f32> { raw: &items, bar: Some(Bar::always(4 * items.len())) };
        let found = sum.reduce_items(&elements).unwrap();
        assert_eq!(found.to_bits(), sum.reduce(&items).unwrap().to_bits());
        assert_eq!(elements.bar.as_ref().unwrap().bar.position(), 4 * items.len() as u64);
    }
}
