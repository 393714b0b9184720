//! Parsing of `--export FORMAT=FILE`.

use std::str::FromStr;

use crate::bench::bench_result::ExportFormat;
use crate::cli::commands::prelude::*;

/// `--export`: a format and a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSpec {
    pub form: ExportFormat,
    pub path: PathBuf,
}

impl FromStr for ExportSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let form_of = |word: &str| match word {
            "csv" => Some(ExportFormat::Csv),
            "md" | "markdown" => Some(ExportFormat::Markdown),
            _ => None,
        };
        if let Some((word, path)) = text.split_once('=')
            && let Some(form) = form_of(word)
            && !path.is_empty()
        {
            return Ok(Self { form, path: path.into() });
        }
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| form_of(extension.to_str()?)) {
            Some(form) => Ok(Self { form, path }),
            None => Err(Error::usage(
                "expected FILE.csv, FILE.md, csv=FILE or md=FILE; use --save FILE for JSON",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_named_or_follows_from_the_file() {
        let export = |text: &str| text.parse::<ExportSpec>().map(|export| export.form).ok();
        assert_eq!(export("a.csv"), Some(ExportFormat::Csv));
        assert_eq!(export("b.md"), Some(ExportFormat::Markdown));
        assert_eq!(export("csv=a=b.txt"), Some(ExportFormat::Csv));
        assert_eq!("csv=a=b.txt".parse::<ExportSpec>().unwrap().path, Path::new("a=b.txt"));
        for text in ["", "csv=", "a.json", "html=a.html", "a", "a.hgrm", "hyperfine=a.json"] {
            assert!(export(text).is_none(), "{text}");
        }
    }
}
