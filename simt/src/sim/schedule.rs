//! Who runs when: blocks, their warps, the lanes of a warp.

use std::cell::{Cell, RefCell};
use std::iter;
use std::mem::{self, discriminant};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::rc::Rc;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::context::{self, Context, Meeting, Op, Source, ThreadInfo, Wait};
use super::count::Counts;
use super::fault::{Fault, FaultKind, LaneState};
use super::memory::{BlockMemory, lanes};
use super::stack::{self, Slab, SlabStack};
use super::{Launch, MAX_BLOCK_THREADS, Options, Report, Schedule};
use crate::thread::Vec3;
use crate::warp::Mode;

type Thread = Coroutine<u32, Wait, (), SlabStack>;

/// A small generator (SplitMix64): schedules need variety, not quality.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// The lanes of a warp by what they do.
#[derive(Clone, Copy, Default)]
struct Warp {
    /// Not yet returned.
    live: u32,
    /// Free to run.
    ready: u32,
    /// Ran into a poll in the warp's last turn.
    polling: u32,
    /// At the block's barrier.
    barrier: u32,
    /// Waiting for other lanes.
    meeting: u32,
}

/// A place for one block on the device, used by one after another.
struct Slot {
    number: usize,
    idx: Vec3,
    active: bool,
    live: u32,
    at_barrier: u32,
    next_warp: usize,
    warps: Vec<Warp>,
    coroutines: Vec<Option<Thread>>,
    waits: Vec<Option<Wait>>,
    replies: Vec<u32>,
    // Shared with the running threads, which reach them through the context.
    memory: Rc<RefCell<BlockMemory>>,
    threads: Rc<[ThreadInfo]>,
}

/// A fault is recorded in the context: stop everything.
struct Stop;

/// The slot of the block that is late, under [`Schedule::Late`].
#[derive(Clone, Copy, PartialEq)]
enum Late {
    /// None is.
    Nobody,
    /// It runs, and no other does, up to its first barrier.
    First(usize),
    /// All others run before it.
    Last(usize),
}

/// After how many turns in vain a slot, of those that are there, the late block goes on: turns are drawn at random.
const PATIENCE: u64 = 8;

pub(super) fn run(launch: &Launch, options: &Options, kernel: &(dyn Fn() + Sync)) -> Result<Report, Fault> {
    let refuse = |reason: String| Fault {
        kernel: launch.name.clone(),
        place: None,
        kind: FaultKind::Launch { reason },
    };
    let volume = |shape: Vec3| u64::from(shape.x) * u64::from(shape.y) * u64::from(shape.z);
    let (blocks, threads) = (volume(launch.grid), volume(launch.block));
    if threads == 0 || threads > u64::from(MAX_BLOCK_THREADS) {
        let shape = launch.block;
        return Err(refuse(format!(
            "a block of {shape} has {threads} threads, not 1 to {MAX_BLOCK_THREADS}"
        )));
    }
    if blocks == 0 {
        return Err(refuse(format!("a grid of {} has no blocks", launch.grid)));
    }
    let threads = threads as usize;
    let (seed, concurrent) = match options.schedule {
        Schedule::Sequential => (None, false),
        Schedule::Seeded(seed) => (Some(seed), false),
        Schedule::Concurrent { seed } | Schedule::Late { seed } => (Some(seed), true),
    };
    let most = if concurrent { options.resident_blocks.clamp(1, stack::MAX_STACKS / threads) } else { 1 };
    let resident = most.min(usize::try_from(blocks).unwrap_or(most));
    let slab = stack::take(resident * threads, options.stack_bytes)
        .map_err(|error| refuse(format!("no memory for {} stacks: {error}", resident * threads)))?;

    let context = Context::new(launch, options, concurrent, resident * threads.div_ceil(32));
    let mut grid = Grid {
        context: &context,
        slab: &slab,
        kernel,
        random: seed.map(Random),
        threads,
        blocks,
        started: 0,
        stride: 1,
        first: 0,
        late: Late::Nobody,
        slots: (0..resident).map(|i| Slot::new(launch, threads, i)).collect(),
        report: Report { blocks, threads: blocks * threads as u64, ..Report::default() },
    };
    let entered = context::enter(&context);
    let outcome = grid.run();
    context.aborting.set(outcome.is_err());
    let counts = context.counter.as_ref().map(|counter| counter.borrow().counts);
    let counts = counts.map(|counts| Counts { barriers: grid.report.barriers, ..counts });
    let report = Report { switches: context.switches.get(), counts, ..grid.report };
    // Unwinds what is still suspended, while the context is there for it.
    drop(grid);
    drop(entered);
    stack::put_back(slab);
    match (outcome, context.fault.into_inner()) {
        (Ok(()), None) => Ok(report),
        (_, Some(fault)) => Err(fault),
        (Err(Stop), None) => unreachable!("a launch stops for a recorded fault only"),
    }
}

