//! What a program could reach besides its granted resources, as worded by `inspect`.

use strum::VariantArray;

/// One thing that a sandbox keeps or leaves open, in the order they are listed in. Which of the two
/// it is follows from the mechanisms of a level (see [`super::coverage()`]); here are only the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub(super) enum SandboxSubject {
    Files,
    /// Permissions, owners, times and attributes of files.
    Metadata,
    Memory,
    /// Limits, priorities and processors of other processes.
    Scheduling,
    Signals,
    /// What `/proc` tells about other processes.
    ProcessDetails,
    SharedMemory,
    Network,
    UnixSockets,
    AbstractSockets,
    Mounts,
    Keyrings,
    KernelInterfaces,
    FileExistence,
    ProcessIds,
    Locks,
    Kernel,
}

impl SandboxSubject {
    pub(super) fn protected_text(self) -> &'static str {
        match self {
            Self::Files => "other files",
            Self::Metadata => "permissions, owners, times and attributes of other files",
            Self::FileExistence => "which other files exist",
            Self::Locks => "locks on files it can read",
            Self::Memory => "memory and descriptors of other processes",
            Self::Scheduling => "limits and priorities of other processes",
            Self::Signals => "signals to other processes",
            Self::ProcessDetails => "/proc of other processes",
            Self::ProcessIds => "which other processes exist",
            Self::SharedMemory => "System V memory and semaphores, message queues",
            Self::Network => "the network",
            Self::UnixSockets => "Unix sockets by path",
            Self::AbstractSockets => "abstract Unix sockets",
            Self::Mounts => "mounts and user namespaces",
            Self::Keyrings => "the kernel's keyrings",
            Self::KernelInterfaces => "io_uring, bpf, perf events and userfaultfd",
            Self::Kernel => "flaws of the kernel",
        }
    }

    pub(super) fn open_text(self) -> &'static str {
        match self {
            Self::Files => "every file that you may read or change",
            Self::Metadata => "permissions, owners, times and attributes of all your files",
            Self::FileExistence => {
                "whether any file exists, its size and times, and when it changes (not what it holds)"
            }
            Self::Locks => "advisory locks on the files that it can read",
            Self::Memory => "memory and descriptors of your other processes",
            Self::Scheduling => "limits and priorities of your other processes",
            Self::Signals => "signals to your other processes",
            Self::ProcessDetails => "environment and command line of your other processes",
            Self::ProcessIds => {
                "which processes exist and whose they are (not what they were started with)"
            }
            Self::SharedMemory => "System V memory and semaphores, and message queues",
            Self::Network => "the network, with the services of this machine",
            Self::UnixSockets => {
                "Unix sockets of your other programs by path, such as the session bus"
            }
            Self::AbstractSockets => "abstract Unix sockets of your other programs",
            Self::Mounts => "mounts in its own user namespaces",
            Self::Keyrings => "the kernel's keyrings of your session",
            Self::KernelInterfaces => "io_uring, bpf, perf events and userfaultfd",
            Self::Kernel => "flaws of the kernel in the calls that are allowed",
        }
    }
}
