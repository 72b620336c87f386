//! The index of a real directory: what it holds, how it is kept up to date, what is found in it.

use std::fs;

use super::*;

fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("src/parser.rs", "//! Reads expressions.\n\npub(crate) fn parse_expression() {}\nstruct Lexer;\n");
    write("src/net/server.rs", "//! Serves pages over HTTP.\npub async fn serve() {}\n");
    write("docs/guide.md", "# Guide\n\nHow to parse things.\n");
    write("tool.py", "\"\"\"Makes reports.\"\"\"\nclass Report:\n    def render(self):\n        x = 1\n");
    write("target/junk.rs", "fn parse_expression() {}\n");
    write(".gitignore", "target/\n");
    folder
}

fn paths(answer: &Answer) -> Vec<&str> {
    answer.matches.iter().map(|found| found.path.as_str()).collect()
}

fn ask(memory: &Memory, words: &str) -> Answer {
    memory.relevant(&Query { words: words.to_owned(), limit: 5 }).unwrap()
}

#[test]
fn entries_hold_what_a_file_says_of_itself() {
    let folder = tree();
    let memory = Memory::new(folder.path(), None);
    assert_eq!(memory.update().unwrap(), Updated { files: 5, read: 5, removed: 0, cut: false });
    let entry = memory.entry("src/parser.rs").unwrap().unwrap();
    assert_eq!(
        (entry.language.as_str(), entry.summary.as_str(), entry.symbols.as_slice()),
        ("rust", "Reads expressions.", ["parse_expression".to_owned(), "Lexer".to_owned()].as_slice())
    );
    let entry = memory.entry("tool.py").unwrap().unwrap();
    assert_eq!(
        (entry.summary.as_str(), entry.symbols.join(" ")),
        ("Makes reports.", "Report render".to_owned())
    );
    assert_eq!(memory.entry("target/junk.rs").unwrap(), None);
    assert_eq!(memory.entry("parser.rs").unwrap(), None);
}

#[test]
fn words_find_files_by_path_symbol_and_summary() {
    let folder = tree();
    let memory = Memory::new(folder.path(), None);
    assert_eq!(paths(&ask(&memory, "where are expressions parsed"))[0], "src/parser.rs");
    assert_eq!(paths(&ask(&memory, "the HTTP server")), ["src/net/server.rs"]);
    assert_eq!(paths(&ask(&memory, "rendering a Report")), ["tool.py"]);
    assert_eq!(ask(&memory, "zebra"), Answer { summary: "no file fits".to_owned(), matches: Vec::new() });
    let found = &ask(&memory, "serve").matches[0];
    assert!(found.score > 0.0 && found.score <= 1.0);
    assert_eq!(found.reason, "symbols: serv; summary: serv");
}

#[test]
fn a_whole_path_names_its_file_and_a_base_name_none() {
    let folder = tree();
    let memory = Memory::new(folder.path(), None);
    let found = ask(&memory, "Look at `docs/guide.md`, please.");
    assert_eq!((found.matches[0].path.as_str(), found.matches[0].score), ("docs/guide.md", 1.0));
    let by_base_name = ask(&memory, "guide.md");
    assert!(by_base_name.matches[0].score < 1.0);
}

#[test]
fn only_what_changed_is_read_again_and_the_index_is_kept() {
    let folder = tree();
    let file = folder.path().join(".fusee/memory.idx");
    let memory = || Memory::new(folder.path(), Some(file.clone()));
    memory().update().unwrap();
    assert_eq!(memory().update().unwrap(), Updated { files: 5, read: 0, removed: 0, cut: false });
    fs::write(folder.path().join("tool.py"), "def changed_it(): pass\n").unwrap();
    fs::write(folder.path().join("new.rs"), "fn added() {}\n").unwrap();
    fs::remove_file(folder.path().join("docs/guide.md")).unwrap();
    assert_eq!(memory().update().unwrap(), Updated { files: 5, read: 2, removed: 1, cut: false });
    let kept = memory();
    assert_eq!(
        kept.query(&Query { words: "changed it".to_owned(), limit: 1 }).unwrap().matches[0].path,
        "tool.py"
    );
    assert_eq!(kept.global_index().unwrap().len(), 5);
}

#[test]
fn a_damaged_index_is_made_again() {
    let folder = tree();
    let file = folder.path().join(".fusee/memory.idx");
    Memory::new(folder.path(), Some(file.clone())).update().unwrap();
    let whole = fs::read(&file).unwrap();
    for cut in [0, 5, 9, 12, 40, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..cut]).unwrap();
        let memory = Memory::new(folder.path(), Some(file.clone()));
        assert_eq!(memory.global_index().unwrap().len(), 0, "cut at {cut}");
        assert_eq!(memory.update().unwrap().read, 5);
    }
}

#[test]
fn symbols_of_common_languages_are_found() {
    let found = |language: &str, text: &str| symbols::find(text, language).join(" ");
    assert_eq!(
        found(
            "rust",
            "pub const fn one() {}\nimpl X {\n    pub fn two() {}\n}\nenum Three {}\nmacro_rules! four {}"
        ),
        "one two Three four"
    );
    assert_eq!(
        found(
            "typescript",
            "export default class Page {}\nexport const size = 1\n  const inner = 2\nexport async function load() {}"
        ),
        "Page size load"
    );
    assert_eq!(
        found("go", "func (s *Server) Serve() {}\nfunc main() {}\ntype Conn struct {}"),
        "Serve main Conn"
    );
    assert_eq!(
        found("c", "static int run(void) {\nint helper(int a);\nstruct node {\n#define X 1"),
        "run node"
    );
    assert_eq!(found("shell", "build() {\n  echo\n}\nfunction deploy {"), "build deploy");
    assert_eq!(found("java", "public final class Main {\n  private static void x() {}"), "Main");
}
