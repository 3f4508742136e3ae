//! Sums of floats with AVX2: the tree's lowest levels in registers.
//!
//! The general walk keeps a chunk's lanes in memory and combines neighbours there, which costs as much again as adding
//! up the items. Here sixteen neighbouring lanes go down the rows as four vectors and fold to one in registers. Every
//! addition is one of the canonical tree's, so the bits are those of the general walk.

use core::arch::x86_64::*;
use std::{
    any::{Any, TypeId},
    mem::MaybeUninit,
    ops::Range,
};

use warpfold_monoid::{DoubleDouble, Monoid, Sum, SumAccumulator};

use crate::Items;

/// Lanes that are in registers at once: four [`Quad`]s.
const UNIT: usize = 16;

/// The most lanes that a chunk of `f32` or `f64` has.
const MAX_LANES: usize = 2048;

/// Rows that one pass takes in before the lanes go back to memory.
const ROWS: usize = 8;

/// Can the operator be one of those at home here? Others need not be compiled for.
pub(super) const fn may_be<Op: Monoid>() -> bool {
    Op::COMMUTATIVE
        && !Op::ANY_ORDER
        && matches!((size_of::<Op::Item>(), size_of::<Op::Acc>()), (4, 8) | (8, 16))
}

/// The value of a chunk if the operator is one of those at home here and the chunk has whole units of lanes.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn chunk_value<Op: Monoid>(
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    lanes: u64,
    read: &mut Vec<Op::Item>,
) -> Option<Op::Acc> {
    let enough = lanes.is_multiple_of(UNIT as u64) && range.end - range.start >= lanes;
    let op = TypeId::of::<Op>();
    if !enough || lanes > MAX_LANES as u64 {
        None
    } else if op == TypeId::of::<Sum<f32>>() {
        same(chunk::<FourF64, _>(items, range, lanes as usize, read))
    } else if op == TypeId::of::<Sum<f64>>() {
        same(chunk::<FourDoubleDouble, _>(items, range, lanes as usize, read))
    } else {
        None
    }
}

/// `a`, if its type is `B`.
#[inline(always)]
fn same<A: Any, B: Any + Copy>(a: A) -> Option<B> {
    (&a as &dyn Any).downcast_ref::<B>().copied()
}

/// Four accumulators.
///
/// # Safety
///
/// A machine with AVX2 and FMA is required for all of its functions. `items` points at four items that may be read.
unsafe trait Quad: Copy {
    type Item: Copy + 'static;
    type Acc: SumAccumulator<Self::Item>;
    /// One item for each.
    unsafe fn lift(items: *const Self::Item) -> Self;
    /// Two items for each: `push` of `lift`.
    unsafe fn lift_two(items: *const Self::Item, next: *const Self::Item) -> Self;
    /// Adds one item to each.
    unsafe fn push(self, items: *const Self::Item) -> Self;
    /// `min(count, 4)` items, and zeros.
    unsafe fn some(items: *const Self::Item, count: isize) -> [Self::Item; 4];
    /// Adds accumulators that stood to the right.
    unsafe fn merge(self, right: Self) -> Self;
    /// `(a0 b0 a2 b2, a1 b1 a3 b3)`.
    unsafe fn unpack(self, b: Self) -> (Self, Self);
    /// `(a0 a1 b0 b1, a2 a3 b2 b3)`.
    unsafe fn halves(self, b: Self) -> (Self, Self);
    /// Those of `other` where `mask` is negative.
    unsafe fn select(self, other: Self, mask: __m256d) -> Self;
    /// One by one.
    unsafe fn to_array(self) -> [Self::Acc; 4];
}

#[derive(Clone, Copy)]
struct FourF64(__m256d);

