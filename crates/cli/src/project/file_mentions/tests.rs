//! Tests of the files attached to a message.

use super::*;

fn workspace() -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/a.rs"), "fn a() {}\n").unwrap();
    std::fs::write(folder.path().join("b.txt"), "b\n").unwrap();
    std::fs::write(folder.path().join("c.bin"), [0xff, 0xfe]).unwrap();
    let workspace = Workspace::open(folder.path()).unwrap();
    (folder, workspace)
}

#[test]
fn files_come_along_once_each_and_other_words_with_an_at_do_not() {
    let (_folder, workspace) = workspace();
    let mentioned =
        gather("look at @src/a.rs, @b.txt and @b.txt. Ask me@home.org or @nobody @src", &workspace, 1000);
    let background = "The file src/a.rs:\n\nfn a() {}\n\nThe file b.txt:\n\nb".to_owned();
    assert_eq!(
        mentioned,
        AttachedFiles { background: Some(background), images: Vec::new(), problems: Vec::new() }
    );
    assert_eq!(gather("nothing", &workspace, 1000), AttachedFiles::default());
    assert_eq!(gather("@../outside @/etc/passwd", &workspace, 1000), AttachedFiles::default());
}

#[test]
fn what_is_no_text_or_too_much_is_named() {
    let (folder, workspace) = workspace();
    std::fs::write(folder.path().join("big.txt"), vec![b'x'; 300 << 10]).unwrap();
    let mentioned = gather("@c.bin @big.txt", &workspace, 1000);
    assert_eq!(
        mentioned.problems,
        [
            "@c.bin not attached: not a text file",
            "@big.txt not attached: a message's files are limited to 256 kB in total"
        ]
    );
    assert_eq!(mentioned.background, None);
}

#[test]
fn images_are_attached_as_images_within_their_limit() {
    let (folder, workspace) = workspace();
    let gif = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    std::fs::write(folder.path().join("dot.gif"), gif).unwrap();
    std::fs::write(folder.path().join("broken.png"), "no image").unwrap();
    let mentioned = gather("@dot.gif @broken.png @none.png", &workspace, 1000);
    assert_eq!((mentioned.images.len(), mentioned.images[0].media_type.as_str()), (1, "image/gif"));
    assert_eq!(mentioned.problems, ["@broken.png not attached: not a complete PNG, JPEG, GIF or WebP file"]);
    assert_eq!(
        gather("@dot.gif", &workspace, 0).problems,
        ["@dot.gif not attached: this model does not accept images"]
    );
    assert_eq!(
        gather("@dot.gif", &workspace, 20).problems,
        ["@dot.gif not attached: the images of a message are limited to 0 kB in total"]
    );
}
