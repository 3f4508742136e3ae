//! Reductions by key.

use std::{fmt, marker::PhantomData};

use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equal, Equality, Runs},
};

#[cfg(feature = "cuda")]
use super::by_tag::placed;
use super::by_tag::same_lengths;
#[cfg(feature = "cuda")]
use crate::cuda::{From, RunLauncher};
use crate::{Engine, Error, Input, cpu, segments::side_by_side, sim::RunSimulator};

/// The runs of a reduction by key: the first key of each, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ByKey<K, V> {
    /// A key for each run, in the runs' order.
    pub keys: Vec<K>,
    /// As many results.
    pub values: Vec<V>,
}

/// Reduces runs of neighbours that have the same key, with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::by_key`]. Keys are any [`Plain`] data with `==`, or with an [`Equality`] of one's own; of floats that means that
/// zeros of both signs are the same and each NaN is a run of its own. The operator need not commute: values combine in the order
/// in which they stand. The index that it is told is the item's position in the array.
pub struct KeyReducer<K, Op: Monoid, E = Equal> {
    engine: Engine,
    op: Op,
    equality: E,
    place: Place,
    key: PhantomData<fn() -> K>,
}

impl<K, Op: Monoid, E: Clone> Clone for KeyReducer<K, Op, E> {
    fn clone(&self) -> Self {
        let (engine, equality, place) = (self.engine.clone(), self.equality.clone(), self.place.clone());
        KeyReducer { engine, op: self.op, equality, place, key: PhantomData }
    }
}

/// Where it runs, with what it needs there at hand.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Cpu,
    Sim(RunSimulator),
    #[cfg(feature = "cuda")]
    Cuda(RunLauncher),
}

impl<K, Op: Monoid, E> fmt::Debug for KeyReducer<K, Op, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, op) = (std::any::type_name::<K>(), std::any::type_name::<Op>());
        write!(f, "KeyReducer<{key}, {op}> on {}", self.engine.backend())
    }
}

impl<K: Plain, Op: Monoid, E: Equality<K>> KeyReducer<K, Op, E> {
    pub(crate) fn new(engine: Engine, op: Op, equality: E, place: Place) -> Self {
        KeyReducer { engine, op, equality, place, key: PhantomData }
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// Which keys are the same.
    pub fn equality(&self) -> &E {
        &self.equality
    }

    #[cfg(feature = "cuda")]
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Reduces each run of an array, and waits for the results.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`] if there are not as many keys as values, [`Error::HostMemory`]; [`Error::NeedsCuda`] for device
    /// memory on the host. On a GPU and in the simulator [`Error::GridTooLarge`], [`Error::BlockTooLarge`], [`Error::Simulator`], or
    /// what the driver says.
    pub fn reduce<I, V>(&self, keys: &I, values: &V) -> Result<ByKey<K, Op::Output>, Error>
    where
        I: Input<K> + ?Sized,
        V: Input<Op::Item> + ?Sized,
    {
        same_lengths(keys.source()?.count(), values.source()?.count())?;
        let (mut keys_copy, mut values_copy) = (Vec::new(), Vec::new());
        #[cfg(feature = "cuda")]
        if let Place::Cuda(launcher) = &self.place {
            let keys = placed(keys, &mut keys_copy)?;
            let values = placed(values, &mut values_copy)?;
            let op = Runs::new(self.equality, self.op);
            let checked = self.engine.check_device_bytes((keys.copied() + values.copied()) as u64);
            // SAFETY: borrowed until the call returns, which waits.
            let reduced = checked.and_then(|()| unsafe { launcher.reduce(op, keys, values, None) });
            if let (Err(Error::DeviceMemory { .. }), From::Host(keys), From::Host(values)) =
                (&reduced, keys, values)
            {
                // The same bits.
                let (keys, values) = cpu::runs::reduce(self.equality, self.op, keys, values, None)?;
                return Ok(ByKey { keys, values });
            }
            return reduced;
        }
        let keys = side_by_side(keys, &mut keys_copy)?;
        let values = side_by_side(values, &mut values_copy)?;
        match &self.place {
            Place::Cpu => {
                let (keys, values) = cpu::runs::reduce(self.equality, self.op, keys, values, None)?;
                Ok(ByKey { keys, values })
            }
            Place::Sim(simulator) => simulator.reduce(Runs::new(self.equality, self.op), keys, values, None),
            // Above.
            #[cfg(feature = "cuda")]
            Place::Cuda(_) => Ok(ByKey { keys: Vec::new(), values: Vec::new() }),
        }
    }
}
