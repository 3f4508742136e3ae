//! What the tests share: engines, deterministic data, exact arithmetic, bits.

pub mod exact;
#[cfg_attr(not(feature = "every-operator"), allow(dead_code))]
pub mod matrix;
pub mod random;

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
#[cfg(feature = "cuda")]
use std::sync::RwLockWriteGuard;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::thread;

use warpfold::{
    Affine, Backend, Engine, Error,
    monoid::{fused::Parts3, tree::Shape},
};

pub use self::random::Random;

/// Every engine at hand: the CPU, the simulator, and a GPU if there is one. Tests of many items ask [`takes`] first.
pub fn engines() -> Vec<Engine> {
    let mut engines = vec![Engine::cpu(), Engine::sim()];
    engines.extend(find_gpu().ok());
    engines
}

/// Is the engine fast enough to reduce that many items over and over? The simulator is for short arrays only.
pub fn takes(engine: &Engine, items: usize) -> bool {
    engine.backend() != Backend::Sim || items <= 20_000
}

/// The bytes of plain data.
#[cfg(feature = "cuda")]
pub fn bytes<T: warpfold::Plain>(items: &[T]) -> &[u8] {
    // SAFETY: plain data has no padding.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

/// Ordinary values, the same for the same seed.
#[cfg(feature = "cuda")]
pub fn ordinary<T: matrix::Data>(n: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..n).map(|_| T::ordinary(&mut random)).collect()
}

/// The GPU, for tests of nothing else. Where there is none, a line `skipped: <test>: <why>` says so, which
/// `cargo xtask test` counts; with `WARPFOLD_REQUIRE_GPU=1` the test fails.
pub fn gpu() -> Option<Engine> {
    let say = |error: &Error| {
        // The runner names each test's thread after it. It holds back what passing tests print, but not this.
        let thread = thread::current();
        let line = format!("skipped: {}: {error}\n", thread.name().unwrap_or("a test"));
        io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    };
    find_gpu().inspect_err(say).ok()
}

/// The GPU, or why there is none: the same engine for all tests.
pub fn find_gpu() -> Result<Engine, Error> {
    // Never dropped: an engine's end waits for the device, which would invalidate the captures of other tests.
    static GPU: OnceLock<Result<Engine, Error>> = OnceLock::new();
    match GPU.get_or_init(|| Engine::cuda(0)) {
        Err(error @ (Error::CudaNotBuilt | Error::NoDevice | Error::NoDriver)) => {
            assert!(std::env::var_os("WARPFOLD_REQUIRE_GPU").is_none_or(|value| value != "1"), "{error}");
            Err(error.clone())
        }
        Err(error) => panic!("{error}"),
        Ok(engine) => {
            share();
            Ok(engine.clone())
        }
    }
}

/// Tests of the GPU share it, but for those that are [`apart`].
static TURNS: RwLock<()> = RwLock::new(());

thread_local! {
    /// What this test's thread holds of [`TURNS`]: its share, until the thread ends.
    static SHARE: RefCell<Option<RwLockReadGuard<'static, ()>>> = const { RefCell::new(None) };
    /// Is this test apart?
    static APART: Cell<bool> = const { Cell::new(false) };
}

fn share() {
    if !APART.get() {
        SHARE.with_borrow_mut(|share| {
            share.get_or_insert_with(|| TURNS.read().unwrap_or_else(PoisonError::into_inner));
        });
    }
}

/// Held by tests that capture, and by those whose engines end, which waits for the device: other tests' allocations
/// and waits would invalidate captures.
#[cfg(feature = "cuda")]
pub fn apart() -> Apart {
    SHARE.with_borrow_mut(|share| *share = None);
    let turn = TURNS.write().unwrap_or_else(PoisonError::into_inner);
    APART.set(true);
    Apart(turn)
}

/// See [`apart`].
#[cfg(feature = "cuda")]
pub struct Apart(#[expect(dead_code, reason = "held for its end")] RwLockWriteGuard<'static, ()>);

#[cfg(feature = "cuda")]
impl Drop for Apart {
    fn drop(&mut self) {
        APART.set(false);
    }
}

/// A result as bits, to be compared as such.
pub trait Bits {
    fn bits(&self) -> Option<u64>;
}

macro_rules! bits {
    ($($type:ty: $bits:expr;)*) => {$(
        impl Bits for $type {
            fn bits(&self) -> Option<u64> {
                let bits: fn($type) -> u64 = $bits;
                Some(bits(*self))
            }
        }
        impl Bits for Option<$type> {
            fn bits(&self) -> Option<u64> {
                self.as_ref().and_then(Bits::bits)
            }
        }
    )*};
}

bits! {
    i32: |v| v as u32 as u64;
    u32: |v| v as u64;
    i64: |v| v as u64;
    u64: |v| v;
    f32: |v| v.to_bits() as u64;
    f64: |v| v.to_bits();
    Affine<f32>: |v| u64::from(v.scale.to_bits()) << 32 | u64::from(v.shift.to_bits());
    Affine<f64>: |v| mixed([v.scale.to_bits(), v.shift.to_bits()]);
    (f32, Option<f32>, Option<f32>): |(a, b, c)| mixed([a.bits(), b.bits(), c.bits()].map(|bits| bits.unwrap_or(7 << 40)));
    Parts3<f32, f32, f32>: |v| {
        let (a, b, c) = v.get();
        (a, Some(b), Some(c)).bits().unwrap()
    };
}

/// More bits than 64, such that a difference shows.
fn mixed<const N: usize>(words: [u64; N]) -> u64 {
    words
        .iter()
        .fold(0, |mixed: u64, &word| (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// Sizes around every boundary of the canonical tree for items of that size, up to `limit`.
pub fn sizes(item_bytes: usize, limit: u64) -> Vec<u64> {
    let mut sizes =
        vec![0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513];
    sizes.extend([8191, 8192, 8193, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 22) + 5, 1 << 24]);
    // Where the number of lanes or of chunks changes: looked for, not copied.
    let mut n = 1u64;
    let key = |n: u64| {
        let shape = Shape::new(n, item_bytes);
        (shape.groups, shape.chunk)
    };
    while n < limit {
        let mut next = (n * 2).min(limit);
        if key(n) != key(next) {
            let mut low = n;
            while next - low > 1 {
                let middle = low + (next - low) / 2;
                if key(middle) == key(n) { low = middle } else { next = middle }
            }
            sizes.extend([low - low.min(1), low, next, next + 1]);
        }
        n = next;
    }
    // Whole chunks, one less, one more; more of them than the lanes that fold them.
    for chunks in [1, 2, 3, 31, 32, 33, 64, 65] {
        let n = chunks * Shape::new(1, item_bytes).chunk;
        sizes.extend([n - 1, n, n + 1]);
    }
    sizes.retain(|&n| n <= limit);
    sizes.sort();
    sizes.dedup();
    sizes
}
