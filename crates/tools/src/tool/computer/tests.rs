//! Arguments are checked before anything is done. The actions themselves are tested on a real display, in the
//! suite of the command line.

use serde_json::json;
use xkeysym::key;

use super::*;

fn action(arguments: Value) -> Result<Action, String> {
    Action::from_arguments(serde_json::from_value(arguments).unwrap())
}

#[test]
fn actions_say_what_they_need() {
    for (arguments, problem) in [
        (json!({"action": "mouse_move"}), "`mouse_move` needs `coordinate`"),
        (json!({"action": "type"}), "`type` needs `text`"),
        (json!({"action": "key", "text": "ctrl+nokey"}), "there is no key `nokey`"),
        (json!({"action": "scroll", "coordinate": [1, 1]}), "`scroll` needs `scroll_direction`"),
        (json!({"action": "wait", "duration": 3600}), "`duration` must be from 0 to 60 seconds"),
        (json!({"action": "zoom"}), "`zoom` needs `region`"),
        (json!({"action": "dance"}), "there is no action `dance`"),
    ] {
        let wrong = action(arguments.clone()).unwrap_err();
        assert!(wrong.starts_with(problem), "{arguments}: {wrong}");
    }
}

#[test]
fn keys_are_named_as_models_name_them() {
    let keys = |text: &str| keys::chord(text).unwrap();
    assert_eq!(keys("Return"), [key::Return]);
    assert_eq!(keys("ctrl+shift+T"), [key::Control_L, key::Shift_L, key::T]);
    assert_eq!(keys("alt+F4"), [key::Alt_L, key::F4]);
    assert_eq!(keys("ctrl++"), [key::Control_L, key::plus]);
    assert_eq!(keys("+"), [key::plus]);
    assert_eq!(keys("a"), [key::a]);
    assert_eq!(keys("ä"), [key::adiaeresis]);
}

#[test]
fn clicks_and_scrolls_may_hold_keys() {
    let click = json!({"action": "left_click", "coordinate": [3, 4], "text": "shift"});
    let expected =
        Action::Click { button: Button::Left, at: Some([3, 4]), times: 1, held: vec![key::Shift_L] };
    assert_eq!(action(click), Ok(expected));
    let scroll = json!({"action": "scroll", "scroll_direction": "down", "scroll_amount": 3, "key": "ctrl"});
    let expected =
        Action::Click { button: Button::WheelDown, at: None, times: 3, held: vec![key::Control_L] };
    assert_eq!(action(scroll), Ok(expected));
}

#[test]
fn a_display_is_a_local_one() {
    assert_eq!(":99".parse(), Ok(DisplayNumber(99)));
    assert_eq!(":1.0".parse(), Ok(DisplayNumber(1)));
    for wrong in ["99", "host:1", ":x", ":1.1", ""] {
        assert!(wrong.parse::<DisplayNumber>().is_err(), "{wrong}");
    }
    let missing = DisplayNumber(4_000_000).size(None).unwrap_err();
    assert!(missing.starts_with("cannot use the display :4000000: "), "{missing}");
}
