//! The content of a prompt: text for the model, and files and resources as its background.

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, Error, ImageContent};
use fusee::model::Image;

use crate::connection::invalid;

/// Bytes of embedded resources in one prompt.
const MAX_BACKGROUND: usize = 1 << 20;

/// Images in one prompt.
const MAX_IMAGES: usize = 20;
/// Characters of an image, in base64: what servers accept.
const MAX_IMAGE: usize = 5_000_000;
/// Media types of images that models take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A prompt, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptText {
    pub(crate) text: String,
    pub(crate) background: Option<String>,
    pub(crate) images: Vec<Image>,
}

/// Takes a prompt apart.
pub(crate) fn read(blocks: &[ContentBlock]) -> Result<PromptText, Error> {
    let (mut text, mut background, mut images) = (String::new(), String::new(), Vec::new());
    for block in blocks {
        match block {
            ContentBlock::Text(part) => text.push_str(&part.text),
            ContentBlock::Image(content) => images.push(image(content)?),
            ContentBlock::ResourceLink(link) => text.push_str(&path_of(&link.uri)),
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    let path = path_of(&file.uri);
                    text.push_str(&path);
                    background.push_str(&format!("{path}:\n{}\n\n", file.text));
                }
                EmbeddedResourceResource::BlobResourceContents(file) => {
                    let media_type = file.mime_type.clone().unwrap_or_default();
                    if !IMAGE_TYPES.contains(&media_type.as_str()) {
                        return Err(invalid("embedded resources must be text or images"));
                    }
                    text.push_str(&path_of(&file.uri));
                    images.push(image(&ImageContent::new(file.blob.clone(), media_type))?);
                }
                _ => return Err(invalid("embedded resources must be text or images")),
            },
            _ => return Err(invalid("a prompt can contain text, images, resource links and text resources")),
        }
    }
    if background.len() > MAX_BACKGROUND {
        return Err(invalid("the embedded resources have more than 1 MiB; link to the files instead"));
    }
    if text.trim().is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    let background = Some(background.trim_end().to_owned()).filter(|background| !background.is_empty());
    if images.len() > MAX_IMAGES {
        return Err(invalid("the prompt has more than 20 images"));
    }
    Ok(PromptText { text, background, images })
}

fn image(content: &ImageContent) -> Result<Image, Error> {
    if !IMAGE_TYPES.contains(&content.mime_type.as_str()) {
        return Err(invalid("an image must be a PNG, a JPEG, a GIF or a WebP"));
    }
    if content.data.len() > MAX_IMAGE {
        return Err(invalid("an image has more than 3.75 MB"));
    }
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if content.data.is_empty() || !content.data.bytes().all(is_base64) {
        return Err(invalid("the data of an image is not base64"));
    }
    Ok(Image { media_type: content.mime_type.clone(), data: content.data.as_str().into() })
}

/// The path of a file URI; other URIs as they are.
fn path_of(uri: &str) -> String {
    uri.strip_prefix("file://").unwrap_or(uri).to_owned()
}
