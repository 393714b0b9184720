//! A guess at the MCP endpoint of a URL without a path.

use url::Url;

/// Where a server without a path in its URL may be found as well.
pub(super) fn mcp_path_guess(url: &Url) -> Option<Url> {
    let bare = matches!(url.path(), "" | "/") && url.query().is_none();
    bare.then(|| {
        let mut guess = url.clone();
        guess.set_path("/mcp");
        guess
    })
}

#[cfg(test)]
mod tests {
    use super::mcp_path_guess;

    #[test]
    fn only_a_url_without_a_path_is_guessed_at() {
        let guess = |url: &str| mcp_path_guess(&url.parse().unwrap()).map(|url| url.to_string());
        assert_eq!(guess("http://localhost:8001"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/api"), None);
        assert_eq!(guess("http://localhost:8001/?key=1"), None);
    }
}
