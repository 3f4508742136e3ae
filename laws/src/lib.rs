//! Checks that an operator keeps the laws that a warpfold reduction relies on, in an ordinary test.
//!
//! A reduction groups its operands as the [canonical tree](warpfold_monoid::tree) says, and reorders them if the operator
//! claims to be commutative. An operator that is not associative, or not as commutative as it says, still compiles and
//! runs: its results are just wrong, and differently so for each length. [`check`] finds that out with random items, and
//! shows the smallest counterexample.
//!
//! ```
//! use proptest::prelude::any;
//! use warpfold_laws as laws;
//! use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum};
//!
//! // In a #[test]:
//! laws::check(&Sum::<i32>::new(), any::<i32>(), laws::equal).unwrap();
//!
//! /// The mean, as one might write it first: it forgets how many items each side stands for.
//! #[derive(Clone, Copy, Plain)]
//! struct Mean;
//! impl Monoid for Mean {
//!     type Item = f64;
//!     type Acc = f64;
//!     type Output = f64;
//!     type Empty = GivesIdentity;
//!     const COMMUTATIVE: bool = true;
//!     fn identity(&self) -> f64 { 0.0 }
//!     fn lift(&self, item: f64, _index: u64) -> f64 { item }
//!     fn combine(&self, left: f64, right: f64) -> f64 { (left + right) / 2.0 }
//!     fn finish(&self, acc: f64) -> f64 { acc }
//! }
//!
//! let violation = laws::check(&Mean, 0.0..1e3, laws::within(1e-9, 0.0)).unwrap_err();
//! assert!(violation.to_string().contains("not associative"), "{violation}");
//! ```
//!
//! # What is compared
//!
//! Accumulators may differ and mean the same (a double-double sum, a fraction that is not reduced). So the laws compare
//! **finished results**, also after more was combined on the left and on the right: a difference that matters to any
//! result shows in one of these. When two results are the same is the caller's to say: [`equal`], [`same_bits`],
//! [`within`] a tolerance, or any closure.
//!
//! An operator that claims to have the same bits in any order ([`ANY_ORDER`](Monoid::ANY_ORDER)) is held to that: its
//! results are compared bit by bit, in shuffled orders and random groupings.
//!
//! # Floating point
//!
//! Rounding breaks associativity slightly, which is expected, and cancellation magnifies it. Draw items for which the
//! operator is exact (small whole numbers) and compare with [`equal`], or items without cancellation (of one sign) and
//! compare [`within`] a tolerance. Wide ranges with a tight tolerance report rounding as a violation.

mod compare;
mod order;
mod violation;

use std::any::type_name;
use std::cell::Cell;
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::collection::vec;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use warpfold_monoid::{Atomic, Monoid, Plain};

use compare::bytes;
pub use compare::{Approx, equal, same_bits, within};
pub use violation::{Law, Side, Violation};

/// Checks all laws with the default [`Laws`]: 256 cases of up to 24 items, always the same ones.
///
/// # Errors
///
/// The smallest counterexample found, as a [`Violation`].
///
/// ```
/// use proptest::prelude::any;
/// use warpfold_laws as laws;
/// use warpfold_monoid::{Max, Min};
///
/// let report = laws::check(&(Min::<i64>::new(), Max::<i64>::new()), any::<i64>(), laws::equal)?;
/// assert_eq!(report.cases, 256);
/// # Ok::<(), laws::Violation>(())
/// ```
pub fn check<Op, S, E>(op: &Op, items: S, same: E) -> Result<Report, Violation>
where
    Op: Monoid<Item: Debug, Output: Debug>,
    S: Strategy<Value = Op::Item>,
    E: Fn(&Op::Output, &Op::Output) -> bool,
{
    Laws::new().check(op, items, same)
}

