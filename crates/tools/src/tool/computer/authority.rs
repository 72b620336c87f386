//! The cookie of a display that admits only its owner's programs, as `xvfb-run` starts one: read from an Xauthority
//! file. `screen.rs` sends it when it connects.

use std::path::Path;

use super::DisplayNumber;
use crate::workspace::bounded_read;

/// Larger files are not read.
const MAX_BYTES: u64 = 1 << 20;

/// The only method that local servers use.
const COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";

/// Name and data of an authorization; both are empty for a display that admits everybody.
pub(super) type Authorization = (Vec<u8>, Vec<u8>);

/// The authorization for a display in this file; empty if there is none.
pub(super) fn read(file: Option<&Path>, display: DisplayNumber) -> Authorization {
    let content = file.and_then(|file| bounded_read::read(file, MAX_BYTES).ok()).unwrap_or_default();
    find(&content, display).unwrap_or_default()
}

/// Finds the cookie of a display: that of its number, or of any display. Damaged entries end the search.
fn find(mut rest: &[u8], display: DisplayNumber) -> Option<Authorization> {
    let number = display.number().to_string();
    let mut of_any = None;
    while !rest.is_empty() {
        let (_family, after) = rest.split_at_checked(2)?;
        rest = after;
        let [_address, of, name, data] =
            [field(&mut rest)?, field(&mut rest)?, field(&mut rest)?, field(&mut rest)?];
        let found = || (name.to_vec(), data.to_vec());
        match (name == COOKIE, of == number.as_bytes(), of.is_empty()) {
            (true, true, _) => return Some(found()),
            (true, false, true) => of_any = of_any.or_else(|| Some(found())),
            _ => {}
        }
    }
    of_any
}

/// Takes one field: its length in two bytes, the higher one first, and its content.
fn field<'f>(rest: &mut &'f [u8]) -> Option<&'f [u8]> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let (content, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
    *rest = after;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: &str, name: &[u8], data: &[u8]) -> Vec<u8> {
        let field = |content: &[u8]| [&(content.len() as u16).to_be_bytes()[..], content].concat();
        [vec![1, 0], field(b"host"), field(number.as_bytes()), field(name), field(data)].concat()
    }

    #[test]
    fn the_cookie_of_the_display_is_found_or_that_of_any() {
        let file = [
            entry("", COOKIE, b"any"),
            entry("7", b"XDM-AUTHORIZATION-1", b"other"),
            entry("7", COOKIE, b"seven"),
        ];
        let file = file.concat();
        let found = |number: u32| find(&file, number.into()).map(|(_, data)| data);
        assert_eq!((found(7), found(8)), (Some(b"seven".to_vec()), Some(b"any".to_vec())));
        assert_eq!(find(&entry("7", COOKIE, b"seven"), 8.into()), None);
        for end in 1..file.len() {
            let _ = find(&file[..end], 7.into());
        }
    }
}
