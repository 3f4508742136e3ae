//! The thread that runs now, and what the primitives need of its launch.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{self, Location};
use std::ptr;
use std::sync::Once;

use corosensei::Yielder;

use super::count::{Counter, Event, Kind};
use super::fault::{Fault, FaultKind, Place, Site};
use super::memory::BlockMemory;
use super::{Launch, Options};
use crate::thread::Vec3;
use crate::warp::{Mode, Redux};

pub(super) type Source = &'static Location<'static>;

/// Why a thread hands over.
#[derive(Clone, Copy)]
pub(super) enum Wait {
    /// At the block's barrier, with its predicate.
    Barrier { call: &'static str, predicate: bool, site: Source },
    /// For lanes of its warp.
    Meeting(Meeting),
    /// For something to change in memory.
    Poll { call: &'static str, site: Source },
}

impl Wait {
    pub(super) fn call(&self) -> (&'static str, Source) {
        match self {
            Wait::Barrier { call, site, .. } | Wait::Poll { call, site } => (call, site),
            Wait::Meeting(meeting) => (meeting.call, meeting.site),
        }
    }
}

/// What a lane brings to a meeting of its warp.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    pub(super) op: Op,
    pub(super) mask: u32,
    pub(super) call: &'static str,
    pub(super) site: Source,
}

#[derive(Clone, Copy)]
pub(super) enum Op {
    Sync,
    /// `size` bytes go from the source lane's `from` to each lane's `to`, both on the stacks of waiting threads.
    Shuffle {
        mode: Mode,
        b: u32,
        c: u32,
        from: *const u8,
        to: *mut u8,
        size: usize,
    },
    All(bool),
    Any(bool),
    Uni(bool),
    Ballot(bool),
    Match(u64),
    Redux(Redux, u32),
}

/// One simulated thread.
pub(super) struct ThreadInfo {
    pub(super) linear: u32,
    pub(super) idx: Vec3,
    pub(super) yielder: Cell<*const Yielder<u32, Wait>>,
    /// What it has asked for and has not seen arrive, and how many groups it has closed.
    pub(super) copies: RefCell<(VecDeque<Copy>, usize)>,
}

/// 16 bytes that are on their way to shared memory.
pub(super) struct Copy {
    pub(super) from: *const u8,
    pub(super) to: *mut u8,
    /// The group that they belong to.
    pub(super) group: usize,
}

/// One launch, and the thread of it that runs now.
pub(super) struct Context<'a> {
    pub(super) launch: &'a Launch,
    pub(super) options: &'a Options,
    pub(super) concurrent: bool,
    pub(super) thread: Cell<*const ThreadInfo>,
    pub(super) memory: Cell<*const RefCell<BlockMemory>>,
    pub(super) block: Cell<Vec3>,
    pub(super) live: Cell<u32>,
    pub(super) steps: Cell<u64>,
    pub(super) switches: Cell<u64>,
    /// Counts what may let a polling thread go on.
    pub(super) progress: Cell<u64>,
    pub(super) last_buffer: Cell<usize>,
    pub(super) fault: RefCell<Option<Fault>>,
    /// Set when the launch has failed and its threads are being unwound.
    pub(super) aborting: Cell<bool>,
    /// None unless the options ask for it.
    pub(super) counter: Option<RefCell<Counter>>,
    panic: RefCell<Option<(String, Option<Site>)>>,
}

thread_local! {
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// Marks the unwinding of a thread whose fault is recorded already.
struct Stopped;

/// The launch whose kernel makes this call.
///
/// # Panics
///
/// Outside a launch.
pub(super) fn current<'c>() -> &'c Context<'c> {
    let current = CURRENT.with(Cell::get).cast::<Context<'c>>();
    assert!(!current.is_null(), "a function of the device was called outside `sim::launch`");
    // SAFETY: set by `enter` to a context that outlives the launch, and only code of the launch's kernel, which runs
    // within it, gets here. The primitives keep the reference no longer than their own call.
    unsafe { &*current }
}

/// The launch whose kernel makes this call, if there is one.
pub(super) fn running<'c>() -> Option<&'c Context<'c>> {
    let current = CURRENT.with(Cell::get).cast::<Context<'c>>();
    // SAFETY: as in `current`.
    unsafe { current.as_ref() }.filter(|context| !context.thread.get().is_null())
}

/// Makes a context current until the guard drops.
pub(super) fn enter(context: &Context<'_>) -> Entered {
    install_hook();
    assert!(CURRENT.with(Cell::get).is_null(), "`sim::launch` was called from inside a kernel");
    CURRENT.with(|current| current.set(ptr::from_ref(context).cast()));
    Entered
}

