//! From bytes to text: UTF-8 with or without a mark, UTF-16 with one, and Latin-1 where the file says so.

use std::borrow::Cow;

/// How far into a file its declaration is looked for.
const DECLARATION: usize = 200;

/// The text, or why the bytes are none.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => match declared(bytes).as_deref() {
            None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => utf8(bytes),
            Some("iso-8859-1" | "latin1") => Ok(bytes.iter().map(|byte| char::from(*byte)).collect()),
            Some(other) => Err(format!("the encoding `{other}` is not read here; save the file as UTF-8")),
        },
    }
}

/// Where bytes that [`decode`] refuses stop being text, as text up to there and the place after it. `None` where it is
/// not one place that is wrong.
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
            Err(format!("byte {} is not UTF-8; save the file as UTF-8", at + 1))
        }
    }
}

fn utf16(bytes: &[u8], read: fn([u8; 2]) -> u16) -> Result<Cow<'_, str>, String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the file ends within a character of UTF-16; save it as UTF-8".to_owned());
    }
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| read(*pair))).collect();
    text.map(Cow::Owned).map_err(|error| format!("it is not UTF-16 as its mark says: {error}"))
}

/// The encoding that the declaration names, in lower case.
fn declared(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..DECLARATION).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head);
    let declaration = head.strip_prefix("<?xml")?.split("?>").next()?;
    let value = declaration.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next().map(str::to_lowercase)
}
