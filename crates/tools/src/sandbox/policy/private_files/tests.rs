//! Which system settings are hidden.

use super::*;

#[test]
fn what_others_cannot_read_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    for (path, mode) in [
        ("open/file", 0o644),
        ("open/secret", 0o640),
        ("closed/file", 0o644),
        ("open/deep/key", 0o600),
        ("open/deep/program", 0o755),
    ] {
        let path = base.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::set_permissions(base.join("closed"), std::fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("open/secret", base.join("link")).unwrap();
    let mut hidden = Vec::new();
    collect(base, 0, &mut hidden);
    let mut hidden: Vec<&Path> = hidden.iter().map(|path| path.strip_prefix(base).unwrap()).collect();
    hidden.sort();
    assert_eq!(hidden, ["closed", "open/deep/key", "open/secret"].map(Path::new));
}

#[test]
fn too_many_are_hidden_with_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    for number in 0..=MAX_PATHS {
        let path = inner.join(number.to_string());
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let mut hidden = Vec::new();
    collect(directory.path(), 0, &mut hidden);
    assert_eq!(hidden, [inner]);
}
