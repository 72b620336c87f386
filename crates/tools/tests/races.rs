//! Races: another process swaps a directory, or a file, with a link that leads outside as fast as it can
//! while each tool is called. Nothing outside may be read or changed, and both sides of the swap must have
//! been seen.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_tools::{CallContext, CallLimits, CommandSettings, ToolOutput, Toolbox, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "the-secret-of-outside";

/// How long each tool is tried; longer only until both sides were seen.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Swaps pairs of names until it is killed or its parent is gone.
const SWAPPER: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pairs = [name.encode() for name in sys.argv[1:]]
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for one, other in zip(pairs[::2], pairs[1::2]):
        # A patch may have taken one of them away for a moment.
        libc.renameat2(-100, one, -100, other, 2)
"#;

struct Race {
    directory: tempfile::TempDir,
    toolbox: Toolbox,
    context: CallContext,
    runtime: tokio::runtime::Runtime,
    swapper: Child,
}

impl Race {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (inside, outside) = (directory.path().join("inside"), directory.path().join("outside"));
        for folder in [inside.join("folder"), outside.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(outside.join("file"), format!("line one\n{SECRET}\n")).unwrap();
        fs::write(outside.join(SECRET), "").unwrap();
        for name in ["folder/file", "plain"] {
            fs::write(inside.join(name), "line one\nharmless\n").unwrap();
        }
        std::os::unix::fs::symlink("../outside", inside.join("folder-trap")).unwrap();
        std::os::unix::fs::symlink("../outside/file", inside.join("plain-trap")).unwrap();
        let context = CallContext {
            workspace: Arc::new(Workspace::open(&inside).unwrap()),
            call_id: "race".to_owned(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            limits: CallLimits::default(),
            trace_parent: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let toolbox = Toolbox::standard(CommandSettings::default());
        let swapper = swapping(&inside);
        Self { directory, toolbox, context, runtime, swapper }
    }

    fn call(&self, tool: &str, arguments: &Value) -> ToolOutput {
        self.runtime.block_on(async {
            let tool = self.toolbox.find(tool).unwrap();
            match tool.prepare(arguments.clone(), &self.context).await {
                Ok(prepared) => tool.perform(prepared, &self.context).await,
                Err(output) => output,
            }
        })
    }

    /// Repeats the calls until both sides of the swap were seen.
    fn run(&mut self, calls: impl Fn(&Self, usize) -> ToolOutput) {
        let (begun, mut met) = (Instant::now(), [0usize; 2]);
        let mut round = 0;
        while begun.elapsed() < LONG_ENOUGH || met.contains(&0) {
            assert!(begun.elapsed() < MAX_WAIT, "the race was never run: {met:?} went well and badly");
            let output = calls(self, round);
            assert!(!output.content.contains(SECRET), "it was led outside: {}", output.content);
            met[usize::from(!output.ok)] += 1;
            round += 1;
        }
        assert!(self.swapper.try_wait().unwrap().is_none(), "nobody swapped any more");
        self.nothing_outside_changed();
    }

    fn nothing_outside_changed(&self) {
        let outside = self.directory.path().join("outside");
        let mut names: Vec<String> = fs::read_dir(&outside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["file", SECRET]);
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), format!("line one\n{SECRET}\n"));
        assert_eq!(fs::read_to_string(outside.join(SECRET)).unwrap(), "");
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        let _ = self.swapper.kill();
        let _ = self.swapper.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the race needs another process")]
fn swapping(inside: &Path) -> Child {
    let names = ["folder", "folder-trap", "plain", "plain-trap"].map(|name| inside.join(name));
    let mut swapper = Command::new("python3")
        .args(["-c", SWAPPER])
        .args(names)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(&mut swapper.stdout.take().unwrap(), &mut ready).unwrap();
    swapper
}

/// Alternates between a file in a swapped directory and a file that is itself swapped.
fn path(round: usize) -> &'static str {
    ["folder/file", "plain"][round % 2]
}

#[test]
fn reading_is_not_led_outside() {
    Race::new().run(|race, round| race.call("read_file", &json!({"path": path(round)})));
}

#[test]
fn reading_several_is_not_led_outside() {
    // The answer contains one result per file, so its content tells which side was seen.
    Race::new().run(|race, _| {
        let output = race.call("read_files", &json!({"paths": ["folder/file", "plain"]}));
        ToolOutput { ok: output.content.matches("harmless").count() == 2, ..output }
    });
}

#[test]
fn listing_is_not_led_outside() {
    Race::new().run(|race, _| race.call("list_dir", &json!({"path": "folder"})));
}

#[test]
fn searching_is_not_led_outside() {
    Race::new().run(|race, round| {
        let place = ["folder", "plain"][round % 2];
        let output = race.call("search_text", &json!({"pattern": "line|secret|harmless", "path": place}));
        ToolOutput { ok: output.content.contains("harmless"), ..output }
    });
}

#[test]
fn finding_is_not_led_outside() {
    Race::new().run(|race, _| {
        let output = race.call("find_files", &json!({"pattern": "*", "path": "folder"}));
        ToolOutput { ok: output.content.contains("file"), ..output }
    });
}

/// Names that only exist outside: a walk that is led there must not tell that it found any.
#[test]
fn finding_does_not_tell_whether_a_name_exists_outside() {
    Race::new().run(|race, round| {
        let pattern = ["the-secret*", "file"][round % 2];
        let output = race.call("find_files", &json!({"pattern": pattern, "path": "folder"}));
        let (found, message) = (output.content.contains("file\n"), output.content.contains(" shown"));
        assert!(!message, "it tells of results that it does not show: {}", output.content);
        ToolOutput { ok: found && pattern == "file", ..output }
    });
}

#[test]
fn writing_changes_nothing_outside() {
    Race::new().run(|race, round| {
        let paths = ["folder/file", "folder/new", "plain"];
        let path = paths[round % 3];
        race.call("read_file", &json!({"path": path}));
        race.call("write_file", &json!({"path": path, "content": format!("line one\nharmless\n{round}\n")}))
    });
}

#[test]
fn editing_changes_nothing_outside() {
    Race::new().run(|race, round| {
        race.call("read_file", &json!({"path": path(round)}));
        let (old, new) = if round % 4 < 2 { ("one", "two") } else { ("two", "one") };
        let output = race.call("edit_file", &json!({"path": path(round), "old": old, "new": new}));
        // An earlier edit may have left the new text behind; edit it back for the next round.
        if !output.ok {
            race.call("edit_file", &json!({"path": path(round), "old": new, "new": old}));
        }
        output
    });
}

#[test]
fn patching_changes_nothing_outside() {
    Race::new().run(|race, round| {
        let path = path(round);
        let patch = match round % 6 {
            0 | 1 => format!("*** Begin Patch\n*** Update File: {path}\n@@\n-line one\n+line one\n harmless\n*** End Patch"),
            2 => format!("*** Begin Patch\n*** Add File: folder/added{round}\n+harmless\n*** End Patch"),
            3 => format!("*** Begin Patch\n*** Delete File: {path}\n*** Add File: folder/kept{round}\n+harmless\n*** End Patch"),
            _ => format!("*** Begin Patch\n*** Update File: {path}\n*** Move to: folder/moved{round}\n@@\n line one\n+more\n*** End Patch"),
        };
        let output = race.call("apply_patch", &json!({"patch": patch}));
        race.call("write_file", &json!({"path": path, "content": "line one\nharmless\n"}));
        output
    });
}