struct Grid<'a> {
    context: &'a Context<'a>,
    slab: &'a Slab,
    kernel: &'a (dyn Fn() + Sync),
    random: Option<Random>,
    threads: usize,
    blocks: u64,
    started: u64,
    // Blocks start in the order `first`, `first + stride`, ... modulo their number, to which the stride is coprime.
    first: u64,
    stride: u64,
    late: Late,
    slots: Vec<Slot>,
    report: Report,
}

impl Grid<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        if let Some(random) = &mut self.random {
            let blocks = self.blocks;
            self.first = random.next() % blocks;
            self.stride =
                iter::repeat_with(|| random.next() % blocks).find(|&s| gcd(s, blocks) == 1).unwrap_or(1);
        }
        for slot in 0..self.slots.len() {
            self.start(slot);
        }
        let warps = self.threads.div_ceil(32);
        let spin_limit = u64::from(self.context.options.spin_limit) * (self.slots.len() * warps) as u64;
        let (mut idle_turns, mut progress, mut next_slot) = (0_u64, 0, 0);
        loop {
            let from = match &mut self.random {
                Some(random) => random.below(self.slots.len()),
                None => next_slot,
            };
            let late = self.late;
            let runs = |i: usize| match late {
                Late::Nobody => true,
                Late::First(slot) => i == slot,
                Late::Last(slot) => i != slot,
            };
            let mut candidates = (from..self.slots.len()).chain(0..from);
            let Some(slot) = candidates.find(|&i| self.slots[i].active && runs(i)) else {
                if late == Late::Nobody {
                    return Ok(());
                }
                self.late = Late::Nobody;
                continue;
            };
            next_slot = (slot + 1) % self.slots.len();
            let from = match &mut self.random {
                Some(random) => random.below(warps),
                None => self.slots[slot].next_warp,
            };
            let Some(warp) = (from..warps).chain(0..from).find(|&i| self.slots[slot].warps[i].can_run())
            else {
                self.settle(slot)?;
                continue;
            };
            self.slots[slot].next_warp = (warp + 1) % warps;
            let only_polls = self.slots[slot].warps[warp].ready == 0;
            self.turn(slot, warp)?;
            if only_polls && self.context.progress.get() == progress {
                idle_turns += 1;
                let in_vain = match self.late {
                    Late::Nobody => false,
                    Late::First(_) => true,
                    Late::Last(_) => idle_turns > PATIENCE * self.slots.len() as u64,
                };
                if in_vain {
                    (self.late, idle_turns) = (Late::Nobody, 0);
                }
                if idle_turns > spin_limit {
                    return Err(self.deadlock());
                }
            } else {
                (idle_turns, progress) = (0, self.context.progress.get());
            }
        }
    }

    /// Puts the next block of the grid into a slot, if there is one left.
    fn start(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        if self.late == Late::First(number) || self.late == Late::Last(number) {
            self.late = Late::Nobody;
        }
        if self.started == self.blocks {
            slot.active = false;
            return;
        }
        if matches!(self.context.options.schedule, Schedule::Late { .. }) && self.late == Late::Nobody {
            self.late = Late::First(number);
        }
        let order = u128::from(self.first) + u128::from(self.started) * u128::from(self.stride);
        let block = (order % u128::from(self.blocks)) as u64;
        self.started += 1;
        self.context.changed();

        let Vec3 { x, y, .. } = self.context.launch.grid;
        let (x, y) = (u64::from(x), u64::from(y));
        slot.idx = Vec3 { x: (block % x) as u32, y: (block / x % y) as u32, z: (block / x / y) as u32 };
        slot.active = true;
        slot.live = self.threads as u32;
        slot.at_barrier = 0;
        slot.next_warp = 0;
        slot.memory.borrow_mut().begin_block();
        for (i, warp) in slot.warps.iter_mut().enumerate() {
            let lanes = u32::MAX >> 32_usize.saturating_sub(self.threads - i * 32);
            *warp = Warp { live: lanes, ready: lanes, ..Warp::default() };
        }
        for t in 0..self.threads {
            slot.coroutines[t] = None;
            slot.threads[t].copies.take();
            let (context, kernel) = (self.context, self.kernel);
            let thread: *const ThreadInfo = &slot.threads[t];
            let body = move |yielder: &Yielder<u32, Wait>, _: u32| {
                // SAFETY: the slot's threads live as long as its coroutines.
                let thread = unsafe { &*thread };
                thread.yielder.set(yielder);
                if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(kernel)) {
                    if context.aborting.get() {
                        panic::resume_unwind(payload);
                    }
                    context.unwound(thread.linear, payload);
                }
            };
            // SAFETY: the coroutine that used this stack before is gone. This one, with all that it borrows, is
            // dropped with the grid, before the slab, the context and the kernel.
            slot.coroutines[t] = Some(unsafe {
                Coroutine::with_stack_unchecked(self.slab.stack(slot.number * self.threads + t), body)
            });
            slot.waits[t] = None;
            slot.replies[t] = 0;
        }
    }

    /// Runs a warp until each of its lanes has returned or waits.
    fn turn(&mut self, slot: usize, warp: usize) -> Result<(), Stop> {
        let context = self.context;
        let slot = &mut self.slots[slot];
        let flip = match &mut self.random {
            Some(random) => random.next() as u32 % 32,
            None => 0,
        };
        context.block.set(slot.idx);
        context.memory.set(Rc::as_ptr(&slot.memory));
        slot.warps[warp].ready |= mem::take(&mut slot.warps[warp].polling);
        loop {
            let ready = mem::take(&mut slot.warps[warp].ready);
            if let Some(counter) = &context.counter {
                let number = slot.number * slot.warps.len() + warp;
                counter.borrow_mut().begin(number, slot.warps[warp].live);
            }
            for i in 0..32 {
                let lane = i ^ flip;
                if ready >> lane & 1 == 1 {
                    slot.resume(context, warp, lane)?;
                }
            }
            if let Some(counter) = &context.counter {
                counter.borrow_mut().end(slot.warps[warp].polling != 0);
            }
            if !slot.meet(context, warp, &mut self.report)? {
                return Ok(());
            }
        }
    }

    /// Lets a block go on none of whose threads can run: past a barrier, or out. Or finds what is wrong.
    fn settle(&mut self, number: usize) -> Result<(), Stop> {
        let slot = &mut self.slots[number];
        if slot.live == 0 {
            self.start(number);
            return Ok(());
        }
        if slot.at_barrier as usize == self.threads && slot.pass_barrier() {
            self.report.barriers += 1;
            self.context.changed();
            if self.late == Late::First(number) {
                self.late = Late::Last(number);
            }
            return Ok(());
        }
        if slot.diagnose(self.context) { Err(Stop) } else { Err(self.deadlock()) }
    }

    /// Records a deadlock, or the mistake behind it.
    #[cold]
    fn deadlock(&self) -> Stop {
        let active = || self.slots.iter().filter(|slot| slot.active);
        if active().any(|slot| slot.diagnose(self.context)) {
            return Stop;
        }
        let waiting: u32 = active().map(|slot| slot.live).sum();
        let unstarted = self.blocks - self.started;
        let mut detail =
            format!("{waiting} threads of {} blocks wait for what none of them does", active().count());
        if unstarted > 0 {
            detail +=
                &format!(" ({unstarted} blocks have not started, as on a device with no room for them)");
        }
        let thread = active().find_map(|slot| {
            let polls = |wait: &Option<Wait>| matches!(wait, Some(Wait::Poll { .. }));
            let t = slot.waits.iter().position(polls).or(slot.waits.iter().position(Option::is_some))?;
            Some((slot, t as u32, slot.waits[t]?))
        });
        if let Some((slot, t, wait)) = thread {
            let (call, site) = wait.call();
            self.context.block.set(slot.idx);
            self.context.record(t, call, Some(site.into()), FaultKind::Deadlock { detail });
        }
        Stop
    }
}

