//! Symbolic links are not followed, and what their owner made inaccessible is accessible.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn base() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    (directory, base)
}

#[test]
fn no_link_is_followed_on_the_way_or_at_the_end() {
    let (_directory, base) = base();
    fs::create_dir(base.join("real")).unwrap();
    fs::write(base.join("real/file"), "content").unwrap();
    symlink("real", base.join("link")).unwrap();
    symlink("file", base.join("real/alias")).unwrap();
    assert!(Entry::at(&base.join("link/file")).unwrap().is_none());
    assert!(Entry::at(&base.join("missing/file")).unwrap().is_none());
    assert!(Entry::at(&base.join("real/file/inner")).unwrap().is_none());
    let alias = Entry::at(&base.join("real/alias")).unwrap().unwrap();
    assert_eq!(alias.kind().unwrap(), Some(FileType::Symlink));
    assert!(alias.read(100).is_err());
    for path in ["link/file", "real/alias"] {
        assert!(matches!(open_componentwise(&base.join(path)), Err(Errno::NOTDIR | Errno::LOOP)), "{path}");
    }
    assert!(open_componentwise(&base.join("real")).is_ok());
}

#[test]
fn a_file_is_read_and_created_behind_any_mode() {
    for mode in [0o700, 0o500, 0o300, 0o100, 0] {
        let (_directory, base) = base();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("a/b/old"), "old").unwrap();
        for path in ["a/b/old", "a/b", "a"] {
            fs::set_permissions(base.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let old = Entry::at(&base.join("a/b/old")).unwrap().unwrap();
        assert_eq!(old.read(100).unwrap().1, b"old", "{mode:o}");
        assert_eq!(old.read(2).unwrap_err().raw_os_error(), Some(libc::EFBIG), "{mode:o}");
        let new = Entry::at(&base.join("a/b/new")).unwrap().unwrap();
        assert_eq!(new.kind().unwrap(), None, "{mode:o}");
        new.create(b"new", 0o640).unwrap();
        assert_eq!(new.read(100).unwrap(), (0o640, b"new".to_vec()), "{mode:o}");
        assert!(new.create(b"again", 0o640).is_err(), "{mode:o}");
        let names = Entry::at(&base.join("a/b")).unwrap().unwrap().names().unwrap();
        assert_eq!(names.len(), 2, "{mode:o}");
    }
}
