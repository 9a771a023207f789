use std::fs;

use serde::Serialize;

use crate::failure::Failure;
use crate::lab::BenchDb;

/// The machine that the benches ran on, without the facts that the system does not report.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    pub(crate) cores: Option<usize>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) system: String,
    /// The version, and the settings that speed depends on.
    pub(crate) database: Vec<(String, String)>,
}

impl Machine {
    pub(crate) async fn look(lab: &dyn BenchDb) -> Result<Self, Failure> {
        let cores = std::thread::available_parallelism().ok().map(Into::into);
        Ok(Self { cores, memory_bytes: memory(), system: system(), database: lab.describe().await? })
    }

    /// Names and values, for people.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let gibibytes = |bytes: u64| format!("{} GiB", (bytes >> 20).div_ceil(1 << 10));
        let mut facts = vec![("System".to_owned(), self.system.clone())];
        facts.extend(self.cores.map(|cores| ("Cores".to_owned(), cores.to_string())));
        facts.extend(self.memory_bytes.map(|bytes| ("Memory".to_owned(), gibibytes(bytes))));
        facts.extend(self.database.iter().cloned());
        facts
    }
}

#[cfg(target_os = "linux")]
fn memory() -> Option<u64> {
    use procfs::Current as _;
    procfs::Meminfo::current().ok().map(|memory| memory.mem_total)
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<u64> {
    None
}

/// The name that the system gives itself, or else that of the system that this program was built for.
fn system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map_or(std::env::consts::OS, |name| name.trim_matches('"'));
    format!("{name}, {}", std::env::consts::ARCH)
}
