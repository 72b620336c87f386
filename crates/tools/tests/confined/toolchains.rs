//! Tests of what must work in the sandbox: its root file system, and common tools as far as this machine has
//! them.

use std::path::Path;
use std::sync::Arc;

use fusee_tools::sandbox::{CommandFailure, NamespaceSandbox, Network, Policy, SandboxInputs};
use fusee_tools::{
    CallContext, CallLimits, CommandEnvironment, CommandSettings, Sandbox, Toolbox, Workspace,
};
use tokio_util::sync::CancellationToken;

use crate::stage::{SECRET, Stage, Test};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("pipes_and_devices_work", pipes_and_devices_work),
    ("a_command_sees_only_itself", a_command_sees_only_itself),
    ("temporary_files_and_the_home_last_for_the_run", temporary_files_and_the_home_last_for_the_run),
    ("commands_of_a_run_reach_each_other", commands_of_a_run_reach_each_other),
    ("commands_of_two_runs_do_not", commands_of_two_runs_do_not),
    ("the_network_can_be_allowed", the_network_can_be_allowed),
    ("a_workspace_in_tmp_is_visible", a_workspace_in_tmp_is_visible),
    ("a_workspace_that_is_the_home_hides_its_secrets", a_workspace_that_is_the_home_hides_its_secrets),
    ("everything_can_be_made_readable_but_secrets", everything_can_be_made_readable_but_secrets),
    ("settings_that_are_links_are_guarded", settings_that_are_links_are_guarded),
    ("settings_made_outside_are_guarded_from_then_on", settings_made_outside_are_guarded_from_then_on),
    ("what_cannot_be_confined_does_not_run", what_cannot_be_confined_does_not_run),
    ("a_directory_outside_is_refused", a_directory_outside_is_refused),
    ("a_room_can_be_made_in_advance", a_room_can_be_made_in_advance),
    ("a_model_is_told", a_model_is_told),
    ("git_works", git_works),
    ("git_works_in_a_linked_work_tree", git_works_in_a_linked_work_tree),
    ("git_works_below_the_top_of_a_repository", git_works_below_the_top_of_a_repository),
    ("a_new_repository_stays_one", a_new_repository_stays_one),
    ("python_runs_its_tests", python_runs_its_tests),
    (
        "python_sees_a_change_of_the_same_second_and_length",
        python_sees_a_change_of_the_same_second_and_length,
    ),
    ("cargo_checks_a_crate", cargo_checks_a_crate),
    ("node_runs", node_runs),
    ("go_builds", go_builds),
    ("a_compiler_builds", a_compiler_builds),
    ("terminals_can_be_made", terminals_can_be_made),
];

fn pipes_and_devices_work(stage: &Stage) {
    let sandbox = stage.sandbox();
    let script = "echo one | tr a-z A-Z > file; cat < file; cat <<E\ntwo\nE\necho three > /dev/stderr; echo lost > /dev/null
        head -c 2 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; (sleep 0.01; echo four) & wait; mkfifo pipe; (echo five > pipe &) ; cat pipe
        mkdir -p a/b && mv file a/b && ln -s b a/c && cat a/c/file && rm -r a && ls; command -v bash >/dev/null && bash -c 'cat <(echo six)' || echo six";
    assert_eq!(stage.good(&sandbox, script), "ONE\ntwo\nthree\n2\n3\nfour\nfive\nONE\npipe\nsix\n");
}

fn a_command_sees_only_itself(stage: &Stage) {
    let sandbox = stage.sandbox();
    assert_eq!(stage.good(&sandbox, "set -- /proc/[0-9]*; echo $#; sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '; ls /proc/self/fd | wc -l"), "1\nlo\n4\n");
    assert_eq!(
        stage.good(&sandbox, "ls -A ~ ..; id -u"),
        format!(
            "../:\nhome\nworkspace\n\n{home}:\n.cargo\n.gitconfig\n{user}\n",
            home = stage.base.join("home").display(),
            user = rustix::process::getuid().as_raw()
        )
        .replace("../:", "..:")
    );
}

