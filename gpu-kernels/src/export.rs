//! From an operator type to kernels: what a leaf crate exports, and how the host finds it.
//!
//! [`kernels!`](crate::kernels) in a leaf crate lists names and operators. Compiled for the device it emits the entry
//! points and a [`Descriptor`] for each; compiled for the host, the same list is a [`Table`] that leads from an
//! operator's type to its entry names, and to the same kernels for the simulator.

use core::any::{TypeId, type_name};

use warpfold_monoid::{Monoid, Plain, limits, tree::vector_len};

use crate::sort::{Key, Pairs, Payload, SortParams};

/// The version of the entry points' names and parameters. Host and module must agree.
pub const ABI_VERSION: u64 = 4;

/// What host and device must agree on before a kernel of an operator may run: sizes, alignments and layouts.
///
/// Every group of entry points carries one as the global `NAME__descriptor`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// [`ABI_VERSION`].
    pub version: u64,
    /// Size, alignment and layout fingerprint of the operator.
    pub operator: [u64; 3],
    /// The same of its item.
    pub item: [u64; 3],
    /// The same of its accumulator.
    pub acc: [u64; 3],
    /// The same of its output.
    pub output: [u64; 3],
    /// 1 if the operator is commutative.
    pub commutative: u64,
}

impl Descriptor {
    /// The descriptor of an operator, as the compiler at hand lays it out.
    pub const fn of<Op: Monoid>() -> Descriptor {
        const { limits::check_derived::<Op>() };
        Descriptor {
            version: ABI_VERSION,
            operator: layout::<Op>(),
            item: layout::<Op::Item>(),
            acc: layout::<Op::Acc>(),
            output: layout::<Op::Output>(),
            commutative: Op::COMMUTATIVE as u64,
        }
    }

    /// That of sorts of pairs, which have no operator: a key and a value in place of an item and an accumulator.
    pub const fn of_pairs<K: Key, V: Payload>() -> Descriptor {
        Descriptor {
            version: ABI_VERSION,
            operator: [size_of::<SortParams<K, V>>() as u64, align_of::<SortParams<K, V>>() as u64, 0],
            item: layout::<K>(),
            acc: layout::<V>(),
            output: [0; 3],
            commutative: 0,
        }
    }

    /// Do the types have the same sizes and alignments, whatever they are?
    pub const fn alike(&self, other: &Descriptor) -> bool {
        same_size(&self.operator, &other.operator)
            && same_size(&self.item, &other.item)
            && same_size(&self.acc, &other.acc)
            && same_size(&self.output, &other.output)
            && self.commutative == other.commutative
    }
}

// SAFETY: repr(C), u64 only.
unsafe impl Plain for Descriptor {}

const fn layout<T: Plain>() -> [u64; 3] {
    [size_of::<T>() as u64, align_of::<T>() as u64, T::LAYOUT]
}

const fn same_size(a: &[u64; 3], b: &[u64; 3]) -> bool {
    a[0] == b[0] && a[1] == b[1]
}

/// In launch bounds: no bound, but what a block will have, for which the registers are to suffice without.
pub const UNBOUNDED: u32 = 1 << 31;

/// The launch bounds of a kernel with so many threads: none, but for operators whose lanes, or what they keep of a segment,
/// fill a thread's registers. Assemblers think differently about kernels with a bound.
pub const fn bounds<Op: Monoid>(threads: u32) -> u32 {
    if is_wide::<Op>() { threads } else { threads | UNBOUNDED }
}

const fn is_wide<Op: Monoid>() -> bool {
    let lanes = if Op::COMMUTATIVE && !Op::ANY_ORDER { vector_len(size_of::<Op::Item>()) } else { 1 };
    Op::PER_SEGMENT || lanes * size_of::<Op::Acc>() > 64 || size_of::<Op::Acc>() > 32
}

/// The launch bounds of long reductions: a multiprocessor holds two blocks, unless lanes are very wide.
pub const fn long_bounds<Op: Monoid>(threads: u32) -> u32 {
    match size_of::<Op::Acc>() {
        ..8 if Op::ANY_ORDER => bounds::<Op>(threads),
        _ if holds_two::<Op>() => threads | 2 << 16,
        _ => threads,
    }
}

/// What a reduction may keep on the stack while two large values are merged, once for a warp and a level, or lanes that fill half a
/// thread's registers are; a `long` one too what little its way for arrays off a boundary has no registers for.
pub const fn stack<Op: Monoid>(long: bool) -> u32 {
    let (acc, vector) = (size_of::<Op::Acc>(), vector_len(size_of::<Op::Item>()));
    match (Op::COMMUTATIVE, Op::ANY_ORDER) {
        _ if acc > 32 => 256,
        (true, false) if !long && vector * acc >= 256 => 96,
        _ if !long => 0,
        (true, false) if vector * acc >= 64 => 96,
        (true, false) if size_of::<Op::Item>() == 0 && Op::AT_ONCE >= 8 => 16,
        (false, _) if vector * acc > 128 => 32,
        _ => 0,
    }
}

/// Is a multiprocessor to hold two blocks of a long reduction, for one alone has not enough in flight? Where lanes would fill half
/// a thread's registers, those are worth more.
pub(crate) const fn holds_two<Op: Monoid>() -> bool {
    let vector = vector_len(size_of::<Op::Item>());
    match (Op::COMMUTATIVE, Op::ANY_ORDER) {
        (true, true) => true,
        (true, false) => vector * Op::LANE_BYTES <= 112,
        // A strip of floats of 16 bits becomes as many `f64`.
        (false, _) => vector * Op::LANE_BYTES <= 128,
    }
}

/// The launch bounds of a kernel with so many threads of which a multiprocessor is to hold so many blocks: fewer where
/// accumulators, or an operator of each segment's own, need the registers.
pub const fn resident<Op: Monoid>(threads: u32, blocks: u32) -> u32 {
    match size_of::<Op::Acc>() {
        ..=8 if !is_wide::<Op>() => threads | blocks << 16,
        ..=16 if !is_wide::<Op>() => threads | blocks.div_ceil(2) << 16,
        _ => bounds::<Op>(threads),
    }
}

/// The same for kernels that wait for memory, and gain by more blocks than their registers would let a multiprocessor hold:
/// where lanes are few and little is kept, else `otherwise`.
pub const fn crowded<Op: Monoid>(threads: u32, blocks: u32, otherwise: u32) -> u32 {
    let acc = size_of::<Op::Acc>();
    let lanes = vector_len(size_of::<Op::Item>()) * acc;
    if Op::COMMUTATIVE && !Op::ANY_ORDER && !Op::PER_SEGMENT && acc <= 8 && lanes <= 32 {
        threads | blocks << 16
    } else {
        otherwise
    }
}

/// The same for kernels that the assembler would give more registers than those blocks leave, if their threads hold lanes,
/// and few.
pub const fn few_lanes<Op: Monoid>(threads: u32, blocks: u32) -> u32 {
    let lanes = vector_len(size_of::<Op::Item>()) * size_of::<Op::Acc>();
    if Op::COMMUTATIVE && !Op::ANY_ORDER && !Op::PER_SEGMENT && lanes <= 32 {
        threads | blocks << 16
    } else {
        bounds::<Op>(threads)
    }
}

