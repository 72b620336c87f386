//! Both ways of listing children agree.

#[test]
fn a_scan_finds_the_children_that_the_kernel_lists() {
    #[expect(clippy::disallowed_methods, reason = "the test needs an unsupervised child")]
    let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    assert!(super::children_by_scan().contains(&pid));
    assert!(super::children().contains(&pid));
    child.kill().unwrap();
    child.wait().unwrap();
}
