//! The index of a real directory: its entries, incremental updates, search results.

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

fn memory_of(root: &Path, file: Option<PathBuf>) -> MemorySystem {
    let workspace = Arc::new(fusee_tools::Workspace::open(root).unwrap());
    crate::task_system::file_reader::memory(&workspace, file)
}

fn paths(answer: &MemoryAnswer) -> Vec<&str> {
    answer.matches.iter().map(|found| found.path.as_str()).collect()
}

fn ask(memory: &MemorySystem, words: &str) -> MemoryAnswer {
    memory.relevant_context_for(&MemoryQuery { words: words.to_owned(), limit: 5 }).unwrap()
}

#[test]
fn entries_hold_what_a_file_says_of_itself() {
    let folder = tree();
    let memory = memory_of(folder.path(), None);
    assert_eq!(memory.update().unwrap(), IndexUpdate { files: 5, read: 5, removed: 0, cut: false });
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
    let memory = memory_of(folder.path(), None);
    assert_eq!(paths(&ask(&memory, "where are expressions parsed"))[0], "src/parser.rs");
    assert_eq!(paths(&ask(&memory, "the HTTP server")), ["src/net/server.rs"]);
    assert_eq!(paths(&ask(&memory, "rendering a Report")), ["tool.py"]);
    assert_eq!(
        ask(&memory, "zebra"),
        MemoryAnswer { summary: "no file fits".to_owned(), matches: Vec::new() }
    );
    let found = &ask(&memory, "serve").matches[0];
    assert!(found.score > 0.0 && found.score <= 1.0);
    assert_eq!(found.reason, "symbols: serve; summary: serve");
}

#[test]
fn a_whole_path_names_its_file_and_a_base_name_none() {
    let folder = tree();
    let memory = memory_of(folder.path(), None);
    let found = ask(&memory, "Look at `docs/guide.md`, please.");
    assert_eq!((found.matches[0].path.as_str(), found.matches[0].score), ("docs/guide.md", 1.0));
    let by_base_name = ask(&memory, "guide.md");
    assert!(by_base_name.matches[0].score < 1.0);
}

#[test]
fn only_what_changed_is_read_again_and_the_index_is_kept() {
    let folder = tree();
    let file = folder.path().join(".fusee/memory.idx");
    let memory = || memory_of(folder.path(), Some(file.clone()));
    memory().update().unwrap();
    assert_eq!(memory().update().unwrap(), IndexUpdate { files: 5, read: 0, removed: 0, cut: false });
    fs::write(folder.path().join("tool.py"), "def changed_it(): pass\n").unwrap();
    fs::write(folder.path().join("new.rs"), "fn added() {}\n").unwrap();
    fs::remove_file(folder.path().join("docs/guide.md")).unwrap();
    assert_eq!(memory().update().unwrap(), IndexUpdate { files: 5, read: 2, removed: 1, cut: false });
    let kept = memory();
    assert_eq!(
        kept.query(&MemoryQuery { words: "changed it".to_owned(), limit: 1 }).unwrap().matches[0].path,
        "tool.py"
    );
    assert_eq!(kept.global_index().unwrap().len(), 5);
}

#[test]
fn a_damaged_index_is_made_again() {
    let folder = tree();
    let file = folder.path().join(".fusee/memory.idx");
    memory_of(folder.path(), Some(file.clone())).update().unwrap();
    let whole = fs::read(&file).unwrap();
    for cut in [0, 5, 9, 12, 40, 600, whole.len() / 2, whole.len() - 4096] {
        fs::write(&file, &whole[..cut]).unwrap();
        let memory = memory_of(folder.path(), Some(file.clone()));
        assert_eq!(memory.global_index().unwrap().len(), 0, "cut at {cut}");
        assert_eq!(memory.update().unwrap().read, 5);
    }
}

/// A tree of sixty files.
fn many() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..60 {
        let text = format!("//! Part {n} of the whole.\nfn part_{n}() {{}}\nfn shared_thing() {{}}\n");
        fs::write(folder.path().join(format!("part_{n:02}.rs")), text).unwrap();
    }
    folder
}

