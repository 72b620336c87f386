//! Commands in the Landlock sandbox: what they can do, what is reverted after them, and how they end. Escape
//! attempts are in `escapes`, machines that have only Landlock in `machines`.

use std::time::{Duration, Instant};

use fusee_tools::Sandbox;
use fusee_tools::sandbox::{CommandEnd, CommandFailure, Network, Policy, SandboxInputs};

use crate::stage::{Stage, Test, eventually, processes_with};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("behind_a_fence_the_workspace_is_worked_in", the_workspace_is_worked_in),
    ("behind_a_fence_temporary_files_are_its_own_and_go_with_it", temporary_files_are_its_own_and_go_with_it),
    ("behind_a_fence_git_commits", git_commits),
    ("behind_a_fence_compilers_and_interpreters_work", compilers_and_interpreters_work),
    ("behind_a_fence_the_network_can_be_allowed", the_network_can_be_allowed),
    ("behind_a_fence_settings_are_put_back", settings_are_put_back),
    ("behind_a_fence_nothing_is_left_running", nothing_is_left_running),
    ("behind_a_fence_root_works_for_the_owner", root_works_for_the_owner),
    ("a_workspace_with_secrets_in_it_cannot_be_fenced", a_workspace_with_secrets_in_it_cannot_be_fenced),
];

fn the_workspace_is_worked_in(stage: &Stage) {
    let fence = stage.fence();
    let command = "mkdir -p a/b && echo one > a/b/file && mv a/b/file a/moved && ln a/moved hard && ln -s moved a/link && cat a/link hard && rm hard && : > a/moved && chmod 600 a/moved && touch a/moved && head -c 3 /dev/zero | wc -c && echo x > /dev/null && cat /etc/passwd > copy && ls /usr > /dev/null && echo good";
    assert_eq!(stage.good(&fence, command), "one\none\n3\ngood\n");
    assert_eq!(std::fs::read_to_string(stage.path("a/moved")).unwrap(), "");
    // Later commands are not more restricted than the first.
    assert_eq!(
        stage.good(&fence, "sort copy | tail -1 > /dev/null; cat a/moved; (exit 3) || echo $?"),
        "3\n"
    );
}

fn temporary_files_are_its_own_and_go_with_it(stage: &Stage) {
    let fence = stage.fence();
    let made = stage.good(&fence, "made=$(mktemp) && echo kept > $made && echo $made");
    assert!(made.contains("/fusee-"), "{made}");
    assert_eq!(stage.good(&fence, &format!("cat {made}")), "kept\n");
    let refused = stage.run(&fence, "echo x > /tmp/fusee-fence-escape");
    assert!(!refused.is_good(), "{refused:?}");
    drop(fence);
    let made = std::path::Path::new(made.trim());
    assert!(!made.exists() && !made.parent().unwrap().parent().unwrap().exists());
}

fn git_commits(stage: &Stage) {
    let command = "git init -q -b main . && git config --global user.name 2>/dev/null; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && echo x > file && git add file && git -c user.name=a -c user.email=a@b commit -q -m second && git log --format=%s && git status --short";
    assert_eq!(stage.good(&stage.fence(), command), "second\nfirst\n");
    assert!(stage.path(".git/config").is_file());
}

fn compilers_and_interpreters_work(stage: &Stage) {
    stage.write("main.c", "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n");
    stage.write("test_sum.py", "import subprocess, tempfile, unittest\nclass Sum(unittest.TestCase):\n    def test_sum(self):\n        with tempfile.TemporaryFile() as file:\n            file.write(b'x')\n        self.assertEqual(subprocess.check_output(['echo', '2']), b'2\\n')\n");
    let fence = stage.fence();
    assert_eq!(stage.good(&fence, "cc -o main main.c && ./main"), "built\n");
    let output = stage.good(&fence, "python3 -m unittest 2>&1");
    assert!(output.ends_with("OK\n"), "{output}");
    let node = stage.run(&fence, "command -v node > /dev/null || exit 0; node -e 'const made = require(\"child_process\").execSync(\"echo made\"); process.stdout.write(made)'");
    assert!(node.is_good() && ["", "made\n"].contains(&node.output.as_str()), "{node:?}");
}

