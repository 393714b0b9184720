//! `toolhost config`: checking and showing the configuration.

use clap::builder::{PossibleValue, PossibleValuesParser};

use super::prelude::*;
use crate::audit::Masker;
use crate::cli::json::error::DiagnosticJson;
use crate::cli::json::schema::{OUTPUTS, OutputSchema};
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::show::{self, ConfigValue};
use crate::config::spec::{Configuration, LoadedFile};
use crate::config::{schema, suite};
use crate::model::Diagnostic;
use crate::present::configuration::{self, count_diagnostics};

/// Check and show the configuration.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct ConfigArgs {
    /// What to do with the configuration.
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// The settings of the console, which are not part of the tool configuration.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleFile {
    pub check: fn(&dyn Environment) -> Vec<Diagnostic>,
    pub schema: fn() -> Value,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// List every problem with its location; exit with 9 on errors.
    Check,
    /// Show every value with its location; secrets are masked.
    Show,
    /// Show where configuration is looked for and which files were read.
    Paths,
    /// Print the JSON Schema of a file, or of what a command prints with --json.
    Schema {
        /// tools, mcp or console for the files, or a command
        #[arg(value_name = "NAME", value_parser = schema_names(), default_value = "tools")]
        of: String,
    },
}

type SchemaOf = fn(&CommandContext) -> Value;

/// The schemas of files; the others are of outputs.
const FILE_SCHEMAS: [(&str, &str, SchemaOf); 4] = [
    ("tools", "tools.yaml", |_| schema::tools_file(&assembly::kind_words())),
    ("mcp", "mcp.yaml", |_| schema::servers_file()),
    ("console", "console.yaml", |context| {
        context.console_file.map(|console| (console.schema)()).unwrap_or_default()
    }),
    ("tests", "files of 'toolhost test'", |_| suite::schema()),
];

fn schema_names() -> PossibleValuesParser {
    let outputs = OUTPUTS.iter().map(|output| (output.name, output.help.trim()));
    let all = FILE_SCHEMAS.map(|(name, help, _)| (name, help)).into_iter().chain(outputs);
    PossibleValuesParser::new(all.map(|(name, help)| PossibleValue::new(name).help(help)))
}

pub async fn run(args: &ConfigArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    match &args.action {
        ConfigAction::Check => check(context, format).await?,
        ConfigAction::Show => {
            let expanded = ExpandedValues::default();
            let mut values = show::show(&context.load_request(), &*context.environment, &expanded);
            let masker = Masker::default();
            let references = masker.clone();
            expanded.listen(move |written, value| references.add_reference(written, value));
            // Only names of files hold what references lead to.
            for ConfigValue { location, .. } in &mut values {
                let file = masker.text(&location.file.to_string_lossy());
                location.file = Arc::new(file.into());
            }
            let value = ConfigValuesJson::from(values.as_slice());
            context.output.report(format, &value, || configuration::values(&values))?;
        }
        ConfigAction::Paths => {
            let loaded = context.load();
            let environment = &*context.environment;
            let value = ConfigPathsJson::from((&loaded, environment));
            let page = || configuration::paths(&loaded, environment);
            context.output.report(format, &value, page)?;
        }
        ConfigAction::Schema { of } => {
            let of_file = FILE_SCHEMAS.iter().find(|(name, ..)| name == of);
            let of_output = || OUTPUTS.iter().find(|output| output.name == of);
            let schema = of_file
                .map(|(.., schema)| schema(context))
                .or_else(|| of_output().map(OutputSchema::schema));
            context.output.value(format, &schema)?;
        }
    }
    Ok(())
}

/// What is wrong with a configuration, as far as that shows without starting anything: in its files,
/// and in the list of the tools that they declare.
pub(super) async fn diagnostics(assembly: &Assembly) -> Vec<Diagnostic> {
    let mut diagnostics = assembly.configuration.diagnostics.clone();
    // Problems found while reading the files are reported once.
    let noticed: Vec<_> =
        diagnostics.iter().map(|diagnostic| diagnostic.location.clone()).collect();
    let schemas = schema::check_schemas(&assembly.configuration).into_iter();
    diagnostics.extend(schemas.filter(|new| !noticed.contains(&new.location)));
    let listed = assembly.host.catalogue(&ListScope::Declared).await.diagnostics.into_iter();
    diagnostics.extend(listed.filter(|new| !noticed.contains(&new.location)));
    diagnostics
}