/// Items in what a thread loads at once: a vector of the canonical tree, or what suits the operator where no tree is kept.
pub const fn at_once<Op: Monoid>() -> usize {
    if Op::ANY_ORDER { Op::AT_ONCE } else { vector_len(size_of::<Op::Item>()) }
}

/// One entry point of an operator.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which kernel: the entry is called `NAME__KERNEL`.
    pub kernel: &'static str,
    /// The kernel's body for one simulated thread; the pointer leads to the kernel's parameter struct.
    pub simulate: unsafe fn(*const u8),
}

/// What an export's kernels reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Whole arrays: what [`kernels!`](crate::kernels) exports.
    Arrays,
    /// Many segments at once: what [`segment_kernels!`](crate::segment_kernels) exports.
    Segments,
    /// Scans: what [`scan_kernels!`](crate::scan_kernels) exports.
    Scans,
    /// Reductions by tag: what [`tag_kernels!`](crate::tag_kernels) exports.
    Tags,
    /// Reductions by key: what [`key_kernels!`](crate::key_kernels) exports.
    Keys,
    /// Scans of many lines at once: what [`scan_line_kernels!`](crate::scan_line_kernels) exports.
    ScanLines,
    /// Sorts of pairs: what [`sort_kernels!`](crate::sort_kernels) exports.
    Sorts,
}

/// One exported operator.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// The name given in [`kernels!`](crate::kernels): the module's group, and the prefix of its entries.
    pub name: &'static str,
    /// What they reduce.
    pub family: Family,
    /// The operator's type.
    pub operator: TypeId,
    /// The operator's type in words, for messages.
    pub type_name: fn() -> &'static str,
    /// How the host lays the operator out.
    pub descriptor: Descriptor,
    /// Its entry points.
    pub entries: &'static [Entry],
}

impl Export {
    /// The place among the entry points of the one that serves as that kernel: the kernel itself or, of exports that have one for
    /// all arrays but long ones, that.
    ///
    /// ```
    /// use warpfold_gpu_kernels::{compact_kernels, kernels};
    /// use warpfold_monoid::Sum;
    ///
    /// kernels! { static ALL: sum => Sum<f32> }
    /// compact_kernels! { static COMPACT: sum => Sum<f32> }
    /// let (all, compact) = (&ALL.exports[0], &COMPACT.exports[0]);
    /// assert_eq!((all.position("reduce_short"), compact.position("reduce_short")), (Some(1), Some(0)));
    /// assert_eq!((all.entries.len(), compact.entries.len()), (3, 2));
    /// assert_eq!(compact.position("rows_long"), None);
    /// ```
    pub fn position(&self, kernel: &str) -> Option<usize> {
        let named = |kernel: &str| self.entries.iter().position(|entry| entry.kernel == kernel);
        named(kernel).or_else(|| {
            if matches!(kernel, "reduce_one" | "reduce_short") { named("reduce_few") } else { None }
        })
    }

    /// An export of `Op` for whole arrays under `name`.
    pub const fn new<Op: Monoid>(name: &'static str, entries: &'static [Entry]) -> Export {
        Export::in_family::<Op>(name, Family::Arrays, entries)
    }

    /// The same for any family of kernels.
    pub const fn in_family<Op: Monoid>(
        name: &'static str,
        family: Family,
        entries: &'static [Entry],
    ) -> Export {
        Export {
            name,
            family,
            operator: TypeId::of::<Op>(),
            type_name: type_name::<Op>,
            descriptor: Descriptor::of::<Op>(),
            entries,
        }
    }

    /// An export of sorts of pairs, which go by the name of [`Pairs`] in place of an operator's.
    pub const fn of_pairs<K: Key, V: Payload>(name: &'static str, entries: &'static [Entry]) -> Export {
        Export {
            name,
            family: Family::Sorts,
            operator: TypeId::of::<Pairs<K, V>>(),
            type_name: type_name::<Pairs<K, V>>,
            descriptor: Descriptor::of_pairs::<K, V>(),
            entries,
        }
    }
}

/// Everything that one leaf crate exports.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The leaf crate.
    pub krate: &'static str,
    /// Its operators.
    pub exports: &'static [Export],
}

impl Table {
    /// The export of an operator's kernels for whole arrays, if it is in the table.
    pub fn find<Op: Monoid>(&self) -> Option<&'static Export> {
        self.find_in::<Op>(Family::Arrays)
    }

    /// The same for any family of kernels.
    pub fn find_in<Op: Monoid>(&self, family: Family) -> Option<&'static Export> {
        self.find_by_id(TypeId::of::<Op>(), family)
    }

    /// The same for an operator known by its type's identity.
    pub fn find_by_id(&self, operator: TypeId, family: Family) -> Option<&'static Export> {
        self.exports.iter().find(|export| export.family == family && export.operator == operator)
    }
}

/// Exports operators from a leaf crate: `kernels! { pub static TABLE: sum_f32 => Sum<f32>, ... }`.
///
/// On the device each line emits the entry points `NAME__reduce_one`, `NAME__reduce_short` and `NAME__reduce_long`
/// (see [`device`](crate::device)) and the global `NAME__descriptor`; on the host the list becomes the [`Table`] with
/// the given name. Names are prefixes of global symbols: unique in the crate, without a double underscore.
///
/// Use it only in a leaf crate, one that no other kernel crate depends on: entry points of a dependency would end up
/// in the dependent's modules as well.
#[macro_export]
macro_rules! kernels {
    ($($list:tt)*) => { $crate::__array_kernels! { [reduce_one, reduce_short, reduce_long] $($list)* } };
}

/// As [`kernels!`](crate::kernels), with one kernel in place of `reduce_one` and `reduce_short`: `NAME__reduce_few`. A quarter
/// less to compile and to carry; arrays of up to 4 MiB take up to 0.2 us longer (H200).
#[macro_export]
macro_rules! compact_kernels {
    ($($list:tt)*) => { $crate::__array_kernels! { [reduce_few, reduce_long] $($list)* } };
}

