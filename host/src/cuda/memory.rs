//! Device memory: owned, borrowed, and that of cust.

use std::{
    ffi::c_void,
    fmt,
    marker::PhantomData,
    mem::MaybeUninit,
    ops::{Bound, RangeBounds},
    ptr,
    sync::Arc,
};

use cust::{
    memory::{DeviceBox, DeviceBuffer, DeviceCopy, DeviceSlice},
    sys::CUdeviceptr,
};
use warpfold_monoid::Plain;

use super::{
    context::{Context, apart_from_captures},
    driver::{self, Doing},
};
use crate::{Engine, Error, Input, Source};

/// Bytes on a device, freed when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) address: CUdeviceptr,
    pub(crate) bytes: usize,
    context: Arc<Context>,
}

impl Memory {
    /// Allocates, uninitialised. No bytes give the null address.
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Memory, Error> {
        let mut address = 0;
        if bytes > 0 {
            let _current = context.enter_or_error()?;
            // SAFETY: a valid place for the answer; the context is current.
            apart_from_captures(|| unsafe { driver::cuMemAlloc_v2(&mut address, bytes) }).map_err(
                |failure| {
                    let (mut free, mut total) = (0, 0);
                    // SAFETY: valid places for the answers. If they stay 0, so does what the error says.
                    let _ = unsafe { driver::cuMemGetInfo_v2(&mut free, &mut total) };
                    match failure.code {
                        driver::OUT_OF_MEMORY => Error::DeviceMemory {
                            needed: bytes as u64,
                            free: free as u64,
                            total: total as u64,
                        },
                        _ => failure.doing(format!("allocating {bytes} bytes of device memory")),
                    }
                },
            )?;
        }
        Ok(Memory { address, bytes, context: context.clone() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0
            && let Ok(_current) = self.context.enter()
        {
            // SAFETY: our own allocation, not used after. A failure means that the context is gone, and it with it.
            let _ = apart_from_captures(|| unsafe { driver::cuMemFree_v2(self.address) });
        }
    }
}

/// An array in the memory of an engine's device, of any [`Plain`] type.
///
/// cust's own `DeviceBuffer` serves as well, but only for types that implement cust's `DeviceCopy`.
///
/// ```no_run
/// use warpfold_host::{Engine, cuda::DeviceArray};
/// use warpfold_monoid::Sum;
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// let engine = Engine::cuda(0)?;
/// let values = DeviceArray::from_slice(&engine, &[1.0f32, 2.0])?;
/// assert_eq!(engine.reducer(Sum::<f32>::new())?.reduce(&values)?, 3.0);
/// # Ok(())
/// # }
/// ```
pub struct DeviceArray<T: Plain> {
    memory: Memory,
    len: usize,
    _items: PhantomData<T>,
}

impl<T: Plain> fmt::Debug for DeviceArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DeviceArray<{}>({} items at {:#x})",
            std::any::type_name::<T>(),
            self.len,
            self.memory.address
        )
    }
}

impl<T: Plain> DeviceArray<T> {
    /// Allocates `len` items.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] on the CPU, [`Error::DeviceMemory`] if there is not enough.
    ///
    /// # Safety
    ///
    /// The items are uninitialised: write them, by a copy or on the device, before anything reads them.
    pub unsafe fn uninit(engine: &Engine, len: usize) -> Result<Self, Error> {
        DeviceArray::allocate(&engine.gpu("a device array")?.context, len)
    }

