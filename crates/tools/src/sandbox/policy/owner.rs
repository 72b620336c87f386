//! Whom commands run as when we are root and the workspace is somebody else's.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Owner;

/// The owner of a workspace, if he is not us, and we can become him.
pub(super) fn of(workspace: &Path) -> Option<Owner> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let status = workspace.metadata().ok()?;
    let owner = Owner { user: status.uid(), group: status.gid() };
    let known = |name: &str, number: u32| {
        std::fs::read_to_string(format!("/proc/self/{name}")).is_ok_and(|map| is_mapped(&map, number))
    };
    (owner.user != 0 && known("uid_map", owner.user) && known("gid_map", owner.group)).then_some(owner)
}

/// Whether a number stands for anybody here. In a container, those of the machine that do not are shown as nobody.
fn is_mapped(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) => {
                (first..first + count).contains(&u64::from(number))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests;
