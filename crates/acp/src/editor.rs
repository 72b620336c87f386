//! Documents that are open in the client's editor, read over the protocol (`fs/read_text_file`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1::{Error, ReadTextFileRequest, ReadTextFileResponse};
use fusee::engine::tools::OpenDocuments;
use tokio::runtime::Handle;

use crate::connection::Connection;

/// How long the client may take to answer. One that takes longer is not asked again in the session.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The documents of one session.
pub(crate) struct EditorDocuments {
    connection: Arc<Connection>,
    session: String,
    runtime: Handle,
    is_silent: AtomicBool,
}

impl EditorDocuments {
    /// Asks the client for the documents of a session. Must be called on a runtime.
    pub(crate) fn new(connection: Arc<Connection>, session: String) -> Self {
        Self { connection, session, runtime: Handle::current(), is_silent: AtomicBool::new(false) }
    }
}

impl OpenDocuments for EditorDocuments {
    fn text(&self, path: &Path) -> Option<String> {
        if self.is_silent.load(Ordering::Relaxed) {
            return None;
        }
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        let answer = self.connection.request("fs/read_text_file", &request);
        let answer: Result<Result<ReadTextFileResponse, Error>, _> =
            self.runtime.block_on(async { tokio::time::timeout(ANSWER_TIME, answer).await });
        match answer {
            Ok(answer) => answer.ok().map(|answer| answer.content),
            Err(_) => {
                self.is_silent.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}
