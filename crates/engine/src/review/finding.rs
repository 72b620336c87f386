//! Findings: their schema, and the check that they refer to existing lines.

use std::collections::HashMap;
use std::io::Read;

use fusee_tools::Workspace;
use fusee_tools::workspace::OpenedPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CodeReview;
use crate::agent::{AcceptedAnswer, AnswerCheck, JsonAnswer};

/// Lines of larger files are not counted, and any line number is accepted.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of problems reported at once.
const TOLD: usize = 8;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// Good to know.
    Info,
    /// Should be better.
    Minor,
    /// Wrong, and somebody will notice.
    Major,
    /// Wrong, and it does damage.
    Critical,
}

impl FindingSeverity {
    /// Returns the name used in JSON and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Critical => "critical",
        }
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct Finding {
    /// The file, from the project directory.
    pub file: String,
    /// The line, from 1.
    #[schemars(range(min = 1))]
    pub line: u64,
    /// How bad it is.
    pub severity: FindingSeverity,
    /// What is wrong, and how one knows.
    #[schemars(length(min = 1))]
    pub claim: String,
    /// What to do about it.
    pub suggestion: String,
}

/// What a review comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct Findings {
    /// What was looked at and found in order, or the answer to the question that was asked.
    #[schemars(length(min = 1))]
    pub summary: String,
    /// Everything found, if anything was.
    pub findings: Vec<Finding>,
    /// Findings that were about no line of the project, and so are not among the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub left_out: Vec<String>,
}

/// Returns the JSON Schema of a review's answer. The model sees it, including the doc comments of the types
/// above.
pub fn findings_schema() -> Value {
    let mut schema = schemars::schema_for!(Findings).to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
        fields.remove("title");
    }
    schema
}

/// Checks a review's answer and writes it in the requested format.
pub struct FindingsCheck {
    json: JsonAnswer,
    review: CodeReview,
}

impl FindingsCheck {
    /// Creates the check for a review.
    pub fn new(review: &CodeReview) -> Result<Self, String> {
        Ok(Self { json: JsonAnswer::new(&findings_schema())?, review: review.clone() })
    }
}

impl AnswerCheck for FindingsCheck {
    fn check(&self, answer: &str, workspace: &Workspace) -> Result<AcceptedAnswer, String> {
        let findings = self.read(answer)?;
        let problems = misplaced(&findings, workspace);
        if problems.is_empty() {
            return Ok(self.accept(findings));
        }
        Err(problems.into_iter().take(TOLD).map(|(_, problem)| problem).collect::<Vec<_>>().join("; "))
    }

    /// Keeps the findings that refer to existing lines and lists the others. If none does, the answer is
    /// rejected.
    fn check_last(&self, answer: &str, workspace: &Workspace) -> Result<AcceptedAnswer, String> {
        let mut findings = self.read(answer)?;
        let problems = misplaced(&findings, workspace);
        if problems.is_empty() || problems.len() == findings.findings.len() {
            return self.check(answer, workspace);
        }
        let mut at = 0..;
        findings.findings.retain(|_| {
            let here = at.next();
            !problems.iter().any(|(n, _)| Some(*n) == here)
        });
        let more = problems.len().saturating_sub(TOLD);
        findings.left_out = problems.into_iter().take(TOLD).map(|(_, problem)| problem).collect();
        if more > 0 {
            findings.left_out.push(format!("and {more} more"));
        }
        Ok(self.accept(findings))
    }
}

impl FindingsCheck {
    fn read(&self, answer: &str) -> Result<Findings, String> {
        serde_json::from_value(self.json.read(answer)?).map_err(|error| error.to_string())
    }

    fn accept(&self, mut findings: Findings) -> AcceptedAnswer {
        findings.findings.sort_by(|one, other| {
            let place = |finding: &Finding| (finding.file.clone(), finding.line);
            other.severity.cmp(&one.severity).then_with(|| place(one).cmp(&place(other)))
        });
        let worst = findings.findings.first().map(|finding| finding.severity);
        let fails_run = self.review.fail_on.is_some_and(|least| worst >= Some(least));
        AcceptedAnswer { answer: self.review.format.write(&findings), fails_run }
    }
}

/// Returns the findings that refer to missing files or lines, with their index.
fn misplaced(findings: &Findings, workspace: &Workspace) -> Vec<(usize, String)> {
    let mut known: HashMap<&str, Result<Option<u64>, String>> = HashMap::new();
    let mut problems = Vec::new();
    for (n, finding) in findings.findings.iter().enumerate() {
        let lines = known.entry(&finding.file).or_insert_with(|| lines_of(&finding.file, workspace));
        let problem = match lines {
            Err(problem) => problem.clone(),
            Ok(Some(lines)) if finding.line > *lines => {
                let lines = fusee_text::count(*lines, "line");
                format!("`{}` has {lines}, there is no line {}", finding.file, finding.line)
            }
            Ok(_) => continue,
        };
        problems.push((n, format!("finding {}: {problem}", n + 1)));
    }
    problems
}

/// Counts the lines of a file; `None` if it is too large. An empty file counts as one line, so that it can be
/// named.
fn lines_of(path: &str, workspace: &Workspace) -> Result<Option<u64>, String> {
    let located = workspace.locate(path).map_err(|problem| problem.to_string())?;
    match workspace.open_to_read(&located).map_err(|problem| problem.to_string())? {
        OpenedPath::File { size, .. } if size > MAX_BYTES => Ok(None),
        OpenedPath::File { file, .. } => {
            let mut content = Vec::new();
            file.take(MAX_BYTES).read_to_end(&mut content).map_err(|error| format!("`{path}`: {error}"))?;
            let ends = content.iter().filter(|byte| **byte == b'\n').count() as u64;
            Ok(Some((ends + u64::from(!content.ends_with(b"\n"))).max(1)))
        }
        OpenedPath::Directory(_) | OpenedPath::Special(_) => Err(format!("`{path}` is not a file")),
    }
}
