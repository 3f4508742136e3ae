//! What the sections share: the GPU, its memory, kernels, times, reports.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    error::Error,
    ffi::{CStr, CString, c_char, c_void},
    fmt::Display,
    fs,
    marker::PhantomData,
    path::Path,
    ptr,
};

use cust::sys::{self, CUevent, CUfunction, CUmodule, CUresult, CUstream};
use warpfold_monoid::Plain;

/// A failure, in words.
pub type Failure = Box<dyn Error>;

/// The kernels of a paper, compiled.
pub struct Module {
    /// The paper's name.
    pub name: &'static str,
    /// Its entry points, as `name__kernel`.
    #[allow(dead_code, reason = "kernels are asked for by name")]
    pub entries: &'static [&'static str],
    /// The same code in several forms.
    pub images: &'static [Image],
}

/// A module compiled for one architecture.
#[allow(dead_code, reason = "whoever has other architectures built looks at which")]
pub struct Image {
    /// 90 for sm_90.
    pub arch: u32,
    /// What the bytes are.
    pub kind: ImageKind,
    /// Raw deflate (RFC 1951).
    pub deflated: &'static [u8],
    /// Bytes when inflated.
    pub len: usize,
}

/// What an image holds.
#[allow(dead_code, reason = "no image is built for lints")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageKind {
    /// PTX, for the driver to compile.
    Ptx,
    /// Machine code.
    Cubin,
}

mod built {
    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

/// Samples of a time, of which the median counts.
const SAMPLES: usize = 7;

/// How long a sample is to take, in microseconds.
const SAMPLE_MICROSECONDS: f64 = 5e3;

/// More than any L2: what is read again after so many bytes comes from memory.
const PAST_L2: usize = 256 << 20;

/// A driver call that says what went wrong.
pub trait Done {
    /// `Ok` if it succeeded.
    fn done(self) -> Result<(), Failure>;
}

impl Done for CUresult {
    fn done(self) -> Result<(), Failure> {
        match self {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(format!("the driver answered {code:?}").into()),
        }
    }
}

/// The first GPU: its context is current on this thread until the program ends.
pub struct Gpu {
    /// Multiprocessors.
    pub multiprocessors: u32,
    description: String,
    stream: CUstream,
    events: [CUevent; 2],
    modules: RefCell<BTreeMap<&'static str, CUmodule>>,
}

impl Gpu {
    /// Where there is none, or no kernels were built, says so.
    pub fn new() -> Result<Option<Gpu>, Failure> {
        if built::MODULES.is_empty() {
            println!("skipped: built without kernels");
            return Ok(None);
        }
        // SAFETY: the call takes no memory.
        if let Err(error) = unsafe { sys::cuInit(0) }.done() {
            println!("skipped: no GPU: {error}");
            return Ok(None);
        }
        let (mut device, mut context, mut stream, mut events) =
            (0, ptr::null_mut(), ptr::null_mut(), [ptr::null_mut(); 2]);
        let (mut count, mut version, mut name) = (0, 0, [0 as c_char; 128]);
        // SAFETY: valid places for the answers; the driver ends the name with a zero.
        let name = unsafe {
            sys::cuDeviceGet(&mut device, 0).done()?;
            sys::cuDevicePrimaryCtxRetain(&mut context, device).done()?;
            sys::cuCtxSetCurrent(context).done()?;
            // Copies and clears go to the default stream, which one of this kind waits for.
            sys::cuStreamCreate(&mut stream, 0).done()?;
            for event in &mut events {
                sys::cuEventCreate(event, 0).done()?;
            }
            let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
            sys::cuDeviceGetAttribute(&mut count, attribute, device).done()?;
            sys::cuDriverGetVersion(&mut version).done()?;
            sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device).done()?;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        // The kernel module's own line; only the driver's CUDA version where there is none.
        let driver = fs::read_to_string("/proc/driver/nvidia/version").ok().and_then(|text| {
            let number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
            text.split_whitespace().find(number).map(str::to_owned)
        });
        let cuda = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        let driver = driver.map_or(cuda.clone(), |driver| format!("{driver} ({cuda})"));
        let description = format!("card: {name}, {count} multiprocessors; driver {driver}");
        let modules = RefCell::default();
        Ok(Some(Gpu { multiprocessors: count as u32, description, stream, events, modules }))
    }

    /// A kernel of a paper.
    pub fn kernel(&self, paper: &str, kernel: &str) -> Result<Kernel<'_>, Failure> {
        let full = format!("{paper}__{kernel}");
        let module = self.module(paper).map_err(|error| format!("{full}: {error}"))?;
        let mut function = ptr::null_mut();
        let name = CString::new(full.as_str())?;
        // SAFETY: a loaded module, a string.
        let found = unsafe { sys::cuModuleGetFunction(&mut function, module, name.as_ptr()) };
        found.done().map_err(|error| format!("{full}: {error}"))?;
        Ok(Kernel { gpu: self, function, name: full })
    }

