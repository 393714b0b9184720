//! The console: one screen to find, fill, run and watch tools.
//!
//! Owns: the terminal while it runs, and the loop that everything passes through. Never does: run a
//! tool (the host does), or wait for one: what takes time is done in [`tasks`], and comes back as
//! an event.
//!
//! ```text
//!  terminal ─► Input ─┐                          ┌─► draw (reads State only)
//!  host ────► Event ──┼─► State::update ─► State ┘
//!  tasks ────► Event ─┘        └─► Effects ─► tasks ─► host, clipboard, terminal
//! ```
//!
//! The state is plain data and its update is pure: no clock, no input, no output. So every screen
//! can be tested without a terminal, and no tool and no server can stop a key from being heard.

pub mod app;
pub mod bridge;
pub mod calls;
pub mod context;
pub mod draw;
pub mod event;
pub mod keys;
pub mod layout;
pub mod painter;
pub mod prelude;
pub mod screen;
pub mod settings;
pub mod tasks;
#[cfg(test)]
pub mod tests;
pub mod theme;
pub mod update;
pub mod user_program;
pub mod views;
pub mod widgets;

use std::io;
use std::pin::Pin;

use crossterm::terminal;
use tokio::sync::mpsc;

use crate::model::Signal;
use crate::tui::context::ShownProjects;
use crate::tui::prelude::*;
use crate::tui::screen::Screen;
use crate::tui::tasks::{ConsoleDeps, EffectRunner};
use crate::tui::theme::Appearance;
use crate::tui::views::overlays::ConfigurationProblems;
use crate::tui::views::trust::TrustStatus;
use crate::tui::views::trust::tasks::HostFactory;

/// Events that may wait before the senders of unimportant ones lose them.
pub const EVENT_QUEUE: usize = 1024;
/// Events that are taken in before the screen is drawn again.
const MAX_EVENTS_PER_FRAME: usize = 256;
/// The time between two frames while events never end.
const FRAME: Duration = Duration::from_millis(33);
/// How often the state hears what time it is, while something moves.
const TICK: Duration = Duration::from_millis(250);

pub struct ConsoleLaunch {
    pub deps: ConsoleDeps,
    /// The events from all sides, sent through [`bridge::HostBridge`].
    pub events: mpsc::Receiver<AppEvent>,
    /// Questions that wait for an answer.
    pub bridge: bridge::HostBridge,
    /// The theme and its options.
    pub appearance: Appearance,
    pub host_factory: Arc<HostFactory>,
    pub trust: TrustStatus,
    /// The words that name the only server, if the command line names one.
    pub command_end: Option<String>,
}

/// Runs the console until a person or a signal ends it.
pub async fn run(launch: ConsoleLaunch) -> Result<Option<Signal>, Error> {
    let ended = run_on_terminal(launch).await;
    ended.map_err(|error| Error::internal(format!("cannot use the terminal: {error}")))
}

async fn run_on_terminal(launch: ConsoleLaunch) -> io::Result<Option<Signal>> {
    let ConsoleLaunch { deps, mut events, bridge, trust, command_end, .. } = launch;
    let clock = Arc::clone(&deps.clock);
    let mut screen = Screen::open()?;
    let mut state = AppState::new(terminal::size()?);
    state.context.command_end = command_end.map(|words| format!(" {words}")).unwrap_or_default();
    state.context.appearance = launch.appearance;
    if let Some(root) = &deps.project_root {
        let name = std::path::Path::new(root).file_name();
        state.context.project = name.map(|name| name.to_string_lossy().into_owned());
        state.context.shown_projects = ShownProjects::Own;
    }
    state.configuration_problems = ConfigurationProblems::of(&trust.diagnostics);
    state.trust.begin(trust);
    let editor = deps.editor.clone();
    let mut effects = EffectRunner::new(deps, bridge.clone(), launch.host_factory);
    // While a person writes in an editor the terminal is theirs; events are still taken in.
    let mut editing: Option<EditorTask> = None;
    // The first frame is drawn before any effect runs.
    screen.draw(&state)?;
    for effect in state.initial_effects() {
        effects.perform(effect);
    }
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut next_frame = clock.now();
    let mut stale = true;
    loop {
        let wait = next_frame.saturating_duration_since(clock.now());
        // In random order: neither a held key nor a flood of events starves the other.
        let event = tokio::select! {
            input = screen.input() => input?,
            written = written(&mut editing) => {
                editing = None;
                screen.reacquire()?;
                state.context.size = terminal::size()?;
                AppEvent::outcome(move |state| state.apply_editor_result(written))
            }
            Some(event) = events.recv() => event,
            _ = ticks.tick(), if state.is_moving() => {
                state.context.lost = bridge.dropped_events();
                AppEvent::Tick(clock.unix())
            }
            () = tokio::time::sleep(until_next_minute(clock.unix())), if state.context.appearance.clock => {
                AppEvent::Tick(clock.unix())
            }
            () = tokio::time::sleep(wait), if stale => {
                screen.draw(&state)?;
                next_frame = clock.now() + FRAME;
                stale = false;
                continue;
            }
        };
        // While nothing moves there are no ticks, and what happens now would count as long ago.
        state.context.now = clock.unix();
        let mut next = Some(event);
        for _ in 0..MAX_EVENTS_PER_FRAME {
            let Some(event) = next.take().or_else(|| events.try_recv().ok()) else { break };
            if editing.is_some() && matches!(event, AppEvent::Signal(Signal::Interrupt)) {
                // It was meant for the editor.
                continue;
            }
            let is_input = matches!(event, AppEvent::Input(_));
            for effect in state.update(event) {
                match effect {
                    AppEffect::Quit(signal) => {
                        effects.shutdown().await;
                        return Ok(signal);
                    }
                    AppEffect::Redraw => screen.clear(),
                    AppEffect::Suspend => {
                        screen.suspend()?;
                        state.context.size = terminal::size()?;
                    }
                    AppEffect::Copy(text) => Screen::copy(&text)?,
                    AppEffect::OpenEditor(draft) => {
                        screen.release();
                        editing = Some(Box::pin(editor.clone().write(draft)));
                    }
                    other => effects.perform(other),
                }
            }
            stale = true;
            // A key is answered at once.
            if is_input {
                screen.draw(&state)?;
                next_frame = clock.now() + FRAME;
                stale = false;
            }
        }
    }
}

fn until_next_minute(unix: Duration) -> Duration {
    Duration::from_mins(1).saturating_sub(Duration::from_millis(
        u64::try_from(unix.as_millis() % 60_000).unwrap_or_default(),
    ))
}

type EditorTask = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

async fn written(editing: &mut Option<EditorTask>) -> Result<String, Error> {
    match editing {
        Some(editing) => editing.await,
        None => std::future::pending().await,
    }
}
