//! Enqueued reductions whose inputs and outputs stay borrowed until they are done.

use std::marker::PhantomData;

use cust::sys::CUstream;
use warpfold_monoid::Monoid;

use super::{
    DeviceInput, DeviceOutput, StreamRef,
    driver::{self, Doing},
    gpu::Gpu,
};
use crate::{Engine, Error, Reducer, erased::Erased};

/// Enqueues reductions on one stream: see [`Engine::scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    stream: CUstream,
    // Invariant in both, as for threads: neither may shrink or grow.
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Enqueues a reduction; the result is in the first item of `output` after the scope.
    ///
    /// # Errors
    ///
    /// As for [`Reducer::reduce_into`], and [`Error::NotDeviceMemory`] or [`Error::OtherDevice`] for memory that the
    /// reducer's device does not have.
    pub fn reduce_into<Op, I, O>(
        &'scope self,
        reducer: &Reducer<Op>,
        input: &'scope I,
        output: &'scope mut O,
    ) -> Result<(), Error>
    where
        Op: Monoid,
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let output = output.device_view_mut();
        if output.is_empty() {
            return Err(Error::NoRoomForResult);
        }
        // SAFETY: input and output are borrowed for the scope, which waits for the stream before it ends; the address
        // and length are those of the output.
        unsafe {
            let input = input.device_view();
            let op = Erased::of(reducer.operator());
            let input = (input.address, input.len);
            reducer.launcher()?.enqueue_checked(op, input, output.address, self.stream)
        }
    }
}

/// Waits for a stream, also if the closure panics.
struct Wait<'a> {
    gpu: &'a Gpu,
    stream: CUstream,
    done: bool,
}

impl Wait<'_> {
    fn wait(&mut self) -> Result<(), Error> {
        self.done = true;
        let _current = self.gpu.context.enter_or_error()?;
        // SAFETY: a live stream. An error here means that the driver has given up the work.
        unsafe { driver::cuStreamSynchronize(self.stream) }.doing(|| "waiting for the work of a scope")
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The panic goes on; there is nobody to tell.
            let _ = self.wait();
        }
    }
}

impl Engine {
    /// Enqueues reductions on a stream and waits for them: the safe way to have several in flight.
    ///
    /// Like [`std::thread::scope`], it borrows what the work uses until the work is done, also if the closure panics.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] on the CPU, [`Error::Capturing`] for a stream that is being captured (whose work does not
    /// run now, and cannot be waited for), or the driver's error in the work.
    ///
    /// ```no_run
    /// use cust::stream::{Stream, StreamFlags};
    /// use warpfold_host::{Engine, cuda::DeviceArray};
    /// use warpfold_monoid::{Max, Sum};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::cuda(0)?;
    /// let (sum, max) = (engine.reducer(Sum::<f32>::new())?, engine.reducer(Max::<f32>::new())?);
    /// let values = DeviceArray::from_slice(&engine, &[1.0f32, 2.0])?;
    /// let mut total = DeviceArray::from_slice(&engine, &[0.0f32])?;
    /// let mut greatest = DeviceArray::from_slice(&engine, &[0.0f32])?;
    /// let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    /// engine.scope(&stream, |scope| {
    ///     scope.reduce_into(&sum, &values, &mut total)?;
    ///     scope.reduce_into(&max, &values, &mut greatest)
    /// })??;
    /// assert_eq!((total.to_vec()?, greatest.to_vec()?), (vec![3.0], vec![2.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// What the work uses cannot be touched before the scope ends:
    ///
    /// ```compile_fail,E0502
    /// # use warpfold_host::{Engine, Error, cuda::{DeviceArray, StreamRef}};
    /// # use warpfold_monoid::Sum;
    /// # fn main() -> Result<(), Error> {
    /// # let engine = Engine::cuda(0)?;
    /// # let sum = engine.reducer(Sum::<f32>::new())?;
    /// # let values = DeviceArray::from_slice(&engine, &[1.0f32, 2.0])?;
    /// # let mut total = DeviceArray::from_slice(&engine, &[0.0f32])?;
    /// engine.scope(StreamRef::default_stream(), |scope| {
    ///     scope.reduce_into(&sum, &values, &mut total)?;
    ///     total.to_vec()
    /// })??;
    /// # Ok(())
    /// # }
    /// ```
    pub fn scope<'env, F, R>(&self, stream: impl Into<StreamRef<'env>>, f: F) -> Result<R, Error>
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    {
        let gpu = self.gpu("a scope")?;
        let stream = stream.into().raw;
        {
            let _current = gpu.context.enter_or_error()?;
            // SAFETY: a live stream; the context is current.
            if unsafe { gpu.context.is_capturing(stream)? } {
                return Err(Error::Capturing);
            }
        }
        let mut wait = Wait { gpu, stream, done: false };
        let scope = Scope { stream, _scope: PhantomData, _env: PhantomData };
        let result = f(&scope);
        wait.wait()?;
        Ok(result)
    }
}