/// Exports operators with these kernels for whole arrays.
#[doc(hidden)]
#[macro_export]
macro_rules! __array_kernels {
    ($kernels:tt $(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => $op:ty),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor = $crate::export::Descriptor::of::<$op>();
                $crate::__array_entries!($name, $op, $kernels);
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::new::<$op>(stringify!($name), $crate::__array_simulated!($op, $kernels)),
            )+],
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __array_entries {
    ($name:ident, $op:ty, [$($kernel:ident),+]) => { $($crate::__entry!($name, $op, $kernel);)+ };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __array_simulated {
    ($op:ty, [$($kernel:ident),+]) => { &[$($crate::__simulated!($op, $kernel)),+] };
}

/// Exports operators' kernels for segments: `segment_kernels! { pub static TABLE: sum_f32_segments => Sum<f32>, ... }`.
///
/// As [`kernels!`](crate::kernels), whose rules for names hold here too; the names of both are told apart by what they
/// are called, so they differ. Each line emits the entry points that [`segments`](crate::segments) lists.
#[macro_export]
macro_rules! segment_kernels {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => $op:ty),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor = $crate::export::Descriptor::of::<$op>();
                $crate::__segment_entry!($name, $op, rows::RowParams, rows_thread);
                $crate::__segment_entry!($name, $op, rows::RowParams, rows_small);
                $crate::__segment_entry!($name, $op, rows::RowParams, rows_warp);
                $crate::__segment_entry!($name, $op, rows::RowParams, rows_block);
                $crate::__segment_entry!($name, $op, rows::RowParams, rows_short);
                $crate::__segment_entry!($name, $op, rows::RowParams, rows_long);
                $crate::__segment_entry!($name, $op, columns::ColumnParams, columns);
                $crate::__segment_entry!($name, $op, columns::ColumnParams, columns_short);
                $crate::__segment_entry!($name, $op, columns::ColumnParams, columns_few);
                $crate::__segment_entry!($name, $op, columns::ColumnParams, flat);
                $crate::__segment_entry!($name, $op, columns::ColumnParams, narrow);
                $crate::__segment_entry!($name, $op, columns::ColumnParams, wide);
                $crate::__segment_entry!($name, $op, gather::GatherParams, gather);
                $crate::__segment_entry!($name, $op, irregular::IrregularParams, tiles);
                $crate::__segment_entry!($name, $op, irregular::IrregularParams, units);
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::in_family::<$op>(stringify!($name), $crate::export::Family::Segments, &[
                    $crate::__segment_simulated!($op, rows_thread),
                    $crate::__segment_simulated!($op, rows_small),
                    $crate::__segment_simulated!($op, rows_warp),
                    $crate::__segment_simulated!($op, rows_block),
                    $crate::__segment_simulated!($op, rows_short),
                    $crate::__segment_simulated!($op, rows_long),
                    $crate::__segment_simulated!($op, columns),
                    $crate::__segment_simulated!($op, columns_short),
                    $crate::__segment_simulated!($op, columns_few),
                    $crate::__segment_simulated!($op, flat),
                    $crate::__segment_simulated!($op, narrow),
                    $crate::__segment_simulated!($op, wide),
                    $crate::__segment_simulated!($op, gather),
                    $crate::__segment_simulated!($op, tiles),
                    $crate::__segment_simulated!($op, units),
                ]),
            )+],
        };
    };
}

/// Exports operators' kernels for scans: `scan_kernels! { pub static TABLE: sum_f32_scan => Sum<f32>, ... }`.
///
/// As [`kernels!`](crate::kernels), whose rules for names hold here too; the names of all families are told apart by what
/// they are called, so they differ. Each line emits the entry points `NAME__forward` and `NAME__reverse` (see
/// [`scan`](crate::scan)).
#[macro_export]
macro_rules! scan_kernels {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => $op:ty),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor = $crate::export::Descriptor::of::<$op>();
                $crate::__scan_entry!($name, $op, forward, launch_bounds);
                $crate::__scan_entry!($name, $op, reverse, launch_bounds);
                $crate::__scan_entry!($name, $op, persistent_forward, persistent::launch_bounds);
                $crate::__scan_entry!($name, $op, persistent_reverse, persistent::launch_bounds);
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::in_family::<$op>(stringify!($name), $crate::export::Family::Scans, &[
                    $crate::__scan_simulated!($op, forward),
                    $crate::__scan_simulated!($op, reverse),
                    $crate::__scan_simulated!($op, persistent_forward),
                    $crate::__scan_simulated!($op, persistent_reverse),
                ]),
            )+],
        };
    };
}

/// Exports operators' kernels for scans of many lines: `scan_line_kernels! { pub static TABLE: sum_f32_lines => Sum<f32>, ... }`.
///
/// As [`scan_kernels!`](crate::scan_kernels), beside which they stand: without them, scans of short rows, of columns and of
/// segments are right, and slower. Each line emits the entry points `NAME__rows_forward` and `NAME__segments_forward`
/// (see [`scan::segments`](crate::scan::segments)), `NAME__columns_forward`
/// and `NAME__narrow_forward` ([`scan::columns`](crate::scan::columns)), and the same four with `reverse`.
#[macro_export]
macro_rules! scan_line_kernels {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => $op:ty),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor = $crate::export::Descriptor::of::<$op>();
                $crate::__scan_line_entry!($name, $op, segments::SegmentParams, rows_forward, rows_bounds);
                $crate::__scan_line_entry!($name, $op, segments::SegmentParams, rows_reverse, rows_bounds);
                $crate::__scan_line_entry!($name, $op, segments::SegmentParams, segments_forward, cells_bounds);
                $crate::__scan_line_entry!($name, $op, segments::SegmentParams, segments_reverse, cells_bounds);
                $crate::__scan_line_entry!($name, $op, columns::ColumnParams, columns_forward, launch_bounds);
                $crate::__scan_line_entry!($name, $op, columns::ColumnParams, columns_reverse, launch_bounds);
                $crate::__scan_line_entry!($name, $op, columns::ColumnParams, narrow_forward, narrow_bounds);
                $crate::__scan_line_entry!($name, $op, columns::ColumnParams, narrow_reverse, narrow_bounds);
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::in_family::<$op>(stringify!($name), $crate::export::Family::ScanLines, &[
                    $crate::__scan_line_simulated!($op, rows_forward),
                    $crate::__scan_line_simulated!($op, rows_reverse),
                    $crate::__scan_line_simulated!($op, segments_forward),
                    $crate::__scan_line_simulated!($op, segments_reverse),
                    $crate::__scan_line_simulated!($op, columns_forward),
                    $crate::__scan_line_simulated!($op, columns_reverse),
                    $crate::__scan_line_simulated!($op, narrow_forward),
                    $crate::__scan_line_simulated!($op, narrow_reverse),
                ]),
            )+],
        };
    };
}

/// An entry point for scans of lines on the device.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_line_entry {
    ($name:ident, $op:ty, $module:ident :: $params:ident, $kernel:ident, $bounds:ident) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel)))]
            unsafe extern "ptx-kernel" fn entry(params: $crate::scan::$module::$params<$op>) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $crate::__scan_line_body!($op, $kernel, &params) }
            }
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__launch_bounds"))]
            static LAUNCH_BOUNDS: u32 = $crate::scan::$module::$bounds::<$op>();
            // What is kept across a look-back; not in loops.
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__allow_stack"))]
            static STACK: u32 = $crate::scan::$module::STACK;
        };
    };
}

/// The same entry point for the simulator.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_line_simulated {
    ($op:ty, $kernel:ident) => {
        $crate::export::Entry {
            kernel: stringify!($kernel),
            // SAFETY: the caller passes the parameters of this operator's kernel.
            simulate: |params| unsafe { $crate::__scan_line_body!($op, $kernel, &*params.cast()) },
        }
    };
}

