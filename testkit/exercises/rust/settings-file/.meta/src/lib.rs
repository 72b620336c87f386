use std::collections::BTreeMap;

/// Reads settings; the error is the number of the faulty line.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut settings = BTreeMap::new();
    let mut prefix = String::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            let section = section.strip_suffix(']').ok_or(number)?.trim();
            if section.is_empty() {
                return Err(number);
            }
            prefix = format!("{section}.");
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(number)?;
        let key = key.trim();
        if key.is_empty() {
            return Err(number);
        }
        settings.insert(format!("{prefix}{key}"), value.trim().to_string());
    }
    Ok(settings)
}
