//! Long arrays that are sent to the device piece by piece, and folded there meanwhile.
//!
//! A window is device memory for some of the array's chunks. One stream copies to the windows in turn, through pinned buffers;
//! each window has a stream of its own whose kernels fold what is there, several at once where a window is a single chunk,
//! which is one block's work. The copies wait for a window's kernel before they fill it again. Whichever block of whichever
//! launch is the last folds the chunks' values.

use std::{
    fmt,
    mem::{self, MaybeUninit},
    ptr,
    sync::Arc,
};

use cust::sys::CUstream;
use warpfold_gpu_kernels::device::{FINISH, Part};
use warpfold_monoid::tree::Shape;

use super::{
    Launcher,
    context::{Context, apart_from_captures},
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    memory::Memory,
    transfer::{Event, Pieces, Ring},
};
use crate::{
    Error,
    erased::{ArrayHead, Erased, NOTHING},
    plan::{Strategy, partials_offset},
};

/// Bytes of a pinned buffer: many, since each is filled by threads that have to be woken.
const SLOT_BYTES: usize = 32 << 20;

/// Bytes of a window, if chunks are no larger.
const WINDOW_BYTES: u64 = 32 << 20;

/// Windows, if there is room for them.
const WINDOWS: u64 = 4;

/// Device memory for windows that is kept for the next array.
const KEPT_BYTES: u64 = WINDOWS * WINDOW_BYTES;

/// Device memory for some chunks.
struct Window {
    memory: Memory,
    stream: CUstream,
    /// The copies to it.
    filled: Event,
    /// The kernel that reads it.
    folded: Event,
}

/// What arrays are sent through.
pub(crate) struct Pump {
    ring: Ring,
    windows: Vec<Window>,
    copies: CUstream,
    context: Arc<Context>,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Pump {}

impl Pump {
    /// With so many windows of so many bytes each. The context is current.
    fn new(context: &Arc<Context>, windows: u64, bytes: u64) -> Result<Pump, Error> {
        let ring = Ring::new(context, SLOT_BYTES, false);
        let copies = context.new_stream()?;
        let mut pump = Pump { ring, windows: Vec::new(), copies, context: context.clone() };
        for _ in 0..windows {
            let memory = Memory::new(context, bytes as usize)?;
            let (filled, folded) = (Event::new(context)?, Event::new(context)?);
            pump.windows.push(Window { memory, stream: context.new_stream()?, filled, folded });
        }
        Ok(pump)
    }

    /// Does it serve for so many windows of so many bytes?
    fn serves(&self, windows: u64, bytes: u64) -> bool {
        self.windows.len() as u64 == windows && self.windows.iter().all(|w| w.memory.bytes as u64 >= bytes)
    }

    /// Bytes of its windows.
    fn bytes(&self) -> u64 {
        self.windows.iter().map(|window| window.memory.bytes as u64).sum()
    }

    /// Waits for all that it has been given. The context is current.
    fn wait(&self) -> Result<(), Error> {
        let mut result = Ok(());
        // All of them, also after an error.
        for stream in self.windows.iter().map(|window| window.stream).chain([self.copies]) {
            // SAFETY: our own streams.
            let waited =
                unsafe { self.context.synchronize(stream, || "waiting for an array's chunks".into()) };
            result = result.and(waited);
        }
        result
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        let _ = self.wait();
        for stream in self.windows.iter().map(|window| window.stream).chain([self.copies]) {
            // SAFETY: our own stream, waited for, not used after. A failure leaves nothing to do.
            let _ = apart_from_captures(|| unsafe { driver::cuStreamDestroy_v2(stream) });
        }
    }
}

/// A long array on its way.
pub(crate) struct CudaArray {
    // Dropped first: it waits for what uses the rest.
    pump: Pump,
    loaded: Arc<Loaded>,
    shape: Shape,
    item_bytes: usize,
    /// The ticket, the output, and the chunks' values.
    state: Memory,
    output: u64,
    partials: u64,
    /// Items that fill a window.
    window_items: u64,
    /// The window that is being filled, items sent there, and items in the current buffer.
    window: usize,
    sent: u64,
    waiting: u64,
    /// Chunks before the window's.
    chunks: u64,
    gpu: Arc<Gpu>,
}

impl fmt::Debug for CudaArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaArray").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// How many windows, and of how many chunks each, within so many bytes of device memory.
fn windows(chunk_bytes: u64, limit: u64) -> Result<(u64, u64), Error> {
    let wanted = (WINDOW_BYTES / chunk_bytes).max(1);
    for windows in [WINDOWS, 2] {
        let fit = limit / windows / chunk_bytes.max(1);
        if fit > 0 {
            return Ok((windows, wanted.min(fit)));
        }
    }
    Err(Error::DeviceMemory { needed: 2 * chunk_bytes, free: limit, total: limit })
}

impl CudaArray {
    /// A long array of that shape. Windows take no more device memory than the launcher may use.
    pub(crate) fn new(launcher: &Launcher, op: Erased<'_>, shape: Shape) -> Result<CudaArray, Error> {
        let (gpu, layout) = (&launcher.gpu, op.types.layout);
        let plan = launcher.plan(shape.n, layout)?;
        debug_assert_eq!(plan.strategy, Strategy::LongChunks);
        let chunk_bytes = shape.chunk.saturating_mul(layout.item_bytes as u64);
        let (count, chunks) = windows(chunk_bytes, launcher.device_bytes.unwrap_or(u64::MAX))?;
        let bytes = chunks * chunk_bytes;
        let context = &gpu.context;
        let _current = context.enter_or_error()?;
        let pump = match gpu.take_pump(|pump| pump.serves(count, bytes)) {
            Some(pump) => pump,
            None => Pump::new(context, count, bytes)?,
        };
        let output = partials_offset(layout.acc_align);
        let partials = output + (op.types.output_bytes as u64).next_multiple_of(16);
        let state = Memory::new(context, (partials + shape.chunks * layout.acc_bytes as u64) as usize)?;
        // SAFETY: our own memory, and stream, which is waited for.
        unsafe {
            driver::cuMemsetD8Async(state.address, 0, 4, pump.copies).doing(|| "zeroing a ticket")?;
        }
        Ok(CudaArray {
            pump,
            loaded: launcher.loaded.clone(),
            shape,
            item_bytes: layout.item_bytes,
            output: state.address + output,
            partials: state.address + partials,
            state,
            window_items: chunks * shape.chunk,
            window: 0,
            sent: 0,
            waiting: 0,
            chunks: 0,
            gpu: gpu.clone(),
        })
    }

