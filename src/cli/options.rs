//! The options that every command accepts. Doc comments are the help texts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::ArgValueCompleter;

use super::ad_hoc::AdHocServer;
use super::complete;
use super::output::streams::OutputOptions;
use super::output::{ColourChoice, Format};
use crate::assembly::{self, AssemblyOptions};
use crate::config::LoadRequest;
use crate::model::event::LOG_LEVELS;

/// The value of `--trace` that shows every message.
pub const ALL_METHODS: &str = "*";

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// Print help
    // The short form for both spellings: the long one has the same text on three times as many lines.
    #[arg(short, long, action = clap::ArgAction::HelpShort, global = true)]
    pub help: Option<bool>,
    /// Load internal tools from this file and ignore all other configuration
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub tools: Vec<PathBuf>,
    /// Add the internal tools of this file to the configuration
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub host_tools: Vec<PathBuf>,
    /// Load MCP servers from this file and ignore all other configuration
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub mcp: Vec<PathBuf>,
    /// Connect to the MCP server at this URL and ignore all configuration
    #[arg(long, value_name = "URL", global = true, value_hint = clap::ValueHint::Url)]
    pub server_url: Option<String>,
    /// The ad-hoc server, once the command line was parsed.
    #[arg(skip)]
    pub ad_hoc: Option<AdHocServer>,
    /// Print JSON; the same as -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, global = true)]
    pub output: Option<Format>,
    /// Print only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also print progress and log lines of tools and servers; repeat for more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Start servers for this run even if a background host is running
    #[arg(long, global = true)]
    pub fresh: bool,
    /// Trust the project's files for this run
    #[arg(long, global = true)]
    pub trust: bool,
    /// Ask before every call, even if the policy allows it
    #[arg(long, global = true)]
    pub ask_all: bool,
    /// Print server traffic to stderr, or only some methods: --trace='tools/*'
    #[arg(
        long,
        value_name = "METHODS",
        global = true,
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = ALL_METHODS
    )]
    pub trace: Option<Vec<String>>,
    #[command(flatten)]
    pub rare: RareOptions,
}

/// Global options that few runs need: `-h` hides them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct RareOptions {
    /// Load the typed functions of this Python module as tools and ignore all other configuration
    #[arg(long, value_name = "MODULE", global = true)]
    pub tools_module: Vec<String>,
    /// Add the typed functions of this Python module to the configuration
    #[arg(long, value_name = "MODULE", global = true)]
    pub host_tools_module: Vec<String>,
    /// Header for an ad-hoc server (repeatable); ${VAR} is expanded
    #[arg(long, value_name = "NAME: VALUE", global = true)]
    pub header: Vec<String>,
    /// Name for an ad-hoc server
    #[arg(long = "as", value_name = "NAME", global = true)]
    pub server_name: Option<String>,
    /// Limit the catalogue to this profile
    #[arg(long, value_name = "NAME", global = true, add = ArgValueCompleter::new(complete::profiles))]
    pub profile: Option<String>,
    /// Request and print log messages of servers from this level up: debug, info, notice, warning,
    /// error, critical, alert or emergency
    #[arg(long, value_name = "LEVEL", value_parser = severity(), hide_possible_values = true,
          global = true)]
    pub log_level: Option<&'static str>,
    /// Log level of toolhost itself (error, warn, info, debug, trace, off), optionally per module,
    /// such as info,mcp=debug
    #[arg(long, value_name = "FILTER", global = true)]
    pub log_filter: Option<String>,
    /// Append the log to this file instead of writing it to stderr
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub log_file: Option<PathBuf>,
    /// Log format: text or json
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, global = true)]
    pub log_format: Option<LogFormat>,
    /// When to use colour
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_default_value = true,
        global = true
    )]
    pub color: ColourChoice,
    /// Use only ASCII characters
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Disable spinners and blinking in the console
    #[arg(long, global = true)]
    pub reduced_motion: bool,
    /// Disable colour, repainting and truncation to the terminal width
    #[arg(long, global = true)]
    pub plain: bool,
    /// Fail on any problem in a configuration file
    #[arg(long, global = true)]
    pub strict: bool,
    /// Skip verification of TLS certificates for this run
    #[arg(long, global = true)]
    pub insecure: bool,
    /// Refuse calls that cannot be written to the audit log
    #[arg(long, global = true)]
    pub require_record: bool,
    /// Save all messages to and from servers to this file, for 'toolhost replay'
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub trace_save: Option<PathBuf>,
}

