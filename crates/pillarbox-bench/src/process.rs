//! The CPU time and memory of this process, as Linux reports them; there are no figures on other systems.

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use procfs::process::{ClearRefs, Process};

    /// The time that processors have spent on this process.
    pub(crate) fn cpu_time() -> Option<Duration> {
        let stat = Process::myself().and_then(|process| process.stat()).ok()?;
        let ticks = u32::try_from(stat.utime + stat.stime).ok()?;
        Some(Duration::from_secs(1) * ticks / u32::try_from(procfs::ticks_per_second()).ok()?)
    }

    /// Resets [`peak_memory`].
    pub(crate) fn forget_peak_memory() {
        // Where this is not allowed, the peak is that of the whole process so far: too high rather than too low.
        let _ = Process::myself().and_then(|process| process.clear_refs(ClearRefs::PeakRSS));
    }

    /// The most bytes of memory that this process has had.
    pub(crate) fn peak_memory() -> Option<u64> {
        let status = Process::myself().and_then(|process| process.status()).ok()?;
        Some(status.vmhwm? * 1024)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::time::Duration;

    pub(crate) fn cpu_time() -> Option<Duration> {
        None
    }

    pub(crate) fn forget_peak_memory() {}

    pub(crate) fn peak_memory() -> Option<u64> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{cpu_time, forget_peak_memory, peak_memory};
#[cfg(target_os = "linux")]
pub(crate) use linux::{cpu_time, forget_peak_memory, peak_memory};
