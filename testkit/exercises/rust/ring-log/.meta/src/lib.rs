use std::collections::VecDeque;

/// Keeps the newest messages.
pub struct RingLog {
    messages: VecDeque<String>,
    capacity: usize,
    forgotten: usize,
}

impl RingLog {
    pub fn new(capacity: usize) -> Self {
        RingLog { messages: VecDeque::new(), capacity, forgotten: 0 }
    }

    pub fn push(&mut self, message: &str) {
        self.messages.push_back(message.to_string());
        self.shrink();
    }

    pub fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.shrink();
    }

    pub fn messages(&self) -> Vec<&str> {
        self.last(self.messages.len())
    }

    pub fn last(&self, n: usize) -> Vec<&str> {
        let skipped = self.messages.len().saturating_sub(n);
        self.messages.iter().skip(skipped).map(String::as_str).collect()
    }

    pub fn forgotten(&self) -> usize {
        self.forgotten
    }

    fn shrink(&mut self) {
        while self.messages.len() > self.capacity {
            self.messages.pop_front();
            self.forgotten += 1;
        }
    }
}
