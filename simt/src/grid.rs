//! Grids that overlap: a grid may start while the one before it in its stream still runs, if the host launches it so
//! (programmatic dependent launch; CUDA C++ Programming Guide). Instructions of sm_90; before that, and in the simulator,
//! nothing.

use crate::imp;

/// Waits until the grids before this one in its stream are done, and sees what they wrote (`griddepcontrol.wait`).
///
/// The host may launch a kernel to overlap only if each of its threads calls this before it reads or writes anything
/// that other work may use. Of several kernels that do one job apart from each other, the later ones may call it at
/// their end instead, if the earlier ones let them start only after their own call, or after such a start: what they
/// read is there then, and whoever waits for the last of them waits for all.
#[inline(always)]
pub fn wait_for_previous() {
    imp::grid_wait()
}

/// Lets the next grid of the stream start once every block has called this or ended
/// (`griddepcontrol.launch_dependents`).
#[inline(always)]
pub fn let_next_start() {
    imp::grid_let_next_start()
}