pub(super) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(ptr::null()));
    }
}

/// Has panics of simulated threads recorded, with their place, instead of printed. Others go on to the hook that was
/// there before.
fn install_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let current = CURRENT.with(Cell::get).cast::<Context<'_>>();
            // SAFETY: as in `current`.
            match unsafe { current.as_ref() } {
                Some(context) if !context.thread.get().is_null() => {
                    *context.panic.borrow_mut() =
                        Some((message(info.payload()), info.location().map(Site::from)));
                }
                _ => before(info),
            }
        }));
    });
}

fn message(payload: &dyn Any) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "of a type without a message".to_owned(),
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(launch: &'a Launch, options: &'a Options, concurrent: bool, warps: usize) -> Self {
        Context {
            launch,
            options,
            concurrent,
            thread: Cell::new(ptr::null()),
            memory: Cell::new(ptr::null()),
            block: Cell::new(Vec3 { x: 0, y: 0, z: 0 }),
            live: Cell::new(0),
            steps: Cell::new(0),
            switches: Cell::new(0),
            progress: Cell::new(0),
            last_buffer: Cell::new(0),
            fault: RefCell::new(None),
            aborting: Cell::new(false),
            counter: options.count.then(|| RefCell::new(Counter::new(warps))),
            panic: RefCell::new(None),
        }
    }

    pub(super) fn thread(&self) -> &ThreadInfo {
        let thread = self.thread.get();
        assert!(!thread.is_null(), "a function of the device was called while its kernel unwinds");
        // SAFETY: set to a thread of a resident block while it runs, and called from that thread only.
        unsafe { &*thread }
    }

    pub(super) fn memory(&self) -> &RefCell<BlockMemory> {
        // SAFETY: set to the memory of the block whose thread runs now.
        unsafe { &*self.memory.get() }
    }

    pub(super) fn changed(&self) {
        self.progress.set(self.progress.get() + 1);
    }

    /// Counts a memory access.
    pub(super) fn step(&self, call: &'static str, site: Source) {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > self.options.step_limit {
            self.fail(call, site, FaultKind::Runaway { steps });
        }
    }

    /// Counts a call of the running thread, if the launch is counted.
    #[inline(always)]
    pub(super) fn count(&self, event: impl FnOnce() -> Event) {
        if let Some(counter) = &self.counter {
            counter.borrow_mut().record(self.thread().linear % 32, event());
        }
    }

    /// Hands over to the scheduler until what the thread waits for is there; the result of a meeting or barrier.
    pub(super) fn suspend(&self, wait: Wait) -> u32 {
        if !matches!(wait, Wait::Poll { .. }) {
            let (call, site) = wait.call();
            self.count(|| Event::call(Kind::Meet, call, site));
        }
        let yielder = self.thread().yielder.get();
        // SAFETY: set by the coroutine of this very thread, whose stack it lives on.
        unsafe { (*yielder).suspend(wait) }
    }

    /// A thread of the block that runs now, and a call of it.
    pub(super) fn place(&self, linear: u32, call: &'static str, site: Option<Site>) -> Place {
        Place {
            block: self.block.get(),
            thread: self.coordinates(linear),
            warp: linear / 32,
            lane: linear % 32,
            call,
            site,
        }
    }

    /// A thread's coordinates in its block.
    pub(super) fn coordinates(&self, linear: u32) -> Vec3 {
        let Vec3 { x, y, .. } = self.launch.block;
        Vec3 { x: linear % x, y: linear / x % y, z: linear / x / y }
    }

    /// Records a fault of the running thread and unwinds it.
    #[cold]
    pub(super) fn fail(&self, call: &'static str, site: Source, kind: FaultKind) -> ! {
        self.record(self.thread().linear, call, Some(site.into()), kind);
        panic::resume_unwind(Box::new(Stopped));
    }

    /// Records a fault, unless there is one already.
    #[cold]
    pub(super) fn record(&self, linear: u32, call: &'static str, site: Option<Site>, kind: FaultKind) {
        let place = Box::new(self.place(linear, call, site));
        self.fault.borrow_mut().get_or_insert_with(|| Fault {
            kernel: self.launch.name.clone(),
            place: Some(place),
            kind,
        });
    }

    /// Records the end of a kernel that unwound.
    #[cold]
    pub(super) fn unwound(&self, linear: u32, payload: Box<dyn Any + Send>) {
        if payload.is::<Stopped>() {
            return;
        }
        let (message, site) =
            self.panic.borrow_mut().take().unwrap_or_else(|| (message(payload.as_ref()), None));
        self.record(linear, "", site, FaultKind::Panic { message });
    }
}
