//! `toolhost auth`: logging in to servers and managing logins.

use jiff::Timestamp;

use super::prelude::*;
use crate::assembly::logins;
use crate::cli::login::TerminalBrowser;
use crate::config::spec::{Configuration, Endpoint};
use crate::model::LoginReport;
use crate::present::login::{LoginRow, line, table};

/// Log in to servers and manage logins.
#[derive(Debug, Args)]
pub struct AuthArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: AuthAction,
}

/// What to do with logins.
#[derive(Debug, Subcommand)]
pub enum AuthAction {
    /// Log in to a server with OAuth.
    ///
    /// Prints the login URL and opens it in the browser. Without a desktop, or with --no-browser,
    /// open it anywhere and paste the URL of the page it ends at. The token is stored in an
    /// encrypted file and renewed as long as the server allows. No other command starts a login.
    #[command(arg = formats::option(formats::REPORT))]
    Login {
        /// Name of the server
        #[arg(value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers), required_unless_present = "server_url")]
        server: Option<String>,
        /// Do not open a browser; paste the URL the login ends at
        #[arg(long)]
        no_browser: bool,
        /// Also request this scope (repeatable)
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
    },
    /// Delete stored logins.
    Logout {
        /// Name of the server
        #[arg(value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers), required_unless_present = "all")]
        server: Option<String>,
        /// Delete all logins, including unreadable ones
        #[arg(long, conflicts_with = "server")]
        all: bool,
    },
    /// List stored logins, without their tokens.
    #[command(arg = formats::option(formats::LIST))]
    List,
}

pub async fn run(args: &AuthArgs, context: &CommandContext) -> CommandResult {
    match &args.action {
        AuthAction::Login { server, no_browser, scope } => {
            login(server.as_deref().unwrap_or_default(), *no_browser, scope, context).await
        }
        AuthAction::Logout { all: true, .. } => {
            context.format(formats::TEXT)?;
            let any = logins::forget_all(context.environment.as_ref()).await?;
            let text = if any { "logged out of all servers" } else { "no logins" };
            context.output.note(text);
            Ok(())
        }
        AuthAction::Logout { server, .. } => {
            logout(server.as_deref().unwrap_or_default(), context).await
        }
        AuthAction::List => list(context).await,
    }
}

async fn login(
    server: &str,
    headless: bool,
    scopes: &[String],
    context: &CommandContext,
) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let names = [server.to_owned()];
    let assembly = context.assemble(StartScope::Servers(&names)).await?;
    entry_checks::require_configured(&assembly.configuration, &names)?;
    let browser = TerminalBrowser::new(
        Arc::clone(&context.output),
        context.environment.as_ref(),
        context.cancel.clone(),
        headless,
    );
    let login = assembly.host.login(server, &browser, scopes).await?;
    if context.output.report(format, &LoginJson::from((&names[..], &login)), Page::default)? {
        context.output.note(line(server, &login, context.now()));
    }
    Ok(())
}

async fn logout(server: &str, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    let assembly = context.assemble(StartScope::Nothing).await?;
    entry_checks::require_configured(&assembly.configuration, &[server.to_owned()])?;
    let gone = assembly.host.logout(server).await?;
    let what = if gone == 0 { "no login for " } else { "logged out of " };
    context.output.note(Line::plain(what).then(Role::Name, server));
    Ok(())
}

async fn list(context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let assembly = context.assemble(StartScope::Nothing).await?;
    let logins = logins::list(context.environment.as_ref()).await?;
    let rows: Vec<LoginRow> = logins
        .into_iter()
        .map(|login| LoginRow { servers: entries_using(&assembly.configuration, &login), login })
        .collect();
    let output = &context.output;
    let logins = rows.iter().map(|row| LoginJson::from((&row.servers[..], &row.login)));
    let value = LoginsJson { logins: logins.collect() };
    let names = rows.iter().flat_map(|row| &row.servers);
    if output.listing(format, &value, names, || table(&rows, context.now(), output.width()))? {
        if rows.is_empty() {
            output.note("no logins");
        } else if output.is_terminal() {
            output.note(plural(rows.len(), "login", "logins"));
        }
    }
    Ok(())
}

fn entries_using(configuration: &Configuration, login: &LoginReport) -> Vec<String> {
    let servers = configuration.servers.iter().filter(|server| match &server.endpoint {
        Endpoint::Http { url, .. } => crate::net::address::display_url(url) == login.url,
        Endpoint::Stdio { .. } => false,
    });
    servers.map(|server| server.name.clone()).collect()
}

/// The logins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoginsJson<'a> {
    /// One for each address.
    pub logins: Vec<LoginJson<'a>>,
}

shape! {
    /// A login at a server's address.
    pub LoginJson<'a> of (names, login): (&'a [String], &'a LoginReport), with {
        let time = |at: u64| Timestamp::from_second(i64::try_from(at).ok()?).ok();
    } {
        /// The servers that use it.
        servers: &'a [String] = names,
        /// The address, without its query.
        url: &'a str = &login.url,
        /// The issuer of the token.
        issuer: &'a str = &login.issuer,
        /// The client ID at the issuer.
        client_id: &'a str = &login.client_id,
        /// The scopes that were granted.
        scopes: &'a [String] = &login.scopes,
        /// When the token expires (RFC 3339); null when that is unknown.
        expires_at: Option<String> = login.expires_at.and_then(time).map(|at| at.to_string()),
        /// Whether it is renewed without user interaction.
        renewable: bool = login.renewable,
    }
}