/// Compares the canonical tree with a plain left fold, with the default [`Laws`]: see [`Laws::check_order`].
///
/// # Errors
///
/// The smallest counterexample found, as a [`Violation`].
///
/// ```
/// use warpfold_laws as laws;
/// use warpfold_monoid::Sum;
///
/// laws::check_order(&Sum::<f32>::new(), 0.0f32..1.0, laws::within(1e-6, 0.0))?;
/// # Ok::<(), laws::Violation>(())
/// ```
pub fn check_order<Op, S, E>(op: &Op, items: S, same: E) -> Result<(), Violation>
where
    Op: Monoid<Item: Debug, Output: Debug>,
    S: Strategy<Value = Op::Item>,
    E: Fn(&Op::Output, &Op::Output) -> bool,
{
    Laws::new().check_order(op, items, same)
}

/// What a check that found no violation saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Lists of items that were tried.
    pub cases: u32,
    /// The operator does not claim to be commutative, yet no swap changed a result. If that is no accident, claiming it
    /// gives the library the faster order of loads.
    pub looks_commutative: bool,
}

/// How thoroughly to check.
///
/// ```
/// use proptest::prelude::any;
/// use warpfold_laws::{Laws, equal};
/// use warpfold_monoid::Product;
///
/// let laws = Laws::new().cases(64).longest(100).seed(7).neutral_identity(true);
/// laws.check(&Product::<u32>::new(), any::<u32>(), equal)?;
/// # Ok::<(), warpfold_laws::Violation>(())
/// ```
#[derive(Clone, Debug)]
pub struct Laws {
    cases: u32,
    longest: usize,
    seed: u64,
    neutral: bool,
}

impl Default for Laws {
    fn default() -> Self {
        Laws { cases: 256, longest: 24, seed: 0, neutral: false }
    }
}

impl Laws {
    /// 256 cases of up to 24 items.
    pub fn new() -> Laws {
        Laws::default()
    }

    /// Lists of items to try.
    pub fn cases(self, cases: u32) -> Laws {
        Laws { cases, ..self }
    }

    /// The most items in a list, at least 3: a law about three operands needs as many.
    pub fn longest(self, longest: usize) -> Laws {
        Laws { longest: longest.max(3), ..self }
    }

    /// Another series of lists. The same seed always tries the same ones.
    pub fn seed(self, seed: u64) -> Laws {
        Laws { seed, ..self }
    }

    /// Also asks that combining the identity with anything changes nothing. A reduction never does combine it, so an
    /// operator may do without (and the placeholder of [`NonEmpty`](warpfold_monoid::NonEmpty) must not be combined).
    pub fn neutral_identity(self, neutral: bool) -> Laws {
        Laws { neutral, ..self }
    }

    /// Checks the laws of [`Monoid`] on random lists of items.
    ///
    /// - `combine` is associative, on accumulators of one and of many items;
    /// - `push(acc, item, i)` means `combine(acc, lift(item, i))`;
    /// - `combine(a, b)` and `combine(b, a)` mean the same, if the operator is [`COMMUTATIVE`](Monoid::COMMUTATIVE);
    /// - if it claims [`ANY_ORDER`](Monoid::ANY_ORDER), `fold_many` and any order and grouping give the same bits;
    /// - if it claims to be gathered by atomic updates ([`ATOMIC`](Monoid::ATOMIC)), the identity is neutral and, finished, what a
    ///   reduction of nothing gives; and adding accumulators as words gives what `combine` gives, where that is claimed;
    /// - no method panics on what the others made, nor does `finish_empty`. (An overflow panics in a debug build and wraps
    ///   on the device: say which is meant, with `wrapping_add`.)
    ///
    /// # Errors
    ///
    /// The smallest counterexample found.
    pub fn check<Op, S, E>(&self, op: &Op, items: S, same: E) -> Result<Report, Violation>
    where
        Op: Monoid<Item: Debug, Output: Debug>,
        S: Strategy<Value = Op::Item>,
        E: Fn(&Op::Output, &Op::Output) -> bool,
    {
        let traced = Traced::new(op);
        guarded(&traced, &[] as &[Op::Item], || {
            traced.finish_empty();
            Ok(())
        })?;
        let swap_mattered = Cell::new(false);
        let case = Case { op: &traced, same: &same, neutral: self.neutral, swap_mattered: &swap_mattered };
        self.run(&vec(items, 1..=self.longest), &|items: &[Op::Item]| {
            guarded(&traced, items, || case.all(items))
        })?;
        Ok(Report { cases: self.cases, looks_commutative: !Op::COMMUTATIVE && !swap_mattered.get() })
    }

