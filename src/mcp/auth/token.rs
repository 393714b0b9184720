//! One request to a token endpoint, for grants the SDK does not support.

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::http::AuthHttp;
use super::vault::OAuthToken;
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::excerpt::{server_message, truncate};
use crate::util::base64;

#[derive(Deserialize)]
pub(super) struct TokenEndpointResponse {
    pub access_token: String,
    #[serde(default)]
    pub token_type: String,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    pub refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

impl TokenEndpointResponse {
    /// The token as stored; `now` in seconds since the Unix epoch.
    pub(super) fn token(
        self,
        requested_scopes: Vec<String>,
        now: u64,
    ) -> Result<OAuthToken, Error> {
        if !self.token_type.eq_ignore_ascii_case("Bearer") {
            let kind = truncate(&self.token_type);
            return Err(Error::auth(format!("the token is of the type '{kind}', not Bearer")));
        }
        // Some write the number as text.
        let lasts = self.expires_in.and_then(|lasts| {
            lasts.as_u64().or_else(|| lasts.as_str().and_then(|text| text.parse().ok()))
        });
        // Saying nothing means that everything was granted.
        let scopes = match self.scope {
            Some(scopes) => scopes.split_whitespace().map(str::to_owned).collect(),
            None => requested_scopes.clone(),
        };
        Ok(OAuthToken {
            access: self.access_token,
            refresh: self.refresh_token.filter(|token| !token.is_empty()),
            expires_at: lasts.map(|lasts| now.saturating_add(lasts)),
            scopes,
            asked: requested_scopes,
        })
    }
}

/// Asks for a token with a client's secret: in the way that `methods` names, in the header when they
/// do not say.
pub(super) async fn request(
    http: &AuthHttp,
    endpoint: Url,
    (client_id, secret): (&str, &SecretString),
    methods: &[&str],
    form: &[(&str, &str)],
) -> Result<TokenEndpointResponse, Error> {
    let place = display_url(&endpoint);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let mut form = form.to_vec();
    if methods.contains(&"client_secret_post") && !methods.contains(&"client_secret_basic") {
        form.extend([("client_id", client_id), ("client_secret", secret.expose_secret())]);
    } else {
        headers.insert(AUTHORIZATION, basic(client_id, secret)?);
    }
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let answer = http.send(Method::POST, endpoint, headers, body.into(), false).await?;
    if answer.status.is_success() {
        return serde_json::from_slice(&answer.body).map_err(|cause| {
            // Neither quoted nor described: a token may be in it.
            let what = if cause.is_data() { "an answer without a token" } else { "no JSON" };
            Error::protocol(format!("{place} answered {} with {what}", answer.status))
        });
    }
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let text = |field: &str| json.as_ref().and_then(|json| json.get(field)?.as_str()).map(truncate);
    let status = answer.status;
    let Some(cause) = text("error") else {
        let error = if status.is_server_error() {
            Error::unreachable(format!("{place} answered {status}"))
        } else {
            Error::auth(format!("{place} issued no token: {status}"))
        };
        return Err(error.with_details(server_message(&answer.body)));
    };
    Err(Error::auth(format!("{place} issued no token: {cause}"))
        .with_details(text("error_description")))
}

/// `Basic`, with both parts encoded as in a form (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &SecretString) -> Result<HeaderValue, Error> {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(client_id), encode(secret.expose_secret()));
    let mut value = HeaderValue::try_from(format!("Basic {}", base64::encode(pair.as_bytes())))
        .map_err(|_| Error::internal("base64 is not a header"))?;
    value.set_sensitive(true);
    Ok(value)
}
