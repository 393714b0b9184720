//! What crosses the wires: the newest lines, which of them are shown, and one of them whole.
//!
//! Owns: the pause, the filter, the chosen line, what a trace file is to hold. Never does: hold
//! back a wire.

mod frame;
mod item;
mod query;
mod ring;

#[cfg(test)]
pub(in crate::tui) mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::{Line, List, Pane, Shell, Stage};
use crate::model::Traffic;
use crate::tui::event::Effect;
use crate::tui::event::trace::{Tape, Wish};
use crate::tui::event::wire::Seen;
use crate::tui::keys::{Action, When};
use crate::util::moment;
pub use frame::{Frame, Part, Side};
pub use item::{Item, What};
pub use query::Query;
pub use ring::Ring;

/// What crosses the wires.
#[derive(Debug)]
pub struct Trace {
    ring: Ring,
    /// What came since the view was paused; `None` while it is not.
    held: Option<Held>,
    /// The numbers of the lines that are shown, the oldest first.
    found: VecDeque<u64>,
    /// The number of the chosen line.
    chosen: u64,
    /// Whether the newest line is always the chosen one.
    pub follows: bool,
    /// What is searched for.
    pub filter: Line,
    query: Query,
    /// Whether that is being written.
    pub is_filtering: bool,
    /// What of a pair is shown.
    pub side: Side,
    /// The chosen frame, laid out.
    pub frame: Frame,
    is_stale: bool,
    /// How far that is scrolled.
    pub scroll: usize,
}

/// What came while the view was paused.
#[derive(Debug, Default)]
struct Held {
    ring: Ring,
    came: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            ring: Ring::default(),
            held: None,
            found: VecDeque::new(),
            chosen: 0,
            follows: true,
            filter: Line::default(),
            query: Query::default(),
            is_filtering: false,
            side: Side::default(),
            frame: Frame::default(),
            is_stale: false,
            scroll: 0,
        }
    }
}

impl Stage for Trace {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        match action {
            Action::Filter => {
                shell.focus = Pane::Wire;
                self.is_filtering = true;
            }
            Action::Pause => self.pause(shell),
            Action::Follow => {
                self.follows = !self.follows;
                self.choose_newest();
                shell.say(if self.follows { "follows the newest" } else { "stays" });
            }
            Action::Reset => {
                self.clear();
                shell.say("cleared");
            }
            Action::Open => {
                shell.focus = Pane::Frame;
                self.follows = false;
                let has_pair = self.chosen().is_some_and(|item| item.pair.is_some());
                self.show(if has_pair { Side::Both } else { Side::Chosen });
            }
            Action::Turn => match self.chosen().filter(|item| item.pair.is_some()) {
                Some(item) => {
                    let next = self.side.next(item.is_request());
                    self.follows = false;
                    self.show(next);
                }
                None => shell.say("nothing here belongs to it"),
            },
            Action::Copy => return Some(self.copied(false, shell)),
            Action::CopyCommand => return Some(self.copied(true, shell)),
            Action::Export => return Some(self.export(shell)),
            Action::Back => return self.back(shell),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn places(&self, _focus: Pane) -> Vec<When> {
        if self.is_filtering {
            return vec![When::Text];
        }
        vec![When::Trace, When::Pane, When::Anywhere]
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        if focus == Pane::Frame && !self.is_filtering {
            let last = self.frame.lines.len().saturating_sub(1);
            self.scroll = self.scroll.saturating_add_signed(by).min(last);
            return;
        }
        let mut list = self.list();
        list.step(by, self.found.len());
        self.follows = by > 0 && list.chosen() + 1 == self.found.len();
        if let Some(number) = self.found.get(list.chosen()) {
            self.choose(*number);
        }
        self.lay_out();
    }

    fn enter(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        self.lay_out();
        Vec::new()
    }

    fn line(&mut self, _focus: Pane) -> Option<&mut Line> {
        self.is_filtering.then_some(&mut self.filter)
    }

