//! What a run says about the hosts that its commands and web tools want to reach: asks the user about those that no rule
//! allows, once per host, and reports every host in the events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fusee_journal::event::{Event, NetworkAccess, NetworkVerdict};
use fusee_journal::{BoxFuture, Branch, DurableRun, StepKind, StepRequest};
use fusee_model::CancellationToken;
use fusee_tools::Sandbox;
use fusee_tools::host_proxy::{AttachedGate, HostGate, HostRules, ProxyError};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::OnceCell;

use super::RunSpec;
use crate::approval::rules::{ApprovalRules, RuleDecision};
use crate::approval::{ApprovalAnswer, ApprovalMode, ApprovalQuestion, Approver, signal_name};

/// Maximum number of hosts that a run asks about or reports; a command can make up names as it likes.
const MAX_HOSTS: usize = 1000;

/// Name of the question.
const NETWORK: &str = "network";

/// The answer about a host: why it is refused.
type HostAnswer = Arc<OnceCell<Result<(), String>>>;

/// Asks and reports for one run, on behalf of its commands or of a tool.
#[derive(Clone)]
pub(super) struct RunGate {
    /// Who wants to reach a host, as questions name it.
    subject: &'static str,
    shared: Arc<GateState>,
}

/// What the gates of a run share.
struct GateState {
    engine: Arc<dyn DurableRun>,
    approver: Arc<dyn Approver>,
    approve: ApprovalMode,
    rules: ApprovalRules,
    limit: Duration,
    cancel: CancellationToken,
    answers: Mutex<HashMap<String, HostAnswer>>,
    reported: Mutex<HashSet<(String, u16, &'static str)>>,
}

impl RunGate {
    /// The gate of a run, for its commands.
    pub(super) fn new(
        engine: &Arc<dyn DurableRun>,
        approver: &Arc<dyn Approver>,
        settings: &RunSpec,
        cancel: &CancellationToken,
    ) -> Self {
        let shared = GateState {
            engine: Arc::clone(engine),
            approver: Arc::clone(approver),
            approve: settings.approve,
            rules: settings.rules.clone(),
            limit: Duration::from_secs(settings.limits.approval_timeout_s),
            cancel: cancel.clone(),
            answers: Mutex::default(),
            reported: Mutex::default(),
        };
        Self { subject: "a command", shared: Arc::new(shared) }
    }

    /// The same gate for a tool.
    pub(super) fn for_tool(&self, subject: &'static str) -> Self {
        Self { subject, ..self.clone() }
    }

    /// Connects the proxy of a sandbox to the run, if there is one.
    pub(super) fn attach(&self, sandbox: &Sandbox) -> Option<AttachedGate> {
        sandbox.proxy().map(|proxy| proxy.attach(Arc::new(self.clone())))
    }
}

impl HostGate for RunGate {
    fn admit<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            // What is no name cannot be shown to anybody.
            HostRules::check(host).map_err(|error| error.to_string())?;
            let name = host.to_ascii_lowercase();
            let answer = {
                let mut answers = self.shared.answers.lock();
                if answers.len() >= MAX_HOSTS && !answers.contains_key(&name) {
                    return Err(format!("more than {MAX_HOSTS} hosts were asked about"));
                }
                Arc::clone(answers.entry(name.clone()).or_default())
            };
            answer.get_or_init(|| self.ask(&name, port)).await.clone()
        })
    }

    fn report(&self, host: &str, port: u16, result: &Result<(), ProxyError>) {
        let (verdict, reason) = match result {
            Ok(()) => (NetworkVerdict::Allowed, None),
            Err(ProxyError::Refused(reason)) => (NetworkVerdict::Refused, Some(reason.clone())),
            Err(ProxyError::Failed(reason)) => (NetworkVerdict::Failed, Some(reason.clone())),
        };
        let mut reported = self.shared.reported.lock();
        if reported.len() >= MAX_HOSTS || !reported.insert((host.to_owned(), port, verdict.as_str())) {
            return;
        }
        drop(reported);
        let access = NetworkAccess { host: host.to_owned(), port, verdict, reason };
        self.shared.engine.note(&Branch::main(), Event::Network(access));
    }
}

impl RunGate {
    /// Asks the user about a host. The answer is the only step of a branch of the host, so it lasts for the run.
    async fn ask(&self, host: &str, port: u16) -> Result<(), String> {
        // A rule or a lasting answer is about the host, whatever the port.
        let arguments = json!({ "host": host });
        match self.shared.rules.decide(NETWORK, &arguments) {
            Some(RuleDecision::Allow) => return Ok(()),
            Some(RuleDecision::Deny) => return Err(format!("a user rule denies {host}")),
            Some(RuleDecision::Ask) | None => {}
        }
        if self.shared.approve == ApprovalMode::Never {
            return Err(format!("{host} is not one of the allowed hosts, and this run may not ask"));
        }
        let (task, call_id) = (Branch::main(), format!("{NETWORK}:{host}"));
        let question = ApprovalQuestion {
            call_id: call_id.clone(),
            name: NETWORK.to_owned(),
            arguments,
            reason: format!(
                "{} requests access to {host} (port {port}), which is not an allowed host",
                self.subject
            ),
        };
        let GateState { engine, approver, limit, cancel, .. } = &*self.shared;
        engine.note(
            &task,
            Event::ApprovalRequested {
                call_id: call_id.clone(),
                name: question.name.clone(),
                arguments: question.arguments.clone(),
                reason: question.reason.clone(),
            },
        );
        let branch = task.aside(NETWORK).child(host);
        let step = StepRequest::new(&branch, StepKind::Wait, NETWORK)
            .with_args(serde_json::to_value(&question).unwrap_or_default());
        let late = ApprovalAnswer::no("nobody answered in time");
        let ask = async {
            match cancel.run_until_cancelled(approver.ask(&question)).await {
                Some(answer) => answer,
                None => ApprovalAnswer::no("cancelled"),
            }
        };
        let waited = engine.wait(step, signal_name(&task, &call_id), (*limit, late), ask).await;
        let ApprovalAnswer { approved, reason, .. } =
            waited.map_or_else(|stop| ApprovalAnswer::no(stop.to_string()), |waited| waited.value);
        let resolved = Event::ApprovalResolved { call_id, approved, reason: reason.clone() };
        engine.note(&task, resolved);
        match approved {
            true => Ok(()),
            false => {
                Err(format!("{host} was not allowed: {}", reason.as_deref().unwrap_or("the user declined")))
            }
        }
    }
}