    /// Runs a property over generated lists; on failure the violation of the smallest one found. Compiled once for each kind
    /// of list, not for each operator.
    fn run<T: Debug + Copy>(
        &self,
        lists: &impl Strategy<Value = Vec<T>>,
        property: &dyn Fn(&[T]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let outcome = self.runner().run(lists, |list| {
            property(&list).map_err(|violation| TestCaseError::fail(violation.to_string()))
        });
        match outcome {
            Ok(()) => Ok(()),
            Err(TestError::Fail(reason, list)) => match property(&list) {
                Err(violation) => Err(without_idle_items(list, violation, property)),
                Ok(()) => Err(Violation::Unstable { reason: reason.to_string() }),
            },
            Err(TestError::Abort(reason)) => Err(Violation::NoItems { reason: reason.to_string() }),
        }
    }

    fn runner(&self) -> TestRunner {
        let config = Config { cases: self.cases, failure_persistence: None, ..Config::default() };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }
}

/// Drops items one by one as long as the rest still shows a violation. (proptest drops them before it simplifies the ones
/// that stay, when fewer lists fail.)
fn without_idle_items<T: Copy>(
    mut list: Vec<T>,
    mut violation: Violation,
    property: impl Fn(&[T]) -> Result<(), Violation>,
) -> Violation {
    let mut i = 0;
    while i < list.len() {
        let mut rest = list.clone();
        rest.remove(i);
        match property(&rest) {
            Err(smaller) => {
                (list, violation) = (rest, smaller);
                i = 0;
            }
            Ok(()) => i += 1,
        }
    }
    violation
}

/// An operator that remembers which of its methods ran last, for the report of a panic.
pub(crate) struct Traced<'a, Op> {
    op: &'a Op,
    call: Cell<&'static str>,
}

impl<'a, Op: Monoid> Traced<'a, Op> {
    fn new(op: &'a Op) -> Self {
        Traced { op, call: Cell::new("") }
    }

    fn lift(&self, item: Op::Item, index: usize) -> Op::Acc {
        self.call.set("lift");
        self.op.lift(item, index as u64)
    }

    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.call.set("combine");
        self.op.combine(left, right)
    }

    fn push(&self, acc: Op::Acc, item: Op::Item, index: usize) -> Op::Acc {
        self.call.set("push");
        self.op.push(acc, item, index as u64)
    }

    /// Of 1, 2, 3, 4, 8 or 16 items.
    fn fold_many(&self, items: &[Op::Item], index: usize) -> Op::Acc {
        self.call.set("fold_many");
        let index = index as u64;
        match *items {
            [a] => self.op.fold_many([a], index),
            [a, b] => self.op.fold_many([a, b], index),
            [a, b, c] => self.op.fold_many([a, b, c], index),
            [a, b, c, d] => self.op.fold_many([a, b, c, d], index),
            [a, b, c, d, e, f, g, h] => self.op.fold_many([a, b, c, d, e, f, g, h], index),
            _ => self.op.fold_many(std::array::from_fn::<_, 16, _>(|i| items[i]), index),
        }
    }

    fn identity(&self) -> Op::Acc {
        self.call.set("identity");
        self.op.identity()
    }

    fn finish(&self, acc: Op::Acc) -> Op::Output {
        self.call.set("finish");
        self.op.finish(acc)
    }

    fn finish_empty(&self) -> Op::Output {
        self.call.set("finish_empty");
        self.op.finish_empty()
    }
}

/// Runs a check; a panic in the operator becomes a violation.
fn guarded<Op: Monoid>(
    op: &Traced<'_, Op>,
    items: &[impl Debug],
    check: impl FnOnce() -> Result<(), Violation>,
) -> Result<(), Violation> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
            .unwrap_or_else(|| "no message".to_string());
        Err(Violation::Panicked {
            operator: type_name::<Op>(),
            call: op.call.get(),
            items: violation::shown(items),
            message,
        })
    })
}