fn temporary_files_and_the_home_last_for_the_run(stage: &Stage) {
    let sandbox = stage.sandbox();
    stage.good(&sandbox, "echo kept > /tmp/file; mkdir -p ~/.cache/tool; echo cached > ~/.cache/tool/file; echo x > /var/tmp/x; echo y > /dev/shm/y");
    assert_eq!(
        stage.good(&sandbox, "cat /tmp/file ~/.cache/tool/file /var/tmp/x /dev/shm/y"),
        "kept\ncached\nx\ny\n"
    );
    assert!(!Path::new("/tmp/file").exists() && !stage.base.join("home/.cache").exists());
    assert_eq!(stage.good(&stage.sandbox(), "test -e /tmp/file || echo gone"), "gone\n");
}

const SERVE: &str = "exec python3 -c 'import socket
server = socket.create_server((\"127.0.0.1\", 8123))
open(\"ready\", \"w\").write(\"ready\\n\")
server.accept()[0].sendall(b\"served\\n\")'";
const ASK: &str = "python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\", 8123), 5).recv(99).decode().strip())'";

fn commands_of_a_run_reach_each_other(stage: &Stage) {
    let sandbox = stage.sandbox();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| stage.good(&sandbox, SERVE));
        assert_eq!(stage.line_of("ready"), "ready");
        assert_eq!(stage.good(&sandbox, ASK), "served\n");
        server.join().unwrap();
    });
}

fn commands_of_two_runs_do_not(stage: &Stage) {
    let (one, other) = (stage.sandbox(), stage.sandbox());
    std::thread::scope(|scope| {
        scope.spawn(|| stage.good(&one, SERVE));
        assert_eq!(stage.line_of("ready"), "ready");
        let refused = stage.run(&other, ASK);
        assert!(refused.output.contains("Connection refused"), "{refused:?}");
        stage.good(&one, ASK);
    });
}

fn the_network_can_be_allowed(stage: &Stage) {
    let mut policy = stage.policy(&stage.environment());
    policy.network = Network::Machine;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5); print(\"done\")'"
    );
    assert_eq!(stage.good(&Sandbox::namespaces(policy), &connect), "done\n");
}

fn a_workspace_in_tmp_is_visible(stage: &Stage) {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let there = Stage::at(stage.fork_server.clone(), directory.path());
    assert_eq!(
        there.good(&there.sandbox(), "echo made > made; pwd; ls -A /tmp | wc -l"),
        format!("{}\n1\n", there.workspace().display())
    );
    assert_eq!(there.line_of("made"), "made");
}

fn a_workspace_that_is_the_home_hides_its_secrets(stage: &Stage) {
    let environment = CommandEnvironment::allowed([
        ("HOME".into(), stage.workspace().into()),
        ("PATH".into(), "/usr/bin:/bin".into()),
    ]);
    stage.write(".ssh/id", SECRET);
    stage.write(".aws/credentials", SECRET);
    stage.write(".netrc", SECRET);
    stage.write(".cargo/config.toml", "# theirs\n");
    stage.write("notes", "mine\n");
    let sandbox = Sandbox::namespaces(stage.policy(&environment));
    let command = "ls -A .ssh .aws; cat .netrc notes; echo x > .cargo/config.toml; mv .ssh away; echo y > notes; grep -rs secret . ; true";
    let outcome = stage.run_in(&sandbox, command, &stage.workspace(), &environment);
    assert!(!outcome.output.contains(SECRET), "{outcome:?}");
    assert!(outcome.output.starts_with(".aws:\n\n.ssh:\nmine\n"), "{outcome:?}");
    assert_eq!(stage.line_of(".cargo/config.toml"), "# theirs");
    assert_eq!(stage.line_of("notes"), "y");
}

