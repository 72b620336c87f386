//! The results of a benchmark job, as `fusee bench run --out DIR` writes them: a folder with `results.jsonl`, one line per
//! trial, and `lock.json`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file that makes a folder a job.
const RESULTS: &str = "results.jsonl";

/// Folders below a project that hold jobs; the project itself may be one too.
const PLACES: &[&str] = &[".fusee/bench", "bench", "jobs", ""];

/// Maximum number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// Maximum number of bytes of a results file.
const MAX_BYTES: u64 = 64 << 20;

/// One line of a job's `results.jsonl`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Trial {
    /// Name of the case.
    pub(crate) case: String,
    /// Number of the attempt, from 1.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// Tries used.
    #[serde(default)]
    pub(crate) tries: u32,
    /// Whether the tests accepted the final state.
    #[serde(default)]
    pub(crate) passed: bool,
    /// Grade from 0 to 1.
    #[serde(default)]
    pub(crate) reward: f64,
    /// Failure class.
    #[serde(default)]
    pub(crate) cause: Option<String>,
    /// Model name as given to `bench run`.
    #[serde(default)]
    pub(crate) model: String,
    /// Flow as given to `bench run`.
    #[serde(default)]
    pub(crate) flow: Option<String>,
    /// Model replies.
    #[serde(default)]
    pub(crate) turns: Option<f64>,
    /// Input and output tokens of the whole trial.
    #[serde(default)]
    pub(crate) tokens: Option<f64>,
    /// Cost in US dollars.
    #[serde(default)]
    pub(crate) cost_usd: Option<f64>,
    /// Duration in seconds.
    #[serde(default)]
    pub(crate) seconds: Option<f64>,
    /// Id of the run.
    #[serde(default)]
    pub(crate) run: Option<String>,
}

/// A folder with results.
#[derive(Clone, Debug)]
pub(crate) struct BenchJob {
    /// Path below the project, which names the job.
    pub(crate) name: String,
    /// When results were last added, in milliseconds since the Unix epoch.
    pub(crate) changed_ms: i64,
    file: PathBuf,
}

/// Finds the jobs of a project, newest first.
pub(crate) fn find(project: &Path) -> Vec<BenchJob> {
    let mut jobs = Vec::new();
    for place in PLACES {
        let Ok(entries) = fs::read_dir(project.join(place)) else { continue };
        for entry in entries.take(MAX_ENTRIES).flatten() {
            let file = entry.path().join(RESULTS);
            let Ok(found) = fs::symlink_metadata(&file) else { continue };
            let name = entry.path().strip_prefix(project).map(|path| path.display().to_string());
            let Ok(name) = name else { continue };
            if !found.is_file() {
                continue;
            }
            let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let changed_ms =
                changed.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default();
            jobs.push(BenchJob { name, changed_ms, file });
        }
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.changed_ms));
    jobs
}

impl BenchJob {
    /// The trials so far. A line that is being written, or is no trial, is left out.
    pub(crate) fn trials(&self) -> Vec<Trial> {
        let mut text = String::new();
        let read = fs::File::open(&self.file).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        if read.is_err() {
            return Vec::new();
        }
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Pass rate of a number of trials with its 95 % Wilson interval.
pub(crate) fn pass_rate(passed: usize, trials: usize) -> (f64, f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return (0.0, 0.0, 1.0);
    }
    let n = trials as f64;
    let rate = passed as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let middle = (rate + Z * Z / (2.0 * n)) / scale;
    let half = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    (rate, (middle - half).max(0.0), (middle + half).min(1.0))
}
