//! Fuzzes the check of git settings that a command created: what it accepts runs no program and includes no file,
//! as git itself reads it.
#![no_main]

use fusee_tools::sandbox::has_only_safe_git_settings;
use libfuzzer_sys::fuzz_target;

/// Names that would make git run or read something.
const DANGEROUS: [&str; 8] =
    ["fsmonitor", "hookspath", "sshcommand", "pager", "include", "worktreeconfig", "textconv", "helper"];

fuzz_target!(|text: &[u8]| {
    if has_only_safe_git_settings(text) {
        // Outside of values and comments, only known names occur.
        for line in String::from_utf8_lossy(text).to_lowercase().lines() {
            let line = line.trim();
            let name = line.split(['=', '#', ';']).next().unwrap_or_default();
            let is_header = line.starts_with('[');
            assert!(is_header || !DANGEROUS.iter().any(|word| name.trim() == *word), "{line:?}");
        }
    }
});
