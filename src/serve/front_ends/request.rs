//! Reading the request of a front end.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::host::link::{HostQuery, ObserveRequest};
use crate::host::request::CallRequest;
use crate::serve::background::connection::MessageParts;
use crate::serve::background::protocol::{self, CallMeta, Payload, SentCall};

pub(in crate::serve) struct FrontEndRequest {
    pub(super) id: u64,
    pub(super) work: FrontEndWork,
}

pub(super) enum FrontEndWork {
    Call(Box<SentCall<CallRequest>>),
    Query(Box<HostQuery>),
    Observe(ObserveRequest),
    Status,
    Recheck,
    Stop,
}

impl FrontEndRequest {
    /// Reads the first line of a client; `None` for a client that is no front end.
    pub(in crate::serve) fn read(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct CallParams {
            #[serde(rename = "_meta")]
            meta: CallMeta<CallRequest>,
        }
        let parts = MessageParts::read(line)?;
        let (id, params) = (parts.number()?, parts.params?.get());
        let work = match &*parts.method? {
            protocol::CALL => {
                let CallParams { meta } = serde_json::from_str(params).ok()?;
                FrontEndWork::Call(Box::new(meta.call))
            }
            protocol::QUERY => FrontEndWork::Query(payload(params)?),
            protocol::OBSERVE => FrontEndWork::Observe(payload(params)?),
            protocol::STATUS => FrontEndWork::Status,
            protocol::RECHECK => FrontEndWork::Recheck,
            protocol::STOP => FrontEndWork::Stop,
            _ => return None,
        };
        Some(Self { id, work })
    }
}

fn payload<T: DeserializeOwned>(params: &str) -> Option<T> {
    Some(serde_json::from_str::<Payload<T>>(params).ok()?.payload)
}
