//! A system timer registered with the runtime as an input.

use std::io;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

#[derive(Debug)]
pub(super) struct Timer {
    /// No pipe, but read like one: eight bytes come when the time has.
    fd: Receiver,
    armed: Option<Instant>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { fd: Receiver::from_owned_fd_unchecked(fd)?, armed: None })
    }

    pub(super) async fn wait(&mut self, moment: Instant, left: Duration) -> io::Result<()> {
        // In a loop that is woken by other things the same moment is asked for again and again.
        if self.armed != Some(moment) {
            self.arm(left)?;
            self.armed = Some(moment);
        }
        loop {
            self.fd.readable().await?;
            match self.fd.try_read(&mut [0; 8]) {
                Ok(_expirations) => {
                    self.armed = None;
                    return Ok(());
                }
                // It was ready for a moment that is no longer needed.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn arm(&self, left: Duration) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Itimerspec { it_interval, it_value };
        let _before = timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }
}
