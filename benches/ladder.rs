//! The literature's scans (`gpu-kernels/src/ladder`) beside the single pass, on a GPU: sums of `i32`.
//!
//! `WARPFOLD_KERNEL_PARTS=scans,ladder cargo bench --features cuda --bench ladder`: their kernels are built only when they are
//! named. Every form's results are compared with a serial sum before it is timed. CSV goes to standard output, and to
//! `ladder.csv` in the folder that `WARPFOLD_OUT` names.

use std::{
    error::Error,
    ffi::{CString, c_void},
    fmt::Write as _,
    io::Write as _,
    ptr,
};

use device::{Done, Events, copy, describe};
use warpfold::{
    Engine, Sum,
    cuda::{
        DeviceArray, StreamRef,
        cust::sys::{self, CUfunction, CUmodule, CUstream},
    },
    host::module::ImageKind,
};
use warpfold_gpu_kernels::ladder::scan::{LadderParams, SWEEP_THREADS, TILE};

#[path = "support/device.rs"]
mod device;

mod kernels {
    include!(concat!(env!("OUT_DIR"), "/ladder.rs"));
}

type Op = Sum<i32>;

fn main() -> Result<(), Box<dyn Error>> {
    let Some((engine, _context)) = device::gpu()? else { return Ok(()) };
    let Some(ladder) = kernels::MODULES.first() else {
        println!("skipped: built without the kernels, which WARPFOLD_KERNEL_PARTS=scans,ladder builds");
        return Ok(());
    };
    let image = ladder.images.iter().find(|image| image.kind == ImageKind::Ptx).ok_or("no PTX")?;
    let mut text =
        miniz_oxide::inflate::decompress_to_vec(image.deflated).map_err(|_| "it does not inflate")?;
    text.push(0);
    let mut module = ptr::null_mut();
    // SAFETY: a text that ends with a zero; a context is current.
    unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) }.done()?;
    let mut report = "form,log2_n,stream_us\n".to_owned();
    for log in [10, 16, 20, 24, 26] {
        let bench = Bench::new(&engine, module, ladder.name, 1 << log)?;
        for (name, kernel, threads, reduces) in [
            ("hillis_steele", "hillis_steele", TILE as u32, false),
            ("blelloch", "blelloch", SWEEP_THREADS, false),
            ("blelloch_padded", "blelloch_padded", SWEEP_THREADS, false),
            ("warp_shuffle", "warp_shuffle", TILE as u32, false),
            ("reduce_then_scan", "warp_shuffle", TILE as u32, true),
        ] {
            let tile = bench.kernel(kernel)?;
            let time = bench.time(name, &|| bench.scan(tile, threads, 0, reduces))?;
            writeln!(report, "{name},{log},{time:.2}")?;
        }
        let single = engine.scanner(Op::new())?;
        let time = bench.time("single_pass", &|| {
            // SAFETY: arrays that live as long as the bench, which nobody else uses.
            unsafe {
                let mut output =
                    warpfold::cuda::DeviceViewMut::from_raw(bench.levels[0].address(), bench.n as u64);
                single.enqueue(&bench.items, &mut output, StreamRef::from_raw(bench.stream))?;
            }
            Ok(())
        })?;
        writeln!(report, "single_pass,{log},{time:.2}")?;
    }
    let text = format!("# {}; {}\n{report}", describe()?, engine.info());
    print!("{text}");
    if let Some(folder) = std::env::var_os("WARPFOLD_OUT") {
        let path = std::path::Path::new(&folder).join("ladder.csv");
        std::fs::File::create(path)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// An array, and room for its scan, its tiles' values, theirs, and so on.
struct Bench {
    module: CUmodule,
    name: &'static str,
    propagate: CUfunction,
    n: usize,
    items: DeviceArray<i32>,
    levels: Vec<DeviceArray<i32>>,
    last: [i32; 2],
    stream: CUstream,
    events: Events,
}

impl Bench {
    fn new(engine: &Engine, module: CUmodule, name: &'static str, n: usize) -> Result<Self, Box<dyn Error>> {
        let values: Vec<i32> = (0..n as i32).map(|i| i.wrapping_mul(0x9e37_79b1_u32 as i32) >> 7).collect();
        let items = DeviceArray::from_slice(engine, &values)?;
        let mut levels = Vec::new();
        let mut len = n;
        loop {
            // SAFETY: written before it is read.
            levels.push(unsafe { DeviceArray::uninit(engine, len)? });
            if len == 1 {
                break;
            }
            len = len.div_ceil(TILE);
        }
        let sum = |some: &[i32]| some.iter().fold(0_i32, |sum, item| sum.wrapping_add(*item));
        let last = [sum(&values[..n / 2 + 1]), sum(&values)];
        let mut stream = ptr::null_mut();
        // SAFETY: a valid place for the answer; a context is current.
        unsafe { sys::cuStreamCreate(&mut stream, 1) }.done()?;
        let (propagate, events) = (ptr::null_mut(), Events::new()?);
        let mut bench = Bench { module, name, propagate, n, items, levels, last, stream, events };
        bench.propagate = bench.kernel("propagate")?;
        Ok(bench)
    }

    fn kernel(&self, kernel: &str) -> Result<CUfunction, Box<dyn Error>> {
        let name = CString::new(format!("{}__{kernel}", self.name))?;
        let mut function = ptr::null_mut();
        // SAFETY: a loaded module, a string.
        unsafe { sys::cuModuleGetFunction(&mut function, self.module, name.as_ptr()) }.done()?;
        Ok(function)
    }

    fn launch(
        &self,
        function: CUfunction,
        threads: u32,
        params: &LadderParams<Op>,
    ) -> Result<(), Box<dyn Error>> {
        let grid = params.n.div_ceil(TILE as u64) as u32;
        let mut arguments = [ptr::from_ref(params).cast_mut().cast::<c_void>()];
        // SAFETY: the kernel's parameters, whose memory is the bench's.
        unsafe {
            let (stream, arguments) = (self.stream, arguments.as_mut_ptr());
            sys::cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, 0, stream, arguments, ptr::null_mut())
        }
        .done()
    }

    /// Scans a level in its place; the first one from the items.
    fn scan(
        &self,
        tile: CUfunction,
        threads: u32,
        level: usize,
        reduces: bool,
    ) -> Result<(), Box<dyn Error>> {
        let n = self.levels[level].len();
        let place: *mut i32 = ptr::with_exposed_provenance_mut(self.levels[level].address() as usize);
        let items = match level {
            0 => ptr::with_exposed_provenance(self.items.address() as usize),
            _ => ptr::null(),
        };
        let single = n <= TILE;
        let totals = match self.levels.get(level + 1).filter(|_| !single) {
            Some(totals) => ptr::with_exposed_provenance_mut(totals.address() as usize),
            None => ptr::null_mut(),
        };
        let output = if reduces && !single { ptr::null_mut() } else { place };
        let (values, befores, op) = (place.cast_const(), ptr::null(), Op::new());
        let mut params = LadderParams { items, values, output, totals, befores, n: n as u64, op };
        self.launch(tile, threads, &params)?;
        if single {
            return Ok(());
        }
        self.scan(tile, threads, level + 1, reduces)?;
        (params.output, params.totals, params.befores) = (place, ptr::null_mut(), totals.cast_const());
        if reduces {
            return self.launch(tile, threads, &params);
        }
        params.items = ptr::null();
        self.launch(self.propagate, TILE as u32, &params)
    }

    /// The median time of a call, in microseconds, of calls one behind the other, once its results are right.
    fn time(&self, name: &str, call: &dyn Fn() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
        // SAFETY: the bench's own memory.
        unsafe { copy(self.levels[0].address(), &vec![0; self.n])? };
        call()?;
        // SAFETY: a live stream.
        unsafe { sys::cuStreamSynchronize(self.stream) }.done()?;
        let found = self.levels[0].to_vec()?;
        if [found[self.n / 2], found[self.n - 1]] != self.last {
            return Err(format!("{name} is wrong over {} items", self.n).into());
        }
        let some = |count: usize| -> Result<f64, Box<dyn Error>> {
            self.events.record(0, self.stream);
            for _ in 0..count {
                call()?;
            }
            self.events.record(1, self.stream);
            Ok(self.events.nanoseconds() / 1e3 / count as f64)
        };
        let count = ((8e3 / some(3)?) as usize).clamp(5, 500);
        let mut samples = Vec::new();
        for _ in 0..7 {
            samples.push(some(count)?);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }
}
