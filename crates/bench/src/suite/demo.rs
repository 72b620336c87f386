//! The bundled suite: ten small Python tasks with tests and reference solutions, in exercism's layout. Their files are in
//! the package's folder `demo`; a test checks that the list is complete.

use std::path::{Path, PathBuf};

const FILES: &[(&str, &str)] = &[
    ("board-state/.docs/instructions.md", include_str!("../../demo/board-state/.docs/instructions.md")),
    ("board-state/.meta/config.json", include_str!("../../demo/board-state/.meta/config.json")),
    ("board-state/.meta/example.py", include_str!("../../demo/board-state/.meta/example.py")),
    ("board-state/board_state.py", include_str!("../../demo/board-state/board_state.py")),
    ("board-state/board_state_test.py", include_str!("../../demo/board-state/board_state_test.py")),
    ("build-order/.docs/instructions.md", include_str!("../../demo/build-order/.docs/instructions.md")),
    ("build-order/.meta/config.json", include_str!("../../demo/build-order/.meta/config.json")),
    ("build-order/.meta/example.py", include_str!("../../demo/build-order/.meta/example.py")),
    ("build-order/build_order.py", include_str!("../../demo/build-order/build_order.py")),
    ("build-order/build_order_test.py", include_str!("../../demo/build-order/build_order_test.py")),
    ("bus-times/.docs/instructions.md", include_str!("../../demo/bus-times/.docs/instructions.md")),
    ("bus-times/.meta/config.json", include_str!("../../demo/bus-times/.meta/config.json")),
    ("bus-times/.meta/example.py", include_str!("../../demo/bus-times/.meta/example.py")),
    ("bus-times/bus_times.py", include_str!("../../demo/bus-times/bus_times.py")),
    ("bus-times/bus_times_test.py", include_str!("../../demo/bus-times/bus_times_test.py")),
    ("log-digest/.docs/instructions.md", include_str!("../../demo/log-digest/.docs/instructions.md")),
    ("log-digest/.meta/config.json", include_str!("../../demo/log-digest/.meta/config.json")),
    ("log-digest/.meta/example.py", include_str!("../../demo/log-digest/.meta/example.py")),
    ("log-digest/log_digest.py", include_str!("../../demo/log-digest/log_digest.py")),
    ("log-digest/log_digest_test.py", include_str!("../../demo/log-digest/log_digest_test.py")),
    ("money-words/.docs/instructions.md", include_str!("../../demo/money-words/.docs/instructions.md")),
    ("money-words/.meta/config.json", include_str!("../../demo/money-words/.meta/config.json")),
    ("money-words/.meta/example.py", include_str!("../../demo/money-words/.meta/example.py")),
    ("money-words/money_words.py", include_str!("../../demo/money-words/money_words.py")),
    ("money-words/money_words_test.py", include_str!("../../demo/money-words/money_words_test.py")),
    ("page-ranges/.docs/instructions.md", include_str!("../../demo/page-ranges/.docs/instructions.md")),
    ("page-ranges/.meta/config.json", include_str!("../../demo/page-ranges/.meta/config.json")),
    ("page-ranges/.meta/example.py", include_str!("../../demo/page-ranges/.meta/example.py")),
    ("page-ranges/page_ranges.py", include_str!("../../demo/page-ranges/page_ranges.py")),
    ("page-ranges/page_ranges_test.py", include_str!("../../demo/page-ranges/page_ranges_test.py")),
    ("quoted-pairs/.docs/instructions.md", include_str!("../../demo/quoted-pairs/.docs/instructions.md")),
    ("quoted-pairs/.meta/config.json", include_str!("../../demo/quoted-pairs/.meta/config.json")),
    ("quoted-pairs/.meta/example.py", include_str!("../../demo/quoted-pairs/.meta/example.py")),
    ("quoted-pairs/quoted_pairs.py", include_str!("../../demo/quoted-pairs/quoted_pairs.py")),
    ("quoted-pairs/quoted_pairs_test.py", include_str!("../../demo/quoted-pairs/quoted_pairs_test.py")),
    ("stock-ledger/.docs/instructions.md", include_str!("../../demo/stock-ledger/.docs/instructions.md")),
    ("stock-ledger/.meta/config.json", include_str!("../../demo/stock-ledger/.meta/config.json")),
    ("stock-ledger/.meta/example.py", include_str!("../../demo/stock-ledger/.meta/example.py")),
    ("stock-ledger/stock_ledger.py", include_str!("../../demo/stock-ledger/stock_ledger.py")),
    ("stock-ledger/stock_ledger_test.py", include_str!("../../demo/stock-ledger/stock_ledger_test.py")),
    ("text-columns/.docs/instructions.md", include_str!("../../demo/text-columns/.docs/instructions.md")),
    ("text-columns/.meta/config.json", include_str!("../../demo/text-columns/.meta/config.json")),
    ("text-columns/.meta/example.py", include_str!("../../demo/text-columns/.meta/example.py")),
    ("text-columns/text_columns.py", include_str!("../../demo/text-columns/text_columns.py")),
    ("text-columns/text_columns_test.py", include_str!("../../demo/text-columns/text_columns_test.py")),
    ("word-wheel/.docs/instructions.md", include_str!("../../demo/word-wheel/.docs/instructions.md")),
    ("word-wheel/.meta/config.json", include_str!("../../demo/word-wheel/.meta/config.json")),
    ("word-wheel/.meta/example.py", include_str!("../../demo/word-wheel/.meta/example.py")),
    ("word-wheel/word_wheel.py", include_str!("../../demo/word-wheel/word_wheel.py")),
    ("word-wheel/word_wheel_test.py", include_str!("../../demo/word-wheel/word_wheel_test.py")),
];

/// Writes the suite below `parent`, unless it is there, and returns its folder. The name follows from the content, and
/// the folder appears in one piece, so that several processes may share it.
pub(super) fn write(parent: &Path) -> std::io::Result<PathBuf> {
    let mut hasher = blake3::Hasher::new();
    for (path, content) in FILES {
        hasher.update(path.as_bytes()).update(&[0]).update(content.as_bytes()).update(&[0]);
    }
    let folder = parent.join(format!("demo-{}", &hasher.finalize().to_hex()[..12]));
    if folder.is_dir() {
        return Ok(folder);
    }
    let partial = parent.join(format!("demo-partial-{}", std::process::id()));
    for (path, content) in FILES {
        let path = partial.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)?;
    }
    match std::fs::rename(&partial, &folder) {
        // Another process was faster.
        Err(_) if folder.is_dir() => std::fs::remove_dir_all(&partial).map(|()| folder),
        renamed => renamed.map(|()| folder),
    }
}

#[cfg(test)]
mod tests;
