//! The pages lead to each other: every link of a page has a target.

use std::path::Path;

use regex::Regex;

use super::{pages, root};

/// The names by which the headings of a page are reached.
fn anchors(text: &str) -> Vec<String> {
    let mut is_code = false;
    let headings = text.lines().filter(move |line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    headings
        .map(|heading| {
            let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            words.chars().filter(|sign| sign.is_alphanumeric() || "-_".contains(*sign)).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let fences = Regex::new(r"(?ms)^```.*?^```").unwrap();
    let mut dead = Vec::new();
    let mut found = 0;
    for page in pages() {
        let directory = Path::new(&page.path).parent().unwrap();
        let prose = fences.replace_all(&page.text, "");
        for target in link.captures_iter(&prose).map(|found| found[1].to_owned()) {
            if target.contains("://") {
                continue;
            }
            found += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() {
                root().join(&page.path)
            } else {
                root().join(directory).join(file)
            };
            let is_there = match (path.exists(), anchor) {
                (is_there, "") => is_there,
                (_, anchor) => std::fs::read_to_string(&path)
                    .is_ok_and(|text| anchors(&text).iter().any(|name| name == anchor)),
            };
            if !is_there {
                dead.push(format!("{}: {target}", page.path));
            }
        }
    }
    assert!(found > 20, "only {found} links");
    assert_eq!(dead, [""; 0]);
}

#[test]
fn every_picture_that_a_page_names_is_there_and_shown() {
    let image = Regex::new(r#"!\[[^\]]+\]\(([^)\s]+)\)|<img[^>]*\ssrc="([^"]+)""#).unwrap();
    let mut shown = Vec::new();
    for page in pages() {
        let directory = root().join(Path::new(&page.path).parent().unwrap());
        let images: Vec<(usize, String)> = image
            .captures_iter(&page.text)
            .map(|parts| {
                let target = parts.get(1).or(parts.get(2)).unwrap().as_str();
                (parts.get(0).unwrap().start(), target.to_owned())
            })
            .filter(|(_, target)| !target.contains("://"))
            .collect();
        for (_, target) in &images {
            let file = directory.join(target);
            assert!(file.is_file(), "{} names {target}, which is not there", page.path);
            shown.push(file.canonicalize().unwrap());
        }
        if let Some(mention) = page.text.find("pictured above") {
            let is_shown = images.iter().any(|(start, _)| *start < mention);
            assert!(is_shown, "{} says 'pictured above' and shows no picture", page.path);
        }
    }
    for file in std::fs::read_dir(root().join("docs")).unwrap() {
        let file = file.unwrap().path();
        let is_picture = file.extension().is_some_and(|end| end == "svg" || end == "png");
        assert!(!is_picture || shown.contains(&file), "no page shows {}", file.display());
    }
}