    fn rewritten(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        self.refilter();
        Vec::new()
    }

    fn tick(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        // Not with each line that comes: nobody reads thousands of frames a second.
        self.lay_out();
        Vec::new()
    }

    fn is_moving(&self) -> bool {
        true
    }
}

impl Trace {
    /// Something crossed a wire.
    pub fn take(&mut self, seen: Seen) {
        self.add(Item::of(seen));
    }

    /// Something was logged. `now` is the time as far as anybody said.
    pub fn logged(&mut self, origin: &str, now: Duration, level: &str, text: &str) {
        let newest = self.ring.iter().next_back().map(|(_, item)| item.at);
        let at = newest.map_or(now, |newest| newest.max(now));
        self.add(Item::logged(origin, at, level, text));
    }

    /// Shows only this.
    pub fn find(&mut self, words: &str) {
        self.filter = Line::of(words);
        self.follows = true;
        self.refilter();
    }

    /// How many lines there are, and how many of them are shown.
    pub fn counts(&self) -> (usize, usize) {
        (self.ring.len(), self.found.len())
    }

    /// How many lines came since the view was paused; `None` while it is not.
    pub fn waiting(&self) -> Option<u64> {
        self.held.as_ref().map(|held| held.came)
    }

    /// The lines that are shown, from the one at `first` on; and which of all is the chosen one.
    pub fn window(&self, height: usize) -> (impl Iterator<Item = (u64, &Item)> + '_, u64) {
        let first = self.list().first(height, self.found.len());
        let numbers = self.found.iter().skip(first).take(height);
        let items = numbers.filter_map(|number| Some((*number, self.ring.get(*number)?)));
        (items, self.chosen)
    }

    /// The chosen line.
    pub fn chosen(&self) -> Option<&Item> {
        self.ring.get(self.chosen).filter(|_| !self.found.is_empty())
    }

    /// The newest lines of one server, the newest first, of the newest `among`.
    pub fn newest_of<'a>(
        &'a self,
        server: &'a str,
        among: usize,
    ) -> impl Iterator<Item = &'a Item> + 'a {
        let newest = self.ring.iter().rev().take(among);
        newest.map(|(_, item)| item).filter(move |item| item.server == server)
    }

    /// What the chosen line belongs to: the request and the answer, as far as they are here.
    fn pair(&self) -> Vec<&Item> {
        let Some(item) = self.chosen() else { return Vec::new() };
        let other = item.pair.and_then(|pair| self.ring.get(pair));
        let mut pair: Vec<&Item> = [Some(item), other].into_iter().flatten().collect();
        pair.sort_by_key(|item| !item.is_request());
        pair
    }

    fn add(&mut self, item: Item) {
        if let Some(held) = &mut self.held {
            held.came += 1;
            held.ring.push(item);
            return;
        }
        self.append(item);
        self.choose_newest();
    }

    fn append(&mut self, item: Item) {
        let number = self.ring.push(item);
        while self.found.front().is_some_and(|number| *number < self.ring.first()) {
            self.found.pop_front();
        }
        let Some(item) = self.ring.get(number) else { return };
        self.is_stale |= item.pair == Some(self.chosen);
        if self.query.admits(item) {
            self.found.push_back(number);
        }
        if self.chosen < self.ring.first() {
            let oldest = self.found.front().copied().unwrap_or(number);
            self.choose(oldest);
        }
    }

    fn choose_newest(&mut self) {
        if let (true, Some(newest)) = (self.follows, self.found.back()) {
            self.choose(*newest);
        }
    }

    fn choose(&mut self, number: u64) {
        if number != self.chosen {
            (self.chosen, self.scroll, self.side) = (number, 0, Side::Chosen);
        }
        self.is_stale = true;
    }

    fn show(&mut self, side: Side) {
        (self.side, self.scroll, self.is_stale) = (side, 0, true);
        self.lay_out();
    }