/// The body of an entry point for scans of lines.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_line_body {
    ($op:ty, rows_forward, $params:expr) => {
        $crate::__scan_segments_body!($op, rows_forward, $params, 1)
    };
    ($op:ty, rows_reverse, $params:expr) => {
        $crate::__scan_segments_body!($op, rows_reverse, $params, 1)
    };
    ($op:ty, segments_forward, $params:expr) => {
        $crate::__scan_segments_body!(
            $op,
            segments_forward,
            $params,
            $crate::scan::segments::mark_words::<$op>()
        )
    };
    ($op:ty, segments_reverse, $params:expr) => {
        $crate::__scan_segments_body!(
            $op,
            segments_reverse,
            $params,
            $crate::scan::segments::mark_words::<$op>()
        )
    };
    ($op:ty, narrow_forward, $params:expr) => {
        $crate::__scan_columns_body!($op, narrow_forward, $params, narrow_values, stage_words)
    };
    ($op:ty, narrow_reverse, $params:expr) => {
        $crate::__scan_columns_body!($op, narrow_reverse, $params, narrow_values, stage_words)
    };
    ($op:ty, $kernel:ident, $params:expr) => {
        $crate::__scan_columns_body!($op, $kernel, $params, values, no_words)
    };
}

/// The same of columns.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_columns_body {
    ($op:ty, $kernel:ident, $params:expr, $values:ident, $words:ident) => {
        $crate::scan::columns::$kernel::<
            $op,
            { $crate::__vector!($op) },
            { $crate::scan::vectors::<$op>(size_of::<<$op as $crate::monoid::Monoid>::Item>()) },
            { $crate::monoid::tree::vector_len(size_of::<<$op as $crate::monoid::Monoid>::Output>()) },
        >(
            $params,
            $crate::scan::Room {
                stage: $crate::simt::shared!(
                    [$crate::scan::Word; { $crate::scan::columns::$words::<$op>() }]
                ),
                sums: $crate::__accs!($op, $crate::scan::columns::$values::<$op>()),
                drawn: $crate::simt::shared!([u64; 1]),
            },
        )
    };
}

/// The same of segments.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_segments_body {
    ($op:ty, $kernel:ident, $params:expr, $marks:expr) => {
        $crate::scan::segments::$kernel::<
            $op,
            { $crate::__vector!($op) },
            { $crate::scan::vectors::<$op>(size_of::<<$op as $crate::monoid::Monoid>::Item>()) },
            { $crate::monoid::tree::vector_len(size_of::<<$op as $crate::monoid::Monoid>::Output>()) },
            { $crate::scan::vectors::<$op>(size_of::<<$op as $crate::monoid::Monoid>::Output>()) },
        >(
            $params,
            $crate::scan::segments::SegmentRoom {
                tile: $crate::scan::Room {
                    stage: $crate::simt::shared!(
                        [$crate::scan::Word; { $crate::scan::segments::packed_words::<$op>() }]
                    ),
                    sums: $crate::__accs!($op, $crate::scan::sums::<$op>()),
                    drawn: $crate::simt::shared!([u64; 1]),
                },
                strips: $crate::__accs!($op, $crate::scan::segments::strip_values::<$op>()),
                marks: $crate::simt::shared!([u32; { $marks }]),
                warps: $crate::simt::shared!([u32; 16]),
                found: $crate::simt::shared!([u64; 2]),
            },
        )
    };
}

/// An entry point for scans on the device.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_entry {
    ($name:ident, $op:ty, $kernel:ident, $($bounds:ident)::+) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel)))]
            unsafe extern "ptx-kernel" fn entry(params: $crate::scan::ScanParams<$op>) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $crate::__scan_body!($op, $kernel, &params) }
            }
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__launch_bounds"))]
            static LAUNCH_BOUNDS: u32 = $crate::scan::$($bounds)::+::<$op>();
        };
    };
}

/// The same entry point for the simulator.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_simulated {
    ($op:ty, $kernel:ident) => {
        $crate::export::Entry {
            kernel: stringify!($kernel),
            // SAFETY: the caller passes the parameters of this operator's kernel.
            simulate: |params| unsafe { $crate::__scan_body!($op, $kernel, &*params.cast()) },
        }
    };
}

/// The body of an entry point for scans.
#[doc(hidden)]
#[macro_export]
macro_rules! __scan_body {
    ($op:ty, persistent_forward, $params:expr) => {
        $crate::__scan_body!(@ $op, persistent_forward, $params, $crate::__persistent_room!($op))
    };
    ($op:ty, persistent_reverse, $params:expr) => {
        $crate::__scan_body!(@ $op, persistent_reverse, $params, $crate::__persistent_room!($op))
    };
    ($op:ty, $kernel:ident, $params:expr) => {
        $crate::__scan_body!(@ $op, $kernel, $params, $crate::scan::Room {
            stage: $crate::simt::shared!([$crate::scan::Word; { $crate::scan::stage_words::<$op>() }]),
            sums: $crate::__accs!($op, $crate::scan::sums::<$op>()),
            drawn: $crate::simt::shared!([u64; 1]),
        })
    };
    (@ $op:ty, $kernel:ident, $params:expr, $room:expr) => {
        $crate::scan::$kernel::<
            $op,
            { $crate::__vector!($op) },
            { $crate::scan::vectors::<$op>(size_of::<<$op as $crate::monoid::Monoid>::Item>()) },
            { $crate::monoid::tree::vector_len(size_of::<<$op as $crate::monoid::Monoid>::Output>()) },
            { $crate::scan::vectors::<$op>(size_of::<<$op as $crate::monoid::Monoid>::Output>()) },
        >($params, $room)
    };
}

/// The shared memory of blocks that stay.
#[doc(hidden)]
#[macro_export]
macro_rules! __persistent_room {
    ($op:ty) => {
        $crate::scan::PersistentRoom {
            sums: $crate::__accs!($op, $crate::scan::persistent::values::<$op>()),
            drawn: $crate::simt::shared!([u64; $crate::scan::persistent::DRAWN]),
        }
    };
}

