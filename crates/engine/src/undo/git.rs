//! Content that git has, asked of git itself by name: it knows every form in which a repository stores it. `undo`
//! decides which is wanted. Nothing in a repository can make this run another program or ask a server.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

/// What git has of what was asked for.
#[derive(Debug, Default)]
pub(super) struct Objects {
    found: HashMap<[u8; 20], Vec<u8>>,
    problem: Option<String>,
}

impl Objects {
    /// The content, or why it is not to be had.
    pub(super) fn find(&self, id: &[u8; 20]) -> Result<Vec<u8>, String> {
        match (self.found.get(id), &self.problem) {
            (Some(content), _) => Ok(content.clone()),
            (None, Some(problem)) => Err(format!("what it held is in git, but {problem}")),
            (None, None) => Err("what it held was in git and is not any more".to_owned()),
        }
    }
}

/// Asks for all of these at once, up to so many bytes together.
pub(super) fn blobs(directory: &Path, ids: &[[u8; 20]], most: usize) -> Objects {
    if ids.is_empty() {
        return Objects::default();
    }
    let mut objects = Objects::default();
    if let Err(problem) = ask(directory, ids, most, &mut objects.found) {
        objects.problem = Some(problem);
    }
    objects
}

#[expect(
    clippy::disallowed_methods,
    reason = "not a command of a run: git reads its own store for a person who undoes one"
)]
fn ask(
    directory: &Path,
    ids: &[[u8; 20]],
    most: usize,
    found: &mut HashMap<[u8; 20], Vec<u8>>,
) -> Result<(), String> {
    let mut command = Command::new("git");
    // Whoever may undo the run may read the repository, whoever it belongs to.
    command.args(["-c", "safe.directory=*", "cat-file", "--batch"]).current_dir(directory);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    // What is missing in a partial clone stays missing: fetching it would run what the repository names.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("git cannot be run: {error}"))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let names: String = ids.iter().map(|id| format!("{}\n", hex(id))).collect();
    let read = std::thread::scope(|scope| {
        // It answers while it reads, so one side alone would wait for the other for ever.
        scope.spawn(move || input.map(|mut input| input.write_all(names.as_bytes())));
        let mut output = BufReader::new(output.ok_or("git gives no answer")?);
        let mut left = most;
        ids.iter().try_for_each(|id| {
            if let Some(content) = answer(&mut output, &mut left)? {
                found.insert(*id, content);
            }
            Ok(())
        })
    });
    // It ends with its input; one that was given up on is not waited for longer than it takes to end it.
    if read.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    read
}

/// One answer: a line with name, kind and size, and the content; or a line that says it is missing.
fn answer(output: &mut BufReader<ChildStdout>, left: &mut usize) -> Result<Option<Vec<u8>>, String> {
    let mut line = String::new();
    let failed = |error: std::io::Error| format!("git gave no answer: {error}");
    if output.read_line(&mut line).map_err(failed)? == 0 {
        return Err("git gave no answer: is this still the repository of the run?".to_owned());
    }
    let size = line.trim_end().rsplit_once(' ').and_then(|(_, size)| size.parse::<usize>().ok());
    let Some(size) = size else { return Ok(None) };
    *left = left.checked_sub(size).ok_or("there is more of it than is put back at once; undo again")?;
    let mut content = vec![0; size + 1];
    output.read_exact(&mut content).map_err(failed)?;
    content.pop();
    Ok(line.contains(" blob ").then_some(content))
}

fn hex(id: &[u8; 20]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
