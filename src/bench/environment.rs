//! The environment of a run: program version, system, machine, servers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::plan::seconds;
use crate::util::units::float_len;
use std::io::Read as _;

const LONGEST_FILE: u64 = 1 << 20;

/// Names from outside are cut here, in characters.
const LONGEST_NAME: usize = 200;

/// A machine is busy when more than this share of its processors had work before a run.
const BUSY: f64 = 0.5;

pub fn read_file(path: &str) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LONGEST_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Where a run was made; null for what the system does not report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct BenchEnvironment {
    /// The version of this program.
    pub toolhost: String,
    /// The system: `Debian GNU/Linux 12 (bookworm)`.
    pub os: String,
    /// The kernel and its version.
    pub kernel: Option<String>,
    /// The architecture, such as `x86_64`.
    pub architecture: String,
    /// The model of the processor.
    pub cpu: Option<String>,
    /// Processors that this program may use.
    pub cpus: Option<usize>,
    /// Runnable processes on average over 1, 5 and 15 minutes before the run.
    pub load_before: Option<[f64; 3]>,
    /// The same after it.
    pub load_after: Option<[f64; 3]>,
    /// The servers of the targets, as they introduced themselves.
    pub servers: Vec<ServerIdentity>,
}

/// Who a server says it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerIdentity {
    /// The full name of the tool that it was called for.
    pub tool: String,
    /// The name that it gives itself.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The protocol revision.
    pub protocol: Option<String>,
    /// The processor time that its process used during the run, in seconds.
    #[serde(rename = "cpu_s", serialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub cpu: Option<Duration>,
}

impl BenchEnvironment {
    /// Looks at the machine whose files these are, before a run.
    pub fn before(file: impl Fn(&str) -> Option<String>) -> Self {
        let word = |path: &str| {
            file(path).map(|text| truncate(text.trim())).filter(|word| !word.is_empty())
        };
        let kernel = word("/proc/sys/kernel/osrelease").map(|release| {
            match word("/proc/sys/kernel/ostype") {
                Some(kind) => format!("{kind} {release}"),
                None => release,
            }
        });
        let os = file("/etc/os-release")
            .or_else(|| file("/usr/lib/os-release"))
            .and_then(|text| value_of(&text, '=', &["PRETTY_NAME"]))
            .unwrap_or_else(|| std::env::consts::OS.to_owned());
        // ARM calls it by numbers; the board's name says more there.
        let cpu = file("/proc/cpuinfo").and_then(|text| {
            value_of(&text, ':', &["model name", "Model", "Hardware", "cpu model"])
        });
        Self {
            toolhost: env!("CARGO_PKG_VERSION").to_owned(),
            os,
            kernel,
            architecture: std::env::consts::ARCH.to_owned(),
            cpu,
            cpus: std::thread::available_parallelism().ok().map(std::num::NonZero::get),
            load_before: load(&file),
            load_after: None,
            servers: Vec::new(),
        }
    }

    /// Looks again, after it.
    #[must_use]
    pub fn after(self, file: impl Fn(&str) -> Option<String>) -> Self {
        Self { load_after: load(&file), ..self }
    }

    /// Warnings about the machine that make the figures doubtful.
    pub fn warnings(&self) -> Vec<String> {
        let (Some([load, ..]), Some(cpus)) = (self.load_before, self.cpus) else {
            return Vec::new();
        };
        let share = load / float_len(cpus.max(1));
        let processors = if cpus == 1 { "processor" } else { "processors" };
        (share > BUSY)
            .then(|| {
                format!(
                    "the machine was busy before the run: a load of {load:.1} on {cpus} \
                     {processors}; results are more stable on an idle machine"
                )
            })
            .into_iter()
            .collect()
    }
}

fn load(file: &impl Fn(&str) -> Option<String>) -> Option<[f64; 3]> {
    let text = file("/proc/loadavg")?;
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let mut next = || numbers.next().flatten().filter(|load| load.is_finite() && *load >= 0.0);
    Some([next()?, next()?, next()?])
}

fn value_of(text: &str, separator: char, keys: &[&str]) -> Option<String> {
    let value = |name: &&str| {
        text.lines()
            .filter_map(|line| line.split_once(separator))
            .find(|(key, _)| key.trim() == *name)
            .map(|(_, value)| truncate(value.trim().trim_matches('"')))
            .filter(|value| !value.is_empty())
    };
    keys.iter().find_map(value)
}

fn truncate(text: &str) -> String {
    text.chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)], path: &str) -> Option<String> {
        files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn a_linux_machine_is_described() {
        let files = [
            ("/proc/sys/kernel/ostype", "Linux\n"),
            ("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"),
            ("/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
            ("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Made Up 3000\nmodel name\t: other\n"),
            ("/proc/loadavg", "1.50 0.75 0.25 2/345 6789\n"),
        ];
        let machine = |path: &str| made(&files, path);
        let environment = BenchEnvironment::before(machine).after(machine);
        let environment = BenchEnvironment { cpus: Some(2), ..environment };
        assert_eq!(environment.kernel.as_deref(), Some("Linux 6.1.0-18-amd64"));
        assert_eq!(environment.os, "Debian GNU/Linux 12");
        assert_eq!(environment.cpu.as_deref(), Some("Made Up 3000"));
        assert_eq!(
            (environment.load_before, environment.load_after),
            (Some([1.5, 0.75, 0.25]), environment.load_before)
        );
        assert!(environment.warnings()[0].contains("a load of 1.5 on 2 processors"));
    }

    #[test]
    fn what_cannot_be_found_out_is_left_out() {
        let files = [("/proc/loadavg", "nan -1 x"), ("/proc/cpuinfo", ":\n=")];
        let environment = BenchEnvironment::before(|path| made(&files, path));
        assert_eq!(
            (environment.kernel, environment.cpu, environment.load_before),
            (None, None, None)
        );
        assert_eq!(environment.os, std::env::consts::OS);
    }

    #[test]
    fn this_machine_has_processors() {
        let environment = BenchEnvironment::before(read_file);
        assert!(environment.cpus.is_some_and(|cpus| cpus > 0));
        assert_eq!(environment.toolhost, env!("CARGO_PKG_VERSION"));
    }
}
