//! The list of files agrees with the folder.

use super::*;
use crate::suite::table::tree;

#[test]
fn every_file_of_the_folder_is_bundled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let mut on_disk: Vec<String> =
        tree(&folder).unwrap().iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
    on_disk.sort();
    let bundled: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
    assert_eq!(on_disk, bundled);
}