    /// Lays the chosen frame out, if that was not done.
    fn lay_out(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            let pair = self.pair();
            self.frame = match self.side {
                Side::Chosen => Frame::of(self.chosen().as_slice()),
                Side::Both => Frame::of(&pair),
                Side::Request => Frame::of(pair.first().copied().as_slice()),
                Side::Answer => Frame::of(pair.last().copied().as_slice()),
            };
        }
    }

    /// The chosen line as a line of a list.
    fn list(&self) -> List {
        let mut list = List::default();
        let at = self.found.binary_search(&self.chosen).unwrap_or_else(|at| at);
        list.choose(at, self.found.len());
        list
    }

    fn refilter(&mut self) {
        self.query = Query::of(self.filter.text());
        let admitted = self.ring.iter().filter(|(_, item)| self.query.admits(item));
        self.found = admitted.map(|(number, _)| number).collect();
        let at = self.list().chosen();
        if let Some(number) = self.found.get(at) {
            self.choose(*number);
        }
        self.choose_newest();
        self.is_stale = true;
        self.lay_out();
    }

    fn pause(&mut self, shell: &mut Shell) {
        match self.held.take() {
            None => {
                self.held = Some(Held::default());
                shell.say("paused; what comes is kept");
            }
            Some(mut held) => {
                let items = held.ring.take();
                let gone = held.came.saturating_sub(items.len() as u64);
                for item in items {
                    self.append(item);
                }
                self.choose_newest();
                self.lay_out();
                let lost =
                    if gone > 0 { format!(", {gone} of them are gone") } else { String::new() };
                shell.say(format!("{} came meanwhile{lost}", held.came));
            }
        }
    }

    fn clear(&mut self) {
        self.ring.take();
        if let Some(held) = &mut self.held {
            *held = Held::default();
        }
        self.found.clear();
        (self.frame, self.scroll, self.side) = (Frame::default(), 0, Side::Chosen);
    }

    fn copied(&self, both: bool, shell: &mut Shell) -> Vec<Effect> {
        let items = match (both, self.side) {
            (true, _) | (false, Side::Both) => self.pair(),
            (false, Side::Request) => self.pair().into_iter().take(1).collect(),
            (false, Side::Answer) => self.pair().into_iter().rev().take(1).collect(),
            (false, Side::Chosen) => self.chosen().into_iter().collect(),
        };
        if items.is_empty() {
            shell.say("there is nothing to copy");
            return Vec::new();
        }
        shell.say(if items.len() == 2 { "copied, both frames" } else { "copied" });
        let texts = items.iter().map(|item| String::from_utf8_lossy(item.bytes()).into_owned());
        vec![Effect::Copy(texts.collect::<Vec<_>>().join("\n"))]
    }

    /// Has what is shown written as a trace.
    fn export(&self, shell: &mut Shell) -> Vec<Effect> {
        let shown = self.found.iter().filter_map(|number| self.ring.get(*number));
        let (cut, whole): (Vec<&Item>, Vec<&Item>) = shown.partition(|item| item.is_cut);
        let items: Vec<Traffic> = whole.into_iter().filter_map(Item::traffic).collect();
        if items.is_empty() {
            shell.say("there is nothing to write");
            return Vec::new();
        }
        let path = format!("trace-{}.jsonl", moment::stamp(shell.now));
        let tape = Tape::new(items, cut.len());
        vec![Effect::Trace(Wish::Export { path: path.into(), tape })]
    }

    fn back(&mut self, shell: &mut Shell) -> Option<Vec<Effect>> {
        if self.is_filtering {
            self.is_filtering = false;
        } else if shell.is_zoomed {
            return None;
        } else if shell.focus == Pane::Frame {
            shell.focus = Pane::Wire;
        } else if !self.filter.text().is_empty() {
            self.find("");
        } else {
            return None;
        }
        Some(Vec::new())
    }
}
