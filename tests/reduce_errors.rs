//! What goes wrong is told with numbers and with what to do.

use warpfold::{Backend, Engine, Error, Sum, cuda_devices, plan::DeviceFacts};

use crate::support::{find_gpu, gpu};

#[test]
fn without_a_gpu_new_gives_the_cpu() {
    if find_gpu().is_err() {
        let engine = Engine::new().unwrap();
        assert_eq!(engine.backend(), Backend::Cpu);
        assert_eq!(engine.facts(), None);
        assert!(engine.info().device.is_none() && engine.info().threads > 0);
        let error = Engine::cuda(0).unwrap_err();
        let devices = cuda_devices().unwrap_err();
        assert_eq!(error, devices);
        if cfg!(feature = "cuda") {
            assert!(matches!(error, Error::NoDevice | Error::NoDriver), "{error:?}");
        } else {
            assert_eq!(error, Error::CudaNotBuilt);
            assert!(error.to_string().contains("--features cuda"), "{error}");
        }
    }
}

#[test]
fn plans_are_for_the_engine_that_makes_them() {
    let plan = Engine::cpu().reducer(Sum::<f32>::new()).unwrap().plan(1 << 20).unwrap();
    assert!(plan.explain().contains("on the CPU"), "{plan}");
    for engine in [Some(Engine::sim()), gpu()].into_iter().flatten() {
        let mut facts = DeviceFacts::H100;
        facts.max_grid_x = 5;
        let engine = engine.with_facts(facts);
        assert_eq!(engine.facts(), Some(facts));
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        let error = sum.reduce(&vec![0.0; 1 << 20]).unwrap_err();
        assert_eq!(error, Error::GridTooLarge { n: 1 << 20, blocks: 256, limit: 5 });
    }
}

