//! The options that every command accepts. Doc comments are the help texts.
//!
//! Never does: know a command.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::ad_hoc::AdHocServer;
use super::complete;
use super::output::streams::OutputOptions;
use super::output::{ColourChoice, Format};

/// The value of `--trace` that shows every message.
pub const ALL_METHODS: &str = "*";

/// Options of every command, without those that few runs need.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalOptions {
    /// Print help
    // The short form for both spellings: the long one says the same on three times as many lines.
    #[arg(short, long, action = clap::ArgAction::HelpShort, global = true)]
    pub help: Option<bool>,
    /// Read internal tools from this file, and look for no other configuration
    #[arg(long, alias = "host-tools", value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub tools: Vec<PathBuf>,
    /// Read MCP servers from this file, and look for no other configuration
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub mcp: Vec<PathBuf>,
    /// Use the MCP server at this URL, which is in no file, and look for no other configuration
    #[arg(long, value_name = "URL", global = true, value_hint = clap::ValueHint::Url)]
    pub server_url: Option<String>,
    /// The server that is in no file, once the command line was read.
    #[arg(skip)]
    pub ad_hoc: Option<AdHocServer>,
    /// Print JSON; the same as -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// Print in this format
    #[arg(short, long, value_name = "FORMAT", value_enum, global = true)]
    pub output: Option<Format>,
    /// Print results and failures only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: progress and log lines of tools and servers
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Use no background host: start servers of its own
    #[arg(long, global = true)]
    pub fresh: bool,
    /// Trust everything that the project's files say, for this run
    #[arg(long, global = true)]
    pub trust: bool,
    /// Ask before every call, whatever the policy allows
    #[arg(long, global = true)]
    pub ask_all: bool,
    /// Show what crosses the wires of servers on standard error: everything, or messages of some
    /// methods, such as --trace='tools/*,ping'
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
    /// The others, once the command line was read.
    #[arg(skip)]
    pub rare: RareOptions,
}

/// Options of every command that few runs need: `-h` leaves them out, and a line without one is read
/// without them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct RareOptions {
    /// Offer the typed functions of this Python module, and look for no other configuration
    #[arg(long, alias = "host-tools-module", value_name = "MODULE", global = true)]
    pub tools_module: Vec<String>,
    /// Send this header to a server that is in no file; ${VAR} is expanded; repeatable
    #[arg(long, value_name = "NAME: VALUE", global = true)]
    pub header: Vec<String>,
    /// Call a server that is in no file by this name
    #[arg(long = "as", value_name = "NAME", global = true)]
    pub server_name: Option<String>,
    /// Show and call only what this profile contains
    #[arg(long, value_name = "NAME", global = true, add = ArgValueCompleter::new(complete::profiles))]
    pub profile: Option<String>,
    /// Ask servers for log lines at this level and above, and show them: debug, info, notice,
    /// warning, error, critical, alert or emergency
    #[arg(long, value_name = "LEVEL", value_enum, hide_possible_values = true, global = true)]
    pub log_level: Option<LogThreshold>,
    /// Log what toolhost itself does, at a level (error, warn, info, debug, trace, off) or levels of
    /// its parts, such as info,mcp=debug
    #[arg(long, value_name = "FILTER", global = true)]
    pub log_filter: Option<String>,
    /// Append the log to this file instead of writing it to standard error
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub log_file: Option<PathBuf>,
    /// Write the log as text or json
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
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Let nothing on the screen of the console turn or blink
    #[arg(long, global = true)]
    pub reduced_motion: bool,
    /// Listen to the mouse in the console
    #[arg(long, global = true)]
    pub mouse: bool,
    /// No colour, no repainting, and nothing cut to the width of the terminal
    #[arg(long, global = true)]
    pub plain: bool,
    /// Let any problem in a configuration file fail the command
    #[arg(long, global = true)]
    pub strict: bool,
    /// Do not verify TLS certificates, for this run
    #[arg(long, global = true)]
    pub insecure: bool,
    /// Refuse a call that cannot be recorded in the audit log
    #[arg(long, global = true)]
    pub require_record: bool,
    /// Save all that crosses the wires of servers to this file, for replay
    #[arg(long, value_name = "FILE", global = true, value_hint = clap::ValueHint::FilePath)]
    pub trace_save: Option<PathBuf>,
}

/// The least grave log lines that are wanted (RFC 5424, as MCP uses it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[expect(missing_docs, reason = "the names are all there is to say")]
pub enum LogThreshold {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// The form of the log of toolhost's own doings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// One line for people: time, level, module, message, fields.
    #[default]
    Text,
    /// One JSON object a line: `timestamp`, `level`, `target`, `message` and the fields.
    Json,
}

impl LogThreshold {
    /// The protocol's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl GlobalOptions {
    /// The options that decide what a host is, as arguments of another run of the program.
    pub fn host_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        self.tools.iter().for_each(|file| add("--tools", file.into()));
        self.rare.tools_module.iter().for_each(|module| add("--tools-module", module.into()));
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

    /// What was said about output.
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

    /// The format asked for; text when nothing was said.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output.unwrap_or_default() }
    }
}
