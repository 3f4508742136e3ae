//! The canonical tree against a left fold.

use std::any::type_name;
use std::fmt::Debug;

use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use warpfold_monoid::{
    Monoid,
    tree::{self, MAX_GROUPS, VECTORS_A_GROUP},
};

use crate::{Law, Laws, Side, Traced, Violation, guarded, violation};

/// The longest list of the random ones, which shrink: past the first lengths at which lanes hold two items, for any item.
const SHORT: usize = 70;

impl Laws {
    /// Compares what the [canonical tree](warpfold_monoid::tree) gives with a left fold by `lift` and `combine`, on short
    /// random lists and at the lengths around which the tree changes shape, up to several chunks.
    ///
    /// This is what a user sees of the laws: an operator that passes gives the result that one expects of a loop. An
    /// operator that claims to be commutative and is not shows here as well.
    ///
    /// # Errors
    ///
    /// The smallest counterexample found; of long lists, the shortest.
    pub fn check_order<Op, S, E>(&self, op: &Op, items: S, same: E) -> Result<(), Violation>
    where
        Op: Monoid<Item: Debug, Output: Debug>,
        S: Strategy<Value = Op::Item>,
        E: Fn(&Op::Output, &Op::Output) -> bool,
    {
        let traced = Traced::new(op);
        let property = |items: &[Op::Item]| guarded(&traced, items, || compare(op, &traced, items, &same));
        self.run(&vec(&items, 1..=SHORT), &property)?;

        let lengths = lengths(size_of::<Op::Item>());
        let mut runner = self.runner();
        let mut list = Vec::new();
        for length in lengths {
            while list.len() < length {
                let item = items
                    .new_tree(&mut runner)
                    .map_err(|reason| Violation::NoItems { reason: reason.to_string() })?;
                list.push(item.current());
            }
            property(&list)?;
        }
        Ok(())
    }
}

/// Lengths, rising, around which the tree of items of that size changes shape.
fn lengths(item_size: usize) -> Vec<usize> {
    let vector = tree::vector_len(item_size);
    let chunk = (MAX_GROUPS as u64 * VECTORS_A_GROUP) as usize;
    let mut lengths: Vec<usize> = [128, 129, chunk / 2, chunk, chunk + 1, 3 * chunk / 2 + 1, 3 * chunk]
        .iter()
        .flat_map(|&vectors| [vectors * vector - 1, vectors * vector, vectors * vector + 1])
        .filter(|&n| n > SHORT)
        .collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

fn compare<Op: Monoid<Item: Debug, Output: Debug>>(
    op: &Op,
    traced: &Traced<'_, Op>,
    items: &[Op::Item],
    same: &impl Fn(&Op::Output, &Op::Output) -> bool,
) -> Result<(), Violation> {
    let mut lifted = items.iter().enumerate().map(|(i, &item)| traced.lift(item, i));
    let Some(first) = lifted.next() else { return Ok(()) };
    let left = traced.finish(lifted.fold(first, |acc, item| traced.combine(acc, item)));
    traced.call.set("lift, push or combine");
    let Some(acc) = tree::fold(op, items.len() as u64, &|i| items[i as usize]) else { return Ok(()) };
    let right = traced.finish(acc);
    if same(&left, &right) {
        return Ok(());
    }
    Err(Violation::Broken {
        operator: type_name::<Op>(),
        law: Law::Order,
        items: violation::shown(items),
        left: Box::new(Side { expression: "from left to right".to_string(), value: format!("{left:?}") }),
        right: Box::new(Side { expression: "in the tree".to_string(), value: format!("{right:?}") }),
    })
}
