//! toolhost: one catalogue of internal tools and MCP servers.
pub mod catalogue;
pub mod config;
pub mod host;
pub mod mcp;
pub mod model;
pub mod provider;
pub mod providers;
pub mod serve;
pub mod util;
