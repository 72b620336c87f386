//! Names of keys as `xdotool` and the models that learned from it write them: `Return`, `ctrl+s`, `alt+F4`.

use xkeysym::{Keysym, key};

/// The keysyms of keys pressed together, in order. Separated by `+`.
pub(super) fn chord(text: &str) -> Result<Vec<u32>, String> {
    // The plus key itself, alone or last.
    let (names, plus) = match text.strip_suffix('+') {
        Some(rest) => (rest.strip_suffix('+').unwrap_or(rest), Some(key::plus)),
        None => (text, None),
    };
    let names = names.split('+').filter(|name| !name.is_empty());
    names.map(keysym).chain(plus.map(Ok)).collect()
}

/// The keysym of a character that is typed.
pub(super) fn of_char(character: char) -> u32 {
    match character {
        '\n' | '\r' => key::Return,
        '\t' => key::Tab,
        other => Keysym::from_char(other).raw(),
    }
}

fn keysym(name: &str) -> Result<u32, String> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Ok(of_char(only));
    }
    let lower = name.to_ascii_lowercase();
    if let Some(number) = lower.strip_prefix('f').and_then(|number| number.parse::<u32>().ok())
        && (1..=24).contains(&number)
    {
        return Ok(key::F1 + number - 1);
    }
    Ok(match lower.as_str() {
        "return" | "enter" => key::Return,
        "kp_enter" => key::KP_Enter,
        "tab" => key::Tab,
        "iso_left_tab" => key::ISO_Left_Tab,
        "escape" | "esc" => key::Escape,
        "space" => key::space,
        "backspace" => key::BackSpace,
        "delete" | "del" => key::Delete,
        "insert" => key::Insert,
        "home" => key::Home,
        "end" => key::End,
        "page_up" | "pageup" | "prior" => key::Page_Up,
        "page_down" | "pagedown" | "next" => key::Page_Down,
        "up" | "arrowup" => key::Up,
        "down" | "arrowdown" => key::Down,
        "left" | "arrowleft" => key::Left,
        "right" | "arrowright" => key::Right,
        "ctrl" | "control" | "control_l" => key::Control_L,
        "control_r" => key::Control_R,
        "shift" | "shift_l" => key::Shift_L,
        "shift_r" => key::Shift_R,
        "alt" | "alt_l" | "option" => key::Alt_L,
        "alt_r" | "altgr" => key::Alt_R,
        "super" | "super_l" | "meta" | "cmd" | "command" | "win" => key::Super_L,
        "caps_lock" | "capslock" => key::Caps_Lock,
        "menu" => key::Menu,
        "print" => key::Print,
        "minus" => key::minus,
        "plus" => key::plus,
        "equal" => key::equal,
        "comma" => key::comma,
        "period" => key::period,
        "slash" => key::slash,
        "backslash" => key::backslash,
        "semicolon" => key::semicolon,
        "apostrophe" => key::apostrophe,
        "grave" => key::grave,
        "bracketleft" => key::bracketleft,
        "bracketright" => key::bracketright,
        _ => return Err(format!("there is no key `{name}`; write `Return`, `ctrl+s` or `Page_Down`")),
    })
}
