//! `toolhost init`: creating example configuration files.

use super::prelude::*;
use crate::util::atomic_file::{self, FileMode};
use crate::util::private_file;

const TOOLS: &str = include_str!("init_tools.yaml");
const SERVERS: &str = include_str!("init_mcp.yaml");

/// Create tools.yaml and mcp.yaml with examples.
///
/// Writes to the current directory, or with --user to your configuration directory. Existing files
/// are never replaced.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Create them in your configuration directory
    #[arg(long)]
    pub user: bool,
}

pub async fn run(args: &InitArgs, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    let directory = if args.user {
        let own = context.environment.config_dir();
        own.ok_or_else(|| Error::config("there is no configuration directory"))?
    } else {
        context.environment.cwd()
    };
    for stem in ["tools", "mcp"] {
        let names = ["yaml", "yml", "json"].map(|extension| format!("{stem}.{extension}"));
        if let Some(there) = names
            .iter()
            .map(|name| directory.join(name))
            .find(|path| path.symlink_metadata().is_ok())
        {
            return Err(Error::usage(format!("{} already exists", there.display()))
                .with_hint("nothing was written; 'toolhost add' adds a server to mcp.yaml")
                .into());
        }
    }
    if args.user {
        private_file::make_directory(&directory).map_err(|why| {
            Error::internal(format!("cannot create {}: {why}", directory.display()))
        })?;
    }
    for (name, text) in [("tools.yaml", TOOLS), ("mcp.yaml", SERVERS)] {
        let path = directory.join(name);
        atomic_file::replace(&path, text.as_bytes(), FileMode::Kept(0o644))
            .map_err(|why| Error::internal(format!("cannot write {}: {why}", path.display())))?;
        context.output.note(done("wrote ", path.display().to_string()));
    }
    context.output.note(hint("try it: toolhost call calculator expression=6*7"));
    Ok(())
}
