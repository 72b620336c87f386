//! The numbers of a file's status, in one type each: their widths differ between systems.

use rustix::fs::{FileType, Mode, RawMode, Stat};

/// `st_mode`: file type and permissions.
pub(crate) fn mode(status: &Stat) -> u32 {
    widen(status.st_mode)
}

/// Number of the device.
pub(crate) fn device(status: &Stat) -> i128 {
    status.st_dev.into()
}

/// Time of the last change of the content, in nanoseconds since the epoch.
pub(crate) fn modified_ns(status: &Stat) -> i128 {
    nanoseconds(status.st_mtime, status.st_mtime_nsec)
}

/// Time of the last change of the status, in nanoseconds since the epoch.
pub(crate) fn changed_ns(status: &Stat) -> i128 {
    nanoseconds(status.st_ctime, status.st_ctime_nsec)
}

/// The file type in an `st_mode`.
pub(crate) fn file_type(mode: u32) -> FileType {
    FileType::from_raw_mode(mode as RawMode)
}

/// The permissions in an `st_mode`.
pub(crate) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as RawMode)
}

fn widen(number: impl Into<u32>) -> u32 {
    number.into()
}

fn nanoseconds(seconds: impl Into<i128>, nanos: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + nanos.into()
}
