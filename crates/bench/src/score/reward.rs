//! Reward files as Harbor's tests write them: `reward.json` (names to numbers) wins over `reward.txt` (one number).

use std::path::Path;

use serde_json::Value;

/// Maximum size of a reward file.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the reward from the folder of the verifier; the error says what is wrong with it.
pub(super) fn read(folder: &Path) -> Result<f64, String> {
    match text(&folder.join("reward.json"))? {
        Some(text) => of_json(&text),
        None => match text(&folder.join("reward.txt"))? {
            Some(text) => of_text(&text),
            None => {
                Err("the tests wrote no reward: neither /logs/verifier/reward.json nor reward.txt exists"
                    .to_owned())
            }
        },
    }
}

fn text(path: &Path) -> Result<Option<String>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if !found.is_file() => return Err(format!("/logs/verifier/{name} is not a file")),
        Ok(found) if found.len() > MAX_BYTES => return Err(format!("/logs/verifier/{name} is too large")),
        _ => {}
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("/logs/verifier/{name}: {error}"))?;
    if text.trim().is_empty() {
        return Err(format!("/logs/verifier/{name} is empty"));
    }
    Ok(Some(text))
}

fn of_text(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("/logs/verifier/reward.txt: `{}` is not a finite number", text.trim()))
}

/// The entry `reward`, the only entry, or the mean of all.
fn of_json(text: &str) -> Result<f64, String> {
    let wrong = |what: String| format!("/logs/verifier/reward.json: {what}");
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let Value::Object(entries) = value else { return Err(wrong("not an object".to_owned())) };
    let mut numbers = Vec::new();
    for (name, value) in &entries {
        let number = value.as_f64().filter(|number| number.is_finite());
        numbers.push(number.ok_or_else(|| wrong(format!("`{name}` is not a finite number")))?);
    }
    if let Some(position) = entries.keys().position(|name| name == "reward") {
        return Ok(numbers[position]);
    }
    match numbers.len() {
        0 => Err(wrong("it has no entry".to_owned())),
        count => Ok(numbers.iter().sum::<f64>() / count as f64),
    }
}

#[cfg(test)]
mod tests;
