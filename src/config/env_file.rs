//! Files of `NAME=value` lines, which editors let an entry name as `envFile`.

use thiserror::Error;

use super::references::is_name;

pub const MAX_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} is not NAME=value")]
pub struct EnvFileError {
    /// Its number, from 1.
    pub line: usize,
}

/// The variables of a file, in its order. A line may start with `export`, a value may be in quotes;
/// in double quotes `\n`, `\"` and `\\` are replaced. A `#` starts a comment at the start of a
/// line, and after a space following an unquoted value.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let pair = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        match pair {
            Some((name, value)) if is_name(name) => {
                variables.push((name.to_owned(), unquoted(value)));
            }
            _ => return Err(EnvFileError { line: index + 1 }),
        }
    }
    Ok(variables)
}

fn unquoted(value: &str) -> String {
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
        return inner.0.to_owned();
    }
    let Some(inner) = value.strip_prefix('"') else {
        return value.split(" #").next().unwrap_or_default().trim_end().to_owned();
    };
    let (mut out, mut characters) = (String::new(), inner.chars());
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => match characters.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => break,
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_editors_read_them() {
        let text = "# why\n\nA=1\nexport B = two words # note\nC='# $x'\nD=\"a\\nb\\\"\" # x\nE=\n";
        let variables = parse(text).unwrap();
        let pairs: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let expected = [("A", "1"), ("B", "two words"), ("C", "# $x"), ("D", "a\nb\""), ("E", "")];
        assert_eq!(pairs, expected);
        assert_eq!(parse("A=1\nnonsense\n"), Err(EnvFileError { line: 2 }));
        assert_eq!(parse("1A=x"), Err(EnvFileError { line: 1 }));
    }
}
