//! Merge sort with a comparison function of the program.

use super::higher_order::NextStep;
use crate::value::Value;

/// A bottom-up merge sort that is suspended at each comparison.
pub(super) struct MergeSort {
    less: Value,
    from: Vec<Value>,
    to: Vec<Value>,
    /// Length of the sorted runs.
    run: usize,
    /// Next index in the left and right run, and the ends of both.
    left: usize,
    right: usize,
    left_end: usize,
    right_end: usize,
}

impl MergeSort {
    pub(super) fn new(less: Value, items: Vec<Value>) -> Self {
        let to = Vec::with_capacity(items.len());
        let mut sort = Self { less, from: items, to, run: 1, left: 0, right: 0, left_end: 0, right_end: 0 };
        sort.begin_pair(0);
        sort
    }

    /// Takes the result of the last comparison and pushes the call of the next one.
    pub(super) fn step(&mut self, answer: Option<Value>, stack: &mut Vec<Value>) -> NextStep {
        if let Some(answer) = answer {
            // The comparison asks whether the right item comes first, which keeps the sort stable.
            self.move_one(answer.is_true());
        }
        loop {
            if self.left < self.left_end && self.right < self.right_end {
                let (left, right) = (self.item(self.left), self.item(self.right));
                stack.extend([self.less.clone(), right, left]);
                return NextStep::Call(2);
            }
            while self.left < self.left_end {
                self.move_one(false);
            }
            while self.right < self.right_end {
                self.move_one(true);
            }
            if self.to.len() < self.from.len() {
                self.begin_pair(self.to.len());
                continue;
            }
            std::mem::swap(&mut self.from, &mut self.to);
            self.to.clear();
            self.run = self.run.saturating_mul(2);
            if self.run >= self.from.len() {
                return NextStep::Return(Value::list(std::mem::take(&mut self.from)));
            }
            self.begin_pair(0);
        }
    }

    pub(super) fn held<'n>(&'n self, found: &mut Vec<&'n Value>) {
        found.push(&self.less);
        found.extend(self.from.iter().chain(&self.to));
    }

    fn begin_pair(&mut self, start: usize) {
        let end = self.from.len();
        self.left = start;
        self.left_end = start.saturating_add(self.run).min(end);
        self.right = self.left_end;
        self.right_end = self.left_end.saturating_add(self.run).min(end);
    }

    fn item(&self, index: usize) -> Value {
        self.from.get(index).cloned().unwrap_or_default()
    }

    fn move_one(&mut self, from_right: bool) {
        let index = if from_right { &mut self.right } else { &mut self.left };
        let at = *index;
        *index += 1;
        let item = self.from.get_mut(at).map(std::mem::take).unwrap_or_default();
        self.to.push(item);
    }
}
