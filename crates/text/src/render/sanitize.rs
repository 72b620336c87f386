//! Sanitizing untrusted text for a terminal: no escape sequences, no bidi reordering, no invisible
//! characters.

use std::borrow::Cow;

/// Replaces every control character by its Unicode control picture (`␛` for escape) and every invisible or
/// reordering format character by `�`. Tabs are kept, and so are joiners inside emoji and words: those that
/// follow a character beyond ASCII. Borrows if nothing had to be replaced.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| picture(c) == c) {
        return Cow::Borrowed(text);
    }
    let mut before = None;
    let shown = |c| {
        let joins =
            is_joiner(c) && before.is_none_or(|other: char| !other.is_ascii() && picture(other) == other);
        before = Some(c);
        if joins { c } else { picture(c) }
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Whether `c` is a zero-width joiner or non-joiner. At the start of a text it may continue an emoji of the
/// text before, as when a model's reply is streamed.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// The character displayed for `c`; `c` itself if it is safe.
pub(super) fn picture(c: char) -> char {
    match c {
        '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        '\u{80}'..='\u{9f}' => '\u{fffd}',
        // Zero-width characters, bidi overrides and isolates, line separators, the byte order mark, tag
        // characters.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => '\u{fffd}',
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => {
            '\u{fffd}'
        }
        _ => c,
    }
}
