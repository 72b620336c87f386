//! The messages to the fork server: run a command, create a namespace sandbox, or limit the usage of all
//! commands. Each is one datagram with descriptors attached.
//!
//! A command consists of strings without NUL, so its message is a short header followed by the NUL-terminated
//! strings: the receiver can pass them to exec without copying.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::sandbox::landlock::sandbox::LandlockConfinement;
use crate::sandbox::limits::CgroupLimits;
use crate::sandbox::limits::ResourceLimits;
use crate::sandbox::namespaces::UserNamespace;
use crate::sandbox::namespaces::join::JoinRequest;
use crate::sandbox::namespaces::sandbox::ConfinementLayers;
use crate::sandbox::policy::{CreatedPathAction, Network, Owner, Policy};

/// Maximum size of a message. The kernel takes at most 128 KB per argument, which leaves 64 KB for the
/// environment.
pub(crate) const MAX_MESSAGE: usize = 192 * 1024;
/// Maximum number of descriptors of a message: control, output, working directory, input, errors, and the
/// three namespaces and the Landlock ruleset of a namespace sandbox.
pub(crate) const MAX_DESCRIPTORS: usize = 9;
/// Maximum number of protected paths in a policy; each is one byte in messages.
pub(crate) const MAX_GUARDED: usize = 240;

/// A decoded request, borrowing from its message.
pub(crate) enum DecodedRequest<'m> {
    Run(CommandSpec<'m>),
    CreateNamespaces(Policy),
    LimitAll(CgroupLimits),
}

/// A decoded command, borrowing from its message.
pub(crate) struct CommandSpec<'m> {
    pub(crate) confinement: DecodedConfinement<'m>,
    pub(crate) limits: ResourceLimits,
    pub(crate) command: &'m CStr,
    pub(crate) environment: Vec<&'m CStr>,
}

/// The sandbox of a decoded command.
pub(crate) enum DecodedConfinement<'m> {
    Unsandboxed,
    Namespaces(JoinRequest<'m>),
    Landlock(LandlockConfinement<'m>),
}

/// The sandbox of a command to be encoded.
#[derive(Clone, Copy)]
pub(crate) enum EncodedConfinement<'r> {
    Unsandboxed,
    Namespaces(NamespaceJoin<'r>),
    Landlock { network: Network, owner: Option<Owner>, guarded: &'r [(&'r Path, CreatedPathAction)] },
}

/// Parameters for joining a namespace sandbox.
#[derive(Clone, Copy)]
pub(crate) struct NamespaceJoin<'r> {
    pub(crate) users: UserNamespace,
    pub(crate) layers: ConfinementLayers,
    pub(crate) network: Network,
    pub(crate) owner: Option<Owner>,
    pub(crate) substituted: bool,
    pub(crate) directory: &'r Path,
    pub(crate) absent: &'r [(&'r Path, CreatedPathAction)],
}

/// Why a command cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpecError {
    #[error("it contains a NUL character")]
    Nul,
    #[error("with its environment it has more than {MAX_MESSAGE} bytes; write it to a file and run that")]
    TooLong,
    #[error("a path in it is not UTF-8")]
    NotText,
}

const RUN: u8 = 0;
const RUN_IN_NAMESPACES: u8 = 1;
const CREATE_NAMESPACES: u8 = 2;
const RUN_WITH_LANDLOCK: u8 = 3;
const BOUND: u8 = 4;

const ON_CREATE: [CreatedPathAction; 5] = [
    CreatedPathAction::SetAside,
    CreatedPathAction::WithoutHooks,
    CreatedPathAction::Sanitized,
    CreatedPathAction::UnlessDirectory,
    CreatedPathAction::Linking,
];

