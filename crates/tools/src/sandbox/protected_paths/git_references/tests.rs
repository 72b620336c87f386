//! Files that settings refer to.

use super::*;

#[test]
fn what_settings_execute_and_include_is_found_if_it_is_in_the_workspace() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for (path, text) in [
        (
            ".git/config",
            "[include]\n\tpath = ../.gitsettings\n\tpath = /etc/other\n[core]\n\thooksPath = \".husky/_\" # hooks\n\
             [alias] st = \"!sh scripts/st.sh\"\n\tco = checkout\n[filter \"x\"]\n\tclean = ./tool \\\n--clean\n",
        ),
        (".gitsettings", "[core]\n\tPager = tool --page\n"),
        ("scripts/st.sh", ""),
        ("tool", ""),
        ("checkout", ""),
        (".husky/_/h", ""),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let found: Vec<String> = referenced(&root)
        .iter()
        .map(|(path, on_create)| format!("{} {on_create:?}", path.strip_prefix(&root).unwrap().display()))
        .collect();
    assert_eq!(
        found,
        [
            ".gitsettings SetAside",
            ".husky WithoutHooks",
            ".husky/_ WithoutHooks",
            "scripts/st.sh SetAside",
            "tool SetAside"
        ]
    );
}
