//! Patch cases in directories: `patch_cases/NAME/{input/, patch, expected/ or error}`. Every directory is a
//! test.
//!
//! The tool runs on a copy of `input`. Either it must leave exactly `expected`, including execute bits, and
//! give the answer in `answer` if that file exists; or it must give the error in `error` and leave `input`
//! unchanged. With PATCH_CASES_WRITE set, answers and errors are written instead of compared; review them
//! before committing.
#![expect(
    clippy::unwrap_used,
    reason = "a test program; the lints' exception for tests covers only the standard harness"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fusee_tools::{CallContext, CallLimits, CommandSettings, ToolOutput, Toolbox, Workspace};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/patch_cases");
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(cases.len() >= 60, "cases are missing: {}", cases.len());
    let trials = cases
        .into_iter()
        .map(|case| {
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            Trial::test(name, move || run(&case))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(case: &Path) -> Result<(), Failed> {
    let directory = tempfile::tempdir().unwrap();
    let input = tree(&case.join("input"));
    for (path, (content, executable)) in &input {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        if *executable {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let patch = fs::read_to_string(case.join("patch")).unwrap();
    let output = apply(directory.path(), &patch);
    let after = tree(directory.path());
    let expected = case.join("expected");
    if expected.is_dir() || case.join("expects_nothing").exists() {
        if !output.ok {
            return Err(format!("it failed:\n{}", output.content).into());
        }
        same(&after, &tree(&expected))?;
        words(&case.join("answer"), &output.content, false)
    } else {
        if output.ok {
            return Err(format!("it was applied:\n{}", output.content).into());
        }
        same(&after, &input)?;
        words(&case.join("error"), &output.content, true)
    }
}

fn words(file: &Path, said: &str, required: bool) -> Result<(), Failed> {
    let said = format!("{said}\n");
    #[expect(clippy::disallowed_methods, reason = "a test program may read its environment")]
    let write = std::env::var_os("PATCH_CASES_WRITE").is_some();
    if write && (required || file.exists()) {
        fs::write(file, said).unwrap();
        return Ok(());
    }
    if !required && !file.exists() {
        return Ok(());
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    if said == expected { Ok(()) } else { Err(format!("it said:\n{said}\nexpected:\n{expected}").into()) }
}

fn same(found: &Tree, expected: &Tree) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    let show = |tree: &Tree| {
        tree.iter()
            .map(|(path, (content, executable))| {
                format!("{path} {executable} {:?}\n", String::from_utf8_lossy(content))
            })
            .collect::<String>()
    };
    Err(format!("found:\n{}\nexpected:\n{}", show(found), show(expected)).into())
}

fn apply(root: &Path, patch: &str) -> ToolOutput {
    let toolbox = Toolbox::standard(CommandSettings::default());
    let context = CallContext {
        workspace: Arc::new(Workspace::open(root).unwrap()),
        call_id: "call".to_owned(),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        limits: CallLimits::default(),
        trace_parent: None,
    };
    let tool = toolbox.find("apply_patch").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        match tool.prepare(json!({ "patch": patch }), &context).await {
            Ok(prepared) => tool.perform(prepared, &context).await,
            Err(output) => output,
        }
    })
}

/// Maps a path to its content and whether it is executable. Empty directories are not recorded.
type Tree = BTreeMap<String, (Vec<u8>, bool)>;

fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let executable = fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0;
            tree.insert(name, (fs::read(&path).unwrap(), executable));
        }
    }
    tree
}
