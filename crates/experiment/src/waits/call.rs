//! The cause of a blocked thread, from `/proc/PID/task/TID/syscall` (proc(5)) or `wchan`.

use recording::WaitKind;

/// A blocked thread at one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    pub(super) kind: WaitKind,
    /// The system call, with the cause if it has several.
    pub(super) place: String,
}

/// A wait for sockets with a time limit up to this length may end by its timer. Servers use longer limits to
/// close idle connections.
const TIMER_MS_MAX: u64 = 1000;

/// The wait of a thread. `None` if it runs or is gone. `read` returns the text of a file of the thread.
pub(super) fn blocked(read: impl Fn(&str) -> Option<String>) -> Option<Blocked> {
    match read("syscall") {
        Some(line) => of_syscall(&line),
        None => of_wchan(read("wchan")?.trim()),
    }
}

/// The numbers of the system calls that block, with their names.
#[cfg(target_arch = "x86_64")]
const CALLS: [(u64, &str); 38] = [
    (0, "read"),
    (1, "write"),
    (7, "poll"),
    (17, "pread64"),
    (18, "pwrite64"),
    (19, "readv"),
    (20, "writev"),
    (23, "select"),
    (34, "pause"),
    (35, "nanosleep"),
    (42, "connect"),
    (43, "accept"),
    (44, "sendto"),
    (45, "recvfrom"),
    (46, "sendmsg"),
    (47, "recvmsg"),
    (61, "wait4"),
    (73, "flock"),
    (74, "fsync"),
    (75, "fdatasync"),
    (128, "rt_sigtimedwait"),
    (130, "rt_sigsuspend"),
    (202, "futex"),
    (208, "io_getevents"),
    (220, "semtimedop"),
    (230, "clock_nanosleep"),
    (232, "epoll_wait"),
    (247, "waitid"),
    (257, "openat"),
    (270, "pselect6"),
    (271, "ppoll"),
    (281, "epoll_pwait"),
    (288, "accept4"),
    (299, "recvmmsg"),
    (307, "sendmmsg"),
    (426, "io_uring_enter"),
    (441, "epoll_pwait2"),
    (449, "futex_waitv"),
];

/// The numbers of the system calls that block, with their names.
#[cfg(not(target_arch = "x86_64"))]
const CALLS: [(u64, &str); 32] = [
    (4, "io_getevents"),
    (22, "epoll_pwait"),
    (32, "flock"),
    (56, "openat"),
    (63, "read"),
    (64, "write"),
    (65, "readv"),
    (66, "writev"),
    (67, "pread64"),
    (68, "pwrite64"),
    (72, "pselect6"),
    (73, "ppoll"),
    (82, "fsync"),
    (83, "fdatasync"),
    (95, "waitid"),
    (98, "futex"),
    (101, "nanosleep"),
    (115, "clock_nanosleep"),
    (133, "rt_sigsuspend"),
    (137, "rt_sigtimedwait"),
    (192, "semtimedop"),
    (202, "accept"),
    (203, "connect"),
    (206, "sendto"),
    (207, "recvfrom"),
    (211, "sendmsg"),
    (212, "recvmsg"),
    (242, "accept4"),
    (243, "recvmmsg"),
    (260, "wait4"),
    (426, "io_uring_enter"),
    (441, "epoll_pwait2"),
];

