//! Resources that are watched, and lists that change.
//!
//! Owns: what becomes of a change: a mark, or that what is open is read again.

use super::{CHANGED, Item, Offers, Opened, Request, Shell, View};
use crate::model::{Change, Event as Told, ListOwner, OfferList};
use crate::tui::event::Effect;
use crate::tui::event::offers::{Followed, Wish};

impl Offers {
    /// What is the matter with an item, in two marks: whether it is watched, whether it changed.
    pub fn marks(&self, item: &Item) -> (char, char) {
        let Some(followed) = self.tree.resource(item) else { return (' ', ' ') };
        let watched = match self.followed.get(&followed) {
            Some(true) => 'S',
            Some(false) => 's',
            None => ' ',
        };
        (watched, if self.changed.contains(&followed) { '!' } else { ' ' })
    }

    /// Hears what the host tells.
    pub fn told(&mut self, event: &Told, view: View) -> Vec<Effect> {
        match event {
            Told::ListChanged {
                owner: ListOwner::Server(server),
                list: OfferList::Resources | OfferList::Prompts,
            } => {
                let ask = self.tree.changed(server, view == View::Offers);
                ask.then(|| Effect::Offers(Wish::List(server.clone()))).into_iter().collect()
            }
            Told::ResourceUpdated { server, uri } => {
                let resource = Followed { server: server.clone(), uri: uri.clone() };
                // What is watched is told in a way that loses nothing.
                if self.followed.contains_key(&resource) {
                    Vec::new()
                } else {
                    self.updated(resource)
                }
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn followed(
        &mut self,
        followed: Followed,
        change: Change,
        shell: &mut Shell,
    ) -> Vec<Effect> {
        let Some(agreed) = self.followed.get_mut(&followed) else { return Vec::new() };
        match change {
            Change::Listening { refused } if refused.contains(&followed.uri) => {
                self.followed.remove(&followed);
                let Followed { server, uri } = &followed;
                shell.say_bad(format!("{server} does not tell when {uri} changes"));
                return vec![Effect::Offers(Wish::Unfollow(followed))];
            }
            Change::Listening { .. } => {
                *agreed = true;
                shell.say(format!("watching {}", followed.uri));
            }
            Change::Updated { .. } => {
                shell.say(format!("{} changed", followed.uri));
                return self.updated(followed);
            }
            Change::Interrupted(fault) => {
                *agreed = false;
                shell.say_bad(format!("{}; trying again", fault.message()));
            }
            Change::List(_) | Change::Failed(_) => {}
        }
        Vec::new()
    }

    /// A resource changed: it is marked, or read again when it is open.
    fn updated(&mut self, resource: Followed) -> Vec<Effect> {
        let is_read = |opened: &&Opened| {
            opened.item.server == resource.server
                && opened.request == Request::Read(resource.uri.clone())
                && opened.answer.is_some()
        };
        let opened = self.opened.as_ref().filter(is_read);
        let again = opened.map(|opened| (opened.item.clone(), opened.request.clone()));
        // Nobody can make the list grow without end.
        if self.changed.len() < CHANGED {
            self.changed.insert(resource);
        }
        let Some((item, request)) = again else { return Vec::new() };
        let before = std::mem::take(&mut self.page);
        let effect = self.request(item, request);
        // What was read stays on the screen until it was read again.
        self.page = before;
        vec![effect]
    }

    pub(super) fn subscribe(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let opened = self.opened.as_ref().filter(|_| self.is_open());
        let read = opened.and_then(|opened| match &opened.request {
            Request::Read(uri) => {
                Some(Followed { server: opened.item.server.clone(), uri: uri.clone() })
            }
            Request::Get(..) => None,
        });
        let resource = || self.tree.resource(&self.chosen_item()?);
        let Some(followed) = read.or_else(resource) else {
            shell.say_bad("only resources can be watched");
            return Vec::new();
        };
        let wish = if self.followed.remove(&followed).is_some() {
            shell.say(format!("not watching {} any more", followed.uri));
            Wish::Unfollow(followed)
        } else {
            self.followed.insert(followed.clone(), false);
            Wish::Follow(followed)
        };
        vec![Effect::Offers(wish)]
    }
}