/// An index built from scratch, as the expected result.
fn fresh(folder: &tempfile::TempDir) -> MemorySystem {
    let memory = memory_of(folder.path(), None);
    memory.update().unwrap();
    memory
}

#[test]
fn changes_are_found_as_if_everything_had_been_read_anew() {
    let folder = many();
    let file = folder.path().join(".fusee/memory.idx");
    memory_of(folder.path(), Some(file.clone())).update().unwrap();
    fs::write(folder.path().join("part_07.rs"), "//! About zebras.\nfn zebra_thing() {}\n").unwrap();
    fs::write(folder.path().join("added.rs"), "//! About zebras too.\n").unwrap();
    fs::remove_file(folder.path().join("part_11.rs")).unwrap();
    let again = memory_of(folder.path(), Some(file.clone()));
    assert_eq!(again.update().unwrap(), IndexUpdate { files: 60, read: 2, removed: 1, cut: false });
    let kept = memory_of(folder.path(), Some(file));
    let anew = fresh(&folder);
    for words in ["zebra", "shared thing of part", "part_07.rs and added.rs", "part 11"] {
        let query = MemoryQuery { words: words.to_owned(), limit: 70 };
        assert_eq!(kept.query(&query).unwrap(), anew.query(&query).unwrap(), "{words}");
    }
    let plain = |memory: &MemorySystem| {
        let entries = memory.global_index().unwrap().into_iter();
        entries.map(|entry| (entry.path, entry.summary, entry.symbols)).collect::<Vec<_>>()
    };
    assert_eq!(plain(&kept), plain(&anew));
}

#[test]
fn many_changes_are_found_as_well() {
    let folder = many();
    let file = folder.path().join(".fusee/memory.idx");
    memory_of(folder.path(), Some(file.clone())).update().unwrap();
    for n in 0..50 {
        fs::remove_file(folder.path().join(format!("part_{n:02}.rs"))).unwrap();
        fs::write(folder.path().join(format!("new_{n:02}.rs")), format!("fn new_{n}() {{}}\n")).unwrap();
    }
    let again = memory_of(folder.path(), Some(file.clone()));
    assert_eq!(again.update().unwrap(), IndexUpdate { files: 60, read: 50, removed: 50, cut: false });
    let kept = memory_of(folder.path(), Some(file));
    let query = MemoryQuery { words: "new shared thing".to_owned(), limit: 70 };
    assert_eq!(kept.query(&query).unwrap(), fresh(&folder).query(&query).unwrap());
    assert_eq!(kept.update().unwrap(), IndexUpdate { files: 60, read: 0, removed: 0, cut: false });
}

#[test]
fn a_file_that_was_only_touched_is_not_read_twice() {
    let folder = many();
    let file = folder.path().join(".fusee/memory.idx");
    memory_of(folder.path(), Some(file.clone())).update().unwrap();
    let touched = fs::File::options().append(true).open(folder.path().join("part_03.rs")).unwrap();
    touched.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    let again = || memory_of(folder.path(), Some(file.clone())).update().unwrap();
    assert_eq!(again(), IndexUpdate { files: 60, read: 0, removed: 0, cut: false });
    let kept = memory_of(folder.path(), Some(file.clone())).entry("part_03.rs").unwrap().unwrap();
    assert_eq!(kept.mtime, 1_000_000_000_000_000_000, "its new time is kept");
    assert_eq!(again(), IndexUpdate { files: 60, read: 0, removed: 0, cut: false });
}

#[test]
fn damage_anywhere_in_the_index_is_no_error() {
    let folder = many();
    let file = folder.path().join(".fusee/memory.idx");
    memory_of(folder.path(), Some(file.clone())).update().unwrap();
    let whole = fs::read(&file).unwrap();
    let query = MemoryQuery { words: "shared thing of part 7".to_owned(), limit: 3 };
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&file, &bytes).unwrap();
        let memory = memory_of(folder.path(), Some(file.clone()));
        assert_eq!(memory.relevant_context_for(&query).unwrap().matches.len(), 3, "byte {at}");
        memory.global_index().unwrap();
    }
}

