//! Operations on one name in a directory, reached without following a symbolic link.
//!
//! What a command leaves behind is examined by processes that may do more than the command could, while other
//! commands of the run may replace any component of a path. So a path is resolved once, to a descriptor of
//! its parent directory, and everything else refers to that descriptor. A directory that its owner made
//! unreadable is made accessible to the owner again: whatever a command can do to a directory, this process
//! can take back.
#![deny(clippy::let_underscore_must_use, clippy::unused_result_ok)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::workspace::confined_open::DIRECTORY;
use crate::workspace::file_status;

/// Number of numbered names tried for a file that is set aside, before one that cannot be taken already.
const NUMBERED: u32 = 20;

/// A name in an open directory.
#[derive(Debug)]
pub(in crate::sandbox) struct Entry {
    /// The directory's own parent and name, to change its mode: an O_PATH descriptor cannot.
    outer: Option<(OwnedFd, OsString)>,
    directory: OwnedFd,
    name: OsString,
}

impl Entry {
    /// The entry at an absolute path; `None` if its directory does not exist or a symbolic link leads to it.
    pub(in crate::sandbox) fn at(path: &Path) -> io::Result<Option<Self>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        match open_parents(parent) {
            Ok((outer, directory)) => Ok(Some(Self { outer, directory, name: name.to_owned() })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Its status without following a link; `None` if it does not exist.
    pub(in crate::sandbox) fn status(&self) -> io::Result<Option<Stat>> {
        let look = || rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        match self.accessible(look) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Its type; `None` if it does not exist.
    pub(in crate::sandbox) fn kind(&self) -> io::Result<Option<FileType>> {
        Ok(self.status()?.map(|status| FileType::from_raw_mode(status.st_mode)))
    }

    /// The content and permissions of a regular file of at most `most` bytes; a larger one is an error.
    pub(in crate::sandbox) fn read(&self, most: u64) -> io::Result<(u32, Vec<u8>)> {
        let file = std::fs::File::from(self.open(OFlags::NONBLOCK | OFlags::NOCTTY)?);
        let status = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL.into());
        }
        let mut content = Vec::new();
        file.take(most + 1).read_to_end(&mut content)?;
        if content.len() as u64 > most {
            Err(Errno::FBIG.into())
        } else {
            Ok((file_status::mode(&status) & 0o777, content))
        }
    }

    /// The names in this directory, with their types.
    pub(in crate::sandbox) fn names(&self) -> io::Result<Vec<(OsString, FileType)>> {
        let opened = self.open(OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::new(opened)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push((name.to_owned(), entry.file_type()));
            }
        }
        Ok(names)
    }

