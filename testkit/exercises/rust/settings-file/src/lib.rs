use std::collections::BTreeMap;

/// Reads settings; the error is the number of the faulty line.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    todo!()
}