// SAFETY: `push` adds as f64's SumAccumulator<f32> does.
unsafe impl Quad for FourF64 {
    type Item = f32;
    type Acc = f64;
    #[inline(always)]
    unsafe fn lift(items: *const f32) -> Self {
        // SAFETY: four items; AVX2.
        unsafe { FourF64(_mm256_cvtps_pd(_mm_loadu_ps(items))) }
    }
    #[inline(always)]
    unsafe fn lift_two(items: *const f32, next: *const f32) -> Self {
        // SAFETY: four items each; AVX2.
        unsafe { Self::lift(items).push(next) }
    }
    #[inline(always)]
    unsafe fn push(self, items: *const f32) -> Self {
        // SAFETY: four items; AVX2.
        unsafe { self.merge(Self::lift(items)) }
    }
    #[inline(always)]
    unsafe fn some(items: *const f32, count: isize) -> [f32; 4] {
        // SAFETY: only the items that are there are read; AVX2.
        unsafe {
            let mask = _mm_cmpgt_epi32(_mm_set1_epi32(count as i32), _mm_setr_epi32(0, 1, 2, 3));
            std::mem::transmute(_mm_maskload_ps(items, mask))
        }
    }
    #[inline(always)]
    unsafe fn merge(self, right: Self) -> Self {
        // SAFETY: AVX2.
        unsafe { FourF64(_mm256_add_pd(self.0, right.0)) }
    }
    #[inline(always)]
    unsafe fn unpack(self, b: Self) -> (Self, Self) {
        // SAFETY: AVX2.
        unsafe { (FourF64(_mm256_unpacklo_pd(self.0, b.0)), FourF64(_mm256_unpackhi_pd(self.0, b.0))) }
    }
    #[inline(always)]
    unsafe fn halves(self, b: Self) -> (Self, Self) {
        // SAFETY: AVX2.
        unsafe {
            (
                FourF64(_mm256_permute2f128_pd::<0x20>(self.0, b.0)),
                FourF64(_mm256_permute2f128_pd::<0x31>(self.0, b.0)),
            )
        }
    }
    #[inline(always)]
    unsafe fn select(self, other: Self, mask: __m256d) -> Self {
        // SAFETY: AVX2.
        unsafe { FourF64(_mm256_blendv_pd(self.0, other.0, mask)) }
    }
    #[inline(always)]
    unsafe fn to_array(self) -> [f64; 4] {
        // SAFETY: a vector of four f64.
        unsafe { std::mem::transmute(self.0) }
    }
}

#[derive(Clone, Copy)]
struct FourDoubleDouble {
    hi: FourF64,
    lo: FourF64,
}

/// Ones that the compiler does not know to be ones, lest it turn multiplications by them into what they are there to
/// avoid.
///
/// # Safety
///
/// AVX2.
#[inline(always)]
unsafe fn one() -> __m256d {
    let mut one = 1.0f64;
    // SAFETY: an empty piece of assembly; AVX2.
    unsafe {
        core::arch::asm!("/* {0} */", inout(xmm_reg) one, options(pure, nomem, nostack, preserves_flags));
        _mm256_set1_pd(one)
    }
}

/// Knuth's two-sum of each pair, in the order of operations that `DoubleDouble` has.
///
/// Some processors add in other units than they multiply in. What nothing waits for is therefore added by fused
/// multiplications by one, which round the same exact sum once, to the same bits.
///
/// # Safety
///
/// AVX2 and FMA.
#[inline(always)]
unsafe fn two_sum(a: __m256d, b: __m256d) -> (__m256d, __m256d) {
    // SAFETY: AVX2 and FMA.
    unsafe {
        let sum = _mm256_add_pd(a, b);
        let b_part = _mm256_sub_pd(sum, a);
        let a_part = _mm256_sub_pd(sum, b_part);
        let error = _mm256_add_pd(_mm256_fmsub_pd(a, one(), a_part), _mm256_fmsub_pd(b, one(), b_part));
        (sum, error)
    }
}

// SAFETY: `push` and `merge` do as DoubleDouble's SumAccumulator<f64> does.
unsafe impl Quad for FourDoubleDouble {
    type Item = f64;
    type Acc = DoubleDouble;
    #[inline(always)]
    unsafe fn lift(items: *const f64) -> Self {
        // SAFETY: four items; AVX2.
        unsafe { FourDoubleDouble { hi: FourF64(_mm256_loadu_pd(items)), lo: FourF64(_mm256_set1_pd(-0.0)) } }
    }
    #[inline(always)]
    unsafe fn lift_two(items: *const f64, next: *const f64) -> Self {
        // SAFETY: four items each; AVX2. Minus zero plus the error is the error.
        unsafe {
            let (hi, error) = two_sum(_mm256_loadu_pd(items), _mm256_loadu_pd(next));
            FourDoubleDouble { hi: FourF64(hi), lo: FourF64(error) }
        }
    }
    #[inline(always)]
    unsafe fn push(self, items: *const f64) -> Self {
        // SAFETY: four items; AVX2.
        unsafe {
            let (hi, error) = two_sum(self.hi.0, _mm256_loadu_pd(items));
            FourDoubleDouble { hi: FourF64(hi), lo: FourF64(_mm256_fmadd_pd(self.lo.0, one(), error)) }
        }
    }
    #[inline(always)]
    unsafe fn some(items: *const f64, count: isize) -> [f64; 4] {
        // SAFETY: only the items that are there are read; AVX2.
        unsafe { std::mem::transmute(_mm256_maskload_pd(items, first_lanes(count))) }
    }
    #[inline(always)]
    unsafe fn merge(self, right: Self) -> Self {
        // SAFETY: AVX2.
        unsafe {
            let (hi, error) = two_sum(self.hi.0, right.hi.0);
            let lo = _mm256_add_pd(self.lo.0, right.lo.0);
            let lo = _mm256_add_pd(lo, error);
            FourDoubleDouble { hi: FourF64(hi), lo: FourF64(lo) }
        }
    }
    #[inline(always)]
    unsafe fn unpack(self, b: Self) -> (Self, Self) {
        // SAFETY: AVX2.
        let (hi, lo) = unsafe { (self.hi.unpack(b.hi), self.lo.unpack(b.lo)) };
        (FourDoubleDouble { hi: hi.0, lo: lo.0 }, FourDoubleDouble { hi: hi.1, lo: lo.1 })
    }
    #[inline(always)]
    unsafe fn halves(self, b: Self) -> (Self, Self) {
        // SAFETY: AVX2.
        let (hi, lo) = unsafe { (self.hi.halves(b.hi), self.lo.halves(b.lo)) };
        (FourDoubleDouble { hi: hi.0, lo: lo.0 }, FourDoubleDouble { hi: hi.1, lo: lo.1 })
    }
    #[inline(always)]
    unsafe fn select(self, other: Self, mask: __m256d) -> Self {
        // SAFETY: AVX2.
        unsafe { FourDoubleDouble { hi: self.hi.select(other.hi, mask), lo: self.lo.select(other.lo, mask) } }
    }
    #[inline(always)]
    unsafe fn to_array(self) -> [DoubleDouble; 4] {
        // SAFETY: AVX2.
        let (hi, lo) = unsafe { (self.hi.to_array(), self.lo.to_array()) };
        let one = |i: usize| DoubleDouble { hi: hi[i], lo: lo[i] };
        [one(0), one(1), one(2), one(3)]
    }
}

