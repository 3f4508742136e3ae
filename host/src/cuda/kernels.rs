//! Loading an export's kernels.

use std::{
    ffi::{CString, c_int, c_uint, c_void},
    mem::MaybeUninit,
    ptr,
    sync::Arc,
};

use cust::sys::{CUfunction, CUfunction_attribute, CUmodule, CUstream};
use warpfold_gpu_kernels::{
    export::{Descriptor, Export, Family},
    scan, tags,
};

use super::{
    context::{Context, apart_from_captures},
    driver::{self, Doing, LaunchAttribute, LaunchConfig},
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
    /// One for each of the export's entries.
    functions: Vec<CUfunction>,
    /// Do the kernels wait for what is ahead of them, so that they may be launched early?
    wait: bool,
    module: LoadedModule,
}

// SAFETY: module and function handles may be used from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

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
            let functions = export.entries.iter().map(|entry| function(&module, export, entry.kernel, image));
            let functions = functions.collect::<Result<Vec<_>, _>>()?;
            for (&function, entry) in functions.iter().zip(export.entries) {
                // Kernels of other families have these names too.
                let own = match export.family {
                    Family::Tags => tags::static_bytes(entry.kernel),
                    Family::Scans => scan::persistent::static_bytes(entry.kernel),
                    _ => None,
                };
                if let Some(own) = own {
                    let most = context.facts.most_shared_bytes_per_block.saturating_sub(own);
                    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                    // SAFETY: a function of a module that is loaded.
                    unsafe { driver::cuFuncSetAttribute(function, attribute as c_uint, most as c_int) }
                        .doing(|| format!("letting {}__{} have {most} bytes", export.name, entry.kernel))?;
                }
            }
            Ok(Loaded { export, functions, wait, module })
        })
    }

    /// Do the kernels belong to that context?
    pub(crate) fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.module.context, context)
    }

    /// Launches a kernel, early if it may be and this is asked for; `over` says what it reduces, for errors. The context is
    /// current.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context, or the default one, and at `params` lie parameters of that kernel, which give
    /// it what its documentation asks for until the work has finished.
    pub(crate) unsafe fn launch(
        &self,
        kernel: &'static str,
        (grid, block): (u32, u32),
        params: *const u8,
        stream: CUstream,
        early: bool,
        over: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_with(kernel, (grid, block, 0), params, stream, early, over) }
    }

    /// The same with so many bytes of dynamic shared memory for each block, which every device has.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Loaded::launch).
    pub(crate) unsafe fn launch_with(
        &self,
        kernel: &'static str,
        (grid, block, shared): (u32, u32, u32),
        params: *const u8,
        stream: CUstream,
        early: bool,
        over: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let Some(at) = self.export.position(kernel) else {
            return Err(Error::NotCompiled { krate: "", export: self.export.name });
        };
        let function = self.functions[at];
        let mut arguments = [params.cast_mut().cast::<c_void>()];
        let overlapping = self.module.context.launch_overlapping.filter(|_| early && self.wait);
        // SAFETY: the caller's promise. A kernel that is launched early waits before it touches any memory.
        let launched = unsafe {
            match overlapping {
                Some(launch) => {
                    let attribute = LaunchAttribute::OVERLAP;
                    let config = LaunchConfig {
                        grid: [grid, 1, 1],
                        block: [block, 1, 1],
                        shared_bytes: shared,
                        stream,
                        attributes: &attribute,
                        attribute_count: 1,
                    };
                    driver::launched(launch(&config, function, arguments.as_mut_ptr(), ptr::null_mut()))
                }
                None => driver::cuLaunchKernel(
                    function,
                    grid,
                    1,
                    1,
                    block,
                    1,
                    1,
                    shared,
                    stream,
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                ),
            }
        };
        let name = self.export.name;
        launched.doing(|| format!("launching {name}__{kernel}<<<{grid}, {block}>>>{}", over()))
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