impl Warp {
    fn can_run(&self) -> bool {
        self.ready | self.polling != 0
    }
}

impl Slot {
    fn new(launch: &Launch, threads: usize, number: usize) -> Self {
        let Vec3 { x, y, .. } = launch.block;
        let info = |linear: u32| ThreadInfo {
            linear,
            idx: Vec3 { x: linear % x, y: linear / x % y, z: linear / x / y },
            yielder: Cell::new(ptr::null()),
            copies: RefCell::default(),
        };
        let warps = threads.div_ceil(32);
        Slot {
            number,
            idx: Vec3 { x: 0, y: 0, z: 0 },
            active: false,
            live: 0,
            at_barrier: 0,
            next_warp: 0,
            warps: vec![Warp::default(); warps],
            coroutines: iter::repeat_with(|| None).take(threads).collect(),
            waits: vec![None; threads],
            replies: vec![0; threads],
            memory: Rc::new(RefCell::new(BlockMemory::new(warps, launch.dynamic_shared))),
            threads: (0..threads as u32).map(info).collect(),
        }
    }

    /// Resumes one lane and notes what it waits for.
    fn resume(&mut self, context: &Context<'_>, warp: usize, lane: u32) -> Result<(), Stop> {
        let t = warp * 32 + lane as usize;
        let Some(coroutine) = &mut self.coroutines[t] else {
            unreachable!("a lane without a coroutine is not ready")
        };
        context.thread.set(&raw const self.threads[t]);
        context.live.set(self.warps[warp].live);
        context.steps.set(0);
        context.switches.set(context.switches.get() + 1);
        let result = coroutine.resume(self.replies[t]);
        context.thread.set(ptr::null());
        let (warp, bit) = (&mut self.warps[warp], 1 << lane);
        match result {
            CoroutineResult::Yield(wait) => {
                match wait {
                    Wait::Barrier { .. } => {
                        warp.barrier |= bit;
                        self.at_barrier += 1;
                    }
                    Wait::Meeting(_) => warp.meeting |= bit,
                    Wait::Poll { .. } => warp.polling |= bit,
                }
                self.waits[t] = Some(wait);
                Ok(())
            }
            CoroutineResult::Return(()) => {
                warp.live &= !bit;
                self.live -= 1;
                self.waits[t] = None;
                context.changed();
                if context.fault.borrow().is_some() { Err(Stop) } else { Ok(()) }
            }
        }
    }

