//! The global options and commands of the command line. Doc comments are the help texts.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::commands::{
    add, audit, auth, bench, breakpoint, call, complete, completions, config, connect, dispatch,
    doctor, export, history, hosts, import, init, inspect, list, man, pin, prompts, record, remove,
    replay, resources, run, serve, servers, stats, trace, trust,
};
use super::context::{CommandContext, CommandResult};
use super::options::GlobalOptions;
use crate::present::{Line, Page, Role};
use crate::serve::demo;

/// The end of `--help`.
const EXIT_CODES: &str = "\
Run 'toolhost COMMAND --help' for the options of a command. Without a command, the console opens;
'toolhost -- COMMAND' opens it on an ad-hoc server.

Exit codes:
    0  success
    1  internal     a bug, or stdout cannot be written
    2  usage        invalid command line, unknown name, or invalid arguments
    3  tool         the tool reported an error
    4  unreachable  the server or program could not be started or reached, or died
    5  auth         credentials missing, refused or expired
    6  denied       refused by policy or a person, or not trusted yet
    7  timeout      a time limit was reached
    8  check        a threshold, pin or comparison failed
    9  config       a configuration file or the requested entry is invalid
   10  protocol     the peer violated its protocol or exceeded a size limit
   11  partial      a usable but incomplete answer
  129, 130, 143     terminated by SIGHUP, SIGINT or SIGTERM";

/// A terminal console for tools: one catalogue of internal tools and MCP servers.
#[derive(Debug, Parser)]
#[command(
    name = "toolhost",
    version,
    after_help = EXIT_CODES,
    disable_help_flag = true,
    max_term_width = 100,
    infer_subcommands = false
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: GlobalOptions,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    /// The words after `--`: a server for the command or the console.
    #[arg(skip)]
    pub server_command: Vec<String>,
}

impl Cli {
    /// Parses a command line with the whole grammar.
    pub fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let mut grammar = Self::command().mut_subcommands(whole_help);
        let mut matches = grammar.try_get_matches_from_mut(arguments)?;
        Self::of_matches(&mut matches).map_err(|error| error.format(&mut grammar))
    }

    /// The command line as parsed, with the words after `--` that name a server.
    pub fn of_matches(matches: &mut clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut of_command = &*matches;
        while let Some((_, inner)) = of_command.subcommand() {
            of_command = inner;
        }
        let words = of_command.try_get_many::<String>("server_command").ok().flatten();
        let server_command = words.into_iter().flatten().cloned().collect();
        Ok(Self { server_command, ..Self::from_arg_matches_mut(matches)? })
    }
}