    pub(crate) fn allocate(context: &Arc<Context>, len: usize) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Error::DeviceMemory {
            needed: u64::MAX,
            free: 0,
            total: context.info.memory_bytes,
        })?;
        Ok(DeviceArray { memory: Memory::new(context, bytes)?, len, _items: PhantomData })
    }

    /// Copies a slice to the engine's device, and waits for the copy.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] on the CPU, [`Error::DeviceMemory`] if there is not enough.
    pub fn from_slice(engine: &Engine, items: &[T]) -> Result<Self, Error> {
        DeviceArray::copied(&engine.gpu("a device array")?.context, items)
    }

    pub(crate) fn copied(context: &Arc<Context>, items: &[T]) -> Result<Self, Error> {
        let mut array = DeviceArray::allocate(context, items.len())?;
        array.copy_from_slice(items)?;
        Ok(array)
    }

    /// Items in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// Replaces the items by those of a slice of the same length, and waits for the copy.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], or what the driver says.
    pub fn copy_from_slice(&mut self, items: &[T]) -> Result<(), Error> {
        self.same_len(items.len())?;
        let bytes = size_of_val(items);
        if bytes == 0 {
            return Ok(());
        }
        let context = &self.memory.context;
        let _current = context.enter_or_error()?;
        // SAFETY: both sides have that many bytes; plain data. The copy is waited for before the slice is let go.
        unsafe {
            let copied =
                driver::cuMemcpyHtoDAsync_v2(self.memory.address, items.as_ptr().cast(), bytes, context.io());
            let waited = context.synchronize(context.io(), || format!("copying {bytes} bytes to the device"));
            copied.doing(|| format!("copying {bytes} bytes to the device"))?;
            waited
        }
    }

    /// Copies the items to the host, after what was enqueued on the context's default stream; work on other streams
    /// that writes to the array has to be waited for before.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut items = Vec::with_capacity(self.len);
        self.download(&mut items.spare_capacity_mut()[..self.len])?;
        // SAFETY: all of them were just written.
        unsafe { items.set_len(self.len) };
        Ok(items)
    }

    /// Copies the items into a slice of the same length; else as [`to_vec`](DeviceArray::to_vec).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], or what the driver says.
    pub fn copy_to_slice(&self, items: &mut [T]) -> Result<(), Error> {
        self.same_len(items.len())?;
        // SAFETY: initialised data is also maybe-uninitialised data, and nothing uninitialised is written to it.
        self.download(unsafe { &mut *(ptr::from_mut(items) as *mut [MaybeUninit<T>]) })
    }

    /// Overwrites all of `to`, which has the array's length, unless it fails.
    fn download(&self, to: &mut [MaybeUninit<T>]) -> Result<(), Error> {
        let bytes = size_of_val(to);
        if bytes == 0 {
            return Ok(());
        }
        let context = &self.memory.context;
        let _current = context.enter_or_error()?;
        let doing = || format!("copying {bytes} bytes from the device");
        // SAFETY: both sides have that many bytes. The copy is waited for before the slice is let go.
        unsafe {
            let to = to.as_mut_ptr().cast::<c_void>();
            let copied = driver::cuMemcpyDtoHAsync_v2(to, self.memory.address, bytes, context.io());
            let waited = context.synchronize(context.io(), doing);
            copied.doing(doing)?;
            waited
        }
    }

    fn same_len(&self, other: usize) -> Result<(), Error> {
        if other == self.len {
            Ok(())
        } else {
            Err(Error::LengthMismatch { expected: self.len as u64, found: other as u64 })
        }
    }

    /// The whole array, borrowed.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView { address: self.memory.address, len: self.len as u64, _items: PhantomData }
    }

    /// The whole array, borrowed to be written.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut { address: self.memory.address, len: self.len as u64, _items: PhantomData }
    }
}

/// Borrowed device memory to read from.
pub struct DeviceView<'a, T> {
    pub(crate) address: CUdeviceptr,
    pub(crate) len: u64,
    _items: PhantomData<&'a [T]>,
}

impl<T> Clone for DeviceView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceView<'_, T> {}

impl<T> fmt::Debug for DeviceView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceView<{}>({} items at {:#x})", std::any::type_name::<T>(), self.len, self.address)
    }
}

impl<'a, T: Plain> DeviceView<'a, T> {
    /// `len` items at a device address, from whichever CUDA library.
    ///
    /// # Safety
    ///
    /// For as long as `'a`, the address is that of `len` initialised items that the engine's device can read, aligned
    /// to the item, and nothing writes to them while they are read.
    pub const unsafe fn from_raw(address: u64, len: u64) -> Self {
        DeviceView { address, len, _items: PhantomData }
    }

    /// Items in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The items of a range.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] if the range ends behind the view's end.
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<DeviceView<'a, T>, Error> {
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.len),
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.len => Ok(DeviceView {
                address: self.address + start * size_of::<T>() as u64,
                len: end - start,
                _items: PhantomData,
            }),
            _ => Err(Error::OutOfRange {
                start: start.unwrap_or(u64::MAX),
                end: end.unwrap_or(u64::MAX),
                len: self.len,
            }),
        }
    }
}

