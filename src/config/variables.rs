//! Names of environment variables, and which of them can inject code into a program.
//!
//! Owns: the list, shared by what a call may set and what the user is shown before trusting an
//! entry. Never does: read a variable.

/// The variables that a server's program gets without its entry naming them.
pub const PASSED_TO_SERVERS: [&str; 10] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Variables with these names decide which code runs, or which certificates and peers a program
/// trusts.
const NAMES: [&str; 32] = [
    "PATH",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "PERLLIB",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "LOCPATH",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESSOPEN",
    "XDG_CONFIG_HOME",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    // Variables read by another toolhost that a tool starts.
    "TOOLHOST_TOOLS",
    "TOOLHOST_MCP",
    "TOOLHOST_TRUST",
];

/// Prefixes of further such variables.
const PREFIXES: [&str; 11] = [
    "LD_",
    "DYLD_",
    "PYTHON",
    "PERL5",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "GIT_",
    "SSL_",
    // Functions that bash imports: `BASH_FUNC_ls%%`.
    "BASH_FUNC_",
    "LUA_",
];

/// Variables that tell a tool about its call: only toolhost sets them.
const SET_BY_TOOLHOST: [&str; 6] = [
    "TOOLHOST_CALL_ID",
    "TOOLHOST_SESSION_ID",
    "TOOLHOST_USER",
    "TOOLHOST_CWD",
    "TOOLHOST_CONTEXT",
    "TOOLHOST_EVENTS_FD",
];

/// Whether toolhost itself sets a variable, from what it knows about a call.
pub fn is_set_by_toolhost(name: &str) -> bool {
    SET_BY_TOOLHOST.contains(&name)
}

/// Whether a variable determines which code runs: only an entry may set it, never a call, and its
/// value is part of what the user is asked to trust.
pub fn decides_code(name: &str) -> bool {
    // Programs read proxy variables in upper and lower case.
    let is_proxy = name.len() >= 6 && name.to_ascii_uppercase().ends_with("_PROXY");
    is_proxy || NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the system supports a variable with this name, and every shell can refer to it.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a call may set a variable: one that its entry declares, or one of toolhost's own.
pub fn call_may_set(name: &str, declared: &[String]) -> bool {
    let own = name.starts_with("TOOLHOST_") && is_name(name);
    !decides_code(name)
        && !is_set_by_toolhost(name)
        && (own || declared.iter().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_code_is_known_and_what_does_not_is_not() {
        for name in [
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONUSERBASE",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "NODE_PATH",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "PERL5OPT",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "GIT_SSH_COMMAND",
            "SSL_CERT_FILE",
            "HTTPS_PROXY",
            "http_proxy",
            "PATH",
            "TOOLHOST_TRUST",
        ] {
            assert!(decides_code(name), "{name}");
            assert!(!call_may_set(name, &[name.to_owned()]), "{name}");
        }
        for name in ["TICKET", "LANG", "TENANT", "TOOLHOST_TENANT", "MY_PATH", "_PROXIES"] {
            assert!(!decides_code(name), "{name}");
        }
    }

    #[test]
    fn a_call_sets_what_is_declared_and_what_is_toolhosts_own() {
        let declared = ["TICKET".to_owned()];
        assert!(call_may_set("TICKET", &declared));
        assert!(call_may_set("TOOLHOST_TENANT", &declared));
        for name in ["TICKETS", "ticket", "", "TOOLHOST_x%%", "TOOLHOST_USER"] {
            assert!(!call_may_set(name, &declared), "{name}");
        }
    }
}
