//! How the files of a workflow are located.

use super::*;

#[test]
fn a_path_is_relative_to_the_file_that_loads_it_and_is_kept_under_one_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
    std::fs::write(folder.path().join("a/kit.fusee"), "(define x 1)").unwrap();
    let mut loading = WorkflowLoader::from_disk(folder.path());
    let from = Source::new("a/b/main.fusee", "");
    for path in ["../kit.fusee", "./../kit.fusee", "../b/../kit.fusee"] {
        assert_eq!(&**loading.load(&from, path).unwrap().name(), "a/kit.fusee");
    }
    std::fs::remove_file(folder.path().join("a/kit.fusee")).unwrap();
    let mut kept = WorkflowLoader::from_files(loading.files);
    assert_eq!(kept.load(&from, "../kit.fusee").unwrap().text(), "(define x 1)");
    assert_eq!(kept.load(&from, "kit.fusee").unwrap_err(), "the file was not loaded when the run started");
    assert_eq!(
        kept.load(&from, "/etc/passwd").unwrap_err(),
        "the path must be relative to the file that loads it"
    );
}