/// The lanes' values between passes.
type State<Q> = [MaybeUninit<[Q; 4]>; MAX_LANES / UNIT];

/// The value of a chunk of at least `lanes` items; `lanes` is a power of two from [`UNIT`] to [`MAX_LANES`].
#[target_feature(enable = "avx2,fma")]
#[inline]
fn chunk<Q: Quad, T: warpfold_monoid::Plain>(
    items: &dyn Items<T>,
    range: Range<u64>,
    lanes: usize,
    read: &mut Vec<T>,
) -> Q::Acc {
    let pass = (ROWS * lanes) as u64;
    if range.end - range.start < pass + lanes as u64 {
        return last_pass::<Q, true>(cast(items.run(range, read)), lanes, &[]);
    }
    let mut state: State<Q> = [const { MaybeUninit::uninit() }; _];
    let state = &mut state[..lanes / UNIT];
    let mut next = range.start + pass;
    let rows = items.run(range.start..next, read);
    whole_pass::<Q, true>(cast(rows), lanes, state);
    while range.end - next >= pass + lanes as u64 {
        whole_pass::<Q, false>(cast(items.run(next..next + pass, read)), lanes, state);
        next += pass;
    }
    last_pass::<Q, false>(cast(items.run(next..range.end, read)), lanes, state)
}

/// The same slice under the type's other name.
#[inline(always)]
fn cast<A: 'static, B: 'static>(items: &[A]) -> &[B] {
    assert!(TypeId::of::<A>() == TypeId::of::<B>());
    // SAFETY: one and the same type.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), items.len()) }
}

/// Takes [`ROWS`] rows into the state, the first of them lifted if `FIRST`.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn whole_pass<Q: Quad, const FIRST: bool>(
    items: &[Q::Item],
    lanes: usize,
    state: &mut [MaybeUninit<[Q; 4]>],
) {
    assert!(items.len() == ROWS * lanes && state.len() * UNIT == lanes);
    for (unit, state) in state.iter_mut().enumerate() {
        // SAFETY: unit * UNIT + UNIT <= lanes and the items are ROWS whole rows; AVX2; the state is written in the
        // first pass, before it is read.
        unsafe {
            let first = items.as_ptr().add(unit * UNIT);
            state.write(if FIRST {
                lift_unit(first, lanes, ROWS)
            } else {
                push_unit(state.assume_init(), first, lanes, ROWS)
            });
        }
    }
}

/// Takes the last items in, fewer than [`ROWS`] + 1 rows, and combines the lanes.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn last_pass<Q: Quad, const FIRST: bool>(
    items: &[Q::Item],
    lanes: usize,
    state: &[MaybeUninit<[Q; 4]>],
) -> Q::Acc {
    let units = lanes / UNIT;
    let (rows, tail) = (items.len() / lanes, items.len() % lanes);
    assert!(if FIRST { rows > 0 } else { state.len() == units } && units <= MAX_LANES / UNIT);
    let mut tops = [const { MaybeUninit::<Q>::uninit() }; MAX_LANES / UNIT];
    for (unit, top) in tops[..units].iter_mut().enumerate() {
        let lane = unit * UNIT;
        // SAFETY: lane + UNIT <= lanes, so that every whole row has that many items there, and the tail has if it is
        // that long; AVX2; passes before this one wrote the whole state.
        unsafe {
            let first = items.as_ptr().add(lane);
            let mut quads = if FIRST {
                lift_unit::<Q>(first, lanes, rows)
            } else {
                push_unit(state[unit].assume_init(), first, lanes, rows)
            };
            if lane + UNIT <= tail {
                quads = push_unit(quads, first.add(rows * lanes), lanes, 1);
            } else if lane < tail {
                quads = push_some(quads, &items[rows * lanes + lane..]);
            }
            top.write(fold(quads));
        }
    }
    // SAFETY: `units` of them were just written; AVX2.
    unsafe { fold_tops(&mut tops, units) }
}

