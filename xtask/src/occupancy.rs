//! How many blocks of a kernel share a multiprocessor.
//!
//! The limits are those of the CUDA programming guide's table of compute capabilities; the rounding is that of the
//! CUDA occupancy calculator: registers are given out per warp in units of 256 from one of four partitions, shared
//! memory per block in units of 128 (sm_75: 256) bytes on top of what the system keeps.

/// What one multiprocessor of an architecture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    warps: u32,
    blocks: u32,
    /// Shared memory in bytes.
    shared: u32,
    shared_unit: u32,
    /// Shared memory that the system keeps per block.
    shared_reserved: u32,
}

/// Registers of a multiprocessor: the same on every architecture here.
const REGISTERS: u32 = 65536;
const PARTITIONS: u32 = 4;
const REGISTER_UNIT: u32 = 256;
const WARP: u32 = 32;
const MAX_BLOCK_THREADS: u32 = 1024;

fn limits(arch: u32) -> Option<Limits> {
    let (warps, blocks, kib) = match arch {
        75 => (32, 16, 64),
        80 => (64, 32, 164),
        86 => (48, 16, 100),
        87 => (48, 16, 164),
        89 => (48, 24, 100),
        90 | 100 | 103 => (64, 32, 228),
        110 => (48, 24, 228),
        120 | 121 => (48, 24, 100),
        _ => return None,
    };
    let (shared_unit, shared_reserved) = if arch == 75 { (256, 0) } else { (128, 1024) };
    Some(Limits { warps, blocks, shared: kib * 1024, shared_unit, shared_reserved })
}

/// Blocks and warps that are resident on one multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Resident blocks.
    pub blocks: u32,
    /// Resident warps.
    pub warps: u32,
    /// The most warps that the multiprocessor holds.
    pub max_warps: u32,
}

impl Occupancy {
    /// The share of warp slots in use, in percent.
    pub fn percent(&self) -> f64 {
        f64::from(self.warps) * 100.0 / f64::from(self.max_warps)
    }
}

/// Occupancy on `arch` (90 for sm_90) of a kernel with these registers a thread, shared bytes and threads a block.
///
/// `None` for an architecture that the table does not know. A kernel that cannot run has 0 blocks.
pub fn occupancy(arch: u32, registers: u32, shared: u32, threads: u32) -> Option<Occupancy> {
    let limits = limits(arch)?;
    let warps = threads.div_ceil(WARP);
    let mut blocks =
        if (1..=MAX_BLOCK_THREADS).contains(&threads) { limits.blocks.min(limits.warps / warps) } else { 0 };
    if registers > 0 && blocks > 0 {
        let per_warp = (registers * WARP).next_multiple_of(REGISTER_UNIT);
        let resident = REGISTERS / PARTITIONS / per_warp * PARTITIONS;
        blocks = blocks.min(resident / warps);
    }
    let per_block = (shared + limits.shared_reserved).next_multiple_of(limits.shared_unit);
    if let Some(fit) = limits.shared.checked_div(per_block) {
        blocks = blocks.min(fit);
    }
    Some(Occupancy { blocks, warps: blocks * warps, max_warps: limits.warps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(arch: u32, registers: u32, shared: u32, threads: u32) -> u32 {
        occupancy(arch, registers, shared, threads).unwrap().blocks
    }

    // Expected numbers: the CUDA occupancy calculator's, worked out by hand from its published rules.

    #[test]
    fn threads_limit_a_small_kernel() {
        assert_eq!(blocks(90, 16, 0, 512), 4);
        assert_eq!(blocks(86, 16, 0, 512), 3);
        assert_eq!(blocks(75, 16, 0, 512), 2);
        let one_warp = occupancy(90, 16, 0, 32).unwrap();
        assert_eq!((one_warp.blocks, one_warp.percent()), (32, 50.0));
    }

    #[test]
    fn registers_come_per_warp_in_units() {
        // 32 registers: 1024 a warp, 16 warps a partition, 64 in all. 33 registers: 1280 a warp, 12 a partition, 48.
        assert_eq!(blocks(90, 32, 0, 512), 4);
        assert_eq!(blocks(90, 33, 0, 512), 3);
        // 64 registers: 2048 a warp, 32 warps. 72: 2304, 7 a partition, 28 warps: one block of 16, three of 8.
        assert_eq!(blocks(80, 64, 0, 512), 2);
        assert_eq!(blocks(80, 72, 0, 512), 1);
        assert_eq!(blocks(80, 72, 0, 256), 3);
        // 255 registers and 1024 threads cannot run.
        assert_eq!(blocks(90, 255, 0, 1024), 0);
    }

    #[test]
    fn shared_memory_counts_what_the_system_keeps() {
        // 228 KiB hold four blocks of 56 + 1 KiB exactly, and one byte more makes it three.
        assert_eq!(blocks(90, 16, 56 * 1024, 256), 4);
        assert_eq!(blocks(90, 16, 56 * 1024 + 1, 256), 3);
        assert_eq!(blocks(75, 16, 32 * 1024, 256), 2);
        assert_eq!(blocks(75, 16, 32 * 1024 + 1, 256), 1);
        // Nothing kept and nothing asked for: no limit from shared memory.
        assert_eq!(blocks(75, 16, 0, 64), 16);
    }

    #[test]
    fn odd_cases() {
        assert_eq!(occupancy(52, 16, 0, 256), None);
        assert_eq!(blocks(90, 16, 0, 0), 0);
        assert_eq!(blocks(90, 16, 0, 1025), 0);
        assert_eq!(blocks(90, 16, 0, 33), 32);
    }
}
