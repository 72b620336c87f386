//! The embedded manual and its search.

use super::*;

#[test]
fn the_archive_has_every_page_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = pages().unwrap();
    for name in ["README", "flows", "reference/config", "spec/language/tasks"] {
        let folder = if name.starts_with("spec") { root.to_owned() } else { root.join("docs") };
        let text = fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
        assert_eq!(find(&pages, name).unwrap().text, text);
    }
    assert!(pages.len() > 30, "{}", pages.len());
}

#[test]
fn the_archive_stays_small() {
    assert!(ARCHIVE.len() < 200_000, "{} bytes", ARCHIVE.len());
}

#[test]
fn a_page_is_found_by_its_last_part_unless_several_have_it() {
    let page = |name: &str| ManualPage { name: name.to_owned(), text: String::new() };
    let pages = [page("flows"), page("reference/events"), page("a/same"), page("b/same")];
    assert_eq!(find(&pages, "events").unwrap().name, "reference/events");
    assert_eq!(find(&pages, "docs/flows.md").unwrap().name, "flows");
    let help = |name: &str| find(&pages, name).unwrap_err().help.unwrap();
    assert_eq!(help("same"), "use `fusee docs a/same` or `fusee docs b/same`");
    assert_eq!(help("flws"), "did you mean `flows`?");
    assert_eq!(help("zzzzzz"), "run `fusee docs` to list the pages");
}

#[test]
fn search_finds_lines_with_all_words_in_any_case() {
    let text = "# Title\n\nThe Journal grows.\nA journal.\n".to_owned();
    let pages = [ManualPage { name: "p".to_owned(), text }];
    assert_eq!(search(&pages, "journal grows"), "p:3: The Journal grows.\n");
    assert_eq!(search(&pages, " "), "");
}