    fn meeting(&self, thread: usize) -> Option<Meeting> {
        match self.waits.get(thread) {
            Some(Some(Wait::Meeting(meeting))) => Some(*meeting),
            _ => None,
        }
    }

    /// Holds every meeting of a warp whose lanes are all there; whether there was one.
    fn meet(&mut self, context: &Context<'_>, warp: usize, report: &mut Report) -> Result<bool, Stop> {
        let mut rest = self.warps[warp].meeting;
        let mut any = false;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let Some(meeting) = self.meeting(warp * 32 + lane) else { continue };
            let mask = meeting.mask;
            let here = mask & !self.warps[warp].meeting == 0
                && lanes(mask)
                    .all(|l| self.meeting(warp * 32 + l).is_some_and(|other| same(&meeting, &other)));
            if here {
                self.hold(context, warp, &meeting)?;
                report.meetings += 1;
                rest &= !mask;
                self.warps[warp].meeting &= !mask;
                self.warps[warp].ready |= mask;
                any = true;
            }
        }
        Ok(any)
    }

    /// Does what the lanes of a meeting came for.
    fn hold(&mut self, context: &Context<'_>, warp: usize, meeting: &Meeting) -> Result<(), Stop> {
        let first = warp * 32;
        let mask = meeting.mask;
        if let Some(counter) = &context.counter {
            counter.borrow_mut().meeting(&meeting.op);
        }
        let ops: [Option<Op>; 32] = std::array::from_fn(|lane| {
            if mask >> lane & 1 == 1 { self.meeting(first + lane).map(|m| m.op) } else { None }
        });
        let ballot = |holds: fn(Op) -> bool| {
            lanes(mask).filter(|&l| ops[l].is_some_and(holds)).fold(0_u32, |bits, l| bits | 1 << l)
        };
        let predicates =
            ballot(|op| matches!(op, Op::All(true) | Op::Any(true) | Op::Uni(true) | Op::Ballot(true)));
        let to_all = match meeting.op {
            Op::Sync => {
                self.memory.borrow_mut().sync_warp(warp, mask);
                0
            }
            Op::All(_) => u32::from(predicates == mask),
            Op::Any(_) => u32::from(predicates != 0),
            Op::Uni(_) => u32::from(predicates == 0 || predicates == mask),
            Op::Ballot(_) => predicates,
            Op::Redux(op, _) => {
                let values = lanes(mask).filter_map(|l| match ops[l] {
                    Some(Op::Redux(_, value)) => Some(value),
                    _ => None,
                });
                values.reduce(|a, b| op.combine(a, b)).unwrap_or(0)
            }
            Op::Match(_) => {
                let value = |l: usize| match ops[l] {
                    Some(Op::Match(value)) => Some(value),
                    _ => None,
                };
                for lane in lanes(mask) {
                    let equal = lanes(mask).filter(|&l| value(l) == value(lane));
                    self.replies[first + lane] = equal.fold(0, |bits, l| bits | 1 << l);
                }
                return Ok(());
            }
            Op::Shuffle { .. } => return self.shuffle(context, warp, meeting, &ops),
        };
        for lane in lanes(mask) {
            self.replies[first + lane] = to_all;
        }
        Ok(())
    }

    fn shuffle(
        &mut self,
        context: &Context<'_>,
        warp: usize,
        meeting: &Meeting,
        ops: &[Option<Op>; 32],
    ) -> Result<(), Stop> {
        for lane in lanes(meeting.mask) {
            let Some(Op::Shuffle { mode, b, c, to, size, .. }) = ops[lane] else { continue };
            let source = source_lane(mode, lane as u32, b, c);
            let Some(Op::Shuffle { from, .. }) = ops[source as usize] else {
                let kind = FaultKind::UnnamedSource { mask: meeting.mask, lane: source };
                context.record((warp * 32 + lane) as u32, meeting.call, Some(meeting.site.into()), kind);
                return Err(Stop);
            };
            // SAFETY: both lanes wait in `shuffle`, which keeps a value of `size` bytes at `from` and room for one at
            // `to`, two places, on stacks that stay as they are until the threads are resumed.
            unsafe { ptr::copy_nonoverlapping(from, to, size) };
        }
        Ok(())
    }

    /// Releases a barrier at which all threads wait, if it is one and the same.
    fn pass_barrier(&mut self) -> bool {
        let mut count = 0;
        let mut first: Option<(&'static str, Source)> = None;
        for wait in &self.waits {
            let Some(Wait::Barrier { call, predicate, site }) = wait else { return false };
            let (first_call, first_site) = *first.get_or_insert((call, site));
            if first_call != *call || !same_site(first_site, site) {
                return false;
            }
            count += u32::from(*predicate);
        }
        self.replies.fill(count);
        self.at_barrier = 0;
        self.memory.borrow_mut().next_epoch();
        for warp in &mut self.warps {
            warp.ready = mem::take(&mut warp.barrier);
        }
        true
    }

    /// What a thread does that others wait for.
    fn state(&self, t: usize) -> LaneState {
        match self.waits.get(t) {
            None => LaneState::Missing,
            Some(None) => LaneState::Returned,
            Some(Some(wait)) => {
                let (call, site) = wait.call();
                LaneState::Waiting { call, site: site.into() }
            }
        }
    }

    /// Records why the block's waiting threads cannot go on: a meeting or barrier that others do not come to.
    #[cold]
    fn diagnose(&self, context: &Context<'_>) -> bool {
        context.block.set(self.idx);
        // A lane that polls may still come.
        let polls = |t: usize| matches!(self.waits.get(t), Some(Some(Wait::Poll { .. })));
        for t in 0..self.threads.len() {
            let Some(meeting) = self.meeting(t) else { continue };
            let first = t / 32 * 32;
            let comes = |l: usize| self.meeting(first + l).is_some_and(|other| same(&meeting, &other));
            let absent: Vec<usize> =
                lanes(meeting.mask).filter(|&l| !comes(l) && !polls(first + l)).collect();
            // One that has returned explains more than one that waits elsewhere.
            let returned = |&&l: &&usize| self.waits.get(first + l).is_none_or(Option::is_none);
            let Some(&lane) = absent.iter().find(returned).or(absent.first()) else { continue };
            let kind = FaultKind::AbsentLane {
                mask: meeting.mask,
                lane: lane as u32,
                state: self.state(first + lane),
            };
            context.record(t as u32, meeting.call, Some(meeting.site.into()), kind);
            return true;
        }
        let barrier = |t: usize| match self.waits[t] {
            Some(Wait::Barrier { call, site, .. }) => Some((call, site)),
            _ => None,
        };
        let threads = self.threads.len();
        let Some((t, (call, site))) = (0..threads).find_map(|t| Some((t, barrier(t)?))) else { return false };
        let here = |t: usize| barrier(t).is_some_and(|(c, s)| c == call && same_site(s, site));
        let Some(other) = (0..threads).find(|&t| !here(t) && !polls(t)) else { return false };
        let kind = FaultKind::BarrierNotReached {
            waiting: (0..threads).filter(|&t| here(t)).count() as u32,
            threads: threads as u32,
            thread: self.threads[other].idx,
            state: self.state(other),
        };
        context.record(t as u32, call, Some(site.into()), kind);
        true
    }
}

