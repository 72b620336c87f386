//! Decoding bytes to text: UTF-8 with or without a BOM, UTF-16 with a BOM, and Latin-1 if the XML declaration
//! says so.

use std::borrow::Cow;

/// Number of bytes at the start of a file that are searched for the XML declaration.
const DECLARATION: usize = 200;

/// Decodes `bytes`, or explains why they cannot be decoded.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => match declared(bytes).as_deref() {
            None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => utf8(bytes),
            Some("iso-8859-1" | "latin1") => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Some(other) => Err(format!("unsupported encoding `{other}`; save the file as UTF-8")),
        },
    }
}

/// For bytes that [`decode`] rejects: the text with invalid sequences replaced, and the byte offset of the
/// first invalid one. `None` if the error has no single position, as in UTF-16.
pub fn stops_being_text(bytes: &[u8]) -> Option<(Cow<'_, str>, usize)> {
    let body = match bytes {
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => return None,
        [0xEF, 0xBB, 0xBF, rest @ ..] => rest,
        _ => bytes,
    };
    let at = std::str::from_utf8(body).err()?.valid_up_to();
    Some((String::from_utf8_lossy(body), at))
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(error) => {
            let at = error.valid_up_to();
            Err(format!("invalid UTF-8 at byte {}; save the file as UTF-8", at + 1))
        }
    }
}

fn utf16(bytes: &[u8], read: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the file ends in the middle of a UTF-16 character; save it as UTF-8".to_owned());
    }
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| read(*pair))).collect();
    text.map(Cow::Owned).map_err(|error| format!("invalid UTF-16 after a UTF-16 byte order mark: {error}"))
}

/// The encoding named in the XML declaration, in lower case.
fn declared(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..DECLARATION).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head);
    let declaration = head.strip_prefix("<?xml")?.split("?>").next()?;
    let value = declaration.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next().map(str::to_lowercase)
}
