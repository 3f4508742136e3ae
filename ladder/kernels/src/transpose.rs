//! Transposes of 4-byte elements.

use warpfold_gpu_kernels::ladder::transpose::{TransposeParams, copy, low_height, low_width, slots, tiles};
use warpfold_simt::shared;

type Params = TransposeParams<u32>;

entry! { transpose__copy(params: Params) { copy(&params) } }
entry! { transpose__tiles_16(params: Params) { tiles::<u32, 16, 16>(&params, shared!([u32; slots(16)])) } }
entry! { transpose__tiles_32(params: Params) { tiles::<u32, 32, 32>(&params, shared!([u32; slots(32)])) } }
entry! { transpose__tiles_32_by_4(params: Params) { tiles::<u32, 32, 8>(&params, shared!([u32; slots(32)])) } }
entry! { transpose__low_height_16(params: Params) { low_height::<u32, 16>(&params, shared!([u32; slots(16)])) } }
entry! { transpose__low_height_32(params: Params) { low_height::<u32, 32>(&params, shared!([u32; slots(32)])) } }
entry! { transpose__low_width_16(params: Params) { low_width::<u32, 16>(&params, shared!([u32; slots(16)])) } }
entry! { transpose__low_width_32(params: Params) { low_width::<u32, 32>(&params, shared!([u32; slots(32)])) } }
