//! Pipelines on a made-up caller.
