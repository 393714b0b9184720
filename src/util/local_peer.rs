//! What two processes on one machine know of each other without a message.
//!
//! Owns: a clock that both read alike, and whether the other end of a socket has read what was sent. Never
//! does: connect or send.
#![expect(unsafe_code, reason = "no library asks a socket what was not read yet")]

use std::os::fd::{AsFd, AsRawFd as _};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since this machine was started, without the time it slept: the same in all processes.
pub fn monotonic_time() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::try_from(time).unwrap_or_default()
}

/// Whether the other end of a Unix socket has not read everything that was sent to it. `false` where
/// the system does not tell.
pub fn has_unread(socket: impl AsFd) -> bool {
    let mut count: libc::c_int = 0;
    if !cfg!(target_os = "linux") {
        return false;
    }
    // SAFETY: the descriptor is open, as it is borrowed, and the kernel writes one integer.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut count) };
    asked == 0 && count > 0
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_sent_is_unread_until_all_of_it_was_read() {
        let (mut one, mut other) = UnixStream::pair().unwrap();
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
