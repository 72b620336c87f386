//! The sources that a test uses, by its import lines and its name. `location.rs` uses it to get from a failing test
//! to the file that has to change.

use super::location::stem;

/// Paths of the sources that a test uses, in order of its lines.
pub(super) fn used_by(test: &str, text: &str, sources: &[&String]) -> Vec<String> {
    let (folder, name) = test.rsplit_once('/').unwrap_or(("", test));
    let extension = name.rsplit_once('.').map_or("", |(_, end)| end);
    let mut wanted: Vec<String> = Vec::new();
    match extension {
        "py" => text.lines().for_each(|line| python(line.trim(), &mut wanted)),
        "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "vue" => javascript(folder, text, &mut wanted),
        "rs" => rust(folder, text, &mut wanted),
        "rb" => ruby(text, &mut wanted),
        _ => {}
    }
    let mut found: Vec<String> = Vec::new();
    let mut add = |path: &str| {
        if !found.iter().any(|known| known == path) {
            found.push(path.to_owned());
        }
    };
    for wanted in &wanted {
        let is_wanted = |path: &&&String| {
            path.strip_suffix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        sources.iter().filter(is_wanted).for_each(|path| add(path));
    }
    // A package is tested by the files beside it.
    if extension == "go" {
        let beside = |path: &&&String| path.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
        sources.iter().filter(|path| path.ends_with(".go")).filter(beside).for_each(|path| add(path));
    }
    let subject = subject_of(stem(test));
    let is_namesake = |path: &&&String| {
        stem(path).eq_ignore_ascii_case(subject) && path.ends_with(&format!(".{extension}"))
    };
    sources.iter().filter(is_namesake).for_each(|path| add(path));
    found
}

/// The name of what a test is about, from its own: `leap` from `test_leap`, `LeapTest` and `leap.test`.
fn subject_of(name: &str) -> &str {
    let name = name.strip_prefix("test_").unwrap_or(name);
    ["_tests", "_test", "_spec", ".test", ".spec", "Tests", "Test", "Spec"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

fn python(line: &str, wanted: &mut Vec<String>) {
    let mut module = |name: &str| {
        let path = name.trim().trim_start_matches('.').replace('.', "/");
        if !path.is_empty() {
            wanted.extend([format!("{path}.py"), format!("{path}/__init__.py")]);
        }
    };
    if let Some(rest) = line.strip_prefix("from ") {
        let Some((from, names)) = rest.split_once(" import ") else { return };
        module(from);
        for name in names.trim_matches(['(', ')']).split(',') {
            let name = name.split_whitespace().next().unwrap_or_default();
            module(&format!("{from}.{name}"));
        }
    } else if let Some(rest) = line.strip_prefix("import ") {
        rest.split(',').filter_map(|part| part.split_whitespace().next()).for_each(module);
    }
}

fn javascript(folder: &str, text: &str, wanted: &mut Vec<String>) {
    for quote in ['\'', '"', '`'] {
        for path in text.split(quote).skip(1).step_by(2).filter(|path| path.starts_with('.')) {
            let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
            for part in path.split('/') {
                match part {
                    "." | "" => {}
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            let path = parts.join("/");
            let ends = ["", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".vue", "/index.js", "/index.ts"];
            wanted.extend(ends.iter().map(|end| format!("{path}{end}")));
            // TypeScript names the compiled file.
            wanted.extend(path.strip_suffix(".js").map(|path| format!("{path}.ts")));
        }
    }
}

fn rust(folder: &str, text: &str, wanted: &mut Vec<String>) {
    // Integration tests are beside `src`.
    let root = folder.strip_suffix("tests").unwrap_or(folder);
    for line in text.lines() {
        let Some(rest) = line.trim().strip_prefix("use ") else { continue };
        let parts =
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').skip(1).filter(|part| !part.is_empty());
        wanted.extend(parts.map(|part| format!("{root}src/{part}.rs")));
    }
    if folder.ends_with("tests") {
        wanted.push(format!("{root}src/lib.rs"));
    }
}

fn ruby(text: &str, wanted: &mut Vec<String>) {
    for line in text.lines().map(str::trim).filter(|line| line.starts_with("require")) {
        if let Some(path) = line.split(['\'', '"']).nth(1) {
            let path = path.trim_start_matches("./").trim_start_matches("../").trim_end_matches(".rb");
            wanted.push(format!("{path}.rb"));
        }
    }
}

#[cfg(test)]
mod tests;
