//! Escape attempts as a model would make them. Each succeeds without the sandbox and fails inside it.

use std::io::Write;
use std::os::unix::net::UnixListener;

use fusee_tools::Sandbox;
use fusee_tools::sandbox::Network;

use crate::influence;
use crate::poison;
use crate::stage::{SECRET, SECRET_VARIABLE, Stage, is_root};

/// An escape attempt.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    /// Sets up what the attempt needs. The returned value is kept until the attempt is over.
    prepare: fn(&Stage) -> Option<Box<dyn std::any::Any>>,
    /// The command, in which `$OUTSIDE` and `$BASE` are replaced.
    command: &'static str,
    success: Success,
    without: Without,
}

/// How a successful attempt is recognised.
pub(crate) enum Success {
    /// Its output contains this.
    Says(&'static str),
    /// Its effect is visible outside.
    Seen(fn(&Stage) -> bool),
}

/// The sandbox it is tried in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    Namespaces,
    /// The Landlock sandbox, with its weaker guarantees.
    Landlock,
    /// As with `--allow-net`.
    NamespacesWithNetwork,
    LandlockWithNetwork,
}

impl Within {
    pub(crate) const WITHOUT_NETWORK: [Self; 2] = [Self::Namespaces, Self::Landlock];
    pub(crate) const WITH_NETWORK: [Self; 2] = [Self::NamespacesWithNetwork, Self::LandlockWithNetwork];

    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Namespaces => "",
            Self::Landlock => "_behind_a_fence",
            Self::NamespacesWithNetwork => "_with_the_network",
            Self::LandlockWithNetwork => "_behind_a_fence_with_the_network",
        }
    }

    fn has_network(self) -> bool {
        matches!(self, Self::NamespacesWithNetwork | Self::LandlockWithNetwork)
    }

    fn is_landlock(self) -> bool {
        matches!(self, Self::Landlock | Self::LandlockWithNetwork)
    }

    fn sandbox(self, stage: &Stage) -> Sandbox {
        let network = if self.has_network() { Network::Machine } else { Network::Own };
        let policy = stage.policy_with(&stage.environment(), network);
        if self.is_landlock() { Sandbox::landlock(policy) } else { Sandbox::namespaces(policy) }
    }
}

/// What the machine's network allows by definition.
const NETWORK: [&str; 2] = ["connect_to_a_port_of_the_machine", "send_to_a_port_of_the_machine"];

/// Attempts that the Landlock sandbox does not stop, and why.
const NOT_PROMISED: [(&str, &str); 7] = [
    ("change_mode_of_a_device", "Landlock does not know of modes"),
    ("see_a_process", "/proc is the machine's"),
    ("list_processes", "/proc is the machine's"),
    ("read_its_parents_command_line", "/proc is the machine's; only what tracing would show is refused"),
    ("see_memory_of_others", "/proc/sysvipc tells that it is there; it cannot be attached"),
    ("write_our_directory", "it holds the journal, which is too large to be kept"),
    ("replace_our_directory", "it holds the journal, which is too large to be kept"),
];

/// The environment in which it must succeed first.
#[derive(PartialEq, Eq)]
enum Without {
    /// The fork server without a sandbox.
    Sandbox,
    /// The same, only as root: the system stops other users.
    SandboxAsRoot,
    /// A plain child process: the fork server alone already stops it.
    Anything,
    /// The fork server without a sandbox, only as root and if this machine has what the attempt needs.
    SandboxWherePossible,
}

impl Attempt {
    /// Whether this sandbox guarantees to stop it.
    pub(crate) fn is_tried_in(&self, within: Within) -> bool {
        let is_not_promised = within.is_landlock() && NOT_PROMISED.iter().any(|(name, _)| *name == self.name);
        let needs_isolated_network = within.has_network() && NETWORK.contains(&self.name);
        !(is_not_promised || needs_isolated_network)
    }

