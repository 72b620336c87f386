//! Paths that are not regular files.

use std::path::Path;

use super::{is_bounded_file, read, read_text};

#[test]
fn only_regular_files_of_a_bounded_size_are_read() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    std::fs::write(at("plain"), "text\n").unwrap();
    std::os::unix::fs::symlink("plain", at("link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("zero")).unwrap();
    std::fs::File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
    let pipe = rustix::fs::CWD;
    rustix::fs::mknodat(pipe, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let output = |path: &Path| read_text(path, 2048).map_err(|error| error.to_string());
    assert_eq!(output(&at("plain")), Ok("text\n".to_owned()));
    assert_eq!(output(&at("link")), Ok("text\n".to_owned()));
    for name in ["zero", "pipe"] {
        assert_eq!(output(&at(name)), Err("it is not a regular file".to_owned()), "{name}");
    }
    assert_eq!(output(place.path()), Err("it is not a regular file".to_owned()));
    assert_eq!(output(&at("huge")), Err("it is larger than 2 KiB".to_owned()));
    assert_eq!(read(&at("none"), 1).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let harmless =
        ["plain", "link", "none", "zero", "pipe", "huge"].map(|name| is_bounded_file(&at(name), 2048));
    assert_eq!(harmless, [true, true, true, false, false, false]);
}