fn of_syscall(line: &str) -> Option<Blocked> {
    let mut words = line.split_ascii_whitespace();
    // `running`, or -1 if the thread is blocked outside of a system call.
    let number: u64 = words.next()?.parse().ok()?;
    let arguments: Vec<u64> = words.map_while(hexadecimal).collect();
    let Some((_, name)) = CALLS.iter().find(|(known, _)| *known == number) else {
        return Some(Blocked {
            kind: WaitKind::Other,
            place: format!("system call {number}"),
        });
    };
    let (kind, place) = match *name {
        "futex" => of_futex(&arguments),
        name => (of_name(name, &arguments), name),
    };
    Some(Blocked {
        kind,
        place: place.to_owned(),
    })
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn of_name(name: &str, arguments: &[u64]) -> WaitKind {
    // The time limit in milliseconds. No limit is -1, which fills the 64 bits in some kernels only.
    let is_short = |index: usize| {
        let limit = arguments.get(index).map(|limit| limit & 0xffff_ffff);
        limit.is_some_and(|limit| limit <= TIMER_MS_MAX)
    };
    match name {
        "nanosleep" | "clock_nanosleep" => WaitKind::Timer,
        "epoll_wait" | "epoll_pwait" if is_short(3) => WaitKind::TimedInput,
        "poll" if is_short(2) => WaitKind::TimedInput,
        "connect" => WaitKind::Connect,
        "flock" => WaitKind::Lock,
        "fsync" | "fdatasync" | "pread64" | "pwrite64" | "openat" | "io_getevents" => {
            WaitKind::File
        }
        "futex_waitv" | "semtimedop" => WaitKind::Thread,
        "wait4" | "waitid" | "pause" | "rt_sigtimedwait" | "rt_sigsuspend" => WaitKind::Other,
        _ => WaitKind::Input,
    }
}

/// A mutex of glibc, of Rust and of Go has the value 2 while a thread waits for it. musl sets the highest bit
/// of `EBUSY`. Condition variables and parked threads wait with other values.
fn of_futex(arguments: &[u64]) -> (WaitKind, &'static str) {
    const CONTENDED: u64 = 2;
    const CONTENDED_MUSL: u64 = 0x8000_0010;
    // Without the flags for private futexes and for the clock.
    let operation = arguments.get(1).map_or(0, |operation| operation & 0x7f);
    let value = arguments.get(2).map(|value| value & 0xffff_ffff);
    let is_contended = value.is_some_and(|it| it == CONTENDED || it == CONTENDED_MUSL);
    match operation {
        // FUTEX_WAIT and FUTEX_WAIT_BITSET.
        0 | 9 if is_contended => (WaitKind::Lock, "futex (lock)"),
        // FUTEX_LOCK_PI and FUTEX_LOCK_PI2.
        6 | 13 => (WaitKind::Lock, "futex (lock)"),
        _ => (WaitKind::Thread, "futex (another thread)"),
    }
}

/// The wait by the name of the kernel's function, without arguments. A lock and a condition variable look the
/// same there.
fn of_wchan(function: &str) -> Option<Blocked> {
    // An empty text or 0: it runs, or the kernel hides the name.
    if function.is_empty() || function == "0" {
        return None;
    }
    let kinds = [
        ("nanosleep", WaitKind::Timer),
        ("futex", WaitKind::Thread),
        ("connect", WaitKind::Connect),
        ("poll", WaitKind::Input),
        ("select", WaitKind::Input),
        ("sk_wait", WaitKind::Input),
        ("recv", WaitKind::Input),
        ("accept", WaitKind::Input),
        ("pipe", WaitKind::Input),
        ("io_schedule", WaitKind::File),
        ("folio_wait", WaitKind::File),
    ];
    let mut kinds = kinds.into_iter();
    let found = kinds.find(|(part, _)| function.contains(part));
    Some(Blocked {
        kind: found.map_or(WaitKind::Other, |(_, kind)| kind),
        place: function.to_owned(),
    })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[track_caller]
    fn is(line: &str, kind: WaitKind, place: &str) {
        let place = place.to_owned();
        assert_eq!(of_syscall(line), Some(Blocked { kind, place }), "{line}");
    }

    #[test]
    fn a_system_call_and_its_arguments_tell_the_cause() {
        is(
            "230 0x1 0x0 0x7ffd 0x7ffd 0x0 0x0 0x7ffd 0x7fc5",
            WaitKind::Timer,
            "clock_nanosleep",
        );
        is(
            "202 0x7f 0x80 0x2 0x0 0 0 0",
            WaitKind::Lock,
            "futex (lock)",
        );
        is(
            "202 0x7f 0x89 0x2 0x0 0x0 0xffffffff 0x7f 0x7f",
            WaitKind::Lock,
            "futex (lock)",
        );
        is(
            "202 0x7f 0x89 0xffffffff 0x0 0x0 0xffffffff 0x7f 0x7f",
            WaitKind::Thread,
            "futex (another thread)",
        );
        is("42 0x5 0x7f 0x10 0x0 0x0 0x0", WaitKind::Connect, "connect");
        is("999 0x5", WaitKind::Other, "system call 999");
        assert_eq!(of_syscall("running\n"), None);
        assert_eq!(of_syscall("-1 0x7ffd 0x7fc5"), None);
        assert_eq!(of_syscall(""), None);
    }

    #[test]
    fn a_short_time_limit_may_be_a_timer_and_a_missing_one_is_input() {
        for (limit, kind) in [
            ("0x5", WaitKind::TimedInput),
            ("0x3e8", WaitKind::TimedInput),
            ("0x3e9", WaitKind::Input),
            ("0xffffffff", WaitKind::Input),
            ("0xffffffffffffffff", WaitKind::Input),
        ] {
            let line = format!("232 0x4 0x7f 0x400 {limit} 0x0 0x0");
            is(&line, kind, "epoll_wait");
        }
    }

    #[test]
    fn without_the_system_call_the_kernel_function_tells_a_part() {
        let read = |file: &str| (file == "wchan").then(|| "futex_do_wait".to_owned());
        let found = blocked(read).unwrap();
        assert_eq!(found.kind, WaitKind::Thread);
        assert_eq!(
            blocked(|file| (file == "wchan").then(|| "0".to_owned())),
            None
        );
        assert_eq!(blocked(|_| None), None);
    }
}