#[test]
fn an_index_of_another_format_or_version_is_made_again() {
    let folder = tree();
    let file = folder.path().join(".fusee/memory.idx");
    let update = || memory_of(folder.path(), Some(file.clone())).update().unwrap();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, [b"fuseem02".as_slice(), &[7; 5000]].concat()).unwrap();
    fs::write(file.with_extension("delta"), "fuseed02").unwrap();
    assert_eq!(update(), IndexUpdate { files: 5, read: 5, removed: 0, cut: false });
    assert!(!file.with_extension("delta").exists());
    assert_eq!(update().read, 0);
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 2).unwrap();
    assert_eq!(update(), IndexUpdate { files: 5, read: 5, removed: 0, cut: false });
    assert_eq!(update().read, 0);
}

/// The state of the files after a kill in the middle of an update: some pages of the index are written, and
/// the rollback journal is there.
#[test]
fn a_process_killed_while_it_writes_leaves_the_index_as_it_was() {
    let folder = many();
    let file = folder.path().join(".fusee/memory.idx");
    memory_of(folder.path(), Some(file.clone())).update().unwrap();
    let query = MemoryQuery { words: "shared thing of part 7".to_owned(), limit: 70 };
    let before = fresh(&folder).query(&query).unwrap();
    let writer = rusqlite::Connection::open(&file).unwrap();
    writer
        .execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE file SET summary = hex(randomblob(900));")
        .unwrap();
    let killed = folder.path().join("killed/memory.idx");
    fs::create_dir_all(killed.parent().unwrap()).unwrap();
    fs::copy(&file, &killed).unwrap();
    fs::copy(file.with_extension("idx-journal"), killed.with_extension("idx-journal")).unwrap();
    writer.execute_batch("ROLLBACK").unwrap();
    assert_ne!(fs::read(&file).unwrap(), fs::read(&killed).unwrap(), "pages were written before the commit");
    let memory = memory_of(folder.path(), Some(killed));
    assert_eq!(memory.query(&query).unwrap(), before);
    assert_eq!(memory.global_index().unwrap().len(), 60);
}

#[test]
fn processes_that_update_at_once_agree() {
    let folder = many();
    let file = folder.path().join(".fusee/memory.idx");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| memory_of(folder.path(), Some(file.clone())).update().unwrap());
        }
    });
    let kept = memory_of(folder.path(), Some(file));
    let query = MemoryQuery { words: "shared thing of part 7".to_owned(), limit: 70 };
    assert_eq!(kept.query(&query).unwrap(), fresh(&folder).query(&query).unwrap());
}

#[test]
fn an_entry_names_the_commit_that_was_checked_out() {
    let folder = tree();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let commit = |name: &str| {
        let entry = memory_of(folder.path(), None);
        entry.update().unwrap();
        entry.entry(name).unwrap().unwrap().commit
    };
    assert_eq!(commit("tool.py"), None);
    let (one, two, three) = ("1".repeat(40), "2".repeat(40), "3".repeat(40));
    write(".git/HEAD", "ref: refs/heads/main\n");
    write(".git/packed-refs", &format!("# pack-refs\n{three} refs/heads/other\n{one} refs/heads/main\n"));
    assert_eq!(commit("tool.py"), Some(one));
    write(".git/refs/heads/main", &format!("{two}\n"));
    assert_eq!(commit("tool.py"), Some(two));
    write(".git/HEAD", &format!("{three}\n"));
    assert_eq!(commit("tool.py"), Some(three));
}

