//! The console: one screen to find, fill, run and watch tools.
//!
//! Owns: the terminal while it runs, and the loop that everything passes through. Never does: run a
//! tool (the host does), or wait for one: what takes time is done [`backstage`], and comes back as
//! an event.
//!
//! ```text
//!  terminal ─► Input ─┐                          ┌─► draw (reads State only)
//!  host ────► Event ──┼─► State::update ─► State ┘
//!  backstage ► Event ─┘         └─► Effects ─► backstage ─► host, clipboard, terminal
//! ```
//!
//! The state is plain data and its update is pure: no clock, no input, no output. So every screen
//! can be tested without a terminal, and no tool and no server can stop a key from being heard.

pub mod backstage;
pub mod draw;
pub mod editor;
pub mod event;
pub mod keys;
pub mod layout;
pub mod memory;
mod painter;
pub mod screen;
pub mod settings;
pub mod state;
pub mod theme;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::model::{Fault, Signal};

use backstage::{Backstage, Project, Surroundings};
use event::trust::TrustStatus;
use event::{Effect, Event};
use screen::Screen;
use state::State;
use theme::Look;

/// Events that may wait before the senders of unimportant ones lose them.
pub const QUEUE: usize = 1024;
/// Events that are taken in before the screen is drawn again.
const AT_ONCE: usize = 256;
/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// How often the state hears what time it is, while something moves.
const TICK: Duration = Duration::from_millis(250);

/// What the console needs.
pub struct Launch {
    /// Where everything is that the console works with.
    pub around: Surroundings,
    /// What happens, from all sides; told through [`backstage::Desk`].
    pub events: mpsc::Receiver<Event>,
    /// For those who tell what happens.
    pub sender: mpsc::Sender<Event>,
    /// Questions that wait for an answer.
    pub desk: backstage::Desk,
    /// How it is to look.
    pub look: Look,
    /// What the host was built from, to build another one when trust changes.
    pub project: Arc<Project>,
    /// How far the project is trusted.
    pub trust: TrustStatus,
}

/// Runs the console until a person or a signal ends it.
///
/// # Errors
/// When there is no terminal to draw on, or it went away.
pub async fn run(launch: Launch) -> Result<Option<Signal>, Fault> {
    let Launch { around, mut events, sender, desk, look, project, trust } = launch;
    let clock = Arc::clone(&around.clock);
    let mut screen = Screen::open()?;
    let mut state = State::new(screen.size()?);
    state.shell.look = look;
    state.trust.begin(trust);
    let editor = around.editor.clone();
    let mut backstage = Backstage::new(around, sender, desk.clone(), project);
    // While a person writes in an editor the terminal is theirs; what happens is heard all the same.
    let mut editing: Option<Editing> = None;
    // The first picture is there before anybody is asked for anything.
    screen.draw(&state)?;
    for effect in state.begin() {
        backstage.perform(effect);
    }
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut last_frame = clock.now();
    let mut stale = true;
    loop {
        let wait = FRAME.saturating_sub(clock.now().saturating_duration_since(last_frame));
        // Not in a fixed order: neither a held key nor a flood of news keeps the other waiting.
        let event = tokio::select! {
            input = screen.input() => input?,
            written = written(&mut editing) => {
                editing = None;
                screen.come_back()?;
                state.shell.size = screen.size()?;
                Event::Edited(written)
            }
            Some(event) = events.recv() => event,
            _ = ticks.tick(), if state.is_moving() => {
                let lost = desk.lost();
                if lost != state.shell.lost {
                    state.update(Event::Lost(lost));
                }
                Event::Tick(clock.unix())
            }
            () = tokio::time::sleep(wait), if stale => {
                screen.draw(&state)?;
                last_frame = clock.now();
                stale = false;
                continue;
            }
        };
        let mut next = Some(event);
        for _ in 0..AT_ONCE {
            let Some(event) = next.take().or_else(|| events.try_recv().ok()) else { break };
            if editing.is_some() && matches!(event, Event::Signal(Signal::Interrupt)) {
                // It was meant for the editor.
                continue;
            }
            let is_input = matches!(event, Event::Input(_));
            for effect in state.update(event) {
                match effect {
                    Effect::Quit(signal) => {
                        backstage.farewell(state.unsaved()).await;
                        return Ok(signal);
                    }
                    Effect::Redraw => screen.clear(),
                    Effect::Suspend => {
                        screen.suspend()?;
                        state.shell.size = screen.size()?;
                    }
                    Effect::Copy(text) => screen.copy(&text)?,
                    Effect::Edit(draft) => {
                        screen.leave();
                        editing = Some(Box::pin(editor.clone().write(draft)));
                    }
                    other => backstage.perform(other),
                }
            }
            if let Some(memory) = state.unsaved() {
                backstage.remember(memory);
            }
            stale = true;
            // A key is answered at once.
            if is_input {
                screen.draw(&state)?;
                last_frame = clock.now();
                stale = false;
            }
        }
    }
}

/// What a person writes in their own editor.
type Editing = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

async fn written(editing: &mut Option<Editing>) -> Result<String, String> {
    match editing {
        Some(editing) => editing.await,
        None => std::future::pending().await,
    }
}
