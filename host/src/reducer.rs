//! Reductions of whole arrays.

use warpfold_monoid::{Monoid, Value};

use crate::{
    Engine, Error, Input, Items, Source, cpu,
    plan::{OperatorLayout, ReducePlan},
};

/// Reduces arrays with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::reducer`].
#[derive(Clone, Debug)]
pub struct Reducer<Op: Monoid> {
    engine: Engine,
    op: Op,
}

impl<Op: Monoid> Reducer<Op> {
    pub(crate) fn new(engine: Engine, op: Op) -> Self {
        Reducer { engine, op }
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a reduction of `n` items will do.
    ///
    /// # Errors
    ///
    /// As for [`ReducePlan::new`].
    pub fn plan(&self, n: u64) -> Result<ReducePlan, Error> {
        ReducePlan::cpu(n, OperatorLayout::of::<Op>())
    }

    /// Reduces an array to a value on the host, and waits for it.
    ///
    /// # Errors
    ///
    /// None on the CPU.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{Max, Sum};
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cpu();
    /// let values = vec![3.0f32, 4.0, 5.0];
    /// assert_eq!(engine.reducer(Sum::<f32>::new())?.reduce(&values)?, 12.0);
    /// assert_eq!(engine.reducer(Max::<f32>::new())?.reduce(&values[..2])?, Some(4.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce<I: Input<Op::Item> + ?Sized>(&self, input: &I) -> Result<Value<Op>, Error> {
        match input.source()? {
            Source::Host(items) => Ok(cpu::reduce(&self.op, items)),
            Source::Strided(items) => Ok(cpu::reduce(&self.op, &items)),
        }
    }

    /// Reduces items that are read one by one: strided, byte-swapped, computed. Same order, same bits as
    /// [`reduce`](Reducer::reduce) of a slice of them.
    ///
    /// # Errors
    ///
    /// None on the CPU.
    pub fn reduce_items<S: Items<Op::Item> + ?Sized>(&self, items: &S) -> Result<Value<Op>, Error> {
        Ok(cpu::reduce(&self.op, items))
    }
}
