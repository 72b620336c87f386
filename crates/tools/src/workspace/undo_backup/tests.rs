//! Encoding and decoding of backed-up content.

use super::*;

#[test]
fn text_and_other_bytes_come_back_as_they_were() {
    for content in [&b"text\n"[..], b"", b"\xff\x00\x10end", "täxt".as_bytes()] {
        let kept = BackupContent::new(content.to_vec());
        let json = serde_json::to_value(Backup { path: "a".into(), mode: 0o644, content: kept }).unwrap();
        let read: Backup = serde_json::from_value(json).unwrap();
        assert_eq!(read.content.bytes().as_deref(), Some(content));
    }
    assert_eq!(BackupContent::TooLarge(9).bytes(), None);
    assert_eq!(BackupContent::Bytes("f".into()).bytes(), Some(vec![15]));
    assert_eq!(BackupContent::Bytes("xx".into()).bytes(), None);
}
