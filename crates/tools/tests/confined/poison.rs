//! Attempts to leave something behind that runs when the user works in the workspace afterwards, and to
//! influence the processes that check for it. They belong to the list in `escapes`.

use crate::escapes::{Attempt, Success, attempt, does, repository, submodule};
use crate::stage::Stage;

/// What the user does next: asks git for the status in every directory, and commits.
fn ran(stage: &Stage) -> bool {
    stage.bare(
        "chmod u+rwx . 2>/dev/null; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        export GIT_CEILING_DIRECTORIES=\"${PWD%/*}\" # a repository around the test is none of its business
        find . -type d -not -path '*/objects/*' 2>/dev/null | while read -r directory; do (cd \"$directory\" && git status; git commit --allow-empty -m x; git log -1) </dev/null; done",
    );
    stage.outside("ran").exists()
}

/// Settings that run a program with every `git status`.
macro_rules! evil {
    () => {
        "git config core.fsmonitor 'touch $OUTSIDE/ran; false'"
    };
}

/// A repository in the directory `n` that the index of the work tree links to.
macro_rules! nested {
    ($after:literal) => {
        concat!(
            "mkdir n; cd n; git init -q; echo x > x; git add x; git commit -qm x; ",
            evil!(),
            "; cd ..; git add n; ",
            $after
        )
    };
}

/// A bare repository in the current directory that is its own work tree.
macro_rules! bare {
    () => {
        concat!("git init -q --bare .; git config core.bare false; git config core.worktree ..; ", evil!())
    };
}

/// A repository whose settings execute and include files of the work tree.
fn with_references(stage: &Stage) -> Option<Box<dyn std::any::Any>> {
    stage.bare("git init -q .; git config core.hooksPath .husky; git config include.path ../.gitsettings; git config alias.st '!sh tools/st.sh'");
    stage.write(".husky/pre-commit", "#!/bin/sh\ntrue\n");
    stage.write(".gitsettings", "[user]\n\tname = a\n");
    stage.write("tools/st.sh", "true\n");
    stage.bare("chmod +x .husky/pre-commit");
    None
}

pub(crate) fn attempts() -> Vec<Attempt> {
    let runs = |name, command| attempt(name, command, Success::Seen(ran));
    let linked = |name, command| runs(name, command).after(submodule);
    let leads = |stage: &Stage| stage.path(".git/commondir").symlink_metadata().is_ok();
    vec![
        linked("nested_settings_read_only", nested!("chmod 444 n/.git/config; chmod 555 n/.git")),
        linked("nested_settings_without_access", nested!("chmod 0 n/.git/config n/.git")).needing_root(),
        linked("nested_settings_below_a_closed_directory", nested!("chmod 0 n")).needing_root(),
        linked("nested_settings_below_a_read_only_root", nested!("chmod 555 n n/.git .")),
        linked("nested_settings_that_can_only_be_entered", nested!("chmod 111 n/.git n")).needing_root(),
        runs("new_repository_read_only", concat!("git init -q .; ", evil!(), "; chmod 444 .git/config; chmod 555 .git")),
        runs("new_repository_without_access", concat!("git init -q .; ", evil!(), "; chmod 0 .git/config .git")).needing_root(),
        runs("new_hooks_read_only", "git init -q .; printf '#!/bin/sh\\ntouch $OUTSIDE/ran\\n' > .git/hooks/pre-commit; chmod 555 .git/hooks/pre-commit .git/hooks .git").needing_root(),
        attempt("lead_git_elsewhere_read_only", "mkdir bad; echo ../bad > .git/commondir; chmod 555 .git", Success::Seen(leads)).after(repository),
        attempt("make_our_settings_below_a_read_only_root", "echo evil > fusee.toml; chmod 555 .", Success::Seen(|stage| stage.path("fusee.toml").exists())),
        attempt("make_our_settings_below_a_closed_root", "echo evil > fusee.toml; chmod 0 .", Success::Seen(|stage| {
            stage.bare("chmod 755 .");
            stage.path("fusee.toml").exists()
        })).needing_root(),
        linked("hooks_with_taken_names", "for n in '' 2 3 4 5 6 7 8 9; do mkdir -p n/.git/hooks/pre-commit.refused$n; done; cd n; git init -q; printf '#!/bin/sh\\ntouch $OUTSIDE/ran\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; echo x > x; git add x; git commit -qnm x; cd ..; git add n; chmod 555 n/.git/hooks"),
        runs("bare_repository_at_the_root", concat!("mkdir x; cd x; ", bare!(), "; mv * ..")),
        runs("bare_repository_in_a_directory", concat!("mkdir -p a/b; cd a/b; ", bare!())),
        runs("bare_repository_in_an_ignored_directory", concat!("mkdir -p node_modules/b; echo node_modules > .gitignore; cd node_modules/b; ", bare!())),
        runs("unlinked_repository", concat!("mkdir n; cd n; git init -q; ", evil!())),
        runs("unlinked_repository_that_can_only_be_entered", concat!("mkdir n; cd n; git init -q; ", evil!(), "; cd ..; chmod 111 n")),
        runs("unlinked_repository_in_a_repository", concat!("mkdir -p a/n; cd a/n; git init -q; ", evil!())).after(repository),
        runs("unlinked_repository_with_a_hook", "mkdir n; cd n; git init -q; printf '#!/bin/sh\ntouch $OUTSIDE/ran\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"),
        runs("pointer_to_a_repository", concat!("mkdir n bad; cd bad; ", bare!(), "; git config core.worktree ../n; cd ..; echo 'gitdir: ../bad' > n/.git")),
        runs("link_to_a_repository", concat!("mkdir n bad; cd bad; ", bare!(), "; git config core.worktree ../n; cd ..; ln -s ../bad n/.git")),
        runs("common_directory_without_a_head", concat!("mkdir n; cd n; git init -q; ", evil!(), "; mv .git ../bad; mkdir .git; cp ../bad/HEAD .git; rm ../bad/HEAD; echo ../../bad > .git/commondir")),
        runs("hook_in_the_work_tree", "echo 'touch $OUTSIDE/ran' >> .husky/pre-commit").after(with_references),
        runs("new_hook_in_the_work_tree", "printf '#!/bin/sh\ntouch $OUTSIDE/ran\n' > .husky/post-commit; chmod 755 .husky/post-commit").after(with_references),
        runs("included_settings", "printf '[core]\n\tfsmonitor = touch $OUTSIDE/ran; false\n' >> .gitsettings").after(with_references),
        attempt("program_in_the_work_tree", "echo 'touch $OUTSIDE/ran' > tools/st.sh", Success::Seen(|stage| {
            stage.bare("git st");
            stage.outside("ran").exists()
        })).after(with_references),
        does("limit_its_supervisor", "prlimit --pid $PPID --core=0:0 && echo done"),
        does("move_its_supervisor", "ABOVE=$PPID python3 -c 'import os; os.sched_setaffinity(int(os.environ[\"ABOVE\"]), os.sched_getaffinity(int(os.environ[\"ABOVE\"]))); print(\"done\")'"),
        does("slow_its_supervisor", "ABOVE=$PPID python3 -c 'import os; os.setpriority(os.PRIO_PROCESS, int(os.environ[\"ABOVE\"]), os.getpriority(os.PRIO_PROCESS, int(os.environ[\"ABOVE\"]))); print(\"done\")'"),
        does("delay_its_supervisor", "ionice -c 2 -n 4 -p $PPID && echo done"),
        does("reschedule_its_supervisor", "ABOVE=$PPID python3 -c 'import os; os.sched_setscheduler(int(os.environ[\"ABOVE\"]), os.SCHED_OTHER, os.sched_param(0)); print(\"done\")'"),
        does("limit_the_fork_server", "prlimit --pid $(cat keeper) --core=0:0 && echo done").after(keeper),
        does("slow_the_fork_server", "renice -n 0 -p $(cat keeper) && echo done").after(keeper),
        does("slow_everything_of_the_user", "python3 -c 'import os; os.setpriority(os.PRIO_USER, 0, 0); print(\"done\")'"),
    ]
}

fn keeper(stage: &Stage) -> Option<Box<dyn std::any::Any>> {
    stage.write("keeper", &format!("{}\n", stage.fork_server.process_id()));
    None
}
