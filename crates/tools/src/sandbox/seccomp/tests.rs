//! Verdicts of the filter, found by interpreting it as the kernel does.

use super::*;

/// Result of the filter for a call.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Answered(i32),
}

fn verdict(sockets: AllowedSockets, architecture: u32, call: c_long, arguments: [u64; 6]) -> Verdict {
    let mut data = Vec::new();
    data.extend(number(call).to_ne_bytes());
    data.extend(architecture.to_ne_bytes());
    data.extend(0u64.to_ne_bytes());
    for argument in arguments {
        data.extend(argument.to_ne_bytes());
    }
    let program = filter(sockets);
    let (mut accumulator, mut at) = (0u32, 0usize);
    loop {
        let step = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
        match step.code {
            0x20 => {
                let from = usize::try_from(step.k).unwrap();
                accumulator = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
            }
            0x15 => at += jump(accumulator == step.k),
            0x35 => at += jump(accumulator >= step.k),
            0x45 => at += jump(accumulator & step.k != 0),
            0x54 => accumulator &= step.k,
            0x06 if step.k == libc::SECCOMP_RET_ALLOW => return Verdict::Allowed,
            0x06 => {
                assert_eq!(step.k & !libc::SECCOMP_RET_DATA, libc::SECCOMP_RET_ERRNO);
                return Verdict::Answered((step.k & libc::SECCOMP_RET_DATA).cast_signed());
            }
            other => panic!("an instruction that is not known here: {other:#x}"),
        }
    }
}

fn native(call: c_long, arguments: &[u64]) -> Verdict {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    verdict(AllowedSockets::Namespaced, NATIVE, call, all)
}

fn fenced(sockets: AllowedSockets, call: c_long, arguments: [u64; 2]) -> Verdict {
    let [first, second] = arguments;
    verdict(sockets, NATIVE, call, [first, second, 0, 0, 0, 0])
}

#[test]
fn ordinary_calls_are_allowed() {
    for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_ptrace, libc::SYS_mkdirat, libc::SYS_futex] {
        assert_eq!(native(call, &[]), Verdict::Allowed, "{call}");
    }
    assert_eq!(native(libc::SYS_clone, &[u64::from(libc::SIGCHLD.cast_unsigned())]), Verdict::Allowed);
    assert_eq!(native(libc::SYS_ioctl, &[1, 0x5413]), Verdict::Allowed);
}

#[test]
fn refused_calls_are_answered() {
    for &call in REFUSED {
        assert_eq!(native(call, &[]), Verdict::Answered(EPERM), "{call}");
    }
    for &call in ENOSYS_CALLS {
        assert_eq!(native(call, &[]), Verdict::Answered(ENOSYS), "{call}");
    }
}

#[test]
fn another_machines_calls_are_unknown() {
    assert_eq!(
        verdict(AllowedSockets::Namespaced, 0x4000_0003, libc::SYS_read, [0; 6]),
        Verdict::Answered(ENOSYS)
    );
    #[cfg(target_arch = "x86_64")]
    assert_eq!(native(0x4000_0000 + libc::SYS_read, &[]), Verdict::Answered(ENOSYS));
}

#[test]
fn no_call_makes_a_file_that_runs_as_its_owner() {
    for &(call, index) in MODE_CALLS {
        let mut arguments = [0; 6];
        arguments[usize::try_from(index).unwrap()] = 0o755;
        assert_eq!(verdict(AllowedSockets::Namespaced, NATIVE, call, arguments), Verdict::Allowed, "{call}");
        arguments[usize::try_from(index).unwrap()] = 0o4755;
        assert_eq!(
            verdict(AllowedSockets::Namespaced, NATIVE, call, arguments),
            Verdict::Answered(EPERM),
            "{call}"
        );
    }
    let create = u64::from(libc::O_CREAT.cast_unsigned());
    let unnamed = u64::from(libc::O_TMPFILE.cast_unsigned());
    assert_eq!(native(libc::SYS_openat, &[0, 0, create, 0o644]), Verdict::Allowed);
    assert_eq!(native(libc::SYS_openat, &[0, 0, create, 0o4755]), Verdict::Answered(EPERM));
    assert_eq!(native(libc::SYS_openat, &[0, 0, unnamed, 0o4755]), Verdict::Answered(EPERM));
    // No file is created, so the value in place of the mode has no meaning.
    assert_eq!(native(libc::SYS_openat, &[0, 0, 0, 0o4755]), Verdict::Allowed);
    let directory = u64::from(libc::O_DIRECTORY.cast_unsigned());
    assert_eq!(native(libc::SYS_openat, &[0, 0, directory, 0o4755]), Verdict::Allowed);
}

