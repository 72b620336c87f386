//! Short texts for events, durations and quantities, shared by every UI and listing.

use fusee::engine::journal::event::{
    CallFate, ChangeKind, Event, FilesLocated, HookDecision, HookRun, NetworkAccess, Sample, StageStatus,
    ToolResult,
};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// Maximum length of a gist, in characters.
const GIST_CHARACTERS: usize = 160;

/// Summarizes a call's arguments on one line, without the tool's name.
pub(crate) fn summarize_arguments(name: &str, arguments: &Value) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let gist = match name {
        "read_file" => {
            let path = text("path").unwrap_or_default();
            match (
                arguments.get("offset").and_then(Value::as_u64),
                arguments.get("limit").and_then(Value::as_u64),
            ) {
                (None, None) => path.to_owned(),
                (offset, None) => format!("{path} from line {}", offset.unwrap_or(1)),
                (offset, Some(limit)) => {
                    let from = offset.unwrap_or(1);
                    format!("{path} lines {from}-{}", from.saturating_add(limit).saturating_sub(1))
                }
            }
        }
        "ask_user" => text("question").unwrap_or_default().to_owned(),
        "read_files" => {
            let paths =
                arguments.get("paths").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            paths.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        "write_file" => {
            let lines = text("content").map_or(0, |content| content.lines().count());
            format!("{} ({})", text("path").unwrap_or_default(), count(lines as u64, "line"))
        }
        "edit_file" | "list_dir" => text("path").unwrap_or(".").to_owned(),
        "find_files" => found("", arguments),
        "search_text" => found("/", arguments),
        "shell" => text("command").unwrap_or_default().to_owned(),
        "fetch_url" => text("url").unwrap_or_default().to_owned(),
        "web_search" => text("query").unwrap_or_default().to_owned(),
        "shell_poll" | "shell_kill" => text("job").unwrap_or_default().to_owned(),
        "plan_tasks" => plan(arguments),
        "finish" => text("summary").or_else(|| text("status")).unwrap_or_default().to_owned(),
        "think" => text("thought").or_else(|| text("text")).unwrap_or_default().to_owned(),
        _ => compact(arguments),
    };
    let gist = if gist.trim().is_empty() { compact(arguments) } else { gist };
    one_line(&gist, GIST_CHARACTERS)
}

/// Describes a rewind, a flow, a hook or the network on one line; `None` for other kinds of events and for those meant for programs
/// only.
pub(crate) fn flow_text(event: &Event) -> Option<String> {
    match event {
        Event::Rewound { from_run, turn, files, conversation } => {
            let parts = [(*files, "files"), (*conversation, "conversation")];
            let parts: Vec<&str> =
                parts.iter().filter(|(is_part, _)| *is_part).map(|(_, part)| *part).collect();
            let turns = count(u64::from(*turn), "turn");
            Some(format!("rewound to run {from_run} after {turns}: {}", parts.join(" and ")))
        }
        Event::Hook(hook) => Some(hook_text(hook)),
        Event::Network(access) => Some(network_text(access)),
        Event::FlowChosen { flow, reason } => Some(format!("flow {flow}: {}", one_line(reason, 300))),
        Event::FilesLocated(FilesLocated { files, .. }) if files.is_empty() => {
            Some("files: none found for the request".to_owned())
        }
        Event::FilesLocated(FilesLocated { files, .. }) => {
            let files: Vec<String> =
                files.iter().map(|file| format!("{} ({})", file.path, file.reason)).collect();
            Some(format!("files: {}", one_line(&files.join(", "), 300)))
        }
        Event::Sample(sample) => Some(sample_text(sample)),
        Event::StageStarted { label, attempt: 1, .. } => Some(format!("stage {label}")),
        Event::StageStarted { label, attempt, .. } => Some(format!("stage {label}, attempt {attempt}")),
        Event::FlowStageReport(report) if report.status != StageStatus::Completed => {
            let word = if report.status == StageStatus::Failed { "failed" } else { "skipped" };
            Some(format!("stage {} {word}: {}", report.label, one_line(&report.summary, 200)))
        }
        Event::PhaseTransition { .. } | Event::PhaseProbeError { .. } => phase_text(event),
        _ => None,
    }
}

/// Describes a hook's answer on one line.
fn hook_text(hook: &HookRun) -> String {
    let HookRun { event, command, decision, reason, .. } = hook;
    let decision = if *decision == HookDecision::None { "ok" } else { decision.as_str() };
    let why = reason.as_ref().map(|reason| format!(" ({})", one_line(reason, 160))).unwrap_or_default();
    format!("hook {event}: {decision}{why} · {}", one_line(command, 80))
}

