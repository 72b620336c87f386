//! Image formats that models accept: complete PNG, JPEG, GIF and WebP files, with their size in pixels.
//! `read` describes everything else as binary content; a damaged image sent to a server would make the entire
//! conversation fail.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Maximum width and height; servers reject larger images.
const MAX_PIXELS: u32 = 8_000;

/// An image for the model, carried by a tool output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolImage {
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// The file's bytes in base64.
    pub data: Arc<str>,
}

impl ToolImage {
    /// The image in a file of at most `most` bytes; an error says why it cannot be sent.
    pub fn of_file(content: &[u8], most: usize) -> Result<Self, String> {
        let info = ImageInfo::parse(content).ok_or("not a complete PNG, JPEG, GIF or WebP file")?;
        match info.encode(content, most) {
            ImageDisplay::Yes(image) => Ok(image),
            ImageDisplay::No(reason) => Err(reason),
        }
    }

    /// A PNG file.
    pub(crate) fn png(file: &[u8]) -> Self {
        Self { media_type: "image/png".to_owned(), data: STANDARD.encode(file).into() }
    }
}

/// Format and size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageInfo {
    media_type: &'static str,
    name: &'static str,
    width: u32,
    height: u32,
}

/// Whether the model is shown an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImageDisplay {
    /// The image is sent.
    Yes(ToolImage),
    /// The image is not sent, with the reason.
    No(String),
}

impl ImageInfo {
    /// Detects the format; `None` if the content is not an image or is truncated.
    pub(crate) fn parse(content: &[u8]) -> Option<ImageInfo> {
        png(content).or_else(|| jpeg(content)).or_else(|| gif(content)).or_else(|| webp(content))
    }

    /// Description with format, dimensions and size.
    pub(crate) fn describe(&self, bytes: usize) -> String {
        format!("{} image, {} × {} pixels, {bytes} bytes", self.name, self.width, self.height)
    }

    /// Encodes the image if it has at most `most` bytes; 0 means that the model does not accept images.
    pub(crate) fn encode(&self, content: &[u8], most: usize) -> ImageDisplay {
        if most == 0 {
            return ImageDisplay::No("this model takes no images".to_owned());
        }
        if content.len() > most {
            return ImageDisplay::No(format!(
                "there is room for {most} bytes of images in one answer; make a smaller copy, or read it alone"
            ));
        }
        if self.width.max(self.height) > MAX_PIXELS {
            return ImageDisplay::No(format!(
                "no side may be longer than {MAX_PIXELS} pixels; make a smaller copy"
            ));
        }
        ImageDisplay::Yes(ToolImage {
            media_type: self.media_type.to_owned(),
            data: STANDARD.encode(content).into(),
        })
    }
}

/// Decodes base64; `None` if it is invalid.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

fn png(content: &[u8]) -> Option<ImageInfo> {
    let rest = content.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let header = rest.get(4..16)?.strip_prefix(b"IHDR")?;
    let (width, height) = (big(header.get(..4)?)?, big(header.get(4..8)?)?);
    let whole = content.ends_with(b"IEND\xae\x42\x60\x82");
    picture("image/png", "PNG", width, height).filter(|_| whole)
}

/// Finds the frame header, which holds the dimensions and follows any number of other segments.
fn jpeg(content: &[u8]) -> Option<ImageInfo> {
    let mut rest = content.strip_prefix(b"\xff\xd8")?;
    // Some cameras append zeros after the end marker.
    let end = content.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    if !content[..end].ends_with(b"\xff\xd9") {
        return None;
    }
    loop {
        let (&marker, after) = rest.strip_prefix(b"\xff")?.split_first()?;
        // A marker may be preceded by any number of fill bytes.
        if marker == 0xff {
            rest = &rest[1..];
            continue;
        }
        let length = usize::from(u16::from_be_bytes(after.get(..2)?.try_into().ok()?));
        let segment = after.get(2..length)?;
        match marker {
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let side = |at: usize| {
                    Some(u32::from(u16::from_be_bytes(segment.get(at..at + 2)?.try_into().ok()?)))
                };
                return picture("image/jpeg", "JPEG", side(3)?, side(1)?);
            }
            // The scan starts without a frame header before it.
            0xda => return None,
            _ => rest = after.get(length..)?,
        }
    }
}

fn gif(content: &[u8]) -> Option<ImageInfo> {
    let rest = content.strip_prefix(b"GIF87a").or_else(|| content.strip_prefix(b"GIF89a"))?;
    let side = |at: usize| Some(u32::from(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?)));
    let whole = content.ends_with(b";");
    picture("image/gif", "GIF", side(0)?, side(2)?).filter(|_| whole)
}

fn webp(content: &[u8]) -> Option<ImageInfo> {
    let rest = content.strip_prefix(b"RIFF")?;
    let length = usize::try_from(u32::from_le_bytes(rest.get(..4)?.try_into().ok()?)).ok()?;
    let chunk = rest.get(4..)?.strip_prefix(b"WEBP")?;
    let body = chunk.get(8..)?;
    let short = |at: usize| Some(u32::from(u16::from_le_bytes(body.get(at..at + 2)?.try_into().ok()?)));
    let three = |at: usize| match body.get(at..at + 3)? {
        [low, middle, high] => Some(u32::from_le_bytes([*low, *middle, *high, 0])),
        _ => None,
    };
    let (width, height) = match chunk.get(..4)? {
        b"VP8X" => (three(4)? + 1, three(7)? + 1),
        b"VP8L" => {
            let bits = u32::from_le_bytes(body.get(1..5)?.try_into().ok()?);
            ((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
        }
        b"VP8 " => (short(6)? & 0x3fff, short(8)? & 0x3fff),
        _ => return None,
    };
    picture("image/webp", "WebP", width, height).filter(|_| content.len() >= length + 8)
}

fn picture(media_type: &'static str, name: &'static str, width: u32, height: u32) -> Option<ImageInfo> {
    (width > 0 && height > 0).then_some(ImageInfo { media_type, name, width, height })
}

fn big(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests;
