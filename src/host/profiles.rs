//! The profile through which a request sees the catalogue.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::listings::RegisteredProvider;
use crate::catalogue::query;
use crate::config::spec::{DisabledEntry, FileRole, ProfileSpec};
use crate::model::{Error, Origin, ToolDefinition, ToolName, ToolSource};
use crate::util::lock::Current;
use crate::util::spelling::did_you_mean;

/// What one client of a host may see and call.
#[derive(Debug, Clone, Default)]
pub struct ClientScope {
    /// The client's name, as the records keep it.
    pub client: String,
    /// The user that all its calls are made for, whatever they say; `None` lets them say.
    pub user: Option<String>,
    /// The client sees what any of these shows, each of which shows what all of its profiles show.
    pub views: Vec<Vec<ScopeProfile>>,
}

/// One of the profiles that bound what a client sees.
#[derive(Debug, Clone)]
pub enum ScopeProfile {
    /// The host's profile of this name, as it is when the client asks; while the host has none of
    /// that name it shows nothing.
    Named(String),
    /// One that belongs to the client alone.
    Own(Arc<ProfileSpec>),
}

type ScopeViews = Vec<Vec<Arc<ProfileSpec>>>;

#[derive(Default)]
pub(super) struct KnownProfiles {
    named: BTreeMap<String, Arc<ProfileSpec>>,
    /// What requests see that name no profile; everything when there is none.
    default: Option<Arc<ProfileSpec>>,
}

impl KnownProfiles {
    pub(super) fn new(default: Option<ProfileSpec>, named: BTreeMap<String, ProfileSpec>) -> Self {
        let named = named.into_iter().map(|(name, profile)| (name, Arc::new(profile))).collect();
        Self { named, default: default.map(Arc::new) }
    }
}

/// The profiles of a host, or of what one client is given of it.
#[derive(Clone)]
pub(super) struct Profiles {
    /// Those of the host, shared by all its clients.
    known: Arc<Current<KnownProfiles>>,
    /// What a request sees with any profile; everything if there is none.
    scope: Option<Arc<[Vec<ScopeProfile>]>>,
}

/// What one request may see and call: everything, or what its profile shows.
#[derive(Clone, Default)]
pub(super) struct ProfileView {
    name: Option<String>,
    profile: Option<Arc<ProfileSpec>>,
    scope: Option<ScopeViews>,
}

impl Profiles {
    pub(super) fn new(profiles: KnownProfiles) -> Self {
        Self { known: Arc::new(Current::new(profiles)), scope: None }
    }

    pub(super) fn replace(&self, profiles: KnownProfiles) {
        self.known.replace(profiles);
    }

    /// What a request sees that names this profile, or none.
    ///
    /// # Errors
    /// A usage error for a name that no profile has.
    pub(super) fn view(&self, name: Option<&str>) -> Result<ProfileView, Error> {
        let Some(name) = name else { return Ok(self.default_view()) };
        let profiles = self.known.get();
        let Some(profile) = profiles.named.get(name) else {
            return Err(unknown_profile(name, profiles.named.keys().map(String::as_str)));
        };
        let (name, profile) = (Some(name.to_owned()), Some(Arc::clone(profile)));
        Ok(ProfileView { name, profile, scope: self.scope_views(&profiles) })
    }

    pub(super) fn default_view(&self) -> ProfileView {
        let profiles = self.known.get();
        let (profile, scope) = (profiles.default.clone(), self.scope_views(&profiles));
        ProfileView { name: None, profile, scope }
    }

    /// What the scope shows at the moment: a view with a profile that is not there shows nothing.
    fn scope_views(&self, profiles: &KnownProfiles) -> Option<ScopeViews> {
        let profile = |profile: &ScopeProfile| match profile {
            ScopeProfile::Named(name) => profiles.named.get(name).cloned(),
            ScopeProfile::Own(profile) => Some(Arc::clone(profile)),
        };
        let views = self.scope.as_ref()?.iter();
        Some(views.filter_map(|view| view.iter().map(profile).collect()).collect())
    }

