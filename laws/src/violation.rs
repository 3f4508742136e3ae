//! What a check reports.

use std::fmt::{self, Debug};

/// A law of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// `(a ∘ b) ∘ c` means `a ∘ (b ∘ c)`.
    Associativity,
    /// `push(acc, item, i)` means `combine(acc, lift(item, i))`.
    Push,
    /// `a ∘ b` means `b ∘ a`, where the operator claims so.
    Commutativity,
    /// The identity changes nothing. Asked for only by [`Laws::neutral_identity`](crate::Laws::neutral_identity).
    Neutrality,
    /// The canonical tree means a left fold.
    Order,
    /// `fold_many` of neighbours has the bits of lifting the first and pushing the others, where the operator claims
    /// [`ANY_ORDER`](warpfold_monoid::Monoid::ANY_ORDER).
    FoldMany,
    /// Any order and grouping gives the same bits, where the operator claims so.
    AnyOrder,
    /// Atomic updates of accumulators in memory give what `combine` gives, and begin with the identity, where the operator claims
    /// [`ATOMIC`](warpfold_monoid::Monoid::ATOMIC).
    Atomic,
}

impl Law {
    fn broken(self) -> &'static str {
        match self {
            Law::Associativity => "is not associative",
            Law::Push => "does not push what it would lift and combine",
            Law::Commutativity => "is not commutative, as it claims to be",
            Law::Neutrality => "has an identity that is not neutral",
            Law::Order => "gives another result in the canonical tree than from left to right",
            Law::FoldMany => "folds many neighbours at once to other bits than one by one",
            Law::AnyOrder => "does not give the same bits in any order, as it claims to",
            Law::Atomic => "is not gathered by atomic updates, as it claims to be",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Law::Associativity => {
                "a reduction groups operands by its own tree: keep in the accumulator all that makes `combine` associative \
                 (for a mean, the sum and the count) and compute the result in `finish`"
            }
            Law::Push => {
                "make `push` the shortcut of `combine(acc, lift(item, index))` that it stands for, or leave it out"
            }
            Law::Commutativity => {
                "say `COMMUTATIVE = false` and operands keep their order, or break ties so that the order does not matter"
            }
            Law::Neutrality => "reductions never combine the identity: this matters only to code that does",
            Law::Order => {
                "check the laws first: one of them is broken, or rounding is larger than the tolerance"
            }
            Law::FoldMany => {
                "`fold_many` is a shortcut for `lift` of the first item and `push` of the others, each with its own index: \
                 make it that, or leave it out"
            }
            Law::Atomic => {
                "say nothing of `ATOMIC`, or no more than holds: `Combine` asks for an identity that is neutral and finishes to what \
                 nothing gives, `Add` also for integers that `combine` adds, `AddFloat` for an `f64` that it adds"
            }
            Law::AnyOrder => {
                "say nothing of `ANY_ORDER`: it is for operators without rounding, whose ties fall the same way in every \
                 order"
            }
        }
    }
}

/// One side of a law that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// How it was computed; `x2` is item 2, lifted, and `x2..x4` are items 2 to 4 folded from the left.
    pub expression: String,
    /// The finished result.
    pub value: String,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.expression, self.value)
    }
}

/// Why an operator failed a check, with the smallest list of items found that shows it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Two results that should mean the same do not.
    #[error("`{operator}` {}\n  items: {items}\n  {left}\n  {right}\n  {}", law.broken(), law.advice())]
    Broken {
        /// The operator's type.
        operator: &'static str,
        /// The law.
        law: Law,
        /// The items.
        items: String,
        /// One result.
        left: Box<Side>,
        /// The other.
        right: Box<Side>,
    },
    /// A method of the operator panicked.
    #[error(
        "`{operator}` panics in `{call}`\n  items: {items}\n  {message}\n  on the device there is nobody to catch it: make \
         the method total (for integers that overflow, `wrapping_add` and its siblings)"
    )]
    Panicked {
        /// The operator's type.
        operator: &'static str,
        /// The method.
        call: &'static str,
        /// The items.
        items: String,
        /// What the panic said.
        message: String,
    },
    /// A check failed once and passed with the same items: the operator, or the comparison, is not a function of its
    /// arguments.
    #[error("a check failed, and passed when it was repeated with the same items\n  {reason}")]
    Unstable {
        /// The first failure.
        reason: String,
    },
    /// The strategy gave too few items.
    #[error("the strategy for items gives none: {reason}")]
    NoItems {
        /// What the strategy said.
        reason: String,
    },
}

/// Items in an error: all of a short list, the ends of a long one.
pub(crate) fn shown(items: &[impl Debug]) -> String {
    const ALL: usize = 32;
    if items.len() <= ALL {
        return format!("{items:?}");
    }
    let (head, tail) = (&items[..4], &items[items.len() - 2..]);
    let list = |part: &[_]| part.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", ");
    format!("{} in all: [{}, ..., {}]", items.len(), list(head), list(tail))
}
