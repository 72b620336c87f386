//! The method `plain`: one request with the files and the tests in the prompt, and the files of the reply written
//! as they are. It is what every tool has to be better than.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::Outcome;
use crate::language::Language;

/// Bound of a reply, so that one that repeats itself ends.
const MAX_TOKENS: u32 = 4096;

#[derive(Args)]
pub(crate) struct Options {
    #[arg(long)]
    base_url: String,
    #[arg(long)]
    model: String,
    #[arg(long)]
    request: String,
    /// Files that are only shown
    #[arg(long)]
    read: Vec<PathBuf>,
    /// Files to write
    files: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let body = json!({
        "model": options.model,
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": prompt(options)?}],
    });
    let url = format!("{}/chat/completions", options.base_url);
    let fault = |error: ureq::Error| format!("{url}: {error}");
    let mut response =
        ureq::post(&url).header("content-type", "application/json").send(body.to_string()).map_err(fault)?;
    let reply = response.body_mut().read_to_string().map_err(fault)?;
    let reply: Value = serde_json::from_str(&reply).map_err(|error| format!("{url}: {error}"))?;
    let text = reply.pointer("/choices/0/message/content").and_then(Value::as_str).unwrap_or_default();
    println!("{text}");
    for (file, content) in written_files(text, &options.files) {
        fs::write(file, content).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn prompt(options: &Options) -> Outcome<String> {
    let mut prompt = String::new();
    for file in options.files.iter().chain(&options.read) {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let tag = Language::from_path(file).map_or("", Language::name);
        prompt += &format!("{}\n```{tag}\n{}\n```\n\n", file.display(), text.trim_end());
    }
    let files: Vec<String> = options.files.iter().map(|file| file.display().to_string()).collect();
    prompt += &options.request;
    prompt += &format!(
        "\n\nReply with the complete new content of {}: a line with the name of the file, then a fenced code block.",
        files.join(" and ")
    );
    Ok(prompt)
}

/// Assigns the code blocks of a reply to files: by the name before a block or at its top; a single file also gets
/// the longest block if none is named.
fn written_files<'a>(reply: &str, files: &'a [PathBuf]) -> Vec<(&'a PathBuf, String)> {
    let blocks = blocks(reply);
    let named = |file: &PathBuf| {
        let name = file.display().to_string();
        let mut of_file = blocks.iter().filter(|(title, code)| {
            title.contains(&name) || code.lines().next().is_some_and(|line| line.contains(&name))
        });
        of_file.next_back()
    };
    let longest = || blocks.iter().max_by_key(|(_, code)| code.len()).filter(|_| files.len() == 1);
    files.iter().filter_map(|file| Some((file, named(file).or_else(longest)?.1.clone()))).collect()
}

/// Fenced blocks with the line before each (and its tag); a block that the reply's end cuts off counts.
fn blocks(reply: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let (mut title, mut inside) = (String::new(), false);
    for line in reply.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(tag) if !inside => {
                blocks.push((format!("{title} {tag}"), String::new()));
                inside = true;
            }
            Some(_) => {
                inside = false;
                title.clear();
            }
            None => match blocks.last_mut() {
                Some((_, code)) if inside => {
                    code.push_str(line);
                    code.push('\n');
                }
                _ if line.trim().is_empty() => {}
                _ => line.clone_into(&mut title),
            },
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn blocks_go_to_the_files_named_before_them_or_in_them() {
        let reply = "**a.py**\n\n```python\nx = 1\n```\nand\n```python\n# b.py\ny = 2\n```\n";
        let files = files(&["a.py", "b.py"]);
        let expected = [(&files[0], "x = 1\n".to_owned()), (&files[1], "# b.py\ny = 2\n".to_owned())];
        assert_eq!(written_files(reply, &files), expected);
    }

    #[test]
    fn a_single_file_gets_the_longest_block_without_a_name_even_if_it_is_cut_off() {
        let reply = "Run it:\n```\npytest\n```\nHere:\n```python\ndef f():\n    return 1";
        let files = files(&["a.py"]);
        assert_eq!(written_files(reply, &files), [(&files[0], "def f():\n    return 1\n".to_owned())]);
    }

    #[test]
    fn of_two_files_an_unnamed_block_changes_none() {
        assert_eq!(written_files("```\nx\n```\n", &files(&["a.py", "b.py"])), []);
        assert_eq!(written_files("no code", &files(&["a.py"])), []);
    }
}
