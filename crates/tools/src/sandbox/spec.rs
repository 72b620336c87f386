//! What the keeper is told: to run a command, or to make a room. One message, with descriptors beside it.
//!
//! Everything about a command is strings without NUL, so its message is a few marks and then the strings, each ended by
//! a NUL: the receiver can hand them to exec as they lie.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::allowance::Allowance;
use super::enter::Entrance;
use super::namespaces::Users;
use super::policy::{Made, Network, Owner, Policy};

/// Largest message. The kernel takes no longer argument than 128 KB, which leaves half for the environment.
pub(super) const MOST: usize = 192 * 1024;
/// Descriptors of a message: control, output, working directory, input, and the three doors of a room.
pub(super) const MOST_DESCRIPTORS: usize = 7;
/// Guarded paths of a policy; each is a byte in messages.
pub(super) const MOST_GUARDED: usize = 64;

/// What is to be done, as it lies in a message.
pub(super) enum Order<'m> {
    Run(Spec<'m>),
    MakeRoom(Policy),
}

/// A command as it lies in a message.
pub(super) struct Spec<'m> {
    /// Into which room; `None` where it runs without one.
    pub(super) entrance: Option<Entrance<'m>>,
    pub(super) allowance: Allowance,
    pub(super) command: &'m CStr,
    pub(super) environment: Vec<&'m CStr>,
}

/// A command's way into a room, before it is put into a message.
#[derive(Clone, Copy)]
pub(super) struct Way<'r> {
    pub(super) users: Users,
    pub(super) network: Network,
    pub(super) owner: Option<Owner>,
    pub(super) directory: &'r Path,
    pub(super) absent: &'r [(&'r Path, Made)],
}

/// Why a command cannot be put into a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SpecError {
    #[error("it contains a NUL character")]
    Nul,
    #[error("with its environment it has more than {MOST} bytes; write it to a file and run that")]
    TooLong,
    #[error("a path in it is not UTF-8")]
    NotText,
}

const RUN: u8 = 0;
const RUN_IN_ROOM: u8 = 1;
const MAKE_ROOM: u8 = 2;

const MADE: [Made; 4] = [Made::SetAside, Made::WithoutHooks, Made::Tamed, Made::UnlessDirectory];

pub(super) fn encode<'v>(
    way: Option<Way<'_>>,
    allowance: &Allowance,
    command: &OsStr,
    environment: impl Iterator<Item = (&'v OsStr, &'v OsStr)>,
) -> Result<Vec<u8>, SpecError> {
    let mut message = Vec::new();
    let push = |message: &mut Vec<u8>, parts: &[&[u8]]| {
        for part in parts {
            if part.contains(&0) {
                return Err(SpecError::Nul);
            }
            message.extend_from_slice(part);
        }
        message.push(0);
        Ok(())
    };
    match way {
        None => {
            message.push(RUN);
            message.extend(allowance.encode());
        }
        Some(Way { users, network, owner, directory, absent }) => {
            let count = u8::try_from(absent.len()).map_err(|_| SpecError::TooLong)?;
            let flags = u8::from(users == Users::Own)
                | u8::from(network == Network::Own) << 1
                | u8::from(owner.is_some()) << 2;
            message.push(RUN_IN_ROOM);
            message.extend(allowance.encode());
            message.extend([flags, count]);
            let owner = owner.map_or([0, 0], |owner| [owner.user, owner.group]);
            message.extend(owner.iter().flat_map(|number| number.to_le_bytes()));
            for (_, made) in absent {
                message
                    .extend(MADE.iter().zip(0u8..).find(|(known, _)| *known == made).map(|(_, mark)| mark));
            }
            push(&mut message, &[directory.as_os_str().as_bytes()])?;
            for (path, _) in absent {
                push(&mut message, &[path.as_os_str().as_bytes()])?;
            }
        }
    }
    push(&mut message, &[command.as_bytes()])?;
    for (name, value) in environment {
        push(&mut message, &[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    if message.len() > MOST { Err(SpecError::TooLong) } else { Ok(message) }
}

/// The message that asks for a room.
pub(super) fn encode_room(policy: &Policy) -> Result<Vec<u8>, SpecError> {
    let mut message = vec![MAKE_ROOM];
    serde_json::to_writer(&mut message, policy).map_err(|_| SpecError::NotText)?;
    if message.len() > MOST { Err(SpecError::TooLong) } else { Ok(message) }
}

pub(super) fn decode(message: &[u8]) -> Option<Order<'_>> {
    let (mark, rest) = message.split_first()?;
    match *mark {
        RUN => {
            let (allowance, rest) = rest.split_first_chunk::<{ Allowance::LENGTH }>()?;
            let strings = strings(rest)?;
            let (command, environment) = strings.split_first()?;
            let (allowance, environment) = (Allowance::decode(allowance), environment.to_vec());
            Some(Order::Run(Spec { entrance: None, allowance, command, environment }))
        }
        RUN_IN_ROOM => decode_into_room(rest).map(Order::Run),
        MAKE_ROOM => serde_json::from_slice(rest).ok().map(Order::MakeRoom),
        _ => None,
    }
}

fn decode_into_room(message: &[u8]) -> Option<Spec<'_>> {
    let (allowance, message) = message.split_first_chunk::<{ Allowance::LENGTH }>()?;
    let (&[flags, count], rest) = message.split_first_chunk::<2>()?;
    let (user, rest) = rest.split_first_chunk::<4>()?;
    let (group, rest) = rest.split_first_chunk::<4>()?;
    let owner = Owner { user: u32::from_le_bytes(*user), group: u32::from_le_bytes(*group) };
    let (marks, rest) = rest.split_at_checked(usize::from(count))?;
    let strings = strings(rest)?;
    let (directory, rest) = strings.split_first()?;
    let (paths, rest) = rest.split_at_checked(marks.len())?;
    let (command, environment) = rest.split_first()?;
    let absent: Option<Vec<(&Path, Made)>> = marks
        .iter()
        .zip(paths)
        .map(|(mark, path)| {
            let made = MADE.get(usize::from(*mark)).copied()?;
            Some((Path::new(OsStr::from_bytes(path.to_bytes())), made))
        })
        .collect();
    let entrance = Entrance {
        users: if flags & 1 == 0 { Users::Machine } else { Users::Own },
        network: if flags & 2 == 0 { Network::Machine } else { Network::Own },
        owner: (flags & 4 != 0).then_some(owner),
        directory,
        absent: absent?,
    };
    let (allowance, environment) = (Allowance::decode(allowance), environment.to_vec());
    Some(Spec { entrance: Some(entrance), allowance, command, environment })
}

fn strings(mut rest: &[u8]) -> Option<Vec<&CStr>> {
    let mut strings = Vec::new();
    while !rest.is_empty() {
        let string = CStr::from_bytes_until_nul(rest).ok()?;
        rest = &rest[string.to_bytes_with_nul().len()..];
        strings.push(string);
    }
    Some(strings)
}

#[cfg(test)]
mod tests;