/// The lowest severity of log messages to show, by its name in MCP.
fn severity() -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(LOG_LEVELS).map(|name| {
        let level = LOG_LEVELS.into_iter().find(|level| *level == name);
        level.unwrap_or_default()
    })
}

/// The format of toolhost's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// One line for people: time, level, module, message, fields.
    #[default]
    Text,
    /// One JSON object a line: `timestamp`, `level`, `target`, `message` and the fields.
    Json,
}

impl GlobalOptions {
    pub fn host_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        self.tools.iter().for_each(|file| add("--tools", file.into()));
        self.rare.tools_module.iter().for_each(|module| add("--tools-module", module.into()));
        self.host_tools.iter().for_each(|file| add("--host-tools", file.into()));
        for module in &self.rare.host_tools_module {
            add("--host-tools-module", module.into());
        }
        self.mcp.iter().for_each(|file| add("--mcp", file.into()));
        self.rare.profile.iter().for_each(|profile| add("--profile", profile.into()));
        for (is_set, option) in [
            (self.rare.strict, "--strict"),
            (self.trust, "--trust"),
            (self.rare.insecure, "--insecure"),
            (self.rare.require_record, "--require-record"),
            (self.ask_all, "--ask-all"),
        ] {
            arguments.extend(is_set.then(|| option.into()));
        }
        arguments
    }

    /// The files of a run, which trusts all of them or asks.
    pub fn load_request(&self, trust_all: bool) -> LoadRequest {
        let modules = |option: &'static str, modules: &[String]| {
            modules.iter().map(|module| assembly::tools_module_file(option, module)).collect()
        };
        LoadRequest {
            tools: self.tools.clone(),
            servers: self.mcp.clone(),
            added_tools: self.host_tools.clone(),
            inline_tools: modules("--tools-module", &self.rare.tools_module),
            added_inline_tools: modules("--host-tools-module", &self.rare.host_tools_module),
            inline_servers: self.ad_hoc.iter().map(AdHocServer::file).collect(),
            command_end: self.ad_hoc.as_ref().map(|server| server.command_end.clone()),
            trust_all,
            ..LoadRequest::default()
        }
    }

    pub fn assembly_options(&self, trust_all: bool) -> AssemblyOptions {
        AssemblyOptions {
            files: self.load_request(trust_all),
            profile: self.rare.profile.clone(),
            insecure: self.rare.insecure,
            require_record: self.rare.require_record,
            ask_all: self.ask_all,
            log_level: match (self.rare.log_level, self.verbose) {
                (level @ Some(_), _) => level,
                (None, 0) => None,
                (None, 1) => Some("info"),
                (None, _) => Some("debug"),
            },
        }
    }

    /// Whether this run uses no background host: because of its options, because it traces servers
    /// or requests their log messages, or because it has an ad-hoc server.
    pub fn needs_own_servers(&self) -> bool {
        let looks = self.trace.is_some() || self.rare.trace_save.is_some();
        self.fresh || looks || self.rare.log_level.is_some() || self.ad_hoc.is_some()
    }

    pub fn output_options(&self) -> OutputOptions {
        OutputOptions {
            colour: self.rare.color,
            ascii: self.rare.ascii,
            plain: self.rare.plain,
            quiet: self.quiet,
            verbose: self.verbose,
            json: self.format() == Format::Json,
        }
    }

    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output.unwrap_or_default() }
    }
}
