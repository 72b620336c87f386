//! Messages decode to what was encoded.

use std::ffi::OsStr;

use proptest::prelude::*;

use super::*;
use crate::sandbox::error::SetupStep;
use crate::sandbox::fork_server::exit_report::ExitReport;
use crate::sandbox::protected_paths::report::ProtectionReport;
use crate::sandbox::{CommandEnd, ExceededLimit};

fn environment_of(spec: &CommandSpec<'_>) -> Vec<String> {
    spec.environment.iter().map(|pair| pair.to_str().unwrap().to_owned()).collect()
}

proptest! {
    #[test]
    fn a_spec_survives_the_way(command in "[^\0]{0,40}", variables in proptest::collection::vec(("[A-Z_]{1,8}", "[^\0]{0,20}"), 0..5)) {
        let pairs = variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let message = encode(EncodedConfinement::Unsandboxed, &ResourceLimits::default(), OsStr::new(&command), pairs).unwrap();
        let Some(DecodedRequest::Run(spec)) = decode(&message) else { panic!("not a command") };
        prop_assert!(matches!(spec.confinement, DecodedConfinement::Unsandboxed));
        prop_assert_eq!(spec.command.to_str().unwrap(), command);
        prop_assert_eq!(environment_of(&spec), variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_way_into_a_room_survives_the_way(
        own_users in any::<bool>(),
        both in any::<bool>(),
        substituted in any::<bool>(),
        own_network in any::<bool>(),
        owner in any::<Option<(u32, u32)>>(),
        directory in "/[^\0]{0,20}",
        absent in proptest::collection::vec(("/[^\0]{0,20}", 0usize..4), 0..5),
    ) {
        let absent: Vec<(&Path, CreatedPathAction)> =
            absent.iter().map(|(path, on_create)| (Path::new(path), ON_CREATE[*on_create])).collect();
        let users = if own_users { UserNamespace::Own } else { UserNamespace::Machine };
        let network = if own_network { Network::Own } else { Network::Machine };
        let owner = owner.map(|(user, group)| Owner { user, group });
        let layers = if both { ConfinementLayers::Both } else { ConfinementLayers::Namespaces };
        let confinement = NamespaceJoin { users, layers, network, owner, substituted, directory: Path::new(&directory), absent: &absent };
        let message = encode(EncodedConfinement::Namespaces(confinement), &ResourceLimits { cpu_s: 7, ..ResourceLimits::default() }, OsStr::new("true"), [(OsStr::new("A"), OsStr::new("b"))].into_iter()).unwrap();
        let Some(DecodedRequest::Run(spec)) = decode(&message) else { panic!("not a command") };
        let DecodedConfinement::Namespaces(entrance) = &spec.confinement else { panic!("not namespaces") };
        prop_assert_eq!((entrance.users, entrance.layers), (users, layers));
        prop_assert_eq!(entrance.substituted, substituted);
        prop_assert_eq!(entrance.network, network);
        prop_assert_eq!(entrance.owner, owner);
        prop_assert_eq!(entrance.directory.to_str().unwrap(), directory);
        prop_assert_eq!(&entrance.absent, &absent);
        prop_assert_eq!(spec.limits.cpu_s, 7);
        prop_assert_eq!(spec.command.to_str().unwrap(), "true");
        prop_assert_eq!(environment_of(&spec), ["A=b"]);
    }

    #[test]
    fn a_way_behind_a_fence_survives_the_way(
        own_network in any::<bool>(),
        owner in any::<Option<(u32, u32)>>(),
        guarded in proptest::collection::vec(("/[^\0]{0,20}", 0usize..4), 0..5),
    ) {
        let guarded: Vec<(&Path, CreatedPathAction)> =
            guarded.iter().map(|(path, on_create)| (Path::new(path), ON_CREATE[*on_create])).collect();
        let network = if own_network { Network::Own } else { Network::Machine };
        let owner = owner.map(|(user, group)| Owner { user, group });
        let confinement = EncodedConfinement::Landlock { network, owner, guarded: &guarded };
        let message = encode(confinement, &ResourceLimits { cpu_s: 7, ..ResourceLimits::default() }, OsStr::new("true"), [(OsStr::new("A"), OsStr::new("b"))].into_iter()).unwrap();
        let Some(DecodedRequest::Run(spec)) = decode(&message) else { panic!("not a command") };
        let DecodedConfinement::Landlock(confinement) = &spec.confinement else { panic!("not Landlock") };
        prop_assert_eq!((confinement.network, confinement.owner, &confinement.guarded), (network, owner, &guarded));
        prop_assert_eq!((spec.limits.cpu_s, spec.command.to_str().unwrap()), (7, "true"));
        prop_assert_eq!(environment_of(&spec), ["A=b"]);
    }

    #[test]
    fn no_message_makes_decoding_panic(message in any::<Vec<u8>>()) {
        let _ = (decode(&message), ExitReport::decode(&message));
    }

    #[test]
    fn a_report_survives_the_way(code in any::<i32>(), killed_leftovers in any::<u32>(), unkillable in any::<u32>(), step in 0u32..20) {
        let found = ProtectionReport {
            reverted: vec!["/w/fusee.toml".into(), "/w/n/.git/config".into()],
            unrestored: vec![("/w/.git/commondir".into(), "Permission denied".to_owned())],
        };
        for (protection, exceeded) in [(ProtectionReport::default(), None), (found, Some(ExceededLimit::Memory))] {
            for report in [
                ExitReport::NotStarted(code),
                ExitReport::NotConfined(SetupStep::from_number(step).unwrap(), code),
                ExitReport::Ended { ending: CommandEnd::Exited(code), killed_leftovers, unkillable, protection: protection.clone(), exceeded },
                ExitReport::Ended { ending: CommandEnd::Signalled(code), killed_leftovers, unkillable, protection: protection.clone(), exceeded },
            ] {
                prop_assert_eq!(ExitReport::decode(&report.encode()), Some(report));
            }
        }
    }
}

#[test]
fn a_policy_survives_the_way() {
    let policy = Policy { read: vec!["/usr".into()], network: Network::Machine, ..Policy::default() };
    let message = encode_create_namespaces(&policy).unwrap();
    let Some(DecodedRequest::CreateNamespaces(received)) = decode(&message) else { panic!("not namespaces") };
    assert_eq!(received, policy);
}

#[test]
fn bounds_survive_the_way() {
    let bounds = CgroupLimits { memory_bytes: u64::MAX - 1, tasks: 0x0102_0304 };
    assert!(
        matches!(decode(&encode_bounds(bounds)), Some(DecodedRequest::LimitAll(received)) if received == bounds)
    );
}

#[test]
fn what_cannot_be_sent_is_refused() {
    assert_eq!(
        encode(
            EncodedConfinement::Unsandboxed,
            &ResourceLimits::default(),
            OsStr::new("a\0b"),
            [].into_iter()
        ),
        Err(SpecError::Nul)
    );
    assert_eq!(
        encode(
            EncodedConfinement::Unsandboxed,
            &ResourceLimits::default(),
            OsStr::new(&"x".repeat(MAX_MESSAGE)),
            [].into_iter()
        ),
        Err(SpecError::TooLong)
    );
    let odd = Policy { read: vec![OsStr::from_bytes(b"/\xff").into()], ..Policy::default() };
    assert_eq!(encode_create_namespaces(&odd), Err(SpecError::NotText));
}
