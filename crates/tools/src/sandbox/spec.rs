//! What the keeper is told about a command: one message, with descriptors beside it.
//!
//! Everything in it is strings without NUL, so the message is the policy's mark and then the strings, each ended by
//! a NUL: the receiver can hand them to exec as they lie.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;

use super::{Ending, Sandbox};

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

/// A supervisor's only word about its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// It could not be started: the system's error number.
    NotStarted(i32),
    /// It has ended, and so has everything it had started, except for what could not be ended.
    Ended {
        /// How it ended.
        ending: Ending,
        /// Processes it had left running, which were ended.
        ended: u32,
        /// Processes that could not be ended.
        left: u32,
    },
}

impl Report {
    pub(super) const LENGTH: usize = 13;

    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let (mark, number, ended, left) = match self {
            Self::NotStarted(error) => (0, error, 0, 0),
            Self::Ended { ending: Ending::Exited(code), ended, left } => (1, code, ended, left),
            Self::Ended { ending: Ending::Signalled(signal), ended, left } => (2, signal, ended, left),
        };
        let mut message = [mark; Self::LENGTH];
        message[1..5].copy_from_slice(&number.to_le_bytes());
        message[5..9].copy_from_slice(&ended.to_le_bytes());
        message[9..].copy_from_slice(&left.to_le_bytes());
        message
    }

    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; Self::LENGTH] = message.try_into().ok()?;
        let four = |at: usize| [message[at], message[at + 1], message[at + 2], message[at + 3]];
        let (number, ended, left) =
            (i32::from_le_bytes(four(1)), u32::from_le_bytes(four(5)), u32::from_le_bytes(four(9)));
        let ending = match message[0] {
            0 => return Some(Self::NotStarted(number)),
            1 => Ending::Exited(number),
            2 => Ending::Signalled(number),
            _ => return None,
        };
        Some(Self::Ended { ending, ended, left })
    }
}

#[cfg(test)]
mod tests;
