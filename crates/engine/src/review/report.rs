//! Formats findings as text, JSON, or SARIF for tools that show them next to the code.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::finding::{Finding, FindingSeverity, Findings};

/// Output format of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingsFormat {
    /// Plain text.
    #[default]
    Text,
    /// `{ "summary", "findings": [{ file, line, severity, claim, suggestion }] }`.
    Json,
    /// SARIF 2.1.0.
    Sarif,
}

impl FindingsFormat {
    /// Formats the findings, in order, as one text.
    pub fn write(self, findings: &Findings) -> String {
        match self {
            Self::Text => text(findings),
            Self::Json => pretty(&json!(findings)),
            Self::Sarif => pretty(&sarif(findings)),
        }
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn text(findings: &Findings) -> String {
    let mut text = String::new();
    for finding in &findings.findings {
        let Finding { file, line, severity, claim, suggestion } = finding;
        text.push_str(&format!("{}: {file}:{line}\n", severity.as_str()));
        text.push_str(&indented(claim));
        if !suggestion.trim().is_empty() {
            text.push_str(&indented(&format!("→ {}", suggestion.trim())));
        }
        text.push('\n');
    }
    text.push_str(findings.summary.trim());
    text.push_str("\n\n");
    for left_out in &findings.left_out {
        text.push_str(&format!("left out: {left_out}\n"));
    }
    text.push_str(&count(&findings.findings));
    text
}

fn indented(text: &str) -> String {
    text.trim().lines().map(|line| format!("  {line}\n")).collect()
}

/// Returns the summary line.
fn count(findings: &[Finding]) -> String {
    let of =
        |severity: FindingSeverity| findings.iter().filter(|finding| finding.severity == severity).count();
    let parts: Vec<String> =
        [FindingSeverity::Critical, FindingSeverity::Major, FindingSeverity::Minor, FindingSeverity::Info]
            .into_iter()
            .filter(|severity| of(*severity) > 0)
            .map(|severity| format!("{} {}", of(severity), severity.as_str()))
            .collect();
    match findings.len() {
        0 => "no findings".to_owned(),
        1 => format!("1 finding: {}", parts.join(", ")),
        count => format!("{count} findings: {}", parts.join(", ")),
    }
}

fn sarif(findings: &Findings) -> Value {
    let level = |severity: FindingSeverity| match severity {
        FindingSeverity::Info => "note",
        FindingSeverity::Minor => "warning",
        FindingSeverity::Major | FindingSeverity::Critical => "error",
    };
    let results: Vec<Value> = findings
        .findings
        .iter()
        .map(|finding| {
            let suggestion = finding.suggestion.trim();
            let message = match suggestion {
                "" => finding.claim.clone(),
                suggestion => format!("{}\n\nSuggestion: {suggestion}", finding.claim.trim()),
            };
            json!({
                "ruleId": finding.severity.as_str(),
                "level": level(finding.severity),
                "message": { "text": message },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": uri(&finding.file), "uriBaseId": "%SRCROOT%" },
                    "region": { "startLine": finding.line },
                } }],
            })
        })
        .collect();
    let mut invocation = json!({ "executionSuccessful": true });
    if !findings.left_out.is_empty() {
        let notification = |text: &String| json!({ "level": "warning", "message": { "text": text } });
        invocation["toolExecutionNotifications"] = findings.left_out.iter().map(notification).collect();
    }
    let rules: Vec<Value> = [
        FindingSeverity::Info,
        FindingSeverity::Minor,
        FindingSeverity::Major,
        FindingSeverity::Critical,
    ]
    .map(|severity| json!({ "id": severity.as_str(), "defaultConfiguration": { "level": level(severity) } }))
    .into();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fusee", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules,
            } },
            "invocations": [invocation],
            "properties": { "summary": findings.summary },
            "results": results,
        }],
    })
}

/// Converts a path to a relative URI, with percent-encoding.
fn uri(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.trim_start_matches("./")
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
