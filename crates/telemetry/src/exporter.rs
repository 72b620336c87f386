//! Sends spans and metrics. One task per process collects what ends and sends it in batches; a collector that is down
//! or slow never delays a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fusee::journal::{Clock, EventStream};
use fusee::model;
use fusee::system::SystemClock;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::metrics::Metrics;
use crate::otlp;
use crate::settings::TelemetrySettings;
use crate::span::TraceSpan;
use crate::trace::RunTrace;

/// Spans that wait to be sent; further ones are dropped.
const QUEUE: usize = 2048;
/// Spans in one request.
const BATCH: usize = 512;
/// How long a span waits for others.
const DELAY: Duration = Duration::from_secs(2);

/// Why an export failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError(pub String);

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExportError {}

enum ExporterMessage {
    Span(Box<TraceSpan>),
    Flush(oneshot::Sender<()>),
}

/// Sends the spans and metrics of a process. Clones share the connection.
#[derive(Clone)]
pub struct Exporter {
    settings: Arc<TelemetrySettings>,
    messages: mpsc::Sender<ExporterMessage>,
    runs: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>>,
}

impl Exporter {
    /// Starts the exporter. `warn` is called once, when the collector cannot be reached.
    pub fn start(settings: TelemetrySettings, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let settings = Arc::new(settings);
        let (messages, inbox) = mpsc::channel(QUEUE);
        let sender = Sender {
            settings: Arc::clone(&settings),
            traces: Endpoint::new(&settings.traces),
            metrics_endpoint: settings.metrics.as_deref().map(Endpoint::new),
            metrics: Metrics::default(),
            start_ms: SystemClock.now_ms(),
            warned: AtomicBool::new(false),
            warn: Box::new(warn),
        };
        tokio::spawn(sender.work(inbox));
        Self { settings, messages, runs: Arc::default() }
    }

    /// The endpoints and headers in use.
    #[must_use]
    pub fn settings(&self) -> &TelemetrySettings {
        &self.settings
    }

    /// Traces a run until its events end.
    pub fn watch(&self, events: EventStream, mut trace: RunTrace) {
        let (messages, mut events) = (self.messages.clone(), events.recorded());
        let run = tokio::spawn(async move {
            while let Ok(Some(record)) = events.next().await {
                for span in trace.apply(&record) {
                    // A full queue means that the collector does not keep up; the run does not wait for it.
                    let _ = messages.try_send(ExporterMessage::Span(Box::new(span)));
                }
            }
        });
        let mut runs = self.runs.lock();
        runs.retain(|run| !run.is_finished());
        runs.push(run);
    }

    /// Sends all ended spans and metrics; waits at most `limit`.
    pub async fn flush(&self, limit: Duration) {
        let work = async {
            let runs: Vec<_> = std::mem::take(&mut *self.runs.lock());
            for run in runs {
                // A run that is still working keeps its open spans to itself.
                let _ = tokio::time::timeout(Duration::from_millis(200), run).await;
            }
            let (sent, is_sent) = oneshot::channel();
            if self.messages.send(ExporterMessage::Flush(sent)).await.is_ok() {
                // The sender task lives as long as the runtime.
                let _ = is_sent.await;
            }
        };
        // What is not sent by then is lost; the journal can be exported later.
        let _ = tokio::time::timeout(limit, work).await;
    }

    /// Sends spans at once and reports the failure, for an export on request.
    pub async fn send(settings: &TelemetrySettings, spans: &[TraceSpan]) -> Result<(), ExportError> {
        let endpoint = Endpoint::new(&settings.traces);
        for batch in spans.chunks(BATCH) {
            endpoint.post(settings, otlp::trace_request(&settings.resource, batch)).await?;
        }
        Ok(())
    }
}

/// A URL of the collector, and the client that keeps a connection to it.
struct Endpoint {
    url: String,
    client: OnceLock<reqwest::Client>,
}

impl Endpoint {
    fn new(url: &str) -> Self {
        Self { url: url.to_owned(), client: OnceLock::new() }
    }

    async fn post(&self, settings: &TelemetrySettings, body: Vec<u8>) -> Result<(), ExportError> {
        let failed = |cause: String| ExportError(format!("cannot export to {}: {cause}", self.url));
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = model::http_client(&self.url, &model::Connection::default());
                let client = client.map_err(|error| failed(error.to_string()))?;
                self.client.get_or_init(|| client)
            }
        };
        let mut request = client.post(&self.url).header("content-type", "application/x-protobuf").body(body);
        for (name, value) in &settings.headers {
            request = request.header(name, value);
        }
        let answer = tokio::time::timeout(settings.timeout, request.send()).await;
        let response = match answer {
            Err(_) => return Err(failed(format!("no answer within {} ms", settings.timeout.as_millis()))),
            Ok(Err(error)) => return Err(failed(root(&error))),
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(());
        }
        Err(failed(format!("it answered {}", response.status())))
    }
}

struct Sender {
    settings: Arc<TelemetrySettings>,
    traces: Endpoint,
    metrics_endpoint: Option<Endpoint>,
    metrics: Metrics,
    start_ms: i64,
    warned: AtomicBool,
    warn: Box<dyn Fn(&str) + Send + Sync>,
}

impl Sender {
    async fn work(mut self, mut inbox: mpsc::Receiver<ExporterMessage>) {
        let mut batch: Vec<TraceSpan> = Vec::new();
        loop {
            let next = if batch.is_empty() {
                inbox.recv().await
            } else {
                match tokio::time::timeout(DELAY, inbox.recv()).await {
                    Ok(next) => next,
                    Err(_) => {
                        self.send(&mut batch).await;
                        continue;
                    }
                }
            };
            match next {
                Some(ExporterMessage::Span(span)) => {
                    self.metrics.record(&span);
                    batch.push(*span);
                    if batch.len() >= BATCH {
                        self.send(&mut batch).await;
                    }
                }
                Some(ExporterMessage::Flush(sent)) => {
                    self.send(&mut batch).await;
                    // The process may have stopped waiting.
                    let _ = sent.send(());
                }
                None => return,
            }
        }
    }

    async fn send(&self, batch: &mut Vec<TraceSpan>) {
        let spans = std::mem::take(batch);
        if spans.is_empty() {
            return;
        }
        let settings = &self.settings;
        let body = otlp::trace_request(&settings.resource, &spans);
        let mut sent = self.traces.post(settings, body).await;
        if let (Ok(()), Some(endpoint)) = (&sent, &self.metrics_endpoint) {
            let (histograms, now_ms) = (self.metrics.histograms(), SystemClock.now_ms());
            let body = otlp::metrics_request(&settings.resource, &histograms, self.start_ms, now_ms);
            sent = endpoint.post(settings, body).await;
        }
        if let Err(error) = sent
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            (self.warn)(&error.0);
        }
    }
}

/// The innermost cause, which says what happened.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