fn everything_can_be_made_readable_but_secrets(stage: &Stage) {
    let mut policy = stage.policy(&stage.environment());
    // Commands have a /tmp of their own, which hides what is in it unless it is named: the target directory of
    // these tests may be there.
    policy.read.extend(["/".into(), stage.base.clone()]);
    let sandbox = Sandbox::namespaces(policy);
    let listed = stage.good(&sandbox, "ls -A /var");
    let there = std::fs::read_dir("/var").unwrap().count();
    assert_eq!(listed.lines().count(), there, "all of /var is readable: {listed}");
    let command = format!(
        "cat {base}/outside/secret; echo; cat {base}/home/.ssh/id; echo x > {base}/outside/made; echo x > /etc/made; ls -A /tmp; echo in > inside; touch /tmp/a; set -- /proc/[0-9]*; echo $#",
        base = stage.base.display()
    );
    let outcome = stage.run(&sandbox, &command);
    assert!(outcome.output.starts_with(&format!("{SECRET}\ncat: ")), "{outcome:?}");
    assert_eq!(outcome.output.matches(SECRET).count(), 1, "{outcome:?}");
    assert_eq!(outcome.output.matches("Read-only file system").count(), 2, "{outcome:?}");
    assert!(outcome.output.ends_with("\n1\n"), "{outcome:?}");
    assert_eq!(stage.line_of("inside"), "in");
}

fn settings_that_are_links_are_guarded(stage: &Stage) {
    stage.bare("git init -q . ; mkdir shared elsewhere; rm -r .git/hooks; ln -s ../shared .git/hooks; ln -s elsewhere .fusee");
    let command = "rm -f .fusee .git/hooks; mv .fusee a; mkdir .fusee .git/hooks; echo evil > .git/hooks/pre-commit; echo evil > .fusee/trusted; true";
    let outcome = stage.run(&stage.sandbox(), command);
    assert!(outcome.result.is_ok(), "{outcome:?}");
    assert_eq!(std::fs::read_link(stage.path(".fusee")).unwrap(), Path::new("elsewhere"), "{outcome:?}");
    assert_eq!(std::fs::read_link(stage.path(".git/hooks")).unwrap(), Path::new("../shared"));
}

fn settings_made_outside_are_guarded_from_then_on(stage: &Stage) {
    let sandbox = stage.sandbox();
    stage.good(&sandbox, "true");
    stage.bare("git init -q . ; echo 'a = 1' > fusee.toml");
    let outcome = stage.run(
        &sandbox,
        "echo evil > fusee.toml; echo evil > .git/hooks/pre-commit; mv .git old; git status --short",
    );
    assert!(outcome.output.ends_with("?? fusee.toml\n"), "{outcome:?}");
    assert_eq!(stage.line_of("fusee.toml"), "a = 1");
    assert!(!stage.path(".git/hooks/pre-commit").exists());
    assert!(outcome.result.unwrap().protection.is_empty());
}

fn what_cannot_be_confined_does_not_run(stage: &Stage) {
    let mut policy = stage.policy(&stage.environment());
    policy.write.push(stage.base.join("missing"));
    let sandbox = Sandbox::namespaces(policy);
    let outcome = stage.run(&sandbox, "touch ran");
    let words = outcome.result.unwrap_err().to_string();
    let expected = format!(
        "The command was not run, because its sandbox could not be set up: creating a writable mount of {}: No such file or directory (os error 2).",
        stage.base.join("missing").display()
    );
    assert_eq!(words, expected);
    assert!(!stage.path("ran").exists());
    std::fs::create_dir(stage.base.join("missing")).unwrap();
    stage.good(&sandbox, "touch ran");
}

fn a_directory_outside_is_refused(stage: &Stage) {
    for directory in [stage.outside("."), "/root".into(), "/var".into()] {
        if !directory.exists() {
            continue;
        }
        let outcome = stage.run_in(&stage.sandbox(), "pwd", &directory, &stage.environment());
        assert!(matches!(outcome.result, Err(CommandFailure::NotConfined(_))), "{directory:?} {outcome:?}");
        assert_eq!(outcome.output, "");
    }
}

