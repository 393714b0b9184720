//! Tests that the configuration files embedded in the binary load with every provider kind.

use serde_json::Value;

use super::kind_words;
use crate::config::discover::{EMBEDDED_SERVERS, EMBEDDED_TOOLS, LoadRequest};
use crate::config::environment::FixedEnvironment;
use crate::config::load::load;
use crate::config::node::SourceText;
use crate::config::parse::parse;
use crate::config::schema::{servers_file, tools_file};
use crate::config::spec::Endpoint;

#[test]
fn the_embedded_files_are_right() {
    let environment = FixedEnvironment { cwd: "/nowhere".into(), ..FixedEnvironment::default() };
    let configuration = load(&LoadRequest::default(), &kind_words(), &environment);
    assert!(configuration.diagnostics.is_empty(), "{:?}", configuration.diagnostics);
    assert!(configuration.disabled.is_empty());
    assert_eq!(configuration.tools.len(), 17);
    assert_eq!(configuration.servers.len(), 1);
    let Endpoint::Stdio { command, args, .. } = &configuration.servers[0].endpoint else {
        panic!("a child process")
    };
    assert_eq!(
        (command.as_str(), args.as_slice()),
        ("/usr/bin/toolhost", &["demo-server".to_owned()][..])
    );
    assert_eq!(configuration.servers[0].provides_tools.len(), 2);
}

#[test]
fn the_embedded_files_fit_the_schemas_for_editors() {
    let files = [(tools_file(&kind_words()), EMBEDDED_TOOLS), (servers_file(), EMBEDDED_SERVERS)];
    for (schema, text) in files {
        let file: Value = parse(&SourceText::new("f.yaml", text), text).unwrap().to_json();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&file).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}