#[test]
fn every_builtin_has_kernels_of_its_own_or_shares_those_of_one_that_looks_alike() {
    let exports = warpfold::BUILTINS.table.exports;
    let mut operators: Vec<_> = exports.iter().map(|export| export.operator).collect();
    operators.sort();
    operators.dedup();
    assert_eq!(operators.len(), exports.len(), "an operator has two lines");
    let mut names: Vec<_> = exports.iter().map(|export| export.name).collect();
    names.sort();
    names.dedup();
    // Standard deviations have the variances', wrapping integers and truth values those of others: `SHARED` of the table.
    assert_eq!((exports.len(), names.len()), (347, 285));
    for name in names {
        let mut alike = exports.iter().filter(|export| export.name == name);
        let first = alike.next().unwrap();
        assert!(alike.all(|export| export.descriptor == first.descriptor), "{name}");
        assert!(!name.contains("__"));
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use warpfold::{
        BUILTINS, Backend, Engine, Error, GivesIdentity, Monoid, Plain, Sum,
        cuda::{DeviceArray, DeviceView},
        cuda_devices, host,
        module::Kernels,
    };

    use crate::support::{apart, gpu};

    #[test]
    fn device_memory_needs_a_gpu() {
        let engine = Engine::cpu();
        let error = DeviceArray::from_slice(&engine, &[1.0f32]).unwrap_err();
        assert!(matches!(error, Error::NeedsCuda { .. }), "{error:?}");
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        // SAFETY: no items.
        let view = unsafe { DeviceView::<f32>::from_raw(0, 0) };
        assert_eq!(sum.reduce(&view).unwrap_err(), Error::NeedsCuda { what: "device memory" });
        assert!(matches!(sum.workspace(10), Err(Error::NeedsCuda { .. })));
        assert!(matches!(engine.trim(), Err(Error::NeedsCuda { .. })));
    }

    #[test]
    fn every_builtin_was_compiled() {
        let all = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];
        // As the build script understands it.
        let sampled = std::env::var_os("WARPFOLD_KERNELS_SAMPLED").is_some();
        let served = if sampled { &all[4..] } else { &all[..] };
        assert!(BUILTINS.modules.iter().any(|module| module.name == "sum_f32"));
        for export in BUILTINS.table.exports {
            let Some(module) = BUILTINS.modules.iter().find(|module| module.name == export.name) else {
                // Only a sample is compiled then.
                assert!(sampled, "{} was not compiled", export.name);
                continue;
            };
            for entry in export.entries {
                let name = format!("{}__{}", export.name, entry.kernel);
                assert!(module.entries.contains(&name.as_str()), "{name} is not in {:?}", module.entries);
            }
            for &compute_capability in served {
                assert!(module.image_for(compute_capability).is_some(), "{compute_capability:?}");
            }
            assert!(module.image_for((7, 0)).is_none());
        }
    }

    #[test]
    fn devices_are_counted() {
        let Some(engine) = gpu() else { return };
        let devices = cuda_devices().unwrap();
        assert_eq!(engine.info().device.as_ref(), Some(&devices[0]));
        assert_eq!(engine.backend(), Backend::Cuda);
        println!("{}", engine.info());
        let error = Engine::cuda(99).unwrap_err();
        assert_eq!(error, Error::NoSuchDevice { ordinal: 99, count: devices.len() as u32 });
    }

    /// Like a sum, but exported by nobody.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Unexported;

    // SAFETY: zero bytes.
    unsafe impl Plain for Unexported {}

    impl Monoid for Unexported {
        type Item = u32;
        type Acc = u32;
        type Output = u32;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = true;
        fn identity(&self) -> u32 {
            0
        }
        fn lift(&self, item: u32, _index: u64) -> u32 {
            item
        }
        fn combine(&self, left: u32, right: u32) -> u32 {
            left ^ right
        }
        fn finish(&self, acc: u32) -> u32 {
            acc
        }
    }

    #[test]
    fn a_missing_kernel_names_the_line_that_adds_it() {
        assert_eq!(Engine::cpu().reducer(Unexported).unwrap().reduce(&[5, 6]).unwrap(), 3);
        let Some(engine) = gpu() else { return };
        let error = engine.reducer(Unexported).unwrap_err().to_string();
        assert!(error.contains("my_operator => Unexported,") && error.contains("u32"), "{error}");
    }

    #[test]
    fn modules_of_another_layout_are_refused() {
        if gpu().is_none() {
            return;
        }
        let _apart = apart();
        let mut export = *BUILTINS.table.find::<Sum<f32>>().unwrap();
        export.descriptor.acc[0] += 8;
        let mut table = *BUILTINS.table;
        table.exports = vec![export].leak();
        let table = Box::leak(Box::new(table));
        let engine = host::Engine::cuda(0).unwrap();
        engine.load(Kernels { table, modules: BUILTINS.modules });
        let error = engine.reducer(Sum::<f32>::new()).unwrap_err();
        let Error::LayoutMismatch { host, device, .. } = &error else { panic!("{error}") };
        assert_eq!(host.acc[0], device.acc[0] + 8);
        let engine = host::Engine::cuda(0).unwrap();
        engine.load(Kernels { table, modules: &[] });
        let error = engine.reducer(Sum::<f32>::new()).unwrap_err();
        assert!(matches!(error, Error::NotCompiled { export: "sum_f32", .. }), "{error:?}");
    }

    #[test]
    fn addresses_are_checked() {
        let Some(engine) = gpu() else { return };
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        let array = DeviceArray::from_slice(&engine, &[1.0f32; 8]).unwrap();
        // SAFETY: refused before anything is read.
        let odd = unsafe { DeviceView::<f32>::from_raw(array.address() + 2, 4) };
        assert_eq!(
            sum.reduce(&odd).unwrap_err(),
            Error::Misaligned { address: array.address() + 2, align: 4 }
        );
        let items = [1.0f32; 8];
        // SAFETY: as above.
        let host = unsafe { DeviceView::<f32>::from_raw(items.as_ptr() as u64, 8) };
        assert!(matches!(sum.reduce(&host), Err(Error::NotDeviceMemory { .. })));
        assert!(matches!(array.view().slice(4..9), Err(Error::OutOfRange { start: 4, end: 9, len: 8 })));
        let error = array.copy_to_slice(&mut [0.0; 7]).unwrap_err();
        assert_eq!(error, Error::LengthMismatch { expected: 8, found: 7 });
        // The engine still works.
        assert_eq!(sum.reduce(&array).unwrap(), 8.0);
    }

    #[test]
    fn too_much_memory_is_an_error() {
        let Some(engine) = gpu() else { return };
        // SAFETY: never read.
        let error = unsafe { DeviceArray::<u64>::uninit(&engine, 1 << 40) }.unwrap_err();
        assert!(
            matches!(error, Error::DeviceMemory { needed, total, .. } if needed == 1 << 43 && total > 0),
            "{error:?}"
        );
    }
}