fn a_room_can_be_made_in_advance(stage: &Stage) {
    let room = Arc::new(NamespaceSandbox::new(stage.policy(&stage.environment())));
    stage.runtime.block_on(room.prepare(&stage.fork_server)).unwrap();
    assert_eq!(stage.good(&Sandbox::Namespaces(room), "echo ready"), "ready\n");
    let impossible = NamespaceSandbox::new(Policy { write: vec!["/missing".into()], ..Policy::minimal() });
    let refused = stage.runtime.block_on(impossible.prepare(&stage.fork_server)).unwrap_err();
    assert!(refused.to_string().contains("creating a writable mount of /missing"), "{refused}");
}

fn a_model_is_told(stage: &Stage) {
    let settings = CommandSettings {
        fork_server: Some(stage.fork_server.clone()),
        environment: stage.environment(),
        sandbox: stage.sandbox(),
        limits: stage.limits,
        ..CommandSettings::default()
    };
    let toolbox = Toolbox::standard(settings);
    let context = CallContext {
        workspace: Arc::new(Workspace::open(&stage.workspace()).unwrap()),
        call_id: "call_1".to_owned(),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_: &str| {}),
        limits: CallLimits::default(),
        trace_parent: None,
    };
    let run = |arguments: serde_json::Value| {
        let shell = toolbox.find("shell").unwrap();
        stage.runtime.block_on(async {
            let prepared = shell.prepare(arguments, &context).await.unwrap();
            shell.perform(prepared, &context).await.content
        })
    };
    assert_eq!(
        run(serde_json::json!({ "command": "echo x > fusee.toml" })),
        "(no output)\n[exit code 0; what it made or changed at .git, .fusee or fusee.toml would decide over programs outside of the sandbox and was put back, or set aside with `.refused` behind its name: fusee.toml]"
    );
    assert_eq!(
        run(serde_json::json!({ "command": "ls", "background": true })),
        "fusee.toml.refused\n[exit code 0]"
    );
}

fn git_works(stage: &Stage) {
    let home = stage.base.join("home");
    std::fs::write(home.join(".gitconfig"), format!("[user]\n\tname = Somebody\n\temail = some@body\n[credential]\n\thelper = {SECRET}\n[alias]\n\tx = !false\n")).unwrap();
    stage.bare("git init -q -b main . && echo one > file && git add file && git commit -q -m first");
    let sandbox = stage.sandbox();
    let script = "git status --short; echo two >> file; git diff --stat; git commit -q -a -m second; git log --format='%an %s'; git checkout -q -b other; git stash list; git branch; cat ~/.gitconfig";
    let output = stage.good(&sandbox, script);
    assert_eq!(
        output,
        " file | 1 +\n 1 file changed, 1 insertion(+)\nSomebody second\nSomebody first\n  main\n* other\n[safe]\n\tdirectory = *\n[user]\n\tname = Somebody\n[user]\n\temail = some@body\n"
    );
    let refused = stage.run(&sandbox, "git config user.name Other");
    assert!(refused.output.contains("could not write config file"), "{refused:?}");
    assert!(stage.bare("git log --oneline | wc -l; git status --short").starts_with('2'));
}

fn git_works_in_a_linked_work_tree(stage: &Stage) {
    let main = stage.outside("main");
    stage.bare(&format!(
        "git config --global user.name a; git config --global user.email a@b; git init -q -b main {main} && cd {main} && echo one > file && git add file && git commit -q -m first && rmdir {work} && git worktree add -q -b side {work}",
        main = main.display(),
        work = stage.workspace().display()
    ));
    let sandbox = stage.sandbox();
    let script = "git status --short; echo two >> file; git commit -q -a -m second; git log --format=%s";
    assert_eq!(stage.good(&sandbox, script), "second\nfirst\n");
    let evil = format!(
        "echo evil > {main}/.git/hooks/pre-commit; echo evil >> {main}/.git/config; echo evil > {main}/file; echo 'gitdir: bad' > .git; echo /bad > $(git rev-parse --git-dir)/commondir; rm -rf {main}/.git/worktrees/../hooks; true",
        main = main.display()
    );
    stage.run(&sandbox, &evil);
    assert!(!main.join(".git/hooks/pre-commit").exists());
    assert!(!std::fs::read_to_string(main.join(".git/config")).unwrap().contains("evil"));
    assert_eq!(std::fs::read_to_string(main.join("file")).unwrap(), "one\n");
    assert_eq!(std::fs::read_to_string(main.join(".git/worktrees/workspace/commondir")).unwrap(), "../..\n");
    assert_eq!(stage.bare("git log --format=%s side"), "second\nfirst\n");
}

