//! Captures llama.cpp's error messages while a model file is loaded. It only reports them to its log, so the
//! log is captured during loading; otherwise it is discarded and nothing is printed.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Maximum number of messages kept.
const MAX_MESSAGES: usize = 16;

/// Runs `work` and returns its result with the errors logged on this thread in the meantime.
pub(super) fn capture_errors<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let given = tracing::subscriber::with_default(LoadLog(heard.clone()), work);
    let heard = std::mem::take(&mut *heard.lock());
    (given, heard)
}

struct LoadLog(Arc<Mutex<Vec<String>>>);

impl Subscriber for LoadLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        let mut heard = self.0.lock();
        if heard.len() < MAX_MESSAGES && !words.0.is_empty() {
            heard.push(words.0);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Words(String);

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.trim().clone_into(&mut self.0);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
