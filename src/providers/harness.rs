//! A test harness for a kind of tool: entries go through the real configuration compiler, the kind
//! builds its providers from them, and calls go straight to the provider.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;

use crate::config::discover::LoadRequest;
use crate::config::environment::{Environment as _, FixedEnvironment, ProcessEnvironment};
use crate::config::load::load;
use crate::config::spec::{KindDescriptor, ToolSpec};
use crate::model::{
    CallId, Diagnostic, Error, EventSink, HostEvent, ToolCall, ToolContext, ToolDefinition,
    ToolResult,
};
use crate::provider::{ProviderDeps, ProviderKind, ToolProvider};

pub(crate) fn specs(kind: KindDescriptor, yaml: &str) -> (TempDir, Vec<ToolSpec>, Vec<Diagnostic>) {
    let dir = tempfile::tempdir().unwrap();
    let (specs, diagnostics) = load_in(dir.path(), kind, yaml, &environment(dir.path()));
    (dir, specs, diagnostics)
}

fn environment(dir: &Path) -> FixedEnvironment {
    let path = ProcessEnvironment.var("PATH").unwrap_or_default();
    FixedEnvironment {
        vars: BTreeMap::from([("PATH".to_owned(), path)]),
        cwd: dir.to_path_buf(),
        root: Some(dir.join("home")),
    }
}

fn load_in(
    dir: &Path,
    kind: KindDescriptor,
    yaml: &str,
    environment: &FixedEnvironment,
) -> (Vec<ToolSpec>, Vec<Diagnostic>) {
    let file = dir.join("tools.yaml");
    std::fs::write(&file, yaml).unwrap();
    let request = LoadRequest { tools: vec![file], ..LoadRequest::default() };
    let configuration = load(&request, &[kind], environment);
    (configuration.tools, configuration.diagnostics)
}

pub(crate) struct KindHarness {
    /// Where the file stands: `tools.yaml`.
    pub(crate) dir: TempDir,
    pub(crate) providers: Vec<Arc<dyn ToolProvider>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    events: Arc<Mutex<Vec<HostEvent>>>,
}

impl KindHarness {
    pub(crate) fn new(kind: &ProviderKind, yaml: &str) -> Self {
        Self::prepared(kind, yaml, |_, _| {})
    }

    /// As [`KindHarness::new`], after `prepare` has put files into the directory and changed the
    /// environment.
    pub(crate) fn prepared(
        kind: &ProviderKind,
        yaml: &str,
        prepare: impl FnOnce(&Path, &mut FixedEnvironment),
    ) -> Self {
        Self::adjusted(kind, yaml, prepare, |_, _| {})
    }

    /// As [`KindHarness::prepared`], and `adjust` changes what the compiler made of the entries.
    pub(crate) fn adjusted(
        kind: &ProviderKind,
        yaml: &str,
        prepare: impl FnOnce(&Path, &mut FixedEnvironment),
        adjust: impl FnOnce(&mut [ToolSpec], &FixedEnvironment),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = environment(dir.path());
        prepare(dir.path(), &mut environment);
        let (mut specs, mut diagnostics) = load_in(dir.path(), kind.words, yaml, &environment);
        adjust(&mut specs, &environment);
        let events = Arc::new(Mutex::new(Vec::new()));
        let specs: Vec<&ToolSpec> = specs.iter().collect();
        let context = ProviderDeps {
            state_dir: Some(dir.path().join("home/state")),
            events: Self::sink(&events),
            ..ProviderDeps::bare(Arc::new(environment))
        };
        let built = (kind.build)(&specs, &context);
        diagnostics.extend(built.diagnostics);
        Self { dir, providers: built.providers, diagnostics, events }
    }

    fn sink(events: &Arc<Mutex<Vec<HostEvent>>>) -> EventSink {
        let events = Arc::clone(events);
        EventSink::new(move |event| events.lock().unwrap().push(event))
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        self.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect()
    }

    pub(crate) fn definitions(&self) -> Vec<ToolDefinition> {
        let declared = self.providers.iter().flat_map(|provider| provider.declared());
        declared.map(Arc::unwrap_or_clone).collect()
    }

    pub(crate) fn definition(&self, full: &str) -> ToolDefinition {
        let all = self.definitions();
        let names: Vec<String> = all.iter().map(|tool| tool.name.full()).collect();
        let tool = all.into_iter().find(|tool| tool.name.full() == full);
        tool.unwrap_or_else(|| panic!("no '{full}' in {names:?}; {:?}", self.messages()))
    }

    pub(crate) fn context(&self) -> ToolContext {
        ToolContext {
            session_id: "session-1".into(),
            cwd: self.dir.path().into(),
            events: Self::sink(&self.events),
            ..ToolContext::empty(CallId("call-1".into()))
        }
    }

    /// Everything that was told while calls ran, as text.
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().iter().map(|event| format!("{event:?}")).collect()
    }

    /// Runs one attempt, past the host: nothing is checked, nothing ends it.
    pub(crate) async fn call(&self, full: &str, arguments: Value) -> Result<ToolResult, Error> {
        self.call_in(&self.context(), full, arguments).await
    }

    /// As [`KindHarness::call`], in a context of one's own.
    pub(crate) async fn call_in(
        &self,
        context: &ToolContext,
        full: &str,
        arguments: Value,
    ) -> Result<ToolResult, Error> {
        let Value::Object(arguments) = arguments else { panic!("not an object: {arguments}") };
        let name = self.definition(full).name;
        let owns = |provider: &&Arc<dyn ToolProvider>| {
            provider.declared().iter().any(|tool| tool.name == name)
        };
        let provider = self.providers.iter().find(owns).unwrap();
        provider.call(context, &ToolCall { name, arguments }).await
    }
}
