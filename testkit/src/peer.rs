//! A JSON-RPC peer: the other program on the standard streams of a command that speaks MCP or ACP, one message per
//! line. It checks that stdout carries nothing but messages.

use serde_json::{Value, json};

use crate::project::{Command, Outcome, Running};

/// The other end of a connection.
pub struct Peer {
    running: Running,
    /// Bytes of stdout that were taken.
    taken: usize,
    /// Messages that nobody has taken yet.
    inbox: Vec<Value>,
    next_id: u64,
}

impl Peer {
    /// Starts the command and connects to it.
    pub fn connect(command: Command<'_>) -> Self {
        Self { running: command.start(), taken: 0, inbox: Vec::new(), next_id: 1 }
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.running.type_in(&format!("{message}\n"));
    }

    /// Sends text as it is.
    pub fn send_text(&mut self, text: &str) {
        self.running.type_in(text);
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the response to a request: its `result`, or the whole message if it is an error.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> Value {
        let is_response = |message: &Value| message["id"] == id && message.get("method").is_none();
        let mut message = self.wait_for(&format!("response {id}"), is_response);
        match message.get_mut("result") {
            Some(result) => result.take(),
            None => message,
        }
    }

    /// Sends a request and waits for its response.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.response(id)
    }

    /// Waits for a request or notification of the other side.
    #[track_caller]
    pub fn method(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)
    }

    /// Answers a request of the other side.
    pub fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Takes the first message that fits, waiting for it.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            self.read();
            if let Some(at) = self.inbox.iter().position(&fits) {
                return self.inbox.remove(at);
            }
            let taken = self.taken;
            self.running
                .wait_for_stdout(what, |text| text.get(taken..).is_some_and(|new| new.contains('\n')));
        }
    }

    /// Takes all messages that arrived so far and fit, in their order.
    pub fn take_all(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.read();
        let (taken, left) = std::mem::take(&mut self.inbox).into_iter().partition(|message| fits(message));
        self.inbox = left;
        taken
    }

    fn read(&mut self) {
        let text = self.running.stdout_so_far();
        let new = text.get(self.taken..).unwrap_or_default();
        let Some(end) = new.rfind('\n') else { return };
        for line in new[..end].lines() {
            let message: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("a line on stdout that is no message ({error}): {line}"));
            self.inbox.push(message);
        }
        self.taken += end + 1;
    }

    /// Handle for signals and for waiting.
    pub fn process(&mut self) -> &mut Running {
        &mut self.running
    }

    /// Kills the process with SIGKILL.
    pub fn kill(self) {
        self.running.signal(rustix::process::Signal::KILL);
        self.running.wait();
    }

    /// Closes the connection and waits for the end of the process.
    pub fn close(mut self) -> Outcome {
        self.running.close_stdin();
        self.running.wait()
    }
}