    fn module(&self, paper: &str) -> Result<CUmodule, Failure> {
        if let Some(module) = self.modules.borrow().get(paper) {
            return Ok(*module);
        }
        let built =
            built::MODULES.iter().find(|module| module.name == paper).ok_or("no such module was built")?;
        // Machine code first; PTX where the card is of another generation.
        let mut images: Vec<&Image> = built.images.iter().collect();
        images.sort_by_key(|image| std::cmp::Reverse(image.kind));
        let mut last = Err("it has no image".into());
        for image in images {
            let mut bytes = miniz_oxide::inflate::decompress_to_vec(image.deflated)
                .map_err(|_| "the image does not inflate")?;
            bytes.push(0);
            let mut module = ptr::null_mut();
            // SAFETY: an image that ends with a zero; a context is current.
            last = unsafe { sys::cuModuleLoadData(&mut module, bytes.as_ptr().cast()) }.done();
            if last.is_ok() {
                self.modules.borrow_mut().insert(built.name, module);
                return Ok(module);
            }
        }
        last.map(|()| ptr::null_mut())
    }

    /// Device memory that holds the items.
    pub fn upload<T: Plain>(&self, items: &[T]) -> Result<Array<T>, Failure> {
        let array = self.zeros(items.len())?;
        array.write(0, items)?;
        Ok(array)
    }

    /// Device memory of so many items, all bytes zero.
    pub fn zeros<T: Plain>(&self, len: usize) -> Result<Array<T>, Failure> {
        let mut address = 0;
        let bytes = (len * size_of::<T>()).max(1);
        // SAFETY: a valid place for the answer, then as much memory as was asked for.
        unsafe {
            sys::cuMemAlloc_v2(&mut address, bytes)
                .done()
                .map_err(|error| format!("{bytes} bytes: {error}"))?;
            sys::cuMemsetD8_v2(address, 0, bytes).done()?;
        }
        Ok(Array { address, len, items: PhantomData })
    }

    /// Copies of one array, for calls to read in turn: as many as make memory, and not L2, what is measured; one is enough
    /// where it is larger than that.
    pub fn rotation<T: Plain>(&self, items: &[T]) -> Result<Vec<Array<T>>, Failure> {
        let copies = PAST_L2.div_ceil(size_of_val(items).max(1)).min(256);
        (0..copies).map(|_| self.upload(items)).collect()
    }

    /// Sets all bytes of an array to zero, behind what is on the stream.
    pub fn clear<T: Plain>(&self, array: &Array<T>) -> Result<(), Failure> {
        // SAFETY: the array's bytes.
        unsafe { sys::cuMemsetD8Async(array.address, 0, array.len * size_of::<T>(), self.stream) }.done()
    }

    /// Waits for what is on the stream.
    pub fn wait(&self) -> Result<(), Failure> {
        // SAFETY: a live stream.
        unsafe { sys::cuStreamSynchronize(self.stream) }.done()
    }

    /// The median time of a call in microseconds, of calls one behind the other on a stream. Calls are numbered.
    pub fn time(&self, call: &dyn Fn(usize) -> Result<(), Failure>) -> Result<f64, Failure> {
        self.time_for(SAMPLE_MICROSECONDS, call)
    }

    /// [`time`](Self::time) with samples of so many microseconds: for tables of very many rows. What takes longer than that
    /// is called once a sample; what takes ten times longer has three samples, fifty times longer a single one.
    pub fn time_for(&self, sample: f64, call: &dyn Fn(usize) -> Result<(), Failure>) -> Result<f64, Failure> {
        let mut number = 0;
        let mut some = |count: usize| -> Result<f64, Failure> {
            // SAFETY: a live event and stream.
            unsafe { sys::cuEventRecord(self.events[0], self.stream) }.done()?;
            for _ in 0..count {
                call(number)?;
                number += 1;
            }
            let mut milliseconds = 0f32;
            // SAFETY: as above; both were recorded when the time between them is asked for.
            unsafe {
                sys::cuEventRecord(self.events[1], self.stream).done()?;
                sys::cuEventSynchronize(self.events[1]).done()?;
                sys::cuEventElapsedTime(&mut milliseconds, self.events[0], self.events[1]).done()?;
            }
            Ok(f64::from(milliseconds) * 1e3 / count as f64)
        };
        let first = some(1)?;
        if first > 50.0 * sample {
            return Ok(first);
        }
        let first = first.min(some(1)?);
        let once = if first > sample { first } else { some(3)? };
        let count = ((sample / once) as usize).clamp(1, 500);
        let mut samples = Vec::new();
        for _ in 0..if once > 10.0 * sample { 3 } else { SAMPLES } {
            samples.push(some(count)?);
        }
        Ok(median(samples))
    }
}

/// The middle one.
pub fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// A kernel of a loaded module.
#[derive(Clone)]
pub struct Kernel<'a> {
    gpu: &'a Gpu,
    function: CUfunction,
    name: String,
}

