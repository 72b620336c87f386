//! Tracing of the runs of this process. Nothing happens unless an endpoint is set; without the feature there is none.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fusee::engine::journal::{Journal, RunId};
use fusee::engine::run::{RunHandle, RunKind, RunSpec};
use fusee_telemetry::{Exporter, RunTrace, TelemetrySettings, TraceContext, TracedRun};

use super::environment::Environment;
use super::stdio;

/// How long the end of the process waits for the collector.
const FLUSH: Duration = Duration::from_secs(3);

/// The exporter of this process, if there is one. Clones share it.
#[derive(Clone)]
pub(crate) struct Telemetry {
    settings: Option<TelemetrySettings>,
    /// Started with the first run.
    exporter: Arc<OnceLock<Exporter>>,
}

impl Telemetry {
    /// What the environment says.
    pub(crate) fn from_environment(environment: &Environment) -> Self {
        Self { settings: settings(environment, None), exporter: Arc::default() }
    }

    /// The same with the endpoint of a configuration, which the environment overrides.
    pub(crate) fn with_endpoint(&self, environment: &Environment, endpoint: Option<&str>) -> Self {
        let configured = || settings(environment, endpoint);
        Self { settings: self.settings.clone().or_else(configured), exporter: Arc::clone(&self.exporter) }
    }

    /// The `TRACEPARENT` of the commands of a run.
    pub(crate) fn trace_parent(&self, run: &RunId) -> Option<String> {
        let context = self.context(run)?;
        Some(context.header(RunTrace::agent_span(run.as_str())))
    }

    /// The trace of a run that is about to be started or resumed. What an earlier process recorded is known to it.
    pub(crate) fn begin(&self, run: &RunId, spec: &RunSpec, journal: &Journal) -> Option<RunTrace> {
        let (settings, context) = (self.settings.as_ref()?, self.context(run)?);
        let mut trace = RunTrace::new(traced(run, spec), context, settings.content);
        // A new run is not in the journal yet. The earlier process sent the spans that it ended.
        let _ = trace.read(journal, run);
        Some(trace)
    }

    /// Traces a run from now on.
    pub(crate) fn watch(&self, handle: &RunHandle, trace: RunTrace) {
        let Some(settings) = &self.settings else { return };
        let exporter = self.exporter.get_or_init(|| {
            Exporter::start(settings.clone(), |problem| {
                stdio::error(&format!("warning: {problem}; `fusee runs export --otlp` sends a run later\n"));
            })
        });
        exporter.watch(handle.events(), trace);
    }

    /// Sends what is left, at the end of the process.
    pub(crate) async fn flush(&self) {
        if let Some(exporter) = self.exporter.get() {
            exporter.flush(FLUSH).await;
        }
    }

    fn context(&self, run: &RunId) -> Option<TraceContext> {
        let settings = self.settings.as_ref()?;
        Some(settings.context.unwrap_or_else(|| TraceContext::of_run(run.as_str())))
    }
}

/// The settings of the export, if an endpoint is set: in the environment, or else `endpoint`.
pub(crate) fn settings(environment: &Environment, endpoint: Option<&str>) -> Option<TelemetrySettings> {
    let configured = |name: &str| endpoint.filter(|_| name == "OTEL_EXPORTER_OTLP_ENDPOINT");
    TelemetrySettings::read(|name| environment.text(name).or_else(|| configured(name)).map(str::to_owned))
}

/// What a trace needs to know of a run.
pub(crate) fn traced(run: &RunId, spec: &RunSpec) -> TracedRun {
    let workflow = match &spec.work {
        RunKind::Workflow(_) => Some(spec.request.chars().take(80).collect()),
        RunKind::Request | RunKind::Template(_) => None,
    };
    TracedRun { run: run.to_string(), workflow, base_url: spec.base_url.clone() }
}
