//! The benchmark jobs of a project, as `fusee bench run --out DIR` writes them: folders with `results.jsonl` and
//! `lock.json`. A job with several variants is listed once per variant. What the results mean is in `fusee-bench`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fusee_bench::lock::Lock;
use fusee_bench::ownership;
use fusee_bench::results::{self, TrialResult};

/// The file that makes a folder a job.
const RESULTS: &str = "results.jsonl";

/// Folders below a project that hold jobs; the project itself may be one too.
const PLACES: &[&str] = &[".fusee/bench", "bench", "jobs", ""];

/// Maximum number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// Maximum number of bytes of a results file.
const MAX_BYTES: u64 = 64 << 20;

/// One variant of a job, with its trials so far.
#[derive(Clone, Debug)]
pub(crate) struct BenchJob {
    /// The path of its folder below the project, with `~` for `/`, and `@N` for the Nth of several variants.
    pub(crate) name: String,
    /// When results were last added, in milliseconds since the Unix epoch.
    pub(crate) changed_ms: i64,
    /// Number of trials when the job is complete, if its lock file says so.
    pub(crate) planned: Option<usize>,
    /// Whether a process works on the job now.
    pub(crate) running: bool,
    pub(crate) trials: Vec<TrialResult>,
}

/// Reads the jobs of a project, newest first.
pub(crate) fn read_all(project: &Path) -> Vec<BenchJob> {
    let mut jobs = Vec::new();
    for place in PLACES {
        let Ok(entries) = fs::read_dir(project.join(place)) else { continue };
        for entry in entries.take(MAX_ENTRIES).flatten() {
            jobs.extend(read(project, &entry.path()));
        }
    }
    jobs.sort_by(|one, other| (other.changed_ms, &one.name).cmp(&(one.changed_ms, &other.name)));
    jobs
}

/// The variants of the job in a folder; none if it holds no job.
fn read(project: &Path, folder: &Path) -> Vec<BenchJob> {
    let (Some(changed_ms), Ok(below)) = (changed_ms(&folder.join(RESULTS)), folder.strip_prefix(project))
    else {
        return Vec::new();
    };
    let Ok(trials) = results::read(folder) else { return Vec::new() };
    let lock = Lock::read(folder).ok().flatten();
    let base = below.display().to_string().replace('/', "~");
    let running = ownership::is_owned(folder);
    let locked = lock.as_ref().map_or(0, |lock| lock.settings.variants.len());
    let numbers: BTreeSet<usize> = trials.iter().map(|trial| trial.variant).chain(0..locked).collect();
    let several = numbers.len() > 1;
    let planned = lock.map(|lock| lock.cases.len() * lock.settings.attempts.max(1) as usize);
    let variant = |number: usize| BenchJob {
        name: if several { format!("{base}@{}", number + 1) } else { base.clone() },
        changed_ms,
        planned,
        running,
        trials: trials.iter().filter(|trial| trial.variant == number).cloned().collect(),
    };
    // A job that has just begun has no trials, and a job of an older format no variants.
    if numbers.is_empty() { vec![variant(0)] } else { numbers.into_iter().map(variant).collect() }
}

/// When a results file was last changed; `None` if there is none that can be read.
fn changed_ms(file: &PathBuf) -> Option<i64> {
    let found =
        fs::symlink_metadata(file).ok().filter(|found| found.is_file() && found.len() <= MAX_BYTES)?;
    let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Some(changed.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default())
}
