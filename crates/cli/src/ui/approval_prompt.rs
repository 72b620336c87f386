//! Approval questions as text: the whole call that is asked about, and what each answer covers.

use std::path::Path;

use fusee::engine::approval::rules::{ApprovalRule, RuleDecision, RuleSubject};
use fusee::engine::approval::{ApprovalExtent, ApprovalQuestion};
use serde_json::Value;

use crate::ui::call_diff;
use crate::ui::line::{Style, StyledLine};

#[cfg(test)]
mod tests;

/// Number of rows from which the prompt says how many there are: about what a small terminal shows at once.
pub(crate) const LONG: usize = 16;

/// Everything a call would do: the diff of a change, a command with its directory and its input, or the
/// arguments. Nothing is left out.
pub(crate) fn subject(name: &str, arguments: &Value, workspace: Option<&Path>) -> Vec<StyledLine> {
    if let Some(rows) = call_diff::rows(name, arguments, workspace) {
        return rows;
    }
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let lines = |style: Style, lead: &str, text: &str| -> Vec<StyledLine> {
        text.lines().map(|line| StyledLine::styled(Style::Dim, lead).and(style, line)).collect()
    };
    let Some(command) = text("command") else {
        let whole = serde_json::to_string_pretty(arguments).unwrap_or_default();
        return if arguments.as_object().is_none_or(|fields| fields.is_empty()) {
            Vec::new()
        } else {
            lines(Style::Plain, "", &whole)
        };
    };
    let mut rows = lines(Style::Plain, "", command);
    if let Some(directory) = text("workdir") {
        rows.push(StyledLine::styled(Style::Dim, &format!("in {directory}")));
    }
    if arguments.get("background").and_then(Value::as_bool) == Some(true) {
        rows.push(StyledLine::styled(Style::Dim, "in the background: it keeps running after the call"));
    }
    if let Some(input) = text("stdin") {
        rows.push(StyledLine::styled(Style::Dim, "with this input:"));
        rows.extend(lines(Style::Plain, "< ", input));
    }
    rows
}

/// A row that counts a long subject, so that the part outside the screen is not overlooked.
pub(crate) fn length_notice(rows: usize) -> Option<StyledLine> {
    let text = format!("{rows} lines, all of them above: scroll up to read the first ones");
    (rows > LONG).then(|| StyledLine::styled(Style::Warning, &text))
}

/// What a rule covers, in words.
pub(crate) fn describe(rule: &ApprovalRule) -> String {
    let about = match &rule.about {
        RuleSubject::Line(line) => format!("exactly the command `{line}`"),
        RuleSubject::Prefix(words) => format!("every command that begins with `{}`", words.join(" ")),
        RuleSubject::Tool(tool) => format!("every call of {tool}, whatever it changes"),
        RuleSubject::File { tool, path } => format!("{tool} on {path}"),
        RuleSubject::Call { tool, arguments } => match arguments.get("command").and_then(Value::as_str) {
            Some(command) => format!("exactly the command `{command}` with the same input and directory"),
            None => format!("{tool} with exactly {arguments}"),
        },
    };
    match rule.then {
        RuleDecision::Allow => about,
        RuleDecision::Ask => format!("ask about {about}"),
        RuleDecision::Deny => format!("refuse {about}"),
    }
}

/// What a lasting answer would cover; `None` if the call has no such extent.
pub(crate) fn covers(question: &ApprovalQuestion, extent: ApprovalExtent) -> Option<String> {
    let rules = question.lasting(extent);
    let short = |rule: &ApprovalRule| match &rule.about {
        RuleSubject::Line(_) => "exactly this command".to_owned(),
        RuleSubject::Call { arguments, .. } if arguments.get("command").is_some() => {
            "exactly this command, with this input and directory".to_owned()
        }
        RuleSubject::Call { tool, .. } => format!("{tool} with exactly these arguments"),
        _ => describe(rule),
    };
    (!rules.is_empty()).then(|| rules.iter().map(short).collect::<Vec<_>>().join("; "))
}

/// The possible answers, one per row, with what each covers. `while_open` says how long `s` lasts.
pub(crate) fn choices(question: &ApprovalQuestion, extent: ApprovalExtent, while_open: &str) -> Vec<String> {
    let scope = covers(question, extent).unwrap_or_default();
    let mut rows = vec![
        "y  this call only".to_owned(),
        format!("s  {scope}, {while_open}"),
        format!("a  {scope}, always in this project; `fusee approvals` revokes it"),
    ];
    if let Some(other) = covers(question, toggled(extent)) {
        rows.push(match extent {
            ApprovalExtent::Shown => format!("w  make s and a wider: {other}"),
            ApprovalExtent::Wider => format!("w  back to: {other}"),
        });
    }
    rows.push("n  refuse; a reason for the model may follow".to_owned());
    rows
}

/// The other extent.
pub(crate) fn toggled(extent: ApprovalExtent) -> ApprovalExtent {
    match extent {
        ApprovalExtent::Shown => ApprovalExtent::Wider,
        ApprovalExtent::Wider => ApprovalExtent::Shown,
    }
}