    /// The same profiles for a client that sees only `views`.
    pub(super) fn within(&self, views: Vec<Vec<ScopeProfile>>) -> Self {
        Self { scope: Some(views.into()), ..self.clone() }
    }
}

impl ProfileView {
    pub(super) fn shows_everything(&self) -> bool {
        self.profile.is_none() && self.scope.is_none()
    }

    /// Whether what is outside of a client's scope has to look as if it did not exist.
    pub(super) fn is_scoped(&self) -> bool {
        self.scope.is_some()
    }

    fn allows(&self, is_shown: impl Fn(&ProfileSpec) -> bool) -> bool {
        let in_scope =
            |views: &ScopeViews| views.iter().any(|view| view.iter().all(|p| is_shown(p)));
        self.profile.as_deref().is_none_or(&is_shown) && self.scope.as_ref().is_none_or(in_scope)
    }

    /// Whether a tool is shown and may be called.
    pub(super) fn shows(&self, tool: &ToolDefinition) -> bool {
        self.allows(|profile| query::is_in_profile(profile, tool))
    }

    /// Whether an offering of a server besides tools is shown.
    pub(super) fn shows_offering(&self, name: &ToolName) -> bool {
        let origin = Origin::Server(name.component().unwrap_or_default().to_owned());
        self.shows(&ToolDefinition::new(name.clone(), ToolSource::Mcp, "mcp", origin))
    }

    /// Whether anything of a provider may be shown. One that is hidden is not contacted.
    pub(super) fn may_show(&self, provider: &RegisteredProvider) -> bool {
        if self.shows_everything() || !provider.is_remote() {
            return true;
        }
        let declared = provider.declared();
        self.allows(|profile| {
            let mut declared = declared.tools.iter().map(|tool| &*tool.definition);
            match &provider.server {
                Some(server) => query::may_show_server(profile, server, declared),
                None if provider.inner.declares_all() => {
                    declared.any(|tool| query::is_in_profile(profile, tool))
                }
                None => {
                    let has_component = provider.inner.component().is_some();
                    declared.any(|entry| query::may_show_offered(profile, entry, has_component))
                }
            }
        })
    }

    /// Whether anything of an entry out of service may be shown.
    pub(super) fn may_show_disabled(&self, entry: &DisabledEntry) -> bool {
        self.allows(|profile| match entry.role {
            FileRole::Tools => query::may_show_entry(profile, &entry.name),
            FileRole::Servers => {
                query::may_show_server(profile, &entry.name, entry.unavailable_tools().into_iter())
            }
        })
    }

    /// The refusal of a tool or server that is hidden.
    pub(super) fn refusal(&self, name: &str) -> Error {
        hidden_by_profile(name, self.name.as_deref())
    }

    /// What the error for a name that nothing visible has says beside it.
    pub(super) fn scope_words(&self) -> String {
        match (&self.name, &self.profile) {
            (Some(name), _) => format!(" in the profile '{name}'"),
            (None, Some(_)) => " in the profile in use".to_owned(),
            (None, None) => String::new(),
        }
    }
}

/// The refusal of a tool or server that a profile hides: the one named, or the one in use.
pub fn hidden_by_profile(name: &str, profile: Option<&str>) -> Error {
    let profile = match profile {
        Some(profile) => format!("the profile '{profile}'"),
        None => "the profile in use".to_owned(),
    };
    Error::denied(format!("'{name}' is not part of {profile}"))
}

pub fn unknown_profile<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    let names: Vec<&str> = names.collect();
    let error = Error::usage(format!("unknown profile '{name}'"));
    if names.is_empty() {
        return error
            .with_hint("no profiles are configured; define them under `profiles:` in tools.yaml");
    }
    let near = did_you_mean(name, names.iter().copied());
    let known = format!("known profiles: {}", names.join(", "));
    error.with_hint(near.into_iter().chain([known]).collect::<Vec<_>>().join(" "))
}
