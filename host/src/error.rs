//! What can go wrong, with the numbers and with what to do about it.

use warpfold_gpu_kernels::export::Descriptor;

/// An error of an engine, a plan or a reduction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan has more blocks than the device's grid can have.
    #[error("{n} items need {blocks} blocks, the device's grid holds {limit}: reduce the array in pieces")]
    GridTooLarge {
        /// Items.
        n: u64,
        /// Blocks that the plan wants.
        blocks: u64,
        /// Blocks that a grid may have.
        limit: u32,
    },
    /// The plan has more threads in a block than the device allows.
    #[error("{n} items need blocks of {threads} threads, the device allows {limit}: use the CPU backend")]
    BlockTooLarge {
        /// Items.
        n: u64,
        /// Threads in a block that the plan wants.
        threads: u32,
        /// Threads that a block may have.
        limit: u32,
    },
    /// A CUDA engine was asked for, and the crate was built without the feature `cuda`.
    #[error("built without the feature `cuda`: build with `--features cuda` to use a GPU")]
    CudaNotBuilt,
    /// The driver library in use is the stub that a CUDA toolkit has for linking.
    #[error(
        "the CUDA driver library is a linker's stub: put the driver's own libcuda.so.1 first on the library path"
    )]
    NoDriver,
    /// There is no CUDA device.
    #[error("no CUDA device: use the CPU backend, or check `nvidia-smi` and CUDA_VISIBLE_DEVICES")]
    NoDevice,
    /// A device number beyond the last.
    #[error("no CUDA device {ordinal}: there are {count}, counted from 0")]
    NoSuchDevice {
        /// The device that was asked for.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },
    /// Something that only a CUDA engine has was asked of another.
    #[error("{what} needs a CUDA engine, this one computes on the host: make it with `Engine::cuda`")]
    NeedsCuda {
        /// What was asked for.
        what: &'static str,
    },
    /// Arrays that are read or written side by side have different lengths.
    #[error("columns of {first} and of {other} items cannot be read side by side: pass as many of each")]
    ColumnLengths {
        /// Items of the first.
        first: u64,
        /// Items of another.
        other: u64,
    },
    /// A tag that no result belongs to.
    #[error(
        "tag {index} is {tag}, not below {tags}: ask for more tags, or have `ignore_out_of_range` leave such items out"
    )]
    TagOutOfRange {
        /// Where the first such tag stands.
        index: u64,
        /// What it is.
        tag: i128,
        /// How many tags there are.
        tags: u64,
    },
    /// More tags than are counted.
    #[error("{tags} tags are too many, {limit} are counted: group by them instead (`Engine::group_by`)")]
    TooManyTags {
        /// Tags that were asked for.
        tags: u64,
        /// The most.
        limit: u64,
    },
    /// More items than a device sorts.
    #[error(
        "{items} items are too many to sort on a device, {limit} are sorted: group them on the CPU, or in pieces"
    )]
    TooManyToSort {
        /// Items.
        items: u64,
        /// The most.
        limit: u64,
    },
    /// No loaded table exports the operator.
    #[error(
        "no kernel for {operator} (items of {item}) is loaded: add a line like `{line}` to the `{list}` of a kernel \
         crate, and give its table and modules to `Engine::load`; the CPU backend needs none"
    )]
    NoKernel {
        /// The operator's type.
        operator: &'static str,
        /// The item's type.
        item: &'static str,
        /// The line that would export it.
        line: String,
        /// The macro whose list the line belongs in.
        list: &'static str,
    },
    /// A table exports the operator, but its modules were not compiled in.
    #[error(
        "{krate} exports `{export}`, but the modules given to `Engine::load` have none of that name: compile the crate \
         with warpfold-ptx-builder in build.rs"
    )]
    NotCompiled {
        /// The kernel crate.
        krate: &'static str,
        /// The export's name.
        export: &'static str,
    },
    /// No image of a module suits the device.
    #[error(
        "`{export}` was compiled for {}, the device has compute capability {}.{}: build it for that one or an older one",
        images.join(", "), compute_capability.0, compute_capability.1
    )]
    NoImage {
        /// The export's name.
        export: &'static str,
        /// The device's compute capability.
        compute_capability: (u32, u32),
        /// What there is.
        images: Vec<String>,
    },
    /// The driver refused a module.
    #[error("the driver refused `{export}` for {image}: {name}{}{log}", if log.is_empty() { "" } else { "\n" })]
    ModuleLoad {
        /// The export's name.
        export: &'static str,
        /// The image that was tried.
        image: String,
        /// The driver's name for the error.
        name: String,
        /// What its compiler said.
        log: String,
    },
    /// A module was compiled from other types than the host's.
    #[error(
        "`{export}` was compiled for another layout of {operator} than the host's: rebuild host and kernels from the \
         same sources, and make the types repr(C).\n  host   {host:?}\n  device {device:?}"
    )]
    LayoutMismatch {
        /// The export's name.
        export: &'static str,
        /// The operator's type.
        operator: &'static str,
        /// What the host was compiled with.
        host: Box<Descriptor>,
        /// What the module was compiled with.
        device: Box<Descriptor>,
    },
    /// A module's descriptor is of another version.
    #[error(
        "the descriptor of `{export}` has {found} bytes instead of {expected}: rebuild the kernels with this version of \
         warpfold"
    )]
    DescriptorSize {
        /// The export's name.
        export: &'static str,
        /// Bytes of the host's descriptor.
        expected: usize,
        /// Bytes of the module's.
        found: usize,
    },
    /// An operator whose parameters do not fit.
    #[error(
        "the kernel's parameters take {bytes} bytes with this operator, {limit} fit: keep large tables on the device"
    )]
    OperatorTooLarge {
        /// Bytes needed.
        bytes: usize,
        /// Bytes that fit.
        limit: usize,
    },
    /// A captured launch needs a workspace, and none is ready.
    #[error(
        "a captured reduction needs a workspace of {bytes} bytes of its own, which cannot be made during the capture: \
         call `Reducer::warm_up` before, or pass one to `reduce_into_with`"
    )]
    WarmUpFirst {
        /// Bytes needed.
        bytes: u64,
    },
    /// The stream is being captured, and what was asked for waits for it.
    #[error("the stream is being captured, its work cannot be waited for: use `reduce_into`")]
    Capturing,
    /// The stream's capture has been invalidated by an operation that it forbids.
    #[error(
        "the stream's capture has been invalidated by an earlier call that a capture forbids: end it and begin anew"
    )]
    CaptureInvalidated,
    /// A workspace that is too small.
    #[error(
        "the reduction needs a workspace of {needed} bytes, this one has {available}: make it for more items"
    )]
    WorkspaceTooSmall {
        /// Bytes needed.
        needed: u64,
        /// Bytes it has.
        available: u64,
    },
    /// A workspace of another engine.
    #[error("the workspace belongs to another engine: make it with this reducer")]
    ForeignWorkspace,
    /// An output without room for a result.
    #[error("the output has no items, the result needs one")]
    NoRoomForResult,
    /// An address that is not a multiple of its type's alignment.
    #[error("device address {address:#x} is not aligned to {align} bytes, as its items must be")]
    Misaligned {
        /// The address.
        address: u64,
        /// The alignment in bytes.
        align: usize,
    },
    /// An address that is not in any device's memory.
    #[error("{address:#x} is no device memory: was it freed?")]
    NotDeviceMemory {
        /// The address.
        address: u64,
    },
    /// Memory of another device.
    #[error(
        "{address:#x} is memory of device {found}, the engine computes on device {expected}: copy it over first"
    )]
    OtherDevice {
        /// The address.
        address: u64,
        /// The engine's device.
        expected: u32,
        /// The memory's device.
        found: u32,
    },
    /// A copy between arrays of different lengths.
    #[error("the array has {expected} items, the slice {found}")]
    LengthMismatch {
        /// Items of the array.
        expected: u64,
        /// Items of the slice.
        found: u64,
    },
    /// A range that ends behind an array's end.
    #[error("the range {start}..{end} does not lie within 0..{len}")]
    OutOfRange {
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
        /// The array's length.
        len: u64,
    },
    /// Not enough device memory.
    #[error(
        "{needed} bytes of device memory are needed, {free} of {total} are free: reduce the array in pieces"
    )]
    DeviceMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The simulator found a fault in a kernel or an operator.
    #[error("the simulator stopped {kernel}<<<{grid}, {block}>>> over {n} items: {fault}")]
    Simulator {
        /// The entry point.
        kernel: String,
        /// Blocks.
        grid: u32,
        /// Threads in a block.
        block: u32,
        /// Items.
        n: u64,
        /// What is wrong, with block, thread, call and source line.
        fault: String,
    },
    /// A strategy that cannot fold such segments in the order that they have.
    #[error(
        "strategy `{strategy}` does not suit segments of {n} items: {why}; leave the choice to the planner"
    )]
    StrategyUnfit {
        /// The strategy that was forced.
        strategy: &'static str,
        /// Items of a segment.
        n: u64,
        /// What does not fit.
        why: &'static str,
    },
    /// More axes than kernels know, after those that are one in memory have been joined.
    #[error(
        "{axes} axes of one kind remain after joining, kernels know {limit}: reduce along them in two steps"
    )]
    TooManyAxes {
        /// Axes that are kept, or that are reduced.
        axes: usize,
        /// The most.
        limit: usize,
    },
    /// Segments that were prepared for items of another size.
    #[error(
        "the segments were prepared for items of {prepared} bytes, these have {item}: prepare them again"
    )]
    PreparedForOthers {
        /// Bytes of the items that they were prepared for.
        prepared: usize,
        /// Bytes of the operator's items.
        item: usize,
    },
    /// A layout that leads out of the array that it is to be read from.
    #[error(
        "the layout leads to items {least} to {greatest} of an array of {len}: check shape, strides and start"
    )]
    LayoutOutOfRange {
        /// The first item that it leads to.
        least: i64,
        /// The last one.
        greatest: i64,
        /// Items of the array.
        len: u64,
    },
    /// An array beside segments that does not suit them.
    #[error(
        "array {number} beside the segments has {has} {what}, {needed} are needed: pass one of that size"
    )]
    BesideUnfit {
        /// Which array, counted from 0.
        number: usize,
        /// What it has too many or too few of.
        what: &'static str,
        /// How many it has.
        has: u64,
        /// How many it should have.
        needed: u64,
    },
    /// An array beside the segments of one plan, for a reduction of others.
    #[error(
        "array {number} lies beside the segments of another plan: reduce those that `Side::places` was given"
    )]
    BesideOtherSegments {
        /// Which array, counted from 0.
        number: usize,
    },
    /// Places that would be written more than once.
    #[error(
        "an array to be written has places for several items ({what} {at}): give each a place of its own"
    )]
    SharedPlaces {
        /// What they share.
        what: &'static str,
        /// Where.
        at: u64,
    },
    /// Strides that are not one for each axis.
    #[error("{axes} axes have {strides} strides: pass one for each")]
    StrideCount {
        /// Axes.
        axes: usize,
        /// Strides.
        strides: usize,
    },
    /// No axis to reduce was named.
    #[error("no axis of the array's {dimensions} is to be reduced: name one at least")]
    NoAxis {
        /// Axes that the array has.
        dimensions: usize,
    },
    /// An axis that the array does not have.
    #[error("there is no axis {axis}: the array has {dimensions}, counted from 0")]
    AxisOutOfRange {
        /// The axis that was asked for.
        axis: usize,
        /// Axes that the array has.
        dimensions: usize,
    },
    /// An axis that was named more than once.
    #[error("axis {axis} is named twice: name each axis that is to be reduced once")]
    AxisTwice {
        /// The axis.
        axis: usize,
    },
    /// A shape whose positions cannot be counted.
    #[error(
        "an array of shape {shape:?} is too large: 63 bits do not count its segments, their items or their distances"
    )]
    ShapeTooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
    /// An array that is not made of whole rows.
    #[error(
        "{items} items are no whole number of rows of {n}: pass a multiple of the row's length, which is not 0"
    )]
    RaggedRows {
        /// Items of the array.
        items: u64,
        /// Items of a row.
        n: u64,
    },
    /// Results that do not fit the slice that is to receive them.
    #[error("{segments} segments have as many results, the output has room for {room}: make it as long")]
    OutputLength {
        /// Segments.
        segments: u64,
        /// Items of the output.
        room: u64,
    },
    /// Results of a scan that do not fit what is to receive them.
    #[error("{items} items have as many results, the output has room for {room}: make it as long")]
    ResultsLength {
        /// Items.
        items: u64,
        /// Items of the output.
        room: u64,
    },
    /// No offsets, which are one more than there are segments.
    #[error("there are no offsets: m segments have m + 1")]
    NoOffsets,
    /// An offset, a begin, an end or a length that is negative.
    #[error("{what} {index} is {value}: it counts items and is never negative")]
    NegativeOffset {
        /// Which of them.
        what: &'static str,
        /// Where it stands.
        index: u64,
        /// What it is.
        value: i128,
    },
    /// An offset that is less than the one before it.
    #[error("offset {index} is {value}, less than the {before} before it: offsets never decrease")]
    OffsetDecreases {
        /// Where it stands.
        index: u64,
        /// What it is.
        value: u64,
        /// The one before it.
        before: u64,
    },
    /// A segment that ends before it begins.
    #[error("segment {index} begins at {begin} and ends at {end}: an empty one ends where it begins")]
    EndsBeforeBegin {
        /// The segment.
        index: u64,
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
    },
    /// Segments that are not described by as many begins as ends.
    #[error("there are {begins} begins and {ends} ends: a segment has one of each")]
    SegmentCounts {
        /// Begins.
        begins: u64,
        /// Ends.
        ends: u64,
    },
    /// Segments whose items cannot be counted.
    #[error("with segment {index} there are more items than 64 bits count: reduce the segments in parts")]
    TooManyItems {
        /// The first segment with which there are too many.
        index: u64,
    },
    /// A segment that does not lie within the array.
    #[error("segment {index} is {start}..{end}, beyond the end of the array, which has {len} items")]
    SegmentOutOfRange {
        /// The segment.
        index: u64,
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// Items of the array.
        len: u64,
    },
    /// Not enough host memory.
    #[error("{needed} bytes of host memory could not be had: reduce the array in pieces")]
    HostMemory {
        /// Bytes needed.
        needed: u64,
    },
    /// A tag that there is not, in device memory that was pushed to a sink.
    #[error(
        "the tag of item {index} of the stream is not below {tags}: ask for more tags, or have `ignore_out_of_range` leave such items out"
    )]
    TagOfStream {
        /// The first such item.
        index: u64,
        /// How many tags there are.
        tags: u64,
    },
    /// A stream was saved by a sink of another operator, or of one with other parameters.
    #[error(
        "saved by a sink of {saved}, cannot go on as one of {operator}: operator, its parameters and its types must be the same"
    )]
    SavedOperator {
        /// The operator that it was.
        saved: String,
        /// The operator that it should be.
        operator: &'static str,
    },
    /// A stream was saved by a sink of another number of tags.
    #[error("saved by a sink of {saved} tags, cannot go on as one of {tags}: ask for as many")]
    SavedTags {
        /// How many it had.
        saved: u64,
        /// How many it should have.
        tags: u64,
    },
    /// Of what comes in chunks, a segment begins before the end of one before it.
    #[error(
        "segment {index} begins at {start}, before the end of one before it, {end}: segments of chunks follow one another"
    )]
    SegmentsNotInOrder {
        /// The segment.
        index: u64,
        /// Where it begins.
        start: u64,
        /// Where those before it end.
        end: u64,
    },
    /// A scan from the last item to the first, of items that come from the first to the last.
    #[error(
        "what comes in chunks is scanned from the first item on: reverse scans need the array as a whole"
    )]
    ReverseOfChunks,
    /// Bytes that no sink saved.
    #[error("{bytes} bytes are no sink's: {problem}")]
    SavedBytes {
        /// How many there are.
        bytes: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A call for a sink panicked, most likely in the operator.
    #[error(
        "a push to the sink panicked: what has come of the stream is lost, begin anew from what was saved"
    )]
    SinkPanicked,
    /// A call of the driver that failed.
    #[error("{call} failed with {name} ({code}), {description}: {doing}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The error's number.
        code: u32,
        /// The driver's name for it.
        name: String,
        /// The driver's words for it.
        description: String,
        /// What was being done, with kernel and sizes.
        doing: String,
    },
}