pub(crate) fn encode<'v>(
    confinement: EncodedConfinement<'_>,
    limits: &ResourceLimits,
    command: &OsStr,
    environment: impl Iterator<Item = (&'v OsStr, &'v OsStr)>,
) -> Result<Vec<u8>, SpecError> {
    let mark = match confinement {
        EncodedConfinement::Unsandboxed => RUN,
        EncodedConfinement::Namespaces(_) => RUN_IN_NAMESPACES,
        EncodedConfinement::Landlock { .. } => RUN_WITH_LANDLOCK,
    };
    let mut message = vec![mark];
    message.extend(limits.encode());
    match confinement {
        EncodedConfinement::Unsandboxed => {}
        EncodedConfinement::Namespaces(NamespaceJoin {
            users,
            layers,
            network,
            owner,
            substituted,
            directory,
            absent,
        }) => {
            let flags = u8::from(users == UserNamespace::Own)
                | u8::from(layers == ConfinementLayers::Both) << 3
                | u8::from(substituted) << 4;
            push_marks(&mut message, flags, network, owner, absent)?;
            push(&mut message, &[directory.as_os_str().as_bytes()])?;
            push_paths(&mut message, absent)?;
        }
        EncodedConfinement::Landlock { network, owner, guarded } => {
            push_marks(&mut message, 0, network, owner, guarded)?;
            push_paths(&mut message, guarded)?;
        }
    }
    push(&mut message, &[command.as_bytes()])?;
    for (name, value) in environment {
        push(&mut message, &[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    if message.len() > MAX_MESSAGE { Err(SpecError::TooLong) } else { Ok(message) }
}

/// Appends a NUL-terminated string, concatenated from its parts.
fn push(message: &mut Vec<u8>, parts: &[&[u8]]) -> Result<(), SpecError> {
    for part in parts {
        if part.contains(&0) {
            return Err(SpecError::Nul);
        }
        message.extend_from_slice(part);
    }
    message.push(0);
    Ok(())
}

fn push_marks(
    message: &mut Vec<u8>,
    flags: u8,
    network: Network,
    owner: Option<Owner>,
    paths: &[(&Path, CreatedPathAction)],
) -> Result<(), SpecError> {
    let count = u8::try_from(paths.len()).map_err(|_| SpecError::TooLong)?;
    message.extend([flags | u8::from(network.is_own()) << 1 | u8::from(owner.is_some()) << 2, count]);
    let owner = owner.map_or([0, 0], |owner| [owner.user, owner.group]);
    message.extend(owner.iter().flat_map(|number| number.to_le_bytes()));
    for (_, on_create) in paths {
        message
            .extend(ON_CREATE.iter().zip(0u8..).find(|(known, _)| *known == on_create).map(|(_, mark)| mark));
    }
    Ok(())
}

fn push_paths(message: &mut Vec<u8>, paths: &[(&Path, CreatedPathAction)]) -> Result<(), SpecError> {
    paths.iter().try_for_each(|(path, _)| push(message, &[path.as_os_str().as_bytes()]))
}

/// Encodes a request for a namespace sandbox.
pub(crate) fn encode_create_namespaces(policy: &Policy) -> Result<Vec<u8>, SpecError> {
    let mut message = vec![CREATE_NAMESPACES];
    serde_json::to_writer(&mut message, policy).map_err(|_| SpecError::NotText)?;
    if message.len() > MAX_MESSAGE { Err(SpecError::TooLong) } else { Ok(message) }
}

/// Encodes a request to limit the usage of all commands together.
pub(crate) fn encode_bounds(bounds: CgroupLimits) -> Vec<u8> {
    let numbers = [bounds.memory_bytes, bounds.tasks];
    [BOUND].into_iter().chain(numbers.into_iter().flat_map(u64::to_le_bytes)).collect()
}

pub(crate) fn decode(message: &[u8]) -> Option<DecodedRequest<'_>> {
    let (mark, rest) = message.split_first()?;
    if *mark == CREATE_NAMESPACES {
        return serde_json::from_slice(rest).ok().map(DecodedRequest::CreateNamespaces);
    }
    if *mark == BOUND {
        let (memory, rest) = rest.split_first_chunk::<8>()?;
        let tasks = rest.first_chunk::<8>()?;
        let (memory_bytes, tasks) = (u64::from_le_bytes(*memory), u64::from_le_bytes(*tasks));
        return Some(DecodedRequest::LimitAll(CgroupLimits { memory_bytes, tasks }));
    }
    let (limits, rest) = rest.split_first_chunk::<{ ResourceLimits::LENGTH }>()?;
    let (confinement, words) = match *mark {
        RUN => (DecodedConfinement::Unsandboxed, strings(rest)?),
        RUN_IN_NAMESPACES => {
            let (marks, rest) = ConfinementHeader::read(rest)?;
            let mut words = strings(rest)?;
            let directory = *words.first()?;
            words.remove(0);
            let absent = marks.paths(&mut words)?;
            let ConfinementHeader { users, layers, network, owner, substituted, .. } = marks;
            (
                DecodedConfinement::Namespaces(JoinRequest {
                    users,
                    layers,
                    network,
                    owner,
                    substituted,
                    directory,
                    absent,
                }),
                words,
            )
        }
        RUN_WITH_LANDLOCK => {
            let (marks, rest) = ConfinementHeader::read(rest)?;
            let mut words = strings(rest)?;
            let guarded = marks.paths(&mut words)?;
            let ConfinementHeader { network, owner, .. } = marks;
            (DecodedConfinement::Landlock(LandlockConfinement { network, owner, guarded }), words)
        }
        _ => return None,
    };
    let (command, environment) = words.split_first()?;
    let (limits, environment) = (ResourceLimits::decode(limits), environment.to_vec());
    Some(DecodedRequest::Run(CommandSpec { confinement, limits, command, environment }))
}

/// The header before the strings of a confined command.
struct ConfinementHeader<'m> {
    users: UserNamespace,
    layers: ConfinementLayers,
    network: Network,
    owner: Option<Owner>,
    substituted: bool,
    on_create: &'m [u8],
}

impl<'m> ConfinementHeader<'m> {
    fn read(message: &'m [u8]) -> Option<(Self, &'m [u8])> {
        let (&[flags, count], rest) = message.split_first_chunk::<2>()?;
        let (user, rest) = rest.split_first_chunk::<4>()?;
        let (group, rest) = rest.split_first_chunk::<4>()?;
        let owner = Owner { user: u32::from_le_bytes(*user), group: u32::from_le_bytes(*group) };
        let (on_create, rest) = rest.split_at_checked(usize::from(count))?;
        let marks = Self {
            users: if flags & 1 == 0 { UserNamespace::Machine } else { UserNamespace::Own },
            layers: if flags & 8 == 0 { ConfinementLayers::Namespaces } else { ConfinementLayers::Both },
            network: if flags & 2 == 0 { Network::Machine } else { Network::Own },
            owner: (flags & 4 != 0).then_some(owner),
            substituted: flags & 16 != 0,
            on_create,
        };
        Some((marks, rest))
    }

    /// Takes the paths that this header describes from the front of the strings.
    fn paths(&self, words: &mut Vec<&'m CStr>) -> Option<Vec<(&'m Path, CreatedPathAction)>> {
        let rest = words.split_off(self.on_create.len().min(words.len()));
        let path = |(mark, path): (&u8, &'m CStr)| {
            let on_create = ON_CREATE.get(usize::from(*mark)).copied()?;
            Some((Path::new(OsStr::from_bytes(path.to_bytes())), on_create))
        };
        let paths = std::mem::replace(words, rest);
        let paths: Option<Vec<_>> = self.on_create.iter().zip(paths).map(path).collect();
        paths.filter(|paths| paths.len() == self.on_create.len())
    }
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
