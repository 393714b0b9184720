//! End-to-end tests: the built binary against real processes, sockets and terminals.
//!
//! One binary with a module for each topic. Every run happens in a sealed room (see
//! [`support::Sandbox`]) and is held to the invariants of [`support::Finished`].
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "test code outside of #[test] functions fails by panicking, and measures real time"
)]

mod ad_hoc;
mod approval;
mod attempts;
mod audit;
mod background;
mod beginnings;
mod behaviours;
mod bench;
mod builtins;
mod call_context;
mod call_rules;
mod catalogues;
mod classes;
mod closing;
mod completion;
mod connecting;
mod consent_attacks;
mod consent_matrix;
mod consent_questions;
mod console;
mod credentials;
mod curl;
mod deploy;
mod documents;
mod eras;
mod examples;
mod faults;
mod files;
mod fixture;
mod floors;
mod formats;
mod history;
mod host_tools;
mod hostile;
mod hostile_api;
mod hostile_text;
mod http;
mod json_schemas;
#[cfg(feature = "keyring")]
mod keychain;
mod library;
mod local_faults;
mod local_trust;
mod logins;
mod misspelled_keys;
mod named_files;
mod names;
mod offers;
mod own_log;
mod pages;
mod pins;
mod pipelines;
mod private_files;
mod processes;
mod profiles;
mod projects;
mod promises;
mod python;
mod questions;
mod records;
mod room;
mod sandbox;
mod secret_references;
mod secrets;
mod serve;
mod servers;
mod special_files;
mod stats;
mod storage;
mod suites;
mod support;
#[cfg(feature = "otel")]
mod telemetry;
mod terminal;
mod tls;
mod tracing;
mod transports;
