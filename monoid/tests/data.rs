//! Items for the tests: every kind of number, awkward ones first.

use std::cmp::Ordering;
use std::fmt::Debug;

use half::{bf16, f16};
use warpfold_monoid::{Element, Float, Plain};

/// Lengths around what lanes, tiles and chunks are made of.
pub const SIZES: [usize; 11] = [0, 1, 2, 3, 31, 32, 33, 100, 1000, 8193, 100_003];

/// The generator splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        ((self.bits() as u128 * limit as u128) >> 64) as usize
    }

    /// From 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of either sign, with an exponent from `low` to `high`.
    pub fn float(&mut self, low: i32, high: i32) -> f64 {
        let exponent = low + self.below((high - low + 1) as usize) as i32;
        let value = crate::exact::scale(1.0 + self.unit(), exponent.into());
        if self.bits() & 1 == 0 { value } else { -value }
    }
}

/// A number type whose values the tests know without asking the library.
pub trait Probe: Element + Debug {
    fn of_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
    /// The order of values, -0.0 before +0.0; of what is not a NaN.
    fn order(self, other: Self) -> Ordering;
    fn nan(self) -> bool;
    /// Awkward values, none of them a NaN.
    fn specials() -> Vec<Self>;
    /// Several NaNs: quiet, signalling, of either sign, with payloads.
    fn nans() -> Vec<Self> {
        Vec::new()
    }
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Probe for $type {
            fn of_bits(bits: u64) -> Self { bits as $type }
            fn to_bits(self) -> u64 { self as u64 }
            fn order(self, other: Self) -> Ordering { (self as i128).cmp(&(other as i128)) }
            fn nan(self) -> bool { false }
            fn specials() -> Vec<Self> {
                let half = $type::MAX / 2;
                let mut list = vec![0, 1, 2, half, half + 1, $type::MAX - 1, $type::MAX, $type::MIN, $type::MIN + 1];
                list.extend([0 as $type, 1, 2].map(|x| x.wrapping_neg()));
                list
            }
        }
    )*};
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

impl Probe for bool {
    fn of_bits(bits: u64) -> bool {
        bits & 1 == 1
    }
    fn to_bits(self) -> u64 {
        self.into()
    }
    fn order(self, other: bool) -> Ordering {
        self.cmp(&other)
    }
    fn nan(self) -> bool {
        false
    }
    fn specials() -> Vec<bool> {
        vec![false, true]
    }
}

macro_rules! floats {
    ($($type:ident $bits:ident $mantissa:expr, $value:expr;)*) => {$(
        impl Probe for $type {
            fn of_bits(bits: u64) -> Self { $type::from_bits(bits as $bits) }
            fn to_bits(self) -> u64 { $type::to_bits(self).into() }
            fn order(self, other: Self) -> Ordering {
                let value: fn($type) -> f64 = $value;
                value(self).total_cmp(&value(other))
            }
            fn nan(self) -> bool { $type::is_nan(self) }
            fn specials() -> Vec<Self> {
                let infinity = $type::INFINITY.to_bits();
                let one = $type::from_bits(infinity / 2 & !((1 << $mantissa) - 1)).to_bits();
                // Zero, the least and the greatest subnormal, the least normal number, around 1, the greatest, infinity.
                let normal = 1 << $mantissa;
                let positive = [0, 1, 2, normal - 1, normal, normal + 1, one - 1, one, one + 1, infinity - 1, infinity];
                let sign = 1 << ($bits::BITS - 1);
                positive.into_iter().flat_map(|bits| [bits, bits | sign]).map($type::from_bits).collect()
            }
            fn nans() -> Vec<Self> {
                let infinity = $type::INFINITY.to_bits();
                let quiet = 1 << ($mantissa - 1);
                let payloads = [quiet, 1, quiet - 1, quiet | 1, quiet | 5, 2 * quiet - 1];
                let sign = 1 << ($bits::BITS - 1);
                payloads
                    .into_iter()
                    .flat_map(|payload| [infinity | payload, infinity | payload | sign])
                    .map($type::from_bits)
                    .collect()
            }
        }
    )*};
}
floats! {
    f16 u16 10, |x| x.to_f64();
    bf16 u16 7, |x| x.to_f64();
    f32 u32 23, |x| x.into();
    f64 u64 52, |x| x;
}

/// Lists of `n` items that have something to find: any bits (NaNs among them), no NaNs, few values (ties), one value only,
/// NaNs at the ends, in the middle, and everywhere.
pub fn lists<T: Probe>(n: usize, random: &mut Random) -> Vec<Vec<T>> {
    let (specials, nans) = (T::specials(), T::nans());
    let any: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
    let numbers: Vec<T> =
        any.iter().map(|&x| if x.nan() { specials[random.below(specials.len())] } else { x }).collect();
    let few: Vec<T> = (0..n).map(|_| specials[random.below(specials.len())]).collect();
    let mut lists = vec![any, numbers.clone(), few.clone()];
    // The extreme values alone, and each special value alone.
    if n <= 1000 {
        lists.extend(specials.iter().map(|&x| vec![x; n]));
        // Two values, which differ in a zero's sign only, or are neighbours.
        lists.extend(specials.windows(2).map(|pair| (0..n).map(|_| pair[random.below(2)]).collect()));
    }
    if n > 0 && !nans.is_empty() {
        for (i, &nan) in nans.iter().enumerate() {
            for place in [0, n / 2, n - 1] {
                let mut list = if i % 2 == 0 { numbers.clone() } else { few.clone() };
                list[place] = nan;
                list[n - 1 - place / 2] = nans[(i + 1) % nans.len()];
                lists.push(list);
            }
            if n > 1000 && i > 1 {
                break;
            }
        }
        lists.push((0..n).map(|_| nans[random.below(nans.len())]).collect());
        let mut last = lists[lists.len() - 1].clone();
        last[n / 3] = specials[0];
        lists.push(last);
    }
    lists
}

/// The position and the bits of the extreme: of the first NaN if there is one and they count, else of the first of the best.
pub fn extreme<T: Probe>(items: &[T], sought: Ordering, skip_nans: bool) -> Option<(usize, u64)> {
    if !skip_nans && let Some(place) = items.iter().position(|x| x.nan()) {
        return Some((place, T::nans()[0].to_bits()));
    }
    let mut best: Option<usize> = None;
    for (i, x) in items.iter().enumerate().filter(|(_, x)| !x.nan()) {
        if best.is_none_or(|best| x.order(items[best]) == sought) {
            best = Some(i);
        }
    }
    best.map(|i| (i, items[i].to_bits()))
}

/// The bytes of a value, to compare it as it is.
pub fn bytes<T: Plain>(value: &T) -> Vec<u8> {
    const { T::LAYOUT };
    let mut bytes = vec![0; size_of::<T>()];
    // SAFETY: plain data has no padding, so all its bytes are initialised; the list has room for them.
    unsafe { std::ptr::copy_nonoverlapping((&raw const *value).cast(), bytes.as_mut_ptr(), bytes.len()) };
    bytes
}

/// All float types' items from `f64`.
pub fn narrowed<T: Float>(values: impl IntoIterator<Item = f64>) -> Vec<T> {
    values.into_iter().map(T::of_f64).collect()
}