/// Exports operators' kernels for reductions by tag: `tag_kernels! { pub static TABLE: sum_f32_tags => Sum<f32>, ... }`.
///
/// As [`kernels!`](crate::kernels), whose rules for names hold here too; the names of all families are told apart by what
/// they are called, so they differ. Each line emits the entry points `NAME__few`, `NAME__many` and `NAME__fold` (see
/// [`tags`](crate::tags)), `NAME__clear`, `NAME__gather`, `NAME__sweep`, `NAME__scatter`, `NAME__split`, `NAME__sum` and `NAME__settle` (see
/// [`gather`](crate::tags::gather)), and `NAME__number`, `NAME__runs` and `NAME__spread` (see [`sorted`](crate::tags::sorted)), which take
/// tags of every width. Beyond as many tags as a warp keeps values of, operators that are not gathered need
/// [sorts](crate::sort_kernels) too.
#[macro_export]
macro_rules! tag_kernels {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => $op:ty),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor = $crate::export::Descriptor::of::<$op>();
                $crate::__tag_entry!($name, $op, few);
                $crate::__tag_entry!($name, $op, many);
                $crate::__tag_entry!($name, $op, fold);
                $crate::__tag_entry!($name, $op, clear);
                $crate::__tag_entry!($name, $op, gather);
                $crate::__tag_entry!($name, $op, sweep);
                $crate::__tag_entry!($name, $op, scatter);
                $crate::__tag_entry!($name, $op, split);
                $crate::__tag_entry!($name, $op, sum);
                $crate::__tag_entry!($name, $op, settle);
                $crate::__tag_entry!($name, $op, number);
                $crate::__tag_entry!($name, $op, runs);
                $crate::__tag_entry!($name, $op, spread);
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::in_family::<$op>(stringify!($name), $crate::export::Family::Tags, &[
                    $crate::__tag_simulated!($op, few),
                    $crate::__tag_simulated!($op, many),
                    $crate::__tag_simulated!($op, fold),
                    $crate::__tag_simulated!($op, clear),
                    $crate::__tag_simulated!($op, gather),
                    $crate::__tag_simulated!($op, sweep),
                    $crate::__tag_simulated!($op, scatter),
                    $crate::__tag_simulated!($op, split),
                    $crate::__tag_simulated!($op, sum),
                    $crate::__tag_simulated!($op, settle),
                    $crate::__tag_simulated!($op, number),
                    $crate::__tag_simulated!($op, runs),
                    $crate::__tag_simulated!($op, spread),
                ]),
            )+],
        };
    };
}

/// Exports operators' kernels for reductions by key: `key_kernels! { pub static TABLE: sum_f32_by_i32 => (i32, Sum<f32>), ... }`.
///
/// A line names the keys' type, the operator, and an [`Equality`](crate::monoid::keyed::Equality) unless it is `==`. As for
/// [`kernels!`](crate::kernels), whose rules for names hold here too; the names of all families are told apart by what they are
/// called, so they differ. Each line emits the entry point `NAME__runs` (see [`runs`](crate::scan::runs)).
#[macro_export]
macro_rules! key_kernels {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => ($key:ty, $op:ty $(, $equality:ty)?)),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor =
                    $crate::export::Descriptor::of::<$crate::__runs!($key, $op $(, $equality)?)>();
                #[unsafe(export_name = concat!(stringify!($name), "__runs"))]
                unsafe extern "ptx-kernel" fn entry(
                    params: $crate::scan::runs::RunParams<$key, $crate::__equality!($($equality)?), $op>,
                ) {
                    // SAFETY: the launch promises what the parameters' documentation asks for.
                    unsafe { $crate::__key_body!($key, $op, &params) }
                }
                #[unsafe(export_name = concat!(stringify!($name), "__runs__launch_bounds"))]
                static LAUNCH_BOUNDS: u32 = $crate::scan::runs::run_bounds::<$key, $op>();
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::in_family::<$crate::__runs!($key, $op $(, $equality)?)>(
                    stringify!($name),
                    $crate::export::Family::Keys,
                    &[$crate::export::Entry {
                        kernel: "runs",
                        // SAFETY: the caller passes the parameters of this operator's kernel.
                        simulate: |params| unsafe {
                            type Params = $crate::scan::runs::RunParams<$key, $crate::__equality!($($equality)?), $op>;
                            $crate::__key_body!($key, $op, &*params.cast::<Params>())
                        },
                    }],
                ),
            )+],
        };
    };
}

/// Exports sorts of pairs: `sort_kernels! { pub static TABLE: sort_u64_u32 => (u64, u32), ... }`.
///
/// A line names the bits of keys and of what travels with them, `u32` or `u64` each. As for [`kernels!`](crate::kernels), whose rules
/// for names hold here too. Each line emits the entry points `NAME__histogram`, `NAME__offsets`, `NAME__pass`, `NAME__check`, `NAME__gather` and
/// `NAME__firsts` (see [`sort`](crate::sort)).
#[macro_export]
macro_rules! sort_kernels {
    ($(#[$meta:meta])* $vis:vis static $table:ident: $($name:ident => ($key:ty, $value:ty)),+ $(,)?) => {
        $(
            #[cfg(target_arch = "nvptx64")]
            const _: () = {
                #[unsafe(export_name = concat!(stringify!($name), "__descriptor"))]
                static DESCRIPTOR: $crate::export::Descriptor = $crate::export::Descriptor::of_pairs::<$key, $value>();
                $crate::__sort_entry!($name, $key, $value, histogram, $crate::sort::THREADS);
                $crate::__sort_entry!($name, $key, $value, offsets, $crate::sort::THREADS);
                $crate::__sort_entry!($name, $key, $value, pass, $crate::sort::pass_bounds::<$key, $value>());
                // What is kept across a look-back; not in loops.
                const _: () = {
                    #[unsafe(export_name = concat!(stringify!($name), "__pass__allow_stack"))]
                    static STACK: u32 = $crate::sort::STACK;
                };
                $crate::__sort_entry!($name, $key, $value, check, $crate::sort::THREADS);
                $crate::__sort_entry!($name, $key, $value, gather, $crate::sort::THREADS);
                $crate::__sort_entry!($name, $key, $value, firsts, $crate::sort::THREADS);
            };
        )+

        #[cfg(not(target_arch = "nvptx64"))]
        $(#[$meta])*
        $vis static $table: $crate::export::Table = $crate::export::Table {
            krate: env!("CARGO_PKG_NAME"),
            exports: &[$(
                $crate::export::Export::of_pairs::<$key, $value>(stringify!($name), &[
                    $crate::__sort_simulated!($key, $value, histogram),
                    $crate::__sort_simulated!($key, $value, offsets),
                    $crate::__sort_simulated!($key, $value, pass),
                    $crate::__sort_simulated!($key, $value, check),
                    $crate::__sort_simulated!($key, $value, gather),
                    $crate::__sort_simulated!($key, $value, firsts),
                ]),
            )+],
        };
    };
}

/// An entry point of sorts on the device.
#[doc(hidden)]
#[macro_export]
macro_rules! __sort_entry {
    ($name:ident, $key:ty, $value:ty, $kernel:ident, $bounds:expr) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel)))]
            unsafe extern "ptx-kernel" fn entry(params: $crate::__sort_params!($key, $value, $kernel)) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $crate::__sort_body!($key, $value, $kernel, &params) }
            }
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__launch_bounds"))]
            static LAUNCH_BOUNDS: u32 = $bounds;
        };
    };
}

