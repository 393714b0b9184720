//! File names for saved results.

use std::fs;
use std::path::{Path, PathBuf};

/// The files for payloads of these media types: the path itself, or `name-1.ext`, `name-2.ext`, …
/// A name without an extension gets the usual one of a picture, a sound or another file. Of several
/// payloads a text is `.txt`, unless the given extension may be that of a text.
pub fn output_paths(path: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let suffix = path.extension().map(|e| e.to_string_lossy().into_owned());
    // A device or a pipe is what it is.
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let named = |(index, kind): (usize, &&str)| {
        let number = if kinds.len() > 1 { format!("-{}", index + 1) } else { String::new() };
        let usual = match extension(kind) {
            None if kinds.len() > 1 && is_text(kind) => Some("txt"),
            usual => usual,
        };
        let is_other_media = |suffix: &str| kinds.len() > 1 && is_media(suffix) && usual.is_some();
        match suffix.as_deref().filter(|suffix| !is_other_media(suffix)).or(usual) {
            Some(extension) => path.with_file_name(format!("{stem}{number}.{extension}")),
            None => path.with_file_name(format!("{stem}{number}")),
        }
    };
    match kinds {
        [_] if special || suffix.is_some() => vec![path.to_path_buf()],
        kinds => kinds.iter().enumerate().map(named).collect(),
    }
}

/// Media types and their extensions; of several for one, the first is the usual.
const MEDIA_TYPES: [(&str, &str); 25] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/jpg", "jpg"),
    ("image/jpeg", "jpeg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/tiff", "tiff"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/x-wav", "wav"),
    ("audio/wave", "wav"),
    ("audio/mpeg", "mp3"),
    ("audio/mp3", "mp3"),
    ("audio/ogg", "ogg"),
    ("audio/flac", "flac"),
    ("audio/aac", "aac"),
    ("audio/mp4", "m4a"),
    ("video/webm", "webm"),
    ("audio/webm", "webm"),
    ("video/mp4", "mp4"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
    ("application/gzip", "gz"),
];

/// The usual extension of a media type. Text and JSON go without: they are what a result mostly
/// is, and are saved under the very name that was given. Nothing of what the server wrote gets
/// into the name.
pub fn extension(media_type: &str) -> Option<&'static str> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    MEDIA_TYPES.iter().find(|(name, _)| *name == essence).map(|(_, extension)| *extension)
}

/// The media type of a file, by its extension.
pub fn media_type(path: &Path) -> &'static str {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let row = MEDIA_TYPES.iter().find(|(_, usual)| *usual == extension);
    row.map_or("application/octet-stream", |(name, _)| *name)
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type.starts_with("application/json")
}

/// Whether an extension is none that a text has.
fn is_media(extension: &str) -> bool {
    let extension = extension.to_ascii_lowercase();
    let is_binary = |(_, usual): &(&str, &str)| *usual == extension && *usual != "svg";
    extension == "tar" || MEDIA_TYPES.iter().any(is_binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_payloads_get_numbers() {
        let named = |path: &str, kinds: &[&str]| -> Vec<String> {
            let paths = output_paths(Path::new(path), kinds);
            paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(named("a/pic.png", &["image/gif"]), ["a/pic.png"]);
        assert_eq!(named("a/pic.png", &["x", "y"]), ["a/pic-1.png", "a/pic-2.png"]);
        let mixed = ["image/png", "text/plain", "audio/wav"];
        assert_eq!(named("pic.png", &mixed), ["pic-1.png", "pic-2.txt", "pic-3.wav"]);
        assert_eq!(named("a.md", &["text/plain", "text/plain"]), ["a-1.md", "a-2.md"]);
        assert_eq!(named("out", &["text/plain", "text/plain"]), ["out-1.txt", "out-2.txt"]);
    }

    #[test]
    fn the_type_gives_an_extension_where_there_is_none() {
        let named = |kinds: &[&str]| output_paths(Path::new("a/out"), kinds);
        assert_eq!(named(&["image/png"]), [Path::new("a/out.png")]);
        assert_eq!(named(&["AUDIO/MPEG; x=1"]), [Path::new("a/out.mp3")]);
        assert_eq!(
            named(&["text/plain", "audio/wav"]),
            [Path::new("a/out-1.txt"), Path::new("a/out-2.wav")]
        );
        // A server's own words never get into a name.
        for kind in ["image/../../etc/passwd", "image/x-sh", "", "application/x-evil.sh"] {
            assert_eq!(named(&[kind]), [Path::new("a/out")], "{kind}");
        }
        assert_eq!(output_paths(Path::new("/dev/null"), &["image/png"]), [Path::new("/dev/null")]);
    }
}
