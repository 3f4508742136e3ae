//! `warpfold info`.

use std::fmt::Write;

use serde::Serialize;
use warpfold::{DeviceInfo, Engine};

use crate::error::Error;
use crate::input::Dtype;
use crate::ops::Op;
use crate::output::json_line;

/// What this build can do on this machine, in the order in which JSON gives it.
#[derive(Debug, Serialize)]
struct Info {
    version: &'static str,
    backends: [BackendStatus; 2],
    devices: Vec<Device>,
    operators: [&'static str; 4],
    dtypes: [&'static str; 6],
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
        ],
        devices: devices.into_iter().map(Device::from).collect(),
        operators: Op::ALL.map(Op::name),
        dtypes: Dtype::ALL.map(Dtype::name),
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
        text
    }
}