    /// An entry of this directory; `None` if this is not a directory any more.
    pub(in crate::sandbox) fn child(&self, name: &OsStr) -> io::Result<Option<Self>> {
        let outer = Some((self.directory.try_clone()?, self.name.clone()));
        match self.accessible(|| rustix::fs::openat(&self.directory, &self.name, DIRECTORY, Mode::empty())) {
            Ok(directory) => Ok(Some(Self { outer, directory, name: name.to_owned() })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames it to a name without meaning, and checks that it is gone. It is not deleted, because the user
    /// may have created it while the command ran.
    pub(in crate::sandbox) fn set_aside(&self) -> io::Result<()> {
        let mut number = 1;
        loop {
            let aside = self.aside_name(number);
            match self.accessible(|| rename_to_new(self.directory.as_fd(), &self.name, &aside)) {
                Ok(()) if self.kind()?.is_none() => return Ok(()),
                // Created again at once.
                Ok(()) | Err(Errno::EXIST) if number <= NUMBERED => {}
                Err(Errno::NOENT) => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok(()) => return Err(Errno::AGAIN.into()),
            }
            number += 1;
        }
    }

    /// Names that a command could have taken are numbered; the last one it cannot have guessed.
    fn aside_name(&self, number: u32) -> OsString {
        // The suffix must fit: file systems allow 255 bytes.
        let kept = self.name.as_bytes();
        let mut name = OsStr::from_bytes(&kept[..kept.len().min(200)]).to_owned();
        name.push(".refused");
        match number {
            1 => {}
            2..=NUMBERED => name.push(number.to_string()),
            _ => name.push(format!("-{:x}", unguessable())),
        }
        name
    }

    /// Creates a regular file with this content; whatever had its name must be gone.
    pub(in crate::sandbox) fn create(&self, content: &[u8], mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let owner = Mode::from_raw_mode(0o600);
        let file = self.accessible(|| rustix::fs::openat(&self.directory, &self.name, flags, owner))?;
        let around = rustix::fs::fstat(&self.directory)?;
        if rustix::process::geteuid().is_root() && around.st_uid != 0 {
            match std::os::unix::fs::fchown(&file, Some(around.st_uid), Some(around.st_gid)) {
                // Without capabilities the file stays root's, as everything does that the command creates.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
                result => result?,
            }
        }
        let mut file = std::fs::File::from(file);
        file.write_all(content)?;
        Ok(rustix::fs::fchmod(&file, file_status::permissions(mode))?)
    }

    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty());
        match self.accessible(open) {
            // The entry itself is unreadable.
            Err(Errno::ACCESS) => {
                grant_owner(self.directory.as_fd(), &self.name)?;
                Ok(open()?)
            }
            result => Ok(result?),
        }
    }

    /// Repeats an operation that the directory's mode did not allow after giving it back to its owner.
    fn accessible<T>(&self, operation: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match (operation(), &self.outer) {
            (Err(Errno::ACCESS), Some((outer, name))) => {
                grant_owner(outer.as_fd(), name)?;
                operation()
            }
            (result, _) => result,
        }
    }
}

/// Renames without replacing anything.
fn rename_to_new(directory: BorrowedFd<'_>, name: &OsStr, new: &OsStr) -> Result<(), Errno> {
    match rustix::fs::renameat_with(directory, name, directory, new, RenameFlags::NOREPLACE) {
        // Some network file systems cannot do both at once.
        Err(Errno::INVAL) => match rustix::fs::statat(directory, new, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => rustix::fs::renameat(directory, name, directory, new),
            Ok(_) => Err(Errno::EXIST),
            Err(error) => Err(error),
        },
        result => result,
    }
}

/// Opens a directory by its absolute path, and its parent.
fn open_parents(path: &Path) -> Result<(Option<(OwnedFd, OsString)>, OwnedFd), Errno> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok((None, rustix::fs::open(path, DIRECTORY, Mode::empty())?));
    };
    let outer = open_directory(parent)?;
    let directory = child_directory(&outer, parent, name)?;
    Ok((Some((outer, name.to_owned())), directory))
}

/// Other systems have no call for it.
#[cfg(not(target_os = "linux"))]
fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    open_componentwise(path)
}

#[cfg(target_os = "linux")]
fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::{CWD, ResolveFlags};
    match rustix::fs::openat2(CWD, path, DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Old kernels do not have the call, and our own filter and some containers refuse it; the walk also
        // makes inaccessible directories accessible, and tries again what a concurrent rename disturbed.
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::AGAIN) => open_componentwise(path),
        result => result,
    }
}

/// Resolves one component after the other.
fn open_componentwise(path: &Path) -> Result<OwnedFd, Errno> {
    let mut directory = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
    let mut so_far = Path::new("/").to_owned();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => {
                directory = child_directory(&directory, &so_far, name)?;
                so_far.push(name);
            }
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL),
        }
    }
    Ok(directory)
}

/// Opens a directory in `outer`, which is made accessible if need be.
fn child_directory(outer: &OwnedFd, outer_path: &Path, name: &OsStr) -> Result<OwnedFd, Errno> {
    let open = || rustix::fs::openat(outer, name, DIRECTORY, Mode::empty());
    match (open(), outer_path.parent(), outer_path.file_name()) {
        (Err(Errno::ACCESS), Some(above), Some(outer_name)) => {
            grant_owner(open_directory(above)?.as_fd(), outer_name)?;
            open()
        }
        (result, ..) => result,
    }
}

/// Gives the owner all rights to a file or directory. Only its owner can do that, so this takes back what the
/// owner's commands did and nothing else.
fn grant_owner(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let status = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(status.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    let mode = Mode::from_raw_mode(status.st_mode & 0o777 | 0o700);
    rustix::fs::chmodat(directory, name, mode, AtFlags::empty())
}

/// A number that a command cannot have guessed in advance: hash keys are random.
fn unguessable() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}

#[cfg(test)]
mod tests;