fn git_works_below_the_top_of_a_repository(stage: &Stage) {
    stage.bare("git config --global user.name a; git config --global user.email a@b; git init -q -b main . && mkdir sub other && echo one > sub/file && echo two > other/file && git add . && git commit -q -m first");
    let (environment, workspace) = (stage.environment(), stage.path("sub"));
    let surroundings =
        SandboxInputs { workspace: &workspace, environment: &environment, own: &[], network: Network::Own };
    let sandbox = Sandbox::namespaces(Policy::defaults(&surroundings).unwrap());
    let run = |command: &str| stage.run_in(&sandbox, command, &workspace, &environment).output;
    let script = "git log --format=%s; echo more >> file; git status --short .; git diff --stat .; git show HEAD:other/file; cat ../other/file 2>/dev/null || echo unseen";
    assert_eq!(
        run(script),
        "first\n M file\n sub/file | 1 +\n 1 file changed, 1 insertion(+)\ntwo\nunseen\n"
    );
    run(
        "echo evil > ../.git/hooks/pre-commit; echo evil >> ../.git/config; git commit -q -a -m second; rm -rf ../.git/HEAD",
    );
    assert!(!stage.path(".git/hooks/pre-commit").exists());
    assert_eq!(stage.bare("git log --format=%s; grep -c evil .git/config"), "first\n0\n");
}

fn a_new_repository_stays_one(stage: &Stage) {
    let sandbox = stage.sandbox();
    let outcome = stage.run(&sandbox, "git init -q -b main . && git config user.name a && git config user.email a@b && git remote add origin https://example.invalid/x && echo one > file && git add . && git commit -q -m first && git log --format=%s");
    assert_eq!(outcome.output, "first\n", "{outcome:?}");
    assert!(outcome.result.unwrap().protection.is_empty());
    let outcome =
        stage.run(&sandbox, "git config core.fsmonitor evil; git status --short; git log --format=%s");
    assert!(outcome.output.ends_with("first\n"), "{outcome:?}");
    assert!(stage.bare("cat .git/config").contains("example.invalid"));
    assert!(!stage.bare("cat .git/config").contains("evil"));
}

/// The environment of the machine, including its toolchains.
fn machines_environment() -> CommandEnvironment {
    let own = ["CARGO_TARGET_DIR", "RUSTFLAGS"];
    CommandEnvironment::allowed(std::env::vars_os().filter(|(name, _)| own.iter().all(|own| name != own)))
}

fn has(stage: &Stage, program: &str) -> bool {
    let found = stage.run_in(
        &Sandbox::Off,
        &format!("command -v {program}"),
        &stage.workspace(),
        &machines_environment(),
    );
    found.is_good()
}

/// Runs a command in the sandbox with the environment of the machine. It must succeed.
fn with_machines_tools(stage: &Stage, command: &str) -> String {
    let environment = machines_environment();
    let sandbox = Sandbox::namespaces(stage.policy(&environment));
    let outcome = stage.run_in(&sandbox, command, &stage.workspace(), &environment);
    assert!(outcome.is_good(), "{command}\n{}\n{outcome:?}", outcome.output);
    outcome.output
}

