//! `toolhost serve token`: issuing, listing and revoking access tokens.

use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::call::parse_timeout;
use super::prelude::*;
use crate::host::unknown_profile;
use crate::present::serve_token;
use crate::serve::listen::token_store::{IssuedToken, TokenGrant, TokenStore};

/// Issue, list and revoke access tokens for clients.
#[derive(Debug, Args)]
pub struct ServeTokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ServeTokenAction,
}

/// What to do with access tokens.
#[derive(Debug, Subcommand)]
pub enum ServeTokenAction {
    /// Issue a token to a client and print it once.
    ///
    /// The client sends it to `serve --http` or `--ws` as its bearer token, and sees only the
    /// tools, prompts and resources that --profile and --tool allow. Its name appears in the audit
    /// log and the history. Only a hash of the token is stored.
    #[command(arg = formats::option(formats::REPORT))]
    Issue {
        /// Name of the client in the records of its calls
        client: String,
        /// Allow only tools, prompts and resources whose full names match (repeatable), such as
        /// 'git-*'
        #[arg(long = "tool", value_name = "PATTERN")]
        patterns: Vec<String>,
        /// Lifetime of the token, such as 30m, 24h or 7d
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_timeout)]
        expires: Duration,
    },
    /// List the tokens, without their secrets.
    #[command(arg = formats::option(formats::LIST))]
    List,
    /// Revoke a token, or all tokens of a client, with immediate effect.
    #[command(arg = formats::option(formats::REPORT))]
    Revoke {
        /// ID of a token, or name of a client
        name: String,
    },
}

pub fn run(args: &ServeTokenArgs, context: &CommandContext) -> CommandResult {
    let state = context.environment.state_dir();
    let state = state.ok_or_else(|| Error::config("there is no directory for tokens"))?;
    let store = TokenStore::in_state(&state);
    match &args.action {
        ServeTokenAction::Issue { client, patterns, expires } => {
            let grant = TokenGrant {
                client: client.clone(),
                profile: known_profile(context)?,
                tools: patterns.clone(),
                lifetime: *expires,
            };
            issue(&store, grant, context)
        }
        ServeTokenAction::List => list(&store, context),
        ServeTokenAction::Revoke { name } => revoke(&store, name, context),
    }
}

/// The requested profile, if the configuration here has it.
fn known_profile(context: &CommandContext) -> Result<Option<String>, Error> {
    let Some(name) = &context.global.rare.profile else { return Ok(None) };
    let configuration = context.load();
    if !configuration.profiles.contains_key(name) {
        return Err(unknown_profile(name, configuration.profiles.keys().map(String::as_str)));
    }
    Ok(Some(name.clone()))
}

fn issue(store: &TokenStore, grant: TokenGrant, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let (token, issued) = store.issue(grant, context.now())?;
    let token = token.expose_secret();
    let page = || Page::from(Line::plain(token));
    if !context.output.report(format, &NewTokenJson::from((token, &issued)), page)? {
        return Ok(());
    }
    context.output.note(serve_token::issued(&issued));
    if issued.profile.is_none() && issued.tools.is_empty() {
        context.output.warn(
            "this client may use everything that is served; limit it with --profile or --tool",
        );
    }
    Ok(())
}

fn list(store: &TokenStore, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let (tokens, now) = (store.list()?, context.now());
    let value = TokenListJson::from((&tokens[..], now));
    let names = tokens.iter().map(|token| &token.id);
    let page = || serve_token::table(&tokens, now, context.output.width());
    if context.output.listing(format, &value, names, page)? && tokens.is_empty() {
        context.output.note("no token was issued; `toolhost serve token issue CLIENT` issues one");
    }
    Ok(())
}

fn revoke(store: &TokenStore, name: &str, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let revoked = store.revoke(name)?;
    let value = TokenListJson::from((&revoked[..], context.now()));
    if !context.output.report(format, &value, Page::default)? {
        return Ok(());
    }
    for token in &revoked {
        let of = format!(" of {}", token.client);
        context.output.note(done("revoked ", &token.id).then(Role::Plain, of));
    }
    Ok(())
}

shape! {
    /// The issued tokens; for `revoke` those that were revoked.
    pub TokenListJson<'a> of (issued, now): (&'a [IssuedToken], Duration) {
        tokens: Vec<IssuedTokenJson<'a>> = issued.iter().map(|token| (token, now).into()).collect(),
    }
}

shape! {
    /// A token that was just issued.
    pub NewTokenJson<'a> of (secret, token): (&'a str, &'a IssuedToken) {
        /// The secret that the client sends. It is shown only once.
        token: &'a str = secret,
        #[serde(flatten)]
        issued: IssuedTokenJson<'a> = (token, Duration::from_secs(token.issued)).into(),
    }
}

shape! {
    /// A token, without its secret.
    pub IssuedTokenJson<'a> of (token, now): (&'a IssuedToken, Duration), with {
        let time = |at: u64| {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            Timestamp::from_second(at).unwrap_or(Timestamp::MAX).to_string()
        };
    } {
        /// The name used to revoke it.
        id: &'a str = &token.id,
        /// The client it was issued to.
        client: &'a str = &token.client,
        /// The profile the client is bound to; null when there is none.
        profile: Option<&'a str> = token.profile.as_deref(),
        /// Patterns of the tools the client may use; empty allows all.
        tools: &'a [String] = &token.tools,
        /// When it was issued (RFC 3339).
        issued_at: String = time(token.issued),
        /// When it expires (RFC 3339).
        expires_at: String = time(token.expires),
        /// Whether it has expired.
        expired: bool = token.is_expired(now),
    }
}
