//! Changes that a command makes to settings and hooks are reverted.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

struct Repository {
    _directory: tempfile::TempDir,
    base: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let repository = Self { _directory: directory, base };
        repository.write(".git/config", "[core]\n");
        repository.write(".git/hooks/pre-commit", "true\n");
        repository.write(".git/hooks/pre-push.sample", "sample\n");
        repository.write(".git/modules/one/config", "[core]\n");
        repository.write(".git/modules/one/objects/config", "not settings\n");
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `change` between backup and restore, and returns whether anything was restored.
    fn after(&self, change: impl FnOnce()) -> bool {
        let names = [
            ("fusee.toml", CreatedPathAction::SetAside),
            (".git", CreatedPathAction::UnlessDirectory),
            (".git/hooks", CreatedPathAction::WithoutHooks),
            (".git/config", CreatedPathAction::Sanitized),
            (".git/modules", CreatedPathAction::SetAside),
        ];
        let guarded = names.map(|(name, on_create)| (self.path(name), on_create));
        let guarded: Vec<(&Path, CreatedPathAction)> =
            guarded.iter().map(|(path, on_create)| (path.as_path(), *on_create)).collect();
        let kept = SettingsBackup::create(&guarded).unwrap();
        change();
        let report = kept.restore();
        assert_eq!(report.unrestored, []);
        !report.is_empty()
    }
}

#[test]
fn what_was_left_alone_stays() {
    let repository = Repository::new();
    assert!(!repository.after(|| repository.write("file", "x")));
}

#[test]
fn changed_settings_and_hooks_are_put_back() {
    let repository = Repository::new();
    let undone = repository.after(|| {
        repository.write(".git/config", "[core]\n\tfsmonitor = evil\n");
        repository.write(".git/modules/one/config", "evil");
        repository.write(".git/modules/one/objects/config", "changed\n");
        fs::remove_file(repository.path(".git/hooks/pre-commit")).unwrap();
        repository.write(".git/hooks/post-commit", "evil");
        repository.write(".git/hooks/pre-push.sample", "changed\n");
        repository.write("fusee.toml", "evil");
    });
    assert!(undone);
    assert_eq!(repository.read(".git/config"), "[core]\n");
    assert_eq!(repository.read(".git/modules/one/config"), "[core]\n");
    assert_eq!(repository.read(".git/modules/one/objects/config"), "changed\n");
    assert_eq!(repository.read(".git/hooks/pre-commit"), "true\n");
    assert_eq!(repository.read(".git/hooks/post-commit.refused"), "evil");
    assert!(!repository.path(".git/hooks/post-commit").exists());
    assert_eq!(repository.read(".git/hooks/pre-push.sample"), "changed\n");
    assert_eq!(repository.read("fusee.toml.refused"), "evil");
}

#[test]
fn a_mode_and_a_link_are_changes_too() {
    let repository = Repository::new();
    let undone = repository.after(|| {
        let hook = repository.path(".git/hooks/pre-commit");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o777)).unwrap();
        fs::remove_file(repository.path(".git/config")).unwrap();
        repository.write("evil", "[core]\n");
        std::os::unix::fs::symlink("../evil", repository.path(".git/config")).unwrap();
    });
    assert!(undone);
    assert!(repository.path(".git/config").symlink_metadata().unwrap().is_file());
    assert_eq!(repository.path(".git/hooks/pre-commit").metadata().unwrap().permissions().mode() & 0o111, 0);
}

#[test]
fn a_repository_that_became_a_link_is_set_aside() {
    let repository = Repository::new();
    let undone = repository.after(|| {
        fs::rename(repository.path(".git"), repository.path("old")).unwrap();
        std::os::unix::fs::symlink("old", repository.path(".git")).unwrap();
    });
    assert!(undone);
    assert!(repository.path(".git").symlink_metadata().is_err());
}

#[test]
fn more_than_can_be_kept_is_an_error() {
    let repository = Repository::new();
    fs::write(repository.path("large"), vec![0; 5 << 20]).unwrap();
    let large = repository.path("large");
    assert!(SettingsBackup::create(&[(large.as_path(), CreatedPathAction::SetAside)]).is_err());
}