/// The same entry point for the simulator.
#[doc(hidden)]
#[macro_export]
macro_rules! __sort_simulated {
    ($key:ty, $value:ty, $kernel:ident) => {
        $crate::export::Entry {
            kernel: stringify!($kernel),
            // SAFETY: the caller passes the parameters of this kernel.
            simulate: |params| unsafe {
                type Params = $crate::__sort_params!($key, $value, $kernel);
                $crate::__sort_body!($key, $value, $kernel, &*params.cast::<Params>())
            },
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __sort_params {
    ($key:ty, $value:ty, gather) => {
        $crate::sort::GatherParams
    };
    ($key:ty, $value:ty, firsts) => {
        $crate::sort::FirstParams<$key>
    };
    ($key:ty, $value:ty, $kernel:ident) => {
        $crate::sort::SortParams<$key, $value>
    };
}

/// The body of an entry point of sorts.
#[doc(hidden)]
#[macro_export]
macro_rules! __sort_body {
    ($key:ty, $value:ty, histogram, $params:expr) => {
        $crate::sort::histogram::<$key, $value>(
            $params,
            $crate::simt::shared!([u32; { $crate::sort::BINS * size_of::<$key>() }]),
        )
    };
    ($key:ty, $value:ty, offsets, $params:expr) => {
        $crate::sort::offsets::<$key, $value>(
            $params,
            $crate::simt::shared!([u32; { $crate::block::SHARED }]),
        )
    };
    ($key:ty, $value:ty, pass, $params:expr) => {
        $crate::sort::pass::<$key, $value>(
            $params,
            $crate::sort::PassRoom {
                stage: $crate::simt::shared!([u64; { $crate::sort::stage_words::<$key, $value>() }]),
                counts: $crate::simt::shared!([u32; { $crate::sort::COUNTERS }]),
                bases: $crate::simt::shared!([u32; { $crate::sort::BINS }]),
                sums: $crate::simt::shared!([u32; { $crate::block::SHARED }]),
                drawn: $crate::simt::shared!([u64; 1]),
            },
        )
    };
    ($key:ty, $value:ty, check, $params:expr) => {
        $crate::sort::check::<$key, $value>($params)
    };
    ($key:ty, $value:ty, gather, $params:expr) => {
        $crate::sort::gather($params)
    };
    ($key:ty, $value:ty, firsts, $params:expr) => {
        $crate::sort::firsts::<$key>($params)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __equality {
    () => {
        $crate::monoid::keyed::Equal
    };
    ($equality:ty) => {
        $equality
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __runs {
    ($key:ty, $op:ty $(, $equality:ty)?) => {
        $crate::monoid::keyed::Runs<$key, $crate::__equality!($($equality)?), $op>
    };
}

/// The body of an entry point for reductions by key.
#[doc(hidden)]
#[macro_export]
macro_rules! __key_body {
    ($key:ty, $op:ty, $params:expr) => {
        $crate::scan::runs::runs::<
            $key,
            _,
            $op,
            { $crate::monoid::tree::vector_len(size_of::<$key>()) },
            { $crate::scan::runs::run_vectors::<$key, $op>(size_of::<$key>()) },
            { $crate::__vector!($op) },
            {
                $crate::scan::runs::run_vectors::<$key, $op>(
                    size_of::<<$op as $crate::monoid::Monoid>::Item>(),
                )
            },
        >(
            $params,
            $crate::scan::runs::RunRoom {
                keys: $crate::simt::shared!(
                    [$crate::scan::Word; {
                        $crate::scan::runs::key_words::<$key, $op>()
                            * $crate::scan::runs::run_warps::<$key, $op>()
                    }]
                ),
                values: $crate::simt::shared!(
                    [$crate::scan::Word; {
                        $crate::scan::runs::value_words::<$key, $op>()
                            * $crate::scan::runs::run_warps::<$key, $op>()
                    }]
                ),
                sums: $crate::simt::shared!(
                    [$crate::monoid::keyed::RunsSoFar<<$op as $crate::monoid::Monoid>::Acc>; {
                        $crate::scan::runs::run_sums::<$key, $op>()
                    }]
                ),
                drawn: $crate::simt::shared!([u64; 1]),
            },
        )
    };
}

/// An entry point for reductions by tag on the device.
#[doc(hidden)]
#[macro_export]
macro_rules! __tag_entry {
    ($name:ident, $op:ty, $kernel:ident) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel)))]
            unsafe extern "ptx-kernel" fn entry(params: $crate::__tag_params!($op, $kernel)) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $crate::__tag_body!($op, $kernel, &params) }
            }
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__launch_bounds"))]
            static LAUNCH_BOUNDS: u32 = $crate::__tag_bounds!($op, $kernel);
        };
    };
}

/// The same entry point for the simulator.
#[doc(hidden)]
#[macro_export]
macro_rules! __tag_simulated {
    ($op:ty, $kernel:ident) => {
        $crate::export::Entry {
            kernel: stringify!($kernel),
            // SAFETY: the caller passes the parameters of this operator's kernel.
            simulate: |params| unsafe {
                type Params = $crate::__tag_params!($op, $kernel);
                $crate::__tag_body!($op, $kernel, &*params.cast::<Params>())
            },
        }
    };
}

/// The parameters of such an entry point.
#[doc(hidden)]
#[macro_export]
macro_rules! __tag_params {
    ($op:ty, runs) => {
        $crate::scan::runs::RunParams<i32, $crate::monoid::keyed::Equal, $op>
    };
    ($op:ty, number) => {
        $crate::tags::sorted::SortedParams<$op>
    };
    ($op:ty, spread) => {
        $crate::tags::sorted::SortedParams<$op>
    };
    ($op:ty, $kernel:ident) => {
        $crate::tags::TagParams<$op>
    };
}

/// The launch bounds of such an entry point.
#[doc(hidden)]
#[macro_export]
macro_rules! __tag_bounds {
    ($op:ty, gather) => {
        $crate::tags::gather::threads::<$op>() | $crate::tags::gather::RESIDENT << 16
    };
    ($op:ty, sweep) => {
        $crate::tags::gather::LONE_THREADS | 1 << 16
    };
    ($op:ty, scatter) => {
        $crate::tags::gather::SCATTER_THREADS | $crate::tags::gather::RESIDENT << 16
    };
    ($op:ty, split) => {
        $crate::tags::partition::SPLIT_THREADS | $crate::tags::partition::RESIDENT << 16
    };
    ($op:ty, sum) => {
        $crate::tags::partition::SUM_THREADS | 1 << 16
    };
    ($op:ty, many) => {
        $crate::tags::many_bounds::<$op>()
    };
    ($op:ty, runs) => {
        $crate::scan::runs::run_bounds::<i32, $op>()
    };
    ($op:ty, number) => {
        $crate::tags::sorted::THREADS
    };
    ($op:ty, spread) => {
        $crate::tags::sorted::THREADS
    };
    ($op:ty, $kernel:ident) => {
        $crate::tags::launch_bounds::<$op>()
    };
}

