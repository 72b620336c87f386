//! What the keeper is told about a command: one message, with descriptors beside it.
//!
//! Everything in it is strings without NUL, so the message is the policy's mark and then the strings, each ended by
//! a NUL: the receiver can hand them to exec as they lie.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

use super::Sandbox;

/// Largest message. The kernel takes no longer argument than 128 KB, which leaves half for the environment.
pub(super) const MOST: usize = 192 * 1024;
/// Descriptors of a message: control, output, working directory, input.
pub(super) const MOST_DESCRIPTORS: usize = 4;

/// A command as it lies in a message.
pub(super) struct Spec<'m> {
    pub(super) sandbox: Sandbox,
    pub(super) command: &'m CStr,
    pub(super) environment: Vec<&'m CStr>,
}

/// Why a command cannot be put into a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SpecError {
    #[error("it contains a NUL character")]
    Nul,
    #[error("with its environment it has more than {MOST} bytes; write it to a file and run that")]
    TooLong,
}

pub(super) fn encode<'v>(
    sandbox: Sandbox,
    command: &OsStr,
    environment: impl Iterator<Item = (&'v OsStr, &'v OsStr)>,
) -> Result<Vec<u8>, SpecError> {
    let mut message = vec![match sandbox {
        Sandbox::Off => 0,
    }];
    let mut push = |parts: &[&[u8]]| {
        for part in parts {
            if part.contains(&0) {
                return Err(SpecError::Nul);
            }
            message.extend_from_slice(part);
        }
        message.push(0);
        Ok(())
    };
    push(&[command.as_bytes()])?;
    for (name, value) in environment {
        push(&[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    if message.len() > MOST { Err(SpecError::TooLong) } else { Ok(message) }
}

pub(super) fn decode(message: &[u8]) -> Option<Spec<'_>> {
    let (mark, mut rest) = message.split_first()?;
    let sandbox = match mark {
        0 => Sandbox::Off,
        _ => return None,
    };
    let mut strings = Vec::new();
    while !rest.is_empty() {
        let string = CStr::from_bytes_until_nul(rest).ok()?;
        rest = &rest[string.to_bytes_with_nul().len()..];
        strings.push(string);
    }
    let (command, environment) = strings.split_first()?;
    Some(Spec { sandbox, command, environment: environment.to_vec() })
}

/// What a supervisor says about its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// It ended by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It could not be started: the system's error number.
    NotStarted(i32),
    /// What it had left behind: processes that were ended, and those that could not be.
    Swept { ended: u32, left: u32 },
}

impl Report {
    pub(super) const LENGTH: usize = 9;

    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let (mark, first, second) = match self {
            Self::Exited(code) => (1, code.cast_unsigned(), 0),
            Self::Signalled(signal) => (2, signal.cast_unsigned(), 0),
            Self::NotStarted(error) => (3, error.cast_unsigned(), 0),
            Self::Swept { ended, left } => (4, ended, left),
        };
        let mut message = [0; Self::LENGTH];
        message[0] = mark;
        message[1..5].copy_from_slice(&first.to_le_bytes());
        message[5..].copy_from_slice(&second.to_le_bytes());
        message
    }

    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; Self::LENGTH] = message.try_into().ok()?;
        let first = u32::from_le_bytes([message[1], message[2], message[3], message[4]]);
        let second = u32::from_le_bytes([message[5], message[6], message[7], message[8]]);
        match message[0] {
            1 => Some(Self::Exited(first.cast_signed())),
            2 => Some(Self::Signalled(first.cast_signed())),
            3 => Some(Self::NotStarted(first.cast_signed())),
            4 => Some(Self::Swept { ended: first, left: second }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
