//! Positions in the order of keys.

use super::group_by::{GroupInput, GroupKey, GroupKeys, PlainKeys, RunKey, grouped, space};
#[cfg(feature = "cuda")]
use crate::cuda::From;
use crate::{Engine, Error};

impl Engine {
    /// The positions of keys in the order of the keys, those of equal keys in their own: a stable sort of positions.
    ///
    /// With it values are brought side by side that belong together, to be reduced as [segments](Engine::segments), each with the bits
    /// of its items alone, by any number of operators; [`group_by`](Engine::group_by) does it for one, in one go.
    ///
    /// On a GPU and in the simulator integers, `bool`, `char` and floats of up to 8 bytes are sorted there; other keys, and those of
    /// the CPU, by the host. It takes no operator's kernels.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if no [sorts](warpfold_gpu_kernels::sort_kernels) are loaded, [`Error::TooManyToSort`] from 2^32 keys on,
    /// both not on the CPU; [`Error::NeedsCuda`] for device memory on the host, [`Error::HostMemory`], [`Error::Simulator`], or what the
    /// driver says.
    ///
    /// ```
    /// use warpfold_host::Engine;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// assert_eq!(Engine::cpu().order(&[2.5, -1.0, 2.5, 0.0])?, [1, 3, 0, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn order<I: GroupInput + ?Sized>(&self, keys: &I) -> Result<Vec<u64>, Error> {
        let keys = match keys.group_keys() {
            GroupKeys::Host(keys) => keys,
            #[cfg(feature = "cuda")]
            GroupKeys::Device { address, len, kind } => {
                return if I::Key::LONG {
                    self.ordered_there(kind, From::<u64>::Device(address, len))
                } else {
                    self.ordered_there(kind, From::<u32>::Device(address, len))
                };
            }
            #[cfg(not(feature = "cuda"))]
            GroupKeys::Device { .. } => return Err(Error::NeedsCuda { what: "device memory" }),
        };
        let plain = if self.sorts() { GroupKey::plain(keys) } else { None };
        let ordered = match plain {
            None => None,
            Some(PlainKeys::Words(keys, kind)) => Some(self.ordered(kind, &keys[..])),
            Some(PlainKeys::Longs(keys, kind)) => Some(self.ordered(kind, &keys[..])),
        };
        match ordered {
            // More than fits into the device's memory is sorted here too.
            None | Some(Err(Error::DeviceMemory { .. })) => {
                let mut groups = grouped(keys)?;
                groups.sort(keys);
                widened(&groups.order()?, |place| place as u64)
            }
            Some(ordered) => ordered,
        }
    }

    fn ordered<B: RunKey>(&self, kind: u32, keys: &[B]) -> Result<Vec<u64>, Error> {
        #[cfg(feature = "cuda")]
        if self.gpu("sorting on a device").is_ok() {
            return self.ordered_there(kind, From::Host(keys));
        }
        let (_, positions) = self.sort_simulator::<B, u32>()?.sort::<B, u32>(kind, keys, None)?;
        widened(&positions, u64::from)
    }

    #[cfg(feature = "cuda")]
    fn ordered_there<B: RunKey>(&self, kind: u32, keys: From<'_, B>) -> Result<Vec<u64>, Error> {
        self.check_device_bytes(keys.copied() as u64)?;
        // SAFETY: borrowed until the call returns, which waits.
        widened(&unsafe { self.sort_launcher::<B, u32>()?.order(kind, keys)? }, u64::from)
    }
}

fn widened<T: Copy>(positions: &[T], widen: impl Fn(T) -> u64) -> Result<Vec<u64>, Error> {
    let mut wide = space(positions.len())?;
    wide.extend(positions.iter().map(|&position| widen(position)));
    Ok(wide)
}