    pub(crate) fn fails_only_in_the_sandbox(&self, stage: &Stage, within: Within) {
        if matches!(self.without, Without::SandboxAsRoot | Without::SandboxWherePossible) && !is_root() {
            return;
        }
        let base = stage.base.display().to_string();
        let command = self.command.replace("$OUTSIDE", &format!("{base}/outside")).replace("$BASE", &base);
        let kept = (self.prepare)(stage);
        let output = match self.without {
            Without::Anything => stage.bare(&command),
            _ => stage.run(&Sandbox::Off, &command).output,
        };
        if self.without == Without::SandboxWherePossible && !self.succeeded(stage, &output) {
            let _ = writeln!(std::io::stderr(), "{}: this machine has no way to try it: {output}", self.name);
            return;
        }
        assert!(self.succeeded(stage, &output), "it must succeed without the sandbox, but said:\n{output}");
        drop(kept);
        let again = Stage::new(stage.fork_server.clone());
        let base = again.base.display().to_string();
        let command = self.command.replace("$OUTSIDE", &format!("{base}/outside")).replace("$BASE", &base);
        let kept = (self.prepare)(&again);
        let outcome = again.run(&within.sandbox(&again), &command);
        assert!(outcome.result.is_ok(), "it must run in the sandbox: {outcome:?}");
        assert!(!self.succeeded(&again, &outcome.output), "it got out of the sandbox:\n{}", outcome.output);
        drop(kept);
    }

    fn succeeded(&self, stage: &Stage, output: &str) -> bool {
        match self.success {
            Success::Says(words) => output.contains(words),
            Success::Seen(look) => look(stage),
        }
    }
}

fn nothing(_: &Stage) -> Option<Box<dyn std::any::Any>> {
    None
}

pub(crate) fn attempt(name: &'static str, command: &'static str, success: Success) -> Attempt {
    Attempt { name, prepare: nothing, command, success, without: Without::Sandbox }
}

/// An attempt that reads the secret from outside.
fn reads(name: &'static str, command: &'static str) -> Attempt {
    attempt(name, command, Success::Says(SECRET))
}

/// An attempt that prints `done` if it succeeded.
pub(crate) fn does(name: &'static str, command: &'static str) -> Attempt {
    attempt(name, command, Success::Says("done"))
}

impl Attempt {
    pub(crate) fn after(mut self, prepare: fn(&Stage) -> Option<Box<dyn std::any::Any>>) -> Self {
        self.prepare = prepare;
        self
    }

    pub(crate) fn needing_root(mut self) -> Self {
        self.without = Without::SandboxAsRoot;
        self
    }

    pub(crate) fn where_possible(mut self) -> Self {
        self.without = Without::SandboxWherePossible;
        self
    }

    fn bare(mut self) -> Self {
        self.without = Without::Anything;
        self
    }
}

/// Tries everything in these sandboxes and names what failed. For a copy of this program that another user runs.
pub(crate) fn all_fail(stage: &Stage, sandboxes: &[Within]) -> std::process::ExitCode {
    let _ = writeln!(std::io::stdout(), "failed: {:?}", failed_in(stage, sandboxes));
    std::process::ExitCode::SUCCESS
}

/// Tries everything in these sandboxes, and returns what failed.
pub(crate) fn failed_in(stage: &Stage, sandboxes: &[Within]) -> Vec<String> {
    let mut failed = Vec::new();
    for attempt in attempts() {
        for &within in sandboxes.iter().filter(|within| attempt.is_tried_in(**within)) {
            let trial = || attempt.fails_only_in_the_sandbox(&Stage::new(stage.fork_server.clone()), within);
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(trial)).is_err() {
                failed.push(format!("{}{}", attempt.name, within.suffix()));
            }
        }
    }
    failed
}

pub(crate) fn attempts() -> Vec<Attempt> {
    [files(), settings(), processes(), sockets(), kernel(), poison::attempts(), influence::attempts()]
        .into_iter()
        .flatten()
        .collect()
}

