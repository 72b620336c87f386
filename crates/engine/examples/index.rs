//! Measures the file index and the template registry for `cargo xtask bench`. Prints one figure per line: its
//! name, a tab, milliseconds. `cargo run --release -p fusee-engine --example index`
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a program that measures")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fusee_engine::memory::MemoryQuery;
use fusee_engine::task_system::file_reader::memory;
use fusee_engine::template::{
    MatchOptions, RegisteredTemplate, Template, TemplateLayer, TemplateRegistry, TemplateText,
};
use fusee_text::Source;
use fusee_tools::Workspace;

const FILES: usize = 50_000;
const CHANGED: usize = 10;
const TEMPLATES: usize = 10_000;
const RUNS: usize = 9;

/// Words used in files and templates, so that queries have many matches.
const WORDS: [&str; 12] = [
    "parser", "token", "journal", "cache", "request", "session", "ranking", "window", "socket", "template",
    "budget", "schema",
];

fn main() {
    let print_figure = |name: &str, took: Duration| println!("{name}\t{:.3}", took.as_secs_f64() * 1000.0);
    let directory = tempfile::tempdir().expect("a directory");
    let tree = directory.path().join("tree");
    plant(&tree);
    let kept = directory.path().join("memory.idx");
    let workspace = Arc::new(Workspace::open(&tree).expect("a workspace"));
    let fresh = memory(&workspace, Some(kept.clone()));
    let (first, updated) = timed(|| fresh.update().expect("an index"));
    assert_eq!(updated.files, FILES);
    print_figure("index of 50 000 files", first);
    drop(fresh);

    // Other processes find the index on disk and ten changed files. Their time is compared with a walk that
    // only stats every file.
    let other = || memory(&workspace, Some(kept.clone()));
    other().update().expect("an index");
    let mut beyond: Vec<Duration> = (0..RUNS)
        .map(|run| {
            for n in 0..CHANGED {
                let text = format!("//! Changed.\nfn changed_{n}_{run}() {{}}\n");
                fs::write(tree.join(path(n * 4_999)), text).expect("a file");
            }
            let (walk, files) = timed(|| walk(&tree));
            assert_eq!(files, FILES);
            let (whole, updated) = timed(|| other().update().expect("an index"));
            assert_eq!(updated.read, CHANGED);
            whole.saturating_sub(walk)
        })
        .collect();
    beyond.sort_unstable();
    print_figure("ten changed files, beyond the walk", beyond[RUNS / 2]);
    let query = MemoryQuery { words: "the session cache of the parser".to_owned(), limit: 5 };
    let found = median(|| assert_eq!(other().query(&query).expect("an answer").matches.len(), 5));
    print_figure("a query among 50 000 files", found);

    let registry = registry();
    let lookup = median(|| assert!(registry.find_template("task-4711").is_ok()));
    print_figure("lookup among 10 000 templates", lookup);
    let words = "find the token cache in the journal window";
    let matching =
        median(|| assert!(!registry.find_matching_tasks(words, &MatchOptions::default()).is_empty()));
    print_figure("match among 10 000 templates", matching);
}

/// Stats every file as an update does, and nothing else.
fn walk(tree: &Path) -> usize {
    let files = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().min(8));
    let mut builder = ignore::WalkBuilder::new(tree);
    builder.hidden(false).git_global(false).require_git(false).threads(threads);
    builder.build_parallel().run(|| {
        Box::new(|found| {
            let found = found.expect("a file");
            if found.metadata().expect("its state").is_file() {
                files.fetch_add(1, Ordering::Relaxed);
            }
            ignore::WalkState::Continue
        })
    });
    files.into_inner()
}

fn path(n: usize) -> String {
    format!("{}/{}/{}_{n}.rs", WORDS[n % 12], n / 500, WORDS[n / 12 % 12])
}

fn plant(tree: &Path) {
    for n in 0..FILES {
        let path = tree.join(path(n));
        if n % 500 < 12 {
            fs::create_dir_all(path.parent().expect("below the tree")).expect("a directory");
        }
        let word = WORDS[n / 7 % 12];
        let mut text = format!("//! Keeps the {word} of part {n}.\n");
        for m in 0..5 {
            let _ = writeln!(text, "pub fn {word}_{m}_{n}() {{}}");
        }
        fs::write(path, text).expect("a file");
    }
}

fn registry() -> TemplateRegistry {
    let mut registry = TemplateRegistry::new();
    for n in 0..TEMPLATES {
        let words: Vec<&str> = (0..5).map(|m| WORDS[(n * 7 + m * (n % 5 + 1)) % 12]).collect();
        let text = format!(
            "<task name=\"task-{n}\" type=\"atomic\"><description>Find the {} of part {n}</description>\
             <instructions>Do it.</instructions></task>",
            words.join(" ")
        );
        let (template, _) = Template::read(&Source::new("t.xml", text.as_str()));
        let template = template.expect("it is valid");
        let text = TemplateText { file: format!("task-{n}.xml"), text };
        registry
            .register(RegisteredTemplate { template, text, layer: TemplateLayer::Project })
            .expect("a new name");
    }
    registry
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let value = work();
    (begun.elapsed(), value)
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| timed(&mut work).0).collect();
    times.sort_unstable();
    times[RUNS / 2]
}
