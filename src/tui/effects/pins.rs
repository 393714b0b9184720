//! Comparing a tool with its pin, and pinning it as the user saw it.

use crate::assembly::pin_update::PinUpdate;
use crate::assembly::pins::PinFile;
use crate::catalogue::Catalogue;
use crate::catalogue::pins::PinReport;
use crate::config::environment::Environment;
use crate::host::ToolHost;
use crate::host::request::{ListScope, LookupScope};
use crate::model::{Error, Origin};
use crate::tui::event::pins::{PinReview, PinsEffect, PinsEvent};

pub(super) async fn perform(
    effect: PinsEffect,
    host: &ToolHost,
    environment: &dyn Environment,
) -> PinsEvent {
    match effect {
        PinsEffect::Compare(tool) => {
            PinsEvent::Compared(compare(&tool, host).await.map(|compared| compared.review))
        }
        PinsEffect::Accept(shown) => {
            accept(*shown, host, environment).await.unwrap_or_else(PinsEvent::Failed)
        }
    }
}

struct Comparison {
    review: PinReview,
    report: PinReport,
    catalogue: Catalogue,
}

async fn compare(tool: &str, host: &ToolHost) -> Result<Comparison, Error> {
    let definition = host.find(tool, &LookupScope::default()).await?;
    if let Some(error) = definition.unavailable_reason {
        return Err(error);
    }
    let server = match &definition.origin {
        Origin::Server(server) => Some(server.clone()),
        _ => None,
    };
    let scope = server.clone().map_or(ListScope::Declared, |name| ListScope::Servers(vec![name]));
    let catalogue = host.catalogue(&scope).await;
    let mut report = host.compare(&host.pins(), &catalogue);
    report.tools.retain(|compared| compared.name == tool);
    report.servers.retain(|compared| Some(&compared.name) == server.as_ref());
    let Some(compared) = report.tools.first().filter(|compared| compared.now.is_some()) else {
        let failed = catalogue.servers.into_iter().find_map(|listing| listing.error);
        return Err(failed.unwrap_or_else(|| {
            Error::denied(format!("'{tool}' cannot be pinned: it is not currently listed"))
        }));
    };
    let review = PinReview {
        tool: tool.to_owned(),
        server,
        state: compared.state,
        now: compared.now.clone(),
        server_changes: report.servers.iter().flat_map(|server| server.changes.clone()).collect(),
        changes: compared.changes.clone(),
    };
    Ok(Comparison { review, report, catalogue })
}

async fn accept(
    shown: PinReview,
    host: &ToolHost,
    environment: &dyn Environment,
) -> Result<PinsEvent, Error> {
    let Comparison { review, report, catalogue } = compare(&shown.tool, host).await?;
    if review != shown {
        return Ok(PinsEvent::ChangedMeanwhile(review));
    }
    let Some(file) = PinFile::own(environment) else {
        return Err(Error::config("no state directory for pins").with_hint("set HOME"));
    };
    let update = PinUpdate { host, report: &report, catalogue: &catalogue, accepted: true };
    file.change(|pinned| update.apply(pinned, file.own))?;
    host.replace_pins(file.read()?.unwrap_or_default());
    Ok(PinsEvent::Accepted(review))
}