/// The first `rows` rows of a unit, `step` items apart; at least one.
///
/// # Safety
///
/// AVX2, and [`UNIT`] items in each row.
#[inline(always)]
unsafe fn lift_unit<Q: Quad>(items: *const Q::Item, step: usize, rows: usize) -> [Q; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let (a, b, c, d) = (items, items.add(4), items.add(8), items.add(12));
        if rows == 1 {
            return [Q::lift(a), Q::lift(b), Q::lift(c), Q::lift(d)];
        }
        let quads = [
            Q::lift_two(a, a.add(step)),
            Q::lift_two(b, b.add(step)),
            Q::lift_two(c, c.add(step)),
            Q::lift_two(d, d.add(step)),
        ];
        push_unit(quads, items.add(2 * step), step, rows - 2)
    }
}

/// Takes `rows` rows, `step` items apart, into a unit.
///
/// # Safety
///
/// AVX2, and [`UNIT`] items in each row.
#[inline(always)]
unsafe fn push_unit<Q: Quad>(quads: [Q; 4], items: *const Q::Item, step: usize, rows: usize) -> [Q; 4] {
    let [mut a, mut b, mut c, mut d] = quads;
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let items = items.add(row * step);
            a = a.push(items);
            b = b.push(items.add(4));
            c = c.push(items.add(8));
            d = d.push(items.add(12));
        }
    }
    [a, b, c, d]
}

/// Takes one item each into the first lanes of a unit, as many as there are items; not all.
///
/// # Safety
///
/// AVX2.
#[inline(always)]
unsafe fn push_some<Q: Quad>(quads: [Q; 4], items: &[Q::Item]) -> [Q; 4] {
    let mut result = quads;
    for i in 0..4 {
        let count = items.len() as isize - 4 * i as isize;
        // SAFETY: AVX2; no more than `count` items are read, and none if there are none.
        unsafe {
            let some = Q::some(items.as_ptr().wrapping_add(4 * i), count);
            let mask = _mm256_castsi256_pd(first_lanes(count));
            result[i] = quads[i].select(quads[i].push(some.as_ptr()), mask);
        }
    }
    result
}

/// All ones in the first `count` lanes of four.
///
/// # Safety
///
/// AVX2.
#[inline(always)]
unsafe fn first_lanes(count: isize) -> __m256i {
    // SAFETY: AVX2.
    unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
}

/// Sixteen neighbours, pairwise, to four.
///
/// # Safety
///
/// AVX2.
#[inline(always)]
unsafe fn fold<Q: Quad>([a, b, c, d]: [Q; 4]) -> Q {
    // SAFETY: AVX2.
    unsafe {
        // Neighbours of two vectors: 01 45 23 67 (in fours, where the letters' digits are the lanes).
        let (left, right) = a.unpack(b);
        let ab = left.merge(right);
        let (left, right) = c.unpack(d);
        let cd = left.merge(right);
        // And their neighbours, which come out in order.
        let (left, right) = ab.halves(cd);
        left.merge(right)
    }
}

/// Combines the first `len` quads' values, pairwise, neighbours first; `len` is a power of two.
///
/// # Safety
///
/// AVX2, and that many are initialised.
#[inline(always)]
unsafe fn fold_tops<Q: Quad>(tops: &mut [MaybeUninit<Q>], mut len: usize) -> Q::Acc {
    // SAFETY: the caller's promise; a level's results are written behind where they are read.
    unsafe {
        while len >= 4 {
            len /= 4;
            for i in 0..len {
                let four = tops.as_ptr().add(4 * i).cast::<[Q; 4]>().read();
                tops[i].write(fold(four));
            }
        }
        let first = fold_quad(tops[0].assume_init());
        if len == 2 { first.merge(fold_quad(tops[1].assume_init())) } else { first }
    }
}

/// Four neighbours, pairwise, to one.
///
/// # Safety
///
/// AVX2.
#[inline(always)]
unsafe fn fold_quad<Q: Quad>(quad: Q) -> Q::Acc {
    // SAFETY: AVX2.
    let [a, b, c, d] = unsafe { quad.to_array() };
    a.merge(b).merge(c.merge(d))
}
