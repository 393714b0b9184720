//! Tests of a server's credentials, with an authorization server on a real socket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use url::Url;

use super::vault::{OAuthClient, OAuthLogin, OAuthToken, Vault};
use super::{FileVault, MemoryVault, OAuth, OAuthGrant, OAuthSettings};
use crate::mcp::credentials::{Challenge, ChallengeOutcome, Credentials as _, bearer_header};
use crate::model::{AuthorizationRequest, Browser, Error, ErrorKind};
use crate::net::test_server::{TestRequest, TestResponse, TestServer};
use crate::util::clock::Clock;

const JSON: &str = "Content-Type: application/json";

/// What an authorization server does.
#[derive(Clone, Default)]
struct Script {
    /// Merged over the metadata; `null` takes a field out.
    metadata: Value,
    /// Who the resource says gives tokens; itself by default.
    issuers: Option<Vec<String>>,
    refusal: Option<&'static str>,
    /// Whether the token endpoint leads elsewhere.
    redirects_token: bool,
}

/// A server at `/mcp` and its authorization server, on one port.
async fn server(script: Script) -> TestServer {
    let tokens = AtomicUsize::new(0);
    TestServer::start(move |_, request| {
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let path = request.path.split('?').next().unwrap_or_default();
        let ok = |value: Value| TestResponse::full("200 OK", &[JSON], value.to_string());
        match path {
            "/.well-known/oauth-protected-resource/mcp" => ok(json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": script.issuers.clone().unwrap_or(vec![base]),
            })),
            "/.well-known/oauth-authorization-server" => {
                let mut metadata = json!({
                    "issuer": base,
                    "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"),
                    "registration_endpoint": format!("{base}/register"),
                    "code_challenge_methods_supported": ["S256"],
                });
                for (key, value) in script.metadata.as_object().into_iter().flatten() {
                    metadata[key] = value.clone();
                }
                ok(metadata)
            }
            "/register" => ok(json!({
                "client_id": "registered",
                "client_secret": "hunter2-of-the-client",
                "redirect_uris": ["http://127.0.0.1:7/callback"],
            })),
            "/token" if script.redirects_token => {
                TestResponse::full("307 Temporary Redirect", &["Location: /elsewhere"], "")
            }
            "/token" => {
                if let Some(error) = script.refusal {
                    let refusal = json!({ "error": error, "error_description": "gone" });
                    return TestResponse::full("400 Bad Request", &[JSON], refusal.to_string());
                }
                let number = tokens.fetch_add(1, Ordering::Relaxed) + 1;
                ok(json!({
                    "access_token": format!("access-{number}"),
                    "refresh_token": format!("refresh-{number}"),
                    "token_type": "Bearer",
                    "expires_in": 3600,
                }))
            }
            _ => TestResponse::full("404 Not Found", &[], ""),
        }
    })
    .await
}

/// A person who agrees at once; `end` makes the query of the address it ends at.
struct ConsentingBrowser<F>(F, Mutex<Vec<String>>);

#[async_trait]
impl<F: Fn(&str) -> String + Send + Sync> Browser for ConsentingBrowser<F> {
    async fn redirect_uri(&self, _: Option<u16>) -> Result<String, Error> {
        Ok("http://127.0.0.1:7/callback".to_owned())
    }

    async fn authorize(&self, visit: &AuthorizationRequest) -> Result<String, Error> {
        self.1.lock().unwrap().push(visit.url.clone());
        Ok(format!("http://127.0.0.1:7/callback?{}", (self.0)(&visit.state)))
    }
}