/// Describes a connection on one line.
fn network_text(access: &NetworkAccess) -> String {
    let NetworkAccess { host, port, verdict, reason, .. } = access;
    let why = reason.as_ref().map(|reason| format!(" ({})", one_line(reason, 160))).unwrap_or_default();
    format!("network: {}:{port} {}{why}", one_line(host, 120), verdict.as_str())
}

/// Describes a judged answer on one line.
fn sample_text(sample: &Sample) -> String {
    let Sample { n, verdict, reason, repairs, passed, failed, tokens: used, duration_ms } = sample;
    let of = repairs.map(|of| format!(", a repair of {of}")).unwrap_or_default();
    let tests = passed.zip(*failed).map(|(passed, failed)| {
        let verb = if passed == 1 { "passes" } else { "pass" };
        format!(", {} {verb}, {failed} fail", count(passed.into(), "test"))
    });
    let why = reason.as_ref().map(|reason| format!(" ({})", one_line(reason, 160))).unwrap_or_default();
    let verdict = verdict.replace('_', " ");
    let (tests, used, time) = (tests.unwrap_or_default(), tokens(*used), span(*duration_ms));
    format!("answer {n}{of}: {verdict}{why}{tests} · {used} tokens · {time}")
}

/// Describes a phase event on one line; `None` for other kinds of events.
pub(crate) fn phase_text(event: &Event) -> Option<String> {
    match event {
        Event::PhaseState { phase, .. } => Some(format!("phase {phase}")),
        Event::PhaseTransition { from, to, reason, .. } => {
            Some(format!("phase {from} -> {to}: {}", one_line(reason, 200)))
        }
        Event::PhaseProbeError { message, .. } => {
            Some(format!("phase unknown, keeping the current one: {}", one_line(message, 200)))
        }
        _ => None,
    }
}

fn found(quote: &str, arguments: &Value) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let place =
        text("path").or_else(|| text("include")).map(|path| format!(" in {path}")).unwrap_or_default();
    format!("{quote}{}{quote}{place}", text("pattern").unwrap_or_default())
}

fn plan(arguments: &Value) -> String {
    let action = arguments.get("action").and_then(Value::as_str).unwrap_or("list");
    let tasks = arguments.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
    match (tasks, arguments.get("task_id"), arguments.get("status").and_then(Value::as_str)) {
        (0, Some(id), Some(status)) => format!("{action} {} {status}", id.to_string().trim_matches('"')),
        (0, ..) => action.to_owned(),
        (tasks, ..) => format!("{action} {}", count(tasks as u64, "task")),
    }
}

fn compact(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// The result of a call in a word or two: `ok`, `exit 1`, `failed`, `refused`.
pub(crate) fn verdict(result: &ToolResult) -> String {
    match (result.fate, result.exit_code) {
        (Some(CallFate::Aborted), _) => "aborted".to_owned(),
        (Some(CallFate::Interrupted), _) => "interrupted".to_owned(),
        (Some(CallFate::Refused), _) => "refused".to_owned(),
        (None, Some(code)) if code != 0 || !result.ok => format!("exit {code}"),
        (None, _) if result.ok => "ok".to_owned(),
        (None, _) => "failed".to_owned(),
    }
}

/// The past participle for a file change.
pub(crate) fn change(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
    }
}

/// Formats a duration: `12 ms`, `4.2 s`, `1 m 05 s`, `2 h 03 m`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} m {:02} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {:02} m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Formats an age: `now`, `5 m`, `3 h`, `2 d`.
pub(crate) fn age(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match seconds {
        0..5 => "now".to_owned(),
        5..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats an amount of US dollars with two decimals, or four below ten cents.
pub(crate) fn usd(dollars: f64) -> String {
    if dollars >= 0.1 || dollars <= 0.0 { format!("${dollars:.2}") } else { format!("${dollars:.4}") }
}

/// Formats a number of tokens: `900`, `12.3k`, `1.2M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100).replace(".0k", "k"),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000).replace(".0M", "M"),
    }
}

/// Formats a number of bytes: `900 B`, `12.3 kB`, `1.2 MB`.
pub(crate) fn bytes(count: u64) -> String {
    let (unit, name) = match count {
        0..1_000 => return format!("{count} B"),
        1_000..1_000_000 => (1_000, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    format!("{}.{} {name}", count / unit, count % unit * 10 / unit)
}

/// Formats a count with its noun: `1 file`, `2 files`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Collapses all white space to single spaces and truncates to `most` characters with `…`.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The request without its background section.
pub(crate) fn request_text(request: &str) -> &str {
    request.split_once("\n\n**Background:** ").map_or(request, |(asked, _)| asked)
}

/// The first line that is not blank, trimmed.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}
