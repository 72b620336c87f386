//! Pattern matching of `match`: whether a value matches a pattern, and the values its names are bound to.

use super::Machine;
use crate::builtin::{compare, field_of};
use crate::bytecode::PatternPart;
use crate::runtime_error::UnlocatedError;
use crate::value::{List, Value};

impl Machine {
    /// The values of the pattern's names in order, or `None` if the value does not match.
    pub(super) fn fits(&mut self, pattern: u32, value: Value) -> Result<Option<Vec<Value>>, UnlocatedError> {
        let program = self.program.clone();
        let parts = &program.patterns[pattern as usize].parts;
        let mut bound = Vec::new();
        // The compiler traverses the parts in the same order when it numbers the names.
        let mut open: Vec<(u32, Value)> = vec![(0, value)];
        while let Some((part, value)) = open.pop() {
            match &parts[part as usize] {
                PatternPart::Any => {}
                PatternPart::Name => bound.push(value),
                PatternPart::Literal(literal) => {
                    if !compare::equal(&mut self.fuel, literal, &value)? {
                        return Ok(None);
                    }
                }
                PatternPart::List { items, rest } => {
                    let Value::List(list) = &value else { return Ok(None) };
                    if !open_items(list, items, *rest, &mut open) {
                        return Ok(None);
                    }
                }
                PatternPart::Tag { tag, items, rest } => {
                    let Value::List(list) = &value else { return Ok(None) };
                    let tagged = matches!(list.first(), Some(Value::Symbol(name)) if name == tag);
                    let Some(list) = list.rest().filter(|_| tagged) else { return Ok(None) };
                    if !open_items(&list, items, *rest, &mut open) {
                        return Ok(None);
                    }
                }
                PatternPart::Map(entries) => {
                    for (key, part) in entries {
                        match field_of(&value, key) {
                            Some(value) => open.push((*part, value)),
                            None => return Ok(None),
                        }
                    }
                }
            }
        }
        Ok(Some(bound))
    }
}

/// Pairs the items of a list with their parts; false if the number of items does not match.
fn open_items(list: &List, parts: &[u32], rest: bool, open: &mut Vec<(u32, Value)>) -> bool {
    let fixed = parts.len() - usize::from(rest);
    let fits = if rest { list.len() >= fixed } else { list.len() == fixed };
    if !fits {
        return false;
    }
    open.extend(parts.iter().take(fixed).copied().zip(list.iter().cloned()));
    if let (true, Some(part)) = (rest, parts.last()) {
        let mut tail = list.clone();
        for _ in 0..fixed {
            tail = tail.rest().unwrap_or_default();
        }
        open.push((*part, Value::List(tail)));
    }
    true
}
