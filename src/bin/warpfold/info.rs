//! `warpfold info`.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;
use warpfold::{BUILTINS, DeviceInfo, Engine};

use crate::error::Error;
use crate::input::Dtype;
use crate::ops::TABLE;
use crate::output::json_line;

/// What this build can do on this machine, in the order in which JSON gives it.
#[derive(Debug, Serialize)]
struct Info {
    version: &'static str,
    backends: [BackendStatus; 3],
    devices: Vec<Device>,
    operators: Vec<&'static str>,
    dtypes: Vec<&'static str>,
    kernels: Vec<Kernel>,
}

/// One operator's compiled module.
#[derive(Debug, Serialize)]
struct Kernel {
    name: &'static str,
    /// Architectures: `compute_80` is PTX, `sm_80` machine code.
    images: Vec<String>,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct BackendStatus {
    name: &'static str,
    /// Was it compiled in?
    built: bool,
    /// Can it be used now?
    available: bool,
    /// Its threads or devices, or why it cannot be used.
    note: String,
}

#[derive(Debug, Serialize)]
struct Device {
    ordinal: u32,
    name: String,
    /// Major and minor.
    compute_capability: (u32, u32),
    multiprocessors: u32,
    memory_bytes: u64,
    /// The CUDA version that the driver supports, major and minor.
    driver: (u32, u32),
}

impl From<DeviceInfo> for Device {
    fn from(device: DeviceInfo) -> Device {
        Device {
            ordinal: device.ordinal,
            name: device.name,
            compute_capability: device.compute_capability,
            multiprocessors: device.multiprocessors,
            memory_bytes: device.memory_bytes,
            driver: device.driver,
        }
    }
}

/// The backends, devices and built-in operators, as text or as one JSON object.
pub fn report(json: bool) -> Result<String, Error> {
    let found = warpfold::cuda_devices();
    let note = match &found {
        Ok(devices) if devices.is_empty() => "no device".to_string(),
        Ok(devices) => format!("{} device{}", devices.len(), if devices.len() == 1 { "" } else { "s" }),
        Err(error) => error.to_string(),
    };
    let devices = found.unwrap_or_default();
    let lines: Vec<String> = devices.iter().map(DeviceInfo::to_string).collect();
    let threads = Engine::cpu().info().threads;
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        backends: [
            BackendStatus {
                name: "cpu",
                built: true,
                available: true,
                note: format!("{threads} thread{}", if threads == 1 { "" } else { "s" }),
            },
            BackendStatus {
                name: "cuda",
                built: cfg!(feature = "cuda"),
                available: !devices.is_empty(),
                note,
            },
            BackendStatus {
                name: "sim",
                built: true,
                available: true,
                note: "the GPU's kernels on simulated threads, slow, every access checked".to_string(),
            },
        ],
        devices: devices.into_iter().map(Device::from).collect(),
        operators: TABLE.iter().map(|operator| operator.name).collect(),
        dtypes: Dtype::ALL.into_iter().map(Dtype::name).collect(),
        kernels: BUILTINS
            .modules
            .iter()
            .map(|module| Kernel {
                name: module.name,
                images: module.images.iter().map(ToString::to_string).collect(),
                bytes: module.images.iter().map(|image| image.deflated.len()).sum(),
            })
            .collect(),
    };
    if json { json_line(&info) } else { Ok(info.text(&lines)) }
}

impl Info {
    fn text(&self, devices: &[String]) -> String {
        let mut text = format!("warpfold {}\n\n", self.version);
        for backend in &self.backends {
            let state = if backend.available { "available" } else { "not available" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "backend {:4}  {state}: {}", backend.name, backend.note);
        }
        for device in devices {
            let _ = writeln!(text, "{device}");
        }
        let _ = writeln!(text, "\noperators     {}", self.operators.join(", "));
        let _ = writeln!(text, "types         {}", self.dtypes.join(", "));
        if self.kernels.is_empty() {
            text.push_str("GPU kernels   none\n");
        } else {
            let images: BTreeSet<&str> =
                self.kernels.iter().flat_map(|kernel| &kernel.images).map(String::as_str).collect();
            let images = images.into_iter().collect::<Vec<_>>().join(", ");
            let kib = self.kernels.iter().map(|kernel| kernel.bytes).sum::<usize>().div_ceil(1024);
            let _ = writeln!(text, "GPU kernels   {} modules for {images} ({kib} KiB)", self.kernels.len());
        }
        text
    }
}
