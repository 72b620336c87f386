//! Trials: one method on one exercise each, in the same working copy, judged by the exercise's own tests.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Outcome;
use crate::check::{passed, run_tests};
use crate::method::{Method, Tools};
use crate::process::{Confinement, Job};
use crate::proxy::Proxy;
use crate::results::{Results, Settings, TrialResult};
use crate::suite::{Exercise, Selection, Suite};
use crate::table;
use crate::working_copy::WorkingCopy;

/// Which methods run on which exercises, with which model.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    selection: Selection,
    /// Base URL of the model server, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// Name of the model on the server
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Fusee's provider for the server
    #[arg(long, value_name = "PROVIDER", default_value = "llama.cpp")]
    provider: String,
    /// A Fusee method: its name, then variables and flags; `{test}` is the exercise's test command
    #[arg(long, value_name = "NAME=[VARIABLE=VALUE…] [FLAG…]", value_parser = Method::parse_fusee)]
    fusee: Vec<Method>,
    /// Another method: plain, aider, goose or mini-swe-agent
    #[arg(long, value_name = "METHOD", value_delimiter = ',', value_parser = Method::parse)]
    method: Vec<Method>,
    /// Folder of results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Time limit of each trial
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,
    /// Binary to evaluate
    #[arg(long, value_name = "FILE")]
    fusee_binary: PathBuf,
    /// Folder of the other tools, as installed by `peers`
    #[arg(long, value_name = "DIR")]
    peers: PathBuf,
    /// Run other tools and tests without bubblewrap
    #[arg(long)]
    unconfined: bool,
}

/// Runs every trial that has no result yet, exercise by exercise, then prints the table.
pub(crate) fn run(options: &Options) -> Outcome {
    let suite = Suite::read(&options.selection)?;
    let methods: Vec<&Method> = options.fusee.iter().chain(&options.method).collect();
    if methods.is_empty() {
        return Err("no method; pass --fusee or --method".to_owned());
    }
    // Tools are started in another directory.
    let absolute = |path| std::path::absolute(path).map_err(|error| error.to_string());
    let (fusee, peers) = (absolute(&options.fusee_binary)?, absolute(&options.peers)?);
    let tools = Tools {
        fusee: &fusee,
        peers: &peers,
        model: &options.model,
        provider: &options.provider,
        confinement: Confinement::new(options.unconfined)?,
    };
    let versions = methods.iter().map(|method| Ok((method.name().to_owned(), method.version(&tools)?)));
    let results = Results::new(&options.out);
    results.settle(Settings {
        model: options.model.clone(),
        limit_seconds: options.limit,
        methods: versions.collect::<Outcome<_>>()?,
    })?;
    let copy = WorkingCopy::claim()?;
    // The methods of one exercise follow each other, so that a busy hour slows all of them.
    for exercise in &suite.exercises {
        for method in &methods {
            if results.find(method.name(), &exercise.name)?.is_none() {
                let result = run_one(exercise, method, options, &tools, &copy, &results)?;
                let verdict = if result.passed { "solved" } else { "not solved" };
                let cause = result.cause.as_ref().map_or(String::new(), |cause| format!(" ({cause})"));
                eprintln!("{} {}: {verdict}{cause}, {:.0} s", result.method, result.case, result.seconds);
                results.store(&result)?;
            }
        }
    }
    table::print(&options.out, &suite)
}

fn run_one(
    exercise: &Exercise,
    method: &Method,
    options: &Options,
    tools: &Tools<'_>,
    copy: &WorkingCopy,
    results: &Results<'_>,
) -> Outcome<TrialResult> {
    copy.reset(exercise)?;
    let limit = Duration::from_secs(options.limit);
    let log = results.new_log(method.name(), &exercise.name)?;
    let proxy = Proxy::start(&options.base_url, Instant::now() + limit)?;
    let invocation = method.invocation(exercise, tools, &proxy)?;
    let job = Job {
        words: invocation.words,
        environment: invocation.environment,
        confinement: invocation.confinement,
        network: true,
        limit,
        log: &log,
    };
    let ended = job.run(copy)?;
    let usage = proxy.usage();
    if usage.requests == 0 && matches!(ended.code, Some(126 | 127)) {
        return Err(format!("{} could not be started; see {}", method.name(), log.display()));
    }
    copy.restore(exercise)?;
    let tests = run_tests(exercise, copy, tools.confinement, &log)?;
    let cause = match ended.code {
        _ if ended.timed_out => Some("timeout".to_owned()),
        Some(0) => None,
        Some(code) => Some(format!("exit {code}")),
        None => Some("killed".to_owned()),
    };
    Ok(TrialResult {
        case: exercise.name.clone(),
        method: method.name().to_owned(),
        passed: passed(&tests),
        cause,
        usage,
        seconds: ended.seconds,
        ended: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
}
