//! Loading an export's kernels.

use std::{
    ffi::{CString, c_uint, c_void},
    mem::MaybeUninit,
    ptr,
    sync::Arc,
};

use cust::sys::{CUfunction, CUmodule};
use warpfold_gpu_kernels::export::{Descriptor, Export};

use super::{
    context::{Context, apart_from_captures},
    driver::{self, Doing},
};
use crate::{
    Error,
    module::{Image, ImageKind, Module},
};

/// `CU_JIT_ERROR_LOG_BUFFER` and its size.
const ERROR_LOG: [c_uint; 2] = [5, 6];

/// The kernels of one export, loaded.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) export: &'static Export,
    pub(crate) reduce_one: CUfunction,
    pub(crate) reduce_short: CUfunction,
    pub(crate) reduce_long: CUfunction,
    /// Do the kernels wait for what is ahead of them, so that they may be launched early?
    pub(crate) wait: bool,
    module: LoadedModule,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Kernels for segments, in the order of [`SEGMENT_KERNELS`].
pub(crate) const SEGMENT_KERNELS: [&str; 13] = [
    "rows_thread",
    "rows_small",
    "rows_warp",
    "rows_block",
    "rows_short",
    "rows_long",
    "columns",
    "columns_short",
    "columns_few",
    "narrow",
    "gather",
    "tiles",
    "units",
];

/// The kernels for segments of one export, loaded.
#[derive(Debug)]
pub(crate) struct LoadedSegments {
    pub(crate) export: &'static Export,
    functions: [CUfunction; SEGMENT_KERNELS.len()],
    /// As in [`Loaded`].
    pub(crate) wait: bool,
    module: LoadedModule,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for LoadedSegments {}
// SAFETY: as above.
unsafe impl Sync for LoadedSegments {}

impl LoadedSegments {
    /// As [`Loaded::new`].
    pub(crate) fn new(
        context: &Arc<Context>,
        export: &'static Export,
        module: &Module,
    ) -> Result<LoadedSegments, Error> {
        let image = image_for(context, export, module)?;
        let wait = module.waits(image);
        let _current = context.enter_or_error()?;
        apart_from_captures(|| {
            let module = load_image(context, export, image)?;
            check_descriptor(&module, export, image)?;
            let mut functions = [ptr::null_mut(); SEGMENT_KERNELS.len()];
            for (place, kernel) in functions.iter_mut().zip(SEGMENT_KERNELS) {
                *place = function(&module, export, kernel, image)?;
            }
            Ok(LoadedSegments { export, functions, wait, module })
        })
    }

    /// The kernel of that name, which is one of [`SEGMENT_KERNELS`].
    pub(crate) fn function(&self, kernel: &str) -> Option<CUfunction> {
        let at = SEGMENT_KERNELS.iter().position(|&name| name == kernel)?;
        Some(self.functions[at])
    }

    /// Do the kernels belong to that context?
    pub(crate) fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.module.context, context)
    }
}

/// The kernels for scans of one export, loaded.
#[derive(Debug)]
pub(crate) struct LoadedScans {
    pub(crate) export: &'static Export,
    pub(crate) forward: CUfunction,
    pub(crate) reverse: CUfunction,
    /// As in [`Loaded`].
    pub(crate) wait: bool,
    module: LoadedModule,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for LoadedScans {}
// SAFETY: as above.
unsafe impl Sync for LoadedScans {}

impl LoadedScans {
    /// As [`Loaded::new`].
    pub(crate) fn new(
        context: &Arc<Context>,
        export: &'static Export,
        module: &Module,
    ) -> Result<LoadedScans, Error> {
        let image = image_for(context, export, module)?;
        let wait = module.waits(image);
        let _current = context.enter_or_error()?;
        apart_from_captures(|| {
            let module = load_image(context, export, image)?;
            check_descriptor(&module, export, image)?;
            let forward = function(&module, export, "forward", image)?;
            let reverse = function(&module, export, "reverse", image)?;
            Ok(LoadedScans { export, forward, reverse, wait, module })
        })
    }

    /// Do the kernels belong to that context?
    pub(crate) fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.module.context, context)
    }
}

/// The best image of a module for a device.
fn image_for<'a>(context: &Context, export: &'static Export, module: &'a Module) -> Result<&'a Image, Error> {
    let compute_capability = context.info.compute_capability;
    module.image_for(compute_capability).ok_or_else(|| Error::NoImage {
        export: export.name,
        compute_capability,
        images: module.images.iter().map(ToString::to_string).collect(),
    })
}

#[derive(Debug)]
struct LoadedModule {
    raw: CUmodule,
    context: Arc<Context>,
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: whoever launches its kernels keeps it alive until they have run. A failure means that the
            // context is gone, and the module with it.
            let _ = apart_from_captures(|| unsafe { driver::cuModuleUnload(self.raw) });
        }
    }
}

