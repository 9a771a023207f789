//! What this process costs, as Linux tells it; other systems do not, and have no figures of it.

use std::time::Duration;

/// The time that processors have spent on this process.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_time() -> Option<Duration> {
    let stat = procfs::process::Process::myself().and_then(|process| process.stat()).ok()?;
    let ticks = u32::try_from(stat.utime + stat.stime).ok()?;
    Some(Duration::from_secs(1) * ticks / u32::try_from(procfs::ticks_per_second()).ok()?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_time() -> Option<Duration> {
    None
}
