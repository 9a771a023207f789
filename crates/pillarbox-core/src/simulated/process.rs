use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use tokio::task::JoinHandle;

thread_local! {
    /// The process whose future is being polled.
    static CURRENT: RefCell<Option<Process>> = const { RefCell::new(None) };
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Takes the messages of panics that have ended tasks of processes in this thread.
#[must_use]
pub fn panics() -> Vec<String> {
    PANICS.with_borrow_mut(std::mem::take)
}

/// A simulated operating system process: the futures that run, stand still and die together. Clones are the same process.
///
/// A task that is spawned while a future of a process is polled belongs to that process.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    name: String,
    state: Mutex<State>,
    /// The state of the generator that decides when a task yields.
    random: AtomicU64,
    /// Of 256 polls, so many yield first.
    yields: u8,
}

#[derive(Default)]
struct State {
    phase: Phase,
    /// Tasks that were woken while the process stood still.
    woken: Vec<Waker>,
    tasks: Vec<Weak<dyn Kill>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Stopped,
    Dead,
}

impl Process {
    /// A running process. Of 256 polls of its futures, `yields` are put off until the other tasks have been polled.
    #[must_use]
    pub fn new(name: impl Into<String>, seed: u64, yields: u8) -> Self {
        let (state, random) = (Mutex::default(), AtomicU64::new(seed | 1));
        Self(Arc::new(Inner { name: name.into(), state, random, yields }))
    }

    /// The name that it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The process whose future is being polled now.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a future one of this process.
    pub fn run<F: Future + Send + 'static>(&self, future: F) -> Governed<F> {
        let task = Arc::new(Task { future: Mutex::new(Some(Box::pin(future))) });
        let kill: Weak<dyn Kill> = Arc::downgrade(&(Arc::clone(&task) as Arc<dyn Kill>));
        let mut state = self.lock();
        if state.tasks.len() == state.tasks.capacity() {
            state.tasks.retain(|task| task.strong_count() > 0);
        }
        state.tasks.push(kill);
        drop(state);
        Governed { process: self.clone(), task }
    }

    /// Stops polling its futures; timers go on, and the wake-ups of futures are remembered.
    pub fn stop(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Running {
            state.phase = Phase::Stopped;
        }
    }

    /// Polls again what was woken meanwhile.
    pub fn resume(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Stopped {
            state.phase = Phase::Running;
            let woken = std::mem::take(&mut state.woken);
            drop(state);
            woken.into_iter().for_each(Waker::wake);
        }
    }

    /// Drops all its futures where they are.
    pub fn kill(&self) {
        let mut state = self.lock();
        state.phase = Phase::Dead;
        state.woken.clear();
        let tasks = std::mem::take(&mut state.tasks);
        drop(state);
        tasks.iter().filter_map(Weak::upgrade).for_each(|task| task.kill());
    }

    /// True until it is killed.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.lock().phase != Phase::Dead
    }

    /// True while it stands still.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.lock().phase == Phase::Stopped
    }

    /// Decides whether a future yields before it is polled.
    fn yields(&self) -> bool {
        if self.0.yields == 0 {
            return false;
        }
        let mut random = self.0.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.0.random.store(random, Relaxed);
        (random >> 32) & 0xff < u64::from(self.0.yields)
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.name()).finish()
    }
}

struct Task<F> {
    future: Mutex<Option<Pin<Box<F>>>>,
}

/// Drops the future of a task, unless it is being polled; then its poll does so.
trait Kill: Send + Sync {
    fn kill(&self);
}

impl<F: Send> Kill for Task<F> {
    fn kill(&self) {
        let future = self.future.try_lock().ok().and_then(|mut future| future.take());
        drop(future);
    }
}

/// A future of a [`Process`].
pub struct Governed<F> {
    process: Process,
    task: Arc<Task<F>>,
}

impl<F> fmt::Debug for Governed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Governed").field("process", &self.process).finish_non_exhaustive()
    }
}

impl<F: Future + Send + 'static> Future for Governed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { process, task } = &*self;
        let mut state = process.lock();
        match state.phase {
            Phase::Dead => return Poll::Pending,
            Phase::Stopped => {
                state.woken.push(context.waker().clone());
                return Poll::Pending;
            }
            Phase::Running => drop(state),
        }
        if process.yields() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut slot = task.future.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(future) = slot.as_mut() else { return Poll::Pending };
        let around = CURRENT.replace(Some(process.clone()));
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        let over = !process.is_alive() || !matches!(polled, Ok(Poll::Pending));
        let over = if over { slot.take() } else { None };
        drop(slot);
        drop(over);
        CURRENT.set(around);
        match polled {
            Ok(polled) if process.is_alive() => polled,
            Ok(_) => Poll::Pending,
            Err(panic) => {
                PANICS.with_borrow_mut(|panics| panics.push(format!("{}: {}", process.name(), message(&*panic))));
                Poll::Pending
            }
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

/// As [`tokio_util::task::TaskTracker`], of which the tasks belong to the process that spawns them.
#[derive(Debug, Clone, Default)]
pub struct TaskTracker(tokio_util::task::TaskTracker);

impl TaskTracker {
    /// A tracker without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task of the current process.
    pub fn spawn<F: Future<Output: Send> + Send + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        match Process::current() {
            Some(process) => self.0.spawn(process.run(future)),
            None => self.0.spawn(future),
        }
    }

    /// Lets [`wait`](Self::wait) end.
    pub fn close(&self) -> bool {
        self.0.close()
    }

    /// Waits until it is closed and all tasks have ended.
    pub async fn wait(&self) {
        self.0.wait().await;
    }
}