impl Loaded {
    /// Loads the best image of `module` and checks that it was compiled for the host's layouts.
    pub(crate) fn new(
        context: &Arc<Context>,
        export: &'static Export,
        module: &Module,
    ) -> Result<Loaded, Error> {
        let image = image_for(context, export, module)?;
        let wait = module.waits(image);
        let _current = context.enter_or_error()?;
        apart_from_captures(|| {
            let module = load_image(context, export, image)?;
            check_descriptor(&module, export, image)?;
            Ok(Loaded {
                export,
                reduce_one: function(&module, export, "reduce_one", image)?,
                reduce_short: function(&module, export, "reduce_short", image)?,
                reduce_long: function(&module, export, "reduce_long", image)?,
                wait,
                module,
            })
        })
    }

    /// Do the kernels belong to that context?
    pub(crate) fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.module.context, context)
    }
}

fn load_image(context: &Arc<Context>, export: &Export, image: &Image) -> Result<LoadedModule, Error> {
    let damaged = |name: &str| Error::ModuleLoad {
        export: export.name,
        image: image.to_string(),
        name: name.into(),
        log: String::new(),
    };
    let mut bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(image.deflated, image.len)
        .map_err(|_| damaged("the embedded image does not inflate"))?;
    if bytes.len() != image.len {
        return Err(damaged("the embedded image inflates to another length"));
    }
    if image.kind == ImageKind::Ptx && bytes.last() != Some(&0) {
        // The driver takes text up to a NUL.
        bytes.push(0);
    }
    let data = bytes.as_ptr().cast::<c_void>();
    let mut log = vec![0u8; 8 << 10];
    let mut options = ERROR_LOG;
    let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(log.len())];
    let mut raw = ptr::null_mut();
    // SAFETY: a whole image of that kind (text ends with a NUL), options with their values, a context is current.
    let loaded =
        unsafe { driver::cuModuleLoadDataEx(&mut raw, data, 2, options.as_mut_ptr(), values.as_mut_ptr()) };
    match loaded {
        Ok(()) => Ok(LoadedModule { raw, context: context.clone() }),
        Err(failure) if failure.is_capture() || failure.code == driver::OUT_OF_MEMORY => {
            Err(failure.doing(format!("loading {} for {image}", export.name)))
        }
        Err(failure) => {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            Err(Error::ModuleLoad {
                export: export.name,
                image: image.to_string(),
                name: failure.name(),
                log: String::from_utf8_lossy(&log[..end]).trim().to_owned(),
            })
        }
    }
}

fn check_descriptor(module: &LoadedModule, export: &Export, image: &Image) -> Result<(), Error> {
    // Export names are Rust identifiers: no NUL.
    let name = CString::new(format!("{}__descriptor", export.name)).unwrap_or_default();
    let doing = || format!("reading the descriptor of {} from {image}", export.name);
    let (mut address, mut bytes) = (0, 0);
    // SAFETY: valid places for the answers, a loaded module, a string.
    unsafe { driver::cuModuleGetGlobal_v2(&mut address, &mut bytes, module.raw, name.as_ptr()) }
        .doing(doing)?;
    if bytes != size_of::<Descriptor>() {
        return Err(Error::DescriptorSize {
            export: export.name,
            expected: size_of::<Descriptor>(),
            found: bytes,
        });
    }
    let mut found = MaybeUninit::<Descriptor>::uninit();
    let io = module.context.io();
    // SAFETY: both sides have that many bytes; the copy is waited for before `found` goes.
    unsafe {
        let copied = driver::cuMemcpyDtoHAsync_v2(found.as_mut_ptr().cast(), address, bytes, io);
        let waited = module.context.synchronize(io, doing);
        copied.doing(doing)?;
        waited?;
    }
    // SAFETY: all bytes written; any bits are a descriptor.
    let found = unsafe { found.assume_init() };
    if found == export.descriptor {
        Ok(())
    } else {
        Err(Error::LayoutMismatch {
            export: export.name,
            operator: (export.type_name)(),
            host: Box::new(export.descriptor),
            device: Box::new(found),
        })
    }
}

fn function(
    module: &LoadedModule,
    export: &Export,
    kernel: &str,
    image: &Image,
) -> Result<CUfunction, Error> {
    let name = CString::new(format!("{}__{kernel}", export.name)).unwrap_or_default();
    let mut function = ptr::null_mut();
    // SAFETY: a valid place for the answer, a loaded module, a string.
    unsafe { driver::cuModuleGetFunction(&mut function, module.raw, name.as_ptr()) }
        .doing(|| format!("finding {}__{kernel} in {image}", export.name))?;
    Ok(function)
}
