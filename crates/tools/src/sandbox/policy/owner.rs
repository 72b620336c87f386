//! The user that commands run as if this process is root and the workspace belongs to another user.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Owner;

/// The owner of a workspace, if it is another user that this process can switch to.
pub(super) fn find(workspace: &Path) -> Option<Owner> {
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

/// Whether an id is mapped in this user namespace. In a container, unmapped ids of the host appear as nobody.
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
