//! Detects replies that repeat themselves. A small model can fall into a loop and write the same lines until
//! its output limit, which takes minutes on a local server.

/// Bytes at the end of a reply that must be periodic: about 300 tokens.
const WINDOW: usize = 1024;

/// Longest block whose repetition counts; it then stands at least three times in the window.
const MAX_PERIOD: usize = WINDOW / 3;

/// Bytes between two checks.
const INTERVAL: usize = 128;

/// Watches the text of a reply as it is streamed.
#[derive(Debug, Default)]
pub struct RepetitionDetector {
    tail: Vec<u8>,
    unchecked: usize,
    seen: usize,
}

/// A block that a reply repeats at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Length of the reply before the second copy of the block, in bytes.
    pub keep: usize,
    /// Length of the block in bytes.
    pub period: usize,
}

impl RepetitionDetector {
    /// Adds text. Returns the repetition once the end of the reply consists of copies of one block.
    pub fn push(&mut self, text: &str) -> Option<Repetition> {
        self.tail.extend_from_slice(text.as_bytes());
        self.seen += text.len();
        self.unchecked += text.len();
        if self.unchecked < INTERVAL || self.tail.len() < WINDOW {
            return None;
        }
        self.unchecked = 0;
        let excess = self.tail.len() - WINDOW;
        self.tail.drain(..excess);
        let period = period(&self.tail).filter(|period| *period <= MAX_PERIOD)?;
        Some(Repetition { keep: self.seen - WINDOW + period, period })
    }
}

/// The smallest period of a text: its length minus its longest border.
fn period(text: &[u8]) -> Option<usize> {
    let mut borders = vec![0_usize; text.len()];
    let mut length = 0;
    for at in 1..text.len() {
        while length > 0 && text[at] != text[length] {
            length = borders[length - 1];
        }
        if text[at] == text[length] {
            length += 1;
        }
        borders[at] = length;
    }
    let border = *borders.last()?;
    (border > 0).then(|| text.len() - border)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn detect(text: &str, chunk: usize) -> Option<Repetition> {
        let mut detector = RepetitionDetector::default();
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(chunk.max(1)).find_map(|chunk| detector.push(&chunk.iter().collect::<String>()))
    }

    #[test]
    fn a_block_written_again_and_again_is_found_soon() {
        let start = "def roman(n):\n";
        let block = "    if n == 1:\n        return 'I'\n";
        let text = format!("{start}{}", block.repeat(200));
        let found = detect(&text, 7).unwrap();
        assert_eq!(found.period, block.len());
        assert!(found.keep < start.len() + 40 * block.len());
        let mut detector = RepetitionDetector::default();
        let read = text
            .as_bytes()
            .chunks(4)
            .position(|part| detector.push(std::str::from_utf8(part).unwrap()).is_some());
        assert!(read.unwrap() * 4 < start.len() + WINDOW + INTERVAL + 8);
    }

    #[test]
    fn ordinary_code_with_similar_lines_is_left_alone() {
        let cases: String = (0..200).map(|n| format!("    assert roman({n}) == numerals[{n}]\n")).collect();
        assert_eq!(detect(&cases, 5), None);
        let table = format!("x = [\n{}]\n", "    0, 0, 0, 0, 0, 0, 0, 0,\n".repeat(30));
        assert_eq!(detect(&table, 5), None);
    }

    proptest! {
        #[test]
        fn the_kept_part_ends_inside_the_reply(text in "[ab]{0,3000}", chunk in 1_usize..40) {
            if let Some(found) = detect(&text, chunk) {
                prop_assert!(found.keep <= text.len() && found.period > 0);
            }
        }
    }
}
