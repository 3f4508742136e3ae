//! Simulated sorts of pairs.

use std::ptr;

use warpfold_gpu_kernels::{
    export::Export,
    sort::{Key, Payload, THREADS},
};
use warpfold_monoid::Plain;
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    Error,
    erased::bytes_of,
    plan::{
        DeviceFacts,
        sorts::{SortPlaces, SortPlan, firsts, gather},
    },
    segments::room,
};

/// The kernels that sort pairs, ready to be simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
}

impl SortSimulator {
    /// Of an export of sorts.
    pub(crate) fn new(options: SimOptions, export: &'static Export, facts: DeviceFacts) -> Self {
        SortSimulator { bodies: Bodies { options, export }, facts }
    }

    /// Sorts pairs by keys of a kind; without values, keys and their positions.
    pub(crate) fn sort<K: Key, V: Payload>(
        &self,
        kind: u32,
        keys: &[K],
        values: Option<&[V]>,
    ) -> Result<(Vec<K>, Vec<V>), Error> {
        let n = keys.len() as u64;
        if n == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let plan = SortPlan::new::<K, V>(n, &self.facts)?;
        let mut place = Room::filled(plan.bytes(), bytes_of(&0_u8))?;
        let mut counter = Room::filled(1, bytes_of(&0_u64))?;
        let mut records = Room::filled(plan.pairs, bytes_of(&[0_u64; 2]))?;
        let mut buffers = vec![
            place.buffer("room"),
            counter.buffer("counter"),
            records.buffer("records"),
            Buffer::read_only("keys", keys),
        ];
        buffers.extend(values.map(|values| Buffer::read_only("values", values)));
        let at = SortPlaces {
            keys: keys.as_ptr().expose_provenance(),
            values: values.map_or(0, |values| values.as_ptr().expose_provenance()),
            room: place.address(),
            counter: counter.address(),
            records: records.address(),
            capacity: plan.pairs,
        };
        let options = self.bodies.options(buffers);
        let launch = |kernel, grid, pass| {
            let params = plan.params::<K, V>(&at, kind, pass);
            let name = Name { kernel, grid, block: THREADS, n };
            // SAFETY: the parameters of these kernels; the plan gives them what their documentation asks for.
            unsafe { self.bodies.launch(&name, &options, ptr::from_ref(&params).cast()) }
        };
        for (kernel, grid, pass) in plan.launches() {
            launch(kernel, grid, pass)?;
        }
        let (sorted_keys, sorted_values) = plan.sorted();
        let (mut keys, mut values) = (room::<K>(n)?, room::<V>(n)?);
        let first = ptr::with_exposed_provenance::<u8>(at.room);
        // SAFETY: as many of each lie there, in the room, aligned to more than they are.
        unsafe {
            first.add(sorted_keys as usize).cast::<K>().copy_to_nonoverlapping(keys.as_mut_ptr(), n as usize);
            first
                .add(sorted_values as usize)
                .cast::<V>()
                .copy_to_nonoverlapping(values.as_mut_ptr(), n as usize);
        }
        Ok((keys, values))
    }

    /// Items in an order.
    pub(crate) fn gather<T: Plain>(&self, items: &[T], index: &[u32]) -> Result<Vec<T>, Error> {
        let n = index.len() as u64;
        let mut gathered = room::<T>(n)?;
        if n == 0 || size_of::<T>() == 0 {
            return Ok(gathered);
        }
        let options = self.bodies.options(vec![
            Buffer::read_only("items", items),
            Buffer::read_only("index", index),
            Buffer::writable("gathered", &mut gathered),
        ]);
        let at = (
            items.as_ptr().expose_provenance(),
            index.as_ptr().expose_provenance(),
            gathered.as_mut_ptr().expose_provenance(),
        );
        let (params, grid) = gather((size_of::<T>(), align_of::<T>()), n, at);
        let name = Name { kernel: "gather", grid, block: THREADS, n };
        // SAFETY: the parameters of this kernel, with what its documentation asks for.
        unsafe { self.bodies.launch(&name, &options, ptr::from_ref(&params).cast())? };
        Ok(gathered)
    }

    /// The position that stands first of each group.
    pub(crate) fn firsts<K: Key>(
        &self,
        kind: u32,
        (keys, index): (&[K], &[u32]),
        groups: &[K],
    ) -> Result<Vec<u32>, Error> {
        let mut first = room::<u32>(groups.len() as u64)?;
        if groups.is_empty() {
            return Ok(first);
        }
        let options = self.bodies.options(vec![
            Buffer::read_only("keys", keys),
            Buffer::read_only("index", index),
            Buffer::read_only("groups", groups),
            Buffer::writable("firsts", &mut first),
        ]);
        let n = keys.len() as u64;
        let (params, grid) = firsts::<K>(
            (keys.as_ptr().expose_provenance(), index.as_ptr().expose_provenance(), n),
            (groups.as_ptr().expose_provenance(), groups.len() as u64),
            first.as_mut_ptr().expose_provenance(),
            kind,
        );
        let name = Name { kernel: "firsts", grid, block: THREADS, n };
        // SAFETY: the parameters of this kernel, with what its documentation asks for.
        unsafe { self.bodies.launch(&name, &options, ptr::from_ref(&params).cast())? };
        Ok(first)
    }
}
