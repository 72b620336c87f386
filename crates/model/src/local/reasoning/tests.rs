//! Reasoning and answer, for any split into fragments.

use super::*;

fn split(opened: bool, pieces: &[&str]) -> (String, String) {
    let (mut thought, mut said) = (String::new(), String::new());
    let mut sink = |part: ReasoningPart<'_>| match part {
        ReasoningPart::Thought(text) => thought.push_str(text),
        ReasoningPart::Said(text) => said.push_str(text),
    };
    let mut thinking = ReasoningSplitter::new(opened);
    for piece in pieces {
        thinking.take(piece, &mut sink);
    }
    thinking.end(&mut sink);
    (thought, said)
}

#[test]
fn any_split_of_a_reply_gives_the_same_parts() {
    for (opened, reply, thought, said) in [
        (false, "<think>\na < b </thin\n</think>\n\nYes <think>", "\na < b </thin\n", "Yes <think>"),
        (true, "hm</think>Yes.", "hm", "Yes."),
        (true, "still at it </th", "still at it </th", ""),
        (false, "  <thing> is no mark", "", "  <thing> is no mark"),
        (false, "<thi", "", "<thi"),
        (false, "", "", ""),
    ] {
        let whole = (thought.to_owned(), said.to_owned());
        assert_eq!(split(opened, &[reply]), whole, "{reply}");
        let letters: Vec<String> = reply.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        assert_eq!(split(opened, &letters), whole, "{reply}, letter by letter");
        for at in (0..reply.len()).filter(|at| reply.is_char_boundary(*at)) {
            assert_eq!(split(opened, &[&reply[..at], &reply[at..]]), whole, "{reply} at {at}");
        }
    }
}