/// Abstract sockets belong to the network namespace, so they are the machine's if commands have its network.
#[test]
fn with_the_machines_network_there_are_only_connected_unix_sockets() {
    let sockets = AllowedSockets::NamespacedWithoutUnix;
    let unix = u64::from(libc::AF_UNIX.cast_unsigned());
    let [stream, datagram] =
        [libc::SOCK_STREAM, libc::SOCK_DGRAM].map(|kind| u64::from(kind.cast_unsigned()));
    assert_eq!(fenced(sockets, libc::SYS_socket, [unix, stream]), Verdict::Answered(EAFNOSUPPORT));
    assert_eq!(fenced(sockets, libc::SYS_socketpair, [unix, stream]), Verdict::Allowed);
    assert_eq!(fenced(sockets, libc::SYS_socketpair, [unix, datagram]), Verdict::Answered(EAFNOSUPPORT));
    let internet = u64::from(libc::AF_INET.cast_unsigned());
    assert_eq!(fenced(sockets, libc::SYS_socket, [internet, stream]), Verdict::Allowed);
    // The namespaces confine these.
    assert_eq!(fenced(sockets, libc::SYS_shmget, [0, 0]), Verdict::Allowed);
}

#[test]
fn only_sockets_that_know_namespaces_can_be_had() {
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        let family = u64::from(family.cast_unsigned());
        assert_eq!(native(libc::SYS_socket, &[family]), Verdict::Allowed, "{family}");
    }
    for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH, libc::AF_TIPC] {
        let family = u64::from(family.cast_unsigned());
        assert_eq!(native(libc::SYS_socket, &[family]), Verdict::Answered(EAFNOSUPPORT), "{family}");
    }
    assert_eq!(native(libc::SYS_socketpair, &[1]), Verdict::Allowed);
}

#[test]
fn behind_a_fence_sockets_lead_to_each_other_or_to_the_network_but_never_to_a_path() {
    let family = |family: i32| u64::from(family.cast_unsigned());
    let stream = u64::from((libc::SOCK_STREAM | libc::SOCK_CLOEXEC).cast_unsigned());
    let datagrams = u64::from((libc::SOCK_DGRAM | libc::SOCK_NONBLOCK).cast_unsigned());
    let refused = Verdict::Answered(EAFNOSUPPORT);
    for (sockets, network) in
        [(AllowedSockets::Pairs, &refused), (AllowedSockets::PairsAndNetwork, &Verdict::Allowed)]
    {
        for known in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
            assert_eq!(&fenced(sockets, libc::SYS_socket, [family(known), stream]), network, "{known}");
        }
        for unknown in [libc::AF_UNIX, libc::AF_VSOCK, libc::AF_PACKET] {
            assert_eq!(fenced(sockets, libc::SYS_socket, [family(unknown), stream]), refused, "{unknown}");
        }
        let local = family(libc::AF_UNIX);
        assert_eq!(fenced(sockets, libc::SYS_socketpair, [local, stream]), Verdict::Allowed);
        assert_eq!(fenced(sockets, libc::SYS_socketpair, [local, datagrams]), refused);
        assert_eq!(fenced(sockets, libc::SYS_socketpair, [family(libc::AF_TIPC), stream]), refused);
        for &call in IPC_CALLS {
            assert_eq!(fenced(sockets, call, [0, 0]), Verdict::Answered(ENOSYS), "{call}");
            assert_eq!(native(call, &[]), Verdict::Allowed, "{call}");
        }
    }
}

#[test]
fn nobody_types_into_a_terminal_or_makes_namespaces() {
    assert_eq!(native(libc::SYS_ioctl, &[0, 0x5412]), Verdict::Answered(EPERM));
    // The kernel reads only the low half of a request, and so does the filter.
    assert_eq!(native(libc::SYS_ioctl, &[0, 0x1_0000_5412]), Verdict::Answered(EPERM));
    assert_eq!(native(libc::SYS_clone, &[0x1000_0011]), Verdict::Answered(EPERM));
}

#[test]
fn every_call_is_decided_in_a_few_steps_and_no_jump_is_cut_short() {
    for sockets in [
        AllowedSockets::Namespaced,
        AllowedSockets::NamespacedWithoutUnix,
        AllowedSockets::Pairs,
        AllowedSockets::PairsAndNetwork,
    ] {
        let rules = rules(sockets);
        assert!(rules.windows(2).all(|pair| pair[0].0 < pair[1].0), "each call has one rule");
        for part in rules.chunks(CHUNK_LEN) {
            let steps: usize = part.iter().map(|(_, steps)| steps.len() + 1).sum();
            assert!(steps < usize::from(u8::MAX), "{steps}");
        }
        for call in 0..512 {
            fenced(sockets, call, [0, 0]);
        }
    }
}