fn the_network_can_be_allowed(stage: &Stage) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5); print(\"connected\")' 2>&1 | tail -1"
    );
    let refused = stage.good(&stage.fence(), &connect);
    assert!(refused.contains("Address family not supported"), "{refused}");
    let workspace = stage.workspace();
    let environment = stage.environment();
    let surroundings = SandboxInputs {
        workspace: &workspace,
        environment: &environment,
        own: &[],
        network: Network::Machine,
    };
    let open = Sandbox::landlock(Policy::defaults(&surroundings).unwrap());
    assert_eq!(stage.good(&open, &connect), "connected\n");
}

fn settings_are_put_back(stage: &Stage) {
    stage.bare("git init -q .");
    let before = std::fs::read_to_string(stage.path(".git/config")).unwrap();
    let command = "git config core.fsmonitor evil; echo evil > .git/hooks/pre-commit; echo evil > fusee.toml; echo done";
    let outcome = stage.run(&stage.fence(), command);
    let finished = outcome.result.unwrap();
    assert_eq!(
        (outcome.output.as_str(), finished.ending, !finished.protection.reverted.is_empty()),
        ("done\n", CommandEnd::Exited(0), true)
    );
    assert_eq!(std::fs::read_to_string(stage.path(".git/config")).unwrap(), before);
    assert!(!stage.path(".git/hooks/pre-commit").exists() && !stage.path("fusee.toml").exists());
    assert_eq!(std::fs::read_to_string(stage.path("fusee.toml.refused")).unwrap(), "evil\n");
    // Links that lead outside are not followed when settings are restored.
    let away = format!("rm -rf .git; ln -s {} .git", stage.base.join("outside").display());
    std::fs::write(stage.outside("config"), "of outside").unwrap();
    assert!(!stage.run(&stage.fence(), &away).result.unwrap().protection.reverted.is_empty());
    assert_eq!(std::fs::read_to_string(stage.outside("config")).unwrap(), "of outside");
    let untouched = stage.run(&stage.fence(), "echo x > file");
    assert!(untouched.result.unwrap().protection.is_empty());
}

fn nothing_is_left_running(stage: &Stage) {
    let fence = stage.fence();
    let mark = format!("5{}", std::process::id());
    let begun = Instant::now();
    let command =
        format!("sleep {mark} & setsid sh -c 'sleep {mark} & sleep {mark}' & sleep 0.3; echo started");
    let outcome = stage.run(&fence, &command);
    let finished = outcome.result.unwrap();
    assert_eq!(
        (outcome.output.as_str(), finished.ending, finished.unkillable),
        ("started\n", CommandEnd::Exited(0), 0)
    );
    assert!(finished.killed_leftovers >= 3, "{finished:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    eventually(|| processes_with(&mark).is_empty());
}

fn root_works_for_the_owner(stage: &Stage) {
    if !crate::stage::is_root() {
        return;
    }
    stage.bare("chown -R 65534:65534 .");
    let command =
        "id -u; id -G; echo made > made; echo t > $TMPDIR/told; grep CapEff /proc/self/status | cut -f2";
    assert_eq!(stage.good(&stage.fence(), command), "65534\n65534\n0000000000000000\n");
}

fn a_workspace_with_secrets_in_it_cannot_be_fenced(stage: &Stage) {
    let mut policy = stage.policy(&stage.environment());
    policy.write.push(stage.base.join("home"));
    let outcome = stage.run(&Sandbox::landlock(policy), "echo ran");
    assert_eq!(outcome.output, "");
    let failure = outcome.result.unwrap_err();
    assert!(matches!(failure, CommandFailure::NotConfined(_)), "{failure}");
    let words = failure.to_string();
    assert!(words.contains("/home/") && words.ends_with("which commands can write to."), "{words}");
}
