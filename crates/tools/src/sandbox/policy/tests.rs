//! The default policy for a temporary home and workspace.

use std::ffi::OsString;

use super::*;

struct Place {
    base: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for file in files {
            let path = base.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        Self { base, _directory: directory }
    }

    fn policy(&self, workspace: &str, variables: &[(&str, &str)]) -> Policy {
        let value =
            |value: &str| OsString::from(value.replace('~', self.base.join("home").to_str().unwrap()));
        let environment = CommandEnvironment::allowed(
            variables.iter().map(|(name, text)| (OsString::from(*name), value(text))),
        );
        let own = [self.base.join("home/.config/fusee")];
        let workspace = self.base.join(workspace);
        std::fs::create_dir_all(&workspace).unwrap();
        Policy::defaults(&SandboxInputs {
            workspace: &workspace,
            environment: &environment,
            own: &own,
            network: Network::Own,
        })
        .unwrap()
    }

    /// The paths inside this directory, relative to it.
    fn inside(&self, paths: &[PathBuf]) -> Vec<String> {
        let inside = paths.iter().filter_map(|path| path.strip_prefix(&self.base).ok());
        inside.map(|path| path.display().to_string()).collect()
    }
}

#[test]
fn toolchains_are_found_where_variables_and_the_search_path_say() {
    let place = Place::new(&[
        "home/.cargo/bin/cargo",
        "home/.local/bin/own",
        "home/.local/share/tool/venv/bin/tool",
        "home/bin/mine",
        "home/secret",
        "home/go/pkg/mod/x",
        "elsewhere/node/bin/node",
        "work/node_modules/.bin/x",
    ]);
    std::os::unix::fs::symlink(
        place.base.join("home/.local/share/tool/venv/bin/tool"),
        place.base.join("home/.local/bin/tool"),
    )
    .unwrap();
    let node = place.base.join("elsewhere/node/bin").display().to_string();
    let local = place.base.join("work/node_modules/.bin").display().to_string();
    let search = format!("~/.cargo/bin:~/.local/bin:~/bin:~:relative:/usr/bin:{node}:{local}:/missing/bin:/");
    let policy =
        place.policy("work", &[("HOME", "~"), ("PATH", &search), ("GOPATH", "~/go"), ("JAVA_HOME", "~")]);
    assert_eq!(
        place.inside(&policy.read),
        [
            "elsewhere/node",
            "home/.cargo",
            "home/.local/bin",
            "home/.local/share/tool/venv",
            "home/bin",
            "home/go/pkg/mod",
        ]
    );
    assert_eq!(place.inside(&policy.write), ["work"]);
    assert_eq!(place.inside(&policy.scratch), ["home"]);
}

#[test]
fn credentials_and_our_own_settings_are_hidden() {
    let place = Place::new(&[]);
    let policy = place.policy("work", &[("HOME", "~"), ("CARGO_HOME", "~/cargo")]);
    let hidden = place.inside(&policy.hidden);
    for path in [
        "home/.ssh",
        "home/.aws",
        "home/.netrc",
        "home/.cargo/credentials.toml",
        "home/cargo/credentials.toml",
        "home/.config/fusee",
    ] {
        assert!(hidden.iter().any(|known| known == path), "{path} in {hidden:?}");
    }
}

#[test]
fn what_decides_over_programs_outside_is_guarded() {
    let place = Place::new(&["work/.git/worktrees/other/gitdir"]);
    let policy = place.policy("work", &[]);
    let guarded: Vec<String> = policy
        .guarded
        .iter()
        .map(|guarded| {
            let path = guarded.path.strip_prefix(place.base.join("work")).unwrap();
            format!("{} {:?}", path.display(), guarded.on_create)
        })
        .collect();
    assert_eq!(
        guarded,
        [
            ".fusee SetAside",
            "fusee.toml SetAside",
            ".git UnlessDirectory",
            " Linking",
            ".git/hooks WithoutHooks",
            ".git/config Sanitized",
            ".git/config.worktree SetAside",
            ".git/commondir SetAside",
            ".git/modules SetAside",
            ".git/worktrees SetAside",
        ]
    );
}

#[test]
fn the_whole_system_is_no_workspace() {
    let environment = CommandEnvironment::default();
    let surroundings = SandboxInputs {
        workspace: Path::new("/"),
        environment: &environment,
        own: &[],
        network: Network::Own,
    };
    assert_eq!(Policy::defaults(&surroundings), Err(PolicyError::WholeSystem));
}

#[test]
fn a_policy_is_data() {
    let place = Place::new(&["work/.git/HEAD"]);
    let policy = place.policy("work", &[("HOME", "~"), ("TMPDIR", "/var/tmp/own")]);
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
}

#[test]
fn paths_that_are_not_plain_are_not_taken() {
    for (path, plain) in
        [("/a/b", true), ("/", false), ("a", false), ("/a/../b", false), ("", false), ("/a/", true)]
    {
        assert_eq!(is_plain(Path::new(path)), plain, "{path}");
    }
}
