//! Lanes against real sockets.
