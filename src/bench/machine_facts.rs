//! The environment of a run as text.

use super::environment::BenchEnvironment;
use super::summary::LineTone;
use crate::util::units::show_duration;

/// A word, how the rest is meant, and the rest.
type Fact = (&'static str, LineTone, String);

/// The machine, the program and the servers.
pub fn facts(environment: &BenchEnvironment) -> Vec<Fact> {
    let mut machine = vec![environment.os.clone()];
    machine.extend(environment.kernel.clone());
    machine.push(environment.architecture.clone());
    if let Some(cpus) = environment.cpus {
        let cpu = environment.cpu.as_deref().map_or_else(String::new, |cpu| format!(" ({cpu})"));
        machine.push(format!("{cpus} cpu{cpu}"));
    }
    let mut facts = vec![
        ("machine", LineTone::Dim, machine.join(", ")),
        ("toolhost", LineTone::Dim, environment.toolhost.clone()),
    ];
    if let Some([load, ..]) = environment.load_before {
        let after = environment
            .load_after
            .map_or_else(String::new, |[after, ..]| format!(", {after:.1} after"));
        facts.push(("load average", LineTone::Dim, format!("{load:.1} before{after}")));
    }
    for server in &environment.servers {
        let names: Vec<&str> =
            [&server.name, &server.version].into_iter().flatten().map(String::as_str).collect();
        let mut text = names.join(" ");
        if let Some(protocol) = &server.protocol {
            let comma = if text.is_empty() { "" } else { ", " };
            text = format!("{text}{comma}protocol {protocol}");
        }
        if let Some(time) = server.cpu {
            let comma = if text.is_empty() { "" } else { ", " };
            text = format!("{text}{comma}{} of processor time", show_duration(time));
        }
        let fact = ("server", LineTone::Dim, text);
        if !fact.2.is_empty() && !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}