async fn check(context: &CommandContext, format: Format) -> CommandResult {
    // Providers find further problems when they are built.
    let assembly = context.build()?;
    let diagnostics = diagnostics(&assembly).await;
    let mut loaded = assembly.configuration;
    loaded.diagnostics = diagnostics;
    if let Some(console) = context.console_file {
        loaded.diagnostics.extend((console.check)(&*context.environment));
    }
    // Sorted by location in the files, whichever pass found them.
    loaded.diagnostics.sort_by_cached_key(|diagnostic| {
        diagnostic.location.as_ref().map(|place| (place.file.clone(), place.line, place.column))
    });
    let diagnostics = loaded.diagnostics.as_slice();
    let value = ConfigCheckJson::from(diagnostics);
    context.output.report(format, &value, || configuration::findings(diagnostics))?;
    // Untrusted entries were not resolved, so problems that only show then are unknown.
    if let (Format::Text, Some(first)) = (format, loaded.untrusted.first()) {
        let count = plural(loaded.untrusted.len(), "entry is", "entries are");
        let note = format!("{count} not trusted and not checked; see: {}", first.trust_command);
        context.output.note(note);
    }
    let (errors, warnings) = count_diagnostics(&loaded);
    let tally = configuration::diagnostic_counts(errors, warnings);
    if errors > 0 || (context.global.rare.strict && warnings > 0) {
        return Err(Error::config(format!("{tally} in the configuration")).into());
    }
    let entries = plural(loaded.tools.len() + loaded.servers.len(), "entry", "entries");
    if format == Format::Text {
        context.output.note(format!("{entries}, {tally}"));
    }
    Ok(())
}

shape! {
    /// Problems in the configuration: `config check`.
    pub ConfigCheckJson<'a> of diagnostics: &'a [Diagnostic], with {
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    } {
        /// Every diagnostic, in the order of the files.
        problems: Vec<DiagnosticJson<'a>> = diagnostics.iter().map(Into::into).collect(),
        /// The number of errors.
        errors: usize = errors,
        /// The number of warnings.
        warnings: usize = diagnostics.len() - errors,
    }
}

shape! {
    /// Every value of the configuration: `config show`.
    pub ConfigValuesJson<'a> of found: &'a [ConfigValue] {
        /// The values, in order of precedence.
        values: Vec<ConfigValueJson<'a>> = found.iter().map(Into::into).collect(),
    }
}

shape! {
    /// A value and its location.
    pub ConfigValueJson<'a> of value: &'a ConfigValue {
        /// Its path, such as `tools.calculator.timeout`.
        path: &'a str = &value.path,
        /// The value; literal secrets are shown as `***`.
        value: Value = serde_json::from_str(&value.value).unwrap_or_default(),
        /// The file it is in.
        file: String = value.location.file.display().to_string(),
        /// The line, from 1.
        line: u32 = value.location.line,
        /// The column, from 1.
        column: u32 = value.location.column,
        /// How the file was found, such as `project` or `user`.
        layer: &'static str = configuration::layer_name(value.layer),
        /// Whether it is used: false when a file with higher precedence has an entry of the same name.
        used: bool = !value.is_shadowed,
    }
}

shape! {
    /// Where toolhost looked for files, and which it read: `config paths`.
    pub ConfigPathsJson of (configuration, environment): (&Configuration, &dyn Environment) {
        /// The files that were read, highest precedence first.
        files: Vec<ConfigFileJson> = configuration.files.iter().map(Into::into).collect(),
        /// The places that were searched.
        searched: Vec<String> =
            configuration.searched.iter().map(|path| path.display().to_string()).collect(),
        /// The directories of this user.
        directories: ConfigDirectoriesJson = environment.into(),
    }
}

shape! {
    /// A file that was read.
    pub ConfigFileJson of file: &LoadedFile {
        path: String = file.path.display().to_string(),
        /// `tools` or `servers`.
        role: &'static str = configuration::role_name(file.role),
        /// How it was found.
        layer: &'static str = configuration::layer_name(file.layer),
    }
}

shape! {
    /// The directories of this user; null where there is no home directory.
    pub ConfigDirectoriesJson of environment: &dyn Environment, with {
        let show = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    } {
        /// Cached names for completion and protocol eras.
        cache: Option<String> = show(environment.cache_dir()),
        /// The user's own files.
        configuration: Option<String> = show(environment.config_dir()),
        /// Audit log, history, statistics, pins and trust.
        state: Option<String> = show(environment.state_dir()),
    }
}
