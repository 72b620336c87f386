//! Tasks in Harbor's layout: `task.toml`, `instruction.md`, `environment/`, `tests/test.sh`, `solution/solve.sh`.
//!
//! A task runs in a sandboxed directory that stands for its container, if its Dockerfile only copies files;
//! `dockerfile` reads it. The folders `/tests`, `/logs` and the working directory are mounted
//! where the container would have them. A task that needs more is reported as unsupported, with the reason.

mod dockerfile;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{SuiteProblem, file_name, problem, toml_problem};
use crate::case::{Case, CaseTest, Reference, Verdict};
use dockerfile::Image;

/// Versions of `task.toml` that are read.
const SCHEMA: &str = "1.";

/// The fields that decide whether and how a task runs here; others are ignored, as Harbor adds fields often.
#[derive(Deserialize)]
struct Task {
    #[serde(alias = "version")]
    schema_version: Option<String>,
    #[serde(default)]
    task: Option<TaskTable>,
    #[serde(default)]
    agent: Agent,
    #[serde(default)]
    verifier: Verifier,
    #[serde(default)]
    environment: Environment,
    #[serde(default)]
    steps: Vec<toml::Value>,
}

#[derive(Deserialize)]
struct TaskTable {
    #[serde(default)]
    keywords: Vec<String>,
}

#[derive(Default, Deserialize)]
struct Agent {
    timeout_sec: Option<f64>,
}

#[derive(Deserialize)]
struct Verifier {
    #[serde(default = "verifier_timeout")]
    timeout_sec: f64,
    #[serde(default)]
    env: BTreeMap<String, String>,
    environment_mode: Option<String>,
}

impl Default for Verifier {
    fn default() -> Self {
        Self { timeout_sec: verifier_timeout(), env: BTreeMap::new(), environment_mode: None }
    }
}

fn verifier_timeout() -> f64 {
    600.0
}

#[derive(Default, Deserialize)]
struct Environment {
    docker_image: Option<String>,
    os: Option<String>,
    #[serde(default)]
    gpus: Option<u64>,
    tpu: Option<toml::Value>,
    #[serde(default)]
    mcp_servers: Vec<toml::Value>,
    healthcheck: Option<toml::Value>,
    workdir: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// Reads the task in `folder`; the error holds everything that is wrong with it.
pub(super) fn read(folder: &Path) -> Result<Case, Vec<SuiteProblem>> {
    let mut problems = Vec::new();
    let path = folder.join("task.toml");
    let task = match std::fs::read_to_string(&path) {
        Err(error) => Err(problem(&path, error.to_string())),
        Ok(text) => toml::from_str::<Task>(&text).map_err(|error| toml_problem(&path, &text, &error)),
    };
    let instruction_file = folder.join("instruction.md");
    let has_steps = matches!(&task, Ok(task) if !task.steps.is_empty());
    let instruction = match std::fs::read_to_string(&instruction_file) {
        Ok(text) => text.trim().to_owned(),
        Err(_) if has_steps => String::new(),
        Err(error) => {
            problems.push(problem(&instruction_file, error.to_string()));
            String::new()
        }
    };
    let tests = folder.join("tests");
    if !tests.join("test.sh").is_file() && !has_steps {
        problems.push(problem(&tests.join("test.sh"), "the file does not exist"));
    }
    let task = match task {
        Ok(task) => task,
        Err(found) => {
            problems.insert(0, found);
            return Err(problems);
        }
    };
    if let Some(version) = task.schema_version.as_deref().filter(|version| !version.starts_with(SCHEMA)) {
        problems.push(problem(&path, format!("schema_version `{version}` is not supported; expected 1.x")));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let image = Image::read(&folder.join("environment"), task.environment.workdir.as_deref());
    let (image, unsupported) = match (unsupported(&task), image) {
        (Some(reason), image) => (image.unwrap_or_default(), Some(reason)),
        (None, Ok(image)) => (image, None),
        (None, Err(reason)) => (Image::default(), Some(reason)),
    };
    let settings: BTreeMap<&String, &String> =
        image.environment.iter().chain(&task.environment.env).chain(&task.verifier.env).collect();
    let solve = folder.join("solution/solve.sh");
    Ok(Case {
        name: file_name(folder),
        language: None,
        keywords: task.task.map(|task| task.keywords).unwrap_or_default(),
        origin: folder.to_owned(),
        instruction,
        files: image.files,
        solution: Vec::new(),
        tests: Vec::new(),
        test: CaseTest {
            command: test_command(&settings),
            timeout_s: seconds(task.verifier.timeout_sec),
            verdict: Verdict::RewardFile { tests },
        },
        reference: solve.is_file().then_some(Reference::Script(solve)),
        agent_timeout_s: task.agent.timeout_sec.map(seconds),
        mounted_at: Some(image.workdir),
        programs: vec!["bash".to_owned()],
        unsupported,
    })
}

/// What the task needs that a sandboxed directory is not.
fn unsupported(task: &Task) -> Option<String> {
    let Environment { docker_image, os, gpus, tpu, mcp_servers, healthcheck, .. } = &task.environment;
    if !task.steps.is_empty() {
        return Some("has several steps, which need a container engine".to_owned());
    }
    if let Some(image) = docker_image {
        return Some(format!("needs the container image `{image}`"));
    }
    if os.as_deref().is_some_and(|os| os != "linux") {
        return Some(format!("needs the operating system `{}`", os.as_deref().unwrap_or_default()));
    }
    if gpus.is_some_and(|gpus| gpus > 0) || tpu.is_some() {
        return Some("needs an accelerator in its container".to_owned());
    }
    if !mcp_servers.is_empty() || healthcheck.is_some() {
        return Some("needs services in its container".to_owned());
    }
    (task.verifier.environment_mode.as_deref() == Some("separate"))
        .then(|| "needs a separate container for its verifier".to_owned())
}

fn test_command(settings: &BTreeMap<&String, &String>) -> String {
    let mut command = String::new();
    for (name, value) in settings {
        command.push_str(&format!("export {name}={}\n", crate::language::quoted(value)));
    }
    command + "bash /tests/test.sh"
}

fn seconds(seconds: f64) -> u64 {
    if seconds.is_finite() { seconds.ceil().clamp(1.0, 86_400.0) as u64 } else { 86_400 }
}
