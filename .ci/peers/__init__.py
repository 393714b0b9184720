"""Real MCP servers, and what toolhost is asked to do with them. `.ci/interop` runs it."""
