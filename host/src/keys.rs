//! Reductions by tag, by key and by group: many results of one array, each of the items that an array beside it names.
//!
//! - [by tag](TagReducer): `tags[i]` is the number of the result that item `i` belongs to, in any order;
//! - [by key](KeyReducer): neighbours whose keys are the same are a run, and each run has a result;
//! - [group by](GroupReducer): items whose keys are equal belong together wherever they stand.
//!
//! **Bits depend on the data, the number of tags and the operator alone** ([`warpfold_monoid::keyed`] says in which order values
//! combine), not on the backend, the launch or its timing, unless the operator gives them up ([`Fast`](warpfold_monoid::Fast), by tag). The index that an operator is told of an item is its position in the
//! array, in a group-by that as it is given.
//!
//! ```
//! use warpfold_host::Engine;
//! use warpfold_monoid::{Max, Sum};
//!
//! # fn main() -> Result<(), warpfold_host::Error> {
//! let engine = Engine::cpu();
//! let values = [1.0f32, 2.0, 4.0, 8.0, 16.0];
//! assert_eq!(engine.by_tag(Sum::<f32>::new(), 3)?.reduce(&[0u8, 2, 0, 2, 2], &values)?, [5.0, 0.0, 26.0]);
//! let runs = engine.by_key(Sum::<f32>::new())?.reduce(&[7i64, 7, 3, 7, 7], &values)?;
//! assert_eq!((runs.keys, runs.values), (vec![7, 3, 7], vec![3.0, 4.0, 24.0]));
//! let names = ["b", "a", "b", "b", "a"];
//! let groups = engine.group_by(Max::<f32>::new())?.sorted().reduce(&names, &values)?;
//! assert_eq!((groups.keys, groups.values), (vec!["a", "b"], vec![16.0, 8.0]));
//! # Ok(())
//! # }
//! ```

mod by_key;
mod by_tag;
#[cfg(feature = "cuda")]
mod device;
pub(crate) mod group_by;
mod order;

pub(crate) use by_key::Place as KeyPlace;
pub use by_key::{ByKey, KeyReducer};
pub(crate) use by_tag::Place as TagPlace;
pub(crate) use by_tag::same_lengths;
pub use by_tag::{Tag, TagReducer};
pub use group_by::{DeviceKey, GroupInput, GroupKey, GroupReducer, Groups};
pub(crate) use group_by::{RunKey, Travels};
pub use warpfold_monoid::keyed::{Equal, Equality};
