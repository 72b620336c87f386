/// Keeps messages.
pub struct RingLog {
    messages: Vec<String>,
}

impl RingLog {
    pub fn new() -> Self {
        RingLog { messages: Vec::new() }
    }

    pub fn push(&mut self, message: &str) {
        self.messages.push(message.to_string());
    }

    pub fn messages(&self) -> Vec<&str> {
        self.messages.iter().map(String::as_str).collect()
    }
}