/// Borrowed device memory to write to.
pub struct DeviceViewMut<'a, T> {
    pub(crate) address: CUdeviceptr,
    pub(crate) len: u64,
    _items: PhantomData<&'a mut [T]>,
}

impl<T> fmt::Debug for DeviceViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceViewMut<{}>({} items at {:#x})", std::any::type_name::<T>(), self.len, self.address)
    }
}

impl<T: Plain> DeviceViewMut<'_, T> {
    /// `len` items at a device address, from whichever CUDA library.
    ///
    /// # Safety
    ///
    /// For as long as the view lives, the address is that of `len` items that the engine's device can write, aligned
    /// to the item, and nothing else uses them.
    pub const unsafe fn from_raw(address: u64, len: u64) -> Self {
        DeviceViewMut { address, len, _items: PhantomData }
    }

    /// Items in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }
}

// SAFETY: a view is a borrow of plain data; an address may travel.
unsafe impl<T: Sync> Send for DeviceView<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for DeviceView<'_, T> {}

/// Device memory that a reduction reads: [`DeviceArray`], [`DeviceView`], cust's `DeviceBuffer`, `DeviceSlice`,
/// `DeviceBox`.
pub trait DeviceInput<T: Plain> {
    /// The memory.
    fn device_view(&self) -> DeviceView<'_, T>;
}

/// Device memory that receives a result in its first item: [`DeviceArray`], [`DeviceViewMut`], cust's `DeviceBuffer`,
/// `DeviceSlice`, `DeviceBox`.
pub trait DeviceOutput<T: Plain> {
    /// The memory.
    fn device_view_mut(&mut self) -> DeviceViewMut<'_, T>;
}

impl<T: Plain> DeviceInput<T> for DeviceArray<T> {
    fn device_view(&self) -> DeviceView<'_, T> {
        self.view()
    }
}

impl<T: Plain> DeviceOutput<T> for DeviceArray<T> {
    fn device_view_mut(&mut self) -> DeviceViewMut<'_, T> {
        self.view_mut()
    }
}

impl<T: Plain> Input<T> for DeviceArray<T> {
    fn source(&self) -> Result<Source<'_, T>, Error> {
        Ok(Source::Device(self.view()))
    }
}

impl<T: Plain> DeviceInput<T> for DeviceView<'_, T> {
    fn device_view(&self) -> DeviceView<'_, T> {
        *self
    }
}

impl<T: Plain> Input<T> for DeviceView<'_, T> {
    fn source(&self) -> Result<Source<'_, T>, Error> {
        Ok(Source::Device(*self))
    }
}

impl<T: Plain> DeviceOutput<T> for DeviceViewMut<'_, T> {
    fn device_view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut { address: self.address, len: self.len, _items: PhantomData }
    }
}

macro_rules! cust_memory {
    ($($type:ident, $len:expr;)*) => {$(
        impl<T: Plain + DeviceCopy> DeviceInput<T> for $type<T> {
            fn device_view(&self) -> DeviceView<'_, T> {
                let len: fn(&$type<T>) -> usize = $len;
                DeviceView { address: self.as_device_ptr().as_raw(), len: len(self) as u64, _items: PhantomData }
            }
        }

        impl<T: Plain + DeviceCopy> DeviceOutput<T> for $type<T> {
            fn device_view_mut(&mut self) -> DeviceViewMut<'_, T> {
                let len: fn(&$type<T>) -> usize = $len;
                DeviceViewMut { address: self.as_device_ptr().as_raw(), len: len(self) as u64, _items: PhantomData }
            }
        }

        impl<T: Plain + DeviceCopy> Input<T> for $type<T> {
            fn source(&self) -> Result<Source<'_, T>, Error> {
                Ok(Source::Device(self.device_view()))
            }
        }
    )*};
}

cust_memory! {
    DeviceSlice, |slice| slice.len();
    DeviceBuffer, |buffer| buffer.len();
    DeviceBox, |_| 1;
}
