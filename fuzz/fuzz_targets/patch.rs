//! Fuzzes patches: applying any patch to any content never panics and gives the same plan twice; and a diff
//! between two texts turns the first into the second.
#![no_main]

use fusee_tools::tool::apply_patch::{FileSource, plan};
use libfuzzer_sys::fuzz_target;

struct OneFile<'c>(&'c [u8]);

impl FileSource for OneFile<'_> {
    fn name(&self, given: &str) -> Result<String, String> {
        if given.contains("..") { Err("outside".to_owned()) } else { Ok(given.to_owned()) }
    }

    fn content(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        Ok((name == "f").then(|| self.0.to_vec()))
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((mode, rest)) = input.split_first() else { return };
    let cut = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (first, second) = (&rest[..cut], rest.get(cut + 1..).unwrap_or_default());
    let Ok(second) = std::str::from_utf8(second) else { return };
    if mode % 2 == 0 {
        let patches = [
            second.to_owned(),
            format!("*** Begin Patch\n*** Update File: f\n{second}\n*** End Patch\n"),
            format!("--- a/f\n+++ b/f\n{second}"),
        ];
        for patch in &patches {
            let once = plan(patch, &OneFile(first));
            assert_eq!(once, plan(patch, &OneFile(first)));
            if let Ok(files) = once {
                assert!(files.iter().all(|file| file.before != file.after));
            }
        }
        return;
    }
    let Ok(old) = std::str::from_utf8(first) else { return };
    // The diff treats a carriage return as a line ending; a patch may treat it as part of the line.
    if old == second
        || old.is_empty()
        || second.is_empty()
        || input.contains(&b'\r')
        || old.starts_with('\u{feff}')
    {
        return;
    }
    let diff = similar::TextDiff::from_lines(old, second);
    let diff = diff.unified_diff().context_radius(usize::from(mode / 2 % 4)).header("a/f", "b/f").to_string();
    let files = plan(&diff, &OneFile(first)).unwrap_or_else(|problems| panic!("{problems:?}\n{diff}"));
    assert_eq!(files[0].after.as_deref(), Some(second.as_bytes()), "{diff}");
});