/// Whether two lanes make the same call: the same function at the same place with the same mask.
fn same(a: &Meeting, b: &Meeting) -> bool {
    let alike = match (a.op, b.op) {
        (Op::Shuffle { mode, size, .. }, Op::Shuffle { mode: other, size: bytes, .. }) => {
            mode == other && size == bytes
        }
        (Op::Redux(op, _), Op::Redux(other, _)) => op == other,
        (one, other) => discriminant(&one) == discriminant(&other),
    };
    alike && a.mask == b.mask && same_site(a.site, b.site)
}

fn same_site(a: Source, b: Source) -> bool {
    // One place may have several `Location`s, one for each instance of a generic function.
    ptr::eq(a, b) || a == b
}

/// The lane that a lane of `shfl.sync` reads, as PTX defines it: its own if the one asked for is out of range.
fn source_lane(mode: Mode, lane: u32, b: u32, c: u32) -> u32 {
    let (segment, clamp) = (c >> 8 & 31, c & 31);
    let last = lane & segment | clamp & !segment;
    let (source, in_range) = match mode {
        Mode::Up => (lane.wrapping_sub(b), lane as i64 - b as i64 >= i64::from(last)),
        Mode::Down => (lane + b, lane + b <= last),
        Mode::Xor => (lane ^ b, lane ^ b <= last),
        Mode::Idx => {
            let source = lane & segment | b & !segment;
            (source, source <= last)
        }
    };
    if in_range { source } else { lane }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