/// The commands: the enumeration that the parser fills in, the grammar of each, and what runs it.
macro_rules! commands {
    ($(
        $(#[$help:meta])*
        $name:literal $(| $alias:literal)? => $variant:ident($arguments:ty) $run:path,
    )*) => {
        /// The commands.
        #[derive(Debug, Subcommand)]
        pub enum CliCommand {
            $($(#[$help])* $(#[command(visible_alias = $alias)])? $variant($arguments),)*
            /// Serve the demo tools over stdio.
            #[command(hide = true)]
            DemoServer,
        }

        impl CliCommand {
            pub async fn run(self, context: &CommandContext) -> CommandResult {
                match self {
                    $(Self::$variant(args) => $run(&args, context).await,)*
                    Self::DemoServer => Ok(demo::run().await?),
                }
            }
        }

        /// The grammar of one command, without help texts.
        pub fn command_grammar(name: &str) -> Option<clap::Command> {
            Some(match name {
                $($name $(| $alias)? => {
                    let named = clap::Command::new($name)$(.alias($alias))?;
                    <$arguments>::augment_args(named)
                })*
                "demo-server" => clap::Command::new("demo-server"),
                _ => return None,
            })
        }
    };
}

commands! {
    /// List the tools of the catalogue.
    "list" => List(list::ListArgs) list::run,
    /// Show everything about a tool or a server.
    "inspect" | "show" => Inspect(inspect::InspectArgs) inspect::run,
    /// Call a tool.
    "call" | "invoke" => Call(Box<call::CallArgs>) call::run,
    /// Run a call saved with 'call --save-as NAME'.
    "run" => Run(run::RunArgs) run::run,
    /// Benchmark a tool: call it many times and report latencies and throughput.
    "bench" => Bench(Box<bench::BenchArgs>) bench::run,
    /// Show the status of MCP servers: connection, latency and what they offer.
    "servers" => Servers(servers::ServersArgs) servers::run,
    /// List, read and watch resources of MCP servers.
    "resources" => Resources(resources::ResourcesArgs) resources::run,
    /// List and render prompts of MCP servers.
    "prompts" => Prompts(prompts::PromptsArgs) prompts::run,
    /// Show completions for an argument of a prompt or resource template.
    "complete" => Complete(complete::CompleteArgs) complete::run,
    /// Connect to a server and print everything sent and received.
    "trace" => Trace(trace::TraceArgs) trace::run,
    /// Record the traffic between another client and a server.
    "record" => Record(record::RecordArgs) record::run,
    /// Serve a recording as an MCP server over stdio.
    "replay" => Replay(replay::ReplayArgs) replay::run,
    /// Print tool definitions for a model.
    "export" => Export(export::ExportArgs) export::run,
    /// Run the tool calls in a model's response and print the messages to send back.
    "dispatch" => Dispatch(dispatch::DispatchArgs) dispatch::run,
    /// Run tests: calls of tools, with what is expected of them.
    "test" => Test(Box<super::commands::test::TestArgs>) super::commands::test::run,
    /// Serve the catalogue as an MCP server.
    "serve" => Serve(serve::ServeArgs) serve::run,
    /// Add 'toolhost serve' to the configuration of an editor or agent.
    "connect" => Connect(connect::ConnectArgs) connect::run,
    /// Remove 'toolhost serve' from the configuration of an editor or agent.
    "disconnect" => Disconnect(connect::DisconnectArgs) connect::disconnect,
    /// Start a background host that keeps servers connected.
    "up" => Up(hosts::UpArgs) hosts::up,
    /// List background hosts.
    "ps" => Ps(hosts::PsArgs) hosts::ps,
    /// Stop the background host of this directory.
    "down" => Down(hosts::DownArgs) hosts::down,
    /// Stop calls of agents until you decide about them in the console.
    "break" => Break(breakpoint::BreakArgs) breakpoint::run,
    /// Show the audit log: calls made and calls refused.
    "audit" => Audit(audit::AuditArgs) audit::run,
    /// Show, rerun and compare past calls.
    "history" => History(Box<history::HistoryArgs>) history::run,
    /// Show usage, latencies and failures of tools.
    "stats" => Stats(stats::StatsArgs) stats::run,
    /// Pin tool definitions, so that a changed definition blocks calls.
    "pin" => Pin(pin::PinArgs) pin::pin,
    /// Compare tool definitions with their pins and show the differences.
    "verify" => Verify(pin::VerifyArgs) pin::verify,
    /// Review what a project's files would do, and trust them.
    "trust" => Trust(trust::TrustArgs) trust::run,
    /// Log in to servers and manage logins.
    "auth" => Auth(auth::AuthArgs) auth::run,
    /// Create tools.yaml and mcp.yaml with examples.
    "init" => Init(init::InitArgs) init::run,
    /// Add a server to mcp.yaml.
    "add" => Add(add::AddArgs) add::run,
    /// Remove a server from mcp.yaml, or a tool from tools.yaml.
    "remove" => Remove(remove::RemoveArgs) remove::run,
    /// Import servers from the configuration of editors and agents.
    "import" => Import(import::ImportArgs) import::run,
    /// Diagnose problems with the environment, files and servers.
    "doctor" => Doctor(doctor::DoctorArgs) doctor::run,
    /// Check and show the configuration.
    "config" => Config(config::ConfigArgs) config::run,
    /// Print a shell completion script.
    "completions" => Completions(completions::CompletionsArgs) completions::run,
    /// Print a man page.
    "man" => Man(man::ManArgs) man::run,
}

/// What `--help` prints of a command: every option, and the examples before them.
fn whole_help(command: clap::Command) -> clap::Command {
    command
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n{all-args}")
        .mut_args(|argument| argument.hide_short_help(false))
        .mut_subcommands(whole_help)
}

/// The commands that `-h` names.
const GROUPS: [(&str, &str); 5] = [
    ("Find and call", "list inspect call run bench test resources prompts"),
    ("Servers", "servers add import auth trace pin"),
    ("Records", "history stats audit"),
    ("Projects", "init trust config doctor"),
    ("Serving", "serve connect up break"),
];

/// The commands in groups, with what each does.
pub fn commands_in_groups() -> String {
    let all = Cli::command();
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _infallible = writeln!(text, "{group}:");
        for command in names.split(' ').filter_map(|name| all.find_subcommand(name)) {
            let about = command.get_about().unwrap_or_default();
            let _infallible = writeln!(text, "  {:<10} {about}", command.get_name());
        }
        text.push('\n');
    }
    text
}

/// The output of `toolhost` without a command.
pub fn short_help() -> Page {
    let mut page = Page::from(Line::styled(Role::Title, "toolhost: a terminal console for tools"));
    page.blank_line();
    page.text(Role::Plain, 0, &commands_in_groups());
    page.push(Line::plain("toolhost --help shows every command and option."));
    page
}

/// Whether a command line, valid or not, requests JSON.
pub fn requests_json(arguments: &[OsString]) -> bool {
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let options = words.iter().take_while(|word| *word != "--");
    options.enumerate().any(|(index, word)| {
        matches!(&**word, "--json" | "-ojson" | "--output=json" | "-o=json")
            || (matches!(&**word, "-o" | "--output")
                && words.get(index + 1).is_some_and(|next| next == "json"))
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory as _;
    use insta::assert_snapshot;

    use super::*;
    use crate::cli::grammar::usage_error;
    use crate::cli::output::Format;
    use crate::model::Error;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_is_complete() {
        let help = Cli::command().term_width(100).render_help().to_string();
        assert_snapshot!(help, @r"
        A terminal console for tools: one catalogue of internal tools and MCP servers

        Usage: toolhost [OPTIONS] [COMMAND]

        Commands:
          list         List the tools of the catalogue
          inspect      Show everything about a tool or a server [alias: show]
          call         Call a tool [alias: invoke]
          run          Run a call saved with 'call --save-as NAME'
          bench        Benchmark a tool: call it many times and report latencies and throughput
          servers      Show the status of MCP servers: connection, latency and what they offer
          resources    List, read and watch resources of MCP servers
          prompts      List and render prompts of MCP servers
          complete     Show completions for an argument of a prompt or resource template
          trace        Connect to a server and print everything sent and received
          record       Record the traffic between another client and a server
          replay       Serve a recording as an MCP server over stdio
          export       Print tool definitions for a model
          dispatch     Run the tool calls in a model's response and print the messages to send back
          test         Run tests: calls of tools, with what is expected of them
          serve        Serve the catalogue as an MCP server
          connect      Add 'toolhost serve' to the configuration of an editor or agent
          disconnect   Remove 'toolhost serve' from the configuration of an editor or agent
          up           Start a background host that keeps servers connected
          ps           List background hosts
          down         Stop the background host of this directory
          break        Stop calls of agents until you decide about them in the console
          audit        Show the audit log: calls made and calls refused
          history      Show, rerun and compare past calls
          stats        Show usage, latencies and failures of tools
          pin          Pin tool definitions, so that a changed definition blocks calls
          verify       Compare tool definitions with their pins and show the differences
          trust        Review what a project's files would do, and trust them
          auth         Log in to servers and manage logins
          init         Create tools.yaml and mcp.yaml with examples
          add          Add a server to mcp.yaml
          remove       Remove a server from mcp.yaml, or a tool from tools.yaml
          import       Import servers from the configuration of editors and agents
          doctor       Diagnose problems with the environment, files and servers
          config       Check and show the configuration
          completions  Print a shell completion script
          man          Print a man page
          help         Print this message or the help of the given subcommand(s)

        Options:
          -V, --version  Print version

        Global options:
          -h, --help                        Print help
              --tools <FILE>                Load internal tools from this file and ignore all other
                                            configuration
              --host-tools <FILE>           Add the internal tools of this file to the configuration
              --mcp <FILE>                  Load MCP servers from this file and ignore all other
                                            configuration
              --server-url <URL>            Connect to the MCP server at this URL and ignore all
                                            configuration
              --json                        Print JSON; the same as -o json
          -o, --output <FORMAT>             Output format [possible values: text, json, yaml, table, raw,
                                            names, csv, markdown]
          -q, --quiet                       Print only results and errors
          -v, --verbose...                  Also print progress and log lines of tools and servers; repeat
                                            for more
              --fresh                       Start servers for this run even if a background host is running
              --trust                       Trust the project's files for this run
              --ask-all                     Ask before every call, even if the policy allows it
              --trace[=<METHODS>]           Print server traffic to stderr, or only some methods:
                                            --trace='tools/*'
              --tools-module <MODULE>       Load the typed functions of this Python module as tools and
                                            ignore all other configuration
              --host-tools-module <MODULE>  Add the typed functions of this Python module to the
                                            configuration
              --header <NAME: VALUE>        Header for an ad-hoc server (repeatable); ${VAR} is expanded
              --as <NAME>                   Name for an ad-hoc server
              --profile <NAME>              Limit the catalogue to this profile
              --log-level <LEVEL>           Request and print log messages of servers from this level up:
                                            debug, info, notice, warning, error, critical, alert or
                                            emergency
              --log-filter <FILTER>         Log level of toolhost itself (error, warn, info, debug, trace,
                                            off), optionally per module, such as info,mcp=debug
              --log-file <FILE>             Append the log to this file instead of writing it to stderr
              --log-format <FORMAT>         Log format: text or json
              --color <WHEN>                When to use colour [possible values: auto, always, never]
              --ascii                       Use only ASCII characters
              --reduced-motion              Disable spinners and blinking in the console
              --plain                       Disable colour, repainting and truncation to the terminal width
              --strict                      Fail on any problem in a configuration file
              --insecure                    Skip verification of TLS certificates for this run
              --require-record              Refuse calls that cannot be written to the audit log
              --trace-save <FILE>           Save all messages to and from servers to this file, for
                                            'toolhost replay'

        Run 'toolhost COMMAND --help' for the options of a command. Without a command, the console opens;
        'toolhost -- COMMAND' opens it on an ad-hoc server.

        Exit codes:
            0  success
            1  internal     a bug, or stdout cannot be written
            2  usage        invalid command line, unknown name, or invalid arguments
            3  tool         the tool reported an error
            4  unreachable  the server or program could not be started or reached, or died
            5  auth         credentials missing, refused or expired
            6  denied       refused by policy or a person, or not trusted yet
            7  timeout      a time limit was reached
            8  check        a threshold, pin or comparison failed
            9  config       a configuration file or the requested entry is invalid
           10  protocol     the peer violated its protocol or exceeded a size limit
           11  partial      a usable but incomplete answer
          129, 130, 143     terminated by SIGHUP, SIGINT or SIGTERM
        ");
    }

    #[test]
    fn call_help_is_complete() {
        let mut command = Cli::command().mut_subcommands(whole_help).term_width(100);
        command.build();
        let call = command.find_subcommand_mut("call").unwrap();
        assert_snapshot!(call.render_help().to_string(), @r#"
        Call a tool

        Usage: toolhost call [OPTIONS] <NAME> [ARGS]... [-- <COMMAND|URL>...]

        How arguments are written:
          key=value     converted only as the tool's schema requires: 12 stays text for a string
          key:=json     raw JSON
          key=@file     the contents of a file: text, or base64 of other bytes and where the schema says
                        so (key:=@file for JSON in a file)
          key=@@text    text that starts with @
          '{"key": 1}'  all arguments as one object, as with --args

        Context:
          user_id=NAME    the user the call is made for (TOOLHOST_USER)
          traceparent=ID  W3C trace context (TRACEPARENT), optionally with tracestate=LIST
          KEY=VALUE       a variable listed in context_env of the tool's entry
          KEY:=JSON       metadata, sent to MCP servers in _meta

        Arguments:
          <NAME>            Tool to call: its full name, or its bare name if that is unique
          [ARGS]...         key=value, key:=json, key=@file, or one object: '{"key": 1}'
          [COMMAND|URL]...  Use only this server: its command line, or its URL

        Options:
              --args <JSON|@FILE|->  All arguments as one JSON object; @FILE reads a file, - reads stdin
              --server <NAME>        Only look for the tool on this server (repeatable)
              --timeout <TIME>       Time limit for the whole call, such as 500ms, 30s or 2m
              --idle-timeout <TIME>  Time limit without a sign of progress from the server
              --retries <N>          Number of retries, if the tool is marked safe to repeat
          -y, --yes                  Approve the call without asking
              --yes-nested           Approve the call and the calls it makes without asking
              --dry-run              Show what would be sent or started, without doing it
              --as-curl              Print the curl command that sends the same request, without sending it
              --query <EXPR>         Apply a jq expression to the result
              --save <FILE>          Save the result to this file; multiple blocks go to FILE-1, FILE-2, …
              --answers <FILE>       Answer the server's questions from a file of rules, or with 'defaults'
                                     or 'decline'
              --no-validate          Skip validation of arguments and result
              --context <KEY=VALUE>  Context of the call, KEY=VALUE or KEY:=JSON (see --help; repeatable)
              --session <ID>         Session the call belongs to
              --save-as <NAME>       Save the call under this name, for 'toolhost run NAME'
              --ignore-tool-error    Exit with 0 even if the tool reports an error

        Global options:
          -h, --help                        Print help
              --tools <FILE>                Load internal tools from this file and ignore all other
                                            configuration
              --host-tools <FILE>           Add the internal tools of this file to the configuration
              --mcp <FILE>                  Load MCP servers from this file and ignore all other
                                            configuration
              --server-url <URL>            Connect to the MCP server at this URL and ignore all
                                            configuration
              --json                        Print JSON; the same as -o json
          -o, --output <FORMAT>             Print in this format [possible values: text, table, json, yaml,
                                            raw]
          -q, --quiet                       Print only results and errors
          -v, --verbose...                  Also print progress and log lines of tools and servers; repeat
                                            for more
              --fresh                       Start servers for this run even if a background host is running
              --trust                       Trust the project's files for this run
              --ask-all                     Ask before every call, even if the policy allows it
              --trace[=<METHODS>]           Print server traffic to stderr, or only some methods:
                                            --trace='tools/*'
              --tools-module <MODULE>       Load the typed functions of this Python module as tools and
                                            ignore all other configuration
              --host-tools-module <MODULE>  Add the typed functions of this Python module to the
                                            configuration
              --header <NAME: VALUE>        Header for an ad-hoc server (repeatable); ${VAR} is expanded
              --as <NAME>                   Name for an ad-hoc server
              --profile <NAME>              Limit the catalogue to this profile
              --log-level <LEVEL>           Request and print log messages of servers from this level up:
                                            debug, info, notice, warning, error, critical, alert or
                                            emergency
              --log-filter <FILTER>         Log level of toolhost itself (error, warn, info, debug, trace,
                                            off), optionally per module, such as info,mcp=debug
              --log-file <FILE>             Append the log to this file instead of writing it to stderr
              --log-format <FORMAT>         Log format: text or json
              --color <WHEN>                When to use colour [possible values: auto, always, never]
              --ascii                       Use only ASCII characters
              --reduced-motion              Disable spinners and blinking in the console
              --plain                       Disable colour, repainting and truncation to the terminal width
              --strict                      Fail on any problem in a configuration file
              --insecure                    Skip verification of TLS certificates for this run
              --require-record              Refuse calls that cannot be written to the audit log
              --trace-save <FILE>           Save all messages to and from servers to this file, for
                                            'toolhost replay'
        "#);
    }

    #[test]
    fn every_code_of_the_table_is_in_the_help() {
        use crate::model::{ErrorKind, Signal};
        for kind in [
            ErrorKind::Internal,
            ErrorKind::Usage,
            ErrorKind::Tool,
            ErrorKind::Unreachable,
            ErrorKind::Auth,
            ErrorKind::Denied,
            ErrorKind::Timeout,
            ErrorKind::Check,
            ErrorKind::Config,
            ErrorKind::Protocol,
            ErrorKind::Partial,
        ] {
            let row = format!("{:>5}  {}", kind.exit_code(), kind.as_str());
            assert!(EXIT_CODES.contains(&row), "{row}");
        }
        let signals = [Signal::Hangup, Signal::Interrupt, Signal::Terminate];
        for signal in signals {
            let code = ErrorKind::Interrupted(signal).exit_code().to_string();
            assert!(EXIT_CODES.contains(&code), "{code}");
        }
    }

    #[test]
    fn options_may_stand_before_and_after_the_command() {
        for words in [
            &["toolhost", "--json", "list"][..],
            &["toolhost", "list", "--json"],
            &["toolhost", "list", "-o", "json"],
        ] {
            let cli = Cli::try_parse_from(words).unwrap();
            assert_eq!(cli.global.format(), Format::Json, "{words:?}");
        }
        let cli = Cli::try_parse_from(["toolhost", "call", "x", "a=-1", "--host-tools", "t.yaml"]);
        assert_eq!(cli.unwrap().global.host_tools, [PathBuf::from("t.yaml")]);
    }

    #[test]
    fn aliases_are_the_same_commands() {
        let is = |words: &[&str]| Cli::try_parse_from(words).unwrap().command;
        assert!(matches!(is(&["toolhost", "show", "x"]), Some(CliCommand::Inspect(_))));
        assert!(matches!(is(&["toolhost", "invoke", "x"]), Some(CliCommand::Call(_))));
        assert!(is(&["toolhost"]).is_none());
    }

    fn error(words: &[&str]) -> Error {
        usage_error(&Cli::try_parse_from(words).unwrap_err().render().to_string())
    }

    #[test]
    fn errors_of_the_command_line_look_like_all_others() {
        use crate::present::{messages, page::LineRenderer};
        let mut text = String::new();
        for words in [
            &["toolhost", "lst"][..],
            &["toolhost", "list", "--jsn"],
            &["toolhost", "call"],
            &["toolhost", "list", "-o", "xml"],
            &["toolhost", "call", "x", "--timeout", "soon"],
            &["toolhost", "-q", "-v", "list"],
        ] {
            text.push_str(&LineRenderer::default().page(&messages::page(&error(words))));
        }
        assert_snapshot!(text, @r"
        error: unrecognized subcommand 'lst'
          usage: toolhost [OPTIONS] [COMMAND]
          hint: some similar subcommands exist: 'test', 'list'
        error: unexpected argument '--jsn' found
          usage: toolhost list --json [QUERY]... [-- <COMMAND|URL>...]
          hint: a similar argument exists: '--json'
        error: the following required arguments were not provided: <NAME>
          usage: toolhost call <NAME> [ARGS]... [-- <COMMAND|URL>...]
          hint: try --help
        error: invalid value 'xml' for '--output <FORMAT>' [possible values: text, table, json, yaml, names]
          hint: a similar value exists: 'yaml'
        error: invalid value 'soon' for '--timeout <TIME>': expected a time such as 500ms, 30s or 2m
          hint: try --help
        error: the argument '--quiet' cannot be used with '--verbose...'
          usage: toolhost --quiet
          hint: try --help
        ");
    }

    #[test]
    fn a_wrong_command_line_can_ask_for_json() {
        let asks = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            requests_json(&words)
        };
        assert!(
            asks(&["t", "--json", "x"]) && asks(&["t", "-o", "json"]) && asks(&["t", "-ojson"])
        );
        assert!(!asks(&["t", "-o", "yaml"]) && !asks(&["t", "--", "--json"]));
    }
}