    /// Takes in the next items, no more than there are to come, of which so many lie side by side each.
    ///
    /// # Safety
    ///
    /// They are readable items of the operator, which is the array's.
    pub(crate) unsafe fn push(&mut self, op: Erased<'_>, items: &[(*const u8, u64)]) -> Result<(), Error> {
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        let size = self.item_bytes;
        let slot_items = (SLOT_BYTES / size.max(1)).max(1) as u64;
        let mut pieces = Pieces::new(items, size);
        while !pieces.is_empty() {
            let room = slot_items - self.waiting;
            let (here, count) = pieces.take(room);
            let at = self.waiting as usize * size;
            let slot = match self.waiting {
                0 => Some(self.pump.ring.slot()?),
                _ => self.pump.ring.current(),
            };
            if let Some(slot) = slot {
                // SAFETY: the caller's promise; the buffer's last copy has been waited for.
                unsafe { slot.pinned.fill(at, &here) };
            }
            self.waiting += count;
            if count == room {
                self.send(op)?;
            }
        }
        Ok(())
    }

    /// Sends what waits, and folds the windows that it fills. The context is current.
    fn send(&mut self, op: Erased<'_>) -> Result<(), Error> {
        let count = mem::take(&mut self.waiting);
        let size = self.item_bytes;
        let mut done = 0;
        while done < count {
            let window = &self.pump.windows[self.window];
            let here = (count - done).min(self.window_items - self.sent);
            if let Some(slot) = self.pump.ring.current() {
                let to = window.memory.address + self.sent * size as u64;
                // SAFETY: filled; the window has room, and is free when what read it before is done.
                unsafe {
                    if self.sent == 0 {
                        window.folded.hold(self.pump.copies)?;
                    }
                    slot.pinned.send(done as usize * size, here as usize * size, to, self.pump.copies)?;
                }
            }
            self.sent += here;
            done += here;
            if self.sent == self.window_items {
                self.fold(op)?;
            }
        }
        if let Some(slot) = self.pump.ring.current() {
            // SAFETY: our own stream; the context is current.
            unsafe { slot.sent.record(self.pump.copies)? };
        }
        self.pump.ring.next();
        Ok(())
    }

    /// Folds the window's chunks, and goes on to the next window. The context is current.
    fn fold(&mut self, op: Erased<'_>) -> Result<(), Error> {
        let n = mem::take(&mut self.sent);
        let window = &self.pump.windows[self.window];
        let count = n.div_ceil(self.shape.chunk);
        let params = op.params(ArrayHead {
            input: ptr::with_exposed_provenance(window.memory.address as usize),
            n,
            output: ptr::with_exposed_provenance_mut(self.output as usize),
            partials: ptr::with_exposed_provenance_mut(self.partials as usize),
            ticket: ptr::with_exposed_provenance_mut(self.state.address as usize),
            chunk: self.shape.chunk,
            chunks: self.shape.chunks as u32,
            groups: self.shape.groups,
            part: Part {
                base: self.chunks * self.shape.chunk,
                table: ptr::null(),
                first: self.chunks as u32,
                end: FINISH,
            },
            op: NOTHING,
        });
        let over = || format!(" over {n} of {} items", self.shape.n);
        let launch = (count as u32, self.shape.groups);
        // SAFETY: the parameters of this operator's kernel, which point to what it asks for: items that have been copied when
        // the window's stream goes on, and a state that belongs to this array's launches, zeroed before the first copy.
        unsafe {
            window.filled.record(self.pump.copies)?;
            window.filled.hold(window.stream)?;
            let kernel = Strategy::LongChunks.kernel();
            self.loaded.launch(kernel, launch, params.as_ptr(), window.stream, false, over)?;
            window.folded.record(window.stream)?;
        }
        self.chunks += count;
        self.window = (self.window + 1) % self.pump.windows.len();
        Ok(())
    }

    /// Waits for the result of all items, which have come.
    ///
    /// # Safety
    ///
    /// `output` is an output's place. It is written unless there is an error.
    pub(crate) unsafe fn finish(
        mut self,
        op: Erased<'_>,
        output: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        if self.waiting > 0 {
            self.send(op)?;
        }
        if self.sent > 0 {
            self.fold(op)?;
        }
        self.pump.wait()?;
        if !output.is_empty() {
            let io = gpu.context.io();
            let doing = || "reading an array's result".to_owned();
            // SAFETY: written by the last block; waited for below.
            let copied = unsafe {
                driver::cuMemcpyDtoHAsync_v2(output.as_mut_ptr().cast(), self.output, output.len(), io)
            };
            // SAFETY: our own stream; the context is current.
            let waited = unsafe { gpu.context.synchronize(io, doing) };
            copied.doing(doing)?;
            waited?;
        }
        if self.pump.bytes() <= KEPT_BYTES {
            self.gpu.keep_pump(self.pump);
        }
        Ok(())
    }
}