fn exists_outside(name: &'static str) -> impl Fn(&Stage) -> bool {
    move |stage| stage.outside(name).exists()
}

fn files() -> Vec<Attempt> {
    vec![
        attempt("write_outside", "echo x > $OUTSIDE/made", Success::Seen(|stage| exists_outside("made")(stage))),
        attempt("write_outside_by_dots", "echo x > ../outside/made", Success::Seen(|stage| exists_outside("made")(stage))),
        attempt("write_next_to_the_workspace", "mkdir -p ../made", Success::Seen(|stage| stage.base.join("made").exists())),
        attempt(
            "change_outside",
            "echo x >> $OUTSIDE/secret",
            Success::Seen(|stage| std::fs::read_to_string(stage.outside("secret")).unwrap() != SECRET),
        ),
        attempt("delete_outside", "rm -rf $OUTSIDE", Success::Seen(|stage| !stage.outside("secret").exists())),
        does("write_etc", "touch /etc/fusee-escape$$ && rm /etc/fusee-escape$$ && echo done").needing_root(),
        does("write_usr", "touch /usr/local/bin/fusee-escape$$ && rm /usr/local/bin/fusee-escape$$ && echo done").needing_root(),
        does("change_mode_of_a_device", "chmod 666 /dev/null && echo done").needing_root(),
        reads("read_outside", "cat $OUTSIDE/secret"),
        reads("read_ssh_key", "cat ~/.ssh/id"),
        reads("find_ssh_key", "grep -r secret $BASE/home"),
        reads("read_cargo_token", "cat $CARGO_HOME/credentials.toml"),
        attempt(
            "write_cargo_settings",
            "echo x > $CARGO_HOME/config.toml",
            Success::Seen(|stage| stage.base.join("home/.cargo/config.toml").exists()),
        ),
        attempt(
            "write_shell_start",
            "echo x > ~/.bashrc",
            Success::Seen(|stage| stage.base.join("home/.bashrc").exists()),
        ),
        does("replace_a_program_on_the_path", "echo x > $CARGO_HOME/bin/cargo && echo done"),
        does("read_password_hashes", "grep -q root /etc/shadow && echo done").needing_root(),
        reads("read_settings_of_root", "cat /etc/fusee-escape-$(basename $BASE)").needing_root().after(|stage| {
            let path = format!("/etc/fusee-escape-{}", stage.base.file_name().unwrap().display());
            std::fs::write(&path, SECRET).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            Some(Box::new(Removed(path.into())))
        }),
        attempt(
            "write_through_a_link",
            "ln -s $OUTSIDE link; echo x > link/made",
            Success::Seen(|stage| exists_outside("made")(stage)),
        ),
        reads("read_through_a_link", "ln -s ~/.ssh/id link; cat link"),
        attempt(
            "write_through_a_hard_link",
            "ln $OUTSIDE/secret hard; echo x > hard",
            Success::Seen(|stage| std::fs::read_to_string(stage.outside("secret")).unwrap() != SECRET),
        ),
        does("hard_link_to_the_system", "ln /etc/passwd hard && rm hard && echo done").needing_root(),
        reads("read_temporary_files_of_others", "cat /tmp/fusee-escape-$(basename $BASE)").after(|stage| {
            let path = format!("/tmp/fusee-escape-{}", stage.base.file_name().unwrap().display());
            std::fs::write(&path, SECRET).unwrap();
            Some(Box::new(Removed(path.into())))
        }),
        reads("read_shared_memory_of_others", "cat /dev/shm/fusee-escape-$(basename $BASE)").after(|stage| {
            let path = format!("/dev/shm/fusee-escape-{}", stage.base.file_name().unwrap().display());
            std::fs::write(&path, SECRET).unwrap();
            Some(Box::new(Removed(path.into())))
        }),
        does("read_a_disk", "for disk in /dev/[svx]d? /dev/vd? /dev/nvme?n? /dev/loop0; do head -c 1 $disk >/dev/null 2>&1 && echo done; done").where_possible(),
        does("make_a_device", "mknod disk b 7 0 && echo done").where_possible(),
        does("make_a_file_run_as_its_owner", "cp /bin/true mine && chmod 4755 mine && echo done"),
        does(
            "make_a_file_run_as_its_owner_at_once",
            "python3 -c 'import os; os.close(os.open(\"mine\", os.O_CREAT | os.O_WRONLY, 0o4755)); print(\"done\" if os.stat(\"mine\").st_mode & 0o4000 else \"\")'",
        ),
        attempt("run_as_the_owner_of_a_file", "./other -u", Success::Says("65534")).needing_root().after(|stage| {
            stage.bare("cp /usr/bin/id other; chown 65534 other; chmod 4755 other");
            None
        }),
    ]
}