fn python_runs_its_tests(stage: &Stage) {
    if !has(stage, "python3") {
        return;
    }
    stage.write("test_sum.py", "import tempfile, unittest, multiprocessing\nclass Sum(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(1 + 1, 2)\n    def test_files(self):\n        with tempfile.NamedTemporaryFile() as file:\n            file.write(b'x')\n    def test_processes(self):\n        with multiprocessing.Pool(2) as pool:\n            self.assertEqual(pool.map(abs, [-1, -2]), [1, 2])\n");
    let output = with_machines_tools(stage, "python3 -m unittest 2>&1");
    assert!(output.contains("Ran 3 tests") && output.ends_with("OK\n"), "{output}");
}

/// The modification time is set explicitly, since two writes may fall into different seconds.
fn python_sees_a_change_of_the_same_second_and_length(stage: &Stage) {
    if !has(stage, "python3") {
        return;
    }
    let run = "echo 'print(1)' > part.py; touch -d @1000000000 part.py; python3 -c 'import part'
        echo 'print(2)' > part.py; touch -d @1000000000 part.py; python3 -c 'import part'";
    assert_eq!(with_machines_tools(stage, run), "1\n2\n");
    let stale = format!("unset PYTHONDONTWRITEBYTECODE; {run}");
    assert_eq!(with_machines_tools(stage, &stale), "1\n1\n", "Python has no such caches any more");
}

/// A dependency on a crate that cargo already has on this machine, with its version.
fn known_crate(stage: &Stage) -> Option<String> {
    let found = "ls -d ${CARGO_HOME:-~/.cargo}/registry/src/*/itoa-1* | head -1";
    let found = stage.run_in(&Sandbox::Off, found, &stage.workspace(), &machines_environment());
    found.output.trim().rsplit_once("itoa-").map(|(_, version)| format!("itoa = \"={version}\"\n"))
}

fn cargo_checks_a_crate(stage: &Stage) {
    if !has(stage, "cargo") {
        return;
    }
    let known = known_crate(stage);
    let used = if known.is_some() { "pub use itoa::Buffer;\n" } else { "" };
    let manifest =
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n";
    stage.write("Cargo.toml", &format!("{manifest}{}", known.unwrap_or_default()));
    stage.write("src/lib.rs", &format!("{used}#[test]\nfn one() {{\n    assert_eq!(1, 1);\n}}\n"));
    let output = with_machines_tools(stage, "cargo check --offline 2>&1 && cargo test --offline 2>&1");
    assert!(
        output.contains("Finished") && output.contains("1 passed") && !output.contains("warning"),
        "{output}"
    );
    assert!(stage.path("target/debug").is_dir());
}

fn node_runs(stage: &Stage) {
    if !has(stage, "node") {
        return;
    }
    stage.write("served.js", "const http = require('http'); const server = http.createServer((_, answer) => answer.end('served'));\nserver.listen(0, '127.0.0.1', () => http.get({ port: server.address().port, host: '127.0.0.1' }, (got) => { got.on('data', (data) => console.log(String(data))); got.on('end', () => server.close()); }));\n");
    assert_eq!(
        with_machines_tools(
            stage,
            "node -e 'require(\"fs\").writeFileSync(\"made\", \"1\"); console.log(1 + 1)'; node served.js"
        ),
        "2\nserved\n"
    );
}

fn go_builds(stage: &Stage) {
    if !has(stage, "go") {
        return;
    }
    stage.write("go.mod", "module small\n");
    stage.write("main.go", "package main\nfunc main() { println(\"built\") }\n");
    assert_eq!(with_machines_tools(stage, "go run . 2>&1"), "built\n");
}

fn a_compiler_builds(stage: &Stage) {
    if !has(stage, "cc") {
        return;
    }
    stage.write("main.c", "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n");
    stage.write("Makefile", "main: main.c\n\tcc -o main main.c\n");
    assert_eq!(with_machines_tools(stage, "cc -o main main.c && ./main"), "built\n");
}

fn terminals_can_be_made(stage: &Stage) {
    let script = "python3 -c 'import os, pty; pty.spawn([\"/bin/echo\", \"spawned\"])'";
    assert_eq!(stage.good(&stage.sandbox(), script), "spawned\r\n");
}
