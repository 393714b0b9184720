//! The same over one connection, as a program does that embeds the client alone: logins, which a
//! host makes beforehand and the scenarios want to see happen.

use std::sync::Arc;
use std::time::Duration;

use crate::config::spec::ProtocolChoice;
use crate::mcp::connection::{ConnectOptions, Connection, RequestOptions, WireOpener};
use crate::mcp::transport::http::{HttpTarget, HttpWire};
use crate::mcp::wire::Wire;
use crate::mcp::{calling, listing};
use crate::model::{Error, ErrorPhase, EventSink};
use url::Url;

use super::{PEER, answers, calls_of, fault_of, login};

/// How long one step may take; the suite gives half a minute to all.
const LIMIT: Duration = Duration::from_secs(10);

/// Connects, lists the tools and calls them; gives what went wrong on the way.
pub async fn exercise(
    url: Url,
    protocol: ProtocolChoice,
    scenario: &str,
    given: login::Given,
) -> Vec<Error> {
    let mut target = HttpTarget::new(url.clone());
    target.credentials = Arc::new(login::credentials(url, scenario, given));
    let open: WireOpener =
        Arc::new(move || Ok(Arc::new(HttpWire::connect(target.clone())?) as Arc<dyn Wire>));
    let options = ConnectOptions {
        server: PEER.to_owned(),
        protocol,
        cached_era: None,
        start_timeout: LIMIT,
        falls_back_on_silence: false,
        roots: Vec::new(),
        events: EventSink::discard(),
        inbox: Arc::new(answers::Obliging),
    };
    let connection = match Connection::open(&open, options).await {
        Ok(connection) => connection,
        Err(fault) => return vec![fault],
    };
    let mut faults = Vec::new();
    match listing::tools(&connection, LIMIT).await {
        Ok(listing) => {
            for call in calls_of(&listing.tools) {
                let options = RequestOptions::with_timeouts(LIMIT, LIMIT, ErrorPhase::Call);
                let (name, arguments) = (&call.name, &call.arguments);
                let result = calling::call(&connection, name, arguments, false, &options).await;
                faults.extend(fault_of(result));
            }
        }
        Err(fault) => faults.push(fault),
    }
    connection.close().await;
    faults
}