/// A file that is removed when the attempt is over.
struct Removed(std::path::PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn repository(stage: &Stage) -> Option<Box<dyn std::any::Any>> {
    stage.bare("git init -q . && mkdir .fusee && echo a > .fusee/trusted && echo 'a = 1' > fusee.toml");
    assert!(stage.path(".git/hooks").is_dir());
    None
}

pub(crate) fn submodule(stage: &Stage) -> Option<Box<dyn std::any::Any>> {
    stage.bare(
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        printf '[user]\\nname = a\\nemail = a@b\\n' > ~/.gitconfig; git init -q ../outside/other; cd ../outside/other; echo x > x; git add x; git commit -qm x
        cd ../../workspace; git init -q; git -c protocol.file.allow=always submodule --quiet add ../outside/other sub; git commit -qm sub",
    );
    assert!(stage.path("sub/.git").is_file());
    None
}

fn holds(stage: &Stage, name: &str, words: &str) -> bool {
    std::fs::read_to_string(stage.path(name)).is_ok_and(|text| text.contains(words))
}

fn settings() -> Vec<Attempt> {
    let hook: fn(&Stage) -> bool = |stage| stage.path(".git/hooks/pre-commit").exists();
    let config: fn(&Stage) -> bool = |stage| holds(stage, ".git/config", "evil");
    let ours: fn(&Stage) -> bool = |stage| holds(stage, "fusee.toml", "evil");
    let trust: fn(&Stage) -> bool = |stage| holds(stage, ".fusee/trusted", "evil");
    let with = |name, command, seen| attempt(name, command, Success::Seen(seen)).after(repository);
    let without = |name, command, seen| attempt(name, command, Success::Seen(seen));
    // Simulates the user's next action.
    let ran: fn(&Stage) -> bool = |stage| {
        stage.bare("git status");
        stage.outside("ran").exists()
    };
    let with_submodule = |name, command| attempt(name, command, Success::Seen(ran)).after(submodule);
    vec![
        with("write_a_hook", "echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", hook),
        with(
            "move_the_hooks_away",
            "mv .git/hooks .git/old; mkdir .git/hooks; echo evil > .git/hooks/pre-commit",
            hook,
        ),
        with(
            "move_the_repository_away",
            "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
            hook,
        ),
        with(
            "copy_the_repository",
            "cp -r .git new; echo evil > new/hooks/pre-commit; rm -rf .git; mv new .git",
            hook,
        ),
        with("write_git_settings", "echo '[core] fsmonitor = evil' >> .git/config", config),
        with("have_git_write_its_settings", "git config core.fsmonitor evil", config),
        with("replace_git_settings", "echo evil > new; mv -f new .git/config", config),
        with("link_to_git_settings", "ln .git/config hard; echo evil >> hard", config),
        with("lead_git_elsewhere", "mkdir -p bad; echo ../bad > .git/commondir", |stage| {
            stage.path(".git/commondir").exists()
        }),
        with("write_our_settings", "echo evil > fusee.toml", ours),
        with("replace_our_settings", "echo evil > new; mv -f new fusee.toml", ours),
        with("remove_our_settings", "rm -f fusee.toml; echo evil > fusee.toml", ours),
        with("write_our_directory", "echo evil > .fusee/trusted", trust),
        with("replace_our_directory", "mv .fusee old; mkdir .fusee; echo evil > .fusee/trusted", trust),
        with_submodule(
            "lead_a_submodule_elsewhere",
            "rm sub/.git; cd sub; git init -q; git config core.fsmonitor 'touch $OUTSIDE/ran; false'",
        ),
        with_submodule(
            "change_the_settings_of_a_submodule",
            "git -C sub config core.fsmonitor 'touch $OUTSIDE/ran; false'",
        ),
        with_submodule(
            "link_to_a_repository_with_settings",
            "mkdir n; cd n; git init -q; echo x > x; git add x; git commit -qm x; git config core.fsmonitor 'touch $OUTSIDE/ran; false'; cd ..; git add n; git update-index --split-index",
        ),
        with_submodule(
            "link_by_a_repository_that_is_linked_to",
            "mkdir n; cd n; git init -q; mkdir m; cd m; git init -q; echo x > x; git add x; git commit -qm x; cd ..; git add m; git commit -qm m; git -C m config core.fsmonitor 'touch $OUTSIDE/ran; false'; cd ..; git add n",
        ),
        without("make_our_settings", "echo evil > fusee.toml", ours),
        without("make_our_directory", "mkdir .fusee; echo evil > .fusee/trusted; chmod 0 .fusee", |stage| {
            stage.path(".fusee").exists()
        }),
        without("make_our_settings_a_link", "ln -s /etc/passwd fusee.toml", |stage| {
            stage.path("fusee.toml").symlink_metadata().is_ok()
        }),
        without("make_a_repository_with_a_hook", "git init -q .; echo evil > .git/hooks/pre-commit", hook),
        without("make_a_repository_with_settings", "git init -q .; git config core.fsmonitor evil", config),
        without("make_a_repository_elsewhere", "mkdir bad; echo 'gitdir: bad' > .git", |stage| {
            stage.path(".git").is_file()
        }),
    ]
}

/// A process outside the sandbox, a child of the test, that ends with the attempt.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "the attempt needs an unsupervised process")]
fn sleeper(stage: &Stage) -> Option<Box<dyn std::any::Any>> {
    let child =
        std::process::Command::new("/bin/sleep").arg("600").env("SLEEPERS_SECRET", SECRET).spawn().unwrap();
    stage.write("sleeper", &format!("{}\n", child.id()));
    stage.write("keeper", &format!("{}\n", stage.fork_server.process_id()));
    Some(Box::new(Sleeper(child)))
}

fn processes() -> Vec<Attempt> {
    let on_sleeper = |name, command| does(name, command).after(sleeper);
    vec![
        on_sleeper("see_a_process", "test -d /proc/$(cat sleeper) && echo done"),
        on_sleeper("list_processes", "ps -e -o pid= | grep -qw $(cat sleeper) && echo done"),
        on_sleeper("kill_a_process", "kill -9 $(cat sleeper) && echo done"),
        reads("read_a_process_environment", "tr '\\0' '\\n' < /proc/$(cat sleeper)/environ").after(sleeper),
        reads("read_through_the_root_of_a_process", "cat /proc/$(cat sleeper)/root/$OUTSIDE/secret").after(sleeper).needing_root(),
        reads("read_through_the_directory_of_a_process", "cat /proc/$(cat keeper)/root/$OUTSIDE/secret").after(sleeper).needing_root(),
        on_sleeper(
            "trace_a_process",
            "python3 -c 'import ctypes, sys; print(\"done\" if ctypes.CDLL(None).ptrace(16, int(open(\"sleeper\").read()), 0, 0) == 0 else \"\")'",
        )
        .needing_root(),
        on_sleeper(
            "read_the_keepers_memory",
            "python3 - <<'E'\nimport re\npid = int(open('keeper').read())\nwhere = next(line for line in open(f'/proc/{pid}/maps') if '[stack]' in line)\nwith open(f'/proc/{pid}/mem', 'rb') as memory:\n    memory.seek(int(where.split('-')[1].split()[0], 16) - 4096)\n    memory.read(1)\nprint('done')\nE",
        )
        .needing_root(),
        reads("read_through_the_first_process", "cat /proc/1/root/$OUTSIDE/secret").where_possible(),
        reads("read_through_its_parent", "cat /proc/$PPID/root/$OUTSIDE/secret").needing_root(),
        does("read_its_parents_environment", "cat /proc/$PPID/environ >/dev/null && echo done"),
        does("read_its_parents_command_line", "cat /proc/$PPID/cmdline >/dev/null && echo done"),
        on_sleeper("enter_namespaces_of_a_process", "nsenter --target $(cat sleeper) --mount true && echo done").needing_root(),
        attempt("read_our_environment", "env", Success::Says(SECRET_VARIABLE)).bare(),
        attempt("find_open_files", "ls -l /proc/self/fd", Success::Says("/outside/secret")).bare().after(|stage| {
            // Left open on purpose, and not close-on-exec.
            let file = std::fs::File::open(stage.outside("secret")).unwrap();
            rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
            Some(Box::new(file))
        }),
        does("see_memory_of_others", "ipcs -m -i $(cat segment) | grep -q shmid= && echo done").after(|stage| {
            let made = stage.bare("ipcmk -M 4096");
            let number = made.trim().rsplit(' ').next().unwrap().to_owned();
            stage.write("segment", &number);
            struct Segment(String);
            impl Drop for Segment {
                #[expect(clippy::disallowed_methods, reason = "cleans up outside the sandbox")]
                fn drop(&mut self) {
                    let _ = std::process::Command::new("ipcrm").args(["-m", &self.0]).status();
                }
            }
            Some(Box::new(Segment(number)))
        }),
    ]
}

fn sockets() -> Vec<Attempt> {
    vec![
        does(
            "connect_to_a_port_of_the_machine",
            "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", int(open(\"port\").read())), 5); print(\"done\")'",
        )
        .after(|stage| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            stage.write("port", &listener.local_addr().unwrap().port().to_string());
            Some(Box::new(listener))
        }),
        attempt(
            "send_to_a_port_of_the_machine",
            "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", int(open(\"port\").read())))'; sleep 0.2; cat received 2>/dev/null",
            Success::Says("received"),
        )
        .after(|stage| {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(std::time::Duration::from_secs(3))).unwrap();
            stage.write("port", &socket.local_addr().unwrap().port().to_string());
            let path = stage.path("received");
            std::thread::spawn(move || {
                if socket.recv(&mut [0]).is_ok() {
                    let _ = std::fs::write(path, "received");
                }
            });
            None
        }),
        does(
            "connect_to_a_socket_outside",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"$OUTSIDE/socket\"); print(\"done\")'",
        )
        .after(|stage| {
            Some(Box::new(UnixListener::bind(stage.outside("socket")).unwrap()))
        }),
        does(
            "connect_to_an_abstract_socket",
            "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).connect(\"\\0fusee-escape\" + os.getcwd()[-60:]); print(\"done\")'",
        )
        .after(|stage| {
            use std::os::linux::net::SocketAddrExt;
            let workspace = stage.workspace().display().to_string();
            let name = format!("fusee-escape{}", &workspace[workspace.len().saturating_sub(60)..]);
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
            Some(Box::new(UnixListener::bind_addr(&address).unwrap()))
        }),
        does("open_a_socket_to_the_host", "python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM); print(\"done\")'").where_possible(),
        does("open_a_raw_socket", "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3); print(\"done\")'").where_possible(),
        does("open_a_kernel_crypto_socket", "python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET); print(\"done\")'").where_possible(),
    ]
}

fn kernel() -> Vec<Attempt> {
    let mounted: fn(&Stage) -> Option<Box<dyn std::any::Any>> = |stage| {
        stage.bare("mkdir -p mounted && mount -t tmpfs none mounted && touch mounted/here");
        struct Mounted(std::path::PathBuf);
        impl Drop for Mounted {
            fn drop(&mut self) {
                let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
            }
        }
        Some(Box::new(Mounted(stage.path("mounted"))))
    };
    vec![
        does("mount", "mkdir m; mount -t tmpfs none m && umount m && echo done").needing_root(),
        does("mount_by_binding", "mkdir m; mount --bind /usr m && umount m && echo done").needing_root(),
        does("unmount", "umount mounted && echo done").needing_root().after(mounted),
        does("remount_writable", "mount -o remount,bind,rw mounted && echo done").needing_root().after(mounted),
        does("change_root", "python3 -c 'import os; os.chroot(\".\"); print(\"done\")'").needing_root(),
        does("make_namespaces", "unshare --user --map-root-user true && echo done"),
        does("make_a_mount_namespace", "unshare --user --map-root-user --mount true && echo done"),
        does(
            "make_a_namespace_with_clone",
            "python3 -c 'import ctypes, os\npid = ctypes.CDLL(None).syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nprint(\"done\" if pid > 0 else \"\")'",
        ),
        does(
            "read_a_key",
            "python3 -c 'import ctypes\nlibc = ctypes.CDLL(None)\nprint(\"done\" if libc.syscall(250, 0, -4, 1) > 0 else \"\")'",
        ),
        does(
            "add_a_key",
            "python3 -c 'import ctypes\nprint(\"done\" if ctypes.CDLL(None).syscall(248, b\"user\", b\"fusee-escape\", b\"x\", 1, -2) > 0 else \"\")'",
        ),
        does(
            "type_into_a_terminal",
            "python3 -c 'import fcntl, os\ncontroller, terminal = os.openpty()\nfcntl.ioctl(terminal, 0x5412, b\"x\")\nprint(\"done\")'",
        )
        .where_possible(),
        does("join_a_control_group", "for group in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do mkdir $group/fusee-escape$$ && rmdir $group/fusee-escape$$ && echo done; done 2>/dev/null").where_possible(),
        does("change_a_setting_of_the_kernel", "cat /proc/sys/kernel/core_pattern > pattern && cat pattern > /proc/sys/kernel/core_pattern && echo done").needing_root(),
        does("open_the_kernels_trigger", ": >> /proc/sysrq-trigger && echo done").where_possible(),
        does("change_a_setting_of_the_machine", "cat /sys/kernel/mm/transparent_hugepage/khugepaged/defrag > value && cat value > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag && echo done").where_possible(),
        does("read_the_kernels_log", "dmesg >/dev/null && echo done").where_possible(),
        does("name_the_machine", "hostname \"$(hostname)\" && echo done").needing_root(),
        does(
            "open_a_file_by_its_number",
            "python3 - <<'E'\nimport ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nhandle = ctypes.create_string_buffer(136)\nhandle[0:4] = (128).to_bytes(4, 'little')\nmount = ctypes.c_int()\nassert libc.name_to_handle_at(-100, b'.', handle, ctypes.byref(mount), 0) == 0\nplace = os.open('.', os.O_RDONLY)\nprint('done' if libc.open_by_handle_at(place, handle, os.O_RDONLY) >= 0 else os.strerror(ctypes.get_errno()))\nE",
        )
        .where_possible(),
        does("load_a_program_into_the_kernel", "python3 -c 'import ctypes\nattributes = ctypes.create_string_buffer(bytes([2,0,0,0, 4,0,0,0, 4,0,0,0, 1,0,0,0]) + bytes(112))\nprint(\"done\" if ctypes.CDLL(None).syscall(321, 0, attributes, 72) > 0 else \"\")'").where_possible(),
        does("raise_priority", "nice -n -5 true 2>&1 | grep -q . || echo done").needing_root(),
    ]
}