/// Lists up to this long are cut in every way, longer ones in some.
const CUT_EVERYWHERE: usize = 6;

/// How often a longer list is cut.
const CUTS: usize = 24;

/// How often a list is shuffled, where any order is claimed to do.
const SHUFFLES: usize = 6;

/// The laws on one list of items.
struct Case<'a, Op: Monoid, E> {
    op: &'a Traced<'a, Op>,
    same: &'a E,
    neutral: bool,
    swap_mattered: &'a Cell<bool>,
}

/// Some neighbouring items, folded: how the error names it, and the value.
#[derive(Clone)]
struct Term<A> {
    expression: String,
    acc: A,
}

impl<Op, E> Case<'_, Op, E>
where
    Op: Monoid<Item: Debug, Output: Debug>,
    E: Fn(&Op::Output, &Op::Output) -> bool,
{
    fn all(&self, items: &[Op::Item]) -> Result<(), Violation> {
        for cut in cuts::<3>(items.len()) {
            self.push_means_combine(items, cut)?;
        }
        for cut in cuts::<4>(items.len()) {
            self.associative(items, cut)?;
        }
        for cut in cuts::<3>(items.len()) {
            self.swap(items, cut)?;
        }
        if Op::ANY_ORDER {
            self.many(items)?;
            for shuffle in 0..SHUFFLES {
                self.any_order(items, shuffle)?;
            }
        }
        if self.claim() != Atomic::No {
            self.nothing()?;
            for cut in cuts::<2>(items.len()) {
                self.neutral(Law::Atomic, items, cut)?;
            }
            for cut in cuts::<3>(items.len()) {
                self.gathered(items, cut)?;
            }
        }
        if self.neutral {
            for cut in cuts::<2>(items.len()) {
                self.neutral(Law::Neutrality, items, cut)?;
            }
        }
        Ok(())
    }

    fn associative(&self, items: &[Op::Item], [start, i, j, end]: [usize; 4]) -> Result<(), Violation> {
        let (a, b, c) = (self.fold(items, start..i), self.fold(items, i..j), self.fold(items, j..end));
        let left = self.combine(&self.combine(&a, &b), &c);
        let right = self.combine(&a, &self.combine(&b, &c));
        self.compare(Law::Associativity, items, start..end, left, right)
    }

    /// Items `start .. i` and `i .. end`, the second of which counts as one item here: `end` is not used.
    fn push_means_combine(&self, items: &[Op::Item], [start, i, _end]: [usize; 3]) -> Result<(), Violation> {
        let acc = self.fold(items, start..i);
        let pushed = Term {
            expression: format!("push({}, x{i})", acc.expression),
            acc: self.op.push(acc.acc, items[i], i),
        };
        let combined = self.combine(&acc, &self.fold(items, i..i + 1));
        self.compare(Law::Push, items, start..i + 1, pushed, combined)
    }

    fn swap(&self, items: &[Op::Item], [start, i, end]: [usize; 3]) -> Result<(), Violation> {
        if !Op::COMMUTATIVE && self.swap_mattered.get() {
            return Ok(());
        }
        let (a, b) = (self.fold(items, start..i), self.fold(items, i..end));
        let outcome =
            self.compare(Law::Commutativity, items, start..end, self.combine(&a, &b), self.combine(&b, &a));
        if Op::COMMUTATIVE {
            return outcome;
        }
        self.swap_mattered.set(outcome.is_err());
        Ok(())
    }

    fn neutral(&self, law: Law, items: &[Op::Item], [start, end]: [usize; 2]) -> Result<(), Violation> {
        let a = self.fold(items, start..end);
        let identity = Term { expression: "identity".to_string(), acc: self.op.identity() };
        let range = start..end;
        self.compare(law, items, range.clone(), self.combine(&identity, &a), a.clone())?;
        self.compare(law, items, range, self.combine(&a, &identity), a)
    }

    /// How the operator claims to be gathered. Accumulators of other sizes never are, whatever it says.
    fn claim(&self) -> Atomic {
        Op::ATOMIC.of_size(size_of::<Op::Acc>())
    }

    /// Nothing is gathered to what the identity is.
    fn nothing(&self) -> Result<(), Violation> {
        let (found, expected) = (self.op.finish(self.op.identity()), self.op.finish_empty());
        if same_bits(&found, &expected) {
            return Ok(());
        }
        let sides = [("finish(identity)", found), ("finish_empty()", expected)];
        self.broken(Law::Atomic, &[], sides.map(|(is, value)| (is.to_string(), format!("{value:?}"))))
    }

    /// Two accumulators meet in memory.
    fn gathered(&self, items: &[Op::Item], [start, i, end]: [usize; 3]) -> Result<(), Violation> {
        let (a, b) = (self.fold(items, start..i), self.fold(items, i..end));
        let both = self.combine(&a, &b);
        let [left, right, found] = [&a, &b, &both].map(|term| word(&term.acc));
        let expected = match (self.claim(), size_of::<Op::Acc>()) {
            (Atomic::Add, 4) => (left as u32).wrapping_add(right as u32).into(),
            (Atomic::Add, _) => left.wrapping_add(right),
            (Atomic::AddFloat, 8) => {
                let (sum, found) = (f64::from_bits(left) + f64::from_bits(right), f64::from_bits(found));
                // Zeros and what is no number are as good as others of them.
                let alike = sum == found || (sum.is_nan() && found.is_nan());
                if alike { found.to_bits() } else { sum.to_bits() }
            }
            // No `f64` has so few bytes.
            (Atomic::AddFloat, _) => !found,
            _ => found,
        };
        if expected == found {
            return Ok(());
        }
        let sides = [
            (format!("bits of {}", both.expression), format!("{found:#x}")),
            (format!("{} + {}, as the words they are", a.expression, b.expression), format!("{expected:#x}")),
        ];
        self.broken(Law::Atomic, items, sides)
    }

    /// All runs of neighbours, folded at once and one by one.
    fn many(&self, items: &[Op::Item]) -> Result<(), Violation> {
        for start in 0..items.len() {
            for len in [1, 2, 3, 4, 8, 16] {
                let Some(run) = items.get(start..start + len) else { break };
                let one_by_one = self.fold(items, start..start + len);
                let acc = self.op.fold_many(run, start);
                let at_once = Term { expression: format!("fold_many({})", one_by_one.expression), acc };
                self.compare_bits(Law::FoldMany, items, start..start + len, at_once, one_by_one)?;
            }
        }
        Ok(())
    }

    /// A shuffled list in some grouping: terms are lifted, pushed onto and combined until there is one.
    fn any_order(&self, items: &[Op::Item], shuffle: usize) -> Result<(), Violation> {
        let mut random = Random(((items.len() as u64) << 8) + shuffle as u64);
        let mut left: Vec<usize> = (0..items.len()).collect();
        let mut terms: Vec<Term<Op::Acc>> = Vec::new();
        while !left.is_empty() || terms.len() > 1 {
            let combines = terms.len() > 1 && (left.is_empty() || random.below(3) == 0);
            if combines {
                let (a, b) = (
                    terms.swap_remove(random.below(terms.len())),
                    terms.swap_remove(random.below(terms.len())),
                );
                terms.push(self.combine(&a, &b));
                continue;
            }
            let i = left.swap_remove(random.below(left.len()));
            if terms.is_empty() || random.below(2) == 0 {
                terms.push(self.fold(items, i..i + 1));
            } else {
                let term = terms.swap_remove(random.below(terms.len()));
                terms.push(Term {
                    expression: format!("push({}, x{i})", term.expression),
                    acc: self.op.push(term.acc, items[i], i),
                });
            }
        }
        let Some(shuffled) = terms.pop() else { return Ok(()) };
        self.compare_bits(Law::AnyOrder, items, 0..items.len(), shuffled, self.fold(items, 0..items.len()))
    }

    /// Items of a range, folded from the left.
    fn fold(&self, items: &[Op::Item], range: Range<usize>) -> Term<Op::Acc> {
        let mut acc = self.op.lift(items[range.start], range.start);
        for (i, &item) in items[..range.end].iter().enumerate().skip(range.start + 1) {
            acc = self.op.push(acc, item, i);
        }
        let expression = match range.len() {
            1 => format!("x{}", range.start),
            _ => format!("x{}..x{}", range.start, range.end - 1),
        };
        Term { expression, acc }
    }

    fn combine(&self, left: &Term<Op::Acc>, right: &Term<Op::Acc>) -> Term<Op::Acc> {
        Term {
            expression: format!("({} ∘ {})", left.expression, right.expression),
            acc: self.op.combine(left.acc, right.acc),
        }
    }

    /// Do two values of the items in `range` mean the same, with the other items combined on both sides?
    fn compare(
        &self,
        law: Law,
        items: &[Op::Item],
        range: Range<usize>,
        left: Term<Op::Acc>,
        right: Term<Op::Acc>,
    ) -> Result<(), Violation> {
        self.compare_by(law, items, range, [left, right], &self.same)
    }

    /// The same, and not only mean the same but have the same bits?
    fn compare_bits(
        &self,
        law: Law,
        items: &[Op::Item],
        range: Range<usize>,
        left: Term<Op::Acc>,
        right: Term<Op::Acc>,
    ) -> Result<(), Violation> {
        self.compare_by(law, items, range, [left, right], &same_bits)
    }

    fn compare_by(
        &self,
        law: Law,
        items: &[Op::Item],
        range: Range<usize>,
        sides: [Term<Op::Acc>; 2],
        same: &dyn Fn(&Op::Output, &Op::Output) -> bool,
    ) -> Result<(), Violation> {
        let finish = |mut term: Term<Op::Acc>| {
            if range.start > 0 {
                term = self.combine(&self.fold(items, 0..range.start), &term);
            }
            if range.end < items.len() {
                term = self.combine(&term, &self.fold(items, range.end..items.len()));
            }
            (self.op.finish(term.acc), term.expression)
        };
        let [(left, left_is), (right, right_is)] = sides.map(finish);
        if same(&left, &right) {
            return Ok(());
        }
        self.broken(law, items, [(left_is, format!("{left:?}")), (right_is, format!("{right:?}"))])
    }

    /// Sides that differ: how each was computed, and what it is.
    fn broken(&self, law: Law, items: &[Op::Item], sides: [(String, String); 2]) -> Result<(), Violation> {
        let [left, right] = sides.map(|(expression, value)| Box::new(Side { expression, value }));
        Err(Violation::Broken {
            operator: type_name::<Op>(),
            law,
            items: violation::shown(items),
            left,
            right,
        })
    }
}

