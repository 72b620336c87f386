//! Which answers ask for something.

use super::*;

#[test]
fn an_answer_that_asks_for_what_is_there_is_recognised() {
    for asking in [
        "Please provide the failing test details.",
        "I’m sorry, but I don’t have access to your files.",
        "Sure! Could you share the code of leap.py?",
        "To fix this I need more information about the error.",
    ] {
        assert!(asks_for_input(asking), "{asking}");
    }
    for answer in
        ["leap.py computes leap years.", "It reads the file that the user provides.", "Done: the tests pass."]
    {
        assert!(!asks_for_input(answer), "{answer}");
    }
}
