//! What two processes on one machine know of each other without a message.

use std::os::fd::AsFd;
use std::time::Duration;

/// The time since this machine was started, without the time it slept: the same in all processes.
pub fn monotonic_time() -> Duration {
    system::monotonic_time()
}

/// Whether the other end of a Unix socket has not read everything that was sent to it. `false` where
/// the system does not tell.
pub fn has_unread(socket: impl AsFd) -> bool {
    system::unread_bytes(socket.as_fd()).is_some_and(|bytes| bytes > 0)
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "no library asks a socket, and rustix's way to the clock fails in valgrind"
)]
mod system {
    use std::os::fd::{AsRawFd as _, BorrowedFd};
    use std::time::Duration;

    pub(super) fn monotonic_time() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one value. It has this clock, so it always does.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        let seconds = Duration::from_secs(time.tv_sec.unsigned_abs());
        seconds + Duration::from_nanos(time.tv_nsec.unsigned_abs())
    }

    pub(super) fn unread_bytes(socket: BorrowedFd<'_>) -> Option<libc::c_int> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the descriptor is open, as it is borrowed, and the kernel writes one integer.
        let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        (status == 0).then_some(bytes)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::os::fd::BorrowedFd;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn monotonic_time() -> Duration {
        clock_gettime(ClockId::Monotonic).try_into().unwrap_or_default()
    }

    pub(super) fn unread_bytes(_socket: BorrowedFd<'_>) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_sent_is_unread_until_all_of_it_was_read() {
        use std::io::{Read as _, Write as _};
        let (mut one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!has_unread(&one));
        one.write_all(b"a line\n").unwrap();
        assert!(has_unread(&one) && !has_unread(&other));
        other.read_exact(&mut [0; 3]).unwrap();
        assert!(has_unread(&one), "only its beginning was read");
        other.read_exact(&mut [0; 4]).unwrap();
        assert!(!has_unread(&one));
    }

    #[test]
    fn the_clock_does_not_run_backwards() {
        let before = monotonic_time();
        assert!(before > Duration::ZERO && monotonic_time() >= before);
    }
}