/// The bits of a value of 4 or 8 bytes.
fn word<A: Plain>(value: &A) -> u64 {
    match *bytes(value) {
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Numbers that are the same each time, so that shrinking finds a fault again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        // Knuth's multiplier for a 64-bit linear congruential generator; its high bits are the good ones.
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// Ways to cut `n` items at `K` rising positions from 0 to `n`: all of them for few items, else some, always the same
/// ones so that shrinking finds a fault again.
fn cuts<const K: usize>(n: usize) -> Vec<[usize; K]> {
    if n + 1 < K {
        return Vec::new();
    }
    let mut found = Vec::new();
    if n <= CUT_EVERYWHERE {
        for chosen in 0..1u32 << (n + 1) {
            if chosen.count_ones() as usize == K {
                let mut positions = (0..=n).filter(|&i| chosen >> i & 1 == 1);
                found.push(std::array::from_fn(|_| positions.next().unwrap_or(n)));
            }
        }
        // The whole list first: then the other items are not needed, and the message is the shortest.
        found.sort_by_key(|cut: &[usize; K]| n + cut[0] - cut[K - 1]);
        return found;
    }
    let mut random = Random(n as u64);
    while found.len() < CUTS {
        let mut cut = [0; K];
        for position in &mut cut {
            *position = random.below(n + 1);
        }
        cut.sort_unstable();
        if cut.windows(2).all(|pair| pair[0] < pair[1]) {
            found.push(cut);
        }
    }
    found
}