impl Kernel<'_> {
    /// Launches so many blocks of so many threads, behind what is on the stream.
    ///
    /// # Safety
    ///
    /// The kernel's entry takes these parameters, whose memory is as their documentation has it.
    pub unsafe fn launch<P: Copy>(&self, blocks: u64, threads: u32, params: &P) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_with(blocks, threads, 0, params) }
    }

    /// [`launch`](Self::launch) with so many bytes of dynamic shared memory for each block.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch).
    pub unsafe fn launch_with<P: Copy>(
        &self,
        blocks: u64,
        threads: u32,
        shared: usize,
        params: &P,
    ) -> Result<(), Failure> {
        let mut arguments = [ptr::from_ref(params).cast_mut().cast::<c_void>()];
        let (stream, grid) = (self.gpu.stream, u32::try_from(blocks)?);
        // SAFETY: the caller's promise.
        unsafe {
            let arguments = arguments.as_mut_ptr();
            sys::cuLaunchKernel(
                self.function,
                grid,
                1,
                1,
                threads,
                1,
                1,
                shared as u32,
                stream,
                arguments,
                ptr::null_mut(),
            )
        }
        .done()
        .map_err(|error| format!("{}, {blocks} blocks of {threads} threads: {error}", self.name).into())
    }

    /// Blocks of so many threads that a multiprocessor holds at once.
    pub fn resident(&self, threads: u32) -> Result<u32, Failure> {
        self.resident_with(threads, 0)
    }

    /// [`resident`](Self::resident) with so many bytes of dynamic shared memory for each block.
    pub fn resident_with(&self, threads: u32, shared: usize) -> Result<u32, Failure> {
        let mut blocks = 0;
        // SAFETY: a valid place for the answer, a loaded function.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.function,
                threads as i32,
                shared,
            )
        }
        .done()?;
        Ok(blocks as u32)
    }
}

/// An array in device memory.
pub struct Array<T> {
    address: u64,
    len: usize,
    items: PhantomData<T>,
}

impl<T: Plain> Array<T> {
    /// Its address, for parameters.
    pub fn ptr(&self) -> *mut T {
        ptr::with_exposed_provenance_mut(self.address as usize)
    }

    /// How many items it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Writes items from place `first` on, now.
    pub fn write(&self, first: usize, items: &[T]) -> Result<(), Failure> {
        assert!(first + items.len() <= self.len, "{} items at {first} of {}", items.len(), self.len);
        let address = self.address + (first * size_of::<T>()) as u64;
        // SAFETY: within the array, as was just asserted.
        unsafe { sys::cuMemcpyHtoD_v2(address, items.as_ptr().cast(), size_of_val(items)) }.done()
    }

    /// Reads the `count` items from place `first` on. What is on the stream is waited for.
    pub fn read(&self, gpu: &Gpu, first: usize, count: usize) -> Result<Vec<T>, Failure> {
        assert!(first + count <= self.len, "{count} items at {first} of {}", self.len);
        gpu.wait()?;
        let mut items = Vec::<T>::with_capacity(count);
        let address = self.address + (first * size_of::<T>()) as u64;
        // SAFETY: within the array, as was just asserted; plain data, all of which is written before its length is set.
        unsafe {
            sys::cuMemcpyDtoH_v2(items.as_mut_ptr().cast(), address, count * size_of::<T>()).done()?;
            items.set_len(count);
        }
        Ok(items)
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        // SAFETY: ours; a failure while tearing down has nobody to tell.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// Ends the program where a kernel's result is not what the host worked out.
pub fn check<T: PartialEq + std::fmt::Debug>(
    what: impl Display,
    found: T,
    expected: T,
) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is wrong: {found:?}, not {expected:?}").into())
}

/// Values that look like any others, the same in every run.
pub fn values(n: usize) -> Vec<i32> {
    (0..n as u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 7) as i32 - (1 << 24)).collect()
}

/// The sum, which wraps.
pub fn sum(values: &[i32]) -> i32 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

/// A section's CSV.
pub struct Report {
    section: &'static str,
    text: String,
}

impl Report {
    /// Begins with who measured, what the numbers are, and the columns.
    pub fn new(gpu: &Gpu, section: &'static str, what: &str, columns: &str) -> Report {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let text = format!(
            "# {}; {what}\n# command: warpfold-ladder {}\n{columns}\n",
            gpu.description,
            command.join(" ")
        );
        print!("{text}");
        Report { section, text }
    }

    /// A row, which is printed at once.
    pub fn row(&mut self, row: impl Display) {
        println!("{row}");
        self.text += &format!("{row}\n");
    }

    /// Writes the file, if `WARPFOLD_OUT` names a folder.
    pub fn finish(self) -> Result<(), Failure> {
        if let Some(folder) = std::env::var_os("WARPFOLD_OUT") {
            fs::write(Path::new(&folder).join(format!("{}.csv", self.section)), self.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn values_differ_and_have_both_signs() {
        let values = values(1 << 16);
        assert!(values.iter().any(|value| *value < 0) && values.iter().any(|value| *value > 0));
        assert_ne!(sum(&values[..1 << 15]), sum(&values[1 << 15..]));
    }
}
