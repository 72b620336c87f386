//! Which content is detected as an image, and when a model is shown it.

use super::*;

/// A PNG with one red pixel.
pub(crate) const PNG: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82";

const GIF: &[u8] = b"GIF89a\x02\0\x03\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// The frame header follows a skipped segment and the fill bytes that are allowed before a marker.
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x06JFIF\xff\xff\xc2\0\x0b\x08\0\x05\0\x07\x01\x11\0\0\xff\xda\0\x02pixels\xff\xd9\0\0";

fn webp(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
    let chunk = u32::try_from(body.len()).unwrap().to_le_bytes();
    [b"RIFF".as_slice(), &length, b"WEBP", kind, &chunk, body].concat()
}

fn size(content: &[u8]) -> Option<(&'static str, u32, u32)> {
    ImageInfo::parse(content).map(|picture| (picture.media_type, picture.width, picture.height))
}

#[test]
fn each_format_tells_its_size() {
    assert_eq!(size(PNG), Some(("image/png", 1, 1)));
    assert_eq!(size(GIF), Some(("image/gif", 2, 3)));
    assert_eq!(size(JPEG), Some(("image/jpeg", 7, 5)));
    let lossy = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x10\0\x20\0");
    assert_eq!(size(&lossy), Some(("image/webp", 16, 32)));
    let lossless = webp(b"VP8L", &[0x2f, 0x0f, 0xc0, 0x07, 0x00]);
    assert_eq!(size(&lossless), Some(("image/webp", 16, 32)));
    let extended = webp(b"VP8X", &[0, 0, 0, 0, 15, 0, 0, 31, 0, 0]);
    assert_eq!(size(&extended), Some(("image/webp", 16, 32)));
}

#[test]
fn a_picture_that_is_cut_anywhere_is_none() {
    for whole in [PNG, GIF, &JPEG[..JPEG.len() - 2], &webp(b"VP8X", &[0, 0, 0, 0, 15, 0, 0, 31, 0, 0])] {
        for end in 0..whole.len() {
            assert_eq!(size(&whole[..end]), None, "{:?} until {end}", &whole[..4]);
        }
    }
}

#[test]
fn what_is_no_picture_is_none() {
    for content in [b"".as_slice(), b"text", b"GIF8", b"RIFF\x04\0\0\0WAVE", b"\xff\xd8\xff\xd9", b"\0\0\0;"]
    {
        assert_eq!(size(content), None, "{content:?}");
    }
}

#[test]
fn what_cannot_be_shown_says_why() {
    let picture = ImageInfo::parse(PNG).unwrap();
    let why = |picture: ImageInfo, most| match picture.encode(PNG, most) {
        ImageDisplay::Yes(image) => format!("{}: {}", image.media_type, image.data.len()),
        ImageDisplay::No(why) => why,
    };
    assert_eq!(why(picture, PNG.len()), "image/png: 92");
    assert_eq!(why(picture, 0), "this model takes no images");
    assert_eq!(
        why(picture, 10),
        "there is room for 10 bytes of images in one answer; make a smaller copy, or read it alone"
    );
    let wide = ImageInfo { width: 8_001, ..picture };
    assert_eq!(why(wide, 1_000), "no side may be longer than 8000 pixels; make a smaller copy");
}