/// A person who comes back with the address of this page.
struct LuredBrowser(&'static str);

#[async_trait]
impl Browser for LuredBrowser {
    async fn redirect_uri(&self, _: Option<u16>) -> Result<String, Error> {
        Ok("http://127.0.0.1:7/callback".to_owned())
    }

    async fn authorize(&self, visit: &AuthorizationRequest) -> Result<String, Error> {
        Ok(format!("{}?code=hunter2&state={}", self.0, visit.state))
    }
}

fn agreeing() -> Arc<ConsentingBrowser<impl Fn(&str) -> String + Send + Sync>> {
    Arc::new(ConsentingBrowser(
        |state: &str| format!("code=hunter2code&state={state}"),
        Mutex::default(),
    ))
}

struct StoppedClock(u64);

impl Clock for StoppedClock {
    #[expect(clippy::disallowed_methods, reason = "the monotonic clock is not asked")]
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn unix(&self) -> Duration {
        Duration::from_secs(self.0)
    }
}

fn settings(peer: &TestServer) -> OAuthSettings {
    let mut settings = OAuthSettings::new("tasks", peer.url("/mcp"));
    settings.clock = Arc::new(StoppedClock(1000));
    settings
}

fn login(peer: &TestServer, issuer: &str, expires_at: u64) -> OAuthLogin {
    let token = OAuthToken {
        access: "access-0".into(),
        refresh: Some("refresh-0".into()),
        expires_at: Some(expires_at),
        scopes: vec!["read".into()],
        asked: vec!["read".into()],
    };
    let client = OAuthClient {
        id: "registered".into(),
        secret: Some("hunter2-of-the-client".into()),
        redirect: "http://127.0.0.1:7/callback".into(),
        registered: true,
    };
    let server = peer.url("/mcp").to_string();
    OAuthLogin { server, issuer: issuer.to_owned(), client, token: Some(token) }
}

fn origin(peer: &TestServer) -> String {
    peer.url("/").origin().ascii_serialization()
}

async fn keep(vault: &dyn Vault, login: &OAuthLogin) {
    vault.edit(&mut |logins| logins.push(login.clone())).await.unwrap();
}

async fn shown(oauth: &OAuth) -> Option<String> {
    let authorization = oauth.authorization().await.unwrap();
    authorization.map(|authorization| authorization.expose_secret().to_owned())
}

fn challenge(peer: &TestServer, status: u16, text: &str, token: Option<&str>) -> Challenge {
    Challenge {
        status,
        www_authenticate: vec![text.to_owned()],
        url: peer.url("/mcp"),
        authorization: token.map(bearer_header),
    }
}

fn requests_to(peer: &TestServer, path: &str) -> Vec<TestRequest> {
    peer.requests().into_iter().filter(|request| request.path.starts_with(path)).collect()
}

fn query(url: &str, name: &str) -> Option<String> {
    let url: Url = url.parse().unwrap();
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn a_refusal_leads_to_a_login_whose_token_is_shown_from_then_on() {
    let peer = server(Script::default()).await;
    let browser = agreeing();
    let learned: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut settings = settings(&peer);
    settings.browser = Some(browser.clone());
    let hears = Arc::clone(&learned);
    settings.on_secret = Arc::new(move |_, value| hears.lock().unwrap().push(value.to_owned()));
    let vault = Arc::clone(&settings.vault);
    let oauth = OAuth::new(settings);
    assert_eq!(shown(&oauth).await, None);
    assert!(peer.requests().is_empty());
    let refusal = challenge(&peer, 401, "Bearer scope=\"read write\"", None);
    assert_eq!(oauth.handle_challenge(refusal).await.unwrap(), ChallengeOutcome::Retry);
    assert_eq!(shown(&oauth).await.unwrap(), "Bearer access-1");
    let url = browser.1.lock().unwrap()[0].clone();
    assert_eq!(query(&url, "scope").unwrap(), "read write");
    assert_eq!(query(&url, "code_challenge_method").unwrap(), "S256");
    assert_eq!(query(&url, "resource").unwrap(), peer.url("/mcp").as_str());
    let logins = vault.load().await.unwrap();
    assert_eq!(logins[0].report().unwrap().expires_at, Some(4600));
    assert!(logins[0].client.registered);
    for secret in ["access-1", "refresh-1", "hunter2-of-the-client"] {
        assert!(learned.lock().unwrap().iter().any(|value| value == secret), "{secret}");
    }
    // What is new and refused all the same is not replaced again.
    let refusal = challenge(&peer, 401, "Bearer", Some("access-1"));
    assert_eq!(oauth.handle_challenge(refusal).await.unwrap(), ChallengeOutcome::Refused);
    assert_eq!(browser.1.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn without_a_person_the_command_that_logs_in_is_named() {
    let peer = server(Script::default()).await;
    let oauth = OAuth::new(settings(&peer));
    let error = oauth.handle_challenge(challenge(&peer, 401, "Bearer", None)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert_eq!(error.hint(), Some("log in with: toolhost auth login tasks"));
    assert!(peer.requests().is_empty(), "nothing is asked that only a login needs");
}

#[tokio::test]
async fn a_token_is_renewed_once_however_many_need_it() {
    let peer = server(Script::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let vault = || Arc::new(FileVault::new(dir.path(), None));
    keep(vault().as_ref(), &login(&peer, &origin(&peer), 1010)).await;
    let each = (0..4).map(|_| {
        // One vault each, as processes have.
        let mut settings = settings(&peer);
        settings.vault = vault();
        async move { shown(&OAuth::new(settings)).await }
    });
    for token in futures_util::future::join_all(each).await {
        assert_eq!(token.unwrap(), "Bearer access-1");
    }
    let requests = requests_to(&peer, "/token");
    assert_eq!(requests.len(), 1);
    assert!(requests[0].body.contains("refresh_token=refresh-0"), "{}", requests[0].body);
    assert!(requests[0].body.contains("resource="), "{}", requests[0].body);
    let logins = vault().load().await.unwrap();
    assert_eq!(logins[0].token.as_ref().unwrap().refresh.as_deref(), Some("refresh-1"));
}

#[tokio::test]
async fn a_login_that_was_ended_elsewhere_is_forgotten_and_its_client_is_not() {
    let peer = server(Script { refusal: Some("invalid_grant"), ..Script::default() }).await;
    let mut settings = settings(&peer);
    settings.vault = Arc::new(MemoryVault::default());
    let vault = Arc::clone(&settings.vault);
    keep(vault.as_ref(), &login(&peer, &origin(&peer), 1010)).await;
    let oauth = OAuth::new(settings);
    assert_eq!(shown(&oauth).await, None);
    let error = oauth.handle_challenge(challenge(&peer, 401, "Bearer", None)).await.unwrap_err();
    assert!(error.message().contains("is over"), "{error:?}");
    assert!(!format!("{error:?}").contains("refresh-0"));
    let logins = vault.load().await.unwrap();
    assert_eq!((logins[0].token.is_none(), logins[0].client.id.as_str()), (true, "registered"));
}

#[tokio::test]
async fn a_renewal_that_could_not_be_tried_costs_no_login() {
    let peer =
        server(Script { refusal: Some("temporarily_unavailable"), ..Script::default() }).await;
    let settings = settings(&peer);
    let vault = Arc::clone(&settings.vault);
    keep(vault.as_ref(), &login(&peer, &origin(&peer), 1010)).await;
    let oauth = OAuth::new(settings);
    oauth.authorization().await.unwrap_err();
    assert!(vault.load().await.unwrap()[0].token.is_some());
}

#[tokio::test]
async fn what_one_issuer_gave_is_never_shown_to_another() {
    let peer = server(Script::default()).await;
    let browser = agreeing();
    let mut settings = settings(&peer);
    settings.browser = Some(browser.clone());
    keep(settings.vault.as_ref(), &login(&peer, "https://before.example", 9000)).await;
    let vault = Arc::clone(&settings.vault);
    let oauth = OAuth::new(settings);
    assert_eq!(shown(&oauth).await.unwrap(), "Bearer access-0");
    let refusal = challenge(&peer, 401, "Bearer error=\"invalid_token\"", Some("access-0"));
    assert_eq!(oauth.handle_challenge(refusal).await.unwrap(), ChallengeOutcome::Retry);
    assert_eq!(shown(&oauth).await.unwrap(), "Bearer access-1");
    assert_eq!(requests_to(&peer, "/register").len(), 1);
    assert!(peer.requests().iter().all(|request| !request.body.contains("refresh-0")));
    let logins = vault.load().await.unwrap();
    let with_token: Vec<_> = logins.iter().filter_map(OAuthLogin::report).collect();
    assert_eq!(with_token.len(), 1);
    assert_eq!(with_token[0].issuer, origin(&peer));
}

#[tokio::test]
async fn more_scopes_are_asked_for_once() {
    let peer = server(Script::default()).await;
    let browser = agreeing();
    let mut settings = settings(&peer);
    settings.browser = Some(browser.clone());
    keep(settings.vault.as_ref(), &login(&peer, &origin(&peer), 9000)).await;
    let oauth = OAuth::new(settings);
    shown(&oauth).await;
    let text = "Bearer error=\"insufficient_scope\", scope=\"write\"";
    let refusal = challenge(&peer, 403, text, Some("access-0"));
    assert_eq!(oauth.handle_challenge(refusal).await.unwrap(), ChallengeOutcome::Retry);
    assert_eq!(query(&browser.1.lock().unwrap()[0], "scope").unwrap(), "read write");
    assert_eq!(shown(&oauth).await.unwrap(), "Bearer access-1");
    let refusal = challenge(&peer, 403, text, Some("access-1"));
    assert_eq!(oauth.handle_challenge(refusal).await.unwrap(), ChallengeOutcome::Refused);
    let other = challenge(&peer, 403, "Bearer", Some("access-1"));
    assert_eq!(oauth.handle_challenge(other).await.unwrap(), ChallengeOutcome::Refused);
}

#[tokio::test]
async fn a_login_for_more_keeps_what_there_was() {
    let peer = server(Script::default()).await;
    let browser = agreeing();
    let settings = settings(&peer);
    keep(settings.vault.as_ref(), &login(&peer, &origin(&peer), 9000)).await;
    let oauth = OAuth::new(settings);
    oauth.login(browser.as_ref(), &["write".to_owned()]).await.unwrap();
    oauth.login(browser.as_ref(), &[]).await.unwrap();
    let visits = browser.1.lock().unwrap().clone();
    assert_eq!(query(&visits[0], "scope").unwrap(), "read write");
    assert_eq!(query(&visits[1], "scope"), None);
}

#[tokio::test]
async fn more_scopes_without_a_person_are_a_command() {
    let peer = server(Script::default()).await;
    let settings = settings(&peer);
    keep(settings.vault.as_ref(), &login(&peer, &origin(&peer), 9000)).await;
    let oauth = OAuth::new(settings);
    shown(&oauth).await;
    let text = "Bearer error=\"insufficient_scope\", scope=\"write admin\"";
    let error =
        oauth.handle_challenge(challenge(&peer, 403, text, Some("access-0"))).await.unwrap_err();
    let hint = "allow it with: toolhost auth login tasks --scope write --scope admin";
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Auth, Some(hint)));
}

#[tokio::test]
async fn another_port_of_this_machine_is_not_asked_because_a_server_says_so() {
    let canary = TestServer::start(|_, _| TestResponse::full("200 OK", &[], "{}")).await;
    let issuers = Some(vec![origin(&canary)]);
    let peer = server(Script { issuers, ..Script::default() }).await;
    let oauth = OAuth::new(settings(&peer));
    let error = oauth.login(agreeing().as_ref(), &[]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error:?}");
    assert!(canary.requests().is_empty());
    let text = format!("Bearer resource_metadata=\"{}\"", canary.url("/prm"));
    let mut settings = settings(&peer);
    settings.browser = Some(agreeing());
    OAuth::new(settings).handle_challenge(challenge(&peer, 401, &text, None)).await.unwrap_err();
    assert!(canary.requests().is_empty());
}

#[tokio::test]
async fn pages_that_are_no_pages_are_never_opened() {
    for page in
        ["javascript:alert(1)", "file:///etc/passwd", "http://10.0.0.1/", "https://a:b@c.example/"]
    {
        let metadata = json!({ "authorization_endpoint": page });
        let peer = server(Script { metadata, ..Script::default() }).await;
        let browser = agreeing();
        OAuth::new(settings(&peer)).login(browser.as_ref(), &[]).await.unwrap_err();
        assert!(browser.1.lock().unwrap().is_empty(), "{page}");
    }
}

#[tokio::test]
async fn what_comes_back_has_to_belong_to_this_login_and_this_issuer() {
    let peer = server(Script::default()).await;
    let ends: [fn(&str) -> String; 4] = [
        |_| "code=hunter2&state=other".to_owned(),
        |state| format!("code=hunter2&state={state}&iss=https%3A%2F%2Fevil.example"),
        |state| {
            format!(
                "error=access_denied&error_description=spoken&state={state}&iss=https%3A%2F%2Fevil.example"
            )
        },
        |state| format!("state={state}"),
    ];
    for end in ends {
        let browser = ConsentingBrowser(end, Mutex::default());
        let error = OAuth::new(settings(&peer)).login(&browser, &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth);
        let text = format!("{error:?}");
        assert!(!text.contains("hunter2") && !text.contains("spoken"), "{text}");
    }
    assert!(requests_to(&peer, "/token").is_empty());
    let refused = |state: &str| format!("error=access_denied&error_description=no&state={state}");
    let browser = ConsentingBrowser(refused, Mutex::default());
    let error = OAuth::new(settings(&peer)).login(&browser, &[]).await.unwrap_err();
    assert_eq!(error.details(), ["access_denied", "no"]);
}

#[tokio::test]
async fn nothing_of_another_login_is_taken_or_shown() {
    let peer = server(Script::default()).await;
    let ends: [fn(&str) -> String; 4] = [
        |_| "code=hunter2&state=other".to_owned(),
        |_| "code=hunter2".to_owned(),
        |_| "error=access_denied&error_description=spoken&state=other".to_owned(),
        |state| format!("error=access_denied&error_description=spoken&state=x{state}"),
    ];
    for end in ends {
        let browser = ConsentingBrowser(end, Mutex::default());
        let error = OAuth::new(settings(&peer)).login(&browser, &[]).await.unwrap_err();
        assert_eq!(error.message(), "the URL belongs to another login");
        assert!(!format!("{error:?}").contains("spoken"));
    }
    assert!(requests_to(&peer, "/token").is_empty());
}

#[tokio::test]
async fn a_code_that_another_page_got_is_not_taken() {
    let peer = server(Script::default()).await;
    for page in [
        "http://127.0.0.1:7/other",
        "http://127.0.0.1:8/callback",
        "https://127.0.0.1:7/callback",
        "https://evil.example/callback",
    ] {
        let error = OAuth::new(settings(&peer)).login(&LuredBrowser(page), &[]).await.unwrap_err();
        assert_eq!(error.message(), "the URL is not the one this login ends at", "{page}");
    }
    assert!(requests_to(&peer, "/token").is_empty());
    let browser = LuredBrowser("http://127.0.0.1:7/callback");
    OAuth::new(settings(&peer)).login(&browser, &[]).await.unwrap();
}

#[tokio::test]
async fn a_code_is_not_sent_to_where_a_token_endpoint_leads() {
    let peer = server(Script { redirects_token: true, ..Script::default() }).await;
    OAuth::new(settings(&peer)).login(agreeing().as_ref(), &[]).await.unwrap_err();
    assert_eq!(requests_to(&peer, "/token").len(), 1);
    assert!(requests_to(&peer, "/elsewhere").is_empty());
}

#[tokio::test]
async fn a_login_ends_at_the_port_of_the_entry_or_is_not_begun() {
    let peer = server(Script::default()).await;
    for (port, message) in [(7, None), (8, Some("the port 8 of 127.0.0.1 is in use"))] {
        let mut settings = settings(&peer);
        settings.redirect_port = Some(port);
        let browser = agreeing();
        let outcome = OAuth::new(settings).login(browser.as_ref(), &[]).await;
        assert_eq!(outcome.err().as_ref().map(Error::message), message);
        assert_eq!(browser.1.lock().unwrap().is_empty(), message.is_some());
    }
}

#[tokio::test]
async fn a_registered_client_is_used_again_for_its_server_and_its_port() {
    let peer = server(Script::default()).await;
    for (path, port, registrations) in [("/mcp", 7, 0), ("/mcp", 8, 1), ("/other", 7, 2)] {
        let settings = settings(&peer);
        let mut before = login(&peer, &origin(&peer), 9000);
        before.server = peer.url(path).to_string();
        before.client.redirect = format!("http://127.0.0.1:{port}/callback");
        keep(settings.vault.as_ref(), &before).await;
        OAuth::new(settings).login(agreeing().as_ref(), &[]).await.unwrap();
        assert_eq!(requests_to(&peer, "/register").len(), registrations, "{path} {port}");
    }
}

#[tokio::test]
async fn a_client_that_the_user_has_is_used_and_not_taken_for_a_registered_one() {
    let document: Url = "https://me.example/client.json".parse().unwrap();
    let metadata = json!({ "client_id_metadata_document_supported": true });
    let peer = server(Script { metadata, ..Script::default() }).await;
    for (id, client_metadata) in [(Some("mine"), None), (None, Some(document.clone()))] {
        let mut settings = settings(&peer);
        let client_id = id.map(str::to_owned);
        settings.grant = OAuthGrant::Login { client_id, client_secret: None, client_metadata };
        let vault = Arc::clone(&settings.vault);
        OAuth::new(settings).login(agreeing().as_ref(), &[]).await.unwrap();
        let client = vault.load().await.unwrap().remove(0).client;
        assert_eq!(
            (client.id.as_str(), client.registered),
            (id.unwrap_or(document.as_str()), false)
        );
    }
    assert!(requests_to(&peer, "/register").is_empty());
}

#[tokio::test]
async fn an_issuer_that_a_project_names_is_asked_only_where_a_servers_may_be() {
    let peer = TestServer::start(|_, _| TestResponse::full("404 Not Found", &[], "")).await;
    let issuer = server(Script::default()).await;
    let of = |named_by_user: bool| {
        let mut settings = OAuthSettings::new("tasks", peer.url("/mcp"));
        settings.issuer = Some(issuer.url("/"));
        settings.is_user_configured = named_by_user;
        OAuth::new(settings)
    };
    of(false).login(agreeing().as_ref(), &[]).await.unwrap_err();
    assert!(issuer.requests().is_empty(), "{:?}", issuer.requests());
    // The same written by the user is asked wherever it is.
    of(true).login(agreeing().as_ref(), &[]).await.ok();
    assert!(!issuer.requests().is_empty());
}

#[tokio::test]
async fn a_token_endpoint_that_a_project_names_gets_no_secret_in_the_clear() {
    let canary = server(Script::default()).await;
    let of = |named_by_user: bool| {
        let url = "https://mcp.example.com/mcp".parse().unwrap();
        let mut settings = OAuthSettings::new("tasks", url);
        settings.is_user_configured = named_by_user;
        settings.grant = OAuthGrant::Program {
            client_id: "me".into(),
            client_secret: "hunter2hunter2".into(),
            token_url: Some(canary.url("/token")),
        };
        OAuth::new(settings)
    };
    let refusal = || challenge(&canary, 401, "Bearer", None);
    let error = of(false).handle_challenge(refusal()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(canary.requests().is_empty());
    assert_eq!(of(true).handle_challenge(refusal()).await.unwrap(), ChallengeOutcome::Retry);
}

#[tokio::test]
async fn a_login_is_offered_for_the_same_resource_and_issuer_only() {
    let peer = server(Script::default()).await;
    let vault = Arc::new(MemoryVault::default());
    keep(vault.as_ref(), &login(&peer, &origin(&peer), 9000)).await;
    let offered = |path: &str, issuer: Option<&str>| {
        let mut settings = OAuthSettings::new("other-name", peer.url(path));
        settings.clock = Arc::new(StoppedClock(1000));
        settings.is_user_configured = false;
        settings.issuer = issuer.map(|issuer| issuer.parse().unwrap());
        settings.vault = Arc::clone(&vault) as _;
        async move { shown(&OAuth::new(settings)).await }
    };
    assert_eq!(offered("/mcp", None).await.unwrap(), "Bearer access-0");
    assert!(offered("/mcp", Some(&origin(&peer))).await.is_some());
    assert_eq!(offered("/mcp", Some("https://evil.example")).await, None);
    for elsewhere in ["/", "/other", "/mcp/x"] {
        assert_eq!(offered(elsewhere, None).await, None, "{elsewhere}");
    }
}

#[tokio::test]
async fn a_server_without_pkce_is_not_logged_in_to() {
    let metadata = json!({ "code_challenge_methods_supported": null });
    let peer = server(Script { metadata, ..Script::default() }).await;
    let error = OAuth::new(settings(&peer)).login(agreeing().as_ref(), &[]).await.unwrap_err();
    assert!(error.message().contains("PKCE"), "{error:?}");
}

#[tokio::test]
async fn logins_that_cannot_be_read_matter_only_when_one_is_wanted() {
    let peer = server(Script::default()).await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("auth")).unwrap();
    std::fs::write(dir.path().join("auth/logins"), "nonsense").unwrap();
    let mut settings = settings(&peer);
    settings.vault = Arc::new(FileVault::new(dir.path(), None));
    let required = OAuth::new(settings.clone());
    required.authorization().await.unwrap_err();
    settings.is_required = false;
    let oauth = OAuth::new(settings);
    assert_eq!(shown(&oauth).await, None);
    let error = oauth.handle_challenge(challenge(&peer, 401, "Bearer", None)).await.unwrap_err();
    assert!(error.message().contains("cannot be read"), "{error:?}");
}

#[tokio::test]
async fn a_program_needs_no_person() {
    let peer = server(Script::default()).await;
    let mut settings = settings(&peer);
    settings.grant = OAuthGrant::Program {
        client_id: "me & you".into(),
        client_secret: "hunter2:hunter2".into(),
        token_url: Some(peer.url("/token")),
    };
    settings.scopes = vec!["read".into()];
    let oauth = OAuth::new(settings);
    assert_eq!(shown(&oauth).await, None);
    let refusal = challenge(&peer, 401, "Bearer", None);
    assert_eq!(oauth.handle_challenge(refusal).await.unwrap(), ChallengeOutcome::Retry);
    assert_eq!(shown(&oauth).await.unwrap(), "Bearer access-1");
    let requests = peer.requests();
    assert_eq!(requests.len(), 1);
    // Both parts are encoded as in a form before they are joined.
    let pair = crate::util::base64::encode(b"me+%26+you:hunter2%3Ahunter2");
    assert_eq!(requests[0].header("authorization").unwrap(), format!("Basic {pair}"));
    assert!(requests[0].body.contains("grant_type=client_credentials"), "{}", requests[0].body);
    assert!(requests[0].body.contains("scope=read"), "{}", requests[0].body);
}

#[tokio::test]
async fn a_refused_program_is_told_why_without_its_secret() {
    let peer = server(Script { refusal: Some("invalid_client"), ..Script::default() }).await;
    let mut settings = settings(&peer);
    let client_secret = "hunter2hunter2".into();
    settings.grant = OAuthGrant::Program { client_id: "me".into(), client_secret, token_url: None };
    let oauth = OAuth::new(settings);
    let error = oauth.handle_challenge(challenge(&peer, 401, "Bearer", None)).await.unwrap_err();
    assert!(error.message().ends_with("invalid_client"), "{error:?}");
    assert!(!format!("{error:?}{oauth:?}").contains("hunter2"));
}
