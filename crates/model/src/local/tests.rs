//! Error messages for files that are not models. `real` runs an actual model.

mod real;

use std::time::SystemTime;

use crate::{
    CancellationToken, Connection, Conversation, ErrorKind, Message, ModelError, Models, RequestOptions,
};

fn open(name: &str) -> String {
    let models = Models::new(|| SystemTime::UNIX_EPOCH);
    models.open(name, &Connection::default()).err().unwrap().to_string()
}

#[test]
fn what_is_no_model_is_refused_before_anything_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display();
    std::fs::write(folder.path().join("notes.gguf"), "hello").unwrap();
    assert_eq!(
        open(&format!("local:{shown}/none.gguf")),
        format!("cannot read the model {shown}/none.gguf: No such file or directory (os error 2)")
    );
    assert_eq!(
        open(&format!("local:{shown}/notes.gguf")),
        format!(
            "cannot read the model {shown}/notes.gguf: it is not a GGUF file, the format of llama.cpp's models"
        )
    );
    assert_eq!(
        open(&format!("local:{shown}")),
        format!("cannot read the model {shown}: it is a directory; specify the GGUF file in it")
    );
}

/// A GGUF file without tensors that claims this architecture.
fn of_architecture(name: &str) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let (version, tensors, pairs, string) = (3_u32, 0_u64, 1_u64, 8_u32);
    [
        b"GGUF".to_vec(),
        version.to_le_bytes().to_vec(),
        tensors.to_le_bytes().to_vec(),
        pairs.to_le_bytes().to_vec(),
        text("general.architecture"),
        string.to_le_bytes().to_vec(),
        text(name),
    ]
    .concat()
}

fn ask(file: &std::path::Path) -> ModelError {
    let models = Models::new(|| SystemTime::UNIX_EPOCH);
    let model = models.open(&format!("local:{}", file.display()), &Connection::default()).unwrap();
    let mut conversation = Conversation::new(model.dialect(), String::new(), Vec::new());
    conversation.push(Message::user("Hello".to_owned()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (options, cancel) = (RequestOptions::default(), CancellationToken::new());
    runtime.block_on(model.send(&conversation, &options, &mut |_| {}, &cancel)).unwrap_err()
}

#[test]
fn an_architecture_that_llama_cpp_does_not_know_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("odd.gguf");
    std::fs::write(&file, of_architecture("abacus")).unwrap();
    let error = ask(&file);
    assert_eq!(error.kind, ErrorKind::Invalid);
    let shown = file.display();
    assert!(error.message.starts_with(&format!("cannot load the model {shown}: ")), "{error}");
    assert!(error.message.contains("unknown model architecture: 'abacus'"), "{error}");
}

#[test]
fn a_file_that_breaks_off_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("half.gguf");
    std::fs::write(&file, &of_architecture("llama")[..30]).unwrap();
    let error = ask(&file);
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.starts_with(&format!("cannot load the model {}: ", file.display())), "{error}");
}
