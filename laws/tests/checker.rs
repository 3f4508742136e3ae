//! The checker must catch what it is for, name the right law, and shrink to the smallest counterexample; and it must let
//! right operators pass, also those that are not commutative, have no identity, or round.

use proptest::prelude::*;
use warpfold_laws::{self as laws, Law, Laws, Violation};
use warpfold_monoid::{
    Atomic, Elementwise, Fast, GivesIdentity, Map, MapFn, Max, Min, Monoid, NanMin, NonEmpty, Ordered, Plain,
    Product, Semigroup, Sum, Unaligned, WithInitial, fused,
};

/// An operator on `i64` that needs no more than one function.
macro_rules! operator {
    ($(#[$doc:meta])* $name:ident, $commutative:literal, $combine:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Plain)]
        struct $name;

        impl Monoid for $name {
            type Item = i64;
            type Acc = i64;
            type Output = i64;
            type Empty = GivesIdentity;
            const COMMUTATIVE: bool = $commutative;
            fn identity(&self) -> i64 {
                0
            }
            fn lift(&self, item: i64, _index: u64) -> i64 {
                item
            }
            fn combine(&self, left: i64, right: i64) -> i64 {
                let combine: fn(i64, i64) -> i64 = $combine;
                combine(left, right)
            }
            fn finish(&self, acc: i64) -> i64 {
                acc
            }
        }
    };
}

operator!(Subtract, false, |a, b| a.wrapping_sub(b));
operator!(Average, true, |a, b| a.midpoint(b));
operator!(
    /// Right, but for the claim.
    First, true, |a, _| a
);
operator!(Overflows, true, |a, b| a.checked_add(b).expect("overflow"));
operator!(
    /// Commutative, and does not say so.
    Shy, false, |a, b| a.wrapping_add(b)
);

/// Composition of `x -> scale * x + shift` over the integers modulo 2^32: not commutative.
#[derive(Clone, Copy, Debug, Plain)]
struct Affine;

impl Monoid for Affine {
    type Item = [u32; 2];
    type Acc = [u32; 2];
    type Output = [u32; 2];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    fn identity(&self) -> [u32; 2] {
        [1, 0]
    }
    fn lift(&self, item: [u32; 2], _index: u64) -> [u32; 2] {
        item
    }
    fn combine(&self, [a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
        [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
    }
    fn finish(&self, acc: [u32; 2]) -> [u32; 2] {
        acc
    }
}

/// A sum whose shortcut forgets every item that is a multiple of 8.
#[derive(Clone, Copy, Debug, Plain)]
struct ForgetfulPush;

impl Monoid for ForgetfulPush {
    type Item = u32;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> u32 {
        0
    }
    fn lift(&self, item: u32, _index: u64) -> u32 {
        item
    }
    fn combine(&self, left: u32, right: u32) -> u32 {
        left.wrapping_add(right)
    }
    fn push(&self, acc: u32, item: u32, _index: u64) -> u32 {
        if item.is_multiple_of(8) { acc } else { acc.wrapping_add(item) }
    }
    fn finish(&self, acc: u32) -> u32 {
        acc
    }
}

/// The first item; a zeroed accumulator was never lifted and must not be seen.
#[derive(Clone, Copy, Debug, Plain)]
struct Sentinel;

impl Semigroup for Sentinel {
    type Item = u32;
    type Acc = [u32; 2];
    type Output = u32;
    const COMMUTATIVE: bool = false;
    fn lift(&self, item: u32, _index: u64) -> [u32; 2] {
        [item, 1]
    }
    fn combine(&self, left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
        assert_eq!((left[1], right[1]), (1, 1), "a placeholder was combined");
        left
    }
    fn finish(&self, acc: [u32; 2]) -> u32 {
        assert_eq!(acc[1], 1, "a placeholder was finished");
        acc[0]
    }
}

/// The position of the first item over a bound: an operator that looks at the index, and is commutative.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
struct FirstOver {
    bound: i32,
}

impl Monoid for FirstOver {
    type Item = i32;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> u64 {
        u64::MAX
    }
    fn lift(&self, item: i32, index: u64) -> u64 {
        if item > self.bound { index } else { u64::MAX }
    }
    fn combine(&self, left: u64, right: u64) -> u64 {
        left.min(right)
    }
    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

/// A sum of 64-bit floats that says that it does not round.
#[derive(Clone, Copy, Debug, Plain)]
struct Exact;

impl Monoid for Exact {
    type Item = f64;
    type Acc = f64;
    type Output = f64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;
    fn identity(&self) -> f64 {
        0.0
    }
    fn lift(&self, item: f64, _index: u64) -> f64 {
        item
    }
    fn combine(&self, left: f64, right: f64) -> f64 {
        left + right
    }
    fn finish(&self, acc: f64) -> f64 {
        acc
    }
}

/// The least item and where it stands, if that is not confused: of two that are equal the one on the left wins, or
/// `fold_many` counts from the wrong end.
#[derive(Clone, Copy, Debug, Plain)]
struct Least<const TIES: bool, const BACKWARDS: bool>;

impl<const TIES: bool, const BACKWARDS: bool> Monoid for Least<TIES, BACKWARDS> {
    type Item = u8;
    type Acc = [u64; 2];
    type Output = [u64; 2];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;
    fn identity(&self) -> [u64; 2] {
        [u64::MAX; 2]
    }
    fn lift(&self, item: u8, index: u64) -> [u64; 2] {
        [item.into(), index]
    }
    fn combine(&self, left: [u64; 2], right: [u64; 2]) -> [u64; 2] {
        let right_wins = if TIES { right < left } else { right[0] < left[0] };
        if right_wins { right } else { left }
    }
    fn fold_many<const N: usize>(&self, items: [u8; N], index: u64) -> [u64; 2] {
        let place = |i: usize| index + if BACKWARDS && N >= 8 { N - 1 - i } else { i } as u64;
        let lifted = (0..N).map(|i| self.lift(items[i], place(i)));
        lifted.reduce(|left, right| self.combine(left, right)).expect("an item")
    }
    fn finish(&self, acc: [u64; 2]) -> [u64; 2] {
        acc
    }
}

/// The greatest number, and how it claims to be gathered: 0 by combining, 1 by adding, and 2 with an identity that is not neutral.
#[derive(Clone, Copy, Debug, Plain)]
struct Greatest<const CLAIM: u8>;

impl<const CLAIM: u8> Monoid for Greatest<CLAIM> {
    type Item = u32;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;
    const ATOMIC: Atomic = if CLAIM == 1 { Atomic::Add } else { Atomic::Combine };
    fn identity(&self) -> u32 {
        if CLAIM == 2 { 9 } else { 0 }
    }
    fn lift(&self, item: u32, _index: u64) -> u32 {
        item
    }
    fn combine(&self, left: u32, right: u32) -> u32 {
        left.max(right)
    }
    fn finish(&self, acc: u32) -> u32 {
        acc
    }
}

fn broken(result: Result<impl std::fmt::Debug, Violation>) -> (Law, String, String) {
    match result {
        Err(violation @ Violation::Broken { .. }) => {
            let text = violation.to_string();
            let Violation::Broken { law, items, .. } = violation else { unreachable!() };
            (law, items, text)
        }
        other => panic!("expected a broken law, found {other:?}"),
    }
}

#[test]
fn subtraction_is_not_associative() {
    let (law, items, text) = broken(laws::check(&Subtract, any::<i64>(), laws::equal));
    assert_eq!((law, items.as_str()), (Law::Associativity, "[0, 0, -1]"));
    for part in ["Subtract` is not associative", "((x0 ∘ x1) ∘ x2) = 1", "(x0 ∘ (x1 ∘ x2)) = -1", "finish"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_false_claim_of_atomic_updates_is_caught() {
    laws::check(&Greatest::<0>, any::<u32>(), laws::equal).unwrap();
    let (law, items, text) = broken(laws::check(&Greatest::<1>, any::<u32>(), laws::equal));
    assert_eq!((law, items.as_str()), (Law::Atomic, "[1, 1]"));
    for part in
        ["claims to be", "bits of (x0 ∘ x1) = 0x1", "x0 + x1, as the words they are = 0x2", "`ATOMIC`"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let (law, _, text) = broken(laws::check(&Greatest::<2>, 0u32..20, laws::equal));
    assert!(law == Law::Atomic && text.contains("(identity ∘ x0) = 9"), "{text}");
    laws::check(&Fast(Sum::<f32>::new()), 0.0f32..1.0, laws::within(1e-6, 0.0)).unwrap();
    laws::check(&Sum::<u64>::new(), any::<u64>(), laws::equal).unwrap();
}

#[test]
fn averages_of_averages_are_not_associative() {
    let (law, items, _) = broken(laws::check(&Average, 0i64..1000, laws::equal));
    assert_eq!(law, Law::Associativity);
    assert_eq!(items.matches(',').count(), 2, "three items suffice: {items}");
}

#[test]
fn a_false_claim_of_commutativity_is_caught() {
    let (law, items, _) = broken(laws::check(&First, any::<i64>(), laws::equal));
    assert_eq!((law, items.as_str()), (Law::Commutativity, "[0, -1]"));
}

#[test]
fn a_false_claim_of_commutativity_shows_in_the_order() {
    /// The last item.
    #[derive(Clone, Copy, Debug, Plain)]
    struct Last;
    impl Monoid for Last {
        type Item = i64;
        type Acc = i64;
        type Output = i64;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = true;
        fn identity(&self) -> i64 {
            0
        }
        fn lift(&self, item: i64, _index: u64) -> i64 {
            item
        }
        fn combine(&self, _left: i64, right: i64) -> i64 {
            right
        }
        fn finish(&self, acc: i64) -> i64 {
            acc
        }
    }
    let (law, items, text) = broken(laws::check_order(&Last, any::<i64>(), laws::equal));
    assert_eq!(law, Law::Order);
    assert!(items.len() < 200 && text.contains("canonical tree"), "{text}");
}

#[test]
fn a_false_claim_of_any_order_is_caught() {
    // Within a tolerance the sum keeps all other laws.
    let (law, items, text) = broken(laws::check(&Exact, 0.0..1.0, laws::within(1e-9, 0.0)));
    assert_eq!(law, Law::AnyOrder, "{text}");
    assert!(items.matches(',').count() <= 3, "not the smallest: {items}");
    let (law, ..) = broken(laws::check(&Least::<false, false>, 0u8..9, |a, b| a[0] == b[0]));
    assert_eq!(law, Law::AnyOrder);
}

#[test]
fn a_wrong_fold_of_many_is_caught() {
    let (law, items, text) = broken(laws::check(&Least::<true, true>, 0u8..9, laws::equal));
    assert_eq!(law, Law::FoldMany, "{text}");
    assert_eq!(items.matches(',').count(), 7, "not the smallest: {items}");
    laws::check(&Least::<true, false>, 0u8..9, laws::equal).unwrap();
}

#[test]
fn adapters_keep_any_order() {
    /// Half an item.
    #[derive(Clone, Copy, Debug, Plain)]
    struct Halved;
    impl MapFn for Halved {
        type From = u8;
        type To = u8;
        fn map(&self, from: u8, _: u64) -> u8 {
            from / 2
        }
    }
    let least = Least::<true, false>;
    laws::check(&Map::new(least, Halved), any::<u8>(), laws::equal).unwrap();
    laws::check(&WithInitial::new(least, [3, 1000]), any::<u8>(), laws::equal).unwrap();
    laws::check(&Elementwise::<_, 3>(least), any::<[u8; 3]>(), laws::equal).unwrap();
    laws::check(&Unaligned((least, Max::<u8>::new())), any::<u8>(), laws::equal).unwrap();
    const {
        assert!(Map::<Least<true, false>, Halved>::ANY_ORDER && WithInitial::<Max<i8>>::ANY_ORDER);
        assert!(Elementwise::<Max<i8>, 3>::ANY_ORDER && <(Min<i8>, Max<i8>)>::ANY_ORDER);
        assert!(!<(Min<f32>, Sum<f32>)>::ANY_ORDER && !Ordered::<Max<i8>>::ANY_ORDER);
    }
}

#[test]
fn a_wrong_push_is_caught() {
    let (law, items, text) = broken(laws::check(&ForgetfulPush, 0u32..1000, laws::equal));
    assert_eq!((law, items.matches(',').count()), (Law::Push, 1), "{text}");
    assert!(text.contains("push(x0, x1) = 0"), "{text}");
}

#[test]
fn a_panic_is_reported_with_its_method() {
    let violation = laws::check(&Overflows, any::<i64>(), laws::equal).unwrap_err();
    let text = violation.to_string();
    let Violation::Panicked { call, message, .. } = violation else { panic!("{violation:?}") };
    assert!((call == "combine" || call == "push") && message.contains("overflow"), "{text}");
    assert!(text.contains("wrapping_add"), "{text}");
}

#[test]
fn a_neutral_identity_is_asked_for_only_on_demand() {
    let op = WithInitial::new(Sum::<u32>::new(), 0);
    Laws::new().neutral_identity(true).check(&op, any::<u32>(), laws::equal).unwrap();
    // The smaller of 0 and 1 is not 1.
    operator!(LeastOfAll, true, |a, b| a.min(b));
    laws::check(&LeastOfAll, any::<i64>(), laws::equal).unwrap();
    let (law, ..) = broken(Laws::new().neutral_identity(true).check(&LeastOfAll, any::<i64>(), laws::equal));
    assert_eq!(law, Law::Neutrality);
}

#[test]
fn right_operators_pass() {
    laws::check(&Sum::<i32>::new(), any::<i32>(), laws::equal).unwrap();
    laws::check(&Product::<u64>::new(), any::<u64>(), laws::equal).unwrap();
    laws::check(&Min::<f32>::new(), any::<f32>(), laws::same_bits).unwrap();
    laws::check(&NanMin::<f64>::new(), proptest::num::f64::ANY, laws::same_bits).unwrap();
    laws::check(&Sum::<f32>::new(), 0.0f32..1.0, laws::within(1e-6, 0.0)).unwrap();
    laws::check(&Sum::<f64>::new(), -1e6..1e6, laws::within(1e-12, 1e-12)).unwrap();
    laws::check(&FirstOver { bound: 0 }, any::<i32>(), laws::equal).unwrap();
    laws::check(&Elementwise::<Sum<u32>, 3>::default(), any::<[u32; 3]>(), laws::equal).unwrap();
    let all = fused((Sum::<i64>::new(), Min::new(), Max::new(), Ordered(Shy)));
    laws::check(&all, any::<i64>(), laws::equal).unwrap();
}

#[test]
fn what_is_not_commutative_is_not_asked_to_be() {
    let report = laws::check(&Affine, any::<[u32; 2]>(), laws::equal).unwrap();
    assert!(!report.looks_commutative);
    let report = laws::check(&Shy, any::<i64>(), laws::equal).unwrap();
    assert!(report.looks_commutative);
}

#[test]
fn placeholders_are_never_combined() {
    laws::check(&NonEmpty(Sentinel), any::<u32>(), laws::equal).unwrap();
}

#[test]
fn commutative_operators_have_no_order() {
    laws::check_order(&Sum::<i32>::new(), any::<i32>(), laws::equal).unwrap();
    laws::check_order(&FirstOver { bound: 1 << 30 }, any::<i32>(), laws::equal).unwrap();
    laws::check_order(&Elementwise::<Max<u32>, 3>::default(), any::<[u32; 3]>(), laws::equal).unwrap();
}

#[test]
fn the_same_seed_finds_the_same() {
    let once = Laws::new().seed(3).check(&Average, any::<i64>(), laws::equal).unwrap_err();
    assert_eq!(Laws::new().seed(3).check(&Average, any::<i64>(), laws::equal).unwrap_err(), once);
}