#[cfg(feature = "grammars")]
#[test]
fn symbols_are_found_by_grammar() {
    let found = |language: &str, text: &str| symbols::find(text, language).join(" ");
    let rust = "pub const fn one() { fn inner() {} }\nimpl X {\n    pub fn two() {}\n    type Out = u8;\n}\n\
        enum Three {}\nmacro_rules! four { () => {} }\ntrait Five { fn six(&self); }\nmod seven { static EIGHT: u8 = 1; }\n\
        // fn commented() {}\nconst TEXT: &str = \"\nfn quoted() {}\n\";";
    assert_eq!(found("rust", rust), "one two Three four Five six seven EIGHT TEXT");
    let python = "LIMIT = 3\n@deco\nclass Report(Base):\n    \"\"\"\n    def quoted(): pass\n    \"\"\"\n    \
        def render(self): pass\nasync def go(): pass\n";
    assert_eq!(found("python", python), "Report render go");
    let typescript = "export default class Page<T> { load(): void {} static go() {} }\n\
        export const size = 1, other = () => { const inner = 2 }\nconst { taken } = size\n\
        export async function load() {}\ninterface Shape { area(): number }\ntype Id = string\nenum Colour { Red }\n\
        namespace Names { export function deep() {} }\nfunction view() { return <div class=\"a\">b</div> }\n";
    let names = "Page load go size other Shape area Id Colour Names deep view";
    assert_eq!(found("typescript", typescript), names);
    assert_eq!(
        found("javascript", "const run = async () => {}\nclass Box { #hidden() {} open() {} }"),
        "run Box open"
    );
    let go = "package x\nfunc (s *Server) Serve() {}\ntype (\n\tConn struct{}\n\tName = string\n)\nconst Most = 1\nvar All []int\n";
    assert_eq!(found("go", go), "Serve Conn Name Most All");
    let c = "#ifndef A_H\n#define A_H\n#define LIMIT 10\n#define LARGER(a) (a)\nstatic int\nrun(void) { return 0; }\n\
        int helper(int a);\nstruct node { struct node *next; };\ntypedef int (*callback)(int);\nenum kind { ONE };\n\
        char *name_of(struct node *n) { return 0; }\n#endif\n";
    assert_eq!(found("c", c), "LIMIT LARGER run node callback kind name_of");
    let java = "package a.b;\npublic final class Main<T> { private static void go() {} Main() {} interface Inner { int size(); } \
        enum Kind { A } record Pair(int a) {} }\n@interface Mark {}\n";
    assert_eq!(found("java", java), "Main go Inner size Kind Pair Mark");
}

#[cfg(feature = "grammars")]
#[test]
fn a_text_that_does_not_parse_or_is_hostile_is_left_to_the_lines() {
    let broken = "fn one() {}\nfn two( {}\n%%%\n";
    assert_eq!(symbols::find(broken, "rust"), symbols::by_line(broken, "rust"));
    assert_eq!(symbols::find(broken, "rust").join(" "), "one two");
    let begun = std::time::Instant::now();
    for (language, unit) in [
        ("rust", "(("),
        ("rust", "<<"),
        ("python", "[("),
        ("typescript", "<a "),
        ("typescript", "{a:"),
        ("go", "func("),
        ("c", "(*"),
        ("c", "a<b("),
        ("java", "<A"),
        ("python", "if a:\n "),
    ] {
        let text = unit.repeat(60_000 / unit.len());
        assert_eq!(symbols::find(&text, language), symbols::by_line(&text, language), "{language} {unit}");
    }
    let huge = "fn a_name() {}\n".repeat(20_000);
    assert_eq!(symbols::find(&huge, "rust").join(" "), "a_name");
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn symbols_are_found_line_by_line() {
    let found = |language: &str, text: &str| symbols::by_line(text, language).join(" ");
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

#[test]
fn the_index_reads_only_what_the_handlers_reader_gives_it() {
    struct Nothing;
    impl FileReader for Nothing {
        fn head(&self, _path: &Path, _most: u64) -> Option<Vec<u8>> {
            None
        }
    }
    let folder = tree();
    let memory = MemorySystem::new(folder.path(), None, Arc::new(Nothing));
    assert_eq!(memory.update().unwrap(), IndexUpdate { files: 0, read: 0, removed: 0, cut: false });
}

#[test]
fn the_handlers_reader_is_bounded_and_reads_only_regular_files() {
    let folder = tree();
    let workspace = Arc::new(fusee_tools::Workspace::open(folder.path()).unwrap());
    let path = workspace.locate("src").unwrap();
    assert_eq!(
        crate::task_system::file_reader::read(&workspace, &path, 10),
        Err("not a regular file".to_owned())
    );
    let path = workspace.locate("docs/guide.md").unwrap();
    assert_eq!(crate::task_system::file_reader::read(&workspace, &path, 7), Ok(b"# Guide".to_vec()));
}
