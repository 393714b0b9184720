//! Starting the console when `toolhost` runs on a terminal without a command.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{CommandResult, interrupted, runtime, shut_down};
use crate::assembly::{self, Assembly, FrontEnd};
use crate::cli::commands::config::ConsoleFile;
use crate::cli::context::CommandContext;
use crate::cli::output::{ColourChoice, Format, settings};
use crate::cli::signals::{NextSignal as _, Signals};
use crate::config::environment::Environment;
use crate::config::read;
use crate::history;
use crate::model::{Diagnostic, Error};
use crate::tui::bridge::HostBridge;
use crate::tui::event::AppEvent;
use crate::tui::tasks::ConsoleDeps;
use crate::tui::theme::{Appearance, ColourDepth};
use crate::tui::user_program::ExternalEditor;
use crate::tui::views::trust::TrustStatus;
use crate::tui::views::trust::tasks::HostFactory;
use crate::tui::{self, ConsoleLaunch};
use crate::util::clock::SystemClock;

/// What `config` needs to know about the console's own file.
pub(super) const FILE: ConsoleFile =
    ConsoleFile { check: check_settings, schema: tui::settings::schema };

/// Problems in the user's `console.yaml`.
fn check_settings(environment: &dyn Environment) -> Vec<Diagnostic> {
    let path = environment.config_dir().map(|directory| directory.join(tui::settings::FILE));
    let Some(path) = path.filter(|path| path.exists()) else { return Vec::new() };
    match read::read(&path, false) {
        Ok((source, text)) => tui::settings::read(&source, &text, Appearance::default()).1,
        Err(problem) => vec![problem],
    }
}

/// Whether there is a terminal for it, and no option requests other output.
pub(super) fn is_possible(context: &CommandContext) -> bool {
    let plain = context.global.rare.plain || context.global.format() != Format::Text;
    let environment = &*context.environment;
    context.output.is_terminal()
        && std::io::IsTerminal::is_terminal(&std::io::stdin())
        && !plain
        && !settings::is_dumb(environment)
}

/// Builds the host, opens the console on the terminal and runs it until the user or a signal ends
/// it.
pub(super) fn run(context: &CommandContext) -> CommandResult {
    let runtime = runtime()?;
    let outcome = runtime.block_on(Box::pin(open(context)));
    runtime.shutdown_background();
    outcome
}

async fn open(context: &CommandContext) -> CommandResult {
    let mut signals = Signals::new()
        .map_err(|error| Error::internal(format!("cannot wait for signals: {error}")))?;
    let (send, events) = mpsc::channel(tui::EVENT_QUEUE);
    let bridge = HostBridge::new(send.clone());
    let front_end = FrontEnd {
        approver: Arc::new(bridge.clone()),
        inbox: Arc::new(bridge.clone()),
        events: bridge.event_sink(),
        traffic: bridge.traffic_sink(),
    };
    let project = Arc::new(HostFactory::new(
        Arc::clone(&context.environment),
        front_end.clone(),
        Arc::new(SystemClock),
        context.host_locator(),
    ));
    let (assembly, socket) = context.assemble_for(front_end)?;
    project.attach(&assembly.host, &assembly.masker, socket).await;
    let trust = TrustStatus::of(&assembly.configuration);
    project.watch_files(&assembly.configuration);
    let deps = dependencies(context, &assembly);
    // Dropped here: with many tools, the file contents are as large as everything the host needs.
    let begun = Arc::clone(&project);
    tokio::task::spawn_blocking(move || begun.begin(&assembly));
    let appearance = display_settings(context);
    let kept = Arc::clone(&project);
    let command_end = context.global.ad_hoc.as_ref().map(|server| server.command_end.clone());
    let launch = ConsoleLaunch {
        deps,
        events,
        bridge,
        appearance,
        host_factory: project,
        trust,
        command_end,
    };
    let mut console = Box::pin(tui::run(launch));
    let ended = loop {
        tokio::select! {
            ended = &mut console => break ended,
            signal = signals.next() => {
                // Not awaited here, because the console would stop responding meanwhile.
                let send = send.clone();
                tokio::spawn(async move { send.send(AppEvent::Signal(signal)).await });
            }
        }
    };
    if let Some(host) = kept.host() {
        context.keep_host(host);
    }
    let late = shut_down(context, &mut signals, false).await;
    match ended?.or(late) {
        Some(signal) => Err(interrupted(signal).into()),
        None => Ok(()),
    }
}

fn dependencies(context: &CommandContext, assembly: &Assembly) -> ConsoleDeps {
    let configuration = &assembly.configuration;
    let state = context.environment.state_dir();
    let variable =
        |name: &'static str| context.environment.var(name).filter(|value| !value.is_empty());
    ConsoleDeps {
        host: Arc::clone(&assembly.host),
        statistics: assembly::stats_place(&configuration.stats, state.as_deref()),
        history: assembly::record_location(
            &configuration.history,
            history::log::FILE,
            state.as_deref(),
        ),
        keeps_statistics: configuration.stats.enabled,
        keeps_history: configuration.history.enabled,
        settings: context.environment.config_dir(),
        saved_calls: context.environment.config_dir().filter(|_| context.global.ad_hoc.is_none()),
        editor: ExternalEditor {
            command: ["VISUAL", "EDITOR"].iter().find_map(|name| variable(name)),
            temporary: variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from),
        },
        project_root: configuration.project(),
        cwd: context.environment.cwd(),
        clock: Arc::new(SystemClock),
    }
}

fn display_settings(context: &CommandContext) -> Appearance {
    let environment: &dyn Environment = &*context.environment;
    let global = &context.global;
    let says = |name: &'static str, is_it: fn(&str) -> bool| {
        environment.var(name).is_some_and(|value| is_it(&value))
    };
    let depth = if says("COLORTERM", |value| matches!(value, "truecolor" | "24bit")) {
        ColourDepth::True
    } else if says("TERM", |value| value.contains("256color")) {
        ColourDepth::Indexed
    } else {
        ColourDepth::Sixteen
    };
    Appearance {
        has_colour: settings::wants_colour(global.rare.color, true, environment)
            || global.rare.color == ColourChoice::Always,
        ascii: global.rare.ascii || settings::is_ascii_locale(environment),
        has_reduced_motion: global.rare.reduced_motion,
        depth,
        ..Appearance::default()
    }
}
