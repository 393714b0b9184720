//! toolhost: one catalogue of internal tools and MCP servers.
pub mod assembly;
pub mod audit;
pub mod catalogue;
pub mod cli;
pub mod config;
pub mod host;
pub mod mcp;
pub mod model;
pub mod provider;
pub mod providers;
pub mod run;
pub mod serve;
pub mod stats;
pub mod util;
