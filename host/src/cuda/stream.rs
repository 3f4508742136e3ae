//! Streams of whoever made them.

use std::{marker::PhantomData, ptr};

use cust::{stream::Stream, sys::CUstream};

/// A borrowed stream: cust's (`&stream` converts), or any other as a raw handle.
#[derive(Clone, Copy, Debug)]
pub struct StreamRef<'a> {
    pub(crate) raw: CUstream,
    _stream: PhantomData<&'a Stream>,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for StreamRef<'_> {}
// SAFETY: as above.
unsafe impl Sync for StreamRef<'_> {}

impl<'a> StreamRef<'a> {
    /// A stream by its handle (a `CUstream`, which is also the runtime's `cudaStream_t`), from whichever CUDA library.
    ///
    /// # Safety
    ///
    /// The stream lives as long as `'a` and belongs to the context of the engine that it is used with. With drivers
    /// older than CUDA 12.0, also: it is not destroyed before work enqueued through this crate has finished, and the
    /// per-thread default stream (handle 2) is used from one thread only.
    pub const unsafe fn from_raw(raw: CUstream) -> Self {
        StreamRef { raw, _stream: PhantomData }
    }

    /// The context's default stream, which waits for all of its ordinary streams, as they wait for it.
    pub const fn default_stream() -> StreamRef<'static> {
        StreamRef { raw: ptr::null_mut(), _stream: PhantomData }
    }

    /// The handle.
    pub fn as_raw(&self) -> CUstream {
        self.raw
    }
}

impl<'a> From<&'a Stream> for StreamRef<'a> {
    fn from(stream: &'a Stream) -> Self {
        StreamRef { raw: stream.as_inner(), _stream: PhantomData }
    }
}
