//! The content of a prompt: text for the model, and files and resources as its background.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error};

use crate::connection::invalid;

/// Bytes of embedded resources in one prompt.
const MAX_BACKGROUND: usize = 1 << 20;

/// A prompt, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptText {
    pub(crate) text: String,
    pub(crate) background: Option<String>,
}

/// Takes a prompt apart.
pub(crate) fn read(blocks: &[ContentBlock]) -> Result<PromptText, Error> {
    let (mut text, mut background) = (String::new(), String::new());
    for block in blocks {
        match block {
            ContentBlock::Text(part) => text.push_str(&part.text),
            ContentBlock::ResourceLink(link) => text.push_str(&path_of(&link.uri)),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    let path = path_of(&file.uri);
                    text.push_str(&path);
                    background.push_str(&format!("{path}:\n{}\n\n", file.text));
                }
                _ => return Err(invalid("embedded resources must be text")),
            },
            _ => return Err(invalid("a prompt can contain text, resource links and text resources")),
        }
    }
    if background.len() > MAX_BACKGROUND {
        return Err(invalid("the embedded resources have more than 1 MiB; link to the files instead"));
    }
    if text.trim().is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    let background = Some(background.trim_end().to_owned()).filter(|background| !background.is_empty());
    Ok(PromptText { text, background })
}

/// The path of a file URI; other URIs as they are.
fn path_of(uri: &str) -> String {
    uri.strip_prefix("file://").unwrap_or(uri).to_owned()
}