/// The body of an entry point for reductions by tag.
#[doc(hidden)]
#[macro_export]
macro_rules! __tag_body {
    ($op:ty, few, $params:expr) => {
        if <$op as $crate::monoid::Monoid>::COMMUTATIVE {
            $crate::tags::few::<$op, { $crate::tags::strips::<$op>() }>($params)
        }
    };
    ($op:ty, many, $params:expr) => {
        $crate::tags::many::<$op, { $crate::tags::rows::<$op>() }>($params)
    };
    ($op:ty, fold, $params:expr) => {
        $crate::tags::fold::<$op>(
            $params,
            $crate::__accs!($op, $crate::tags::FOLD_WARPS),
            $crate::simt::shared!([u32; $crate::tags::FOLD_WARPS]),
        )
    };
    ($op:ty, clear, $params:expr) => {
        if const { $crate::tags::gather::serves::<$op>() } {
            $crate::tags::gather::clear::<$op>(
                $params,
                $crate::simt::shared!([u32; $crate::tags::gather::SIMPLE_WARPS]),
            )
        }
    };
    ($op:ty, gather, $params:expr) => {
        if const { $crate::tags::gather::serves::<$op>() } {
            $crate::tags::gather::gather::<$op, true, 1>($params, $crate::simt::shared!([u32; 1]))
        }
    };
    ($op:ty, sweep, $params:expr) => {
        if const { $crate::tags::gather::serves::<$op>() } {
            $crate::tags::gather::gather::<$op, true, 2>($params, $crate::simt::shared!([u32; 1]))
        }
    };
    ($op:ty, scatter, $params:expr) => {
        if const { $crate::tags::gather::serves::<$op>() } {
            $crate::tags::gather::gather::<$op, false, 1>($params, $crate::simt::shared!([u32; 1]))
        }
    };
    ($op:ty, split, $params:expr) => {
        if const { $crate::tags::partition::serves::<$op>() } {
            $crate::tags::partition::split::<$op, { $crate::tags::partition::strips::<$op>() }>(
                $params,
                $crate::simt::shared!([u32; $crate::tags::partition::MOST_LISTS as usize + 1]),
                $crate::simt::shared!([u32; $crate::block::SHARED]),
            )
        }
    };
    ($op:ty, sum, $params:expr) => {
        if const { $crate::tags::partition::serves::<$op>() } {
            $crate::tags::partition::sum::<$op, { $crate::tags::partition::in_flight::<$op>() }>(
                $params,
                $crate::simt::shared!([u32; 4]),
                $crate::simt::shared!([u32; $crate::block::SHARED]),
            )
        }
    };
    ($op:ty, settle, $params:expr) => {
        if const { $crate::tags::gather::serves::<$op>() } {
            $crate::tags::gather::settle::<$op>($params)
        }
    };
    ($op:ty, number, $params:expr) => {
        if const { $crate::tags::sorted::serves::<$op>() } {
            $crate::tags::sorted::number::<$op>($params)
        }
    };
    ($op:ty, runs, $params:expr) => {
        if const { $crate::tags::sorted::serves::<$op>() } {
            $crate::__key_body!(i32, $op, $params)
        }
    };
    ($op:ty, spread, $params:expr) => {
        if const { $crate::tags::sorted::serves::<$op>() } {
            $crate::tags::sorted::spread::<$op>($params)
        }
    };
}

/// An entry point for segments on the device.
#[doc(hidden)]
#[macro_export]
macro_rules! __segment_entry {
    ($name:ident, $op:ty, $module:ident :: $params:ident, $kernel:ident) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel)))]
            unsafe extern "ptx-kernel" fn entry(params: $crate::segments::$module::$params<$op>) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $crate::__segment_body!($op, $kernel, &params) }
            }
            // As for whole arrays.
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__launch_bounds"))]
            static LAUNCH_BOUNDS: u32 = $crate::__segment_bounds!($op, $kernel);
        };
    };
}

/// The most threads in a block of that kernel, and how many blocks a multiprocessor is to hold.
#[doc(hidden)]
#[macro_export]
macro_rules! __segment_bounds {
    ($op:ty, columns) => {
        $crate::segments::columns::bounds::<$op>()
    };
    ($op:ty, tiles) => {
        $crate::export::crowded::<$op>(
            $crate::segments::THREADS,
            6,
            $crate::export::resident::<$op>(
                $crate::segments::THREADS,
                if <$op as $crate::monoid::Monoid>::ANY_ORDER { 6 } else { 4 },
            ),
        )
    };
    ($op:ty, units) => {
        $crate::export::crowded::<$op>(
            $crate::monoid::tree::MAX_GROUPS,
            3,
            $crate::export::resident::<$op>($crate::monoid::tree::MAX_GROUPS, 2),
        )
    };
    ($op:ty, wide) => {
        $crate::segments::wide::bounds::<$op>()
    };
    ($op:ty, flat) => {
        $crate::segments::flat::bounds::<$op>()
    };
    ($op:ty, columns_few) => {
        $crate::export::resident::<$op>(
            $crate::segments::THREADS,
            $crate::segments::columns::few_blocks::<$op>(),
        )
    };
    ($op:ty, rows_small) => {
        $crate::export::few_lanes::<$op>(
            $crate::segments::THREADS,
            if size_of::<<$op as $crate::monoid::Monoid>::Item>() <= 4 { 5 } else { 4 },
        )
    };
    ($op:ty, rows_short) => {
        $crate::segments::rows::large_bounds::<$op>()
    };
    ($op:ty, rows_block) => {
        $crate::export::bounds::<$op>($crate::monoid::tree::MAX_GROUPS)
    };
    ($op:ty, rows_long) => {
        $crate::export::bounds::<$op>($crate::monoid::tree::MAX_GROUPS)
    };
    ($op:ty, narrow) => {
        $crate::segments::narrow::bounds::<$op>()
    };
    ($op:ty, gather) => {
        $crate::export::bounds::<$op>($crate::monoid::tree::MAX_GROUPS)
    };
    ($op:ty, $kernel:ident) => {
        $crate::export::bounds::<$op>($crate::segments::THREADS)
    };
}

/// The same entry point for the simulator.
#[doc(hidden)]
#[macro_export]
macro_rules! __segment_simulated {
    ($op:ty, $kernel:ident) => {
        $crate::export::Entry {
            kernel: stringify!($kernel),
            // SAFETY: the caller passes the parameters of this operator's kernel.
            simulate: |params| unsafe { $crate::__segment_body!($op, $kernel, &*params.cast()) },
        }
    };
}

