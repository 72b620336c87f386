//! Parsing of `/proc` files.

use super::*;

#[test]
fn a_name_with_parentheses_and_spaces_does_not_confuse() {
    let text = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 100 25 20 0 9 0 1000 2000 300";
    let stat = ProcStat::read(text).unwrap();
    let (own, ended) = (Duration::from_secs(3), Duration::from_millis(1250));
    assert_eq!(stat, ProcStat { tasks: 9, own, ended });
    assert_eq!(ProcStat::read("7 (x"), None);
}

#[test]
fn a_line_of_the_status_is_found_by_its_name() {
    let status = "VmRSS:\t  900 kB\nRssAnon:\t     512 kB\nRssShmem:\t       0 kB\n";
    assert_eq!((kilobytes(status, "RssAnon:"), kilobytes(status, "RssFile:")), (512, 0));
}

#[test]
fn this_process_used_some_time() {
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    assert!(ProcStat::read(&own).unwrap().tasks >= 1);
}
