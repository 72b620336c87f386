//! Reads original content from git by object id, through git itself, which understands every storage format
//! of a repository. `undo` and `restore` decide which objects. Nothing in a repository can make this run another program
//! or contact a server.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

/// Objects read from git.
#[derive(Debug, Default)]
pub(crate) struct GitObjects {
    found: HashMap<[u8; 20], Vec<u8>>,
    problem: Option<String>,
}

impl GitObjects {
    /// The content, or why it is unavailable.
    pub(crate) fn find(&self, id: &[u8; 20]) -> Result<Vec<u8>, String> {
        match (self.found.get(id), &self.problem) {
            (Some(content), _) => Ok(content.clone()),
            (None, Some(problem)) => Err(format!("its original content is in git, but {problem}")),
            (None, None) => Err("its original content is no longer in git".to_owned()),
        }
    }
}

/// Reads all these objects in one batch, up to `most` bytes in total.
pub(crate) fn blobs(directory: &Path, ids: &[[u8; 20]], most: usize) -> GitObjects {
    if ids.is_empty() {
        return GitObjects::default();
    }
    let mut objects = GitObjects::default();
    if let Err(problem) = ask(directory, ids, most, &mut objects.found) {
        objects.problem = Some(problem);
    }
    objects
}

#[expect(clippy::disallowed_methods, reason = "not a command of a run: git reads its own object store")]
fn ask(
    directory: &Path,
    ids: &[[u8; 20]],
    most: usize,
    found: &mut HashMap<[u8; 20], Vec<u8>>,
) -> Result<(), String> {
    let mut command = Command::new("git");
    // A user who may change the files of the run may read the repository, whoever owns it.
    command.args(["-c", "safe.directory=*", "cat-file", "--batch"]).current_dir(directory);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    // Objects missing from a partial clone stay missing: fetching them would run programs that the repository
    // names.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot run git: {error}"))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let names: String = ids.iter().map(|id| format!("{}\n", hex(id))).collect();
    let read = std::thread::scope(|scope| {
        // Git answers while it reads, so writing and reading in one thread would deadlock.
        scope.spawn(move || input.map(|mut input| input.write_all(names.as_bytes())));
        let mut output = BufReader::new(output.ok_or("git has no output")?);
        let mut left = most;
        ids.iter().try_for_each(|id| {
            if let Some(content) = answer(&mut output, &mut left)? {
                found.insert(*id, content);
            }
            Ok(())
        })
    });
    // Git exits at the end of its input; after an error, kill it instead of waiting.
    if read.is_err() {
        let _ = child.kill();
    }
    let _ = child.wait();
    read
}

/// Reads one response: a line with id, kind and size followed by the content, or a line that reports it
/// missing.
fn answer(output: &mut BufReader<ChildStdout>, left: &mut usize) -> Result<Option<Vec<u8>>, String> {
    let mut line = String::new();
    let failed = |error: std::io::Error| format!("cannot read the output of git: {error}");
    if output.read_line(&mut line).map_err(failed)? == 0 {
        return Err("git returned nothing; check that this is still the repository of the run".to_owned());
    }
    let size = line.trim_end().rsplit_once(' ').and_then(|(_, size)| size.parse::<usize>().ok());
    let Some(size) = size else { return Ok(None) };
    *left = left.checked_sub(size).ok_or("there is too much to restore at once")?;
    let mut content = vec![0; size + 1];
    output.read_exact(&mut content).map_err(failed)?;
    content.pop();
    Ok(line.contains(" blob ").then_some(content))
}

fn hex(id: &[u8; 20]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