/// The body of an entry point for segments.
#[doc(hidden)]
#[macro_export]
macro_rules! __segment_body {
    ($op:ty, rows_thread, $params:expr) => {
        $crate::segments::rows::thread::<$op, { $crate::__vector!($op) }>($params, $crate::__tile!())
    };
    ($op:ty, rows_small, $params:expr) => {
        $crate::segments::rows::small::<$op, { $crate::__vector!($op) }>($params, $crate::__tile!())
    };
    ($op:ty, rows_warp, $params:expr) => {
        $crate::segments::rows::warp::<$op, { $crate::__vector!($op) }, { $crate::device::VECTORS_IN_FLIGHT }>($params)
    };
    ($op:ty, rows_block, $params:expr) => {
        $crate::segments::rows::block::<$op, { $crate::__vector!($op) }, { $crate::device::VECTORS_IN_FLIGHT }>(
            $params,
            $crate::__shared!($op),
        )
    };
    ($op:ty, rows_short, $params:expr) => {
        $crate::segments::rows::large::<$op, { $crate::__vector!($op) }, { $crate::device::VECTORS_IN_FLIGHT }>(
            $params,
            $crate::__accs!($op, $crate::segments::rows::slots::<$op>()),
        )
    };
    ($op:ty, rows_long, $params:expr) => {
        $crate::segments::rows::long::<$op, { $crate::__vector!($op) }, { $crate::device::VECTORS_IN_FLIGHT }>(
            $params,
            $crate::__shared!($op),
        )
    };
    ($op:ty, columns, $params:expr) => {
        $crate::segments::columns::columns::<$op, { $crate::__vector!($op) }>(
            $params,
            $crate::__accs!($op, $crate::segments::columns::slots::<$op>()),
            $crate::simt::shared!([u32; 1]),
        )
    };
    ($op:ty, columns_short, $params:expr) => {
        $crate::segments::columns::short::<$op, { $crate::__vector!($op) }>($params)
    };
    ($op:ty, columns_few, $params:expr) => {
        $crate::segments::columns::few::<
            $op,
            { $crate::__vector!($op) },
            {
                $crate::segments::columns::abreast(
                    size_of::<<$op as $crate::monoid::Monoid>::Item>(),
                    size_of::<<$op as $crate::monoid::Monoid>::Acc>(),
                ) as usize
            },
        >(
            $params,
            $crate::__accs!($op, $crate::segments::columns::few_slots::<$op>()),
        )
    };
    ($op:ty, narrow, $params:expr) => {
        $crate::segments::narrow::narrow::<$op, { $crate::__vector!($op) }>(
            $params,
            $crate::__accs!($op, $crate::segments::narrow::slots::<$op>()),
        )
    };
    ($op:ty, flat, $params:expr) => {
        $crate::segments::flat::flat::<$op, { $crate::__vector!($op) }>(
            $params,
            $crate::__accs!($op, $crate::segments::flat::slots::<$op>($crate::__vector!($op))),
            $crate::simt::shared!([u32; 1]),
        )
    };
    ($op:ty, wide, $params:expr) => {
        if const { $crate::segments::wide::abreast_of::<$op>() > 1 } {
            $crate::segments::wide::wide::<$op, { $crate::__vector!($op) }, { $crate::segments::wide::abreast_of::<$op>() }>(
                $params,
                $crate::__accs!($op, $crate::segments::wide::slots_of::<$op>()),
                $crate::simt::shared!([u32; 1]),
            )
        }
    };
    ($op:ty, gather, $params:expr) => {
        $crate::segments::gather::gather::<$op, { $crate::__vector!($op) }>(
            $params,
            $crate::__shared!($op),
            $crate::simt::shared!([$crate::segments::gather::Axis; { 2 * $crate::segments::gather::MAX_AXES }]),
        )
    };
    ($op:ty, tiles, $params:expr) => {
        $crate::segments::irregular::tiles::<$op, { $crate::__vector!($op) }>(
            $params,
            $crate::__tile!(),
        )
    };
    ($op:ty, units, $params:expr) => {
        $crate::segments::irregular::units::<$op, { $crate::__vector!($op) }, { $crate::device::VECTORS_IN_FLIGHT }>(
            $params,
            $crate::__shared!($op),
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tile {
    () => {
        $crate::simt::shared!([$crate::segments::tile::Word; $crate::segments::tile::TILE_WORDS])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __accs {
    ($op:ty, $count:expr) => {
        $crate::simt::shared!([<$op as $crate::monoid::Monoid>::Acc; { $count }])
    };
}

/// An entry point on the device.
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident, $op:ty, $kernel:ident) => {
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel)))]
            unsafe extern "ptx-kernel" fn entry(params: $crate::device::ReduceParams<$op>) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $crate::__body!($op, $kernel, &params) }
            }
            // So that a block's registers suffice for as many threads, however large the accumulator.
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__launch_bounds"))]
            static LAUNCH_BOUNDS: u32 = $crate::__bounds!($op, $kernel);
            #[unsafe(export_name = concat!(stringify!($name), "__", stringify!($kernel), "__allow_stack"))]
            static STACK: u32 = $crate::__stack!($op, $kernel);
        };
    };
}

/// The most threads in a block of that kernel.
#[doc(hidden)]
#[macro_export]
macro_rules! __bounds {
    ($op:ty, reduce_short) => {
        $crate::export::bounds::<$op>($crate::monoid::tree::SHORT_GROUPS)
    };
    ($op:ty, reduce_long) => {
        $crate::export::long_bounds::<$op>($crate::monoid::tree::MAX_GROUPS)
    };
    ($op:ty, $kernel:ident) => {
        $crate::export::bounds::<$op>($crate::monoid::tree::MAX_GROUPS)
    };
}

/// The stack that a kernel may have.
#[doc(hidden)]
#[macro_export]
macro_rules! __stack {
    ($op:ty, reduce_long) => {
        $crate::export::stack::<$op>(true)
    };
    ($op:ty, $kernel:ident) => {
        $crate::export::stack::<$op>(false)
    };
}

/// The same entry point for the simulator.
#[doc(hidden)]
#[macro_export]
macro_rules! __simulated {
    ($op:ty, $kernel:ident) => {
        $crate::export::Entry {
            kernel: stringify!($kernel),
            // SAFETY: the caller passes the parameters of this operator's kernel.
            simulate: |params| unsafe { $crate::__body!($op, $kernel, &*params.cast()) },
        }
    };
}

/// The body of an entry point: everything that must be concrete (shared memory, vector length) in one place.
#[doc(hidden)]
#[macro_export]
macro_rules! __body {
    ($op:ty, reduce_one, $params:expr) => {
        $crate::device::reduce_one::<
            $op,
            { $crate::export::at_once::<$op>() },
            { $crate::device::VECTORS_IN_FLIGHT },
        >($params, $crate::__shared!($op))
    };
    ($op:ty, reduce_few, $params:expr) => {
        $crate::device::reduce_few::<
            $op,
            { $crate::export::at_once::<$op>() },
            { $crate::device::VECTORS_IN_FLIGHT },
        >($params, $crate::__shared!($op))
    };
    ($op:ty, reduce_short, $params:expr) => {
        $crate::__chunks!($op, $crate::monoid::tree::SHORT_GROUPS, $params)
    };
    ($op:ty, reduce_long, $params:expr) => {
        $crate::__chunks!($op, $crate::monoid::tree::MAX_GROUPS, $params)
    };
}

/// The body of the entry points of several chunks.
#[cfg(target_arch = "nvptx64")]
#[doc(hidden)]
#[macro_export]
macro_rules! __chunks {
    ($op:ty, $groups:expr, $params:expr) => {
        $crate::device::reduce_chunks::<
            $op,
            { $crate::export::at_once::<$op>() },
            { $crate::device::VECTORS_IN_FLIGHT },
        >($params, $groups, $crate::__shared!($op))
    };
}

/// The same for the simulator.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __chunks {
    ($op:ty, $groups:expr, $params:expr) => {
        $crate::device::simulate_chunks::<
            $op,
            { $crate::export::at_once::<$op>() },
            { $crate::device::VECTORS_IN_FLIGHT },
        >($params, $crate::__shared!($op))
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __vector {
    ($op:ty) => {
        $crate::monoid::tree::vector_len(size_of::<<$op as $crate::monoid::Monoid>::Item>())
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __shared {
    ($op:ty) => {
        $crate::simt::shared!([<$op as $crate::monoid::Monoid>::Acc; { $crate::block::SHARED }])
    };
}
